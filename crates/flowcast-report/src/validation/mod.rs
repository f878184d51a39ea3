//! Accuracy of predictions of patterns: measured and predicted durations side by side, the error columns of RR-5910 table 3,
//! the histogram of Zhu et al., and a page that shows them.
//!
//! The measured value of a flow is the median of its repetitions; errors are `(predicted - measured) / measured`.

pub mod app;
mod document;

use std::collections::BTreeMap;

use flowcast_network::cluster::flow::Flow;
use flowcast_statistics::{
    StatsError,
    observation::{Observation, Observations},
    sample::median,
};
use flowcast_units::Time;

/// A pattern that was executed and predicted.
#[derive(Debug, Clone, PartialEq)]
pub struct CarriedPattern {
    /// Name of the pattern in tables and results.
    pub name: String,
    /// Configuration of the pattern; averages combine the patterns of one configuration.
    pub configuration: String,
    /// `true` if all durations have the requested precision.
    pub is_precise: bool,
    /// Executed flows of the pattern.
    pub flows: Vec<Flow>,
    /// The step of each flow, counted from 0.
    pub step_of: Vec<u32>,
    /// Measured durations, indexed by flow, then by repetition.
    pub measured: Vec<Vec<Time>>,
    /// Predicted durations, indexed by model, then by flow; all cases have the same order of models.
    pub predicted: Vec<Vec<Time>>,
    /// Interval that contains the durations of nine of ten predicted runs, indexed by model, then by flow; empty for a model
    /// without intervals.
    pub intervals: Vec<Vec<(Time, Time)>>,
}

/// All patterns of a validation.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Validation {
    /// Title of the page: the subject of the validation.
    pub title: String,
    /// Names of the models.
    pub models: Vec<String>,
    /// The patterns, each predicted by all models.
    pub cases: Vec<CarriedPattern>,
    /// Provenance of the results.
    pub provenance: BTreeMap<String, String>,
}

/// Position of a flow in a validation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowPlace {
    /// Index of its pattern among the cases.
    pub case: usize,
    /// Index among the flows of the pattern.
    pub flow: usize,
}

/// Fraction of the single repetitions of flows inside their predicted intervals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RepetitionCoverage {
    /// Number of repetitions inside their flow's interval.
    pub inside: usize,
    /// Number of repetitions of all flows with an interval, at least 1.
    pub repetitions: usize,
}

/// Time until the end of the last flow of a pattern, summed over the steps.
#[derive(Debug, Clone, PartialEq)]
struct WholePattern {
    /// The median of the repetitions, in seconds.
    measured: f64,
    /// Predicted times, in the order of the validation's models.
    predicted: Vec<Time>,
}

impl CarriedPattern {
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

    fn whole(&self) -> Result<WholePattern, StatsError> {
        let repetitions = self.measured.iter().map(Vec::len).min().unwrap_or(0);
        let measured: Vec<Time> = (0..repetitions)
            .map(|run| self.last_end(&|flow| self.measured[flow][run]))
            .collect();
        let predicted = self.predicted.iter();
        Ok(WholePattern {
            measured: median(&seconds(&measured))?,
            predicted: predicted
                .map(|predicted| self.last_end(&|flow| predicted[flow]))
                .collect(),
        })
    }

    /// Sum over the steps of the latest end.
    fn last_end(&self, duration: &dyn Fn(usize) -> Time) -> Time {
        let mut ends: BTreeMap<u32, Time> = BTreeMap::new();
        for (at, flow) in self.flows.iter().enumerate() {
            let end = ends.entry(self.step_of[at]).or_default();
            *end = (*end).max(flow.start + duration(at));
        }
        ends.into_values().sum()
    }
}

impl Validation {
    /// Returns each flow beside its prediction, indexed by model.
    ///
    /// # Errors
    /// No pattern, a flow without repetition, or a measured time of 0.
    pub fn flows(&self) -> Result<Vec<Observations<FlowPlace>>, StatsError> {
        let medians = self.cases.iter().map(CarriedPattern::medians);
        let medians = medians.collect::<Result<Vec<_>, _>>()?;
        (0..self.models.len())
            .map(|model| {
                let cases = medians.iter().enumerate();
                Observations::new(cases.flat_map(|(case, medians)| {
                    let predicted = &self.cases[case].predicted[model];
                    let flows = medians.iter().zip(predicted).enumerate();
                    flows.map(move |(flow, (measured, predicted))| Observation {
                        of: FlowPlace { case, flow },
                        predicted: predicted.as_seconds(),
                        measured: *measured,
                    })
                }))
            })
            .collect()
    }

    /// Returns each whole pattern beside its prediction, indexed by model: the time until the end of its last flow. The
    /// measured value is the median of the repetitions' times.
    ///
    /// # Errors
    /// The same as for [`Validation::flows`].
    pub fn patterns(&self) -> Result<Vec<Observations<&str>>, StatsError> {
        let whole = self.cases.iter().map(CarriedPattern::whole);
        let whole = whole.collect::<Result<Vec<_>, _>>()?;
        (0..self.models.len())
            .map(|model| {
                let cases = self.cases.iter().zip(&whole);
                Observations::new(cases.map(|(case, whole)| Observation {
                    of: &*case.name,
                    predicted: whole.predicted[model].as_seconds(),
                    measured: whole.measured,
                }))
            })
            .collect()
    }

    /// Returns the coverage of a model's intervals, or `None` if it has none.
    pub fn coverage(&self, model: usize) -> Option<RepetitionCoverage> {
        let mut coverage = RepetitionCoverage {
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
        let case = |name: &str, configuration: &str, predicted: &[f64]| CarriedPattern {
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
    fn errors_against_medians_agree_with_a_hand_calculation() {
        let validation = validation();
        let flows = validation.flows().unwrap();
        let fair = &flows[0];
        near(
            fair.mean_absolute(),
            (0.1 + 0.0 + 0.5 + 0.1 + 0.0 + 0.05) / 6.0,
        );
        let cases = fair.grouped(|of| of.case);
        let means: Vec<f64> = cases.iter().map(|(_, of)| of.mean_absolute()).collect();
        near(means[0], 0.05);
        near(means[1], 0.3);
        near(means[2], 0.025);
        near(cases[0].1.global_error(), 0.1 / 3.0);
        near(cases[1].1.global_error(), 0.1);
        near(cases[2].1.global_error(), 0.1 / 3.0);
        let configurations = fair.grouped(|of| &*validation.cases[of.case].configuration);
        let counts = configurations.iter().map(|(_, of)| of.all().len());
        assert_eq!(counts.collect::<Vec<_>>(), [4, 2]);
        near(configurations[0].1.mean_absolute(), 0.7 / 4.0);
        assert_eq!(fair.worst().of, FlowPlace { case: 1, flow: 0 });
        near(fair.worst().error(), -0.5);
        near(fair.range().0, -0.5);
        near(fair.range().1, 0.1);
        near(flows[1].mean_absolute(), 0.0);
    }

    #[test]
    fn intervals_cover_the_single_repetitions_between_their_ends() {
        let validation = validation();
        assert_eq!(validation.coverage(0), None);
        // Two of 0.9, 1.0 and 1.4 lie between 0.95 and 1.4, and 2.0 is below 2.1; this holds three times.
        assert_eq!(
            validation.coverage(1),
            Some(RepetitionCoverage {
                inside: 6,
                repetitions: 12
            })
        );
    }

    #[test]
    fn whole_patterns_end_with_the_last_flow_of_each_step() {
        let validation = validation();
        let whole = &validation.patterns().unwrap()[0];
        // Only the first repetition exists for both flows. Their steps follow each other.
        let first = &whole.all()[0];
        near(first.measured, 0.9 + 2.0);
        near(first.predicted, 1.1 + 2.0);
        assert_eq!((first.of, whole.all().len()), ("a", 3));
    }

    #[test]
    fn nothing_to_compare_is_an_error() {
        let empty = Validation {
            cases: Vec::new(),
            ..validation()
        };
        assert!(empty.flows().is_err());
        let mut zero = validation();
        zero.cases[0].measured[0] = vec![Time::ZERO];
        assert!(zero.flows().unwrap_err().to_string().contains("above 0"));
    }

    #[test]
    fn a_document_has_each_model_configuration_step_and_flow() {
        let validation = validation();
        let document = validation.document(&validation.flows().unwrap()).unwrap();
        let json = document.json().unwrap();
        assert_eq!(json["models"][1]["coverage"]["inside"], 6);
        assert_eq!(json["models"][0]["coverage"], serde_json::Value::Null);
        let steps = &json["patterns"][0]["steps"];
        // Only the first repetition exists for both flows. Their steps follow each other.
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
