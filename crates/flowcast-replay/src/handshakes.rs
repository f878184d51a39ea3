//! Rendezvous messages of ranks that progress messages in MPI calls only.
//!
//! RTS and CTS themselves take no time. A receiver answers an RTS when it posts the receive, if it has polled since the RTS
//! arrived, and otherwise at its next wait. The data move from the sender's next wait on, in the same way as all other
//! messages.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, HashMap},
};

use crate::{
    polling::Polling,
    slab::Slab,
    transit::{Delivery, Departure, NextProgress, Progress, ReceivePosted, Rts, Transit},
};
use flowcast_network::network;
use flowcast_program::slot::Slot;
use flowcast_units::{Rank, Time};

/// Handshakes between senders and receivers, on top of a transit that carries the data.
pub(crate) struct Handshakes<T> {
    carrier: T,
    polling: Polling,
    open: Slab<Handshake>,
    /// Indices of messages whose receive has not been posted yet, keyed by slot.
    requested: HashMap<Slot, u32>,
    /// Scheduled events: time, slot and index of the message.
    coming: BinaryHeap<Reverse<(Time, Slot, u32)>>,
}

/// A message whose data do not move yet.
#[derive(Debug, Clone, Copy)]
struct Handshake {
    departure: Departure,
    rts: Rts,
    next: NextHandshake,
}

/// Next event of a handshake, at its scheduled time if it has one.
#[derive(Debug, Clone, Copy, PartialEq)]
enum NextHandshake {
    /// The RTS reaches the receiver.
    Arrive,
    /// The receiver posts its receive. The RTS arrived at this time.
    Post(Time),
    /// The receiver answers.
    Answer,
    /// The sender notices the CTS.
    Move,
}

impl<T: Transit> Handshakes<T> {
    /// Adds handshakes to a transit.
    pub(crate) fn above(carrier: T) -> Handshakes<T> {
        Handshakes {
            carrier,
            polling: Polling::new(network::Progress::InCalls),
            open: Slab::default(),
            requested: HashMap::new(),
            coming: BinaryHeap::new(),
        }
    }

    fn schedule(&mut self, at: Time, index: u32) {
        self.coming
            .push(Reverse((at, self.open[index].departure.slot, index)));
    }

    /// Schedules the next event of a handshake for the time at which a rank notices an arrival at `came`.
    fn see(&mut self, rank: Rank, came: Time, index: u32, next: NextHandshake) {
        self.open[index].next = next;
        if let Some(at) = self.polling.see(rank, came, index) {
            self.schedule(at, index);
        }
    }

    /// Answers an RTS that arrived at this time and whose receive is posted.
    fn answer(&mut self, index: u32, came: Time, posted: ReceivePosted) {
        if came <= posted.polled {
            self.open[index].next = NextHandshake::Answer;
            self.schedule(posted.since, index);
        } else {
            self.see(
                self.open[index].rts.to,
                came.max(posted.since),
                index,
                NextHandshake::Answer,
            );
        }
    }

    /// Executes the scheduled event of a message. Returns its data's departure once the handshake is complete.
    fn happen(&mut self, index: u32, now: Time) -> Option<Departure> {
        let Handshake {
            departure,
            rts,
            next,
        } = self.open[index];
        match next {
            NextHandshake::Arrive => match rts.posted {
                Some(posted) => self.answer(index, now, posted),
                None => self.open[index].next = NextHandshake::Post(now),
            },
            NextHandshake::Answer => self.see(rts.from, now, index, NextHandshake::Move),
            NextHandshake::Move => {
                self.open.give_back(index);
                return Some(Departure {
                    start: now,
                    rts: None,
                    ..departure
                });
            }
            NextHandshake::Post(_) => {}
        }
        None
    }
}

impl<T: Transit> Transit for Handshakes<T> {
    const SHARED: bool = true;
    const HANDSHAKES: bool = true;
    const CONTROL_FRAMES: bool = T::CONTROL_FRAMES;

    fn depart(&mut self, departure: Departure) {
        let Some(rts) = departure.rts else {
            return self.carrier.depart(departure);
        };
        let index = self.open.insert(Handshake {
            departure,
            rts,
            next: NextHandshake::Arrive,
        });
        if rts.posted.is_none() {
            self.requested.insert(departure.slot, index);
        }
        self.schedule(departure.start, index);
    }

    fn receive_posted(&mut self, slot: Slot, posted: ReceivePosted) {
        let Some(index) = self.requested.remove(&slot) else {
            return;
        };
        let handshake = &mut self.open[index];
        handshake.rts.posted = Some(posted);
        if let NextHandshake::Post(came) = handshake.next {
            self.answer(index, came, posted);
        }
    }

    fn wait(&mut self, rank: Rank, since: Time) {
        for (came, index) in self.polling.wait(rank, since) {
            self.schedule(since.max(came), index);
        }
    }

    fn go_on(&mut self, rank: Rank) {
        self.polling.go_on(rank);
    }

    fn deliver(&mut self, limit: Option<Time>) -> NextProgress {
        loop {
            let next = self.coming.peek().map(|Reverse((time, ..))| *time);
            let until = next.into_iter().chain(limit).min();
            if let Some(happening) = self.carrier.deliver(until)? {
                return Ok(Some(happening));
            }
            let due = self
                .coming
                .peek()
                .copied()
                .filter(|Reverse((at, ..))| limit.is_none_or(|limit| *at <= limit));
            let Some(Reverse((now, _, index))) = due else {
                return Ok(None);
            };
            self.coming.pop();
            if let Some(departure) = self.happen(index, now) {
                return Ok(Some(Progress::Met(departure)));
            }
        }
    }
}

/// Messages that do not affect each other, delivered in the order of their arrival.
#[derive(Default)]
pub(crate) struct InOrder {
    in_flight: BinaryHeap<Reverse<(Time, Slot, Time, Time)>>,
}

impl Transit for InOrder {
    const SHARED: bool = true;

    fn depart(
        &mut self,
        Departure {
            slot,
            start,
            cost,
            latency,
            ..
        }: Departure,
    ) {
        let arrival = start + cost.delay;
        self.in_flight
            .push(Reverse((arrival, slot, start, arrival - latency)));
    }

    fn deliver(&mut self, limit: Option<Time>) -> NextProgress {
        let is_due = |arrival: Time| limit.is_none_or(|limit| arrival <= limit);
        let Some(Reverse((arrival, slot, start, left))) = self
            .in_flight
            .peek()
            .copied()
            .filter(|Reverse((arrival, ..))| is_due(*arrival))
        else {
            return Ok(None);
        };
        self.in_flight.pop();
        Ok(Some(Progress::Arrived(Delivery {
            slot,
            start,
            arrival,
            left,
        })))
    }
}
