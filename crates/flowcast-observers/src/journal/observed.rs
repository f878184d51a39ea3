//! Recording of each event of a replay in a journal.

use super::{
    Function, ReplayJournal,
    call_tallies::{CallKind, OpenCall},
    nanos,
};
use crate::flights::Source;
use flowcast_program::{access::size_of, paraver_events::CALLED, slot::Slot};
use flowcast_replay::{
    loggops::message::ScheduleMessage,
    observer::{Accessed, ObservedCollective, Observer, ReceivedMessage, Sent},
    timeline::{Activity, Segment},
};
use flowcast_units::{Bytes, Rank, Time};

impl ReplayJournal<'_> {
    fn interval(&mut self, rank: Rank, start: Time, end: Time, activity: Activity) {
        self.record(
            rank,
            Segment {
                start,
                end,
                activity,
            },
            false,
        );
    }

    /// Records that a sender waits until its message has left.
    fn sending(&mut self, rank: Rank, start: Time, end: Time, activity: Activity) {
        self.record(
            rank,
            Segment {
                start,
                end,
                activity,
            },
            true,
        );
    }

    /// Records that a sender is held: first by its receiver or its interface, then until its message has left.
    fn hold(&mut self, rank: Rank, slot: Slot, start: Time, end: Time, by: Activity) {
        self.reach(rank, start);
        let asked = self.flights.request_time(slot).unwrap_or(start);
        let begun = asked.clamp(start, end);
        if by == Activity::InterfaceWait {
            self.sending(rank, start, begun, by);
        } else {
            self.interval(rank, start, begun, by);
        }
        self.sending(rank, begun, end, Activity::Transfer);
        self.held_call(rank, slot, start, end);
    }

    /// Accounts for the time up to `time`, at which a call of the rank begins or the rank ends. Time without any activity
    /// was spent without a processor. The processors of a schedule's rank wait for nothing but messages.
    fn reach(&mut self, rank: Rank, time: Time) {
        let Some(journal) = self.ranks.get(rank.index()) else {
            return;
        };
        if time > journal.reached && matches!(self.flights.source, Source::Program(_)) {
            self.interval(rank, journal.reached, time, Activity::ProcessorWait);
        }
    }

    /// Records that a processor handles a message, after the rank has waited for the processor.
    fn handle(&mut self, rank: Rank, start: Time, end: Time, processor: Time) {
        let begun = (start + processor).min(end);
        self.interval(rank, start, begun, Activity::ProcessorWait);
        self.interval(rank, begun, end, Activity::Overhead);
    }

    fn record(&mut self, rank: Rank, segment: Segment, is_sender: bool) {
        let Segment {
            start,
            end,
            activity,
        } = segment;
        if end > start
            && let Some(journal) = self.ranks.get_mut(rank.index())
        {
            journal.reached = end;
            journal.times[activity as usize] += end - start;
            if self.keeps.slices {
                journal.slices.push(
                    nanos(start),
                    nanos(end),
                    (activity as u64) << 1 | u64::from(is_sender),
                );
            }
            if let Some(segments) = self.segments.get_mut(rank.index()) {
                segments.push(segment);
            }
        }
    }

    fn call(&mut self, rank: Rank, mut call: OpenCall) {
        let Some(journal) = self.ranks.get_mut(rank.index()) else {
            return;
        };
        if let (Some(named), CallKind::Function(_)) = (self.own.function(rank), call.kind) {
            call.kind = CallKind::Function(Function::Named(named));
            if let (true, Some(open)) = (journal.is_named, &mut journal.open) {
                return open.extend(call);
            }
            journal.is_named = true;
        }
        let Some(before) = journal.open.replace(call) else {
            return;
        };
        if let Some(function) = before
            .kind
            .function()
            .filter(|_| self.keeps_calls && before.end > before.start)
        {
            journal
                .calls
                .push(nanos(before.start), nanos(before.end), function.code());
        }
        if self.keeps.timeline {
            self.tallies.add(before);
        }
    }

    fn watches_calls(&self) -> bool {
        self.keeps_calls || self.keeps.timeline
    }

    /// Records that a sender was held: inside its send if that call has just ended, otherwise in a wait.
    fn held_call(&mut self, rank: Rank, slot: Slot, start: Time, end: Time) {
        if !self.watches_calls() {
            return;
        }
        match self
            .ranks
            .get_mut(rank.index())
            .and_then(|journal| journal.open.as_mut())
        {
            Some(open)
                if open.end == start
                    && matches!(
                        open.kind.function(),
                        Some(Function::Send | Function::Sendrecv)
                    ) =>
            {
                open.end = end;
            }
            _ => {
                let kind = self.kind_for(slot, Function::Wait);
                self.call(
                    rank,
                    OpenCall {
                        kind,
                        bytes: Bytes(0),
                        start,
                        end,
                    },
                );
            }
        }
    }
}

impl Observer for ReplayJournal<'_> {
    fn computed(&mut self, rank: Rank, start: Time, end: Time) {
        self.reach(rank, start);
        self.interval(rank, start, end, Activity::Compute);
    }

    fn sent(&mut self, rank: Rank, slot: Slot, sent: Sent) {
        let Sent {
            call,
            start,
            processor,
            end,
            ..
        } = sent;
        self.reach(rank, call);
        self.interval(rank, call, start, Activity::InterfaceWait);
        self.handle(rank, start, end, processor);
        self.flights.sent(rank, slot, sent);
        let source = self.flights.source;
        let ScheduleMessage { to, size, .. } = self.flights.message(rank, slot);
        let journal = &mut self.ranks[source.owner(rank)];
        journal.sends.push(slot.0);
        journal.sent.add(size);
        self.ranks[source.owner(to)].received.add(size);
        if self.watches_calls() {
            let kind = self.send_kind(slot);
            self.call(
                rank,
                OpenCall {
                    kind,
                    bytes: size,
                    start: call,
                    end,
                },
            );
        }
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
        self.ranks[rank].is_named = false;
        let Source::Program(program) = self.flights.source else {
            return;
        };
        if self.keeps.calls && program.events()[event as usize].0 != CALLED {
            self.ranks[rank]
                .marks
                .push(nanos(time), nanos(time), u64::from(event));
        }
    }

    fn held(&mut self, rank: Rank, slot: Slot, start: Time, end: Time) {
        self.hold(rank, slot, start, end, Activity::LateReceiver);
    }

    fn left(&mut self, rank: Rank, slot: Slot, start: Time, end: Time) {
        self.hold(rank, slot, start, end, Activity::InterfaceWait);
    }

    fn received(&mut self, rank: Rank, slot: Slot, received: ReceivedMessage) {
        let ReceivedMessage {
            call,
            processor,
            before,
            taken,
            end,
        } = received;
        self.reach(rank, call);
        self.handle(rank, call, before, processor);
        let owner = self.flights.source.owner(rank);
        let is_own = owner == rank && matches!(self.flights.source, Source::Program(_));
        if self.keeps.receipts && !is_own {
            self.ranks[owner].receipts.push(slot.0);
        }
        let sent = self
            .flights
            .request_time(slot)
            .unwrap_or(before)
            .clamp(before, taken.max(before));
        self.interval(rank, before, sent, Activity::LateSender);
        self.interval(rank, sent, taken, Activity::Transfer);
        self.interval(rank, taken, end, Activity::Overhead);
        let function = self.own.receive(slot, self.flights.is_posted(slot));
        self.flights.received(rank, slot, received);
        if self.watches_calls() {
            let kind = self.kind_for(slot, function);
            let received_call = OpenCall {
                kind,
                bytes: self.flights.size(slot),
                start: call,
                end,
            };
            match self
                .ranks
                .get_mut(rank.index())
                .and_then(|journal| journal.open.as_mut())
            {
                // The send of this `MPI_Sendrecv` has begun the call.
                Some(open) if function == Function::Sendrecv && open.kind == kind => {
                    open.extend(received_call);
                }
                _ => self.call(rank, received_call),
            }
        }
    }

    fn accessed(&mut self, rank: Rank, accessed: Accessed) {
        let Accessed {
            access,
            call,
            start,
            came,
            processor,
            end,
            ..
        } = accessed;
        self.reach(rank, call);
        self.interval(rank, call, start, Activity::InterfaceWait);
        self.handle(rank, start, came, processor);
        self.interval(rank, came, end, Activity::Transfer);
        if self.keeps.timeline
            && let Source::Program(program) = self.flights.source
        {
            let access = program.access(access);
            let (kind, bytes) = (
                CallKind::Access(access.name()),
                size_of(access).unwrap_or(Bytes(0)),
            );
            self.tallies.add(OpenCall {
                kind,
                bytes,
                start: call,
                end,
            });
        }
    }

    fn gathered(&mut self, rank: Rank, gathered: ObservedCollective) {
        let ObservedCollective {
            instance,
            call,
            processor,
            came,
            last,
            end,
            ..
        } = gathered;
        let last = last.clamp(came, end);
        self.reach(rank, call);
        self.handle(rank, call, came, processor);
        self.interval(rank, came, last, Activity::CollectiveWait);
        self.interval(rank, last, end, Activity::Collective);
        if self.watches_calls()
            && let Some(function) = self.own.collective(instance)
        {
            let kind = CallKind::Function(function);
            self.call(
                rank,
                OpenCall {
                    kind,
                    bytes: Bytes(0),
                    start: call,
                    end,
                },
            );
        }
    }

    fn ended(&mut self, rank: Rank, time: Time) {
        self.reach(rank, time);
    }
}
