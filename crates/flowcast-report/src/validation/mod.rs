//! How good predictions of patterns are: measured and predicted durations side by side, the error columns of RR-5910
//! table 3, the histogram of Zhu et al., and a page that shows them.
//!
//! The measured value of a flow is the median of its repetitions; errors are `(predicted - measured) / measured`.

pub mod app;
mod document;

use std::collections::BTreeMap;

use flowcast_model::{
    cluster::flow::Flow,
    stats::{
        StatsError,
        error_measures::{ErrorOfOne, error_summary, signed_errors},
        sample::median,
    },
};
use flowcast_units::Time;

/// A pattern that was carried and predicted.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    /// Name of the pattern in tables and results.
    pub name: String,
    /// Patterns of one configuration are averaged together.
    pub configuration: String,
    /// Whether all durations are known as well as was asked.
    pub is_precise: bool,
    /// The flows of the pattern, as they were carried.
    pub flows: Vec<Flow>,
    /// The step of each flow, counted from 0.
    pub step_of: Vec<u32>,
    /// Durations by flow, then by repetition.
    pub measured: Vec<Vec<Time>>,
    /// Predicted durations by model, then by flow; models have the same order in each case.
    pub predicted: Vec<Vec<Time>>,
    /// By model, then by flow: between which durations nine of ten predicted runs lie; no flow where a model gives none.
    pub intervals: Vec<Vec<(Time, Time)>>,
}

/// All patterns of a validation.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Validation {
    /// Title of the page: what was validated.
    pub title: String,
    /// Names of the models.
    pub models: Vec<String>,
    /// The patterns, each predicted by all models.
    pub cases: Vec<Case>,
    /// Where the results come from.
    pub provenance: BTreeMap<String, String>,
}

/// The errors of one model.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelErrors {
    /// Mean of the absolute errors of all flows.
    pub mean_absolute: f64,
    /// Smallest and largest mean absolute error of a pattern.
    pub mean_range: (f64, f64),
    /// Smallest and largest absolute error of the sum of a pattern's durations.
    pub global_range: (f64, f64),
    /// The flow predicted best.
    pub best: FlowError,
    /// The flow predicted worst.
    pub worst: FlowError,
    /// Lowest and highest signed error.
    pub signed_range: (f64, f64),
    /// Mean absolute error by configuration, in the order of first mention.
    pub by_configuration: Vec<ConfigurationErrors>,
    /// Signed errors of all flows.
    pub signed: Vec<f64>,
    /// How many single repetitions its intervals hold, if it gives any.
    pub coverage: Option<Coverage>,
}

/// How many single repetitions of flows lie inside the intervals that were predicted for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Coverage {
    /// Repetitions that lie inside their flow's interval.
    pub inside: usize,
    /// Repetitions of all flows with an interval.
    pub repetitions: usize,
}

impl Coverage {
    /// Those inside, as a share of all.
    pub fn share(self) -> f64 {
        self.inside as f64 / self.repetitions as f64
    }
}

/// The errors of one model on the patterns of a configuration.
#[derive(Debug, Clone, PartialEq)]
pub struct ConfigurationErrors {
    /// Name of the configuration, that of [`Case::configuration`].
    pub configuration: String,
    /// Number of its patterns, at least 1.
    pub patterns: usize,
    /// Flows of all of them.
    pub flows: usize,
    /// Mean of their absolute errors.
    pub mean_absolute: f64,
    /// Lowest and highest signed error.
    pub signed_range: (f64, f64),
}

/// The error of one flow.
#[derive(Debug, Clone, PartialEq)]
pub struct FlowError {
    /// Name of the pattern.
    pub case: String,
    /// Number of the flow.
    pub flow: u32,
    /// Absolute error, as a fraction of the measured duration.
    pub error: f64,
}

impl Case {
    /// The median of each flow's repetitions, in seconds.
    ///
    /// # Errors
    /// A flow without repetition, or a time that is not finite.
    pub fn medians(&self) -> Result<Vec<f64>, StatsError> {
        self.measured
            .iter()
            .map(|times| median(&seconds(times)))
            .collect()
    }
}

impl Validation {
    /// The errors of each model.
    ///
    /// # Errors
    /// No pattern, a flow without repetition, or a measured time of 0.
    pub fn errors(&self) -> Result<Vec<ModelErrors>, StatsError> {
        (0..self.models.len())
            .map(|model| self.errors_of(model))
            .collect()
    }

    /// By the name of the pattern, the signed error of each flow under a model.
    ///
    /// # Errors
    /// As [`Validation::errors`].
    pub fn errors_by_pattern(
        &self,
        model: usize,
    ) -> Result<BTreeMap<String, Vec<f64>>, StatsError> {
        self.cases
            .iter()
            .map(|case| {
                Ok((
                    case.name.clone(),
                    signed_errors(&seconds(&case.predicted[model]), &case.medians()?)?,
                ))
            })
            .collect()
    }

    /// By the name of the pattern, the signed error of the time until its last flow has ended, under a model. The measured
    /// value is the median of the repetitions' times.
    ///
    /// # Errors
    /// As [`Validation::errors`].
    pub fn makespan_errors(&self, model: usize) -> Result<BTreeMap<String, Vec<f64>>, StatsError> {
        self.cases
            .iter()
            .map(|case: &Case| {
                let until = |duration: &dyn Fn(usize) -> Time| {
                    let ends = case
                        .flows
                        .iter()
                        .enumerate()
                        .map(|(at, flow)| flow.start + duration(at));
                    ends.max().unwrap_or_default().as_seconds()
                };
                let repetitions = case.measured.iter().map(Vec::len).min().unwrap_or(0);
                let measured: Vec<f64> = (0..repetitions)
                    .map(|run| until(&|flow| case.measured[flow][run]))
                    .collect();
                let predicted = until(&|flow| case.predicted[model][flow]);
                Ok((
                    case.name.clone(),
                    signed_errors(&[predicted], &[median(&measured)?])?,
                ))
            })
            .collect()
    }

    fn errors_of(&self, model: usize) -> Result<ModelErrors, StatsError> {
        let mut all = Vec::new();
        let mut by_configuration: Vec<(String, usize, Vec<f64>)> = Vec::new();
        let (mut means, mut globals, mut bests, mut worsts) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for case in &self.cases {
            let (predicted, measured) = (seconds(&case.predicted[model]), case.medians()?);
            let summary = error_summary(&predicted, &measured)?;
            let signed = signed_errors(&predicted, &measured)?;
            let flow = |found: ErrorOfOne| FlowError {
                case: case.name.clone(),
                flow: case.flows[found.index].id,
                error: found.error,
            };
            means.push(summary.mean_absolute);
            globals.push(summary.global);
            bests.push(flow(summary.best));
            worsts.push(flow(summary.worst));
            let known = by_configuration
                .iter()
                .position(|(name, ..)| *name == case.configuration);
            let at = known.unwrap_or_else(|| {
                by_configuration.push((case.configuration.clone(), 0, Vec::new()));
                by_configuration.len() - 1
            });
            by_configuration[at].1 += 1;
            by_configuration[at].2.extend_from_slice(&signed);
            all.extend(signed);
        }
        let none = StatsError::TooFew {
            statistic: "errors of a model",
            found: 0,
            expected: 1,
        };
        Ok(ModelErrors {
            mean_absolute: mean_absolute(&all),
            mean_range: range(&means),
            global_range: range(&globals),
            best: bests
                .into_iter()
                .min_by(|a, b| a.error.total_cmp(&b.error))
                .ok_or(none.clone())?,
            worst: worsts
                .into_iter()
                .max_by(|a, b| a.error.total_cmp(&b.error))
                .ok_or(none)?,
            signed_range: range(&all),
            by_configuration: by_configuration
                .into_iter()
                .map(ConfigurationErrors::from)
                .collect(),
            signed: all,
            coverage: self.coverage_of(model),
        })
    }

    fn coverage_of(&self, model: usize) -> Option<Coverage> {
        let mut coverage = Coverage {
            inside: 0,
            repetitions: 0,
        };
        for case in &self.cases {
            for ((low, high), repetitions) in case.intervals.get(model)?.iter().zip(&case.measured)
            {
                coverage.repetitions += repetitions.len();
                coverage.inside += repetitions
                    .iter()
                    .filter(|time| (*low..=*high).contains(*time))
                    .count();
            }
        }
        (coverage.repetitions > 0).then_some(coverage)
    }
}

impl ModelErrors {
    /// The mean absolute error of the configuration that fared worst.
    pub fn worst_configuration(&self) -> f64 {
        self.by_configuration
            .iter()
            .map(|errors| errors.mean_absolute)
            .fold(0.0, f64::max)
    }
}

impl From<(String, usize, Vec<f64>)> for ConfigurationErrors {
    fn from((configuration, patterns, signed): (String, usize, Vec<f64>)) -> ConfigurationErrors {
        ConfigurationErrors {
            configuration,
            patterns,
            flows: signed.len(),
            mean_absolute: mean_absolute(&signed),
            signed_range: range(&signed),
        }
    }
}

fn mean_absolute(signed: &[f64]) -> f64 {
    signed.iter().map(|error| error.abs()).sum::<f64>() / signed.len().max(1) as f64
}

fn range(values: &[f64]) -> (f64, f64) {
    let ends = (f64::INFINITY, f64::NEG_INFINITY);
    values.iter().fold(ends, |(low, high), value| {
        (low.min(*value), high.max(*value))
    })
}

fn seconds(times: &[Time]) -> Vec<f64> {
    times.iter().map(|time| time.as_seconds()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart_page::{Picture, chart_page};
    use flowcast_units::{Bytes, Node};

    pub(super) fn validation() -> Validation {
        let flow = |id: u32| Flow {
            id,
            src: Node(id - 1),
            dst: Node(id),
            size: Bytes(1),
            start: Time::ZERO,
        };
        let times = |values: &[f64]| {
            values
                .iter()
                .map(|value| Time::from_seconds(*value))
                .collect::<Vec<_>>()
        };
        let case = |name: &str, configuration: &str, predicted: &[f64]| Case {
            name: name.into(),
            configuration: configuration.into(),
            is_precise: true,
            step_of: vec![0, 1],
            flows: vec![flow(1), flow(2)],
            measured: vec![times(&[0.9, 1.0, 1.4]), times(&[2.0])],
            predicted: vec![times(predicted), times(&[1.0, 2.0])],
            intervals: vec![
                Vec::new(),
                vec![
                    (times(&[0.95])[0], times(&[1.4])[0]),
                    (times(&[2.1])[0], times(&[2.2])[0]),
                ],
            ],
        };
        Validation {
            title: "two <models>".into(),
            models: vec!["fair".into(), "exact".into()],
            cases: vec![
                case("a", "one", &[1.1, 2.0]),
                case("b", "one", &[0.5, 2.2]),
                case("c", "other", &[1.0, 2.1]),
            ],
            provenance: BTreeMap::from([("host".into(), "here".into())]),
        }
    }

    fn near(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-12, "{found} {expected}");
    }

    #[test]
    fn errors_against_medians_are_those_of_a_hand_calculation() {
        let errors = validation().errors().unwrap();
        let fair = &errors[0];
        near(
            fair.mean_absolute,
            (0.1 + 0.0 + 0.5 + 0.1 + 0.0 + 0.05) / 6.0,
        );
        near(fair.mean_range.0, 0.025);
        near(fair.mean_range.1, 0.3);
        near(fair.global_range.0, 0.1 / 3.0);
        near(fair.global_range.1, 0.1);
        assert_eq!((fair.worst.case.as_str(), fair.worst.flow), ("b", 1));
        near(fair.worst.error, 0.5);
        near(fair.signed_range.0, -0.5);
        near(fair.signed_range.1, 0.1);
        assert_eq!(fair.by_configuration.len(), 2);
        assert_eq!(
            (
                fair.by_configuration[0].patterns,
                fair.by_configuration[0].flows
            ),
            (2, 4)
        );
        near(fair.worst_configuration(), 0.7 / 4.0);
        near(errors[1].mean_absolute, 0.0);
    }

    #[test]
    fn intervals_cover_the_single_repetitions_between_their_ends() {
        let errors = validation().errors().unwrap();
        assert_eq!(errors[0].coverage, None);
        // Of 0.9, 1.0 and 1.4 two lie from 0.95 to 1.4, and 2.0 is below 2.1; three times over.
        assert_eq!(
            errors[1].coverage,
            Some(Coverage {
                inside: 6,
                repetitions: 12
            })
        );
        near(errors[1].coverage.unwrap().share(), 0.5);
    }

    #[test]
    fn errors_are_kept_by_pattern_flow_by_flow_and_for_the_last_end() {
        let validation = validation();
        let flows = validation.errors_by_pattern(0).unwrap();
        let errors = validation.errors().unwrap();
        let all: Vec<f64> = flows.values().flatten().copied().collect();
        assert_eq!(all.len(), errors[0].signed.len());
        near(
            all.iter().map(|error| error.abs()).sum::<f64>() / all.len() as f64,
            errors[0].mean_absolute,
        );
        let whole = validation.makespan_errors(1).unwrap();
        assert!(
            whole.values().flatten().all(|error| error.abs() < 1e-9),
            "{whole:?}"
        );
    }

    #[test]
    fn nothing_to_compare_is_an_error() {
        let empty = Validation {
            cases: Vec::new(),
            ..validation()
        };
        assert!(empty.errors().is_err());
        let mut zero = validation();
        zero.cases[0].measured[0] = vec![Time::ZERO];
        assert!(zero.errors().unwrap_err().to_string().contains("above 0"));
    }

    #[test]
    fn a_document_has_each_model_configuration_step_and_flow() {
        let validation = validation();
        let document = validation.document(&validation.errors().unwrap()).unwrap();
        let json = document.json().unwrap();
        assert_eq!(json["models"][1]["coverage"]["inside"], 6);
        assert_eq!(json["models"][0]["coverage"], serde_json::Value::Null);
        let steps = &json["patterns"][0]["steps"];
        // The repetition that both flows have, one after the other.
        near(steps["measured_s"].as_f64().unwrap(), 0.9 + 2.0);
        near(steps["predicted_s"]["fair"].as_f64().unwrap(), 1.1 + 2.0);
        let flow = &json["patterns"][0]["flows"][1];
        assert_eq!(
            flow["predicted_interval_s"],
            serde_json::json!({"exact": [2.1, 2.2]})
        );
        let page = chart_page(&document, Picture::Flows, &validation.provenance).unwrap();
        assert!(page.contains("two &lt;models&gt;") && !page.contains("two <models>"));
        for text in [
            "17.50 %",
            "50.00 % (b, flow 1)",
            "50.00 % of 12",
            "0.00 .. 0.00 %",
            "2.900 s",
            "host",
        ] {
            assert!(page.contains(text), "{text}");
        }
    }
}
