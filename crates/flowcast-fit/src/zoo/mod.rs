//! Models of messages beside each other: which one explains measured round trips best, on sizes that it was not fitted to.
//!
//! A model says what one message takes ([`MessageCost::one_way`]), how long after a send the same sender begins the next
//! ([`MessageCost::spacing`]), and, where it knows contention, how messages into one node follow one another
//! ([`MessageCost::arrival_spacing`]) and what a [`pattern`] of messages between several nodes ([`MessageCost::pattern`]). All of them are
//! linear in their parameters, up to the longer of two terms and to queues, so that one procedure fits them all
//! ([`fit`](mod@fit)); a model with a published procedure is fitted by that as well.
//! The parametrised round trip of [`crate::prtt`] is then
//!
//! `PRTT_{n,d}(s) = 2 · one_way(s) + (n-1) · spacing(s, d)`.
//!
//! | model | one message | next message | file |
//! |---|---|---|---|
//! | Hockney | `α + βs` | the same | [`hockney`] |
//! | BSP | `l + gs` | `gs` | [`bsp`] |
//! | C3 | `s + h + qt`, q packets | `s + qt` | [`c3`] |
//! | Postal | `(λ + q - 1)u`, q packets | `qu` | [`postal`] |
//! | LogP, also with stalling | `2o + L + (q-1)g`, q packets | `max(o + d, g) + (q-1)g` | [`logp`], [`logp_stalling`] |
//! | LoPC | `L + (q+1)o`, q packets | `qo + d` | [`lopc`] |
//! | PLogP | `L + g(s)` | `max(o_s(s) + d, g(s))` | [`plogp`] |
//! | LogGP, LoGPC, HLogGP | `2o + L + (s-1)G` | `max(o + d, g + (s-1)G)` | [`loggp`], [`logpc`], [`hloggp`] |
//! | LogGPS | the same, and from S on `2(2o + L)` | the same, and from S on `2(2o + L)` | [`loggps`] |
//! | LMO | `2C + 2ts + L + s/β` | `max(C + ts + d, s/β)` | [`lmo`] |
//!
//! Sources are named in the files; the forms of Hockney, C3, BSP, LogP, PLogP, LogGP and LogGPS are those of Lichei, section 2.2.

pub mod bsp;
pub mod c3;
pub mod compare;
pub mod fit;
pub mod hloggp;
pub mod hockney;
pub mod lmo;
pub mod loggp;
pub mod loggps;
pub mod logp;
pub mod logp_stalling;
pub mod logpc;
pub mod lopc;
pub mod pattern;
pub mod plogp;
pub mod postal;

use std::collections::BTreeSet;

use flowcast_model::stats::StatsError;
use flowcast_units::{Bytes, Time};
use thiserror::Error;

use crate::prtt::PrttPoint;
use pattern::Pattern;

/// What a message costs under a model, linear in its parameters.
pub trait MessageCost {
    /// From the send call to the end of the receive call of one message that meets no other.
    fn one_way(&self, size: Bytes) -> Form;

    /// From a send to the next of the same sender, which computes for `delay` between them: the longest of these. The
    /// first is the processor's time, the last the interface's.
    fn spacing(&self, size: Bytes, delay: Time) -> Vec<Form>;

    /// From one receive to the next where several nodes send to the same node at once: the longest of these; none where the
    /// model says nothing of contention.
    fn arrival_spacing(&self, _: Bytes) -> Option<Vec<Form>> {
        None
    }

    /// From the common start of a pattern to its last receive, for parameters near these, as many as there are coefficients:
    /// what depends on them in other ways than [`Cost`] does (queues, stalling) is taken from them.
    ///
    /// By itself the busiest node counts: the messages that it sends follow each other, or those that it receives where
    /// they are more and the model knows contention. Without that, messages of several senders do not disturb each other.
    fn pattern(&self, pattern: &Pattern, near: &[f64]) -> Cost {
        let _ = near;
        let (sends, receives, size) = (pattern.most_sends(), pattern.most_receives(), pattern.size);
        let contended = (receives > sends).then(|| self.arrival_spacing(size));
        let (count, longest_of) = match contended.flatten() {
            Some(spacing) => (receives, spacing),
            None => (sends, self.spacing(size, Time::ZERO)),
        };
        Cost {
            once: self.one_way(size),
            repeats: f64::from(count - 1),
            longest_of,
        }
    }
}

/// `constant + Σ coefficient · parameter`, in nanoseconds.
#[derive(Debug, Clone, PartialEq)]
pub struct Form {
    /// What does not depend on parameters.
    pub constant: f64,
    /// By parameter: how often it counts.
    pub coefficients: Vec<f64>,
}

impl Form {
    /// A form without a constant.
    pub fn new(coefficients: impl Into<Vec<f64>>) -> Form {
        Form {
            constant: 0.0,
            coefficients: coefficients.into(),
        }
    }

    /// The same and a time more.
    #[must_use]
    pub fn and(self, more: Time) -> Form {
        Form {
            constant: self.constant + more.as_nanos(),
            ..self
        }
    }

    /// Nanoseconds with these parameters, as many as there are coefficients.
    pub fn at(&self, parameters: &[f64]) -> f64 {
        self.constant
            + self
                .coefficients
                .iter()
                .zip(parameters)
                .map(|(times, value)| times * value)
                .sum::<f64>()
    }

    fn add(&mut self, other: &Form, times: f64) {
        self.constant += other.constant * times;
        self.coefficients
            .iter_mut()
            .zip(&other.coefficients)
            .for_each(|(own, other)| *own += other * times);
    }
}

/// `once + repeats · max(longest_of)`.
#[derive(Debug, Clone, PartialEq)]
pub struct Cost {
    /// What is spent once.
    pub once: Form,
    /// How often the longest counts, 0 or more.
    pub repeats: f64,
    /// At least one form.
    pub longest_of: Vec<Form>,
}

impl Cost {
    /// The parametrised round trip under a model.
    pub fn of_round_trip(model: &dyn MessageCost, point: PrttPoint) -> Cost {
        let way = model.one_way(point.size);
        let mut once = Form::new(vec![0.0; way.coefficients.len()]);
        once.add(&way, 2.0);
        let repeats = f64::from(point.messages.saturating_sub(1));
        Cost {
            once,
            repeats,
            longest_of: model.spacing(point.size, point.delay),
        }
    }

    /// What it takes with these parameters.
    pub fn at(&self, parameters: &[f64]) -> Time {
        let longest = self.longest(parameters);
        Time::from_nanos(
            self.once.at(parameters) + self.repeats * self.longest_of[longest].at(parameters),
        )
    }

    /// Which of the forms is the longest, the last of equal ones.
    fn longest(&self, parameters: &[f64]) -> usize {
        let times = self.longest_of.iter().map(|form| form.at(parameters));
        times
            .enumerate()
            .max_by(|one, other| one.1.total_cmp(&other.1))
            .map_or(0, |(at, _)| at)
    }

    /// The cost as one form, if the form `longest` is the longest.
    fn form(&self, longest: usize) -> Form {
        let mut form = self.once.clone();
        form.add(&self.longest_of[longest], self.repeats);
        form
    }
}

/// A parameter of a model, 0 or more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter {
    /// The symbol of the paper, of tables with the size, as `g(1KiB)`.
    pub symbol: String,
    /// What its number counts.
    pub unit: Unit,
}

/// The unit of a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// A time, in nanoseconds.
    Time,
    /// A time per byte, in nanoseconds for each byte.
    TimePerByte,
}

/// Parameters that are times but for those whose symbols end in `/B`.
fn parameters(symbols: &[&str]) -> Vec<Parameter> {
    symbols
        .iter()
        .map(|symbol: &&str| match symbol.strip_suffix("/B") {
            Some(symbol) => Parameter {
                symbol: symbol.to_owned(),
                unit: Unit::TimePerByte,
            },
            None => Parameter {
                symbol: (*symbol).to_owned(),
                unit: Unit::Time,
            },
        })
        .collect()
}

/// A model whose sizes (packets, thresholds, places in tables) are chosen.
pub struct Instance {
    /// What was chosen, for people; empty where there is nothing to choose.
    pub choice: String,
    /// As many as the forms have coefficients.
    pub parameters: Vec<Parameter>,
    /// The model's equations, linear in the parameters.
    pub cost: Box<dyn MessageCost>,
}

/// Points and patterns with the medians that stand for them, in nanoseconds; as many of both.
#[derive(Debug, Clone, Copy)]
pub struct Medians<'a> {
    /// Message count, delay and size of each round trip that was measured.
    pub points: &'a [PrttPoint],
    /// The median time of each point in nanoseconds, above 0.
    pub times: &'a [f64],
    /// What was sent between several nodes; empty where only round trips were measured.
    pub patterns: &'a [Pattern],
    /// The median time of each pattern in nanoseconds, above 0.
    pub pattern_times: &'a [f64],
}

impl<'a> Medians<'a> {
    /// Of round trips alone.
    pub fn of_round_trips(points: &'a [PrttPoint], times: &'a [f64]) -> Medians<'a> {
        Medians {
            points,
            times,
            patterns: &[],
            pattern_times: &[],
        }
    }

    /// Number of nodes of the patterns.
    fn nodes(self) -> u32 {
        self.patterns
            .iter()
            .flat_map(Pattern::nodes)
            .collect::<BTreeSet<_>>()
            .len() as u32
    }

    /// The sizes of its round trips, ascending, each once.
    fn sizes(self) -> Vec<Bytes> {
        let mut sizes: Vec<Bytes> = self.points.iter().map(|point| point.size).collect();
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    }

    /// The median of a point, if it was measured.
    fn at(self, point: PrttPoint) -> Option<f64> {
        self.points
            .iter()
            .position(|own| *own == point)
            .map(|at| self.times[at])
    }
}

/// A published way from medians to parameters; none where the medians lack what it needs.
pub type Procedure = fn(Medians<'_>) -> Option<(Instance, Vec<f64>)>;

/// One model of the zoo.
pub struct Model {
    /// The model's name, as `--model` takes it.
    pub name: &'static str,
    /// Paper, year and section.
    pub source: &'static str,
    /// All choices of its sizes that come into question for these measurements, at least one.
    pub instances: fn(Medians<'_>) -> Vec<Instance>,
    /// Its own way to its parameters, if one is published that these measurements allow.
    pub procedure: Option<Procedure>,
}

/// All models, the simplest first.
pub const MODELS: [Model; 13] = [
    hockney::MODEL,
    bsp::MODEL,
    c3::MODEL,
    postal::MODEL,
    logp::MODEL,
    logp_stalling::MODEL,
    lopc::MODEL,
    loggp::MODEL,
    logpc::MODEL,
    hloggp::MODEL,
    loggps::MODEL,
    lmo::MODEL,
    plogp::MODEL,
];

/// Why models cannot be compared.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum ZooError {
    /// Nothing is left to predict when sizes are left out.
    #[error("found round trips of {0} sizes, expected at least 3")]
    TooFewSizes(usize),
    /// A level outside of its range.
    #[error(transparent)]
    Stats(#[from] StatsError),
}

/// Sizes of packets that come into question: powers of two, and what Ethernet carries.
fn packet_sizes(observed: Medians<'_>) -> Vec<Bytes> {
    let largest = observed
        .points
        .iter()
        .map(|point| point.size.0)
        .max()
        .unwrap_or(1);
    let powers = (6..=20).map(|power| 1u64 << power).chain([1448, 8948]);
    // A packet larger than every message is one that carries any.
    let mut all: Vec<Bytes> = powers
        .filter(|size| *size < largest)
        .chain([largest.max(1)])
        .map(Bytes)
        .collect();
    all.sort_unstable();
    all
}

/// Number of packets of a message, at least 1.
fn packets(size: Bytes, packet: Bytes) -> f64 {
    size.0.div_ceil(packet.0).max(1) as f64
}

fn of_packets(
    symbols: &[&str],
    observed: Medians<'_>,
    cost: impl Fn(Bytes) -> Box<dyn MessageCost>,
) -> Vec<Instance> {
    packet_sizes(observed)
        .into_iter()
        .map(|packet: Bytes| Instance {
            choice: format!("packets of {packet}"),
            parameters: parameters(symbols),
            cost: cost(packet),
        })
        .collect()
}

fn alone(symbols: &[&str], cost: impl MessageCost + 'static) -> Instance {
    Instance {
        choice: String::new(),
        parameters: parameters(symbols),
        cost: Box::new(cost),
    }
}
