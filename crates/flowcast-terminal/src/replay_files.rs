//! `--write KIND=FILE`: output of a replay to files for other programs.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use flowcast::{
    observers::journal::JournalContents,
    report::export::{
        Replayed,
        paraver::{self, Stamp},
        parquet, perfetto, tables,
    },
};

use crate::{
    files::{Batch, Output, kind_and_file},
    provenance,
};

/// Kind of an output file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReplayFileKind {
    Paraver,
    Perfetto,
    Messages,
    Ranks,
    Pairs,
}

/// Name of the option, for messages.
const OPTION: &str = "--write";

impl ReplayFileKind {
    const NAMES: [(&str, ReplayFileKind); 5] = [
        ("paraver", ReplayFileKind::Paraver),
        ("perfetto", ReplayFileKind::Perfetto),
        ("messages", ReplayFileKind::Messages),
        ("ranks", ReplayFileKind::Ranks),
        ("pairs", ReplayFileKind::Pairs),
    ];

    fn endings(self) -> &'static [&'static str] {
        use ReplayFileKind::*;
        match self {
            Paraver => &["prv"],
            Perfetto => &["pftrace"],
            Messages => &["csv", "parquet"],
            Ranks | Pairs => &["csv"],
        }
    }
}

/// An output file and its kind: one value of `--write`.
#[derive(Debug, Clone)]
struct ReplayFile {
    kind: ReplayFileKind,
    path: PathBuf,
}

/// Parses a value such as `paraver=run.prv`.
fn replay_file(text: &str) -> Result<ReplayFile, String> {
    kind_and_file(text, &ReplayFileKind::NAMES).map(|(kind, path)| ReplayFile { kind, path })
}

/// Files for other programs.
#[derive(Debug, Clone, Default, Args)]
pub struct OutputArgs {
    /// Write the replay to a file: paraver=FILE.prv (with .pcf and .row beside it), perfetto=FILE.pftrace, or a table:
    /// messages=FILE.csv or FILE.parquet, ranks=FILE.csv, or pairs=FILE.csv (pairs of ranks that exchange messages)
    /// (repeatable)
    #[arg(long = "write", value_name = "KIND=FILE", value_parser = replay_file)]
    files: Vec<ReplayFile>,
}

impl OutputArgs {
    /// Options for a single Paraver trace.
    pub fn paraver(path: &Path) -> OutputArgs {
        OutputArgs {
            files: vec![ReplayFile {
                kind: ReplayFileKind::Paraver,
                path: path.to_owned(),
            }],
        }
    }

    /// `true` if a file was requested.
    pub fn is_given(&self) -> bool {
        !self.files.is_empty()
    }

    /// Data that the replay must keep for these files.
    pub fn keeps(&self) -> JournalContents {
        let mut keeps = JournalContents::default();
        for ReplayFile { kind, .. } in &self.files {
            keeps.calls |= *kind == ReplayFileKind::Paraver;
            keeps.slices |= matches!(kind, ReplayFileKind::Paraver | ReplayFileKind::Perfetto);
            keeps.receipts |= *kind == ReplayFileKind::Perfetto;
        }
        keeps
    }

    /// All files that will be written, the two that Paraver needs beside its trace included.
    pub fn declared<'a>(&'a self, beside: &'a [PathBuf]) -> Vec<Output<'a>> {
        let named = self.files.iter().map(|file| Output {
            option: OPTION,
            path: &file.path,
            endings: file.kind.endings(),
        });
        let beside = beside.iter().map(|path| Output::new(OPTION, path));
        named.chain(beside).collect()
    }

    /// The `.pcf` and `.row` files that Paraver expects beside the `.prv`.
    pub fn beside_paraver(&self) -> Vec<PathBuf> {
        let traces = self
            .files
            .iter()
            .filter(|file| file.kind == ReplayFileKind::Paraver);
        traces
            .flat_map(|file| ["pcf", "row"].map(|ending| file.path.with_extension(ending)))
            .collect()
    }

    /// Writes the files. Tables contain the notes of the prediction.
    pub fn write(&self, replayed: Replayed<'_>, notes: &[String], batch: &mut Batch) -> Result<()> {
        let mut provenance = provenance::of_this_run();
        provenance.extend((!notes.is_empty()).then(|| ("notes".to_owned(), notes.join("; "))));
        for file in &self.files {
            file.write(replayed, &provenance, batch)?;
        }
        Ok(())
    }
}

impl ReplayFile {
    fn write(
        &self,
        replayed: Replayed<'_>,
        provenance: &tables::Provenance,
        batch: &mut Batch,
    ) -> Result<()> {
        use ReplayFileKind::*;
        let ReplayFile { kind, path } = self;
        match kind {
            Paraver => {
                batch.write(&path.with_extension("pcf"), |out| {
                    Ok(paraver::pcf(replayed, out)?)
                })?;
                batch.write(&path.with_extension("row"), |out| {
                    Ok(paraver::row(replayed, out)?)
                })?;
                let stamp = Stamp(provenance::paraver_date());
                batch.write(path, |out| Ok(paraver::prv(replayed, &stamp, out)?))
            }
            Perfetto => batch.write(path, |out| Ok(perfetto::pftrace(replayed, out)?)),
            Messages if ends_in(path, "parquet") => batch.write(path, |out| {
                Ok(parquet::messages(replayed, provenance, out)?)
            }),
            Messages => batch.write(path, |out| Ok(tables::messages(replayed, provenance, out)?)),
            Ranks => batch.write(path, |out| Ok(tables::ranks(replayed, provenance, out)?)),
            Pairs => batch.write(path, |out| Ok(tables::pairs(replayed, provenance, out)?)),
        }
    }
}

fn ends_in(path: &Path, ending: &str) -> bool {
    path.extension().is_some_and(|found| found == ending)
}
