//! `flowcast fit --models`: which model explains measured round trips best, and why.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
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

use crate::terminal::{
    answers::write_page,
    files::read_text,
    output::{Format, say},
    provenance,
};

/// Which models are compared.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum Models {
    /// Every model
    All,
}

/// The patterns of pairs and of conflicts; conflicts whose messages differ in size or start are left out, and told.
pub(super) fn patterns(files: &[PathBuf]) -> Result<Vec<PatternSamples>> {
    let mut all = Vec::new();
    for path in files {
        let place = || path.display().to_string();
        let text = read_text(path)?;
        if !ConflictSamples::is_one(&text) {
            all.extend(of_pairs(&PairSamples::from_csv(&text).with_context(place)?));
            continue;
        }
        let conflicts = ConflictSamples::from_csv(&text).with_context(place)?;
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
    (samples, patterns): (&PrttSamples, &[PatternSamples]),
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
