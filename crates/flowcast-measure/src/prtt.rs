//! Experiment that measures the parametrised round trip (Lichei, sections 3.2.1 and 3.4.3).
//!
//! The measuring end sends n messages with busy waiting between them, and the answering end answers the last one. A round
//! measures every point once, in a new random order, so drift affects all points alike. The first rounds warm up the path
//! and choose the delay. Rounds continue until the median of every point has a narrow interval or the time is over.
//!
//! The time limit is kept: two sizes are measured first and give the duration of a round. If eight rounds would exceed the
//! time, some sizes are left out at even distances. No round begins that would end more than a tenth too late.
//!
//! n is small on purpose: 16 messages of 64 KiB are a megabyte in flight, which buffers hold without drops. The method does
//! not need a saturated network, which would show queues instead of gaps.

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

/// Number of rounds between two checks of the intervals.
const ROUNDS_PER_LOOK: u32 = 8;
/// Smallest chosen delay, as a multiple of the spacing of the smallest messages.
const CLEAR_DELAY: f64 = 4.0;
/// Smallest chosen delay (10 us), even after a disturbed warm-up.
const SHORTEST_DELAY: Time = Time::from_nanos(10_000.0);

/// Largest overrun of the time limit, as a share of it.
pub const TIME_TOLERANCE: f64 = 0.1;

/// Plan of a measurement.
#[derive(Debug, Clone, PartialEq)]
pub struct PrttPlan {
    /// `n`: messages before the answer.
    pub messages: u32,
    /// `s`: at least two sizes.
    pub sizes: Vec<Bytes>,
    /// `d`; defaults to the larger of the gap of half the largest size and four times the gap of the smallest size, measured
    /// during the warm-up.
    pub delay: Option<Time>,
    /// Number of rounds whose samples are dropped.
    pub warm_up_rounds: u32,
    /// Fewest rounds before the precision can end the measurement.
    pub min_rounds: u32,
    /// Time limit. No round begins that would end more than [`TIME_TOLERANCE`] later.
    pub max_time: Time,
    /// Confidence level of the medians' intervals.
    pub level: f64,
    /// Required precision of a median: half of its interval, as a share of the median.
    pub relative_half_width: f64,
    /// Seed for the order of the points.
    pub seed: u64,
}

impl Default for PrttPlan {
    /// Plan of the thesis: 16 messages, sizes from 1 byte in steps of 2048 up to 64 KiB.
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

/// Returns the sizes 1 byte, `1 + step` and so on, up to `largest`. Even steps give every range of sizes the same weight in
/// the line.
pub fn stepped_sizes(largest: Bytes, step: Bytes) -> Vec<Bytes> {
    (1..=largest.0)
        .step_by(step.0.max(1) as usize)
        .map(Bytes)
        .collect()
}

/// State of the measurement after a round.
#[derive(Debug)]
pub struct Round<'a> {
    /// Number of rounds so far, including this one, without the warm-up.
    pub number: u32,
    /// Time since the start.
    pub elapsed: Time,
    /// Samples of this round, in chronological order.
    pub samples: &'a [(PrttPoint, Time)],
    /// Widest interval of a median at the last check: half of it, as a share of the median.
    pub widest: Option<f64>,
}

/// Reason for the end of a measurement: precision, time, messages or the observer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// All medians are known precisely enough.
    Precise,
    /// The time is over.
    TimeOver,
    /// The limit of messages was reached.
    BudgetSpent,
    /// The observer requested the end.
    Asked,
}

/// Measured round trips, and the precision of their medians.
#[derive(Debug, Clone, PartialEq)]
pub struct MeasuredRoundTrips {
    /// All samples, including previous ones.
    pub samples: PrttSamples,
    /// `d`: computation between two sends of a round trip.
    pub delay: Time,
    /// Number of the plan's sizes that were left out because rounds of all sizes would have exceeded the time.
    pub sizes_left_out: usize,
    /// Number of measured rounds, without the warm-up.
    pub rounds: u32,
    /// Duration of the measurement.
    pub elapsed: Time,
    /// Reason for the end of the measurement.
    pub stop: Stop,
    /// Widest interval of a median: half of it, as a share of the median; infinite if a point has too few samples.
    pub widest: f64,
}

/// Runs the measuring end. Continues from `previous` samples, and calls `observe` after each round.
///
/// # Errors
/// An invalid plan, a failed connection, or another end that does not take part.
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

/// Runs the answering end for one session, with round trips or with questions for the time, and returns when the other end
/// is done.
///
/// # Errors
/// A failed connection, or another end that is not flowcast or requests too much.
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

/// Round trip with the sender's own time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Timed {
    /// Number, size and delay of the messages.
    pub point: PrttPoint,
    /// Time from the start of the first message to the end of the answer.
    pub time: Time,
    /// Time until the last message had left the sender's processor.
    pub busy: Time,
}

/// Measuring end with its buffer for messages.
pub(crate) struct Client<'a, T> {
    pub transport: &'a mut T,
    buffer: Vec<u8>,
}

impl<'a, T: Transport> Client<'a, T> {
    /// Creates a client for messages up to a size.
    pub(crate) fn new(transport: &'a mut T, largest: Bytes) -> Client<'a, T> {
        Client {
            transport,
            buffer: vec![0x5a; largest.0 as usize],
        }
    }

    /// Measures each point once.
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

    /// Measures each point once. Each result has the time of the round trip and the time until the sender was free.
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

    /// Measures one `PRTT_{n,d}(s)`: sends n messages of size s with computation d between them, awaits the answer.
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

/// Fills caches and windows, and determines the delay if the plan leaves it open.
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
        // The first round is the coldest; it counts only if it is the only one.
        if round > 0 || plan.warm_up_rounds <= 1 {
            taken
                .iter()
                .for_each(|(point, time)| samples.push(*point, *time));
        }
    }
    plan.delay.map_or_else(|| chosen_delay(plan, &samples), Ok)
}

/// Returns the delay of the thesis, but at least [`CLEAR_DELAY`] times the observed spacing of the smallest messages. On a
/// network that is as fast for large messages as for small ones, and on a busy machine, the thesis' delay alone is too close
/// to the gap.
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
    // Clocks and samples files have whole nanoseconds.
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

/// Returns the largest size of a plan.
pub(crate) fn largest(plan: &PrttPlan) -> Bytes {
    plan.sizes.iter().copied().max().unwrap_or_default()
}

/// Refuses the field of a plan unless its condition holds.
pub(crate) fn require(
    holds: bool,
    field: &'static str,
    found: impl ToString,
    expected: &str,
) -> Result<(), PrttError> {
    if holds {
        return Ok(());
    }
    Err(PrttError::Plan {
        field,
        found: found.to_string(),
        expected: expected.to_owned(),
    })
}

pub(crate) fn require_messages(messages: u32) -> Result<(), PrttError> {
    let holds = (2..=MAX_MESSAGES).contains(&messages);
    require(holds, "messages", messages, "2 to 4096")
}

pub(crate) fn require_level(level: f64) -> Result<(), PrttError> {
    let holds = level > 0.0 && level < 1.0;
    require(holds, "level", level, "a probability between 0 and 1")
}

/// Refuses a time limit of 0.
pub(crate) fn require_time(field: &'static str, limit: Time) -> Result<(), PrttError> {
    require(limit > Time::ZERO, field, limit, "a time above 0")
}

fn check(plan: &PrttPlan) -> Result<(), PrttError> {
    let ascending = plan.sizes.is_sorted_by(|low, high| low < high);
    require(
        (2..=10_000).contains(&plan.sizes.len()) && ascending,
        "sizes",
        format_args!("{} sizes", plan.sizes.len()),
        "2 to 10000 different sizes in ascending order",
    )?;
    require(
        plan.sizes[0] > Bytes(0) && largest(plan) <= MAX_SIZE,
        "sizes",
        format_args!("{} to {}", plan.sizes[0], largest(plan)),
        "sizes from 1 B to 64 MiB",
    )?;
    require_messages(plan.messages)?;
    plan.delay
        .map_or(Ok(()), |delay| require_time("delay", delay))?;
    require_time("max-time", plan.max_time)?;
    require_level(plan.level)
}
