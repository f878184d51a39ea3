//! The protocol, without sockets and without a clock.
//!
//! Each message has a sequence number, and each connection counts the messages that it carried: a TCP connection keeps
//! its order, so one number acknowledges all messages before it. When a rail fails, what it carried and what was not
//! acknowledged is sent again over the others, with the same sequence numbers; the receiver takes each number once. The
//! receiver grants credit: a sender uses no sequence number beyond it, which bounds what either end has to remember.
//!
//! Ordered messages are counted apart and wait at the receiver for those before them; unordered ones are handed out as
//! they arrive.
//!
//! A long message may be divided over the rails so that its pieces arrive together ([`flowcast_scheduler::split`]). Each
//! piece has a sequence number of its own, so that all of the above holds for pieces; the receiver joins them.

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

/// What both ends have to agree on, and how they behave.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SessionRule {
    /// Messages that a receiver holds, a multiple of 64; the same at both ends.
    pub window: u64,
    /// Longest message, in bytes; a longer one is a fault.
    pub longest: usize,
    /// An acknowledgement waits no longer than this for a message that takes it along.
    pub acknowledge_within: Time,
    /// A rail on which nothing moves, though something is to be acknowledged, is given up once the other end has answered
    /// on another rail all the while for so long.
    pub silence: Time,
    /// How rails are chosen.
    pub steering: Steering,
    /// What a connection has to show; the same at both ends.
    pub token: Token,
}

/// How a message may be handed out at its receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliveryOrder {
    /// After all ordered messages that were sent before it.
    Ordered,
    /// As soon as it arrives.
    Unordered,
}

/// How a connection came about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opening {
    /// Its rail is new; messages take it at once.
    New,
    /// This end has connected a lost rail again: messages take it once the other end has been heard on it.
    Again,
    /// The other end has connected a lost rail again; it is told so, and messages wait as with [`Opening::Again`].
    Answered,
}

/// Why a message was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Refused {
    /// The receiver holds as many messages as it can; it grants more credit as it consumes them.
    #[error("no credit left: the receiver holds as many messages as it can")]
    NoCredit,
    /// The message is longer than [`SessionRule::longest`].
    #[error("found a message of {found} bytes, expected at most {most}")]
    TooLong {
        /// Its bytes.
        found: usize,
        /// The longest that is allowed.
        most: usize,
    },
}

/// What has happened on a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SessionCounts {
    /// Messages sent, each counted once.
    pub sent: u64,
    /// Those of them that were divided.
    pub divided: u64,
    /// Messages or pieces sent again because their rail failed or slowed down.
    pub sent_again: u64,
    /// Messages or pieces received for the first time.
    pub received: u64,
    /// Messages or pieces received that had arrived before.
    pub repeated: u64,
    /// Acknowledgements that no message took along.
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
    /// Since when it chooses: it knows of no message that was given before.
    policy_since: Ticks,
    alive: RailSet,
    /// Those of them on which the other end is known to hear.
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
    /// Without connections. `costs` are the parameters of the rails, in the order of their numbers.
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

    /// A connection for rail `rail` is there, which may be one more than there were. Stranded messages take it as soon as any may.
    ///
    /// # Errors
    /// More than 16 rails, or a number with a gap before it.
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
    /// As [`Session::new`].
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

    /// Takes a message and gives it to a rail, or to several if that pays; gives which.
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

    /// Bytes arrived on `rail` and lie in the buffer of [`Session::receive_buffer`]. Returns whether a message is ready.
    ///
    /// # Errors
    /// What does not follow the protocol: the rail is then to be given up with [`Session::lost`].
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

    /// The buffer into which the bytes that arrive on `rail` are read.
    pub fn receive_buffer(&mut self, rail: RailId) -> &mut [u8] {
        self.lanes[rail.index()].reader.space(64 * 1024)
    }

    /// Takes the next message that can be handed out, if there is one.
    pub fn receive(&mut self) -> Option<Vec<u8>> {
        self.inbound.consume()
    }

    /// What is to be written on `rail` next.
    pub fn output<'a>(&'a self, rail: RailId, slices: &mut [IoSlice<'a>; AT_ONCE]) -> usize {
        self.lanes[rail.index()].output(slices)
    }

    /// Whether something is to be written on `rail`.
    pub(crate) fn has_output(&self, rail: RailId) -> bool {
        self.alive.contains(rail) && self.lanes[rail.index()].has_output()
    }

    /// So many bytes of the output of `rail` were written.
    pub fn wrote(&mut self, rail: RailId, bytes: usize) {
        self.lanes[rail.index()].wrote(bytes);
    }

    /// The connection of `rail` is gone; what it has not delivered for sure takes other rails.
    pub fn lost(&mut self, rail: RailId, now: Ticks) {
        self.alive = self.alive.without(rail);
        self.proven = self.proven.without(rail);
        self.counts.rails_lost += 1;
        // The last word on credit may have been on this rail.
        self.advertised_credit = 0;
        let parcels = self.lanes[rail.index()].give_up();
        self.send_again(rail, parcels, now);
    }

    /// To be called before waiting, and at least each [`SessionRule::acknowledge_within`]: sends what acknowledgements are due,
    /// and takes messages back from rails that have slowed down. Gives the rails that are silent for
    /// [`SessionRule::silence`]: they are to be given up with [`Session::lost`].
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
            // On all: one of them may be silent, which is not known yet.
            self.alive.for_each(|rail| self.acknowledge(rail));
        }
        self.silent(now)
    }

    /// Acknowledges all that has been received.
    pub(crate) fn acknowledge_all(&mut self) {
        for rail in self.alive {
            if self.lanes[rail.index()].unacknowledged.count > 0 {
                self.acknowledge(rail);
            }
        }
    }

    /// Whether the other end has ever said anything.
    pub(crate) fn has_heard(&self) -> bool {
        self.heard > 0
    }

    /// When a message last arrived or was acknowledged.
    pub(crate) fn advanced(&self) -> Ticks {
        self.advanced
    }

    /// Messages or pieces that have not been acknowledged.
    pub fn outstanding(&self) -> u64 {
        self.lanes.iter().map(RailLane::outstanding).sum::<u64>() + self.stranded.len() as u64
    }

    /// A connection's reader that has already read something, such as its introduction.
    pub(crate) fn began_with(&mut self, rail: RailId, reader: FrameReader) {
        self.lanes[rail.index()].reader = reader;
    }

    /// Whether a message waits for [`Session::receive`].
    pub fn has_messages(&self) -> bool {
        self.inbound.is_ready()
    }

    /// Whether a message would be taken.
    pub fn has_credit(&self) -> bool {
        self.next_sequence < self.credit
    }

    /// Rails with a connection.
    pub fn alive(&self) -> RailSet {
        self.alive
    }

    /// What both ends have agreed on, with the steering of now.
    pub fn rule(&self) -> &SessionRule {
        &self.rule
    }

    /// The parameters of the rails.
    pub fn costs(&self) -> &[LogGp] {
        &self.costs
    }

    /// How many times slower than measured a rail is believed to be, and how often that has changed at once.
    pub fn slowdown(&self, rail: RailId) -> (f64, u64) {
        self.policy.slowdown(rail)
    }

    /// What a rail costs now, measured by what it carried, where a sequential test says that it no longer is what was measured
    /// before; none where it is, or where rails are not adapted to.
    pub fn remeasured(&self, rail: RailId) -> Option<LogGp> {
        self.policy.remeasured(rail)
    }

    /// Bytes of messages given to a rail so far, again counted when they were sent again.
    pub fn given(&self, rail: RailId) -> Bytes {
        Bytes(self.given[rail.index()])
    }

    /// Messages, pieces and rails counted since the session began.
    pub fn counts(&self) -> SessionCounts {
        self.counts
    }

    /// Rails that messages may take now; if none of the allowed ones is left, any.
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

    /// How to divide a message, if that pays and there is credit for a piece on each rail. Sizes are those of frames.
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

    /// Rails to be given up. Of one on which nothing moves the others ask whether the other end still answers.
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

    /// A frame without a message acknowledges and grants credit as any other.
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

    /// What a rail that has slowed down has not begun may be sooner elsewhere.
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
