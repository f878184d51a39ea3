//! The replay of a schedule as it is drawn, and the chain of causes behind its time.

use super::ways::{Costs, Travel};
use crate::simulate::SimulateError;
use crate::simulate::critical_path::{CriticalPath, Steady, walk_back};
use crate::simulate::outcome::Outcome;
use crate::simulate::record::{Flight, Messages, Recorder};
use crate::simulate::timeline::Timeline;
use crate::trace::schedule::{Operation, Schedule};
use crate::units::{Bytes, Rank, Time};

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

/// Runs a schedule and keeps what happened.
///
/// # Errors
/// As [`super::placed`].
pub fn record(schedule: &Schedule, costs: Costs<'_>) -> Result<Recording, SimulateError> {
    let operations = Operations::of(schedule);
    let mut recorder = Recorder::of((schedule.ranks(), operations.count()), costs.parameters.overhead.as_nanos());
    let outcome = super::placed(schedule, costs, &mut recorder)?;
    let steady = |slot: u32| {
        let flight = &recorder.flights[slot as usize];
        let (to, size, _) = operations.message(slot, flight);
        let Travel { latency, interface, .. } = costs.travel(Rank(flight.from), to, size);
        Steady { latency, gap: interface.map_or(Time::ZERO, |(gap, _)| gap) }
    };
    let path = (schedule.cpus() == 1).then(|| walk_back(&operations, &recorder, steady));
    Ok(Recording { outcome, timeline: recorder.timeline(&operations), path })
}

/// A message is called by the number of its send among all operations.
pub(super) struct Operations<'a> {
    schedule: &'a Schedule,
    bases: Vec<u32>,
}

impl<'a> Operations<'a> {
    pub fn of(schedule: &'a Schedule) -> Operations<'a> {
        Operations { schedule, bases: schedule.bases() }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.bases[self.schedule.ranks()] as usize
    }

    /// What a rank does by one.
    pub fn operation(&self, rank: u32, number: u32) -> Operation {
        self.schedule.graphs[rank as usize].nodes[(number - self.bases[rank as usize]) as usize].operation
    }
}

impl Messages for Operations<'_> {
    fn ranks(&self) -> usize {
        self.schedule.ranks()
    }

    fn owner(&self, stream: Rank) -> Rank {
        stream
    }

    fn message(&self, slot: u32, flight: &Flight) -> (Rank, Bytes, i32) {
        match self.operation(flight.from, slot) {
            Operation::Send { to, size, tag } => (to, size, tag.map_or(-1, |tag| tag as i32)),
            Operation::Recv { .. } | Operation::Calc(_) => unreachable!("only sends make messages"),
        }
    }
}
