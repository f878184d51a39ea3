//! `flowcast fit --model`: which model explains measured round trips best, and why.

use std::path::Path;

use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use flowcast::{
    calibrate::conflict_samples::ConflictSamples,
    fit::{
        pairs::samples::PairSamples,
        samples::PrttSamples,
        zoo::{
            compare::{CompareOptions, compare},
            pattern::{PatternSamples, of_pairs},
        },
    },
    models_page::models_document,
    report::chart_page::{Picture, chart_page},
};

use super::fit::{
    import::{ImportArgs, ImportedFiles},
    inputs::{FitInput, Kind},
};
use crate::terminal::{
    answers::write_page,
    output::{Format, say},
    provenance,
};

/// Which models are compared.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum Models {
    /// Every model
    All,
}

/// The round trips: one file of samples, or the outputs of benchmarks together.
pub(super) fn round_trips(inputs: &[FitInput], args: &ImportArgs) -> Result<PrttSamples> {
    let found: Vec<&FitInput> = inputs.iter().filter(is_one).collect();
    match found[..] {
        [] => bail!("found no round trips, expected some beside patterns"),
        [one] if one.kind == Kind::RoundTrips => {
            PrttSamples::from_csv(&one.text).with_context(|| one.place())
        }
        _ if found.iter().all(|input| input.kind == Kind::Benchmark) => {
            let imported = ImportedFiles::read(inputs, args)?;
            imported
                .skipped()
                .iter()
                .for_each(|line| say!("flowcast: {line}"));
            imported
                .notes()
                .iter()
                .for_each(|note| say!("flowcast: note: {note}"));
            Ok(imported.samples)
        }
        _ => bail!("found several files with round trips, expected one, or outputs of benchmarks"),
    }
}

fn is_one(input: &&FitInput) -> bool {
    matches!(input.kind, Kind::RoundTrips | Kind::Benchmark)
}

/// The patterns of pairs and of conflicts; conflicts whose messages differ in size or start are left out, and told.
pub(super) fn patterns(inputs: &[FitInput]) -> Result<Vec<PatternSamples>> {
    let mut all = Vec::new();
    for input in inputs {
        let place = || input.place();
        let text = &input.text;
        match input.kind {
            Kind::RoundTrips | Kind::Benchmark => continue,
            Kind::Pairs => {
                all.extend(of_pairs(&PairSamples::from_csv(text).with_context(place)?));
                continue;
            }
            Kind::Conflicts => {}
            kind @ (Kind::Calls | Kind::Recording | Kind::Collectives) => {
                bail!(
                    "{}: found {kind}, expected round trips or patterns",
                    place()
                )
            }
        }
        let conflicts = ConflictSamples::from_csv(text).with_context(place)?;
        let patterns = conflicts.patterns();
        let left = conflicts.measured.len() - patterns.len();
        if left > 0 {
            say!(
                "flowcast: note: {}: {left} conflicts have messages of several sizes or starts and are not used",
                place()
            );
        }
        all.extend(patterns);
    }
    Ok(all)
}

/// Compares the models on round trips and patterns and prints them, the best first.
pub(super) fn run(
    samples: &PrttSamples,
    patterns: &[PatternSamples],
    options: CompareOptions,
    page: Option<&Path>,
    format: Format,
) -> Result<()> {
    let compared = compare(samples, patterns, options)?;
    for refused in compared.iter().filter(|model| model.negative > 0) {
        let count = refused.negative;
        say!(
            "flowcast: note: {} is refused: it predicts less than no time for {count} of the points",
            refused.model
        );
    }
    let document = models_document(&compared, options);
    if let Some(path) = page {
        write_page(
            path,
            &chart_page(&document, Picture::Models, &provenance::of_this_run())?,
            &document.json()?,
        )?;
    }
    format.print(&document)
}
