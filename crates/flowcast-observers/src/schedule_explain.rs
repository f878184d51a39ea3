//! Cost of a schedule's communication, by rank and by kind of call.
//!
//! | time of a rank's processor | cause |
//! |---|---|
//! | `o` of a send or a receive | overhead |
//! | `(s-1)G` of a receive | bandwidth |
//! | idle until its sending or receiving interface is free again (`g`, `G`) | bandwidth |
//! | idle, waiting for a message that has not been sent | late sender |
//! | idle, waiting for a message in flight (`L`) | latency |
//! | idle, waiting for a message that other messages slow down, if they share the network | conflict |
//! | a sender above `S`, its message in flight | latency |
//! | a sender above `S`, until the receiver has taken and requested the message | late receiver |

use std::cmp::Reverse;

use crate::{
    explain::{CallOrigin, CallSite, Explanation, Sums},
    flights::{Flight, FlightColumns, Flights, Source},
    journal::Function,
};
use flowcast_program::slot::Slot;
use flowcast_replay::{
    loggops::{
        costs::{LogGopsCosts, Travel},
        sends::Sends,
    },
    observer::{Observer, ReceivedMessage, Sent},
    time_part::TimePart,
};
use flowcast_units::{Rank, Time};

/// An observer that adds up what the communication of a schedule costs.
pub struct ScheduleExplainer<'a> {
    costs: LogGopsCosts<'a>,
    flights: Flights<'a>,
    ranks: Vec<Sums>,
    sends: Sums,
    receives: Sums,
}

impl<'a> ScheduleExplainer<'a> {
    /// Creates an explainer for the replay of a schedule with these messages and costs.
    pub fn new(sends: &'a Sends<'a>, costs: LogGopsCosts<'a>) -> ScheduleExplainer<'a> {
        ScheduleExplainer {
            costs,
            flights: Flights::new(Source::Schedule(sends), FlightColumns { moves: true }),
            ranks: vec![Sums::default(); sends.ranks()],
            sends: Sums::default(),
            receives: Sums::default(),
        }
    }

    /// Returns the causes of the communication time, after the end of the replay.
    pub fn finish(self) -> Explanation {
        let mut sites = vec![
            (site(Function::Send), self.sends),
            (site(Function::Recv), self.receives),
        ];
        sites.sort_by_key(|(_, sums)| Reverse(sums.total()));
        Explanation {
            ranks: self.ranks,
            sites,
        }
    }

    fn travel(&self, slot: Slot, flight: &Flight) -> Travel {
        let message = self.flights.message(flight.from, slot);
        self.costs.travel(flight.from, message.to, message.size)
    }
}

fn site(function: Function) -> CallSite {
    CallSite {
        function: None,
        caller: None,
        line: None,
        call: CallOrigin::Function(function),
    }
}

impl Observer for ScheduleExplainer<'_> {
    fn sent(&mut self, rank: Rank, slot: Slot, sent: Sent) {
        self.flights.sent(rank, slot, sent);
        let mut reached = sent.call;
        sent.each_part(|cost, until| {
            self.ranks[rank].add(cost, until - reached);
            self.sends.add(cost, until - reached);
            reached = until;
        });
    }

    fn moved(&mut self, slot: Slot, start: Time, arrival: Time) {
        self.flights.moved(slot, start, arrival);
    }

    fn held(&mut self, rank: Rank, slot: Slot, start: Time, end: Time) {
        let flight = self.flights.flight(slot);
        let ready = flight.start.unwrap_or(start);
        let there = (ready + self.travel(slot, &flight).latency).clamp(start, end);
        for (cost, time) in [
            (TimePart::Latency, there - start),
            (TimePart::LateReceiver, end - there),
        ] {
            self.ranks[rank].add(cost, time);
            self.sends.add(cost, time);
        }
    }

    fn received(
        &mut self,
        rank: Rank,
        slot: Slot,
        ReceivedMessage {
            call, taken, end, ..
        }: ReceivedMessage,
    ) {
        let flight = self.flights.flight(slot);
        let (ready, arrival) = (
            flight.start.unwrap_or(call),
            flight.arrival.unwrap_or(taken),
        );
        let Travel {
            latency,
            bytes,
            shares,
            ..
        } = self.travel(slot, &flight);
        let taken = taken.max(call);
        let left = ready.clamp(call, taken);
        let moves = ready + latency;
        let there = moves.clamp(left, taken);
        // A flow that a receiver waited for while it moved lost this share of its time to other flows.
        let lost = 1.0 - bytes.as_nanos() / (arrival - moves).max(bytes).as_nanos();
        let conflict = if shares && lost > 1e-9 {
            (arrival.min(taken) - there).max(Time::ZERO) * lost
        } else {
            Time::ZERO
        };
        let overhead = self.costs.parameters.overhead.min(end - taken);
        let costs = [
            (TimePart::LateSender, left - call),
            (TimePart::Latency, there - left),
            (TimePart::Contention, conflict),
            (TimePart::Bandwidth, taken - there - conflict),
            (TimePart::Overhead, overhead),
            (TimePart::Bandwidth, end - taken - overhead),
        ];
        for (cost, time) in costs {
            self.ranks[rank].add(cost, time);
            self.receives.add(cost, time);
        }
    }
}
