//! The protocol, without sockets and without a clock.
//!
//! Each message has a sequence number, and each connection counts the messages that it carried. A TCP connection keeps its
//! order, so one number acknowledges all messages before it. When a rail fails, its unacknowledged messages are sent again
//! over the other rails, with the same sequence numbers; the receiver accepts each number once. The receiver grants credit:
//! a sender uses no sequence number beyond it, which bounds the memory of both ends.
//!
//! Ordered messages have a separate count and wait at the receiver for those before them. Unordered messages are delivered
//! when they arrive.
//!
//! A long message may be divided over the rails so that its pieces arrive at the same time ([`flowcast_scheduler::split`]).
//! Each piece has its own sequence number, so everything above holds for pieces. The receiver joins them.

use std::{collections::VecDeque, io::IoSlice};

use flowcast_network::loggp::LogGp;
use flowcast_scheduler::{
    MAX_RAILS, RailId, RailSet, RailsError,
    adaptive::Completion,
    clock::{ClockArithmetic, Ticks},
    split::Split,
};
use flowcast_units::{Bytes, Time};
use thiserror::Error;

use crate::{
    frame::{
        FrameHeader, FrameKind, FramePiece, FrameReader, HEADER, RailFault, UNORDERED, encode,
    },
    inbound::{Inbound, InboundArrival},
    lane::{AT_ONCE, LaneMessage, Parcel, RailLane},
    peer_clock::{PeerClock, Receipt},
    policy::{RailPolicy, Steering},
    silence::RailSilence,
    token::Token,
};

/// Parameters of a session. Some of them have to be the same at both ends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SessionRule {
    /// Number of messages that a receiver can hold, a multiple of 64; the same at both ends.
    pub window: u64,
    /// Longest message, in bytes; a longer one is a fault.
    pub longest: usize,
    /// Longest time that an acknowledgement waits for a message that can carry it.
    pub acknowledge_within: Time,
    /// Time after which a silent rail is given up: an acknowledgement is due, nothing moves on the rail, and the other end
    /// has answered on another rail throughout this time.
    pub silence: Time,
    /// Choice of the rails.
    pub steering: Steering,
    /// Secret that a connection has to present; the same at both ends.
    pub token: Token,
}

/// Time at which the receiver may deliver a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliveryOrder {
    /// After all ordered messages that were sent before it.
    Ordered,
    /// On arrival, even if messages that were sent before it are still missing.
    Unordered,
}

/// Origin of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opening {
    /// The rail is new; messages may use it immediately.
    New,
    /// This end has reconnected a lost rail. Messages may use it after the other end has been heard on it.
    Again,
    /// The other end has reconnected a lost rail. This end acknowledges it, and messages wait as with [`Opening::Again`].
    Answered,
}

/// Reason why a message was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Refused {
    /// The receiver holds as many messages as it can. It grants more credit as it consumes them.
    #[error("no credit left: the receiver holds as many messages as it can")]
    NoCredit,
    /// The message is longer than [`SessionRule::longest`].
    #[error("found a message of {found} bytes, expected at most {most}")]
    TooLong {
        /// Length of the message, in bytes.
        found: usize,
        /// Longest allowed message, in bytes.
        most: usize,
    },
}

/// Counters of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SessionCounts {
    /// Messages sent, each counted once.
    pub sent: u64,
    /// Number of sent messages that were divided.
    pub divided: u64,
    /// Messages or pieces sent again because their rail failed or slowed down.
    pub sent_again: u64,
    /// Messages or pieces received for the first time.
    pub received: u64,
    /// Messages or pieces received that had arrived before.
    pub repeated: u64,
    /// Acknowledgements sent without a message.
    pub bare_acknowledgements: u64,
    /// Rails lost since the session began.
    pub rails_lost: u64,
}

/// One end of a conversation over several rails.
pub struct Session {
    rule: SessionRule,
    costs: Vec<LogGp>,
    lanes: Vec<RailLane>,
    policy: RailPolicy,
    /// Time since which the policy chooses; it does not know messages sent earlier.
    policy_since: Ticks,
    alive: RailSet,
    /// Live rails on which the other end is known to receive.
    proven: RailSet,
    allowed: RailSet,
    changes: [u64; MAX_RAILS],
    inbound: Inbound,
    next_sequence: u64,
    next_order: u64,
    credit: u64,
    advertised_credit: u64,
    /// Messages for which no rail is usable now.
    stranded: VecDeque<Parcel>,
    peer: PeerClock,
    counts: SessionCounts,
    given: [u64; MAX_RAILS],
    /// Frames heard on all rails.
    heard: u64,
    advanced: Ticks,
}

impl Session {
    /// Creates a session without connections. `costs` are the parameters of the rails, indexed by rail.
    ///
    /// # Errors
    /// No rail, or more than 16.
    pub fn new(rule: SessionRule, costs: Vec<LogGp>) -> Result<Session, RailsError> {
        let inbound = Inbound::new(rule.window, rule.longest);
        let credit = inbound.credit();
        Ok(Session {
            policy: RailPolicy::new(rule.steering, &costs)?,
            policy_since: Ticks::ZERO,
            lanes: costs.iter().map(|_| RailLane::default()).collect(),
            rule,
            costs,
            alive: RailSet::NONE,
            proven: RailSet::NONE,
            allowed: RailSet::ALL,
            changes: [0; MAX_RAILS],
            inbound,
            next_sequence: 0,
            next_order: 0,
            credit,
            advertised_credit: credit,
            stranded: VecDeque::new(),
            peer: PeerClock::default(),
            counts: SessionCounts::default(),
            given: [0; MAX_RAILS],
            heard: 0,
            advanced: Ticks::ZERO,
        })
    }

    /// Registers a connection of rail `rail`, which may be a new rail. Stranded messages take it as soon as messages may use
    /// it.
    ///
    /// # Errors
    /// More than 16 rails, or a rail number that leaves a gap.
    pub fn connected(
        &mut self,
        rail: RailId,
        cost: LogGp,
        opening: Opening,
        now: Ticks,
    ) -> Result<(), RailsError> {
        if rail.index() > self.costs.len() || rail.index() >= MAX_RAILS {
            return Err(RailsError::Count(rail.index() + 1));
        }
        if rail.index() == self.costs.len() {
            self.costs.push(cost);
            self.lanes.push(RailLane::default());
            self.follow(self.rule.steering, now)?;
        } else {
            if self.alive.contains(rail) {
                self.lost(rail, now);
            }
            if self.costs[rail.index()] != cost {
                self.costs[rail.index()] = cost;
                self.follow(self.rule.steering, now)?;
            }
        }
        self.alive = self.alive.with(rail);
        match opening {
            Opening::New => self.prove(rail, now),
            Opening::Again => {}
            Opening::Answered => self.acknowledge(rail),
        }
        Ok(())
    }

    /// Chooses rails by `steering` from now on, and only among `allowed`.
    ///
    /// # Errors
    /// The same as for [`Session::new`].
    pub fn steer(
        &mut self,
        steering: Steering,
        allowed: RailSet,
        now: Ticks,
    ) -> Result<(), RailsError> {
        if steering != self.rule.steering {
            self.follow(steering, now)?;
        }
        self.allowed = allowed;
        Ok(())
    }

    /// Accepts a message and assigns it to a rail, or divides it over several if that is faster. Returns the rails used.
    ///
    /// # Errors
    /// No credit, or a message that is too long.
    pub fn send(
        &mut self,
        message: &[u8],
        delivery: DeliveryOrder,
        now: Ticks,
    ) -> Result<RailSet, Refused> {
        if message.len() > self.rule.longest {
            return Err(Refused::TooLong {
                found: message.len(),
                most: self.rule.longest,
            });
        }
        if self.next_sequence >= self.credit {
            return Err(Refused::NoCredit);
        }
        let order = match delivery {
            DeliveryOrder::Ordered => self.next_order,
            DeliveryOrder::Unordered => UNORDERED,
        };
        self.next_order += u64::from(delivery == DeliveryOrder::Ordered);
        self.counts.sent += 1;
        let whole = LaneMessage {
            sequence: self.next_sequence,
            piece: FramePiece::WHOLE,
            order,
            given: now,
        };
        if let Some(split) = self.split(message, now) {
            return Ok(self.divide(whole, message, split, now));
        }
        self.next_sequence += 1;
        Ok(self
            .dispatch(whole, message, now)
            .map_or(RailSet::NONE, |rail| RailSet::NONE.with(rail)))
    }

    /// Processes bytes that arrived on `rail` and lie in the buffer of [`Session::receive_buffer`]. Returns `true` if a
    /// message is ready.
    ///
    /// # Errors
    /// A violation of the protocol. The caller must then give up the rail with [`Session::lost`].
    pub fn arrived(&mut self, rail: RailId, bytes: usize, now: Ticks) -> Result<bool, RailFault> {
        self.lanes[rail.index()].reader.filled(bytes);
        let nanos = now.time(()).as_nanos() as u64;
        loop {
            let lane = &mut self.lanes[rail.index()];
            let Some((header, message)) = lane.reader.next(self.rule.longest, self.credit)? else {
                break;
            };
            (self.heard, lane.heard) = (self.heard + 1, lane.heard + 1);
            if header.kind == FrameKind::Question {
                lane.unacknowledged.add(0, now);
            }
            if header.kind == FrameKind::Data {
                match self.inbound.take(&header, message)? {
                    InboundArrival::First => self.counts.received += 1,
                    InboundArrival::Repeated => self.counts.repeated += 1,
                }
                lane.unacknowledged.add(message.len(), now);
                lane.received += 1;
                lane.arrived = nanos;
                self.advanced = now;
            }
            self.credit = self.credit.max(header.credit);
            let done = lane.acknowledge(&header)?;
            self.learn(rail, header.arrived, &done, now);
            if !self.proven.contains(rail) {
                self.acknowledge(rail);
                self.prove(rail, now);
            }
        }
        Ok(self.inbound.is_ready())
    }

    /// Buffer for the bytes that arrive on `rail`.
    pub fn receive_buffer(&mut self, rail: RailId) -> &mut [u8] {
        self.lanes[rail.index()].reader.space(64 * 1024)
    }

    /// Returns the next message that can be delivered, if there is one.
    pub fn receive(&mut self) -> Option<Vec<u8>> {
        self.inbound.consume()
    }

    /// Fills `slices` with the next output of `rail` and returns the number of slices used.
    pub fn output<'a>(&'a self, rail: RailId, slices: &mut [IoSlice<'a>; AT_ONCE]) -> usize {
        self.lanes[rail.index()].output(slices)
    }

    /// Returns `true` if output is pending on `rail`.
    pub(crate) fn has_output(&self, rail: RailId) -> bool {
        self.alive.contains(rail) && self.lanes[rail.index()].has_output()
    }

    /// Notifies the session that `bytes` bytes of the output of `rail` were written.
    pub fn wrote(&mut self, rail: RailId, bytes: usize) {
        self.lanes[rail.index()].wrote(bytes);
    }

    /// Notifies the session that the connection of `rail` is gone. Its unacknowledged messages take other rails.
    pub fn lost(&mut self, rail: RailId, now: Ticks) {
        self.alive = self.alive.without(rail);
        self.proven = self.proven.without(rail);
        self.counts.rails_lost += 1;
        // The last grant of credit may have been lost with this rail.
        self.advertised_credit = 0;
        let parcels = self.lanes[rail.index()].give_up();
        self.send_again(rail, parcels, now);
    }

    /// Sends the acknowledgements that are due, and withdraws messages from rails that have slowed down. Call it before
    /// waiting, and at least once in each [`SessionRule::acknowledge_within`]. Returns the rails that have been silent for
    /// [`SessionRule::silence`]: the caller must give them up with [`Session::lost`].
    #[must_use]
    pub fn attend(&mut self, now: Ticks) -> RailSet {
        self.reconsider(now);
        let within = Ticks::from_time(self.rule.acknowledge_within, ());
        for rail in self.alive {
            let due = &self.lanes[rail.index()].unacknowledged;
            let waited = due.count > 0 && within <= now.since(due.since);
            if waited || due.count >= self.rule.window / 8 || due.bytes >= 256 * 1024 {
                self.acknowledge(rail);
            }
        }
        if self.inbound.credit() - self.advertised_credit >= self.rule.window / 4 {
            // Uses all rails, because one of them may be silent without our knowledge.
            self.alive.for_each(|rail| self.acknowledge(rail));
        }
        self.silent(now)
    }

    /// Acknowledges everything that has been received.
    pub(crate) fn acknowledge_all(&mut self) {
        for rail in self.alive {
            if self.lanes[rail.index()].unacknowledged.count > 0 {
                self.acknowledge(rail);
            }
        }
    }

    /// Returns `true` if any frame of the other end has arrived.
    pub(crate) fn has_heard(&self) -> bool {
        self.heard > 0
    }

    /// Time at which a message last arrived or was acknowledged.
    pub(crate) fn advanced(&self) -> Ticks {
        self.advanced
    }

    /// Number of messages or pieces that have not been acknowledged.
    pub fn outstanding(&self) -> u64 {
        self.lanes.iter().map(RailLane::outstanding).sum::<u64>() + self.stranded.len() as u64
    }

    /// Sets the reader of a new connection. It may already contain bytes that followed the introduction.
    pub(crate) fn began_with(&mut self, rail: RailId, reader: FrameReader) {
        self.lanes[rail.index()].reader = reader;
    }

    /// Returns `true` if a message is ready for [`Session::receive`].
    pub fn has_messages(&self) -> bool {
        self.inbound.is_ready()
    }

    /// Returns `true` if the credit allows another message.
    pub fn has_credit(&self) -> bool {
        self.next_sequence < self.credit
    }

    /// Rails with a connection.
    pub fn alive(&self) -> RailSet {
        self.alive
    }

    /// Parameters of the session, with the current steering.
    pub fn rule(&self) -> &SessionRule {
        &self.rule
    }

    /// The parameters of the rails.
    pub fn costs(&self) -> &[LogGp] {
        &self.costs
    }

    /// Estimated slowdown of a rail relative to its measured parameters, and the number of abrupt changes.
    pub fn slowdown(&self, rail: RailId) -> (f64, u64) {
        self.policy.slowdown(rail)
    }

    /// Current parameters of a rail, estimated from the messages that it carried. `None` unless a sequential test finds that
    /// they differ from the earlier measurement, and `None` if the policy does not adapt.
    pub fn remeasured(&self, rail: RailId) -> Option<LogGp> {
        self.policy.remeasured(rail)
    }

    /// Bytes of messages assigned to a rail so far. Repeated messages count again.
    pub fn bytes_assigned(&self, rail: RailId) -> Bytes {
        Bytes(self.given[rail.index()])
    }

    /// Counters of messages, pieces and rails since the start of the session.
    pub fn counts(&self) -> SessionCounts {
        self.counts
    }

    /// Rails that messages may use now. If none of the allowed rails is left, all proven rails.
    fn usable(&self) -> RailSet {
        let usable = self.proven.and(self.allowed);
        if usable.is_empty() {
            self.proven
        } else {
            usable
        }
    }

    fn follow(&mut self, steering: Steering, now: Ticks) -> Result<(), RailsError> {
        self.policy = RailPolicy::new(steering, &self.costs)?;
        (self.policy_since, self.rule.steering) = (now, steering);
        Ok(())
    }

    /// Returns the division of a message if it is faster and the credit suffices for a piece on each rail. Sizes are those
    /// of frames.
    fn split(&self, message: &[u8], now: Ticks) -> Option<Split> {
        let usable = self.usable();
        let rails = usable.count() as u64;
        if self.credit - self.next_sequence < rails {
            return None;
        }
        self.policy.divide(
            now,
            Bytes(message.len() as u64 + rails * HEADER as u64),
            usable,
        )
    }

    fn divide(&mut self, whole: LaneMessage, message: &[u8], split: Split, now: Ticks) -> RailSet {
        let mut rails = RailSet::NONE;
        let (mut rest, of) = (message, split.rails() as u8);
        for (index, (rail, size)) in (0..of).zip(split.pieces()) {
            let most = if index + 1 == of {
                usize::MAX
            } else {
                (size.0 as usize).saturating_sub(HEADER)
            };
            let (piece, later) = rest.split_at(most.min(rest.len()));
            rest = later;
            let carried = LaneMessage {
                sequence: self.next_sequence,
                piece: FramePiece { index, of },
                ..whole
            };
            self.next_sequence += 1;
            self.policy
                .give(rail, now, Bytes((HEADER + piece.len()) as u64));
            self.give(Some(rail), carried, piece, now);
            rails = rails.with(rail);
        }
        self.counts.divided += 1;
        rails
    }

    fn dispatch(&mut self, carried: LaneMessage, message: &[u8], now: Ticks) -> Option<RailId> {
        let rail = self
            .policy
            .pick(now, Bytes((HEADER + message.len()) as u64), self.usable());
        self.give(rail, carried, message, now);
        rail
    }

    fn give(&mut self, rail: Option<RailId>, carried: LaneMessage, message: &[u8], now: Ticks) {
        let carried = LaneMessage {
            given: now,
            ..carried
        };
        let (acknowledged, arrived) =
            rail.map_or((0, 0), |rail| self.lanes[rail.index()].acknowledgement());
        self.advertised_credit = self.inbound.credit();
        let header = FrameHeader {
            kind: FrameKind::Data,
            piece: carried.piece,
            sequence: carried.sequence,
            order: carried.order,
            acknowledged,
            arrived,
            credit: self.advertised_credit,
        };
        let mut bytes = Vec::new();
        encode(&mut bytes, &header, message);
        let parcel = Parcel {
            bytes,
            message: Some(carried),
        };
        match rail {
            Some(rail) => {
                self.given[rail.index()] += message.len() as u64;
                self.lanes[rail.index()].push(parcel);
            }
            None => self.stranded.push_back(parcel),
        }
    }

    fn send_again(&mut self, from: RailId, parcels: Vec<Parcel>, now: Ticks) {
        self.policy
            .taken_back(from, now, parcels.iter().map(Parcel::size));
        self.counts.sent_again += parcels.len() as u64;
        for parcel in parcels {
            let carried = parcel.message.expect("only messages are sent again");
            self.dispatch(carried, parcel.payload(), now);
        }
    }

    fn prove(&mut self, rail: RailId, now: Ticks) {
        self.proven = self.proven.with(rail);
        self.assign_stranded(now);
    }

    /// Returns the rails to be given up. If nothing moves on a rail, the other rails query whether the other end still
    /// answers.
    fn silent(&mut self, now: Ticks) -> RailSet {
        let mut silent = RailSet::NONE;
        for rail in self.alive {
            let lane = &mut self.lanes[rail.index()];
            let owed = lane.outstanding() > 0 || !self.proven.contains(rail);
            let moved = owed.then_some(lane.moved());
            let elsewhere = self.heard - lane.heard;
            match lane.silence.look(moved, elsewhere, now, self.rule.silence) {
                RailSilence::Unconfirmed => {}
                RailSilence::Suspected => self.ask_on(self.alive.without(rail)),
                RailSilence::Confirmed => silent = silent.with(rail),
            }
        }
        silent
    }

    fn ask_on(&mut self, rails: RailSet) {
        rails.for_each(|rail| self.push_bare(rail, FrameKind::Question));
    }

    fn assign_stranded(&mut self, now: Ticks) {
        for parcel in std::mem::take(&mut self.stranded) {
            let carried = parcel.message.expect("only messages are stranded");
            self.dispatch(carried, parcel.payload(), now);
        }
    }

    fn acknowledge(&mut self, rail: RailId) {
        self.counts.bare_acknowledgements += 1;
        self.push_bare(rail, FrameKind::Acknowledgement);
    }

    /// Sends a frame without a message. It acknowledges and grants credit like any other frame.
    fn push_bare(&mut self, rail: RailId, kind: FrameKind) {
        let (acknowledged, arrived) = self.lanes[rail.index()].acknowledgement();
        self.advertised_credit = self.inbound.credit();
        let header = FrameHeader {
            acknowledged,
            arrived,
            credit: self.advertised_credit,
            ..FrameHeader::bare(kind)
        };
        let mut bytes = Vec::new();
        encode(&mut bytes, &header, &[]);
        self.lanes[rail.index()].push(Parcel {
            bytes,
            message: None,
        });
    }

    fn learn(&mut self, rail: RailId, arrived: u64, done: &[Parcel], now: Ticks) {
        let Some(last) = done.last().and_then(|last| last.message) else {
            return;
        };
        self.advanced = now;
        let seen = self.peer.seen(Receipt {
            given: last.given,
            arrived,
            acknowledged: now,
        });
        let since = self.policy_since;
        self.policy.completed(
            rail,
            seen,
            done.iter().filter_map(|parcel: &Parcel| {
                let given = parcel.message.map_or(seen, |message| message.given);
                (given >= since).then_some(Completion {
                    size: parcel.size(),
                    given,
                    seen,
                })
            }),
        );
    }

    /// Moves messages that a slowed-down rail has not started to send, because another rail may deliver them earlier.
    fn reconsider(&mut self, now: Ticks) {
        self.policy.overdue(now);
        for rail in self.alive {
            let (slowdown, changes) = self.policy.slowdown(rail);
            if changes == self.changes[rail.index()] {
                continue;
            }
            self.changes[rail.index()] = changes;
            if slowdown > 1.5 && self.usable() != RailSet::NONE.with(rail) {
                let parcels = self.lanes[rail.index()].take_back();
                self.advertised_credit = 0;
                self.send_again(rail, parcels, now);
            }
        }
    }
}
