//! Requests: questions about a trace on a network, with their options.
//!
//! The command builds a request from its arguments, Python and C from JSON, such as `{"slack": {"model": "independent"}}`.
//! Both get the same document as the answer.

use std::borrow::Borrow;

use anyhow::{Context, Result, ensure};
use clap::Args;
use flowcast::{
    Collectives, Contention, Error, IntervalOptions, Options, Outputs, Parameter, Prepared,
    answers::PredictionAnswer,
    graph::noise::ComputeNoise,
    model::{machine::Mapping, network::Network},
    replay::loggops::Loggops,
    report::chart_page::Picture,
    sensitivity,
    study::grid::full_name,
    table::Document,
    trace::Trace,
    units::{Bytes, Time, TimePerByte},
    why::{self, NoiseOptions},
};
use serde::{Deserialize, de::DeserializeOwned};

use crate::{Reader, ScenarioDefaults, parse_scenarios, read_collectives, read_mapping, threads};

/// Options of a replay.
#[derive(Debug, Clone, Default, PartialEq, Args, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ReplayRequest {
    /// Model of concurrent messages, as for `flowcast predict` [default: the network decides]
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,
    /// Mapping of ranks to nodes: fill, round-robin, N-per-node, or a file
    #[arg(long, value_name = "MAP")]
    pub mapping: Option<RankNodes>,
    /// Smallest rendezvous message, such as 64KiB; replaces the trace's marks
    #[arg(long, value_name = "SIZE")]
    pub rendezvous_from: Option<Bytes>,
    /// Evaluation of collective operations.
    #[arg(long, value_name = "HOW", help = collectives_help(&Collectives::automatic_help()))]
    pub collectives: Option<String>,
    /// LogGOPSim's parameters of a GOAL schedule: L, o, g, G in nanoseconds, S in bytes.
    #[arg(skip)]
    pub goal_params: Option<[f64; 5]>,
}

/// Mapping of ranks to nodes: a rule or a file by its name, or the node of each rank.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum RankNodes {
    /// Name of a rule or a file.
    Named(String),
    /// Node of each rank, indexed by rank.
    Listed(Vec<u32>),
}

impl From<String> for RankNodes {
    fn from(name: String) -> RankNodes {
        RankNodes::Named(name)
    }
}

/// Help of an option that selects the evaluation of collectives. `without` describes its default.
pub fn collectives_help(without: &str) -> String {
    let ways = Collectives::named().map(|way| format!("{} ({})", way.name, way.help));
    format!(
        "Evaluation of collective operations: {}, or algorithm:FILE (the messages of a table's algorithms); {without}",
        ways.join(", ")
    )
}

/// Parses a request from JSON. Errors contain no position in the JSON text, because callers did not write it.
fn request_of<R: DeserializeOwned>(text: &str) -> Result<R> {
    let json: serde_json::Value = serde_json::from_str(text).context("request")?;
    serde_json::from_value(json).context("request")
}

impl ReplayRequest {
    /// Parses a request from JSON.
    ///
    /// # Errors
    /// The errors of [`Request::from_json`].
    pub fn from_json(text: &str) -> Result<ReplayRequest> {
        request_of(text)
    }

    /// Options of a replay. Reads the files that they name.
    ///
    /// # Errors
    /// An unknown name, or a file that cannot be read. The message names the option.
    pub fn options(&self, reader: &mut dyn Reader) -> Result<Options> {
        let contention = self
            .model
            .as_deref()
            .map(|name| Contention::named(name).with_context(|| format!("--model {name}")));
        let mapping = self
            .mapping
            .as_ref()
            .map(|nodes| match nodes {
                RankNodes::Named(name) => read_mapping(name, reader),
                RankNodes::Listed(nodes) => Ok(Mapping::List(nodes.clone())),
            })
            .transpose()?;
        let collectives = self
            .collectives
            .as_deref()
            .map(|name| read_collectives(name, reader));
        Ok(Options {
            contention: contention.transpose()?.unwrap_or_default(),
            mapping,
            rendezvous_from: self.rendezvous_from,
            collectives: collectives.transpose()?.unwrap_or_default(),
            loggops: self.goal_params.map(loggops_parameters).transpose()?,
            threads: threads(),
            ..Options::default()
        })
    }
}

/// Parses L, o, g, G in nanoseconds and S in bytes, as in LogGOPSim.
///
/// # Errors
/// A negative or non-finite number.
pub fn loggops_parameters(numbers: [f64; 5]) -> Result<Loggops> {
    ensure!(
        numbers
            .iter()
            .all(|number| *number >= 0.0 && number.is_finite()),
        "--goal-params: found {numbers:?}, expected five numbers of at least 0: L,o,g,G,S"
    );
    let [latency, overhead, gap, per_byte, eager] = numbers;
    Ok(Loggops {
        latency: Time::from_nanos(latency),
        overhead: Time::from_nanos(overhead),
        gap: Time::from_nanos(gap),
        gap_per_byte: TimePerByte::from_nanos(per_byte),
        eager_up_to: Some(Bytes(eager as u64)),
    })
}

/// A question about a trace on a network.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Request {
    /// Predicted time, with an interval if one is requested.
    Predict(PredictRequest),
    /// Critical path: the chain of events that ends last.
    Path(ReplayRequest),
    /// Costs that the predicted time depends on most.
    Gradient(ReplayRequest),
    /// Slack of each rank, message and computation.
    Slack(ReplayRequest),
    /// Predicted time over a range of a field.
    Sensitivity(SensitivityRequest),
    /// Predicted times of named what-if scenarios, and their ratios to the first scenario.
    Scenarios(ScenariosRequest),
}

/// Predicted time of a trace, with its interval.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PredictRequest {
    /// Options of the replay.
    pub replay: ReplayRequest,
    /// Options of the interval; no interval if absent.
    pub interval: Option<IntervalRequest>,
}

/// Level and exclusions of the interval of a prediction.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IntervalRequest {
    /// Probability that an interval contains the measured time, above 0 and below 1.
    pub level: f64,
    /// Case of the accuracy record whose errors are excluded.
    pub holdout: Option<String>,
}

impl IntervalRequest {
    /// Options of an interval, with all processors.
    pub fn options(&self) -> IntervalOptions<'_> {
        IntervalOptions {
            level: self.level,
            held_out: self.holdout.as_deref(),
            threads: threads(),
            ..IntervalOptions::default()
        }
    }
}

/// Predicted time over a range of a field of the network, or of some of the costs.
#[derive(Debug, Clone, Args, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SensitivityRequest {
    /// Options of the replay.
    #[command(flatten)]
    pub replay: ReplayRequest,
    /// Field to vary, as for --set, or latency, bandwidth, overhead, gap; or a part of the costs: latency, bandwidth,
    /// gap_per_byte, overhead, gap, compute or collective (the last two as factors), with conditions in brackets: rank=7,
    /// node=2, pair=0-3, link=inside|between|sites, size>=64KiB, size<64KiB, collective=alltoall, function=12
    #[arg(long, value_name = "FIELD")]
    pub parameter: String,
    /// Range of the values, each with its unit, such as 0us..1ms
    #[arg(long, value_name = "FROM..TO")]
    pub range: String,
    /// Number of walks over the program after which the search for further pieces of the curve ends
    #[arg(long = "limit", value_name = "COUNT", default_value_t = 10_000)]
    pub most_walks: usize,
}

/// Named what-ifs of a program.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScenariosRequest {
    /// Options of the replay that a scenario does not set.
    pub replay: ReplayRequest,
    /// Name of the file of scenarios, for messages.
    pub name: String,
    /// Text of the file.
    pub text: String,
    /// Fields with values, set on the networks that scenarios name.
    pub overrides: Vec<(String, String)>,
    /// Options of intervals; no intervals if absent.
    pub interval: Option<IntervalRequest>,
    /// Probability of the interval under noise, above 0 and below 1.
    pub level: f64,
    /// Number of times the delays of a scenario with noise are drawn.
    pub replicates: usize,
    /// Seed of the random numbers.
    pub seed: u64,
}

impl Request {
    /// Parses a request from JSON.
    ///
    /// # Errors
    /// Invalid JSON or an invalid request. The message has the found and the expected content.
    pub fn from_json(text: &str) -> Result<Request> {
        request_of(text)
    }

    /// Picture on the page of the answer.
    pub fn picture(&self) -> Picture {
        match self {
            Request::Sensitivity(_) => Picture::Sensitivity,
            _ => Picture::Tables,
        }
    }

    /// Answers the request. A curve with more than `most_rows` pieces has rows that combine several pieces. The trace is
    /// opened only after the options have been checked.
    ///
    /// # Errors
    /// An option that does not apply to the trace or the network; errors of opening the trace and of its replay.
    pub fn answer<T: Borrow<Trace>>(
        &self,
        open: impl FnOnce() -> Result<T>,
        network: Option<&Network>,
        most_rows: usize,
        reader: &mut dyn Reader,
    ) -> Result<Document> {
        use Request::*;
        let explain = match self {
            Path(_) => why::path,
            Gradient(_) => why::gradient,
            _ => why::slack,
        };
        let needed = || network.ok_or(Error::NoNetwork);
        Ok(match self {
            Path(replay) | Gradient(replay) | Slack(replay) => {
                let options = replay.options(reader)?;
                explain(open()?.borrow(), needed()?, &options)?
            }
            Predict(PredictRequest { replay, interval }) => {
                let options = replay.options(reader)?;
                let trace = open()?;
                let prepared = Prepared::new(trace.borrow(), network, &options)?;
                let prediction = prepared.predict(Outputs::default(), &[])?;
                let (outcome, has_interval) = (&prediction.outcome, interval.is_some());
                let interval = match interval {
                    Some(asked) => prepared.interval(outcome, &asked.options())?,
                    None => None,
                };
                let answer = PredictionAnswer {
                    applications: Vec::new(),
                    prepared: &prepared,
                    prediction: &prediction,
                    networks: network.into_iter().collect(),
                    interval: interval.as_ref(),
                    has_interval,
                    noise: None,
                    most_rows,
                };
                answer.document().titled(trace.borrow().name())
            }
            Sensitivity(request) => {
                let SensitivityRequest {
                    replay,
                    parameter,
                    range,
                    most_walks,
                } = request;
                let (network, options) = (needed()?, replay.options(reader)?);
                let asked = Parameter::parse(parameter, range)?;
                let trace = open()?;
                sensitivity(trace.borrow(), network, asked, *most_walks, &options)
                    .with_context(|| format!("--parameter {parameter} --range {range}"))?
                    .answer(trace.borrow().name(), network, most_rows)
            }
            Scenarios(request) => {
                let overrides = request.overrides.iter();
                let overrides: Vec<(String, String)> = overrides
                    .map(|(field, value)| (full_name(field), value.clone()))
                    .collect();
                let noise = NoiseOptions {
                    noise: ComputeNoise::Exponential(Time::ZERO),
                    runs: request.replicates,
                    seed: request.seed,
                    level: request.level,
                    threads: threads(),
                };
                let defaults = ScenarioDefaults {
                    network,
                    overrides: &overrides,
                    options: &request.replay.options(reader)?,
                    noise: &noise,
                };
                let all = parse_scenarios(&request.name, &request.text, &defaults, reader)?;
                let interval = request.interval.as_ref().map(|interval| IntervalOptions {
                    threads: 1,
                    ..interval.options()
                });
                why::scenarios(open()?.borrow(), &all, interval.as_ref())?
            }
        })
    }
}
