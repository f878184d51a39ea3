//! A validation of patterns as one document.

use std::collections::BTreeMap;

use flowcast_statistics::{
    StatsError,
    grouping::{GroupingRule, interval_clusters},
    observation::{Observation, Observations, range},
};
use flowcast_table::{Document, Record, Rows, Value, figure, or_dash, percent, rows, shown};
use flowcast_traffic::packet::seeds::LEVEL;
use flowcast_units::{Rounded, Time};

use super::{CarriedPattern, FlowPlace, RepetitionCoverage, Validation, WholePattern, seconds};

/// A pattern and its medians.
struct PatternMedians<'a> {
    case: &'a CarriedPattern,
    /// Median of each flow, in seconds.
    medians: Vec<f64>,
    /// Measured and predicted times of the whole pattern; `None` for a pattern in one step.
    steps: Option<WholePattern>,
}

/// The flows of a validation beside the predictions of a model.
struct ModelFlows<'a> {
    model: &'a String,
    flows: &'a Observations<FlowPlace>,
    coverage: Option<RepetitionCoverage>,
    /// Flows of each configuration, with its name, in the order of first mention.
    configurations: Vec<(&'a str, Observations<FlowPlace>)>,
}

impl Validation {
    /// Builds the document: the errors of the models, the effects of configurations and steps, and each flow for programs.
    ///
    /// # Errors
    /// A flow without repetition.
    pub fn document(&self, flows: &[Observations<FlowPlace>]) -> Result<Document, StatsError> {
        let mut measured = Vec::new();
        for case in &self.cases {
            let has_steps = case.step_of.iter().any(|step| *step != case.step_of[0]);
            measured.push(PatternMedians {
                case,
                medians: case.medians()?,
                steps: has_steps.then(|| case.whole()).transpose()?,
            });
        }
        let models = flows.iter().enumerate().map(|(model, flows)| ModelFlows {
            model: &self.models[model],
            coverage: self.coverage(model),
            configurations: flows.grouped(|of| &*self.cases[of.case].configuration),
            flows,
        });
        let models: Vec<ModelFlows<'_>> = models.collect();
        let patterns = rows(&measured)
            .field("pattern", |of| &of.case.name)
            .field("configuration", |of| &of.case.configuration)
            .field("is_precise", |of| of.case.is_precise)
            .field("flows", |of| self.flow_rows(of))
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
            .table("models", self.model_table(&models))
            .line(format!(
                "patterns: {}; flows: {flows}; errors are (predicted - measured) / measured",
                self.cases.len()
            ))
            .shown(configuration_table(&models))
            .shown(self.step_table(&measured))
            .field("patterns", patterns)
            .field("provenance", &self.provenance))
    }

    fn by_model<V: Into<Value>>(&self, values: impl IntoIterator<Item = V>) -> Value {
        let by_model: BTreeMap<&String, V> = self.models.iter().zip(values).collect();
        by_model.into()
    }

    fn model_table<'a>(&'a self, models: &'a [ModelFlows<'a>]) -> Rows<&'a ModelFlows<'a>> {
        let table = rows(models)
            .column("model", "model", |of| of.model)
            .column("mean_absolute_error", "mean", |of| {
                percent(of.flows.mean_absolute(), 2)
            })
            .column("pattern_mean_absolute_error", "of a pattern", |of| {
                extremes(of.flows, Observations::mean_absolute)
            })
            .column("pattern_global_error", "global", |of| {
                extremes(of.flows, Observations::global_error)
            })
            .column("best", "best flow", |of| self.flow_error(of.flows.best()))
            .column("worst", "worst flow", |of| {
                self.flow_error(of.flows.worst())
            })
            .cell("signed", |of| signed_range(of.flows))
            .field("lowest_error", |of| of.flows.range().0)
            .field("highest_error", |of| of.flows.range().1)
            .field("configurations", |of| {
                rows(&of.configurations)
                    .field("configuration", |(name, _)| *name)
                    .field("patterns", |(_, flows)| patterns(flows).len())
                    .field("flows", |(_, flows)| flows.all().len())
                    .field("mean_absolute_error", |(_, flows)| flows.mean_absolute())
                    .field("lowest_error", |(_, flows)| flows.range().0)
                    .field("highest_error", |(_, flows)| flows.range().1)
            })
            .column(
                "worst_configuration_mean_absolute_error",
                "worst configuration",
                |of| {
                    let means = of.configurations.iter().map(|(_, of)| of.mean_absolute());
                    percent(means.fold(0.0, f64::max), 2)
                },
            );
        if models.iter().all(|of| of.coverage.is_none()) {
            return table;
        }
        table
            .field("interval_level", |of| of.coverage.map(|_| LEVEL))
            .column("coverage", "runs inside 90 %", |of| {
                or_dash(of.coverage.map(|coverage| {
                    let RepetitionCoverage {
                        inside,
                        repetitions,
                    } = coverage;
                    let share = percent(inside as f64 / repetitions as f64, 2);
                    let text = format!("{share} of {repetitions}");
                    let record = Record::new()
                        .field("share", share)
                        .field("inside", inside)
                        .field("repetitions", repetitions);
                    shown(record, text)
                }))
            })
    }

    fn flow_error(&self, of: &Observation<FlowPlace>) -> Value {
        let case = &self.cases[of.of.case];
        let (error, flow) = (percent(of.error().abs(), 2), case.flows[of.of.flow].id);
        let text = format!("{error} ({}, flow {flow})", case.name);
        let record = Record::new()
            .field("pattern", &case.name)
            .field("flow", flow)
            .field("absolute_error", error);
        shown(record, text)
    }

    /// Table of the patterns in several steps, the shortest first.
    fn step_table<'a>(
        &self,
        measured: &'a [PatternMedians<'_>],
    ) -> Rows<(&'a String, &'a WholePattern)> {
        let mut with_steps = Vec::new();
        for of in measured {
            with_steps.extend(of.steps.as_ref().map(|steps| (&of.case.name, steps)));
        }
        with_steps.sort_by(|(_, a), (_, b)| a.measured.total_cmp(&b.measured));
        let mut table = rows(with_steps)
            .cell("steps", |(name, _)| name)
            .cell("measured", |(_, steps)| Time::from_seconds(steps.measured));
        for (at, model) in self.models.iter().enumerate() {
            table = table.cell(model, |(_, steps)| {
                let predicted = steps.predicted[at];
                let error = (predicted.as_seconds() / steps.measured - 1.0) * 100.0;
                figure(format!("{}, {error:+.1} %", Rounded(predicted)))
            });
        }
        table
    }

    fn flow_rows(&self, of: &PatternMedians<'_>) -> Rows<usize> {
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

/// Table of the configurations; empty if there is only one.
fn configuration_table(models: &[ModelFlows<'_>]) -> Rows<usize> {
    let all = models
        .first()
        .map_or(&[][..], |first| &first.configurations);
    let shown = if all.len() > 1 { all.len() } else { 0 };
    let mut table = rows(0..shown)
        .cell("configuration", |at| all[at].0)
        .cell("patterns", |at| patterns(&all[at].1).len())
        .cell("flows", |at| all[at].1.all().len());
    for of in models {
        table = table.cell(of.model, |at| {
            let flows = &of.configurations[at].1;
            figure(format!(
                "{} ({})",
                percent(flows.mean_absolute(), 1),
                signed_range(flows)
            ))
        });
    }
    table
}

fn patterns(flows: &Observations<FlowPlace>) -> Vec<(usize, Observations<FlowPlace>)> {
    flows.grouped(|of| of.case)
}

/// Smallest and largest error of a pattern.
fn extremes(flows: &Observations<FlowPlace>, error: fn(&Observations<FlowPlace>) -> f64) -> Value {
    let (min, max) = range(patterns(flows).iter().map(|(_, flows)| error(flows)));
    let text = format!("{:.2} .. {:.2} %", min * 100.0, max * 100.0);
    shown(Record::new().field("min", min).field("max", max), text)
}

fn signed_range(flows: &Observations<FlowPlace>) -> Value {
    let (low, high) = flows.range();
    figure(format!("{:+.1} .. {:+.1} %", low * 100.0, high * 100.0))
}
