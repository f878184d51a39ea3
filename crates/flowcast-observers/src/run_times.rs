//! Times of the calls and regions of a replayed run, in the terms in which a recorded run is measured.

use std::collections::BTreeMap;

use super::{
    explain::CallOrigin,
    flights::{FlightColumns, Flights, Source},
    journal::{Function, own_calls::OwnCalls},
};
use flowcast_program::{
    expand::operation_of,
    paraver_events::REGION,
    program::{MessageClass, Program},
    run_times::{OpenRegions, RunTimes},
    slot::Slot,
};
use flowcast_replay::{
    observer::{Accessed, ObservedCollective, Observer, ReceivedMessage, Sent},
    outcome::Outcome,
};
use flowcast_units::{Rank, Time};

/// An observer that adds up the times of calls and regions.
pub struct RunTimer<'a> {
    program: &'a Program,
    names: &'a [String],
    own: OwnCalls,
    flights: Flights<'a>,
    calls: BTreeMap<CallOrigin, Time>,
    /// Open regions, indexed by rank.
    regions: Vec<OpenRegions>,
    /// Time that each rank waited for other threads of its task, outside of MPI; indexed by rank.
    asleep: Vec<Time>,
    times: RunTimes,
}

impl<'a> RunTimer<'a> {
    /// Creates a timer for the replay of a program. `regions` are the names of its regions by number, from 1.
    pub fn new(program: &'a Program, regions: &'a [String]) -> RunTimer<'a> {
        let columns = FlightColumns { moves: true };
        RunTimer {
            program,
            names: regions,
            own: OwnCalls::new(program),
            flights: Flights::new(Source::Program(program), columns),
            calls: BTreeMap::new(),
            regions: vec![OpenRegions::default(); program.ranks()],
            asleep: vec![Time::ZERO; program.ranks()],
            times: RunTimes::of_ranks(program.threads_of_tasks().len()),
        }
    }

    /// Returns the times, given the outcome of the replay.
    pub fn finish(mut self, outcome: &Outcome) -> RunTimes {
        self.times.total = outcome.makespan();
        for ((rank, times), asleep) in (0..).map(Rank).zip(&outcome.ranks).zip(&self.asleep) {
            let task = self.program.task(rank) as usize;
            self.times.communication[task] += times.communication() - *asleep;
            self.times.computation[task] += times.compute;
        }
        for regions in &self.regions {
            regions
                .sums()
                .iter()
                .for_each(|(name, time)| self.times.add_region(name, *time));
        }
        for (call, time) in self.calls {
            self.times.add_call(&call.name(), time);
        }
        self.times
    }

    /// Adds the time of a call. Time of a stream of a non-blocking collective belongs to no call.
    fn add(&mut self, rank: Rank, call: impl Into<CallOrigin>, time: Time) {
        if rank.index() < self.program.ranks() {
            let call = CallOrigin::of_stream(&self.own, rank, call);
            *self.calls.entry(call).or_default() += time;
        }
    }

    /// Adds the time of a call for a message. Inside a collective that messages carry out, it is the collective's time.
    fn add_for_message(&mut self, rank: Rank, slot: Slot, own: Function, time: Time) {
        let operation = operation_of(self.class(slot));
        self.add(rank, operation.map_or(own, Function::Collective), time);
    }

    fn class(&self, slot: Slot) -> &MessageClass {
        self.program.class(self.flights.flight(slot).class)
    }
}

impl Observer for RunTimer<'_> {
    fn sent(&mut self, rank: Rank, slot: Slot, sent: Sent) {
        self.flights.sent(rank, slot, sent);
        let own = self.own.send(slot, self.class(slot));
        self.add_for_message(rank, slot, own, sent.end - sent.call);
    }

    fn posted(&mut self, slot: Slot, time: Time) {
        self.flights.posted(slot, time);
    }

    fn held(&mut self, rank: Rank, slot: Slot, start: Time, end: Time) {
        let own = self.own.release(slot, self.class(slot));
        self.add_for_message(rank, slot, own, end - start);
    }

    fn left(&mut self, rank: Rank, slot: Slot, start: Time, end: Time) {
        self.held(rank, slot, start, end);
    }

    fn received(&mut self, rank: Rank, slot: Slot, received: ReceivedMessage) {
        let own = self.own.receive(slot, self.flights.is_posted(slot));
        self.add_for_message(rank, slot, own, received.end - received.call);
    }

    fn accessed(&mut self, rank: Rank, accessed: Accessed) {
        let access = self.program.access(accessed.access);
        let call = CallOrigin::Access(access.name());
        self.add(rank, call, accessed.end - accessed.call);
    }

    fn gathered(&mut self, rank: Rank, gathered: ObservedCollective) {
        let time = gathered.end - gathered.call;
        match self.own.collective(gathered.instance) {
            Some(function) => self.add(rank, function, time),
            None if rank.index() < self.program.ranks() => self.asleep[rank] += time,
            None => {}
        }
    }

    fn marked(&mut self, rank: Rank, event: u32, time: Time) {
        self.own.mark(rank, event);
        let (kind, value) = self.program.events()[event as usize];
        if kind != REGION {
            return;
        }
        let regions = &mut self.regions[rank];
        let name = usize::try_from(value - 1)
            .ok()
            .and_then(|at| self.names.get(at));
        match name {
            Some(name) => regions.begin(name, time),
            None => regions.end(time),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flowcast_network::network::Network;
    use flowcast_program::Trace;
    use flowcast_replay::{ReplayEngine, costs::Rendezvous, placement::Placement};

    /// Rank 0 computes 1 ms and sends 1000 bytes to rank 1 inside region 1; a barrier follows.
    const TRACE: &str = "#DIMEMAS:\"x\":1,0:2(1,1),1\nd:1:1:2:0:1\n20:0:0:60000019:1\n1:0:0:0.001000000\n\
                         2:0:0:1:-1:1000:7:1:0\n20:0:0:60000019:0\n10:0:0:0:1:0:0:0:0:1\n20:1:0:60000019:1\n\
                         3:1:0:0:-1:1000:7:1:0\n20:1:0:60000019:0\n10:1:0:0:1:0:0:0:0:1\n";

    fn program() -> Program {
        match flowcast_formats::read_text("x.dim", TRACE).unwrap() {
            Trace::Program(program) => program,
            _ => panic!("a .dim is a program"),
        }
    }

    #[test]
    fn calls_ranks_and_regions_have_the_times_of_a_hand_calculation() {
        let text = "schema = \"flowcast/network/1\"\nname = \"x\"\n[point_to_point]\nrule = \"hockney\"\n[nic]\nlatency = \"10us\"\n\
                    bandwidth = \"1MB/s\"\n[collectives]\ndefault = \"NULL | NULL\"\n";
        let (network, program) = (Network::from_toml(text, &[]).unwrap(), program());
        let placement = Placement::of_program(&network.machine, None, &program).unwrap();
        let engine = ReplayEngine::new(
            &program,
            &network,
            placement,
            Rendezvous::from_network(&network, None),
        )
        .unwrap();
        let regions = ["solve".to_owned()];
        let mut timer = RunTimer::new(&program, &regions);
        let outcome = engine.observed(&mut timer).unwrap();
        let times = timer.finish(&outcome);
        // The message takes 10 us and 1 ms, after 1 ms of computation.
        assert_eq!(times.total, Time::from_micros(2010.0));
        assert_eq!(
            times.communication,
            [Time::from_micros(1010.0), Time::from_micros(2010.0)]
        );
        assert_eq!(times.computation, [Time::from_micros(1000.0), Time::ZERO]);
        assert_eq!(times.calls["MPI_Recv"], Time::from_micros(2010.0));
        assert_eq!(times.calls["MPI_Barrier"], Time::from_micros(1010.0));
        assert_eq!(times.regions["solve"], Time::from_micros(2010.0));
    }
}
