//! Formats in which commands write mappings.

use std::path::Path;

use anyhow::Result;
use clap::ValueEnum;
use flowcast::table::{Table, rows};
use flowcast_place::{
    job::Job,
    launch::{LaunchHint, hints},
    mapping_file::{self, MappingFormat},
    reordered::{ReorderLanguage, Reordering},
};

/// Formats, named after the programs that read them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FileFormat {
    /// Node of each rank, one per line
    Nodes,
    /// Open MPI's rankfile
    #[value(name = "openmpi", alias = "rankfile")]
    OpenMpi,
    /// Rankfile of Open MPI 5 and PRRTE
    Prrte,
    /// MPICH's host:n
    #[value(alias = "host-counts")]
    Mpich,
    /// Slurm's host list for arbitrary distribution
    #[value(alias = "host-list")]
    Slurm,
    /// C function that reorders the ranks of a running job
    C,
    /// Fortran subroutine that reorders the ranks of a running job
    Fortran,
}

impl FileFormat {
    /// Format of a file whose ending belongs to only one format.
    pub fn of_ending(path: &Path) -> Option<FileFormat> {
        match path.extension()?.to_str()? {
            "c" => Some(FileFormat::C),
            "f90" | "F90" | "f03" | "f08" => Some(FileFormat::Fortran),
            _ => None,
        }
    }

    /// `true` if the file is part of a program.
    pub fn is_program(self) -> bool {
        matches!(self, FileFormat::C | FileFormat::Fortran)
    }

    /// `true` if the format can only refer to nodes by name.
    pub fn needs_hosts(self) -> bool {
        matches!(self, FileFormat::Mpich | FileFormat::Slurm)
    }

    /// Content of the file. The launched mapping and the grid matter only to programs.
    pub fn write(self, reordering: &Reordering) -> Result<String> {
        let language = match self {
            FileFormat::C => ReorderLanguage::C,
            FileFormat::Fortran => ReorderLanguage::Fortran,
            _ => {
                let format = self.mapping_format().unwrap_or(MappingFormat::Nodes);
                return Ok(mapping_file::write(format, reordering.job)?);
            }
        };
        Ok(reordering.write(language)?)
    }

    /// Commands that start a job with this mapping, if the format belongs to a launcher. `file` is the name of the mapping's
    /// file.
    pub fn hint(self, job: &Job, file: &str) -> Option<LaunchHint> {
        let format = self.mapping_format()?;
        hints(job, file)
            .into_iter()
            .find(|hint| hint.format == format)
    }

    fn mapping_format(self) -> Option<MappingFormat> {
        use FileFormat::*;
        match self {
            Nodes => Some(MappingFormat::Nodes),
            OpenMpi => Some(MappingFormat::Rankfile),
            Prrte => Some(MappingFormat::PrrteRankfile),
            Mpich => Some(MappingFormat::HostCounts),
            Slurm => Some(MappingFormat::HostList),
            C | Fortran => None,
        }
    }
}

/// Sentence on starting the job: by an option, if there is one, and with the file.
pub fn launch_sentence(hint: &LaunchHint) -> String {
    match &hint.by_rule {
        Some(rule) => format!(
            "start the program with `{rule}`, or with this file: `{}`",
            hint.by_file
        ),
        None => format!("start the program with `{}`", hint.by_file),
    }
}

/// JSON table with the launchers' ways to create a mapping: `format`, `by_rule`, `by_file`.
pub fn launch_table(job: &Job) -> Table {
    rows(&hints(job, "FILE"))
        .field("format", |hint| format_name(hint.format))
        .field("by_rule", |hint| hint.by_rule.as_deref())
        .field("by_file", |hint| hint.by_file.as_str())
        .into()
}

/// Name of the format as a value of `--format`.
fn format_name(format: MappingFormat) -> &'static str {
    use MappingFormat::*;
    match format {
        Nodes => "nodes",
        Rankfile => "openmpi",
        PrrteRankfile => "prrte",
        HostCounts => "mpich",
        HostList => "slurm",
    }
}
