//! Predictions of measured patterns, and their errors as a table, a page and its JSON.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use flowcast::flows::concurrent::{Method, predict, predict_seeds};
use flowcast::model::cluster::flow::Flow;
use flowcast::model::cluster::pattern::Pattern;
use flowcast::model::network::Network;
use flowcast::model::sharing::flow_cuts::Strictness;
use flowcast::model::sharing::model::Model;
use flowcast::model::stats::sample::median;
use flowcast::packet::seeds::{LEVEL, Runs};
use flowcast::report::validation::{Case, ModelErrors, Validation};
use flowcast::units::Time;
use serde::Serialize;

use super::finished::Finished;
use super::patterns::{by_step, racks_of};
use crate::terminal::output::{Seconds, Shown, println_out};
use crate::terminal::progress::Progress;
use crate::terminal::tables::table;
use flowcast_measure::lab::LabSpec;

/// Predicts every finished pattern with every model; `seeds` is how often the packet model runs, if not once.
pub(super) fn cases(
    finished: &[Finished],
    spec: &LabSpec,
    models: &[Model],
    network: &Network,
    seeds: Option<u32>,
) -> Result<Vec<Case>> {
    let racks = racks_of(spec);
    let progress = Progress::of("predicting", "patterns", finished.len() as u64);
    let case = |finished: &Finished| -> Result<Case> {
        let (flows, step_of) = (finished.pattern_flows(), finished.steps());
        let (mut predicted, mut intervals) = (Vec::new(), Vec::new());
        let network = as_carried(network, finished);
        for model in models {
            let mut of_model = Predicted::default();
            let runs = seeds.map(|seeds| Runs {
                seeds,
                repetitions: finished.repetitions(),
            });
            for flows in by_step(&flows, &step_of) {
                let pattern = Pattern {
                    flows,
                    racks: racks.clone(),
                };
                of_model
                    .add(&pattern, &network, *model, runs)
                    .with_context(|| finished.name.clone())?;
            }
            predicted.push(of_model.durations);
            intervals.push(of_model.intervals);
        }
        progress.add(1);
        Ok(Case {
            name: finished.name.clone(),
            configuration: finished.configuration.clone(),
            predicted,
            intervals,
            measured: finished.durations(),
            flows,
        })
    };
    finished.iter().map(case).collect()
}

/// Where a network asks for warm-ups, those of the measurement if they are known.
fn as_carried(network: &Network, finished: &Finished) -> Network {
    let mut network = network.clone();
    if let (Some(warm_ups), Some(found)) = (&mut network.sharing.packet.warm_ups, finished.warm_ups)
    {
        *warm_ups = found;
    }
    network
}

/// What a model says of a pattern's flows, step by step.
#[derive(Default)]
struct Predicted {
    durations: Vec<Time>,
    intervals: Vec<(Time, Time)>,
}

impl Predicted {
    fn add(
        &mut self,
        pattern: &Pattern,
        network: &Network,
        model: Model,
        runs: Option<Runs>,
    ) -> Result<()> {
        let prediction = match runs.filter(|_| model == Model::Packet) {
            None => predict(
                pattern,
                network,
                Method {
                    model,
                    strictness: Strictness::Extended,
                },
            )?,
            Some(runs) => {
                let (prediction, spreads) = predict_seeds(pattern, network, runs)?;
                self.intervals.extend(
                    spreads
                        .iter()
                        .map(|spread| (spread.low.duration, spread.high.duration)),
                );
                prediction
            }
        };
        self.durations
            .extend(prediction.flows.iter().map(|flow| flow.duration));
        Ok(())
    }
}

/// The results of a validation: the errors of each model, and every figure behind them.
#[derive(Serialize)]
pub(super) struct Document<'a> {
    title: &'a str,
    models: Vec<ModelEntry<'a>>,
    patterns: Vec<PatternEntry>,
    provenance: &'a BTreeMap<String, String>,
}

/// A model's errors, as shares of what was measured.
#[derive(Serialize)]
struct ModelEntry<'a> {
    model: &'a str,
    #[serde(flatten)]
    errors: &'a ModelErrors,
    worst_configuration_mean_absolute_error: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    interval_level: Option<f64>,
}

/// A pattern: its flows, measured and predicted.
#[derive(Serialize)]
struct PatternEntry {
    pattern: String,
    configuration: String,
    is_precise: bool,
    flows: Vec<MeasuredFlow>,
    #[serde(skip_serializing_if = "Option::is_none")]
    steps: Option<StepsEntry>,
}

#[derive(Serialize)]
struct MeasuredFlow {
    id: u32,
    src: u32,
    dst: u32,
    bytes: u64,
    start_s: Seconds,
    measured_s: f64,
    repetitions_s: Vec<Seconds>,
    predicted_s: BTreeMap<String, Seconds>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    predicted_interval_s: BTreeMap<String, [Seconds; 2]>,
}

/// A pattern of several steps as a whole: how long all of them took together.
#[derive(Debug, Serialize)]
struct StepsEntry {
    of_flow: Vec<u32>,
    /// The median of the repetitions.
    measured_s: f64,
    predicted_s: BTreeMap<String, f64>,
}

impl<'a> Document<'a> {
    /// Of a validation.
    pub(super) fn new(
        validation: &'a Validation,
        errors: &'a [ModelErrors],
        finished: &[Finished],
    ) -> Result<Document<'a>> {
        let model = |(model, errors): (&'a String, &'a ModelErrors)| ModelEntry {
            model,
            errors,
            worst_configuration_mean_absolute_error: errors.worst_configuration(),
            interval_level: errors.coverage.map(|_| LEVEL),
        };
        let patterns = validation.cases.iter().zip(finished);
        Ok(Document {
            title: &validation.title,
            models: validation.models.iter().zip(errors).map(model).collect(),
            patterns: patterns
                .map(|(case, own)| PatternEntry::new(&validation.models, case, own))
                .collect::<Result<_>>()?,
            provenance: &validation.provenance,
        })
    }
}

impl PatternEntry {
    fn new(models: &[String], case: &Case, finished: &Finished) -> Result<PatternEntry> {
        let medians = case.medians()?;
        let flow = |(index, flow): (usize, &Flow)| {
            let predicted = models.iter().zip(&case.predicted);
            let intervals = models.iter().zip(&case.intervals);
            let interval = |(model, intervals): (&String, &Vec<(Time, Time)>)| {
                let (low, high) = intervals.get(index)?;
                Some((model.clone(), [Seconds(*low), Seconds(*high)]))
            };
            MeasuredFlow {
                id: flow.id,
                src: flow.src.0,
                dst: flow.dst.0,
                bytes: flow.size.0,
                start_s: Seconds(flow.start),
                measured_s: medians[index],
                repetitions_s: case.measured[index].iter().copied().map(Seconds).collect(),
                predicted_s: predicted
                    .map(|(model, predicted)| (model.clone(), Seconds(predicted[index])))
                    .collect(),
                predicted_interval_s: intervals.filter_map(interval).collect(),
            }
        };
        Ok(PatternEntry {
            pattern: case.name.clone(),
            configuration: case.configuration.clone(),
            is_precise: finished.is_precise,
            flows: case.flows.iter().enumerate().map(flow).collect(),
            steps: StepsEntry::of(models, case, finished.steps())?,
        })
    }
}

impl StepsEntry {
    /// Of a pattern; nothing if it has one step.
    fn of(models: &[String], case: &Case, of_flow: Vec<u32>) -> Result<Option<StepsEntry>> {
        if of_flow.iter().all(|step| *step == of_flow[0]) {
            return Ok(None);
        }
        // The sum over the steps of the latest end.
        let together = |durations: &dyn Fn(usize) -> Time| -> f64 {
            let mut ends: BTreeMap<u32, Time> = BTreeMap::new();
            for (at, flow) in case.flows.iter().enumerate() {
                let end = ends.entry(of_flow[at]).or_default();
                *end = (*end).max(flow.start + durations(at));
            }
            ends.into_values().sum::<Time>().as_seconds()
        };
        let repetitions = case.measured.first().map_or(0, Vec::len);
        let measured: Vec<f64> = (0..repetitions)
            .map(|at| together(&|flow| case.measured[flow][at]))
            .collect();
        let predicted = case
            .predicted
            .iter()
            .map(|predicted| together(&|flow| predicted[flow]));
        let predicted_s = models.iter().cloned().zip(predicted).collect();
        Ok(Some(StepsEntry {
            measured_s: median(&measured)?,
            predicted_s,
            of_flow,
        }))
    }
}

impl Shown for Document<'_> {
    const SCHEMA: &'static str = "flowcast/validation/1";

    fn print(&self) {
        let columns = [
            "model",
            ">mean",
            ">pattern min",
            ">max",
            ">global min",
            ">max",
            ">worst flow",
            "which",
            ">signed",
        ];
        let has_intervals = self
            .models
            .iter()
            .any(|entry| entry.errors.coverage.is_some());
        let more = [">worst configuration", ">runs inside 90 %"];
        let mut table = table(&[&columns[..], &more[..1 + usize::from(has_intervals)]].concat());
        for entry in &self.models {
            let mut row = entry.cells();
            if has_intervals {
                row.push(
                    entry
                        .errors
                        .coverage
                        .map_or_else(|| "-".into(), |coverage| percent(coverage.share())),
                );
            }
            table.add_row(row);
        }
        println_out!("{table}");
        let flows: usize = self.patterns.iter().map(|entry| entry.flows.len()).sum();
        println_out!("{} patterns, {flows} flows", self.patterns.len());
        self.print_steps();
    }
}

impl ModelEntry<'_> {
    fn cells(&self) -> Vec<String> {
        let ModelErrors {
            mean_absolute,
            mean_range,
            global_range,
            worst,
            signed_range,
            ..
        } = self.errors;
        vec![
            self.model.to_owned(),
            percent(*mean_absolute),
            percent(mean_range.0),
            percent(mean_range.1),
            percent(global_range.0),
            percent(global_range.1),
            percent(worst.error),
            format!("{}, flow {}", worst.case, worst.flow),
            format!(
                "{:+.1}..{:+.1} %",
                signed_range.0 * 100.0,
                signed_range.1 * 100.0
            ),
            percent(self.worst_configuration_mean_absolute_error),
        ]
    }
}

impl Document<'_> {
    /// The patterns that have several steps, the quickest first.
    fn print_steps(&self) {
        let with_steps = self
            .patterns
            .iter()
            .filter_map(|entry| Some((&entry.pattern, entry.steps.as_ref()?)));
        let mut with_steps: Vec<(&String, &StepsEntry)> = with_steps.collect();
        if with_steps.is_empty() {
            return;
        }
        with_steps.sort_by(|a, b| a.1.measured_s.total_cmp(&b.1.measured_s));
        let mut columns = vec!["steps".to_owned(), ">measured".to_owned()];
        columns.extend(self.models.iter().map(|entry| format!(">{}", entry.model)));
        let mut table = table(&columns);
        for (
            name,
            StepsEntry {
                measured_s,
                predicted_s,
                ..
            },
        ) in with_steps
        {
            let cell = |entry: &ModelEntry| {
                let predicted = predicted_s[entry.model];
                format!(
                    "{predicted:.3} s, {:+.1} %",
                    (predicted - measured_s) / measured_s * 100.0
                )
            };
            let row = [name.clone(), format!("{measured_s:.3} s")]
                .into_iter()
                .chain(self.models.iter().map(cell));
            table.add_row(row);
        }
        println_out!("{table}");
    }
}

fn percent(share: f64) -> String {
    format!("{:.2} %", share * 100.0)
}
