//! The replay of a schedule as it is drawn, and the chain of causes behind its time.

use super::sends::Sends;
use super::ways::{Costs, Travel};
use crate::critical_path::{CriticalPath, Steady, walk_back};
use crate::outcome::Outcome;
use crate::record::{Messages, Recorder};
use crate::timeline::Timeline;
use flowcast_units::{Rank, Time};

/// What happened.
#[derive(Debug, Clone)]
pub struct Recording {
    /// The times of the ranks.
    pub outcome: Outcome,
    /// What each did when.
    pub timeline: Timeline,
    /// What made it take as long as it did; nothing if a rank has several processors, whose doings overlap.
    pub path: Option<CriticalPath>,
}

/// Replays by `run`, which is given the observer, and keeps what happened.
///
/// # Errors
/// Those of `run`.
pub fn record<E>(
    sends: &Sends<'_>,
    costs: Costs<'_>,
    run: impl FnOnce(&mut Recorder) -> Result<Outcome, E>,
) -> Result<Recording, E> {
    let mut recorder = Recorder::of((sends.ranks(), sends.operations()), costs.parameters.overhead.as_nanos());
    let outcome = run(&mut recorder)?;
    if sends.cpus() > 1 {
        return Ok(Recording { outcome, timeline: recorder.timeline_of_processors(sends), path: None });
    }
    let steady = |slot: u32| {
        let flight = &recorder.flights[slot as usize];
        let (to, size, _) = sends.message(slot, flight);
        let Travel { latency, interface, .. } = costs.travel(Rank(flight.from), to, size);
        Steady { latency, gap: interface.map_or(Time::ZERO, |(gap, _)| gap) }
    };
    let path = Some(walk_back(sends, &recorder, steady));
    Ok(Recording { outcome, timeline: recorder.timeline(sends), path })
}
