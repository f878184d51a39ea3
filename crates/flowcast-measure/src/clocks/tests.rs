//! Tests with the clocks of a simulated cluster. Offsets, drifts, jitter and asymmetric paths are known, and therefore the
//! errors as well.

use flowcast_units::{ClockLine, Rank, Time};
use proptest::prelude::*;

use super::*;
use crate::{
    tcp::{Waiting, loopback_pair},
    transport::{Transport, TransportError},
};

/// Path to a rank that answers immediately. The delay has a fixed part in each direction, and jitter.
struct Simulated<'a> {
    /// True time, in nanoseconds, which all paths of a cluster share.
    now: &'a mut f64,
    own: ClockLine,
    /// Guide's clock relative to true time, and rank 0's clock relative to the guide's.
    guide: (ClockLine, ClockLine),
    there: f64,
    back: f64,
    jitter: f64,
    chance: u64,
    answer: f64,
}

impl Simulated<'_> {
    /// Returns an exponential delay, as in queues.
    fn late(&mut self) -> f64 {
        // Knuth's generator (MMIX); its upper half is random enough.
        self.chance = self
            .chance
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let share = ((self.chance >> 32) as f64 + 0.5) / f64::from(u32::MAX);
        -self.jitter * share.min(1.0).ln()
    }
}

impl Transport for Simulated<'_> {
    fn now(&self) -> Time {
        self.own.read(Time::from_nanos(*self.now))
    }

    fn send(&mut self, message: &[u8]) -> Result<(), TransportError> {
        if message == [1] {
            *self.now += self.there + self.late();
            self.answer = self
                .guide
                .1
                .read(self.guide.0.read(Time::from_nanos(*self.now)))
                .as_nanos();
        }
        Ok(())
    }

    fn receive(&mut self, message: &mut [u8]) -> Result<(), TransportError> {
        *self.now += self.back + self.late();
        message.copy_from_slice(&self.answer.to_le_bytes());
        Ok(())
    }

    fn rest(&mut self, duration: Time) {
        *self.now += duration.as_nanos();
    }
}

/// Fixed parts of both directions and mean jitter, in nanoseconds.
type Way = (f64, f64, f64);

struct Cluster {
    /// Each clock relative to true time.
    clocks: Vec<ClockLine>,
    learned: Vec<LearnedClock>,
    now: f64,
}

impl Cluster {
    fn synchronised(clocks: Vec<ClockLine>, way: Way, seed: u64) -> Cluster {
        let mut cluster = Cluster {
            learned: vec![LearnedClock::itself(); clocks.len()],
            clocks,
            now: 1e9,
        };
        for round in rounds(cluster.clocks.len() as u32) {
            // The pairs of a round do not wait for each other.
            let begin = cluster.now;
            let ends = round
                .into_iter()
                .map(|pair| cluster.learn(pair, begin, way, seed));
            cluster.now = ends.fold(begin, f64::max);
        }
        cluster
    }

    /// Returns the time at which the pair is finished.
    fn learn(
        &mut self,
        (guide, learner): (Rank, Rank),
        begin: f64,
        (there, back, jitter): Way,
        seed: u64,
    ) -> f64 {
        let mut now = begin;
        let cluster = self;
        let known = cluster.learned[guide.index()];
        let mut way = Simulated {
            now: &mut now,
            own: cluster.clocks[learner.index()],
            guide: (cluster.clocks[guide.index()], known.line),
            there,
            back,
            jitter,
            chance: seed.rotate_left(learner.0) ^ u64::from(learner.0),
            answer: 0.0,
        };
        let plan = ClockPlan {
            bursts: 20,
            exchanges: 20,
            span: Time::from_seconds(1.0),
        };
        cluster.learned[learner.index()] = learn(&mut way, &plan).unwrap().behind(&known);
        now
    }

    /// Returns the current error of a rank's estimate of rank 0's clock.
    fn error(&self, rank: usize) -> Time {
        let now = Time::from_nanos(self.now);
        self.learned[rank].line.read(self.clocks[rank].read(now)) - self.clocks[0].read(now)
    }
}

fn clock((offset, ppm): (f64, f64)) -> ClockLine {
    ClockLine {
        at: Time::ZERO,
        offset: Time::from_seconds(offset),
        drift: ppm * 1e-6,
    }
}

#[test]
fn every_rank_learns_once_from_a_synchronised_rank() {
    assert_eq!(rounds(1), Vec::<Vec<(Rank, Rank)>>::new());
    assert_eq!(
        rounds(6)
            .iter()
            .map(|round: &Vec<(Rank, Rank)>| {
                round
                    .iter()
                    .map(|(guide, rank)| (guide.0, rank.0))
                    .collect::<Vec<_>>()
            })
            .collect::<Vec<_>>(),
        [vec![(0, 4)], vec![(0, 2)], vec![(0, 1), (2, 3), (4, 5)]]
    );
    for ranks in 1..200 {
        let mut known = vec![0];
        for round in rounds(ranks) {
            let before = known.clone();
            for (guide, learner) in round {
                assert!(
                    before.contains(&guide.0) && !known.contains(&learner.0),
                    "{guide} {learner} of {ranks}"
                );
                known.push(learner.0);
            }
        }
        known.sort_unstable();
        assert_eq!(known, (0..ranks).collect::<Vec<_>>());
        assert!(1 << rounds(ranks).len() >= ranks);
    }
}

#[test]
fn without_jitter_and_asymmetry_offset_and_drift_are_exact() {
    let clocks = [
        (0.0, 0.0),
        (3.0, 100.0),
        (-7.0, -100.0),
        (1e-3, 42.0),
        (0.5, -1.0),
    ]
    .map(clock);
    let cluster = Cluster::synchronised(clocks.to_vec(), (5000.0, 5000.0, 0.0), 1);
    for rank in 0..5 {
        // The guide's clock has another rate between the reading and the middle of the exchange: 200 ppm of 5 us.
        assert!(
            cluster.error(rank).as_nanos().abs() < 3.0,
            "{rank}: {}",
            cluster.error(rank)
        );
    }
    let drift = cluster.learned[1].line.drift;
    assert!((drift + 1e-4 / (1.0 + 1e-4)).abs() < 1e-9, "{drift}");
}

#[test]
fn the_remaining_error_is_the_asymmetry_and_it_is_reported() {
    let clocks = vec![clock((0.0, 0.0)), clock((1.0, 50.0))];
    let cluster = Cluster::synchronised(clocks, (9000.0, 5000.0, 0.0), 1);
    assert!(
        (cluster.error(1).as_nanos() - 2000.0).abs() < 3.0,
        "half of 4 us: {}",
        cluster.error(1)
    );
    assert!((cluster.learned[1].asymmetry.as_nanos() - 7000.0).abs() < 3.0);
}

#[test]
fn the_answering_end_of_round_trips_also_reports_its_time() {
    let (mut guide, mut learner) = loopback_pair(Waiting::Sleep).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || crate::prtt::answer(&mut guide).unwrap());
        greet_clock(&mut learner).unwrap();
        let plan = ClockPlan {
            bursts: 2,
            exchanges: 3,
            span: Time::from_micros(100.0),
        };
        let learned = learn(&mut learner, &plan).unwrap();
        // Both ends are on this machine, so they have the same wall clock.
        let own = wall_clock(learner.now());
        let apart = (learned.line.offset - own.offset).as_seconds().abs() % 86_400.0;
        assert!(apart.min(86_400.0 - apart) < 1.0, "{apart} s");
        assert!(
            learned.asymmetry > Time::ZERO && learned.span > Time::ZERO,
            "{learned:?}"
        );
    });
}

#[test]
fn a_peer_that_breaks_the_protocol_is_refused() {
    let (mut guide, mut learner) = loopback_pair(Waiting::Sleep).unwrap();
    guide.send(&f64::NAN.to_le_bytes()).unwrap();
    assert!(matches!(look(&mut learner, 1), Err(ClockError::Answer(_))));
    let plan = ClockPlan {
        bursts: 1,
        ..ClockPlan::default()
    };
    assert!(matches!(
        learn(&mut learner, &plan),
        Err(ClockError::Plan { .. })
    ));
    learner.send(b"x").unwrap();
    assert!(matches!(
        super::guide(&mut guide, &ClockLine::default()),
        Err(ClockError::Question(b'x'))
    ));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]
    #[test]
    fn offsets_and_drifts_are_found_to_a_microsecond_at_low_jitter_and_always_within_the_bound(
        clocks in prop::collection::vec((-1000.0f64..1000.0, -100.0f64..100.0), 2..40),
        way in 1000.0f64..50_000.0,
        jitter in 0.0f64..5000.0,
        seed in any::<u64>(),
    ) {
        let cluster = Cluster::synchronised(clocks.into_iter().map(clock).collect(), (way, way, jitter), seed);
        for (rank, learned) in cluster.learned.iter().enumerate() {
            let error = cluster.error(rank).as_nanos().abs();
            let own = cluster.clocks[rank].read(Time::from_nanos(cluster.now));
            let deviation = learned.deviation_at(own).as_nanos();
            prop_assert!(error < 8.0 * deviation + 3.0, "rank {rank}: {error} ns, deviation {deviation} ns");
            prop_assert!(error <= learned.asymmetry.as_nanos() + 8.0 * deviation + 3.0);
            // The bound was measured in a quiet network: 40 ranks are five pairs deep.
            prop_assert!(jitter > 1000.0 || error < 1000.0, "rank {rank}: {error} ns with jitter of {jitter} ns");
        }
    }
}
