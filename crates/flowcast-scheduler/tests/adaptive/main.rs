//! Rails that slow down to a tenth and recover, in virtual time, observed in each of the three ways.

mod emulated;
mod ordering;

use std::collections::VecDeque;

use emulated::{EmulatedRail, SpeedChange, Transfer};
use flowcast_network::loggp::LogGp;
use flowcast_scheduler::{
    RailId, RailScheduler, RailSet,
    adaptive::{Adaptive, AdaptiveRule, Completion},
    clock::{ClockArithmetic, Ticks},
    discipline::{Discipline, SchedulerName},
    split::SplitRule,
    turns::Shares,
};
use flowcast_units::{Bytes, Time, TimePerByte};
use ordering::OrderWitness;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

const MILLI: f64 = 1e6;

/// 100 Mbit/s with the overhead and latency of TCP.
fn hundred() -> LogGp {
    LogGp {
        gap: Time::from_micros(10.0),
        gap_per_byte: TimePerByte::from_nanos(80.0),
        overhead: Time::from_micros(6.0),
        latency: Time::from_micros(65.0),
    }
}

#[test]
fn a_rail_that_differs_from_its_parameters_is_measured_by_its_messages() {
    let mut adaptive = Adaptive::new(&[hundred(), hundred()], AdaptiveRule::default()).unwrap();
    let delay = hundred().overhead * 2.0 + hundred().latency;
    let ticks = |time: Time| Ticks::from_time(time, ());
    let mut now = Time::ZERO;
    let mut carry = |adaptive: &mut Adaptive, rail: u8, times: f64, count: u64| {
        for at in 0..count {
            let size = Bytes(20_000 + 30_000 * (at % 3));
            let took = (hundred().gap + hundred().gap_per_byte.time_for(Bytes(size.0 - 1))) * times;
            adaptive.give(RailId(rail), ticks(now), size);
            let seen = now + took + delay;
            adaptive.completed(
                RailId(rail),
                [Completion {
                    size,
                    given: ticks(now),
                    seen: ticks(seen),
                }],
            );
            now = seen + Time::from_micros(50.0);
        }
    };
    carry(&mut adaptive, 0, 1.0, 500);
    carry(&mut adaptive, 1, 10.0, 40);
    assert_eq!(adaptive.remeasured(RailId(0)), None);
    let found = adaptive
        .remeasured(RailId(1))
        .expect("forty messages are enough");
    assert!(
        (found.gap_per_byte.as_nanos() / 800.0 - 1.0).abs() < 0.03,
        "{found:?}"
    );
    carry(&mut adaptive, 1, 1.0, 60);
    assert_eq!(
        adaptive.remeasured(RailId(1)),
        None,
        "the rail equals its new parameters"
    );
}

#[derive(Clone, Copy, PartialEq)]
enum Feedback {
    None,
    Completions,
    Queue,
    Inversions,
}

/// A message in flight.
#[derive(Clone, Copy)]
struct Sent {
    size: Bytes,
    given: Time,
    stamp: Ticks,
    transfer: Transfer,
}

/// A sender of bursts over two rails, the second of which changes.
struct World {
    scheduler: Adaptive,
    rails: [EmulatedRail; 2],
    sent: [VecDeque<Sent>; 2],
    unsent: [VecDeque<Sent>; 2],
    witness: OrderWitness,
    feedback: Feedback,
    log: Vec<(Time, RailId, Bytes)>,
}

impl World {
    fn new(feedback: Feedback, changes: Vec<SpeedChange>) -> World {
        let rule = AdaptiveRule {
            completion_delay: Time::from_micros(70.0),
            ..AdaptiveRule::default()
        };
        World {
            scheduler: Adaptive::new(&[hundred(); 2], rule).unwrap(),
            rails: [
                EmulatedRail::new(hundred(), vec![]),
                EmulatedRail::new(hundred(), changes),
            ],
            sent: Default::default(),
            unsent: Default::default(),
            witness: OrderWitness::new(Ticks::from_nanos(200_000)),
            feedback,
            log: Vec::new(),
        }
    }

    fn send(&mut self, now: Time, size: Bytes) {
        let tick = Ticks::from_time(now, ());
        let rail = self.scheduler.pick(tick, size, RailSet::ALL).unwrap();
        let transfer = self.rails[rail.index()].send(now, size);
        let one_way = hundred().overhead * 2.0 + hundred().latency;
        let stamp = self
            .scheduler
            .virtual_finish(rail)
            .plus(Ticks::from_time(one_way, ()));
        let sent = Sent {
            size,
            given: now,
            stamp,
            transfer,
        };
        self.sent[rail.index()].push_back(sent);
        self.unsent[rail.index()].push_back(sent);
        self.log.push((now, rail, size));
    }

    /// Reports everything that a sender can know at `now`.
    fn hear(&mut self, now: Time) {
        match self.feedback {
            Feedback::None => return,
            Feedback::Completions => self.hear_completions(now),
            Feedback::Queue => self.hear_queue(now),
            Feedback::Inversions => self.hear_inversions(now),
        }
        self.scheduler.overdue(Ticks::from_time(now, ()));
    }

    fn hear_completions(&mut self, now: Time) {
        for (rail, sent) in (0..).zip(&mut self.sent) {
            while let Some(first) = sent.front().copied() {
                let seen = first.transfer.delivered + Time::from_micros(70.0);
                if seen > now {
                    break;
                }
                sent.pop_front();
                let [given, seen] = [first.given, seen].map(|time| Ticks::from_time(time, ()));
                self.scheduler.completed(
                    RailId(rail),
                    [Completion {
                        size: first.size,
                        given,
                        seen,
                    }],
                );
            }
        }
    }

    fn hear_queue(&mut self, now: Time) {
        for (rail, queue) in (0..).zip(&mut self.unsent) {
            queue.retain(|sent| sent.transfer.left > now);
            let left = |sent: &Sent| {
                let lasts = (sent.transfer.left - sent.transfer.started).as_nanos();
                let to_go =
                    (sent.transfer.left - now.max(sent.transfer.started)).as_nanos() / lasts;
                (sent.size.0 as f64 * to_go) as u64
            };
            let bytes = queue.iter().map(left).sum();
            self.scheduler
                .drained(RailId(rail), Ticks::from_time(now, ()), Bytes(bytes));
        }
    }

    /// Reports the receiver's inversions, which arrive over the other rail 100 us later; here at the next opportunity.
    fn hear_inversions(&mut self, now: Time) {
        let mut arrived: Vec<(Time, u8, Ticks)> = Vec::new();
        for (rail, sent) in (0u8..).zip(&mut self.sent) {
            while let Some(first) = sent
                .front()
                .copied()
                .filter(|first| first.transfer.delivered <= now)
            {
                sent.pop_front();
                arrived.push((first.transfer.delivered, rail, first.stamp));
            }
        }
        arrived.sort_by_key(|(time, rail, _)| (*time, *rail));
        for (_, rail, stamp) in arrived {
            if let Some(inversion) = self.witness.arrived(RailId(rail), stamp) {
                self.scheduler.late(Ticks::from_time(now, ()), inversion);
            }
        }
    }

    /// Share of rail 1 in the bytes assigned between two times in milliseconds.
    fn share(&self, from: f64, to: f64) -> f64 {
        let within =
            |(at, _, _): &&(Time, RailId, Bytes)| (from..to).contains(&(at.as_nanos() / MILLI));
        let bytes = |rail: Option<RailId>| -> f64 {
            let taken = self
                .log
                .iter()
                .filter(within)
                .filter(|(_, on, _)| rail.is_none_or(|rail| rail == *on));
            taken.map(|(_, _, size)| size.0 as f64).sum()
        };
        bytes(Some(RailId(1))) / bytes(None)
    }
}

/// Sends `load` Mbit/s for 1.2 s in messages of 1 to 16 KiB; rail 1 runs at a tenth of its speed from 300 to 700 ms.
fn play(feedback: Feedback, load: f64, largest: u64) -> World {
    let change = |at: f64, slowdown| SpeedChange {
        at: Time::from_nanos(at * MILLI),
        slowdown,
    };
    let mut world = World::new(feedback, vec![change(300.0, 10.0), change(700.0, 1.0)]);
    let mut random = Pcg64Mcg::seed_from_u64(3);
    let mut now = 0.0;
    while now < 1200.0 * MILLI {
        let size = random.random_range(1024..=largest);
        let next = now + size as f64 * 8000.0 / load * (0.5 + random.random::<f64>());
        // A sender that polls every 0.2 ms, and before it sends.
        while now < next {
            now = (now + 0.2 * MILLI).min(next);
            world.hear(Time::from_nanos(now));
        }
        world.send(Time::from_nanos(now), Bytes(size));
    }
    world
}

#[test]
fn a_rail_at_a_tenth_loses_its_share_within_50_ms_and_regains_it() {
    for feedback in [Feedback::Completions, Feedback::Queue] {
        for (load, largest) in [
            (90.0, 16_384),
            (90.0, 65_536),
            (150.0, 4096),
            (150.0, 65_536),
            (60.0, 16_384),
        ] {
            let world = play(feedback, load, largest);
            let how = format!(
                "load {load}, up to {largest}, slowdown {}",
                world.scheduler.slowdown(RailId(1))
            );
            let before = world.share(0.0, 300.0);
            assert!(before > 0.15, "{before} before; {how}");
            let slow = world.share(350.0, 400.0);
            assert!(
                slow < 0.2 && slow < before / 2.0,
                "{slow} after 50 ms; {how}"
            );
            assert!(world.share(400.0, 700.0) < 0.15, "while slow; {how}");
            let again = world.share(750.0, 1000.0);
            // If one rail can carry the whole load, the split between equal rails is arbitrary.
            assert!(
                load < 100.0 || again > 0.9 * before,
                "{again} against {before} after the recovery; {how}"
            );
            assert!(
                world.scheduler.slowdown(RailId(1)) < 1.25,
                "after the recovery; {how}"
            );
        }
    }
}

#[test]
fn inversions_alone_take_the_share_of_a_slow_rail_within_50_ms() {
    let world = play(Feedback::Inversions, 150.0, 16_384);
    let before = world.share(0.0, 300.0);
    assert!(
        world.share(350.0, 400.0) < before / 2.0,
        "{} against {before}",
        world.share(350.0, 400.0)
    );
    assert!(
        world.share(400.0, 700.0) < 1.1 * before,
        "no parameters follow from them, so the share while slow is not exact"
    );
    assert!(world.share(750.0, 1000.0) > 0.75 * before);
}

#[test]
fn without_feedback_the_share_is_constant() {
    let world = play(Feedback::None, 90.0, 16_384);
    assert!(world.share(350.0, 700.0) > 0.9 * world.share(0.0, 300.0));
}

#[test]
fn choices_on_unchanged_rails_equal_those_of_earliest_delivery() {
    let rails = [
        hundred(),
        LogGp {
            gap_per_byte: TimePerByte::from_nanos(8.0),
            ..hundred()
        },
    ];
    let name = SchedulerName::new(Discipline::EarliestDelivery);
    let mut plain = name
        .scheduler::<Ticks>(&rails, Shares::by_bandwidth(&rails).unwrap(), ())
        .unwrap();
    let mut adaptive = Adaptive::new(&rails, AdaptiveRule::default()).unwrap();
    let mut random = Pcg64Mcg::seed_from_u64(5);
    let mut now = 0;
    for _ in 0..2000 {
        now += random.random_range(0..300_000);
        let size = Bytes(random.random_range(0..20_000));
        let choice = adaptive.pick(Ticks::from_nanos(now), size, RailSet::ALL);
        assert_eq!(
            choice,
            plain.pick(Ticks::from_nanos(now), size, RailSet::ALL)
        );
    }
}

#[test]
fn a_steady_rail_is_never_found_to_have_changed() {
    for feedback in [Feedback::Completions, Feedback::Queue] {
        let mut world = World::new(feedback, vec![]);
        let mut random = Pcg64Mcg::seed_from_u64(9);
        let mut now = 0.0;
        for _ in 0..20_000 {
            now += random.random_range(0.0..600_000.0);
            world.hear(Time::from_nanos(now));
            world.send(Time::from_nanos(now), Bytes(random.random_range(1..16_384)));
        }
        for rail in [RailId(0), RailId(1)] {
            let (changes, slowdown) = (
                world.scheduler.changes(rail),
                world.scheduler.slowdown(rail),
            );
            assert!(
                changes == 0 && (0.8..1.25).contains(&slowdown),
                "{changes} changes, slowdown {slowdown}"
            );
        }
    }
}

#[test]
fn long_messages_reported_together_are_no_change() {
    let mut adaptive = Adaptive::new(&[hundred()], AdaptiveRule::default()).unwrap();
    let size = Bytes(65_536);
    let spacing = hundred().spacing(size).as_nanos() as u64;
    (0..32).for_each(|_| assert!(adaptive.pick(Ticks::ZERO, size, RailSet::ALL).is_some()));
    for batch in 1..=8 {
        let seen = Ticks::from_nanos(77_000 + 4 * batch * spacing);
        adaptive.completed(
            RailId(0),
            [Completion {
                size,
                given: Ticks::ZERO,
                seen,
            }; 4],
        );
    }
    let (changes, slowdown) = (adaptive.changes(RailId(0)), adaptive.slowdown(RailId(0)));
    assert!(
        changes == 0 && (0.99..1.01).contains(&slowdown),
        "{changes} changes, slowdown {slowdown}"
    );
}

#[test]
fn a_long_message_is_divided_by_the_estimated_rates_of_the_rails() {
    let split = SplitRule {
        from: Bytes(1000),
        minimal_piece: Bytes(1000),
        ..SplitRule::default()
    };
    let mut adaptive = Adaptive::new(&[hundred(); 2], AdaptiveRule::default())
        .unwrap()
        .dividing(split);
    let pieces = |now: u64, adaptive: &mut Adaptive| -> Vec<u64> {
        let now = Ticks::from_nanos(now);
        let split = adaptive
            .divide(now, Bytes(1_000_000), RailSet::ALL)
            .unwrap();
        split
            .pieces()
            .for_each(|(rail, bytes)| adaptive.give(rail, now, bytes));
        split.pieces().map(|(_, bytes)| bytes.0).collect()
    };
    let equal = pieces(0, &mut adaptive);
    assert!(equal[0].abs_diff(equal[1]) < 200, "{equal:?}");
    for (rail, slowdown) in [(0, 1), (1, 10)] {
        let size = Bytes(equal[rail]);
        let seen = Ticks::from_nanos(77_000 + slowdown * hundred().spacing(size).as_nanos() as u64);
        adaptive.completed(
            RailId(rail as u8),
            [Completion {
                size,
                given: Ticks::ZERO,
                seen,
            }],
        );
    }
    let unequal = pieces(1_000_000_000, &mut adaptive);
    assert!(
        (unequal[1] as f64 / 1e6 - 1.0 / 11.0).abs() < 0.01,
        "{unequal:?}"
    );
}
