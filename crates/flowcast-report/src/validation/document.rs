//! A validation of patterns as one document.

use std::collections::BTreeMap;

use flowcast_model::stats::{
    StatsError,
    grouping::{GroupingRule, interval_clusters},
    sample::median,
};
use flowcast_network::packet::seeds::LEVEL;
use flowcast_table::{Document, Record, Rows, Value, figure, or_dash, percent, rows, shown};
use flowcast_units::{Rounded, Time};

use super::{Case, FlowError, ModelErrors, Validation, seconds};

/// What was measured of a pattern.
struct MeasuredCase<'a> {
    case: &'a Case,
    /// By flow, in seconds.
    medians: Vec<f64>,
    /// None of a pattern in one step.
    steps: Option<StepTimes>,
}

/// What the steps of a pattern took together.
struct StepTimes {
    measured: Time,
    /// By model, in the order of the validation.
    predicted: Vec<Time>,
}

impl StepTimes {
    fn of(case: &Case) -> Result<Option<StepTimes>, StatsError> {
        if case.step_of.iter().all(|step| *step == case.step_of[0]) {
            return Ok(None);
        }
        // The sum over the steps of the latest end.
        let together = |durations: &dyn Fn(usize) -> Time| -> Time {
            let mut ends: BTreeMap<u32, Time> = BTreeMap::new();
            for (at, flow) in case.flows.iter().enumerate() {
                let end = ends.entry(case.step_of[at]).or_default();
                *end = (*end).max(flow.start + durations(at));
            }
            ends.into_values().sum()
        };
        let repetitions = case.measured.iter().map(Vec::len).min().unwrap_or(0);
        let measured: Vec<Time> = (0..repetitions)
            .map(|at| together(&|flow| case.measured[flow][at]))
            .collect();
        let predicted = case.predicted.iter();
        Ok(Some(StepTimes {
            measured: Time::from_seconds(median(&seconds(&measured))?),
            predicted: predicted
                .map(|predicted| together(&|flow| predicted[flow]))
                .collect(),
        }))
    }
}

impl Validation {
    /// The errors of the models, what configurations and steps add to them, and each flow for programs.
    ///
    /// # Errors
    /// A flow without repetition.
    pub fn document(&self, errors: &[ModelErrors]) -> Result<Document, StatsError> {
        let mut measured = Vec::new();
        for case in &self.cases {
            measured.push(MeasuredCase {
                case,
                medians: case.medians()?,
                steps: StepTimes::of(case)?,
            });
        }
        let patterns = rows(&measured)
            .field("pattern", |of| &of.case.name)
            .field("configuration", |of| &of.case.configuration)
            .field("is_precise", |of| of.case.is_precise)
            .field("flows", |of| self.flows(of))
            .field("steps", |of| {
                of.steps.as_ref().map(|steps| {
                    Record::new()
                        .field("of_flow", &of.case.step_of)
                        .field("measured_s", steps.measured)
                        .field("predicted_s", self.by_model(&steps.predicted))
                })
            });
        let flows: usize = self.cases.iter().map(|case| case.flows.len()).sum();
        Ok(Document::new("validation")
            .titled(&self.title)
            .field("title", &self.title)
            .table("models", self.model_table(errors))
            .line(format!(
                "patterns: {}; flows: {flows}; errors are (predicted - measured) / measured",
                self.cases.len()
            ))
            .shown(self.configuration_table(errors))
            .shown(self.step_table(&measured))
            .field("patterns", patterns)
            .field("provenance", &self.provenance))
    }

    fn by_model<V: Into<Value>>(&self, values: impl IntoIterator<Item = V>) -> Value {
        let by_model: BTreeMap<&String, V> = self.models.iter().zip(values).collect();
        by_model.into()
    }

    fn model_table<'a>(&'a self, errors: &'a [ModelErrors]) -> Rows<(&'a String, &'a ModelErrors)> {
        let table = rows(self.models.iter().zip(errors))
            .column("model", "model", |(model, _)| model)
            .column("mean_absolute_error", "mean", |(_, of)| {
                percent(of.mean_absolute, 2)
            })
            .column("pattern_mean_absolute_error", "of a pattern", |(_, of)| {
                extremes(of.mean_range)
            })
            .column("pattern_global_error", "global", |(_, of)| {
                extremes(of.global_range)
            })
            .column("best", "best flow", |(_, of)| flow_error(&of.best))
            .column("worst", "worst flow", |(_, of)| flow_error(&of.worst))
            .cell("signed", |(_, of)| signed_range(of.signed_range))
            .field("lowest_error", |(_, of)| of.signed_range.0)
            .field("highest_error", |(_, of)| of.signed_range.1)
            .field("configurations", |(_, of)| {
                rows(&of.by_configuration)
                    .field("configuration", |of| &of.configuration)
                    .field("patterns", |of| of.patterns)
                    .field("flows", |of| of.flows)
                    .field("mean_absolute_error", |of| of.mean_absolute)
                    .field("lowest_error", |of| of.signed_range.0)
                    .field("highest_error", |of| of.signed_range.1)
            })
            .column(
                "worst_configuration_mean_absolute_error",
                "worst configuration",
                |(_, of)| percent(of.worst_configuration(), 2),
            );
        if errors.iter().all(|of| of.coverage.is_none()) {
            return table;
        }
        table
            .field("interval_level", |(_, of)| of.coverage.map(|_| LEVEL))
            .column("coverage", "runs inside 90 %", |(_, of)| {
                or_dash(of.coverage.map(|coverage| {
                    let share = percent(coverage.share(), 2);
                    let text = format!("{share} of {}", coverage.repetitions);
                    let record = Record::new()
                        .field("share", share)
                        .field("inside", coverage.inside)
                        .field("repetitions", coverage.repetitions);
                    shown(record, text)
                }))
            })
    }

    /// None of one configuration.
    fn configuration_table(&self, errors: &[ModelErrors]) -> Rows<usize> {
        let all = errors
            .first()
            .map_or(&[][..], |first| &first.by_configuration);
        let shown = if all.len() > 1 { all.len() } else { 0 };
        let mut table = rows(0..shown)
            .cell("configuration", |at| &all[at].configuration)
            .cell("patterns", |at| all[at].patterns)
            .cell("flows", |at| all[at].flows);
        for (model, errors) in self.models.iter().zip(errors) {
            table = table.cell(model, |at| {
                let of = &errors.by_configuration[at];
                figure(format!(
                    "{} ({})",
                    percent(of.mean_absolute, 1),
                    signed_range(of.signed_range)
                ))
            });
        }
        table
    }

    /// The patterns in several steps, the shortest first.
    fn step_table<'a>(
        &self,
        measured: &'a [MeasuredCase<'_>],
    ) -> Rows<(&'a String, &'a StepTimes)> {
        let mut with_steps = Vec::new();
        for of in measured {
            with_steps.extend(of.steps.as_ref().map(|steps| (&of.case.name, steps)));
        }
        with_steps.sort_by_key(|(_, steps)| steps.measured);
        let mut table = rows(with_steps)
            .cell("steps", |(name, _)| name)
            .cell("measured", |(_, steps)| steps.measured);
        for (at, model) in self.models.iter().enumerate() {
            table = table.cell(model, |(_, steps)| {
                let (predicted, measured) = (steps.predicted[at], steps.measured);
                let error = (predicted.as_nanos() / measured.as_nanos() - 1.0) * 100.0;
                figure(format!("{}, {error:+.1} %", Rounded(predicted)))
            });
        }
        table
    }

    fn flows(&self, of: &MeasuredCase<'_>) -> Rows<usize> {
        let case = of.case;
        rows(0..case.flows.len())
            .field("id", |at| case.flows[at].id)
            .field("src", |at| case.flows[at].src)
            .field("dst", |at| case.flows[at].dst)
            .field("bytes", |at| case.flows[at].size)
            .field("start_s", |at| case.flows[at].start)
            .field("measured_s", |at| of.medians[at])
            .field("repetitions_s", |at| &case.measured[at])
            .field("groups_s", |at| {
                let times = seconds(&case.measured[at]);
                let groups = interval_clusters(&times, GroupingRule::default()).unwrap_or_default();
                Value::from_iter(groups.into_iter().map(|group| [group.min, group.max]))
            })
            .field("predicted_s", |at| {
                self.by_model(case.predicted.iter().map(|predicted| predicted[at]))
            })
            .field("predicted_interval_s", |at| {
                let intervals = self.models.iter().zip(&case.intervals);
                let known =
                    intervals.filter_map(|(model, of_flow)| Some((model, *of_flow.get(at)?)));
                known.collect::<BTreeMap<_, _>>()
            })
    }
}

fn extremes((min, max): (f64, f64)) -> Value {
    let text = format!("{:.2} .. {:.2} %", min * 100.0, max * 100.0);
    shown(Record::new().field("min", min).field("max", max), text)
}

fn flow_error(of: &FlowError) -> Value {
    let error = percent(of.error, 2);
    let text = format!("{error} ({}, flow {})", of.case, of.flow);
    let record = Record::new()
        .field("pattern", &of.case)
        .field("flow", of.flow)
        .field("absolute_error", error);
    shown(record, text)
}

fn signed_range((low, high): (f64, f64)) -> Value {
    figure(format!("{:+.1} .. {:+.1} %", low * 100.0, high * 100.0))
}
