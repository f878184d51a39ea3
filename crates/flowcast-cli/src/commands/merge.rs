//! `flowcast merge`: joins the results of all shards of a run.

use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use flowcast::study::rows::ResultsPart;

use super::{
    sweep::output::{declared, draw, write_as},
    validate::part_of_run,
};
use flowcast_terminal::{
    files::{declare, write_whole},
    growing, say,
    shard::files_of,
};

/// Merge the results of all shards of a run
///
/// A run without shards writes the same bytes. Missing shards, shards of another run, and results that two
/// files contain are errors.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowcast merge lu.*-of-512.csv -o lu.csv
  flowcast merge lu.1.csv lu.2.csv --report lu.html
  flowcast merge racks.*-of-8.html.journal -o racks.html.journal")]
pub(crate) struct Merge {
    /// Files of all shards: rows of `sweep` or journals of `validate pattern`; the name in the options of --shard auto stands
    /// for the files of all shards
    #[arg(required = true, value_name = "PARTS")]
    parts: Vec<PathBuf>,
    /// Merged file
    #[arg(short, long, value_name = "FILE", required_unless_present = "report")]
    output: Option<PathBuf>,
    /// Sweeps: write a page with curves and a heat map; without -o, the page stores the sets
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,
}

impl Merge {
    /// Reads the files of all shards and writes the merged one.
    pub(crate) fn run(self) -> Result<()> {
        let parts: Vec<PathBuf> = self.parts.iter().flat_map(|part| files_of(part)).collect();
        let outputs = declared(&self.output, &self.report);
        declare(parts.iter().map(PathBuf::as_path), outputs)?;
        let (mut whole, mut is_journal): (Option<ResultsPart>, bool) = (None, false);
        for path in &parts {
            let (name, text) = (path.display().to_string(), growing::read(path)?);
            let journal = part_of_run(path, &text)?;
            is_journal = journal.is_some();
            let part = journal.map_or_else(|| ResultsPart::read(&name, &text), Ok)?;
            ensure!(
                part.whole >= text.len() && !part.header.is_empty(),
                "{name}: found a file that ends in the middle of a line, expected a complete file"
            );
            let Some(whole) = &mut whole else {
                whole = Some(part);
                continue;
            };
            ensure!(
                whole.header == part.header,
                "{name}: found a shard of another run than {}, expected the same run",
                parts[0].display()
            );
            whole.rows.merge(part.rows).context(name)?;
        }
        let ResultsPart {
            header, rows, sets, ..
        } = whole.context("found no file, expected the files of all shards")?;
        if let Some(missing) = (0..sets).find(|set| !rows.contains(*set)) {
            bail!(
                "found {} of {sets} results, expected all; the first missing one has the number {missing}",
                rows.len()
            );
        }
        let target = self.output.as_ref().or(self.report.as_ref());
        let target = target.context("found no file to write, expected -o FILE")?;
        if is_journal {
            growing::write(target, std::iter::once(header.as_str()).chain(rows.lines()))?;
        } else {
            write_whole(target, |out| write_as(target, out, &header, &rows))?;
            draw(&self.output, &self.report)?;
        }
        say!("flowcast: {}: {sets} results", target.display());
        Ok(())
    }
}
