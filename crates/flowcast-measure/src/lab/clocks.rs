//! Test of clock synchronisation in a lab, whose nodes share one clock. Each node gets an artificial offset and drift, and
//! the learned values are compared with them.

use std::{
    net::TcpStream,
    thread,
    time::{Duration, Instant},
};

use crate::{
    clocks::{ClockError, ClockPlan, Clocked, LearnedClock, guide, learn, rounds},
    tcp::{TcpTransport, Waiting},
};
use flowcast_statistics::resampling::Resampler;
use flowcast_units::{ClockLine, Node, Time};

use crate::lab::{error::LabError, running::Lab};

/// Synchronised clocks of nodes or ranks, indexed by their number. The clock of number 0 is the reference.
#[derive(Debug, Clone, PartialEq)]
pub struct ClockRun {
    /// Estimate of each clock.
    pub learned: Vec<LearnedClock>,
    /// Error of each estimate afterwards.
    pub deviations: Vec<Deviation>,
}

/// Error of the estimate of a clock.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Deviation {
    /// Error right after the synchronisation of all clocks.
    pub at_once: Time,
    /// Error after the requested pause.
    pub later: Time,
    /// Half the round trip of the reading of clock 0. It is 0 if this clock is known exactly.
    pub known_to: Time,
}

/// Returns clocks for `nodes` nodes relative to the machine's clock. The first is equal to it. The others are up to 10 ms
/// behind or ahead and up to 100 ppm slower or faster; these values are evenly spaced and assigned at random.
pub fn set_clocks(nodes: usize, seed: u64) -> Vec<ClockLine> {
    let others = nodes.saturating_sub(1);
    let mut shares: [Vec<f64>; 2] = [0; 2].map(|_| {
        (0..others)
            .map(|at| {
                if others > 1 {
                    2.0 * at as f64 / (others - 1) as f64 - 1.0
                } else {
                    1.0
                }
            })
            .collect()
    });
    let mut chance = Resampler::from_seed(seed);
    shares.iter_mut().for_each(|shares| chance.shuffle(shares));
    let set = shares[0]
        .iter()
        .zip(&shares[1])
        .map(|(offset, drift)| ClockLine {
            at: Time::ZERO,
            offset: Time::from_micros(10_000.0 * offset),
            drift: 1e-4 * drift,
        });
    std::iter::once(ClockLine::default())
        .take(nodes)
        .chain(set)
        .collect()
}

/// Synchronises the clocks of a lab's first nodes, one for each of `clocks`, which are lines from this machine's clock to a
/// node's clock. Then determines the errors immediately and after `hold`. The pairs take turns, because they share one
/// machine.
///
/// # Errors
/// More clocks than the lab has nodes, or a connection that fails.
pub fn synchronise_clocks(
    lab: &Lab,
    clocks: &[ClockLine],
    plan: &ClockPlan,
    hold: Duration,
) -> Result<ClockRun, LabError> {
    let origin = Instant::now();
    let mut learned = vec![LearnedClock::itself(); clocks.len()];
    for (guiding, learner) in rounds(clocks.len() as u32).into_iter().flatten() {
        let (from, to) = (guiding.index(), learner.index());
        let streams = lab.tcp_pair(Node(guiding.0), Node(learner.0), 0, None)?;
        let known = learned[from];
        let pair = ClockPair {
            streams,
            clocks: (clocks[from], clocks[to]),
            origin,
        };
        learned[to] = pair
            .learn(&known.line, plan)
            .map_err(refused)?
            .behind(&known);
    }
    let errors = || {
        let now = Time::from_nanos(origin.elapsed().as_nanos() as f64);
        clocks
            .iter()
            .zip(&learned)
            .map(|(clock, learned)| learned.line.read(clock.read(now)) - clocks[0].read(now))
            .collect::<Vec<Time>>()
    };
    let at_once = errors();
    thread::sleep(hold);
    let both = at_once.into_iter().zip(errors());
    let deviations = both
        .map(|(at_once, later)| Deviation {
            at_once,
            later,
            known_to: Time::ZERO,
        })
        .collect();
    Ok(ClockRun {
        learned,
        deviations,
    })
}

struct ClockPair {
    streams: (TcpStream, TcpStream),
    clocks: (ClockLine, ClockLine),
    origin: Instant,
}

impl ClockPair {
    fn learn(self, guides: &ClockLine, plan: &ClockPlan) -> Result<LearnedClock, ClockError> {
        let ends = [
            (self.streams.0, self.clocks.0),
            (self.streams.1, self.clocks.1),
        ];
        let [first, second] = ends.map(|(stream, clock)| -> Result<_, ClockError> {
            // Both share one machine. An end that polls would take the processor from the other, but only in one direction.
            Ok(Clocked::new(
                TcpTransport::over(stream, Waiting::Sleep)?,
                self.origin,
                clock,
            ))
        });
        let (mut first, mut second) = (first?, second?);
        thread::scope(|scope| {
            let guiding = scope.spawn(move || guide(&mut first, guides));
            let learned = learn(&mut second, plan);
            drop(second);
            let guided = guiding.join().expect("a guide does not panic");
            learned.and_then(|learned| guided.map(|()| learned))
        })
    }
}

/// Converts the failure of a synchronisation.
pub(crate) fn refused(error: ClockError) -> LabError {
    LabError::System {
        what: "synchronising the clocks",
        source: std::io::Error::other(error),
    }
}
