//! Activity of a thread between two calls, in a rank with several threads.
//!
//! The thread computes for its thread CPU time. It sleeps for the rest of the time: in a join, at a barrier, or on a
//! condition variable. Other threads of the rank end the sleep. Therefore, the thread waits for the last call that each of
//! them completed in the meantime. The rank's first thread starts and joins the other threads. Therefore, a thread's first
//! call waits for the preceding call of the first thread, and the first thread's next call waits for each thread that has
//! made its last call.

use super::{Action, ActionStep, ThreadCall, Translation};
use crate::read::recorded::Clock;
use flowcast_recording::decode::{Item, RecordedCall};
use std::collections::{BTreeMap, BTreeSet};

/// Divisor of a gap: time without CPU counts as sleep if it is longer than 1/16 of the gap. The recorded share of CPU time
/// is accurate to 1/510, and interrupts take some of the time.
const PART: u64 = 16;

/// State after the calls so far.
#[derive(Default)]
pub(super) struct Gaps {
    /// Number of steps up to and including each call.
    behind: Vec<usize>,
    /// Item of each call.
    items: Vec<u32>,
    /// Numbers of the calls of the rank's first thread.
    of_first: Vec<usize>,
    threads: BTreeSet<u32>,
    /// Item of the last call of each thread.
    last_items: BTreeMap<u32, u32>,
    /// Last calls of threads that the first thread has not waited for yet.
    finished: Vec<usize>,
    /// Signals, with the number of steps before each.
    signals: Vec<(usize, ActionStep)>,
}

impl Gaps {
    /// Creates the state before the first call of a rank.
    pub(super) fn new(items: &[Item]) -> Gaps {
        let calls = items
            .iter()
            .zip(0..)
            .filter_map(|(item, number)| Some((thread(item)?, number)));
        Gaps {
            last_items: calls.collect(),
            ..Gaps::default()
        }
    }

    /// Notes that all steps of the current call have been added; `steps` is their total number so far.
    pub(super) fn called(&mut self, steps: usize) {
        self.behind.push(steps);
    }
}

fn thread(item: &Item) -> Option<u32> {
    match item {
        Item::Call(call) => Some(call.thread),
        _ => None,
    }
}

impl Translation<'_> {
    /// Adds the activity between a call and the previous call of its thread.
    pub(super) fn gap(&mut self, call: &RecordedCall, computed: u64) {
        let is_first = self.gaps.threads.insert(call.thread);
        let computed = if is_first && self.context.clock == Clock::Wall {
            0
        } else {
            computed
        };
        let awaited = if is_first {
            self.starter(call, computed)
        } else {
            self.ended_while_asleep(call, computed)
        };
        let joined = self.joined(call);
        // A woken thread computes from then on. If it had no processor for a part of that time, it slept because of that,
        // and is assumed to have computed before it waited.
        let woken = awaited
            .iter()
            .map(|number| self.out.calls[*number].end)
            .max();
        let since = woken.map_or(0, |woken| call.begin.saturating_sub(woken));
        let after = if since <= computed.saturating_add(since / PART) {
            computed.min(since)
        } else {
            0
        };
        self.compute(computed - after);
        for number in if awaited.is_empty() { joined } else { awaited } {
            self.wait_for(number);
        }
        self.compute(after);
        let number = self.out.calls.len();
        if self.is_first_thread(call) {
            self.gaps.of_first.push(number);
        } else if self.gaps.last_items.get(&call.thread) == Some(&self.item) {
            self.gaps.finished.push(number);
        }
        self.gaps.items.push(self.item);
        self.out.calls.push(ThreadCall {
            thread: call.thread,
            computed,
            begin: call.begin,
            end: self.end,
        });
    }

    fn is_first_thread(&self, call: &RecordedCall) -> bool {
        self.out
            .calls
            .first()
            .is_none_or(|first| first.thread == call.thread)
    }

    /// Returns the last calls of threads that ended before this call of the rank's first thread, except those that an
    /// earlier call has waited for.
    fn joined(&mut self, call: &RecordedCall) -> Vec<usize> {
        if !self.is_first_thread(call) {
            return Vec::new();
        }
        let calls = &self.out.calls;
        self.gaps
            .finished
            .extract_if(.., |number| calls[*number].end <= call.begin)
            .collect()
    }

    /// Returns the last call of the rank's first thread before this thread began to compute.
    fn starter(&self, call: &RecordedCall, computed: u64) -> Vec<usize> {
        let (calls, of_first) = (&self.out.calls, &self.gaps.of_first);
        let began = call.begin.saturating_sub(computed);
        let before = of_first.partition_point(|number| calls[*number].end <= began);
        of_first[..before].last().copied().into_iter().collect()
    }

    /// Returns the last calls of other threads that ended in this gap, if the thread slept for a part of it.
    fn ended_while_asleep(&self, call: &RecordedCall, computed: u64) -> Vec<usize> {
        let slept = call.burst.saturating_sub(computed);
        if slept <= self.file.header.cpu_threshold.max(call.burst / PART) {
            return Vec::new();
        }
        let fell_asleep = call.begin.saturating_sub(call.burst);
        let (mut found, mut threads) = (Vec::new(), BTreeSet::from([call.thread]));
        for (number, other) in self.out.calls.iter().enumerate().rev() {
            if other.end <= fell_asleep {
                break;
            }
            if other.end <= call.begin && threads.insert(other.thread) {
                found.push(number);
            }
        }
        found.reverse();
        found
    }

    fn wait_for(&mut self, number: usize) {
        let other = self.out.calls[number];
        let signal = ActionStep {
            item: self.gaps.items[number],
            thread: other.thread,
            time: other.end,
            action: Action::Signal(self.thread),
        };
        self.gaps.signals.push((self.gaps.behind[number], signal));
        self.at_begin(Action::Await(other.thread));
    }

    /// Inserts each signal after the call that it belongs to.
    pub(super) fn insert_signals(&mut self) {
        let mut signals = std::mem::take(&mut self.gaps.signals);
        if signals.is_empty() {
            return;
        }
        signals.sort_by_key(|(behind, _)| *behind);
        let steps = std::mem::take(&mut self.out.steps);
        let mut from = 0;
        for (behind, signal) in signals {
            self.out.steps.extend_from_slice(&steps[from..behind]);
            self.out.steps.push(signal);
            from = behind;
        }
        self.out.steps.extend_from_slice(&steps[from..]);
    }
}
