//! `flowcast fit --models`: which model explains measured round trips best, and why.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::ValueEnum;
use flowcast::calibrate::conflict_samples::ConflictSamples;
use flowcast::fit::loggp::interval;
use flowcast::fit::pairs::samples::PairSamples;
use flowcast::fit::samples::PrttSamples;
use flowcast::fit::zoo::Unit;
use flowcast::fit::zoo::compare::{
    CompareOptions, Compared, FittedParameter, Predicted, PredictedPattern, compare,
};
use flowcast::fit::zoo::pattern::{PatternSamples, of_pairs};
use flowcast::models_page::models_page;
use flowcast::units::{Rounded, Time};
use serde::Serialize;

use super::fit_conflicts::percent;
use crate::terminal::answers::write_page;
use crate::terminal::files::read_text;
use crate::terminal::output::{Format, Shown, println_out, say, show};
use crate::terminal::tables::{cells, table};

/// Models of which the residuals are printed by size.
const SHOWN: usize = 4;
/// Patterns of which the errors are printed.
const PATTERNS_SHOWN: usize = 12;

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
    let report = Report::new(&compared, options);
    if let Some(path) = page {
        write_page(
            path,
            &models_page(&compared, &serde_json::to_string(&report)?),
            &serde_json::to_value(&report)?,
        )?;
    }
    show(&report, format)
}

#[derive(Serialize)]
struct Report {
    level: f64,
    replicates: usize,
    seed: u64,
    models: Vec<ModelReport>,
}

#[derive(Serialize)]
struct ModelReport {
    model: &'static str,
    source: &'static str,
    choice: String,
    parameters: Vec<ParameterReport>,
    error_fitted: f64,
    error_left_out: f64,
    error_left_out_by_procedure: Option<f64>,
    negative_predictions: usize,
    error_lengths_left_out: Option<f64>,
    error_patterns_left_out: Option<f64>,
    by_pattern: Vec<PatternReport>,
    by_point: Vec<PointReport>,
    by_size: Vec<SizeReport>,
}

#[derive(Serialize)]
struct ParameterReport {
    symbol: String,
    unit: &'static str,
    value: f64,
    interval: Option<[f64; 2]>,
}

#[allow(non_snake_case, reason = "the name ends in the unit")]
#[derive(Serialize)]
struct SizeReport {
    size_B: u64,
    error: f64,
}

/// A median and what the model makes of it that has not seen its size.
#[allow(non_snake_case, reason = "the name ends in the unit")]
#[derive(Serialize)]
struct PointReport {
    n: u32,
    d_us: f64,
    size_B: u64,
    measured_us: f64,
    predicted_us: f64,
}

/// A pattern's median and what the model makes of it that has not seen it.
#[allow(non_snake_case, reason = "the name ends in the unit")]
#[derive(Serialize)]
struct PatternReport {
    name: String,
    part: usize,
    messages: usize,
    size_B: u64,
    measured_us: f64,
    predicted_us: f64,
}

impl PatternReport {
    fn of(found: &PredictedPattern) -> PatternReport {
        PatternReport {
            name: found.pattern.name.clone(),
            part: found.part + 1,
            messages: found.pattern.messages.len(),
            size_B: found.pattern.size.0,
            measured_us: found.measured.as_micros(),
            predicted_us: found.predicted.as_micros(),
        }
    }

    fn error(&self) -> f64 {
        self.predicted_us / self.measured_us - 1.0
    }
}

impl PointReport {
    fn of(found: &Predicted) -> PointReport {
        PointReport {
            n: found.point.messages,
            d_us: found.point.delay.as_micros(),
            size_B: found.point.size.0,
            measured_us: found.measured.as_micros(),
            predicted_us: found.predicted.as_micros(),
        }
    }
}

impl Report {
    fn new(compared: &[Compared], options: CompareOptions) -> Report {
        let CompareOptions {
            replicates,
            level,
            seed,
        } = options;
        Report {
            level,
            replicates,
            seed,
            models: compared.iter().map(ModelReport::new).collect(),
        }
    }
}

impl ModelReport {
    fn new(compared: &Compared) -> ModelReport {
        let by_size = compared.by_size.iter();
        ModelReport {
            model: compared.model,
            source: compared.source,
            choice: compared.choice.clone(),
            parameters: compared
                .parameters
                .iter()
                .map(ParameterReport::new)
                .collect(),
            error_fitted: compared.fitted,
            error_left_out: compared.left_out,
            error_left_out_by_procedure: compared.left_out_by_procedure,
            negative_predictions: compared.negative,
            error_lengths_left_out: compared.lengths_left_out,
            error_patterns_left_out: compared.patterns_left_out,
            by_pattern: compared.by_pattern.iter().map(PatternReport::of).collect(),
            by_point: compared.predicted.iter().map(PointReport::of).collect(),
            by_size: by_size
                .map(|(size, error)| SizeReport {
                    size_B: size.0,
                    error: *error,
                })
                .collect(),
        }
    }
}

impl ParameterReport {
    fn new(fitted: &FittedParameter) -> ParameterReport {
        let unit = match fitted.parameter.unit {
            Unit::Time => "ns",
            Unit::TimePerByte => "ns/B",
        };
        let interval = interval(fitted.interval).map(|(low, high)| [low, high]);
        ParameterReport {
            symbol: fitted.parameter.symbol.clone(),
            unit,
            value: fitted.value,
            interval,
        }
    }

    fn text(&self, value: f64) -> String {
        match self.unit {
            "ns" => Rounded(Time::from_nanos(value)).to_string(),
            unit => format!("{value:.4} {unit}"),
        }
    }
}

impl Shown for Report {
    const SCHEMA: &'static str = "flowcast/model-comparison/1";

    fn print(&self) {
        let columns = [
            "model",
            ">sizes left out",
            ">lengths left out",
            ">patterns left out",
            ">published fit",
            ">fitted",
            "with",
            "source",
        ];
        let mut errors = table(&columns);
        for model in &self.models {
            let by_procedure = model
                .error_left_out_by_procedure
                .map_or("-".to_owned(), percent);
            let [left_out, fitted] = [model.error_left_out, model.error_fitted].map(percent);
            let [lengths, patterns] = [model.error_lengths_left_out, model.error_patterns_left_out]
                .map(|error| error.map_or("-".to_owned(), percent));
            let row = cells![
                model.model,
                left_out,
                lengths,
                patterns,
                by_procedure,
                fitted,
                model.choice,
                model.source
            ];
            errors.add_row(row);
        }
        println_out!("{errors}");
        let Some(best) = self.models.first() else {
            return;
        };
        let patterns = best.error_patterns_left_out.map_or(String::new(), |error| {
            format!(", and patterns left out by {}", percent(error))
        });
        println_out!(
            "{} explains this network best: it misses sizes left out by {}{patterns}.",
            best.model,
            percent(best.error_left_out)
        );
        let interval = format!(">{} % interval", self.level * 100.0);
        let mut parameters = table(&["model", "parameter", ">value", &interval]);
        for model in self.models.iter().take(SHOWN) {
            for parameter in &model.parameters {
                let ends = |[low, high]: [f64; 2]| {
                    format!("{} .. {}", parameter.text(low), parameter.text(high))
                };
                let ends = parameter.interval.map_or("-".to_owned(), ends);
                parameters.add_row(cells![
                    model.model,
                    parameter.symbol,
                    parameter.text(parameter.value),
                    ends
                ]);
            }
        }
        println_out!("{parameters}");
        self.print_residuals();
        self.print_patterns();
    }
}

impl Report {
    /// Why: where the best models and the simplest one predict too much or too little.
    fn print_residuals(&self) {
        println_out!("Mean error of each size that was left out, predicted less measured:");
        let shown = &self.models[..self.models.len().min(SHOWN)];
        let names: Vec<String> = shown
            .iter()
            .map(|model| format!(">{}", model.model))
            .collect();
        let mut residuals = table(&[&[">size".to_owned()], &names[..]].concat());
        for (row, size) in shown[0].by_size.iter().enumerate() {
            let errors = shown
                .iter()
                .map(|model| format!("{:+.1} %", model.by_size[row].error * 100.0));
            residuals.add_row([format!("{} B", size.size_B)].into_iter().chain(errors));
        }
        println_out!("{residuals}");
    }

    /// Which patterns were left out, and what the best models say of those that the best of all misses most.
    fn print_patterns(&self) {
        let shown = &self.models[..self.models.len().min(SHOWN)];
        let all = &shown[0].by_pattern;
        let Some(parts) = all.iter().map(|pattern| pattern.part).max() else {
            return;
        };
        println_out!("Patterns left out, in {parts} parts:");
        for part in 1..=parts {
            let mut names: Vec<&str> = all
                .iter()
                .filter(|own| own.part == part)
                .map(|own| &*own.name)
                .collect();
            names.sort_unstable();
            names.dedup();
            println_out!("  {part}: {}", names.join(" "));
        }
        let mut rows: Vec<usize> = (0..all.len()).collect();
        rows.sort_by(|one, other| {
            all[*other]
                .error()
                .abs()
                .total_cmp(&all[*one].error().abs())
        });
        rows.truncate(PATTERNS_SHOWN);
        println_out!(
            "Error of patterns left out, predicted less measured, those that {} misses most:",
            shown[0].model
        );
        let names: Vec<String> = shown
            .iter()
            .map(|model| format!(">{}", model.model))
            .collect();
        let head = ["pattern", ">messages", ">size", ">measured"].map(str::to_owned);
        let mut residuals = table(&[&head[..], &names[..]].concat());
        for row in rows {
            let PatternReport {
                name,
                messages,
                size_B,
                measured_us,
                ..
            } = &all[row];
            let measured = Rounded(Time::from_micros(*measured_us)).to_string();
            let errors = shown
                .iter()
                .map(|model| format!("{:+.1} %", model.by_pattern[row].error() * 100.0));
            residuals.add_row(
                [
                    name.clone(),
                    messages.to_string(),
                    format!("{size_B} B"),
                    measured,
                ]
                .into_iter()
                .chain(errors),
            );
        }
        println_out!("{residuals}");
    }
}
