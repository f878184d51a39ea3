//! Comparison of message models by their predictions of round trips with sizes that were left out of the fit.
//!
//! A model is a row of the table [`MODELS`]. Its equations give the time of one message, the time from a send to the next
//! of the same sender, and, if the model includes contention, the time between messages into the same node. All are linear
//! in the parameters, up to a maximum of two terms, so one procedure fits them all (`fit`). A model with a published
//! procedure is also fitted by that (`procedures`). The parametrised round trip of [`crate::prtt`] is then
//!
//! `PRTT_{n,d}(s) = 2 · one_way(s) + (n-1) · spacing(s, d)`.

pub mod compare;
mod fit;
pub mod pattern;
#[cfg(test)]
mod printed_tests;
mod procedures;
mod table;

use std::{
    fmt::{Display, Formatter, Result},
    iter,
};

use flowcast_network::quantity::Quantity;
use flowcast_statistics::StatsError;
use flowcast_units::{Bytes, Time, TimePerByte};
use thiserror::Error;

use crate::prtt::PrttPoint;
use pattern::ZooPattern;
pub use table::MODELS;

/// One model of the zoo.
#[derive(Debug)]
pub struct ZooModel {
    /// Short name in tables and JSON, such as `loggp`.
    pub name: &'static str,
    /// Models with the same equations for round trips, up to the range of a parameter. Their terms for contention and for
    /// classes of nodes are not fitted.
    pub aliases: &'static [&'static str],
    /// Paper, year and section.
    pub source: &'static str,
    /// Symbols of the paper. Those that end in `/B` are times per byte, those that end in `(s)` are tables of times by
    /// size, and all others are times.
    pub(crate) symbols: &'static [&'static str],
    /// Returns all possible choices of its open sizes for these measurements, at least one.
    pub(crate) choices: fn(&[ExchangeObservation]) -> Vec<OpenSizes>,
    /// Returns the coefficients for the size of a message.
    pub(crate) equations: fn(MessageRegressors) -> Equations,
    /// Published procedure for its parameters, if there is one.
    pub(crate) procedure: Option<Procedure>,
}

/// A published procedure that determines parameters from measurements. Returns `None` if the measurements are not
/// sufficient.
pub(crate) type Procedure = fn(&[ExchangeObservation]) -> Option<(OpenSizes, Vec<f64>)>;

/// Sizes that a model leaves open.
#[derive(Debug, Clone, PartialEq)]
pub enum OpenSizes {
    /// No open size: every message is one packet without a handshake.
    Nothing,
    /// Size of a packet, at least one byte. Longer messages are several packets.
    Packets(Bytes),
    /// Size from which a message waits for its receiver.
    Threshold(Bytes),
    /// Sizes with entries in tables, in ascending order, at least one.
    Places(Vec<Bytes>),
}

impl OpenSizes {
    fn message(&self, size: Bytes) -> MessageRegressors {
        MessageRegressors {
            bytes: size.0 as f64,
            beyond_first: size.0.saturating_sub(1) as f64,
            packets: match self {
                OpenSizes::Packets(packet) => size.0.div_ceil(packet.0).max(1) as f64,
                _ => 1.0,
            },
            handshakes: match self {
                OpenSizes::Threshold(threshold) if size >= *threshold => 2.0,
                _ => 0.0,
            },
        }
    }

    /// Returns the weight of each entry of a table in the value at a size. Values are interpolated between two places,
    /// constant below the first, and extrapolated with the last slope. A single 1 if there are no tables.
    fn weights(&self, size: Bytes) -> Vec<f64> {
        let OpenSizes::Places(places) = self else {
            return vec![1.0];
        };
        let mut weights = vec![0.0; places.len()];
        let above = places.partition_point(|place| *place < size);
        let (low, high) = (above.saturating_sub(1), above.min(places.len() - 1));
        weights[low] = 1.0;
        let from = if above > 1 { high - 1 } else { low };
        if from < high {
            let width = (places[high].0 - places[from].0) as f64;
            let share = size.0.saturating_sub(places[low].0) as f64 / width;
            weights[from] -= share;
            weights[high] += share;
        }
        weights
    }
}

impl Display for OpenSizes {
    fn fmt(&self, out: &mut Formatter) -> Result {
        match self {
            OpenSizes::Nothing => Ok(()),
            OpenSizes::Packets(packet) => write!(out, "packets of {} B", packet.0),
            OpenSizes::Threshold(threshold) => write!(out, "threshold {} B", threshold.0),
            OpenSizes::Places(places) => write!(out, "{} sizes", places.len()),
        }
    }
}

/// The regressors of a message.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MessageRegressors {
    /// Size s of the message, in bytes.
    pub bytes: f64,
    /// Size s - 1, at least 0.
    pub beyond_first: f64,
    /// Number of packets q, at least 1.
    pub packets: f64,
    /// Number of messages without data between sender and receiver before the data.
    pub handshakes: f64,
}

/// Times as coefficients of the parameters.
#[derive(Debug)]
pub(crate) struct Equations {
    /// Time from the send call to the end of the receive call of one message without conflicts.
    one_way: Vec<f64>,
    /// Time from a send to the next of the same sender: the maximum of these. The first is the processor's time, to which
    /// computation between the messages is added, and the last is the interface's.
    spacing: Vec<Vec<f64>>,
    /// Time from one receive to the next if several nodes send to the same node at the same time: the maximum of these.
    /// Empty if the model does not include contention.
    arrivals: Vec<Vec<f64>>,
}

/// Messages that were sent and timed together.
#[derive(Debug)]
pub(crate) enum TimedExchange {
    /// Messages between two nodes.
    RoundTrip(PrttPoint),
    /// Messages between several nodes.
    Pattern(ZooPattern),
}

impl TimedExchange {
    fn round_trip(&self) -> Option<PrttPoint> {
        match self {
            TimedExchange::RoundTrip(point) => Some(*point),
            TimedExchange::Pattern(_) => None,
        }
    }

    fn pattern(&self) -> Option<ZooPattern> {
        match self {
            TimedExchange::RoundTrip(_) => None,
            TimedExchange::Pattern(pattern) => Some(pattern.clone()),
        }
    }

    /// Size of each message.
    fn size(&self) -> Bytes {
        match self {
            TimedExchange::RoundTrip(point) => point.size,
            TimedExchange::Pattern(pattern) => pattern.size,
        }
    }
}

/// An exchange and its median time in nanoseconds, above 0.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ExchangeObservation<'a> {
    pub exchange: &'a TimedExchange,
    pub time: f64,
}

/// Returns the round trips among the observations, in their order, with their times.
fn round_trips(observed: &[ExchangeObservation]) -> impl Iterator<Item = (PrttPoint, f64)> {
    observed
        .iter()
        .filter_map(|one| Some((one.exchange.round_trip()?, one.time)))
}

/// A cost `once + repeats · max(longest_of)` in nanoseconds, as coefficients of the parameters. An additional coefficient
/// is a constant.
#[derive(Debug)]
pub(crate) struct ModelCost {
    once: Vec<f64>,
    repeats: f64,
    longest_of: Vec<Vec<f64>>,
}

impl ModelCost {
    fn at(&self, parameters: &[f64]) -> f64 {
        let repeated = &self.longest_of[self.longest(parameters)];
        product(&self.once, parameters) + self.repeats * product(repeated, parameters)
    }

    /// Returns the index of the longest form, the last one if several are equal.
    fn longest(&self, parameters: &[f64]) -> usize {
        let times = self.longest_of.iter().map(|form| product(form, parameters));
        times
            .enumerate()
            .max_by(|one, other| one.1.total_cmp(&other.1))
            .map_or(0, |(at, _)| at)
    }
}

/// Returns `Σ coefficient · parameter`, plus the constant if there is one coefficient more.
fn product(coefficients: &[f64], parameters: &[f64]) -> f64 {
    coefficients
        .iter()
        .zip(parameters.iter().chain([&1.0]))
        .map(|(times, value)| times * value)
        .sum()
}

impl ZooModel {
    /// Returns the parameters under a choice, in the order of their coefficients.
    pub fn parameters(&self, choice: &OpenSizes) -> Vec<ZooParameter> {
        let mut parameters = Vec::new();
        for symbol in self.symbols {
            let (name, unit) = match symbol.strip_suffix("/B") {
                Some(name) => (name, Quantity::TimePerByte(TimePerByte::from_nanos(1.0))),
                None => (*symbol, Quantity::Time(Time::from_nanos(1.0))),
            };
            match (name.strip_suffix("(s)"), choice) {
                (Some(table), OpenSizes::Places(places)) => {
                    parameters.extend(places.iter().map(|place| ZooParameter {
                        symbol: format!("{table}({place})"),
                        unit,
                    }));
                }
                _ => parameters.push(ZooParameter {
                    symbol: name.to_owned(),
                    unit,
                }),
            }
        }
        parameters
    }

    /// Returns the cost of an exchange. In a pattern, the node with the most messages determines the time. Its sends follow
    /// each other, or its receives if they are more and the model includes contention. Without contention, messages of
    /// several senders do not disturb each other.
    fn cost(&self, choice: &OpenSizes, exchange: &TimedExchange) -> ModelCost {
        let mut equations = self.expanded(choice, exchange.size());
        match exchange {
            TimedExchange::RoundTrip(point) => {
                let delay = Some(point.delay.as_nanos()).filter(|delay| *delay > 0.0);
                equations.spacing[0].extend(delay);
                ModelCost {
                    once: equations.one_way.iter().map(|times| 2.0 * times).collect(),
                    repeats: f64::from(point.messages.saturating_sub(1)),
                    longest_of: equations.spacing,
                }
            }
            TimedExchange::Pattern(pattern) => {
                let (sends, receives) = (pattern.most_sends(), pattern.most_receives());
                let (count, longest_of) = match receives > sends && !equations.arrivals.is_empty() {
                    true => (receives, equations.arrivals),
                    false => (sends, equations.spacing),
                };
                ModelCost {
                    once: equations.one_way,
                    repeats: f64::from(count - 1),
                    longest_of,
                }
            }
        }
    }

    /// Returns the equations with a coefficient for each entry of a table.
    fn expanded(&self, choice: &OpenSizes, size: Bytes) -> Equations {
        let weights = choice.weights(size);
        let mut equations = (self.equations)(choice.message(size));
        let forms = iter::once(&mut equations.one_way)
            .chain(&mut equations.spacing)
            .chain(&mut equations.arrivals);
        for form in forms {
            let named = self.symbols.iter().zip(&*form);
            *form = named
                .flat_map(|(symbol, times)| match symbol.ends_with("(s)") {
                    true => weights.iter().map(|weight| weight * times).collect(),
                    false => vec![*times],
                })
                .collect();
        }
        equations
    }
}

/// A parameter of a model, 0 or more.
#[derive(Debug, Clone, PartialEq)]
pub struct ZooParameter {
    /// Symbol in the paper. For tables it includes the size, such as `g(1KiB)`.
    pub symbol: String,
    /// One nanosecond, or one nanosecond per byte.
    pub unit: Quantity,
}

/// Error for models that cannot be compared.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum ZooError {
    /// Too few sizes to predict those that are left out.
    #[error("found round trips of {0} sizes, expected at least 3")]
    TooFewSizes(usize),
    /// A level outside of its range.
    #[error(transparent)]
    Stats(#[from] StatsError),
}

#[cfg(test)]
mod tests {
    use super::*;
    use flowcast_units::Node;

    fn cost(name: &str, choice: OpenSizes, exchange: TimedExchange) -> ModelCost {
        let model = MODELS.iter().find(|model| model.name == name).unwrap();
        model.cost(&choice, &exchange)
    }

    fn pattern(size: u64, messages: &[(u32, u32)]) -> TimedExchange {
        TimedExchange::Pattern(ZooPattern {
            name: String::new(),
            size: Bytes(size),
            messages: messages
                .iter()
                .map(|(from, to)| (Node(*from), Node(*to)))
                .collect(),
        })
    }

    const GATHER: [(u32, u32); 4] = [(1, 0), (2, 0), (3, 0), (4, 0)];

    /// L 5, o 2, g 4 (the example of the LogP paper's broadcast), packets of 8 bytes.
    #[test]
    fn packets_of_a_message_and_of_several_senders_by_hand() {
        let time = |size, messages: &[(u32, u32)]| {
            cost(
                "logp",
                OpenSizes::Packets(Bytes(8)),
                pattern(size, messages),
            )
            .at(&[5.0, 2.0, 4.0])
        };
        assert_eq!(time(8, &[(0, 1)]), 9.0);
        assert_eq!(time(17, &[(0, 1)]), 17.0);
        assert_eq!(time(1, &GATHER), 21.0);
    }

    #[test]
    fn a_node_that_sends_and_receives_counts_by_the_more_of_both() {
        let time = |messages: &[(u32, u32)]| {
            cost("loggp", OpenSizes::Nothing, pattern(5, messages)).at(&[10.0, 1.0, 2.0, 1.0])
        };
        assert_eq!(time(&[(0, 1)]), 16.0);
        assert_eq!(time(&[(0, 1), (0, 2)]), 22.0);
        assert_eq!(time(&[(1, 0), (2, 0), (0, 3)]), 22.0);
    }

    #[test]
    fn a_model_without_contention_has_none() {
        let time = |name, parameters: &[f64]| {
            cost(name, OpenSizes::Nothing, pattern(5, &GATHER)).at(parameters)
        };
        assert_eq!(time("hockney", &[10.0, 1.0]), 15.0);
        assert_eq!(time("bsp", &[10.0, 1.0]), 30.0);
        // C 10, t 1, L 100, 1/β 2: the receiver takes 15 for each message.
        assert_eq!(time("lmo", &[10.0, 1.0, 100.0, 2.0]), 140.0 + 3.0 * 15.0);
    }

    #[test]
    fn handshakes_of_several_senders_overlap() {
        let time = |threshold| {
            let choice = OpenSizes::Threshold(Bytes(threshold));
            cost("loggps", choice, pattern(5, &GATHER)).at(&[10.0, 1.0, 2.0, 1.0])
        };
        assert_eq!(time(6), 16.0 + 3.0 * 6.0);
        assert_eq!(time(5), 3.0 * 12.0 + 4.0 + 3.0 * 6.0);
    }

    /// Lichei, section 3.1.3: n messages and an answer without bytes take `2L + (n+1)·g`.
    #[test]
    fn the_time_of_a_flood_matches_the_thesis() {
        let point = PrttPoint::new(16, Time::ZERO, Bytes(1));
        let places = OpenSizes::Places(vec![Bytes(1)]);
        let cost = cost("plogp", places, TimedExchange::RoundTrip(point));
        let time = cost.at(&[76_500.0, 783.0, 0.0]);
        assert_eq!(time, 2.0 * 76_500.0 + 17.0 * 783.0);
    }

    #[test]
    fn tables_are_interpolated_and_extrapolated() {
        let places = OpenSizes::Places([10, 20, 40].map(Bytes).into());
        let gaps = [5, 10, 15, 20, 30, 40, 80]
            .map(|size| product(&places.weights(Bytes(size)), &[1.0, 3.0, 4.0]));
        assert_eq!(gaps, [1.0, 1.0, 2.0, 3.0, 3.5, 4.0, 6.0]);
    }

    #[test]
    fn names_of_models_and_of_their_aliases_differ() {
        let names = MODELS
            .iter()
            .flat_map(|model| model.aliases.iter().chain([&model.name]));
        let distinct: std::collections::BTreeSet<&str> = names.clone().copied().collect();
        assert_eq!((names.count(), distinct.len()), (13, 13));
    }
}
