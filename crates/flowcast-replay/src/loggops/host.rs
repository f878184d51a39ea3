//! A rank of the fast engine: clocks and four queues, in three cache lines while the queues are short.
//!
//! Operations that become free together are usually adjacent in the schedule. A queue of operations is therefore stored as
//! runs of adjacent operations: a thousand sends need no more space than one.

use std::collections::VecDeque;

use super::prepared::OperationKind;
use crate::prefetch::prefetch;
use flowcast_traffic::queues::{MEMBER_BITS, NEVER, member_of, time_of};
use flowcast_units::{Rank, Time};

/// Adjacent operations, created one after the other.
#[derive(Debug, Clone, Copy, Default)]
struct HostRun {
    created: u32,
    node: u32,
    count: u32,
}

impl HostRun {
    /// Extends the run by an operation and returns `true`, if the operation continues the run.
    #[inline(always)]
    fn takes(&mut self, created: u32, node: u32) -> bool {
        let continues = self.node.wrapping_add(self.count) == node
            && self.created.wrapping_add(self.count) == created;
        self.count += u32::from(continues);
        continues
    }
}

/// A message in flight.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Arrival {
    pub time: Time,
    pub created: u32,
    /// The sender's operation that sends it.
    pub node: u32,
    pub channel: u32,
    pub size: u32,
}

const NEAR: usize = 4;

/// State of a rank.
#[derive(Debug, Clone, Default)]
#[repr(C, align(64))]
pub(super) struct Host {
    pub cpu: Time,
    pub sending: Time,
    pub receiving: Time,
    /// Time at which the first receives are due to be posted.
    recv_time: Time,
    sends: HostRun,
    calcs: HostRun,
    /// Bits of the queues that continue in [`Overflow`].
    overflown: u8,
    head: u8,
    length: u8,
    recvs: HostRun,
    pub compute: Time,
    pub overhead: Time,
    /// The first messages, as a ring.
    arrivals: [Arrival; NEAR],
}

/// Entries that do not fit into a [`Host`].
#[derive(Debug, Clone, Default)]
pub(super) struct Overflow {
    /// Sends, receives and computations; only receives have a time.
    runs: [VecDeque<(Time, HostRun)>; 3],
    arrivals: VecDeque<Arrival>,
}

#[inline(always)]
pub(super) fn later(one: Time, other: Time) -> Time {
    if one > other { one } else { other }
}

#[inline(always)]
fn key(time: Time, created: u32, kind: OperationKind, rank: Rank) -> u128 {
    u128::from(time.as_nanos().to_bits()) << 64
        | u128::from(created) << 32
        | u128::from((kind as u32) << MEMBER_BITS | rank.0)
}

/// Time, kind and rank of a key.
#[inline(always)]
pub(super) fn of_key(key: u128) -> (Time, OperationKind, Rank) {
    let kind = [
        OperationKind::Send,
        OperationKind::Recv,
        OperationKind::Calc,
        OperationKind::Message,
    ][key as u32 as usize >> MEMBER_BITS];
    (time_of(key), kind, Rank(member_of(key)))
}

impl Host {
    /// Key of its next event: the least of the four queues' heads, by time, then by creation.
    #[inline(always)]
    pub(super) fn next(&self, rank: Rank) -> u128 {
        let mut least = NEVER;
        if self.sends.count > 0 {
            least = least.min(key(
                later(self.cpu, self.sending),
                self.sends.created,
                OperationKind::Send,
                rank,
            ));
        }
        if self.recvs.count > 0 {
            least = least.min(key(
                self.recv_time,
                self.recvs.created,
                OperationKind::Recv,
                rank,
            ));
        }
        if self.length > 0 {
            let first = &self.arrivals[self.head as usize % NEAR];
            let time = later(first.time, later(self.cpu, self.receiving));
            least = least.min(key(time, first.created, OperationKind::Message, rank));
        }
        if self.calcs.count > 0 {
            least = least.min(key(self.cpu, self.calcs.created, OperationKind::Calc, rank));
        }
        least
    }

    #[inline(always)]
    fn run(&mut self, kind: OperationKind) -> &mut HostRun {
        match kind {
            OperationKind::Send => &mut self.sends,
            OperationKind::Calc => &mut self.calcs,
            _ => &mut self.recvs,
        }
    }

    /// Queues an operation that has become free.
    #[inline(always)]
    pub(super) fn push(
        &mut self,
        kind: OperationKind,
        created: u32,
        node: u32,
        overflow: &mut [Overflow],
        rank: Rank,
    ) {
        let cpu = self.cpu;
        let is_recv = kind == OperationKind::Recv;
        if self.overflown >> kind as u8 & 1 == 0 {
            let same_time = !is_recv || self.recv_time == cpu;
            let run = self.run(kind);
            if run.count == 0 {
                *run = HostRun {
                    created,
                    node,
                    count: 1,
                };
                if is_recv {
                    self.recv_time = cpu;
                }
                return;
            }
            if same_time && run.takes(created, node) {
                return;
            }
        }
        self.push_far(kind, created, node, &mut overflow[rank]);
    }

    #[inline(never)]
    fn push_far(&mut self, kind: OperationKind, created: u32, node: u32, overflow: &mut Overflow) {
        self.overflown |= 1 << kind as u8;
        let runs = &mut overflow.runs[kind as usize];
        let continues = runs
            .back_mut()
            .is_some_and(|(time, run)| *time == self.cpu && run.takes(created, node));
        if !continues {
            runs.push_back((
                self.cpu,
                HostRun {
                    created,
                    node,
                    count: 1,
                },
            ));
        }
    }

    /// Removes and returns the first operation of a kind.
    #[inline(always)]
    pub(super) fn pop(
        &mut self,
        kind: OperationKind,
        overflow: &mut [Overflow],
        rank: Rank,
    ) -> u32 {
        let run = self.run(kind);
        let node = run.node;
        *run = HostRun {
            created: run.created + 1,
            node: node + 1,
            count: run.count - 1,
        };
        if run.count == 0 && self.overflown >> kind as u8 & 1 == 1 {
            self.refill(kind, &mut overflow[rank]);
        }
        node
    }

    #[inline(never)]
    fn refill(&mut self, kind: OperationKind, overflow: &mut Overflow) {
        let runs = &mut overflow.runs[kind as usize];
        if let Some((time, run)) = runs.pop_front() {
            *self.run(kind) = run;
            if kind == OperationKind::Recv {
                self.recv_time = time;
            }
        }
        if runs.is_empty() {
            self.overflown &= !(1 << kind as u8);
        }
    }

    /// Queues a message; returns `true` if it is the only one.
    #[inline(always)]
    pub(super) fn expect(
        &mut self,
        arrival: Arrival,
        overflow: &mut [Overflow],
        rank: Rank,
    ) -> bool {
        if self.length as usize == NEAR {
            overflow[rank].arrivals.push_back(arrival);
            self.overflown |= 1 << OperationKind::Message as u8;
            return false;
        }
        self.arrivals[(self.head + self.length) as usize % NEAR] = arrival;
        self.length += 1;
        self.length == 1
    }

    /// Removes and returns the first message.
    #[inline(always)]
    pub(super) fn take(&mut self, overflow: &mut [Overflow], rank: Rank) -> Arrival {
        let place = self.head as usize % NEAR;
        let first = self.arrivals[place];
        self.head = (place as u8 + 1) % NEAR as u8;
        self.length -= 1;
        if self.overflown >> OperationKind::Message as u8 & 1 == 1 {
            // The ring was full, so the place of the first message is now the last one.
            let more = &mut overflow[rank].arrivals;
            if let Some(arrival) = more.pop_front() {
                self.arrivals[place] = arrival;
                self.length += 1;
            }
            if more.is_empty() {
                self.overflown &= !(1 << OperationKind::Message as u8);
            }
        }
        first
    }

    /// Prefetches the whole state.
    #[inline(always)]
    pub(super) fn prefetch(&self) {
        prefetch(&self.cpu);
        prefetch(&self.compute);
        prefetch(&self.arrivals[NEAR - 1]);
    }

    /// First operation of a kind.
    #[inline(always)]
    pub(super) fn first(&self, kind: OperationKind) -> u32 {
        match kind {
            OperationKind::Send => self.sends.node,
            OperationKind::Calc => self.calcs.node,
            _ => self.recvs.node,
        }
    }

    /// Operation of its next send.
    #[inline(always)]
    pub(super) fn next_send(&self) -> Option<u32> {
        (self.sends.count > 0).then_some(self.sends.node)
    }

    /// An operation that it will execute soon.
    #[inline(always)]
    pub(super) fn next_node(&self) -> u32 {
        if self.calcs.count > 0 {
            self.calcs.node
        } else {
            self.sends.node
        }
    }

    /// Channel of its first message.
    #[inline(always)]
    pub(super) fn next_channel(&self) -> Option<u32> {
        (self.length > 0).then(|| self.arrivals[self.head as usize % NEAR].channel)
    }
}
