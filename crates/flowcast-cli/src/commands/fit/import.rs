//! `flowcast fit` of outputs of other benchmarks, which are converted to samples.

use std::path::Path;

use anyhow::{Result, ensure};
use clap::Args;
use flowcast::{
    fit::{
        hockney::fit_hockney,
        import::{ImportChoice, Imported, read, samples},
        samples::PrttSamples,
    },
    model::quantity::Quantity,
    table::{Document, rows},
    units::Rounded,
};

use super::{
    inputs::{FitInput, FitInputKind},
    write,
};
use crate::commands::fit_conflicts::percent;
use flowcast_terminal::{output::Format, provenance};

/// Some libraries handle messages without data differently.
const NO_BYTES: &str =
    "the line is fitted to messages of at least 1 B; messages of 0 B are only compared with it";

/// Options for outputs of benchmarks that leave something open.
#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// Outputs of benchmarks: name of the test if the output lacks it, such as sendrecv of nccl-tests before 2.17, ib_send_lat
    /// or PingPong
    #[arg(long, value_name = "NAME")]
    pub test: Option<String>,
    /// Outputs of benchmarks: line numbers at which the sections to read begin, if the output has several runs of a test;
    /// several sections are fitted together
    #[arg(long, value_name = "LINE,..", value_delimiter = ',')]
    pub section: Vec<usize>,
}

/// Round trips of all files, with notes on parts that were left out.
pub(crate) struct ImportedFiles {
    /// Round trips. Half of a round trip is the time from one process to another.
    pub samples: PrttSamples,
    files: Vec<(String, Imported)>,
}

impl ImportedFiles {
    /// Reads the outputs of benchmarks among the files.
    pub(crate) fn read(files: &[FitInput], args: &ImportArgs) -> Result<ImportedFiles> {
        let files: Vec<&FitInput> = files
            .iter()
            .filter(|file| file.kind == FitInputKind::Benchmark)
            .collect();
        ensure!(
            files.len() <= 1 || args.section.is_empty(),
            "--section: found {} files, expected one",
            files.len()
        );
        let choice = ImportChoice {
            test: args.test.clone(),
            sections: args.section.clone(),
        };
        let files = files
            .iter()
            .map(|file| Ok((file.place(), file.parsed(|text| read(text, &choice))?)))
            .collect::<Result<Vec<_>>>()?;
        let samples = samples(files.iter().map(|(_, imported)| imported))?;
        Ok(ImportedFiles { samples, files })
    }

    /// Round trips that come from samples, not from benchmarks.
    pub(crate) fn from_samples(samples: PrttSamples) -> ImportedFiles {
        let files = Vec::new();
        ImportedFiles { samples, files }
    }

    /// `true` if the samples come from outputs of benchmarks.
    pub(crate) fn is_imported(&self) -> bool {
        !self.files.is_empty()
    }

    /// Adds to a result the sections and lines that were left out, and notes on the fit.
    pub(crate) fn with_notes(
        &self,
        document: Document,
        about_fit: impl IntoIterator<Item = String>,
    ) -> Document {
        let skipped = self.files.iter().flat_map(|(place, imported)| {
            let skipped = imported.skipped.iter();
            skipped.map(move |section| (place, section))
        });
        let skipped: Vec<_> = skipped.collect();
        let table = rows(&skipped)
            .field("file", |(place, _)| *place)
            .field("line", |(_, section)| section.line)
            .field("benchmark", |(_, section)| section.benchmark.to_string())
            .field("test", |(_, section)| section.test.clone())
            .field("reason", |(_, section)| section.reason);
        let notes = self.files.iter().flat_map(|(place, imported)| {
            let notes = imported.notes.iter();
            notes.map(move |note| format!("{place}: {note}"))
        });
        let lines = skipped.iter();
        document
            .field("skipped", table)
            .lines(lines.map(|(place, section)| format!("skipped: {place}, {section}")))
            .noted(notes.chain(about_fit))
    }
}

/// Fits latency and bandwidth, writes the network if requested, and prints them.
pub(crate) fn run(
    files: &[FitInput],
    args: &ImportArgs,
    output: Option<&Path>,
    name: &str,
    format: Format,
) -> Result<()> {
    let imported = ImportedFiles::read(files, args)?;
    let fit = fit_hockney(&imported.samples)?;
    let mut provenance = provenance::of_this_run();
    let names: Vec<String> = files.iter().map(FitInput::place).collect();
    provenance.insert("imported".into(), names.join(" "));
    write(output, &fit.to_network(name, provenance))?;
    let rate = Quantity::Rate(fit.per_byte.rate()).rounded();
    let document = Document::new("hockney-fit")
        .field("latency_us", fit.latency)
        .field("us_per_B", fit.per_byte.as_micros())
        .field("sizes", fit.sizes)
        .field("error_median", fit.error_median)
        .field("error_worst", fit.error_worst)
        .line(format!("latency    {}", Rounded(fit.latency)))
        .line(format!("bandwidth  {rate}"))
        .line(format!(
            "Error of the line at {} sizes: {} (median), {} at worst.",
            fit.sizes,
            percent(fit.error_median),
            percent(fit.error_worst)
        ));
    let note = fit.left_out.then(|| NO_BYTES.to_owned());
    format.print(&imported.with_notes(document, note))
}
