//! Measurement of LogGP parameters within a budget. The next round trips are those that narrow the intervals most for their
//! cost ([`flowcast_fit::bursts`]).
//!
//! The first parameters come from a few round trips of three sizes, with one message and with short bursts. Then batches
//! follow. Each batch is chosen from all samples so far and measured in a random order, until every interval is narrow
//! enough or the budget is spent. The answering end is the same as for [`crate::prtt`]. A burst has at most `in_flight`
//! bytes, and the next burst begins only after the answer, so the load is bounded and known. A run may continue after the
//! round trips of an earlier run. Their cost is then included.

use std::ops::ControlFlow;

use flowcast_fit::{
    bursts::{
        BurstFit,
        choice::{Room, next_points},
        fit_bursts,
    },
    prtt::PrttPoint,
    samples::PrttSamples,
};
use flowcast_statistics::resampling::Resampler;
use flowcast_units::{Bytes, Time};

use crate::{
    prtt::{Client, PrttError, Stop, Timed, require, require_time},
    script::{MAX_SIZE, greet, send_script},
    transport::Transport,
};

/// Round trips of each point of the first batch, and plain round trips of the smallest size.
const FIRST: (usize, usize) = (3, 8);
/// Bursts of each length in the first batch.
const FIRST_BURSTS: usize = 2;
/// Points of a batch; each is measured twice.
const BATCH: usize = 4;
/// Messages of a batch that belong to no experiment: its script and the answer to the script.
const SCRIPT_MESSAGES: u32 = 3;
/// Payload of a TCP segment over Ethernet, in bytes.
const SEGMENT: u64 = 1448;
/// Largest share of the time for a single round trip of the largest size.
const LARGEST_PART: f64 = 0.005;
/// Delay that reveals the overhead, as a multiple of the spacing of messages without delay.
const DELAYS: f64 = 4.0;
/// Fewest round trips with which a result can count as precise.
const FEWEST: usize = 40;
/// Fewest messages of a plan: enough for the first batch and two more.
const FEWEST_MESSAGES: u32 = 200;

/// Measurement with limited cost.
#[derive(Debug, Clone, PartialEq)]
pub struct BudgetPlan {
    /// Largest size of a message; a smaller one is used if time is short.
    pub largest: Bytes,
    /// Limit for the messages in both directions, including those of the protocol between the ends.
    pub messages: u32,
    /// Time limit, above 0, after which the measurement ends even without the precision. Defaults to 10 s.
    pub max_time: Time,
    /// Precision that ends the measurement: half of every parameter's interval, as a share of the parameter.
    pub precision: f64,
    /// Confidence level of the intervals.
    pub level: f64,
    /// Largest number of messages in a burst.
    pub most_in_a_row: u32,
    /// Largest number of bytes in a burst.
    pub in_flight: Bytes,
    /// Seed for the order of the round trips.
    pub seed: u64,
}

impl Default for BudgetPlan {
    fn default() -> BudgetPlan {
        BudgetPlan {
            largest: Bytes(1 << 16),
            messages: 2000,
            max_time: Time::from_seconds(10.0),
            precision: 0.01,
            level: 0.95,
            most_in_a_row: 512,
            in_flight: Bytes(1 << 18),
            seed: 1,
        }
    }
}

/// State of the measurement after a batch.
#[derive(Debug)]
pub struct BudgetBatch<'a> {
    /// Time since the start, including the round trips of an earlier run.
    pub elapsed: Time,
    /// Messages since the start, including the round trips of an earlier run.
    pub messages: u32,
    /// Round trips of this batch, in chronological order.
    pub taken: &'a [Timed],
    /// Parameters estimated from all batches so far.
    pub fit: Option<&'a BurstFit>,
}

/// Results of a measurement and their cost.
#[derive(Debug, Clone, PartialEq)]
pub struct BudgetedRun {
    /// All round trips, in the order in which they were measured.
    pub samples: PrttSamples,
    /// Estimated parameters; `None` if the samples do not show the gap.
    pub fit: Option<BurstFit>,
    /// Number of messages in both directions.
    pub messages: u32,
    /// Number of bytes in both directions.
    pub bytes: Bytes,
    /// Size of the largest burst, in bytes, which bounds the bytes in flight.
    pub most_in_flight: Bytes,
    /// Time that the measurement took.
    pub elapsed: Time,
    /// Limit that ended the measurement, or the required precision.
    pub stop: Stop,
}

/// Runs the measuring end. Continues after `previous`, the timed round trips of an earlier run, and calls `observe` after
/// each batch.
///
/// # Errors
/// An invalid plan, a failed connection, or another end that does not take part.
pub fn measure_budgeted(
    transport: &mut impl Transport,
    plan: &BudgetPlan,
    previous: PrttSamples,
    observe: &mut dyn FnMut(&BudgetBatch) -> ControlFlow<()>,
) -> Result<BudgetedRun, PrttError> {
    check(plan)?;
    let start = transport.now()
        - previous
            .points()
            .flat_map(|(_, times)| times)
            .copied()
            .sum::<Time>();
    greet(transport)?;
    let client = Client::new(transport, plan.largest);
    let mut run = BudgetRun {
        client,
        order: Resampler::from_seed(plan.seed),
        plan,
        start,
        done: BudgetedRun::after(previous),
        observe,
    };
    let (room, mut stop) = run.first_batch()?;
    while stop.is_none() {
        stop = run.batch(&room)?;
    }
    send_script(run.client.transport, &[])?;
    run.done.messages += 1;
    run.done.elapsed = run.client.transport.now() - start;
    run.done.stop = stop.unwrap_or(Stop::Asked);
    Ok(run.done)
}

impl BudgetedRun {
    /// Returns the state before the first batch, with the greetings and the cost of earlier round trips.
    fn after(previous: PrttSamples) -> BudgetedRun {
        let mut done = BudgetedRun {
            samples: PrttSamples::default(),
            fit: None,
            messages: 2,
            bytes: Bytes(0),
            most_in_flight: Bytes(0),
            elapsed: Time::ZERO,
            stop: Stop::Asked,
        };
        for (point, times) in previous.points() {
            times.iter().for_each(|_| done.count(&point));
        }
        BudgetedRun {
            samples: previous,
            ..done
        }
    }

    fn count(&mut self, point: &PrttPoint) {
        self.messages += point.messages + 1;
        self.bytes.0 += u64::from(point.messages + 1) * point.size.0;
        self.most_in_flight = self
            .most_in_flight
            .max(Bytes(u64::from(point.messages) * point.size.0));
    }
}

fn check(plan: &BudgetPlan) -> Result<(), PrttError> {
    require(
        (Bytes(4096)..=MAX_SIZE).contains(&plan.largest),
        "max-size",
        plan.largest,
        "a size from 4 KiB to 64 MiB",
    )?;
    require(
        plan.messages >= FEWEST_MESSAGES,
        "most-messages",
        plan.messages,
        "200 or more",
    )?;
    require_time("budget", plan.max_time)?;
    require(
        plan.precision > 0.0 && plan.precision < 1.0,
        "precision",
        plan.precision,
        "a fraction between 0 and 1",
    )
}

/// Returns bursts of two lengths for the smallest size, for a segment and for the largest size.
fn first_bursts(room: &Room) -> impl Iterator<Item = PrttPoint> {
    let sizes = [
        room.sizes[0],
        Bytes(SEGMENT),
        *room.sizes.last().expect("there is a size"),
    ];
    sizes.into_iter().flat_map(move |size| {
        room.bursts(size)
            .take(2)
            .map(move |messages| PrttPoint::new(messages, Time::ZERO, size))
    })
}

fn shortest(samples: &PrttSamples, point: PrttPoint) -> Option<Time> {
    samples.at(point).iter().copied().reduce(Time::min)
}

struct BudgetRun<'a, T> {
    client: Client<'a, T>,
    order: Resampler,
    plan: &'a BudgetPlan,
    start: Time,
    done: BudgetedRun,
    observe: &'a mut dyn FnMut(&BudgetBatch) -> ControlFlow<()>,
}

impl<T: Transport> BudgetRun<'_, T> {
    /// Warms up and measures the points that the first choice requires.
    fn first_batch(&mut self) -> Result<(Room, Option<Stop>), PrttError> {
        let smallest = Bytes(1);
        let plain = PrttPoint::round_trip;
        let sizes = [smallest, Bytes(SEGMENT)];
        // Caches and windows are cold at first, so these samples are dropped.
        let cold = self.take(&[
            plain(smallest),
            plain(sizes[1]),
            plain(smallest),
            plain(sizes[1]),
        ])?;
        // Either of the two may have been interrupted.
        let [short, long] = [0, 1].map(|at| cold[at].time.min(cold[at + 2].time));
        let per_byte = (long - short).as_nanos().max(0.0) / (2 * (sizes[1].0 - 1)) as f64;
        let room = self.room(per_byte);
        if !self.done.samples.is_empty() {
            return Ok((room, self.look()));
        }
        let largest = *room.sizes.last().expect("there is a size");
        let mut points = vec![plain(smallest); FIRST.1];
        for size in [sizes[1], largest] {
            points.extend([plain(size); FIRST.0]);
        }
        points.extend(first_bursts(&room).flat_map(|burst| [burst; FIRST_BURSTS]));
        Ok((room, self.keep(points)?))
    }

    /// Returns the sizes and the limits for a choice. From 64 bytes on, each size is roughly four times the previous one.
    /// The largest size leaves time for other bursts.
    fn room(&self, per_byte: f64) -> Room {
        let plan = self.plan;
        let affordable = plan.max_time.as_nanos() * LARGEST_PART / per_byte.max(1e-3);
        let largest = Bytes(
            (affordable as u64)
                .clamp(4096, plan.largest.0.max(4096))
                .min(plan.largest.0),
        );
        let mut sizes: Vec<Bytes> = [1, 64, 256, SEGMENT, 4096, 16_384].map(Bytes).to_vec();
        sizes.retain(|size| *size < largest);
        sizes.push(largest);
        let BudgetedRun { messages, .. } = self.done;
        Room {
            sizes,
            most_messages: plan.most_in_a_row,
            in_flight: plan.in_flight,
            messages: plan.messages.saturating_sub(messages).max(1),
            time: plan.max_time,
            precision: plan.precision,
        }
    }

    fn batch(&mut self, room: &Room) -> Result<Option<Stop>, PrttError> {
        let mut points = match &self.done.fit {
            Some(fit) => next_points(fit, &self.done.samples, room, BATCH),
            None => Vec::new(),
        };
        if points.is_empty() {
            // The samples do not show the gap yet. They may never do so if the overhead alone determines the spacing of
            // messages of every size.
            points = first_bursts(room).collect();
            points.push(PrttPoint::round_trip(room.sizes[0]));
            points.extend(self.delayed_burst(room));
        }
        let left = self
            .plan
            .messages
            .saturating_sub(self.done.messages + SCRIPT_MESSAGES + 1);
        let mut sum = 0;
        points.retain(|point| {
            // Each point is measured twice.
            let fits = sum + 2 * (point.messages + 1) <= left;
            sum += if fits { 2 * (point.messages + 1) } else { 0 };
            fits
        });
        let points = [&points[..], &points[..]].concat();
        if points.is_empty() {
            return Ok(Some(Stop::BudgetSpent));
        }
        self.keep(points)
    }

    /// Returns the shortest burst of the smallest size with a delay above the spacing of its messages. It shows
    /// [`flowcast_fit::loggp`] the overhead if no burst shows the gap.
    fn delayed_burst(&self, room: &Room) -> Option<PrttPoint> {
        let size = room.sizes[0];
        let messages = room.bursts(size).next()?;
        let samples = &self.done.samples;
        let burst = shortest(samples, PrttPoint::new(messages, Time::ZERO, size))?;
        let alone = shortest(samples, PrttPoint::round_trip(size))?;
        let spacing = (burst - alone) / f64::from(messages - 1);
        let delay = (spacing * DELAYS).max(Time::from_micros(1.0));
        Some(PrttPoint::new(messages, delay, size))
    }

    /// Measures the points in a random order, keeps the samples and evaluates them.
    fn keep(&mut self, mut points: Vec<PrttPoint>) -> Result<Option<Stop>, PrttError> {
        self.order.shuffle(&mut points);
        let taken = self.take(&points)?;
        for Timed { point, time, busy } in &taken {
            self.done.samples.push_timed(*point, *time, *busy);
        }
        let stop = self.look();
        let BudgetedRun {
            elapsed, messages, ..
        } = self.done;
        let batch = BudgetBatch {
            elapsed,
            messages,
            taken: &taken,
            fit: self.done.fit.as_ref(),
        };
        Ok(if (self.observe)(&batch).is_break() {
            Some(Stop::Asked)
        } else {
            stop
        })
    }

    /// Fits the parameters to all round trips so far. Returns the reason to stop, if there is one.
    fn look(&mut self) -> Option<Stop> {
        self.done.fit = fit_bursts(&self.done.samples, self.plan.level);
        self.done.elapsed = self.client.transport.now() - self.start;
        let narrow = self
            .done
            .fit
            .as_ref()
            .is_some_and(|fit| fit.widest() <= self.plan.precision);
        if narrow && self.done.samples.len() >= FEWEST {
            return Some(Stop::Precise);
        }
        (self.done.elapsed >= self.plan.max_time).then_some(Stop::TimeOver)
    }

    fn take(&mut self, points: &[PrttPoint]) -> Result<Vec<Timed>, PrttError> {
        self.done.messages += SCRIPT_MESSAGES;
        points.iter().for_each(|point| self.done.count(point));
        self.client.timed_round(points)
    }
}
