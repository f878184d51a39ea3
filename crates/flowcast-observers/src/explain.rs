//! Causes of the time spent in communication: overhead, latency, bandwidth, conflicts, late partners.
//!
//! Each interval in which a rank does not compute is divided among causes. The remaining time between intervals is waiting
//! for a processor. The causes of a rank therefore add up to its blocked time and overhead.
//!
//! | an interval | cause |
//! |---|---|
//! | processor time on messages | overhead |
//! | a send, or the wait for one, waits for the rank's own interface | bandwidth |
//! | a receiver waits for a message that has not been sent, or that waits for its sender's interface | late sender |
//! | a rendezvous sender waits for its receiver | late receiver |
//! | waiting for a message that waits for links and buses | conflict |
//! | waiting for a message that moves | latency, bandwidth, conflict, in proportion |
//! | a collective by formula | other ranks that have not arrived; the operation itself |
//!
//! A message that moves for `D` would take its latency `L` and the time of its bytes `B` if it were alone. Its conflict is
//! `D - L - B`. A receiver usually waits for the last part of that time only. Latency, bytes and conflict then have the same
//! shares in that part as in `D`.

use std::collections::BTreeMap;

use super::{
    flights::{FlightColumns, Flights, Source},
    journal::{Function, own_calls::OwnCalls},
};
use flowcast_program::{
    expand::operation_of,
    paraver_events::{REGION, function_name},
    program::{MessageClass, Program},
    slot::Slot,
};
use flowcast_replay::{
    ReplayEngine,
    observer::{Accessed, ObservedCollective, Observer, ReceivedMessage, Sent},
    outcome::Outcome,
    time_part::TimePart,
    walk::Replay,
};
use flowcast_units::{Rank, Time};

/// Time of each cause; 0 for causes that did not occur.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Sums([Time; TimePart::ALL.len()]);

impl Sums {
    /// The time of a cause.
    pub fn time(&self, cost: TimePart) -> Time {
        self.0[cost as usize]
    }

    /// Adds time to a cause.
    pub(super) fn add(&mut self, cost: TimePart, time: Time) {
        self.0[cost as usize] += time;
    }

    /// Time of all causes together.
    pub fn total(&self) -> Time {
        self.0.into_iter().sum()
    }
}

/// Place in the program: the call, and its caller if the trace's events name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct CallSite {
    /// The value of the last event of a user function.
    pub function: Option<i64>,
    /// The value of the last event that names the caller of MPI.
    pub caller: Option<i64>,
    /// The value of the last event that gives the caller's line.
    pub line: Option<i64>,
    /// The call at this place.
    pub call: CallOrigin,
}

/// A call, named by the trace's own event or, without one, by the replayed operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CallOrigin {
    /// Type and value of the event that marks it.
    Event(i64, i64),
    /// The operation that the replay carried out.
    Function(Function),
    /// Name of a one-sided operation or an operation on files.
    Access(&'static str),
    /// Not a call: a thread waits for other threads of its rank.
    OtherThreads,
}

/// Type of Extrae's event that names the caller of MPI; `CALLER_LINE` is the type of the event for its line.
const CALLER: i64 = 70_000_001;
const CALLER_LINE: i64 = 80_000_001;

/// Time of a replay's communication, by cause.
#[derive(Debug, Clone, PartialEq)]
pub struct Explanation {
    /// Times by cause, indexed by rank.
    pub ranks: Vec<Sums>,
    /// Times by place in the program, summed over all ranks; the most expensive place first.
    pub sites: Vec<(CallSite, Sums)>,
}

/// Account of a rank's time.
#[derive(Debug, Clone, Default)]
struct Account {
    /// Time up to which the account is complete.
    reached: Time,
    sums: Sums,
    sites: BTreeMap<CallSite, Sums>,
    function: Option<i64>,
    caller: Option<i64>,
    line: Option<i64>,
    /// Place that the time before the next interval belongs to.
    last: Option<CallSite>,
}

/// An observer that adds up what the communication of a program costs.
pub struct Explainer<'a> {
    program: &'a Program,
    replay: &'a Replay<'a>,
    ranks: Vec<Account>,
    flights: Flights<'a>,
    own: OwnCalls,
    /// Latency added by cables, indexed by slot; empty if cables add none.
    cables: Vec<Time>,
}

impl<'a> Explainer<'a> {
    /// Creates an explainer for a replay by this engine.
    pub fn new(engine: &'a ReplayEngine<'_>) -> Explainer<'a> {
        let replay = engine.free();
        let program = replay.program();
        let columns = FlightColumns { moves: true };
        Explainer {
            program,
            replay,
            ranks: vec![Account::default(); program.streams()],
            flights: Flights::new(Source::Program(program), columns),
            own: OwnCalls::new(program),
            cables: engine.cable_latencies(),
        }
    }

    /// Returns the causes of the replay's communication time, given its outcome.
    pub fn finish(mut self, outcome: &Outcome) -> Explanation {
        let mut sites: BTreeMap<CallSite, Sums> = BTreeMap::new();
        for (account, outcome) in self.ranks.iter_mut().zip(&outcome.ranks) {
            account.wait_for_processor(outcome.end);
            for (site, sums) in &account.sites {
                let known = sites.entry(*site).or_default();
                known
                    .0
                    .iter_mut()
                    .zip(sums.0)
                    .for_each(|(sum, more)| *sum += more);
            }
        }
        let mut sites: Vec<(CallSite, Sums)> = sites.into_iter().collect();
        sites.sort_by_key(|(_, sums)| std::cmp::Reverse(sums.total()));
        let ranks = self
            .ranks
            .into_iter()
            .take(self.program.ranks())
            .map(|account| account.sums)
            .collect();
        Explanation { ranks, sites }
    }

    /// Divides the interval from `begin` to `end`, in which the rank waits for a message, among causes. `late` is the cause
    /// of the time before the message could move.
    fn waited(
        &mut self,
        rank: Rank,
        slot: Slot,
        begin: Time,
        end: Time,
        late: TimePart,
        site: CallSite,
    ) {
        let flight = self.flights.flight(slot);
        let path = self.replay.path(slot);
        let account = &mut self.ranks[rank];
        // Unknown times, such as those of a message in a queue, fall on the bounds.
        let asked = flight
            .asked
            .map_or(begin, |asked| asked.max(begin))
            .min(end);
        let moving = flight
            .start
            .map_or(asked, |start| start.max(asked))
            .min(end);
        let arrived = flight
            .arrival
            .map_or(moving, |arrival| arrival.max(moving))
            .min(end);
        account.add(site, late, asked - begin);
        account.add(site, TimePart::Contention, moving - asked);
        let cables = self.cables.get(slot.index()).copied().unwrap_or_default();
        let cost = &path.classes[flight.class as usize];
        let latency = path.latency + cost.added_latency + cables;
        let whole = flight
            .arrival
            .zip(flight.start)
            .map_or(Time::ZERO, |(arrival, start)| arrival - start);
        account.add_moving(site, arrived - moving, whole, latency, cost.bytes);
        account.add(site, TimePart::Processor, end - arrived);
    }

    fn class(&self, slot: Slot) -> &MessageClass {
        self.program.class(self.flights.flight(slot).class)
    }

    /// Place at which a message is sent or waited for: this call, or the collective that the message carries out.
    fn message_site(&self, rank: Rank, slot: Slot, own: Function) -> CallSite {
        self.site(
            rank,
            operation_of(self.class(slot)).map_or(own, Function::Collective),
        )
    }

    fn site(&self, rank: Rank, own: impl Into<CallOrigin>) -> CallSite {
        let Account {
            function: user,
            caller,
            line,
            ..
        } = self.ranks[rank];
        let call = CallOrigin::of_stream(&self.own, rank, own);
        CallSite {
            function: user,
            caller,
            line,
            call,
        }
    }
}

impl CallOrigin {
    /// The call that a stream's last event marks, or `other` without such an event.
    pub(crate) fn of_stream(
        own: &OwnCalls,
        stream: Rank,
        other: impl Into<CallOrigin>,
    ) -> CallOrigin {
        let marked = own.marked(stream);
        marked.map_or(other.into(), |(kind, value)| CallOrigin::Event(kind, value))
    }

    /// Name of the call, such as `MPI_Waitall`.
    pub fn name(self) -> String {
        let name = match self {
            CallOrigin::Event(kind, value) => match function_name(kind, value) {
                Some(name) => name,
                None => return format!("MPI call {value} of type {kind}"),
            },
            CallOrigin::Function(function) => function.name(),
            CallOrigin::Access(name) => name,
            CallOrigin::OtherThreads => return "(other threads)".to_owned(),
        };
        format!("MPI_{name}")
    }
}

impl From<Function> for CallOrigin {
    fn from(function: Function) -> CallOrigin {
        CallOrigin::Function(function)
    }
}

impl Account {
    fn add(&mut self, site: CallSite, cost: TimePart, time: Time) {
        self.last = Some(site);
        if time > Time::ZERO {
            self.sums.0[cost as usize] += time;
            self.sites.entry(site).or_default().0[cost as usize] += time;
        }
    }

    /// Adds the time since `reached` to one cause, up to `until`.
    fn spend(&mut self, site: CallSite, cost: TimePart, until: Time) {
        self.add(site, cost, until - self.reached);
        self.reached = until;
    }

    /// Adds a part of the time `whole` in which a message moves. Alone, the message would take `latency` and `bytes`.
    fn add_moving(&mut self, site: CallSite, time: Time, whole: Time, latency: Time, bytes: Time) {
        if time <= Time::ZERO {
            return;
        }
        let share = time.as_nanos() / whole.max(time).as_nanos();
        let latency = (latency * share).min(time);
        let bytes = (bytes * share).min(time - latency);
        // A remainder from rounding is not a conflict.
        let conflict = time - latency - bytes;
        let conflict = if conflict > whole * 1e-9 {
            conflict
        } else {
            Time::ZERO
        };
        self.add(site, TimePart::Latency, latency);
        self.add(site, TimePart::Bandwidth, time - latency - conflict);
        self.add(site, TimePart::Contention, conflict);
    }

    /// Accounts for the time up to `now` in which nothing was observed: other ranks occupied the processor.
    fn wait_for_processor(&mut self, now: Time) {
        let gap = now - self.reached;
        if gap > Time::ZERO {
            let site = self.last.unwrap_or(CallSite {
                function: self.function,
                caller: self.caller,
                line: self.line,
                call: CallOrigin::Function(Function::Wait),
            });
            self.add(site, TimePart::Processor, gap);
            self.reached = now;
        }
    }
}

impl Observer for Explainer<'_> {
    fn computed(&mut self, rank: Rank, start: Time, end: Time) {
        let account = &mut self.ranks[rank];
        account.wait_for_processor(start);
        account.reached = end;
    }

    fn sent(&mut self, rank: Rank, slot: Slot, sent: Sent) {
        self.flights.sent(rank, slot, sent);
        let site = self.message_site(rank, slot, self.own.send(slot, self.class(slot)));
        let account = &mut self.ranks[rank];
        account.wait_for_processor(sent.call);
        sent.each_part(|part, until| account.spend(site, part, until));
    }

    fn moved(&mut self, slot: Slot, start: Time, arrival: Time) {
        self.flights.moved(slot, start, arrival);
    }

    fn queued(&mut self, slot: Slot, asked: Time) {
        self.flights.queued(slot, asked);
    }

    fn posted(&mut self, slot: Slot, time: Time) {
        self.flights.posted(slot, time);
    }

    fn marked(&mut self, rank: Rank, event: u32, time: Time) {
        self.own.mark(rank, event);
        let (kind, value) = self.program.events()[event as usize];
        let account = &mut self.ranks[rank];
        account.wait_for_processor(time);
        let inside = (value != 0).then_some(value);
        match kind {
            REGION => account.function = inside,
            CALLER => account.caller = inside,
            CALLER_LINE => account.line = inside,
            _ => {}
        }
    }

    fn held(&mut self, rank: Rank, slot: Slot, start: Time, end: Time) {
        let site = self.message_site(rank, slot, self.own.release(slot, self.class(slot)));
        self.ranks[rank].wait_for_processor(start);
        self.waited(rank, slot, start, end, TimePart::LateReceiver, site);
        self.ranks[rank].reached = end;
    }

    fn left(&mut self, rank: Rank, slot: Slot, start: Time, end: Time) {
        let site = self.message_site(rank, slot, self.own.release(slot, self.class(slot)));
        let account = &mut self.ranks[rank];
        account.wait_for_processor(start);
        account.add(site, TimePart::Bandwidth, end - start);
        account.reached = end;
    }

    fn received(&mut self, rank: Rank, slot: Slot, received: ReceivedMessage) {
        let ReceivedMessage {
            call,
            processor,
            before,
            taken,
            end,
        } = received;
        let function = self.own.receive(slot, self.flights.is_posted(slot));
        let site = self.message_site(rank, slot, function);
        let account = &mut self.ranks[rank];
        account.wait_for_processor(call);
        account.spend(site, TimePart::Processor, call + processor);
        account.spend(site, TimePart::Overhead, before);
        self.waited(rank, slot, before, taken, TimePart::LateSender, site);
        let account = &mut self.ranks[rank];
        account.reached = taken;
        account.spend(site, TimePart::Overhead, end);
    }

    fn accessed(&mut self, rank: Rank, accessed: Accessed) {
        let access = self.program.access(accessed.access);
        let site = self.site(rank, CallOrigin::Access(access.name()));
        let account = &mut self.ranks[rank];
        account.wait_for_processor(accessed.call);
        accessed.each_part(|part, until| account.spend(site, part, until));
    }

    fn gathered(&mut self, rank: Rank, gathered: ObservedCollective) {
        let own = self.own.collective(gathered.instance);
        let site = self.site(
            rank,
            own.map_or(CallOrigin::OtherThreads, CallOrigin::Function),
        );
        let account = &mut self.ranks[rank];
        account.wait_for_processor(gathered.call);
        gathered.each_part(|part, until| account.spend(site, part, until));
    }
}
