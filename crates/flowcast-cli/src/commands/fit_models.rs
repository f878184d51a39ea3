//! `flowcast fit --model`: compares models on measured round trips and explains the differences.

use std::path::Path;

use anyhow::{Result, bail};
use clap::ValueEnum;
use flowcast::{
    calibrate::conflict_samples::ConflictSamples,
    fit::{
        pairs::samples::PairSamples,
        samples::PrttSamples,
        zoo::{
            compare::{CompareOptions, LEAST_SIZES, compare},
            pattern::{PatternSamples, of_pairs},
        },
    },
    models_page::models_document,
    report::chart_page::Picture,
};

use super::fit::{
    import::{ImportArgs, ImportedFiles},
    inputs::{FitInput, FitInputKind},
};
use flowcast_terminal::{answers::write_page, output::Format, provenance};

/// Models of messages that `fit --model` compares.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum Models {
    /// All models of messages
    All,
}

/// Some libraries handle messages without data differently.
const NO_BYTES: &str = "no model is fitted to messages of 0 B";

/// Round trips, patterns, and notes on data that was left out.
pub(super) struct ModelInputs {
    round_trips: ImportedFiles,
    patterns: Vec<PatternSamples>,
    notes: Vec<String>,
}

impl ModelInputs {
    pub(super) fn read(inputs: &[FitInput], args: &ImportArgs) -> Result<ModelInputs> {
        let mut round_trips = round_trips(inputs, args)?;
        let is_empty_left_out =
            round_trips.is_imported() && round_trips.samples.leave_out_empty(LEAST_SIZES);
        let mut notes: Vec<String> = Vec::new();
        notes.extend(is_empty_left_out.then(|| NO_BYTES.to_owned()));
        let patterns = patterns(inputs, &mut notes)?;
        Ok(ModelInputs {
            round_trips,
            patterns,
            notes,
        })
    }
}

/// Round trips: one file of samples, or the combined outputs of benchmarks.
fn round_trips(inputs: &[FitInput], args: &ImportArgs) -> Result<ImportedFiles> {
    let found: Vec<&FitInput> = inputs.iter().filter(is_one).collect();
    match found[..] {
        [] => bail!("found no round trips, expected a file with round trips and the patterns"),
        [one] if one.kind == FitInputKind::RoundTrips => {
            let samples = one.parsed(PrttSamples::from_csv)?;
            Ok(ImportedFiles::from_samples(samples))
        }
        _ if found
            .iter()
            .all(|input| input.kind == FitInputKind::Benchmark) =>
        {
            ImportedFiles::read(inputs, args)
        }
        _ => bail!("found several files with round trips, expected one, or outputs of benchmarks"),
    }
}

fn is_one(input: &&FitInput) -> bool {
    matches!(
        input.kind,
        FitInputKind::RoundTrips | FitInputKind::Benchmark
    )
}

/// Patterns of pairs and of conflicts. Conflicts whose messages differ in size or start are left out, with a note.
fn patterns(inputs: &[FitInput], notes: &mut Vec<String>) -> Result<Vec<PatternSamples>> {
    let mut all = Vec::new();
    for input in inputs {
        match input.kind {
            FitInputKind::RoundTrips | FitInputKind::Benchmark => continue,
            FitInputKind::Pairs => {
                all.extend(of_pairs(&input.parsed(PairSamples::from_csv)?));
                continue;
            }
            FitInputKind::Conflicts => {}
            kind @ (FitInputKind::Calls | FitInputKind::Recording | FitInputKind::Collectives) => {
                bail!(
                    "{}: found {kind}, expected round trips or patterns",
                    input.place()
                )
            }
        }
        let conflicts = input.parsed(ConflictSamples::from_csv)?;
        let patterns = conflicts.patterns();
        let left = conflicts.measured.len() - patterns.len();
        if left > 0 {
            notes.push(format!(
                "{}: {left} conflicts are not used, because their messages differ in size or start",
                input.place()
            ));
        }
        all.extend(patterns);
    }
    Ok(all)
}

/// Compares the models on round trips and patterns, and prints them, the best first.
pub(super) fn run(
    inputs: ModelInputs,
    options: CompareOptions,
    page: Option<&Path>,
    format: Format,
) -> Result<()> {
    let samples = &inputs.round_trips.samples;
    let compared = compare(samples, &inputs.patterns, options)?;
    let mut notes = inputs.notes;
    let refused = compared.iter().filter(|model| model.negative > 0);
    notes.extend(refused.map(|refused| {
        let (model, count) = (refused.model, refused.negative);
        format!("{model} is rejected: it predicts negative times for {count} of the points")
    }));
    let document = models_document(&compared, options);
    let document = inputs.round_trips.with_notes(document, notes);
    if let Some(path) = page {
        let provenance = provenance::of_this_run();
        write_page(path, &document, Picture::Models, &provenance)?;
    }
    format.print(&document)
}
