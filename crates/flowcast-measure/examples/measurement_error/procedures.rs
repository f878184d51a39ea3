//! Procedures of the comparison, each run over a virtual cable.

use std::{ops::ControlFlow, thread};

use flowcast_fit::{
    loggp::{FitOptions, SizeChoice, fit_loggp},
    samples::PrttSamples,
};
use flowcast_measure::{
    budget::{BudgetPlan, measure_budgeted},
    prtt::{PrttPlan, answer, measure, stepped_sizes},
    transport::Transport,
    virtual_network::{VirtualEnd, connect_noisy},
};
use flowcast_network::loggp::LogGp;
use flowcast_statistics::sample::median_in_place;
use flowcast_units::{Bytes, Time};

use crate::cables::Cable;

/// Result of a procedure, in nanoseconds, and its cost.
pub(crate) struct Found {
    /// L, o, g and G; NaN if the procedure does not measure the parameter.
    pub(crate) values: [f64; 4],
    pub(crate) half_widths: [f64; 4],
    pub(crate) messages: u32,
    pub(crate) bytes: u64,
    pub(crate) seconds: f64,
}

impl Found {
    pub(crate) fn error(&self, truth: &[f64; 4], at: usize) -> f64 {
        let error = self.values[at] / truth[at] - 1.0;
        if error.is_nan() { f64::INFINITY } else { error }
    }

    pub(crate) fn worst(&self, truth: &[f64; 4]) -> f64 {
        (0..4)
            .map(|at| self.error(truth, at).abs())
            .fold(0.0, f64::max)
    }

    pub(crate) fn covers(&self, cable: &Cable, at: usize) -> bool {
        (self.values[at] - cable.truth()[at]).abs() <= self.half_widths[at]
    }
}

fn values(network: LogGp) -> [f64; 4] {
    let LogGp {
        latency,
        overhead,
        gap,
        gap_per_byte,
    } = network;
    [
        latency.as_nanos(),
        overhead.as_nanos(),
        gap.as_nanos(),
        gap_per_byte.as_nanos(),
    ]
}

/// Runs a client against the answering end.
fn over<R: Send>(cable: &Cable, seed: u64, client: impl FnOnce(&mut VirtualEnd) -> R) -> R {
    let (mut one, mut other) = connect_noisy(cable.network(), cable.noise(), seed);
    thread::scope(|scope| {
        scope.spawn(move || answer(&mut other));
        client(&mut one)
    })
}

pub(crate) fn budgeted(cable: &Cable, plan: &BudgetPlan) -> Found {
    let done = over(cable, plan.seed, |end| {
        measure_budgeted(end, plan, PrttSamples::default(), &mut |_| {
            ControlFlow::Continue(())
        })
        .expect("it measures")
    });
    let fit = done.fit;
    Found {
        values: fit
            .as_ref()
            .map_or([f64::NAN; 4], |fit| fit.parameters.as_nanos()),
        half_widths: fit.as_ref().map_or([0.0; 4], |fit| fit.half_widths),
        messages: done.messages,
        bytes: done.bytes.0,
        seconds: done.elapsed.as_seconds(),
    }
}

/// Runs Netgauge's pattern `loggp` (Hoefler, Lichei and Rehm, "Low-Overhead LogGP Parameter Assessment for Modern
/// Interconnection Networks", 2007): 16 messages, sizes in steps of 1 KiB up to 8 KiB, 100 times each, one line through all
/// sizes.
pub(crate) fn netgauge(cable: &Cable, seed: u64) -> Found {
    let sizes = stepped_sizes(Bytes(8192), Bytes(1024));
    let plan = PrttPlan {
        sizes,
        min_rounds: 100,
        relative_half_width: f64::INFINITY,
        warm_up_rounds: 1,
        max_time: Time::from_seconds(1e4),
        seed,
        ..PrttPlan::default()
    };
    let done = over(cable, seed, |end| {
        measure(end, &plan, PrttSamples::default(), &mut |_| {
            ControlFlow::Continue(())
        })
        .expect("it measures")
    });
    let options = FitOptions {
        replicates: 0,
        sizes: SizeChoice::Every,
        ..FitOptions::default()
    };
    let found =
        fit_loggp(&done.samples, &options).map_or([f64::NAN; 4], |fit| values(fit.parameters));
    let points = done
        .samples
        .points()
        .flat_map(|(point, times)| times.iter().map(move |_| point));
    let (messages, bytes) = points.fold((0, 0), |(messages, bytes), point| {
        (
            messages + point.messages + 1,
            bytes + u64::from(point.messages + 1) * point.size.0,
        )
    });
    Found {
        values: found,
        half_widths: [0.0; 4],
        messages,
        bytes,
        seconds: done.elapsed.as_seconds(),
    }
}

/// Runs Kielmann, Bal and Verstoep's procedure ("Fast Measurement of LogP Parameters for Message Passing Platforms", 2000;
/// Lichei, section 3.1.3). `g(0)` comes from messages in a row, whose number is doubled until the gap changes by less than 1
/// %. `o_s` comes from the send call. `g(s)` comes from round trips: `g(s) = g(0) + (RTT(s) - RTT(0))/2`, because answers
/// are as long as messages here. `L = RTT(0)/2 - g(0)`. LogGP's `G` is then the slope of `g(s)`, and its L is PLogP's L plus
/// `g(0)`, minus both overheads.
pub(crate) fn kielmann(cable: &Cable, seed: u64) -> Found {
    let (mut one, mut other) = connect_noisy(cable.network(), cable.noise(), seed);
    thread::scope(|scope| {
        scope.spawn(move || echo(&mut other));
        let mut count = Count {
            messages: 0,
            bytes: 0,
        };
        let found = kielmann_over(&mut one, &mut count);
        one.send(&0u64.to_le_bytes())
            .expect("the other end listens");
        Found {
            values: found,
            half_widths: [0.0; 4],
            messages: count.messages,
            bytes: count.bytes,
            seconds: one.now().as_seconds(),
        }
    })
}

struct Count {
    messages: u32,
    bytes: u64,
}

/// Number of round trips, whose median counts.
const ROUND_TRIPS: usize = 10;
const LARGEST: u64 = 8192;
const MOST: u64 = 1 << 17;

fn kielmann_over(end: &mut VirtualEnd, count: &mut Count) -> [f64; 4] {
    let mut typical = |size: u64, number: u64| {
        let repeated = if number == 1 { ROUND_TRIPS } else { 1 };
        let (mut times, mut busy): (Vec<f64>, Vec<f64>) = (0..repeated)
            .map(|_| flood(end, count, size, number))
            .unzip();
        (median_in_place(&mut times), median_in_place(&mut busy))
    };
    let (first, overhead) = typical(1, 1);
    let largest = typical(LARGEST, 1).0;
    let (mut number, mut gap) = (16, typical(1, 16).0 / 16.0);
    while number < MOST {
        number *= 2;
        let next = typical(1, number).0 / number as f64;
        let change = (next / gap - 1.0).abs();
        gap = next;
        if change < 0.01 {
            break;
        }
    }
    let gap_per_byte = (largest - first) / 2.0 / (LARGEST - 1) as f64;
    [first / 2.0 - 2.0 * overhead, overhead, gap, gap_per_byte]
}

/// Returns the time of `number` messages and one answer, and the time of the first send call.
fn flood(end: &mut VirtualEnd, count: &mut Count, size: u64, number: u64) -> (f64, f64) {
    end.send(&(number << 32 | size).to_le_bytes())
        .expect("the other end listens");
    end.receive(&mut [0; 1]).expect("the other end answers");
    let mut message = vec![0; size as usize];
    let start = end.now();
    end.send(&message).expect("the other end listens");
    let busy = end.now() - start;
    (1..number).for_each(|_| end.send(&message).expect("the other end listens"));
    end.receive(&mut message).expect("the other end answers");
    count.messages += number as u32 + 3;
    count.bytes += (number + 1) * size;
    ((end.now() - start).as_nanos(), busy.as_nanos())
}

/// Answers floods until an empty one arrives.
fn echo(end: &mut VirtualEnd) {
    let mut order = [0; 8];
    while end.receive(&mut order).is_ok() {
        let order = u64::from_le_bytes(order);
        if order == 0 {
            return;
        }
        let mut message = vec![0; (order & 0xffff_ffff) as usize];
        end.send(&[1]).expect("the other end listens");
        (0..order >> 32).for_each(|_| end.receive(&mut message).expect("messages follow"));
        end.send(&message).expect("the other end listens");
    }
}
