//! The parametrised round trip as an experiment (Lichei, section 3.2.1 and 3.4.3).
//!
//! The measuring end sends n messages with busy waiting between them, the answering end answers the last one. A round
//! takes every point once, in a new random order, so that whatever drifts in the meantime drifts under all points
//! alike. The first rounds warm the path up and choose the delay. Rounds go on until the median of every point has a
//! narrow interval or the time is over.
//!
//! The time is kept: two sizes, measured first, tell what a round takes. Where eight rounds would not fit into the time,
//! sizes are left out evenly, and no round begins that would end more than a tenth too late.
//!
//! n is small on purpose: 16 messages of 64 KiB are a megabyte in flight, which buffers take without dropping; the
//! method needs no saturated network, and a saturated one would show queues instead of gaps.

mod pilot;

use std::ops::ControlFlow;

use flowcast_fit::{
    error::FitError,
    loggp::preliminary_gap,
    prtt::{PrttPoint, delay_for_overhead},
    samples::PrttSamples,
};
use flowcast_statistics::{interval::median_interval, resampling::Resampler, sample::median};
use flowcast_units::{Bytes, Time};

pub use crate::{
    error::PrttError,
    script::{MAX_MESSAGES, MAX_SIZE},
};

use crate::{
    clocks::{guide, wall_clock},
    script::{Guest, ScriptExchange, answer_greeting, greet, receive_script, send_script},
    transport::{Transport, TransportError},
};
use pilot::fitted_into_time;

/// Rounds between two checks of the intervals.
const ROUNDS_PER_LOOK: u32 = 8;
/// A chosen delay is at least this multiple of the spacing of the smallest messages.
const CLEAR_DELAY: f64 = 4.0;
/// And at least this long (10 us), however disturbed the warm-up was.
const SHORTEST_DELAY: Time = Time::from_nanos(10_000.0);

/// A measurement ends at most this part of its time too late.
pub const TIME_TOLERANCE: f64 = 0.1;

/// What to measure and for how long.
#[derive(Debug, Clone, PartialEq)]
pub struct PrttPlan {
    /// `n`: messages before the answer.
    pub messages: u32,
    /// `s`: at least two sizes.
    pub sizes: Vec<Bytes>,
    /// `d`; without it the gap of half the largest size or four times that of the smallest, found while warming up.
    pub delay: Option<Time>,
    /// Rounds whose samples are not kept.
    pub warm_up_rounds: u32,
    /// Never stop before this many rounds for being precise.
    pub min_rounds: u32,
    /// Stop after this time; no round begins that would end more than [`TIME_TOLERANCE`] later.
    pub max_time: Time,
    /// Confidence level of the medians' intervals.
    pub level: f64,
    /// A median is known when half its interval is at most this share of it.
    pub relative_half_width: f64,
    /// Seed of the order of points.
    pub seed: u64,
}

impl Default for PrttPlan {
    /// The thesis' plan: 16 messages, sizes from 1 byte in steps of 2048 up to 64 KiB.
    fn default() -> PrttPlan {
        PrttPlan {
            messages: 16,
            sizes: stepped_sizes(Bytes(1 << 16), Bytes(2048)),
            delay: None,
            warm_up_rounds: 6,
            min_rounds: 50,
            max_time: Time::from_seconds(10.0),
            level: 0.95,
            relative_half_width: 0.025,
            seed: 1,
        }
    }
}

/// 1 byte, then `step` more each time, up to `largest`. Even steps give every range of sizes the same weight in the
/// line.
pub fn stepped_sizes(largest: Bytes, step: Bytes) -> Vec<Bytes> {
    (1..=largest.0)
        .step_by(step.0.max(1) as usize)
        .map(Bytes)
        .collect()
}

/// What is known after a round.
#[derive(Debug)]
pub struct Round<'a> {
    /// Rounds so far, this one included, warm-up excluded.
    pub number: u32,
    /// Time since the start.
    pub elapsed: Time,
    /// This round's samples in the order of time.
    pub samples: &'a [(PrttPoint, Time)],
    /// The widest interval of a median at the last look, half of it as a share of the median.
    pub widest: Option<f64>,
}

/// What ended a measurement: precision, time, messages or the observer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// All medians are known well enough.
    Precise,
    /// The time is over.
    TimeOver,
    /// All messages that it may take were sent.
    BudgetSpent,
    /// The observer said so.
    Asked,
}

/// The round trips that were measured, and how well their medians are known.
#[derive(Debug, Clone, PartialEq)]
pub struct MeasuredRoundTrips {
    /// All samples, previous ones included.
    pub samples: PrttSamples,
    /// `d`: computing between two sends of a round trip.
    pub delay: Time,
    /// Sizes of the plan that were left out because rounds of all would not have fitted into its time.
    pub sizes_left_out: usize,
    /// Rounds that were measured, warm-up excluded.
    pub rounds: u32,
    /// Time that measuring took.
    pub elapsed: Time,
    /// What ended the measurement.
    pub stop: Stop,
    /// The widest interval of a median, half of it as a share of the median; infinite if a point has too few samples.
    pub widest: f64,
}

/// The measuring end. Goes on from `previous` samples, and calls `observe` after each round.
///
/// # Errors
/// A plan that cannot be carried out, a connection that fails, or an other end that does not take part.
pub fn measure(
    transport: &mut impl Transport,
    plan: &PrttPlan,
    previous: PrttSamples,
    observe: &mut dyn FnMut(&Round) -> ControlFlow<()>,
) -> Result<MeasuredRoundTrips, PrttError> {
    check(plan)?;
    let start = transport.now();
    greet(transport)?;
    let mut client = Client::new(transport, largest(plan));
    let whole = plan;
    let plan = &fitted_into_time(&mut client, whole)?;
    let mut order = Resampler::from_seed(plan.seed);
    let mut points = points_without_delay(plan);
    let delay = warm_up(&mut client, plan, &mut order, &points)?;
    points.push(PrttPoint::new(plan.messages, delay, plan.sizes[0]));

    let mut samples = previous;
    let mut widest = None;
    let (mut number, mut longest) = (0u32, Time::ZERO);
    let stop = loop {
        order.shuffle(&mut points);
        let begin = client.transport.now();
        let taken = client.round(&points)?;
        longest = longest.max(client.transport.now() - begin);
        taken
            .iter()
            .for_each(|(point, time)| samples.push(*point, *time));
        number += 1;
        if number.is_multiple_of(ROUNDS_PER_LOOK) {
            widest = Some(widest_interval(&samples, &points, plan.level));
        }
        let elapsed = client.transport.now() - start;
        if observe(&Round {
            number,
            elapsed,
            samples: &taken,
            widest,
        })
        .is_break()
        {
            break Stop::Asked;
        }
        if number >= plan.min_rounds
            && widest.is_some_and(|width| width <= plan.relative_half_width)
        {
            break Stop::Precise;
        }
        if elapsed >= plan.max_time || elapsed + longest > plan.max_time * (1.0 + TIME_TOLERANCE) {
            break Stop::TimeOver;
        }
    };
    send_script(client.transport, &[])?;
    let elapsed = client.transport.now() - start;
    let widest = widest_interval(&samples, &points, plan.level);
    let sizes_left_out = whole.sizes.len() - plan.sizes.len();
    Ok(MeasuredRoundTrips {
        samples,
        delay,
        sizes_left_out,
        rounds: number,
        elapsed,
        stop,
        widest,
    })
}

/// The answering end: takes part in one session, or tells who asks for it the time, and returns when the measuring end is done.
///
/// # Errors
/// A connection that fails, or an other end that is no flowcast or asks too much.
pub fn answer(transport: &mut impl Transport) -> Result<(), PrttError> {
    if answer_greeting(transport)? == Guest::Clock {
        let wall = wall_clock(transport.now());
        return Ok(guide(transport, &wall)?);
    }
    let mut buffer = Vec::new();
    loop {
        let script = receive_script(transport)?;
        let Some(largest) = script.iter().map(|exchange| exchange.size.0 as usize).max() else {
            return Ok(());
        };
        buffer.resize(largest.max(buffer.len()), 0);
        for ScriptExchange { messages, size } in script {
            let message = &mut buffer[..size.0 as usize];
            for _ in 0..messages {
                transport.receive(message)?;
            }
            transport.send(message)?;
        }
    }
}

/// A round trip with the sender's own time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Timed {
    /// Number, size and delay of the messages.
    pub point: PrttPoint,
    /// From the start of the first message to the end of the answer.
    pub time: Time,
    /// Until the last message had left the sender's processor.
    pub busy: Time,
}

/// The measuring end and what it sends.
pub(crate) struct Client<'a, T> {
    pub transport: &'a mut T,
    buffer: Vec<u8>,
}

impl<'a, T: Transport> Client<'a, T> {
    /// Of messages up to a size.
    pub(crate) fn new(transport: &'a mut T, largest: Bytes) -> Client<'a, T> {
        Client {
            transport,
            buffer: vec![0x5a; largest.0 as usize],
        }
    }

    /// Takes each point once.
    pub(crate) fn round(
        &mut self,
        points: &[PrttPoint],
    ) -> Result<Vec<(PrttPoint, Time)>, PrttError> {
        Ok(self
            .timed_round(points)?
            .into_iter()
            .map(|timed| (timed.point, timed.time))
            .collect())
    }

    /// Takes each point once, with the sender's own time.
    pub(crate) fn timed_round(&mut self, points: &[PrttPoint]) -> Result<Vec<Timed>, PrttError> {
        let script: Vec<ScriptExchange> = points
            .iter()
            .map(|point| ScriptExchange {
                messages: point.messages,
                size: point.size,
            })
            .collect();
        send_script(self.transport, &script)?;
        points
            .iter()
            .map(|point| Ok(self.exchange(*point)?))
            .collect()
    }

    /// One `PRTT_{n,d}(s)`.
    fn exchange(&mut self, point: PrttPoint) -> Result<Timed, TransportError> {
        let message = &mut self.buffer[..point.size.0 as usize];
        let start = self.transport.now();
        self.transport.send(message)?;
        for _ in 1..point.messages {
            if point.delay > Time::ZERO {
                self.transport.compute(point.delay);
            }
            self.transport.send(message)?;
        }
        let busy = self.transport.now() - start;
        self.transport.receive(message)?;
        Ok(Timed {
            point,
            time: self.transport.now() - start,
            busy,
        })
    }
}

fn points_without_delay(plan: &PrttPlan) -> Vec<PrttPoint> {
    plan.sizes
        .iter()
        .flat_map(|size| {
            [
                PrttPoint::round_trip(*size),
                PrttPoint::new(plan.messages, Time::ZERO, *size),
            ]
        })
        .collect()
}

/// Fills caches and windows, and finds the delay if the plan leaves it open.
fn warm_up<T: Transport>(
    client: &mut Client<T>,
    plan: &PrttPlan,
    order: &mut Resampler,
    points: &[PrttPoint],
) -> Result<Time, PrttError> {
    let mut points = points.to_vec();
    let mut samples = PrttSamples::default();
    for round in 0..plan.warm_up_rounds.max(1) {
        order.shuffle(&mut points);
        let taken = client.round(&points)?;
        // The first round is the coldest; it counts only where it is the only one.
        if round > 0 || plan.warm_up_rounds <= 1 {
            taken
                .iter()
                .for_each(|(point, time)| samples.push(*point, *time));
        }
    }
    plan.delay.map_or_else(|| chosen_delay(plan, &samples), Ok)
}

/// The thesis' delay, and at least [`CLEAR_DELAY`] times what now spaces the smallest messages: on a network that is
/// as fast for large messages as for small ones, and on a busy machine, the first alone is too near to the gap.
fn chosen_delay(plan: &PrttPlan, samples: &PrttSamples) -> Result<Time, PrttError> {
    let (gap, per_byte) = preliminary_gap(samples)?;
    let [one, several] = [1, plan.messages].map(|messages| {
        let point = PrttPoint::new(messages, Time::ZERO, plan.sizes[0]);
        let times: Vec<f64> = samples
            .at(point)
            .iter()
            .map(|time| time.as_nanos())
            .collect();
        median(&times).map_err(FitError::from)
    });
    let spacing = Time::from_nanos((several? - one?) / f64::from(plan.messages - 1));
    let delay =
        delay_for_overhead(gap, per_byte, largest(plan)).max(spacing.max(gap) * CLEAR_DELAY);
    // Whole nanoseconds, as the clock counts them and as a samples file holds them.
    Ok(Time::from_nanos(
        delay.max(SHORTEST_DELAY).as_nanos().ceil(),
    ))
}

fn widest_interval(samples: &PrttSamples, points: &[PrttPoint], level: f64) -> f64 {
    points
        .iter()
        .map(|point| {
            let times: Vec<f64> = samples
                .at(*point)
                .iter()
                .map(|time| time.as_nanos())
                .collect();
            let interval = median_interval(&times, level).ok().flatten();
            interval.map_or(f64::INFINITY, |interval| interval.relative_half_width())
        })
        .fold(0.0, f64::max)
}

/// The largest size of a plan.
pub(crate) fn largest(plan: &PrttPlan) -> Bytes {
    plan.sizes.iter().copied().max().unwrap_or_default()
}

pub(crate) fn wrong_plan(
    field: &'static str,
    found: String,
    expected: &str,
) -> Result<(), PrttError> {
    Err(PrttError::Plan {
        field,
        found,
        expected: expected.to_owned(),
    })
}

fn check(plan: &PrttPlan) -> Result<(), PrttError> {
    let ascending = plan.sizes.is_sorted_by(|low, high| low < high);
    if plan.sizes.len() < 2 || plan.sizes.len() > 10_000 || !ascending {
        return wrong_plan(
            "sizes",
            format!("{} sizes", plan.sizes.len()),
            "2 to 10000 different sizes in ascending order",
        );
    }
    if plan.sizes[0] == Bytes(0) || largest(plan) > MAX_SIZE {
        return wrong_plan(
            "sizes",
            format!("{} to {}", plan.sizes[0], largest(plan)),
            "sizes from 1 B to 64 MiB",
        );
    }
    if !(2..=MAX_MESSAGES).contains(&plan.messages) {
        return wrong_plan("messages", plan.messages.to_string(), "2 to 4096");
    }
    if plan.delay.is_some_and(|delay| delay <= Time::ZERO) {
        return wrong_plan("delay", "0".into(), "a time above 0");
    }
    if plan.max_time <= Time::ZERO {
        return wrong_plan("max-time", plan.max_time.to_string(), "a time above 0");
    }
    if !(plan.level > 0.0 && plan.level < 1.0) {
        return wrong_plan("level", plan.level.to_string(), "a number between 0 and 1");
    }
    Ok(())
}
