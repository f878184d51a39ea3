//! Time of one decision: `cargo bench -p flowcast --bench rails [ROUNDS]`.
//!
//! Every round times each scheduler once, one after the other, so that noise of the machine affects all of them equally. The
//! medians over the rounds are printed. Sizes and pauses between messages come from a table, so that neither the branch
//! predictor nor the compiler knows them.

use std::{hint::black_box, time::Instant as Clock};

use flowcast_network::loggp::LogGp;
use flowcast_scheduler::{
    Accounting, RailScheduler, RailSet,
    clock::{ClockArithmetic, Ticks},
    discipline::{BoxedScheduler, Discipline, SchedulerName},
    rules::{EarliestDelivery, Latency, Overlap, Vft},
    shared::SharedVirtualTime,
    turns::Shares,
    virtual_time::VirtualTime,
};
use flowcast_units::{Bytes, Time, TimePerByte};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

const DECISIONS: usize = 1 << 16;
const TABLE: usize = 1 << 12;
const RAILS: [usize; 3] = [2, 4, 16];

type Timed = (String, Box<dyn FnMut() -> f64>);

fn main() {
    let rounds = std::env::args()
        .skip(1)
        .find_map(|word| word.parse().ok())
        .unwrap_or(201);
    let messages = messages();
    for count in RAILS {
        let mut subjects = subjects(&rails(count), &messages);
        let mut samples = vec![Vec::with_capacity(rounds); subjects.len()];
        for _ in 0..rounds {
            for ((_, run), samples) in subjects.iter_mut().zip(&mut samples) {
                samples.push(run());
            }
        }
        println!(
            "{count} rails, median of {rounds} rounds of {DECISIONS} decisions, ns per decision (quartiles)"
        );
        for ((name, _), samples) in subjects.iter().zip(&mut samples) {
            samples.sort_by(f64::total_cmp);
            let at = |share: usize| samples[(samples.len() - 1) * share / 4];
            println!(
                "  {name:<44} {:>6.2}  ({:.2} to {:.2})",
                at(2),
                at(1),
                at(3)
            );
        }
    }
}

/// Pauses in nanoseconds and sizes in bytes.
fn messages() -> Vec<(u64, u64)> {
    let mut random = Pcg64Mcg::seed_from_u64(1);
    (0..TABLE)
        .map(|_| (random.random_range(0..4000), random.random_range(1..65536)))
        .collect()
}

/// Rails between the fastest and the slowest of the thesis.
fn rails(count: usize) -> Vec<LogGp> {
    let rail = |index: usize| {
        let slower = 1.0 + 7.0 * index as f64 / count as f64;
        LogGp {
            gap: Time::from_micros(1.4 * slower),
            gap_per_byte: TimePerByte::from_micros(0.00103 * slower),
            overhead: Time::from_micros(1.4),
            latency: Time::from_micros(2.82 * slower),
        }
    };
    (0..count).map(rail).collect()
}

fn subjects(rails: &[LogGp], messages: &[(u64, u64)]) -> Vec<Timed> {
    let mut list: Vec<Timed> = Vec::new();
    macro_rules! both_arithmetics {
        ($($rule:ident, $name:literal);*) => {$(
            list.push(subject(concat!($name, ", fixed point"), rule::<$rule, Ticks>(rails), ticks(messages)));
            list.push(subject(concat!($name, ", float"), rule::<$rule, Time>(rails), times(messages)));
        )*};
    }
    both_arithmetics!(EarliestDelivery, "earliest-delivery"; Latency, "latency"; Overlap, "overlap"; Vft, "vft");
    for discipline in [
        Discipline::RoundRobin,
        Discipline::WeightedRoundRobin,
        Discipline::WeightedFairQueuing,
        Discipline::VirtualTimeRoundRobin,
    ] {
        let shares = Shares::by_bandwidth(rails).expect("a share for each rail");
        let name = SchedulerName::new(discipline);
        let scheduler = name
            .scheduler::<Ticks>(rails, shares, ())
            .expect("rails and shares fit");
        list.push(subject(
            &format!("{name} (dynamic dispatch)"),
            Boxed(scheduler),
            ticks(messages),
        ));
    }
    list.push(shared(rails, ticks(messages)));
    list
}

fn rule<R: flowcast_scheduler::rules::ScoreRule, M: ClockArithmetic<Scale = ()>>(
    rails: &[LogGp],
) -> VirtualTime<R, M> {
    VirtualTime::new(rails, Accounting::FromTheClock, ()).expect("as many rails as allowed")
}

fn ticks(messages: &[(u64, u64)]) -> Vec<(Ticks, Bytes)> {
    messages
        .iter()
        .map(|(pause, size)| (Ticks::from_nanos(*pause), Bytes(*size)))
        .collect()
}

fn times(messages: &[(u64, u64)]) -> Vec<(Time, Bytes)> {
    messages
        .iter()
        .map(|(pause, size)| (Time::from_nanos(*pause as f64), Bytes(*size)))
        .collect()
}

/// A scheduler behind a pointer.
struct Boxed(BoxedScheduler<Ticks>);

impl RailScheduler<Ticks> for Boxed {
    fn pick(
        &mut self,
        now: Ticks,
        size: Bytes,
        usable: RailSet,
    ) -> Option<flowcast_scheduler::RailId> {
        self.0.pick(now, size, usable)
    }
    fn virtual_finish(&self, rail: flowcast_scheduler::RailId) -> Ticks {
        self.0.virtual_finish(rail)
    }
    fn restart_clock(&mut self, elapsed: Ticks) {
        self.0.restart_clock(elapsed);
    }
}

fn subject<M: ClockArithmetic>(
    name: &str,
    mut scheduler: impl RailScheduler<M> + 'static,
    messages: Vec<(M, Bytes)>,
) -> Timed {
    decisions(name, messages, move |now, size| {
        scheduler.pick(now, size, RailSet::ALL)
    })
}

fn shared(rails: &[LogGp], messages: Vec<(Ticks, Bytes)>) -> Timed {
    let scheduler =
        SharedVirtualTime::<EarliestDelivery>::new(rails).expect("as many rails as allowed");
    decisions(
        "earliest-delivery, shared by threads, one alone",
        messages,
        move |now, size| scheduler.pick(now, size, RailSet::ALL),
    )
}

/// Returns a measurement of the nanoseconds that a decision takes.
fn decisions<M: ClockArithmetic, R>(
    name: &str,
    messages: Vec<(M, Bytes)>,
    mut pick: impl FnMut(M, Bytes) -> R + 'static,
) -> Timed {
    let mut now = M::ZERO;
    let run = move || {
        let begin = Clock::now();
        for index in 0..DECISIONS {
            let (pause, size) = messages[index % TABLE];
            now = now.plus(pause);
            black_box(pick(now, size));
        }
        begin.elapsed().as_nanos() as f64 / DECISIONS as f64
    };
    (name.to_owned(), Box::new(run))
}
