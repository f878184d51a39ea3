//! `--paraver`, `--perfetto`, `--messages`, `--ranks`, `--pairs`: a replay written to files for other programs.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use flowcast::{
    replay::journal::Keeps,
    report::export::{
        Replayed, chrome,
        paraver::{self, Stamp},
        parquet, perfetto, tables,
    },
};

use crate::terminal::{
    files::{Batch, Output},
    provenance,
};

/// Files for other programs.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct OutputArgs {
    /// Write the replay for Paraver: FILE.prv, and beside it FILE.pcf and FILE.row
    #[arg(
        long,
        value_name = "FILE.prv",
        help_heading = "Files for other programs"
    )]
    pub paraver: Option<PathBuf>,
    /// Write the replay for ui.perfetto.dev: Chrome's JSON if the name ends in .json, else Perfetto's own form
    #[arg(
        long,
        value_name = "FILE.json|FILE.pftrace",
        help_heading = "Files for other programs"
    )]
    pub perfetto: Option<PathBuf>,
    /// Write a table of all messages: Parquet if the name ends in .parquet, else CSV
    #[arg(
        long,
        value_name = "FILE.csv|FILE.parquet",
        help_heading = "Files for other programs"
    )]
    pub messages: Option<PathBuf>,
    /// Write a table of all ranks (CSV)
    #[arg(
        long,
        value_name = "FILE.csv",
        help_heading = "Files for other programs"
    )]
    pub ranks: Option<PathBuf>,
    /// Write a table of all pairs of ranks that exchange messages (CSV)
    #[arg(
        long,
        value_name = "FILE.csv",
        help_heading = "Files for other programs"
    )]
    pub pairs: Option<PathBuf>,
}

impl OutputArgs {
    /// Whether any of them was given.
    pub(crate) fn is_given(&self) -> bool {
        [
            &self.paraver,
            &self.perfetto,
            &self.messages,
            &self.ranks,
            &self.pairs,
        ]
        .iter()
        .any(|path| path.is_some())
    }

    /// What these files need.
    pub(crate) fn keeps(&self) -> Keeps {
        let is_proto = self.perfetto.as_deref().is_some_and(|path| !is_json(path));
        let slices = self.paraver.is_some() || self.perfetto.is_some();
        Keeps {
            slices,
            calls: self.paraver.is_some(),
            receipts: is_proto,
            causes: false,
        }
    }

    /// The files that will be written, with the two that Paraver looks for beside its trace.
    pub(crate) fn declared<'a>(&'a self, paraver: &'a [PathBuf]) -> Vec<Output<'a>> {
        let output = |option, path: &'a Option<PathBuf>, endings| {
            Some(Output {
                option,
                path: path.as_deref()?,
                endings,
            })
        };
        let named = [
            output("--paraver", &self.paraver, &["prv"]),
            output("--perfetto", &self.perfetto, &["json", "pftrace"]),
            output("--messages", &self.messages, &["csv", "parquet"]),
            output("--ranks", &self.ranks, &["csv"]),
            output("--pairs", &self.pairs, &["csv"]),
        ];
        let beside = paraver.iter().map(|path| Output::new("--paraver", path));
        named.into_iter().flatten().chain(beside).collect()
    }

    /// The `.pcf` and `.row` files, which Paraver looks for beside the `.prv`.
    pub(crate) fn beside_paraver(&self) -> Vec<PathBuf> {
        self.paraver
            .iter()
            .flat_map(|path: &PathBuf| ["pcf", "row"].map(|ending| path.with_extension(ending)))
            .collect()
    }

    /// Writes what was asked for.
    pub(crate) fn write(&self, replayed: Replayed<'_>, batch: &mut Batch) -> Result<()> {
        if let (Some(path), [pcf, row]) = (&self.paraver, &self.beside_paraver()[..]) {
            batch.write(pcf, |out| Ok(paraver::pcf(replayed, out)?))?;
            batch.write(row, |out| Ok(paraver::row(replayed, out)?))?;
            let stamp = Stamp(provenance::paraver_date());
            batch.write(path, |out| Ok(paraver::prv(replayed, &stamp, out)?))?;
        }
        if let Some(path) = &self.perfetto {
            let write = if is_json(path) {
                chrome::json
            } else {
                perfetto::pftrace
            };
            batch.write(path, |out| Ok(write(replayed, out)?))?;
        }
        self.write_tables(replayed, batch)
    }

    fn write_tables(&self, replayed: Replayed<'_>, batch: &mut Batch) -> Result<()> {
        let provenance = provenance::of_this_run();
        if let Some(path) = &self.messages {
            let is_parquet = path.extension().is_some_and(|ending| ending == "parquet");
            let write = if is_parquet {
                parquet::messages
            } else {
                tables::messages
            };
            batch.write(path, |out| Ok(write(replayed, &provenance, out)?))?;
        }
        if let Some(path) = &self.ranks {
            batch.write(path, |out| Ok(tables::ranks(replayed, &provenance, out)?))?;
        }
        if let Some(path) = &self.pairs {
            batch.write(path, |out| Ok(tables::pairs(replayed, &provenance, out)?))?;
        }
        Ok(())
    }
}

/// Whether Chrome's form is meant.
fn is_json(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "json")
}
