//! Fate of each frame in one direction, in virtual time.

use std::collections::VecDeque;

use flowcast_units::{Bytes, Time};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use super::spec::{DirectionSpec, Distribution};
use crate::lab::nominal::FRAME_OVERHEAD;

/// Fate of a frame.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Fate {
    /// The frame arrives at this instant of virtual time.
    Delivered(Time),
    /// The frame finds the queue full and takes no time on the wire.
    Overflowed,
    /// The frame is transmitted and lost on the wire.
    Lost,
}

/// One direction of a link emulator: a queue with limited bytes before a wire with a constant rate.
///
/// The seed alone determines jitter and loss of the k-th frame, independently of its time and of the fate of earlier frames.
#[derive(Debug)]
pub struct VirtualQueue {
    spec: DirectionSpec,
    random: Pcg64,
    /// Departure times and sizes of the frames that have not departed.
    waiting: VecDeque<(Time, Bytes)>,
    waiting_bytes: u64,
    last_arrival: Time,
    free: Time,
    last_delivery: Time,
}

impl VirtualQueue {
    /// Creates an empty queue, free from virtual time 0 on.
    pub fn new(spec: DirectionSpec) -> VirtualQueue {
        VirtualQueue {
            spec,
            random: Pcg64::seed_from_u64(spec.seed),
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            last_arrival: Time::ZERO,
            free: Time::ZERO,
            last_delivery: Time::ZERO,
        }
    }

    /// Returns the fate of a frame that arrives. `size` includes its header. Calls must be in chronological order.
    pub fn arrive(&mut self, at: Time, size: Bytes) -> Fate {
        let (lost, jitter) = self.draw();
        self.last_arrival = at.max(self.last_arrival);
        self.let_depart();
        if self.waiting_bytes + size.0 > self.spec.queue.0 {
            return Fate::Overflowed;
        }
        self.free = self.free.max(self.last_arrival) + wire_time(&self.spec, size);
        self.waiting.push_back((self.free, size));
        self.waiting_bytes += size.0;
        if lost {
            return Fate::Lost;
        }
        self.last_delivery = (self.free + self.spec.delay + jitter).max(self.last_delivery);
        Fate::Delivered(self.last_delivery)
    }

    fn let_depart(&mut self) {
        while let Some((departure, size)) = self.waiting.front().copied()
            && departure <= self.last_arrival
        {
            self.waiting.pop_front();
            self.waiting_bytes -= size.0;
        }
    }

    fn draw(&mut self) -> (bool, Time) {
        let (loss, jitter): (f64, f64) = (self.random.random(), self.random.random());
        let scale = match self.spec.distribution {
            Distribution::Uniform => jitter,
            Distribution::Exponential => -(1.0 - jitter).ln(),
        };
        (loss < self.spec.loss, self.spec.jitter * scale)
    }
}

/// Returns the time that a frame occupies the wire, including Ethernet's overhead for each frame.
pub(super) fn wire_time(spec: &DirectionSpec, size: Bytes) -> Time {
    spec.rate.time_for(Bytes(size.0 + FRAME_OVERHEAD))
}

#[cfg(test)]
mod tests {
    use flowcast_units::Rate;
    use proptest::prelude::*;

    use super::*;

    /// 1 byte per nanosecond and 1 us of delay.
    fn plain() -> DirectionSpec {
        DirectionSpec {
            rate: Rate::from_bytes_per_second(1e9),
            delay: Time::from_micros(1.0),
            jitter: Time::ZERO,
            distribution: Distribution::Uniform,
            queue: Bytes(3000),
            loss: 0.0,
            seed: 1,
        }
    }

    fn nanos(nanos: u32) -> Time {
        Time::from_nanos(f64::from(nanos))
    }

    #[test]
    fn frames_wait_for_each_other_and_not_for_an_idle_wire() {
        let mut queue = VirtualQueue::new(plain());
        assert_eq!(
            queue.arrive(nanos(0), Bytes(976)),
            Fate::Delivered(nanos(2000))
        );
        assert_eq!(
            queue.arrive(nanos(500), Bytes(76)),
            Fate::Delivered(nanos(2100))
        );
        assert_eq!(
            queue.arrive(nanos(5000), Bytes(76)),
            Fate::Delivered(nanos(6100))
        );
    }

    #[test]
    fn a_frame_that_does_not_fit_is_dropped_until_one_has_departed() {
        let mut queue = VirtualQueue::new(plain());
        for _ in 0..3 {
            assert!(matches!(
                queue.arrive(nanos(0), Bytes(1000)),
                Fate::Delivered(_)
            ));
        }
        assert_eq!(queue.arrive(nanos(1023), Bytes(1000)), Fate::Overflowed);
        assert_eq!(
            queue.arrive(nanos(1024), Bytes(1000)),
            Fate::Delivered(nanos(4 * 1024 + 1000))
        );
    }

    /// Sends frames one at a time. Returns the number of lost frames and the mean delay beyond the delay of the wire.
    fn drawn(spec: DirectionSpec) -> (usize, f64) {
        let mut queue = VirtualQueue::new(spec);
        let fates: Vec<Fate> = (0..20_000)
            .map(|k| queue.arrive(nanos(100_000 * k), Bytes(76)))
            .collect();
        let late = fates.iter().enumerate().filter_map(|(k, fate)| match fate {
            Fate::Delivered(at) => Some((*at - nanos(100_000 * k as u32) - nanos(1100)).as_nanos()),
            _ => None,
        });
        let late: Vec<f64> = late.collect();
        (
            fates.len() - late.len(),
            late.iter().sum::<f64>() / late.len() as f64,
        )
    }

    #[test]
    fn losses_and_jitter_match_the_specification_and_depend_only_on_the_seed() {
        let uniform = DirectionSpec {
            loss: 0.1,
            jitter: nanos(10_000),
            ..plain()
        };
        let (lost, jitter) = drawn(uniform);
        // Five standard deviations.
        assert!((1788..2212).contains(&lost), "{lost}");
        assert!((jitter - 5000.0).abs() < 5.0 * 2887.0 / 134.0, "{jitter}");
        assert_eq!(drawn(uniform), (lost, jitter));
        assert_ne!(drawn(DirectionSpec { seed: 2, ..uniform }), (lost, jitter));
        let (_, jitter) = drawn(DirectionSpec {
            distribution: Distribution::Exponential,
            ..uniform
        });
        assert!(
            (jitter - 10_000.0).abs() < 5.0 * 10_000.0 / 134.0,
            "{jitter}"
        );
    }

    /// Computes the same fates from the definition: each frame considers all frames before it.
    fn reference(spec: DirectionSpec, frames: &[(Time, Bytes)]) -> Vec<Fate> {
        let mut random = Pcg64::seed_from_u64(spec.seed);
        let mut departures: Vec<(Time, Bytes)> = Vec::new();
        let mut fates: Vec<Fate> = Vec::new();
        for (at, size) in frames {
            let lost = random.random::<f64>() < spec.loss;
            let jitter = spec.jitter * random.random::<f64>();
            let queued: u64 = departures
                .iter()
                .filter(|(departure, _)| departure > at)
                .map(|(_, size)| size.0)
                .sum();
            if queued + size.0 > spec.queue.0 {
                fates.push(Fate::Overflowed);
                continue;
            }
            let start = departures
                .iter()
                .map(|(departure, _)| *departure)
                .fold(*at, Time::max);
            let departure = start + spec.rate.time_for(Bytes(size.0 + 24));
            departures.push((departure, *size));
            let before = fates.iter().filter_map(|fate| {
                if let Fate::Delivered(time) = fate {
                    Some(*time)
                } else {
                    None
                }
            });
            let before = before.fold(Time::ZERO, Time::max);
            let delivery = (departure + spec.delay + jitter).max(before);
            fates.push(if lost {
                Fate::Lost
            } else {
                Fate::Delivered(delivery)
            });
        }
        fates
    }

    fn frames() -> impl Strategy<Value = Vec<(Time, Bytes)>> {
        prop::collection::vec((0..3000u32, 42..1515u64), 1..120).prop_map(|gaps| {
            let mut at = 0;
            gaps.iter()
                .map(|(gap, size)| {
                    at += gap;
                    (nanos(at), Bytes(*size))
                })
                .collect()
        })
    }

    fn specs() -> impl Strategy<Value = DirectionSpec> {
        (
            1..20u32,
            0..5000u32,
            0..4000u32,
            3000..9000u64,
            0.0..0.4,
            0..9u64,
        )
            .prop_map(|(rate, delay, jitter, queue, loss, seed)| DirectionSpec {
                rate: Rate::from_bytes_per_second(f64::from(rate) * 1e8),
                delay: nanos(delay),
                jitter: nanos(jitter),
                queue: Bytes(queue),
                loss,
                seed,
                ..plain()
            })
    }

    proptest! {
        #[test]
        fn the_queue_matches_its_definition(spec in specs(), frames in frames()) {
            let mut queue = VirtualQueue::new(spec);
            let fates: Vec<Fate> = frames.iter().map(|(at, size)| queue.arrive(*at, *size)).collect();
            prop_assert_eq!(&fates, &reference(spec, &frames));
        }

        #[test]
        fn no_frame_overtakes_another_and_none_beats_the_rate(spec in specs(), frames in frames()) {
            let mut queue = VirtualQueue::new(spec);
            let (mut last, mut carried) = (Time::ZERO, Time::ZERO);
            for (at, size) in &frames {
                let fate = queue.arrive(*at, *size);
                if fate != Fate::Overflowed {
                    carried += wire_time(&spec, *size);
                }
                if let Fate::Delivered(delivery) = fate {
                    prop_assert!(delivery >= last);
                    prop_assert!(delivery >= *at + wire_time(&spec, *size) + spec.delay);
                    // All bytes carried since the first arrival passed the wire one after the other.
                    let earliest = frames[0].0 + carried + spec.delay;
                    prop_assert!(delivery.as_nanos() >= earliest.as_nanos() - 1e-3);
                    last = delivery;
                }
            }
        }
    }
}
