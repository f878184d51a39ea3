//! Calls of several threads in one order.
//!
//! Threads of a rank call at the same time, and a replay's rank does one thing after the other. So what blocks is
//! begun where its call began and waited for where it ended, in order of time; between two of these moments the rank
//! computes if any thread is outside of MPI. Times alone could put a wait before a send of another thread that the
//! awaited message depends on, and the replay would stand still. So all ranks are walked through together, and a wait
//! comes when what it waits for has been begun: the program did end, so each of them does.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

use super::actions::{Action, RankActions, Step};
use crate::build::Channel;
use crate::program::Communicator;
use flowcast_units::Rank;

/// Puts the steps of ranks with several threads in order, and computation between them; where each rank has one thread,
/// nothing changes.
pub(super) fn order(ranks: &mut [RankActions], communicators: &[Communicator]) {
    if ranks.iter().all(|rank| rank.calls.is_empty()) {
        return;
    }
    let mut walk = Walk::new(ranks, communicators);
    walk.run();
    let orders = std::mem::take(&mut walk.done);
    for (rank, steps) in ranks.iter_mut().zip(orders) {
        let calls = std::mem::take(&mut rank.calls);
        rank.steps = if calls.is_empty() { steps } else { with_computation(&outside(&calls), steps) };
    }
}

/// What a wait waits for: the number of sends of a channel, of receives posted for it, of ranks at a collective.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Thing {
    /// Messages to a receiver, by the receiver and its channel.
    Sent(Rank, Channel),
    /// Ranks that have come to an execution on a communicator.
    Came(i32, u32),
}

/// A thread of a rank, by rank and number.
type Place = (Rank, u32);

struct Walk<'a> {
    ranks: &'a [RankActions],
    sizes: BTreeMap<i32, u32>,
    queues: BTreeMap<Place, VecDeque<Step>>,
    ready: BinaryHeap<Reverse<(u64, Place)>>,
    counts: BTreeMap<Thing, u32>,
    waiting: BTreeMap<Thing, Vec<Place>>,
    /// Which message of its channel each receive gets, which execution each collective call is.
    posts: Vec<Vec<u32>>,
    executions: Vec<Vec<u32>>,
    posted: BTreeMap<(Rank, Channel), u32>,
    executed: BTreeMap<(Rank, i32), u32>,
    done: Vec<Vec<Step>>,
}

impl<'a> Walk<'a> {
    fn new(ranks: &'a [RankActions], communicators: &[Communicator]) -> Walk<'a> {
        let mut walk = Walk {
            ranks,
            sizes: communicators.iter().map(|group| (group.id, group.members.len() as u32)).collect(),
            queues: BTreeMap::new(),
            ready: BinaryHeap::new(),
            counts: BTreeMap::new(),
            waiting: BTreeMap::new(),
            posts: ranks.iter().map(|rank| vec![0; rank.posts.len()]).collect(),
            executions: ranks.iter().map(|rank| vec![0; rank.collectives.len()]).collect(),
            posted: BTreeMap::new(),
            executed: BTreeMap::new(),
            done: vec![Vec::new(); ranks.len()],
        };
        for (rank, actions) in (0..).map(Rank).zip(ranks) {
            for step in &actions.steps {
                walk.queues.entry((rank, step.thread)).or_default().push_back(*step);
            }
        }
        walk.ready = walk.queues.iter().map(|(place, queue)| Reverse((queue[0].time, *place))).collect();
        walk
    }

    fn run(&mut self) {
        while let Some(Reverse((time, place))) = self.ready.pop() {
            self.advance(place, time);
        }
        // Only a damaged recording has waits that nothing ends.
        for ((rank, _), queue) in std::mem::take(&mut self.queues) {
            self.done[rank.index()].extend(queue);
        }
    }

    /// Does the next step of a thread, if it may be done.
    fn advance(&mut self, place: Place, now: u64) {
        let Some(queue) = self.queues.get_mut(&place) else { return };
        let Some(step) = queue.front().copied() else { return };
        if let Some(thing) = self.lacks(place.0, step.action) {
            self.waiting.entry(thing).or_default().push(place);
            return;
        }
        self.begin(place.0, step.action, now);
        self.done[place.0.index()].push(Step { time: now, ..step });
        if let Some(queue) = self.queues.get_mut(&place) {
            queue.pop_front();
            if let Some(next) = queue.front() {
                self.ready.push(Reverse((next.time.max(now), place)));
            }
        }
    }

    /// What has to be begun before this.
    fn lacks(&self, rank: Rank, action: Action) -> Option<Thing> {
        let actions = &self.ranks[rank.index()];
        let (thing, wanted) = match action {
            Action::WaitRecv(post) => {
                let channel = actions.posts[post as usize].channel?;
                (Thing::Sent(rank, channel), self.posts[rank.index()][post as usize])
            }
            Action::Recv(post) => {
                let channel = actions.posts[post as usize].channel?;
                (Thing::Sent(rank, channel), self.posted.get(&(rank, channel)).map_or(1, |count| count + 1))
            }
            Action::WaitCollective(number) => {
                let call = actions.collectives[number as usize];
                let id = call.record.communicator;
                let execution = self.executions[rank.index()][number as usize];
                (Thing::Came(id, execution), self.sizes.get(&id).copied().filter(|_| !call.dropped)?)
            }
            _ => return None,
        };
        (self.counts.get(&thing).copied().unwrap_or(0) < wanted).then_some(thing)
    }

    fn begin(&mut self, rank: Rank, action: Action, now: u64) {
        let actions = &self.ranks[rank.index()];
        match action {
            Action::Send(send) if !actions.sends[send as usize].dropped => {
                let Channel { peer, .. } = actions.sends[send as usize].channel;
                let channel = Channel { peer: rank, ..actions.sends[send as usize].channel };
                self.count(Thing::Sent(peer, channel), now);
            }
            Action::Recv(post) | Action::Irecv(post) => {
                if let Some(channel) = actions.posts[post as usize].channel {
                    let count = self.posted.entry((rank, channel)).or_default();
                    *count += 1;
                    self.posts[rank.index()][post as usize] = *count;
                }
            }
            Action::Collective(number) if !actions.collectives[number as usize].dropped => {
                let id = actions.collectives[number as usize].record.communicator;
                let execution = self.executed.entry((rank, id)).or_default();
                *execution += 1;
                let execution = *execution;
                self.executions[rank.index()][number as usize] = execution;
                self.count(Thing::Came(id, execution), now);
            }
            _ => {}
        }
    }

    fn count(&mut self, thing: Thing, now: u64) {
        *self.counts.entry(thing).or_default() += 1;
        let waiting = self.waiting.remove(&thing).unwrap_or_default();
        self.ready.extend(waiting.into_iter().map(|place| Reverse((now, place))));
    }
}

/// The steps with the computation before each.
fn with_computation(outside: &[(u64, u64)], done: Vec<Step>) -> Vec<Step> {
    let mut steps = Vec::with_capacity(done.len() * 2);
    let mut now = 0;
    let mut spans = outside.iter().peekable();
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
            steps.push(Step { action: Action::Compute(computed), ..step });
        }
        now = now.max(step.time);
        steps.push(step);
    }
    steps
}

/// The times in which at least one thread is between two of its calls, in order and without overlap. The first thread
/// is there from the start.
fn outside(calls: &[(u32, u64, u64)]) -> Vec<(u64, u64)> {
    let mut last: BTreeMap<u32, u64> = BTreeMap::from([(0, 0)]);
    let mut spans = Vec::new();
    for (thread, begin, end) in calls {
        if let Some(before) = last.insert(*thread, *end) {
            spans.push((before, *begin));
        }
    }
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
    use super::super::actions::{Post, Send};
    use super::*;
    use flowcast_units::Bytes;

    #[test]
    fn a_rank_computes_while_any_of_its_threads_does() {
        // Thread 0 is in MPI from 10 to 20, thread 1 from 15 to 40; between 20 and 30 only thread 0 computes.
        let calls = [(0, 10, 20), (1, 15, 16), (0, 30, 35), (1, 36, 40)];
        assert_eq!(outside(&calls), [(0, 10), (16, 36)]);
        let step = |time, action| Step { item: 0, thread: 0, time, action };
        let steps = vec![
            step(10, Action::Send(0)),
            step(15, Action::Irecv(0)),
            step(20, Action::WaitSend(0)),
            step(40, Action::WaitRecv(0)),
        ];
        let actions: Vec<Action> = with_computation(&outside(&calls), steps).iter().map(|step| step.action).collect();
        use Action::*;
        assert_eq!(actions, [Compute(10), Send(0), Irecv(0), Compute(4), WaitSend(0), Compute(16), WaitRecv(0)]);
    }

    /// Rank 0's first thread waits for an answer to what its second thread sends, which the times put later.
    #[test]
    fn a_wait_comes_after_the_send_of_another_thread_that_it_depends_on() {
        let channel = |peer, tag| Channel { peer: Rank(peer), tag, communicator: 0 };
        let send = |peer, tag| Send {
            channel: channel(peer, tag),
            size: Bytes(8),
            synchronous: false,
            non_blocking: true,
            dropped: false,
        };
        let step = |thread, time, action| Step { item: 0, thread, time, action };
        let two_threads = RankActions {
            steps: vec![step(0, 1, Action::Irecv(0)), step(0, 10, Action::WaitRecv(0)), step(1, 11, Action::Send(0))],
            posts: vec![Post { channel: Some(channel(1, 5)), takes: None }],
            sends: vec![send(1, 6)],
            calls: vec![(0, 1, 10), (1, 11, 12)],
            ..RankActions::default()
        };
        let one_thread = RankActions {
            steps: vec![step(0, 3, Action::Recv(0)), step(0, 4, Action::Send(0))],
            posts: vec![Post { channel: Some(channel(0, 6)), takes: None }],
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
