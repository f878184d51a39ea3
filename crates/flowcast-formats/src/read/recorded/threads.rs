//! Order of the steps of ranks with several threads, each of which gets a stream of its own.
//!
//! All ranks are traversed together, in chronological order. A blocking operation is started at the start of its call and
//! waited for at its return. A wait comes once the operation that it waits for has been started. Since the program ended,
//! this happens for every wait. The resulting order determines which thread's receive gets which message and which threads
//! meet in a collective. A replay of the streams (`streams`) cannot deadlock, because this order is valid for it.
//!
//! A request that is completed by another thread than the one that made it belongs to no stream. In this case, the calls of
//! the rank's threads become one row, in the order of the traversal. The rank computes between two calls if any of its
//! threads does.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap, VecDeque},
};

use super::actions::{Action, ActionStep, RankActions, ThreadCall};
use flowcast_program::{build::Channel, program::Communicator};
use flowcast_units::Rank;

/// Arrangement of a rank's threads in the replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ThreadOrder {
    /// Each thread in a stream of its own.
    Streams,
    /// All threads in one row, one call after the other.
    Row,
}

/// Puts the steps of all ranks in an order in which they can be replayed. Returns the arrangement of each rank's threads. If
/// each rank has one thread, nothing changes.
pub(super) fn order(ranks: &mut [RankActions], communicators: &[Communicator]) -> Vec<ThreadOrder> {
    if ranks.iter().all(|rank| rank.calls.is_empty()) {
        return vec![ThreadOrder::Streams; ranks.len()];
    }
    let mut walk = ThreadWalk::new(ranks, communicators);
    let is_whole = walk.run();
    let done = std::mem::take(&mut walk.done);
    let mut orders = Vec::with_capacity(ranks.len());
    for (rank, done) in ranks.iter_mut().zip(done) {
        let is_apart = rank.calls.is_empty() || is_whole && completes_its_own(&done);
        let (steps, order) = if is_apart {
            (done, ThreadOrder::Streams)
        } else {
            (in_a_row(&rank.calls, done), ThreadOrder::Row)
        };
        rank.steps = steps;
        orders.push(order);
    }
    orders
}

/// Returns `true` if each thread waits only for operations that it has started itself.
fn completes_its_own(done: &[ActionStep]) -> bool {
    use Action::*;
    let mut begun = BTreeMap::new();
    done.iter().all(|step| match step.action {
        Send(send) => begun.insert(WaitSend(send), step.thread).is_none(),
        Irecv(post) => begun.insert(WaitRecv(post), step.thread).is_none(),
        Collective(number) => begun.insert(WaitCollective(number), step.thread).is_none(),
        wait => begun.get(&wait).is_none_or(|thread| *thread == step.thread),
    })
}

/// Returns the steps of all threads, one after the other.
fn in_a_row(calls: &[ThreadCall], mut done: Vec<ActionStep>) -> Vec<ActionStep> {
    done.retain(|step| {
        !matches!(
            step.action,
            Action::Compute(_) | Action::Signal(_) | Action::Await(_)
        )
    });
    with_computation(&computing(calls), done)
}

/// Counter that a thread waits for: sends of a channel, ranks at a collective, or signals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum ThreadEvent {
    /// Number of messages to a receiver, by the receiver and its channel.
    Sent(Rank, Channel),
    /// Number of ranks that have reached an execution on a communicator.
    Came(i32, u32),
    /// Number of signals from one thread of a rank to another.
    Signalled(Rank, u32, u32),
}

/// Thread of a rank, by rank and number.
type ThreadPlace = (Rank, u32);

#[derive(Default)]
struct ThreadWalk<'a> {
    ranks: &'a [RankActions],
    sizes: BTreeMap<i32, u32>,
    queues: BTreeMap<ThreadPlace, VecDeque<ActionStep>>,
    ready: BinaryHeap<Reverse<(u64, ThreadPlace)>>,
    counts: BTreeMap<ThreadEvent, u32>,
    waiting: BTreeMap<ThreadEvent, Vec<ThreadPlace>>,
    /// Number of each receive's message in its channel. The next field has the number of each collective call's execution.
    posts: Vec<Vec<u32>>,
    executions: Vec<Vec<u32>>,
    posted: BTreeMap<(Rank, Channel), u32>,
    executed: BTreeMap<(Rank, i32), u32>,
    /// Number of waits of a rank's thread for another one, indexed by rank, the other thread and the waiting thread.
    awaited: BTreeMap<(Rank, u32, u32), u32>,
    done: Vec<Vec<ActionStep>>,
}

impl<'a> ThreadWalk<'a> {
    fn new(ranks: &'a [RankActions], communicators: &[Communicator]) -> ThreadWalk<'a> {
        let mut walk = ThreadWalk {
            ranks,
            sizes: communicators
                .iter()
                .map(|group| (group.id, group.members.len() as u32))
                .collect(),
            posts: ranks.iter().map(|rank| vec![0; rank.posts.len()]).collect(),
            executions: ranks
                .iter()
                .map(|rank| vec![0; rank.collectives.len()])
                .collect(),
            done: vec![Vec::new(); ranks.len()],
            ..ThreadWalk::default()
        };
        for (rank, actions) in (0..).map(Rank).zip(ranks) {
            for step in &actions.steps {
                walk.queues
                    .entry((rank, step.thread))
                    .or_default()
                    .push_back(*step);
            }
        }
        walk.ready = walk
            .queues
            .iter()
            .map(|(place, queue)| Reverse((queue[0].time, *place)))
            .collect();
        walk
    }

    /// Runs the traversal. Returns `true` if all threads reached their ends.
    fn run(&mut self) -> bool {
        while let Some(Reverse((time, place))) = self.ready.pop() {
            self.advance(place, time);
        }
        // Only a damaged recording has waits that never end.
        let mut is_whole = true;
        for ((rank, _), queue) in std::mem::take(&mut self.queues) {
            is_whole &= queue.is_empty();
            self.done[rank.index()].extend(queue);
        }
        is_whole
    }

    /// Executes the next step of a thread if possible.
    fn advance(&mut self, place: ThreadPlace, now: u64) {
        let Some(queue) = self.queues.get_mut(&place) else {
            return;
        };
        let Some(step) = queue.front().copied() else {
            return;
        };
        if let Some(thing) = self.missing_event(place.0, &step) {
            self.waiting.entry(thing).or_default().push(place);
            return;
        }
        self.begin(place.0, &step, now);
        self.done[place.0.index()].push(ActionStep { time: now, ..step });
        if let Some(queue) = self.queues.get_mut(&place) {
            queue.pop_front();
            if let Some(next) = queue.front() {
                self.ready.push(Reverse((next.time.max(now), place)));
            }
        }
    }

    /// Returns the counter that is still too low for this step, or `None` if the step can be executed.
    fn missing_event(&self, rank: Rank, step: &ActionStep) -> Option<ThreadEvent> {
        let actions = &self.ranks[rank.index()];
        let (thing, wanted) = match step.action {
            Action::WaitRecv(post) => {
                let channel = actions.posts[post as usize].channel?;
                (
                    ThreadEvent::Sent(rank, channel),
                    self.posts[rank.index()][post as usize],
                )
            }
            Action::Recv(post) => {
                let channel = actions.posts[post as usize].channel?;
                (
                    ThreadEvent::Sent(rank, channel),
                    self.posted
                        .get(&(rank, channel))
                        .map_or(1, |count| count + 1),
                )
            }
            Action::WaitCollective(number) => {
                let call = actions.collectives[number as usize];
                let id = call.record.communicator;
                let execution = self.executions[rank.index()][number as usize];
                (
                    ThreadEvent::Came(id, execution),
                    self.sizes.get(&id).copied().filter(|_| !call.dropped)?,
                )
            }
            Action::Await(from) => {
                let pair = (rank, from, step.thread);
                (
                    ThreadEvent::Signalled(rank, from, step.thread),
                    self.awaited.get(&pair).map_or(1, |count| count + 1),
                )
            }
            _ => return None,
        };
        (self.counts.get(&thing).copied().unwrap_or(0) < wanted).then_some(thing)
    }

    fn begin(&mut self, rank: Rank, step: &ActionStep, now: u64) {
        use Action::*;
        let actions = &self.ranks[rank.index()];
        match step.action {
            Signal(to) => self.count(ThreadEvent::Signalled(rank, step.thread, to), now),
            Await(from) => *self.awaited.entry((rank, from, step.thread)).or_default() += 1,
            Send(send) if !actions.sends[send as usize].dropped => {
                let (receiver, channel) = actions.sends[send as usize].seen_by_receiver(rank);
                self.count(ThreadEvent::Sent(receiver, channel), now);
            }
            Recv(post) | Irecv(post) => {
                if let Some(channel) = actions.posts[post as usize].channel {
                    let count = self.posted.entry((rank, channel)).or_default();
                    *count += 1;
                    self.posts[rank.index()][post as usize] = *count;
                }
            }
            Collective(number) if !actions.collectives[number as usize].dropped => {
                let id = actions.collectives[number as usize].record.communicator;
                let execution = self.executed.entry((rank, id)).or_default();
                *execution += 1;
                let execution = *execution;
                self.executions[rank.index()][number as usize] = execution;
                self.count(ThreadEvent::Came(id, execution), now);
            }
            _ => {}
        }
    }

    fn count(&mut self, thing: ThreadEvent, now: u64) {
        *self.counts.entry(thing).or_default() += 1;
        let waiting = self.waiting.remove(&thing).unwrap_or_default();
        self.ready
            .extend(waiting.into_iter().map(|place| Reverse((now, place))));
    }
}

/// Returns the steps with the computation before each.
fn with_computation(computing: &[(u64, u64)], done: Vec<ActionStep>) -> Vec<ActionStep> {
    let mut steps = Vec::with_capacity(done.len() * 2);
    let mut now = 0;
    let mut spans = computing.iter().peekable();
    for step in done {
        let mut computed = 0;
        while let Some((begin, end)) = spans.peek() {
            computed += (*end).min(step.time).saturating_sub((*begin).max(now));
            if *end > step.time {
                break;
            }
            spans.next();
        }
        if computed > 0 {
            steps.push(ActionStep {
                action: Action::Compute(computed),
                ..step
            });
        }
        now = now.max(step.time);
        steps.push(step);
    }
    steps
}

/// Returns the periods in which at least one thread computes, in order and without overlap. Each thread computes immediately
/// before its calls.
fn computing(calls: &[ThreadCall]) -> Vec<(u64, u64)> {
    let mut spans: Vec<(u64, u64)> = calls
        .iter()
        .map(|call| (call.begin.saturating_sub(call.computed), call.begin))
        .collect();
    spans.sort_unstable();
    let mut joined: Vec<(u64, u64)> = Vec::new();
    for (begin, end) in spans {
        match joined.last_mut() {
            Some(last) if begin <= last.1 => last.1 = last.1.max(end),
            _ => joined.push((begin, end)),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::{
        super::actions::{Post, Send},
        *,
    };
    use flowcast_program::build::NON_BLOCKING;
    use flowcast_units::Bytes;

    #[test]
    fn a_rank_computes_while_any_of_its_threads_does() {
        // Thread 0 computes from 0 to 10 and from 20 to 30, thread 1 from 16 to 36.
        let call = |thread, computed, begin, end| ThreadCall {
            thread,
            computed,
            begin,
            end,
        };
        let calls = [
            call(0, 10, 10, 20),
            call(1, 0, 15, 16),
            call(0, 10, 30, 35),
            call(1, 20, 36, 40),
        ];
        assert_eq!(computing(&calls), [(0, 10), (15, 15), (16, 36)]);
        let step = |time, action| ActionStep {
            item: 0,
            thread: 0,
            time,
            action,
        };
        let steps = vec![
            step(10, Action::Send(0)),
            step(15, Action::Irecv(0)),
            step(20, Action::WaitSend(0)),
            step(40, Action::WaitRecv(0)),
        ];
        let actions: Vec<Action> = with_computation(&computing(&calls), steps)
            .iter()
            .map(|step| step.action)
            .collect();
        use Action::*;
        assert_eq!(
            actions,
            [
                Compute(10),
                Send(0),
                Irecv(0),
                Compute(4),
                WaitSend(0),
                Compute(16),
                WaitRecv(0)
            ]
        );
    }

    /// Rank 0's first thread waits for the answer to a message from its second thread, which is later according to the
    /// times.
    #[test]
    fn a_wait_comes_after_the_send_of_another_thread_that_it_depends_on() {
        let channel = |peer, tag| Channel {
            peer: Rank(peer),
            tag,
            communicator: 0,
        };
        let send = |peer, tag| Send {
            channel: channel(peer, tag),
            size: Bytes(8),
            mode: NON_BLOCKING,
            dropped: false,
        };
        let step = |thread, time, action| ActionStep {
            item: 0,
            thread,
            time,
            action,
        };
        let two_threads = RankActions {
            steps: vec![
                step(0, 1, Action::Irecv(0)),
                step(0, 10, Action::WaitRecv(0)),
                step(1, 11, Action::Send(0)),
            ],
            posts: vec![Post {
                channel: Some(channel(1, 5)),
                takes: None,
            }],
            sends: vec![send(1, 6)],
            calls: vec![ThreadCall {
                thread: 0,
                computed: 0,
                begin: 1,
                end: 10,
            }],
            ..RankActions::default()
        };
        let one_thread = RankActions {
            steps: vec![step(0, 3, Action::Recv(0)), step(0, 4, Action::Send(0))],
            posts: vec![Post {
                channel: Some(channel(0, 6)),
                takes: None,
            }],
            sends: vec![send(0, 5)],
            ..RankActions::default()
        };
        let mut ranks = [two_threads, one_thread];
        order(&mut ranks, &[]);
        let actions: Vec<Action> = ranks[0].steps.iter().map(|step| step.action).collect();
        let at = |wanted| actions.iter().position(|action| *action == wanted).unwrap();
        assert!(at(Action::Send(0)) < at(Action::WaitRecv(0)), "{actions:?}");
    }
}
