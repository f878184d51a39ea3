//! The rules of the module `plain` without returning blocked events to a queue: four queues in each rank, each first in,
//! first out.
//!
//! The clocks of a rank determine the starts of its operations:
//! - a computation starts when the processor is free, a send when the processor and the sending interface are free; neither
//!   starts before an older one of its kind;
//! - a receive is posted when the processor is next due to be free; this time is fixed when the receive becomes free;
//! - a message is taken when it has arrived and the processor and the receiving interface are free. All messages have the
//!   same travel time, so messages to a rank arrive in the order of their creation.
//!
//! The next event of a rank is therefore the least of four, by time and then by creation. A tournament of the ranks, or a
//! ladder queue for many ranks, finds the next event of all ranks. No event is examined twice. The plain engine examines
//! each blocked event again whenever the processor becomes free: `n` simultaneous sends cost it `n^2` steps. After the
//! queues have grown, nothing is allocated.

use super::{
    Loggops,
    host::{Arrival, Host, Overflow, later, of_key},
    prepared::{KIND_SHIFT, OperationKind, PreparedOp, PreparedOperations},
    room,
};
use crate::{
    observer::{Observer, ReceivedMessage, Sent, Unobserved},
    outcome::{Outcome, RankOutcome, Waits},
    prefetch::prefetch_at,
};
use flowcast_program::slot::Slot;
use flowcast_traffic::queues::{KeyQueue, NEVER, ladder::Ladder, tournament::Tournament};
use flowcast_units::{Bytes, Rank, Time};

/// Replays a schedule; `None` if it does not reach its end. [`super::plain`] then stops at the same place and reports the
/// reason.
pub fn run(prepared: &PreparedOperations, parameters: Loggops) -> Option<Outcome> {
    attempt(prepared, parameters, &mut Unobserved)
}

/// Replays a schedule and reports its events to an observer; `None` if it does not reach its end.
pub(super) fn attempt<O: Observer>(
    prepared: &PreparedOperations,
    parameters: Loggops,
    observer: &mut O,
) -> Option<Outcome> {
    let ranks = prepared.bases.len() - 1;
    match ranks {
        MANY_RANKS.. => QueueEngine::new(prepared, parameters, observer, Ladder::new(ranks)).run(),
        _ => QueueEngine::new(
            prepared,
            parameters,
            observer,
            Tournament::new(ranks as u32),
        )
        .run(),
    }
}

/// Receives of a channel that wait for messages, or messages that wait for receives, never both.
#[derive(Debug, Clone, Copy)]
struct QueueChannel {
    /// The first operation, with the bit `MESSAGE` if it is a message.
    first: u32,
    last: u32,
}

/// An operation without open dependencies: its number, and above that its kind.
#[derive(Debug, Clone, Copy)]
struct FreeOperation(u32);

impl FreeOperation {
    /// The operation with this number, if its number of open dependencies is 0.
    #[inline(always)]
    fn new(open: u32, node: u32) -> Option<FreeOperation> {
        let is_free = open.is_multiple_of(1 << KIND_SHIFT);
        is_free.then_some(FreeOperation(open | node))
    }

    #[inline(always)]
    fn node(self) -> u32 {
        self.0 % (1 << KIND_SHIFT)
    }

    #[inline(always)]
    fn kind(self) -> OperationKind {
        match self.0 >> KIND_SHIFT {
            0 => OperationKind::Send,
            1 => OperationKind::Recv,
            _ => OperationKind::Calc,
        }
    }
}

/// Bit that marks messages in [`QueueChannel`].
const MESSAGE: u32 = 1 << 31;
const NOBODY: u32 = u32::MAX;

/// Prefetch distance, in operations of the schedule.
const AHEAD: u32 = 12;

/// Number of ranks from which their states do not fit into the nearest cache, so that knowing the next ranks far ahead is
/// worthwhile.
const MANY_RANKS: usize = 2048;

/// Number of ranks from which looking ahead is worthwhile at all.
const SOME_RANKS: usize = 256;

#[derive(Debug, Clone, Copy)]
struct SizeCost {
    bytes: Time,
    rendezvous: bool,
}

/// Parameters in the form that events need.
#[derive(Debug, Clone, Copy)]
struct QueueCosts {
    overhead: Time,
    gap: Time,
    latency: Time,
}

struct QueueEngine<'a, O, Q> {
    prepared: &'a PreparedOperations,
    observer: &'a mut O,
    costs: QueueCosts,
    sizes: Vec<SizeCost>,
    hosts: Vec<Host>,
    overflow: Vec<Overflow>,
    order: Q,
    /// Number of dependencies that each operation still waits for, and above that its kind. With the kind stored here, free
    /// operations are queued without access to the operation itself, which is not in the cache.
    open: Vec<u32>,
    /// Next operation in the same channel, if there is one.
    behind: Vec<u32>,
    channels: Vec<QueueChannel>,
    free: Vec<FreeOperation>,
    set_aside: Vec<FreeOperation>,
    created: u32,
    done: usize,
    messages: u64,
    bytes: u64,
    /// `true` if a receive has met a larger message.
    truncates: bool,
}

impl<'a, O: Observer, Q: KeyQueue> QueueEngine<'a, O, Q> {
    fn new(
        prepared: &'a PreparedOperations,
        parameters: Loggops,
        observer: &'a mut O,
        order: Q,
    ) -> QueueEngine<'a, O, Q> {
        let ranks = prepared.bases.len() - 1;
        let Loggops {
            latency,
            overhead,
            gap,
            ..
        } = parameters;
        QueueEngine {
            prepared,
            observer,
            costs: QueueCosts {
                overhead,
                gap,
                latency,
            },
            sizes: prepared
                .sizes
                .iter()
                .map(|size: &Bytes| SizeCost {
                    bytes: parameters.bytes_time(*size),
                    rendezvous: parameters.is_rendezvous(*size),
                })
                .collect(),
            hosts: vec![Host::default(); ranks],
            overflow: vec![Overflow::default(); ranks],
            order,
            open: prepared.open.clone(),
            behind: vec![0; prepared.ops.len()],
            channels: vec![
                QueueChannel {
                    first: NOBODY,
                    last: NOBODY
                };
                prepared.channels
            ],
            free: Vec::new(),
            set_aside: Vec::new(),
            created: 0,
            done: 0,
            messages: 0,
            bytes: 0,
            truncates: false,
        }
    }

    fn run(mut self) -> Option<Outcome> {
        for rank in Rank::all(self.hosts.len()) {
            let (first, last) = (
                self.prepared.bases[rank],
                self.prepared.bases[rank.index() + 1],
            );
            let roots =
                (first..last).filter_map(|node| FreeOperation::new(self.open[node as usize], node));
            self.free.extend(roots);
            self.queue_free(rank);
        }
        let looks_ahead = self.hosts.len() >= SOME_RANKS;
        while let Some(key) = self.order.first() {
            let (now, kind, rank) = of_key(key);
            match kind {
                OperationKind::Message => self.arrive(now, rank),
                _ => {
                    let node = self.hosts[rank].pop(kind, &mut self.overflow, rank);
                    let op = &self.prepared.ops[node as usize];
                    if !Q::KNOWS_MORE {
                        prefetch_at(&self.prepared.ops, node + AHEAD);
                        prefetch_at(&self.open, node + AHEAD);
                    }
                    match kind {
                        OperationKind::Send => self.send(now, rank, node, op),
                        OperationKind::Recv => self.post(now, rank, node, op),
                        _ => self.compute(now, rank, op),
                    }
                }
            }
            if looks_ahead {
                self.look_ahead();
            }
        }
        self.outcome()
    }

    /// Prefetches the data of the next events, in stages: each stage needs the data of the stage before.
    #[inline(always)]
    fn look_ahead(&self) {
        let [first, second, third, fourth] = self.order.soon();
        if first != NEVER {
            let rank = of_key(first).2;
            self.hosts[rank].prefetch();
            prefetch_at(self.order.keys(), rank.0);
        }
        if second != NEVER {
            self.prefetch_operation(second);
        }
        if third != NEVER {
            self.prefetch_partner(third);
        }
        if fourth != NEVER {
            self.prefetch_dependents(fourth);
        }
    }

    /// Prefetches the operation, or the channel of the message.
    #[inline(always)]
    fn prefetch_operation(&self, key: u128) {
        let (_, kind, rank) = of_key(key);
        let host = &self.hosts[rank];
        if kind != OperationKind::Message || !Q::KNOWS_MORE {
            let node = if Q::KNOWS_MORE {
                host.first(kind)
            } else {
                host.next_node()
            };
            prefetch_at(&self.prepared.ops, node);
            prefetch_at(&self.open, node);
        }
        if (kind == OperationKind::Message || !Q::KNOWS_MORE)
            && let Some(channel) = host.next_channel()
        {
            prefetch_at(&self.channels, channel);
        }
    }

    /// Prefetches the receiver, the counterpart in the channel, or the dependents of the next operation.
    #[inline(always)]
    fn prefetch_partner(&self, key: u128) {
        let (_, kind, rank) = of_key(key);
        let host = &self.hosts[rank];
        let ops = &self.prepared.ops;
        if kind == OperationKind::Message {
            if let Some(channel) = host.next_channel() {
                prefetch_at(ops, self.channels[channel as usize].first & !MESSAGE);
            }
            return;
        }
        let Some(op) = ops.get(host.first(kind) as usize) else {
            return;
        };
        prefetch_at(&self.open, op.first);
        match kind {
            OperationKind::Send => {
                self.hosts[op.peer as usize].prefetch();
                prefetch_at(self.order.keys(), op.peer);
            }
            OperationKind::Recv => prefetch_at(&self.channels, op.channel()),
            _ => [0, 3, 6]
                .into_iter()
                .for_each(|behind| prefetch_at(ops, op.first + behind)),
        }
    }

    /// Prefetches the dependents of the receive that a message meets, or the message that a receive meets.
    #[inline(always)]
    fn prefetch_dependents(&self, key: u128) {
        let (_, kind, rank) = of_key(key);
        let host = &self.hosts[rank];
        let ops = &self.prepared.ops;
        match kind {
            OperationKind::Message => {
                let met = host
                    .next_channel()
                    .map(|channel| self.channels[channel as usize].first & !MESSAGE);
                if let Some(op) = met.and_then(|met| ops.get(met as usize)) {
                    prefetch_at(&self.open, op.first);
                }
            }
            OperationKind::Recv => {
                if let Some(op) = ops.get(host.first(kind) as usize) {
                    prefetch_at(ops, self.channels[op.channel() as usize].first & !MESSAGE);
                }
            }
            _ => {}
        }
    }

    #[inline(always)]
    fn compute(&mut self, now: Time, rank: Rank, op: &PreparedOp) {
        let host = &mut self.hosts[rank];
        let time = Time::from_nanos(f64::from_bits(op.payload));
        host.cpu = now + time;
        host.compute += time;
        self.observer.computed(rank, now, now + time);
        self.start(op);
        self.end(op);
        self.queue_free(rank);
    }

    #[inline(always)]
    fn send(&mut self, now: Time, rank: Rank, node: u32, op: &PreparedOp) {
        let QueueCosts {
            overhead,
            gap,
            latency,
        } = self.costs;
        let cost = self.sizes[op.size() as usize];
        let host = &mut self.hosts[rank];
        let call = std::mem::replace(&mut host.cpu, now + overhead);
        host.sending = now + gap + cost.bytes;
        host.overhead += overhead;
        if !Q::KNOWS_MORE
            && let Some(next) = host.next_send()
        {
            let next = &self.prepared.ops[next as usize];
            prefetch_at(&self.hosts, next.peer);
            prefetch_at(&self.channels, next.channel());
        }
        self.messages += 1;
        self.bytes = self
            .bytes
            .saturating_add(self.prepared.sizes[op.size() as usize].0);
        self.start(op);
        let time = now + overhead + latency;
        if O::WATCHES {
            let sent = Sent {
                class: node,
                call,
                start: now,
                processor: Time::ZERO,
                end: now + overhead,
                departs: now + overhead,
                arrival: time + cost.bytes,
            };
            self.observer.sent(rank, Slot(node), sent);
        }
        let arrival = Arrival {
            time,
            created: self.created,
            node,
            channel: op.channel(),
            size: op.size(),
        };
        self.created += 1;
        if !cost.rendezvous {
            self.end(op);
        }
        let peer = Rank(op.peer);
        let receiver = &mut self.hosts[peer];
        let is_only = receiver.expect(arrival, &mut self.overflow, peer);
        if is_only && peer != rank {
            self.order.set(op.peer, receiver.next(peer));
        }
        self.queue_free(rank);
    }

    #[inline(always)]
    fn post(&mut self, now: Time, rank: Rank, node: u32, op: &PreparedOp) {
        self.start(op);
        if let Some(sent) = self.meet(op.channel(), node) {
            self.observer.posted(Slot(sent), now);
            // The receive decides by its own size, but a sender that has already continued cannot be released again.
            let size = self.prepared.ops[sent as usize].size();
            self.compare(op, size);
            if self.sizes[size as usize].rendezvous && self.sizes[op.size() as usize].rendezvous {
                self.observer.queued(Slot(sent), now);
                return self.finish_both(now, rank, op, sent);
            }
            self.end(op);
        }
        self.queue_free(rank);
    }

    #[inline(always)]
    fn arrive(&mut self, now: Time, rank: Rank) {
        let QueueCosts { overhead, gap, .. } = self.costs;
        let host = &mut self.hosts[rank];
        let Arrival {
            node,
            channel,
            size,
            ..
        } = host.take(&mut self.overflow, rank);
        let cost = self.sizes[size as usize];
        let call = std::mem::replace(&mut host.cpu, now + overhead + cost.bytes);
        host.receiving = now + gap + cost.bytes;
        host.overhead += overhead + cost.bytes;
        if !Q::KNOWS_MORE
            && let Some(next) = host.next_channel()
        {
            prefetch_at(
                &self.prepared.ops,
                self.channels[next as usize].first & !MESSAGE,
            );
        }
        if O::WATCHES {
            let received = ReceivedMessage {
                call,
                processor: Time::ZERO,
                before: call,
                taken: now,
                end: now + overhead + cost.bytes,
            };
            self.observer.received(rank, Slot(node), received);
        }
        if let Some(posted) = self.meet(channel, node | MESSAGE) {
            let posted = &self.prepared.ops[posted as usize];
            self.compare(posted, size);
            if cost.rendezvous {
                return self.finish_both(now, rank, posted, node);
            }
            self.end(posted);
        }
        self.queue_free(rank);
    }

    /// Records a receive that is too small for its message. Usually both have the same size.
    #[inline(always)]
    fn compare(&mut self, recv: &PreparedOp, size: u32) {
        if recv.size() != size {
            let sizes = &self.prepared.sizes;
            self.truncates |= sizes[recv.size() as usize] < sizes[size as usize];
        }
    }

    /// Removes and returns the first counterpart in the channel, or appends `own` to the channel.
    #[inline(always)]
    fn meet(&mut self, channel: u32, own: u32) -> Option<u32> {
        let channel = &mut self.channels[channel as usize];
        let first = channel.first;
        if first == NOBODY {
            *channel = QueueChannel {
                first: own,
                last: own,
            };
            return None;
        }
        if (first ^ own) & MESSAGE == 0 {
            self.behind[(channel.last & !MESSAGE) as usize] = own;
            channel.last = own;
            return None;
        }
        let node = first & !MESSAGE;
        channel.first = if first == channel.last {
            NOBODY
        } else {
            self.behind[node as usize]
        };
        Some(node)
    }

    /// Completes a rendezvous: sender and receiver continue now, the lower rank first.
    #[inline(never)]
    fn finish_both(&mut self, now: Time, rank: Rank, recv: &PreparedOp, sent: u32) {
        let sender = Rank(self.prepared.bases.partition_point(|base| *base <= sent) as u32 - 1);
        let host = &mut self.hosts[sender];
        let before = host.cpu;
        host.cpu = later(now, before);
        if now > before {
            self.observer.held(sender, Slot(sent), before, now);
        }
        host.sending = later(now, host.sending);
        let sent = &self.prepared.ops[sent as usize];
        if sender > rank {
            self.end(recv);
            self.queue_free(rank);
        }
        if sender != rank {
            // The operations that the start of the receive has released belong to the receiver's rank.
            std::mem::swap(&mut self.free, &mut self.set_aside);
            self.end(sent);
            self.queue_free(sender);
            std::mem::swap(&mut self.free, &mut self.set_aside);
        } else {
            self.end(sent);
        }
        if sender <= rank {
            self.end(recv);
            self.queue_free(rank);
        }
    }

    #[inline(always)]
    fn start(&mut self, op: &PreparedOp) {
        if op.by_start > 0 {
            self.release(op.first, op.by_start.into(), op.is_run);
        }
    }

    #[inline(always)]
    fn end(&mut self, op: &PreparedOp) {
        self.done += 1;
        self.release(op.first + u32::from(op.by_start), op.by_end, op.is_run);
    }

    #[inline(always)]
    fn release(&mut self, first: u32, count: u32, is_run: bool) {
        let places = first as usize..first as usize + count as usize;
        if is_run {
            for (dependent, open) in (first..).zip(&mut self.open[places]) {
                *open -= 1;
                self.free.extend(FreeOperation::new(*open, dependent));
            }
        } else {
            for dependent in &self.prepared.dependents[places] {
                let open = &mut self.open[*dependent as usize];
                *open -= 1;
                self.free.extend(FreeOperation::new(*open, *dependent));
            }
        }
    }

    /// Queues the operations that have become free (sends, then receives, then computations) and updates the rank's key.
    #[inline(always)]
    fn queue_free(&mut self, rank: Rank) {
        let host = &mut self.hosts[rank];
        let overflow = &mut self.overflow;
        let mut queue = |free: FreeOperation, kind: OperationKind| {
            host.push(kind, self.created, free.node(), overflow, rank);
            self.created += 1;
        };
        match self.free[..] {
            [] => {}
            [free] => queue(free, free.kind()),
            _ => {
                for kind in [
                    OperationKind::Send,
                    OperationKind::Recv,
                    OperationKind::Calc,
                ] {
                    let of_kind = self.free.iter().filter(|free| free.kind() == kind);
                    of_kind.for_each(|free| queue(*free, kind));
                }
            }
        }
        self.free.clear();
        self.order.set(rank.0, host.next(rank));
    }

    /// Outcome of the replay; `None` if an operation did not end, or a receive was too small.
    fn outcome(self) -> Option<Outcome> {
        if self.truncates && room::is_lacking_in(self.prepared)
            || self.done < self.prepared.ops.len()
            || self.channels.iter().any(|channel| channel.first != NOBODY)
        {
            return None;
        }
        let ranks = self
            .hosts
            .iter()
            .map(|host: &Host| RankOutcome::new(host.cpu, host.compute, host.overhead))
            .collect();
        Some(Outcome {
            ranks,
            messages: self.messages,
            bytes: Bytes(self.bytes),
            waits: Waits::default(),
            ..Outcome::default()
        })
    }
}
