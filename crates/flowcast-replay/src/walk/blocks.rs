//! Parallel walk: blocks of ranks, each followed by its own thread.
//!
//! If messages do not affect each other, the history of a rank depends only on its own past and on the arrival times of its
//! messages, whatever the order in which ranks are followed. The threads therefore need neither a common clock nor a
//! look-ahead. Each thread follows its ranks as far as possible and passes arrivals to the threads of their receivers. The
//! result is identical to the result of a single thread, to the last bit. A thread without runnable ranks waits for
//! arrivals. Once all threads wait and no arrival is in a ring, the walk is over.

use std::{
    collections::VecDeque,
    ops::Range,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
};

use super::{
    RankState, Walk, WalkEngine,
    ring::{RingReader, RingWriter, SpanRing},
};
use crate::{
    observer::Unobserved,
    outcome::RankOutcome,
    transit::{Delivery, Departure, NextProgress, Progress, Transit},
};
use flowcast_program::{program::Program, slot::Slot};
use flowcast_units::{Rank, Time};

/// Number of messages below which threads cost more than they save.
pub(super) const MANY_MESSAGES: u32 = 1 << 18;

/// Number of times that a thread looks for arrivals before it reports that it waits; it then yields to other threads between
/// two looks.
const LOOKS: u32 = 2000;

/// Outcome of each rank; `None` if some ranks wait forever.
pub(super) fn run(walk: &Walk<'_, 1>, threads: usize) -> Option<Vec<RankOutcome>> {
    let blocks = blocks(walk.program, threads);
    let common = Common {
        firsts: blocks.iter().map(|block| walk.slots(block).start).collect(),
        rings: blocks
            .iter()
            .map(|_| blocks.iter().map(|_| SpanRing::new()).collect())
            .collect(),
        waiting: AtomicUsize::new(0),
        resumed: AtomicUsize::new(0),
        over: AtomicBool::new(false),
    };
    let parts: Option<Vec<Vec<RankOutcome>>> = std::thread::scope(|scope| {
        let common = &common;
        let threads: Vec<_> = blocks
            .into_iter()
            .enumerate()
            .map(|(index, block): (usize, Range<u32>)| {
                scope.spawn(move || {
                    follow(
                        walk,
                        block.clone(),
                        &mut Border::new(common, index, walk.slots(&block)),
                    )
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("a walk does not panic"))
            .collect()
    });
    Some(parts?.concat())
}

/// Follows the ranks of a block to their end.
fn follow(
    walk: &Walk<'_, 1>,
    block: Range<u32>,
    border: &mut Border<'_>,
) -> Option<Vec<RankOutcome>> {
    let observer = &mut Unobserved;
    let states = walk.beginning(&block);
    let ranks = match walk.route_of.is_empty() {
        true => {
            WalkEngine::<1, _, _, false, false>::new(walk, block, observer, border).walk(states)
        }
        false => {
            WalkEngine::<1, _, _, false, true>::new(walk, block, observer, border).walk(states)
        }
    };
    let ranks = ranks
        .ok()
        .filter(|ranks| ranks.iter().all(|state| state.done))?;
    Some(ranks.iter().map(RankState::outcome).collect())
}

/// Ranges of consecutive ranks with about the same total number of instructions.
fn blocks(program: &Program, threads: usize) -> Vec<Range<u32>> {
    let streams = program.streams() as u32;
    let words = |rank: u32| program.words(Rank(rank)).len() as u64 + 1;
    let all: u64 = (0..streams).map(words).sum();
    let (mut blocks, mut start, mut before) = (Vec::new(), 0, 0);
    for rank in 0..streams {
        before += words(rank);
        if before * threads as u64 >= all * (blocks.len() as u64 + 1) {
            blocks.push(start..rank + 1);
            start = rank + 1;
        }
    }
    blocks
}

/// State shared by the threads.
struct Common {
    /// The first slot of each block.
    firsts: Vec<Slot>,
    /// Rings, indexed by the block of the sender, then of the receiver.
    rings: Vec<Vec<SpanRing>>,
    /// Number of threads that wait for arrivals.
    waiting: AtomicUsize,
    /// Number of times that a thread has stopped waiting.
    resumed: AtomicUsize,
    /// `true` if a thread has ended, either because no thread has anything left to follow or because the thread failed.
    over: AtomicBool,
}

impl Common {
    /// `true` if all threads wait and none will ever have anything to follow. A thread that takes an arrival first reports
    /// that it no longer waits, so that no arrival is overlooked between the ring and the rank.
    fn is_over(&self) -> bool {
        let resumed = self.resumed.load(SeqCst);
        self.over.load(SeqCst)
            || self.waiting.load(SeqCst) == self.firsts.len()
                && self.rings.iter().flatten().all(SpanRing::is_empty)
                && self.resumed.load(SeqCst) == resumed
    }
}

/// Exchange of messages between one block and the other blocks.
struct Border<'a> {
    common: &'a Common,
    own: Range<Slot>,
    writers: Vec<RingWriter<'a>>,
    readers: Vec<RingReader<'a>>,
    /// Arrivals for which a ring had no space, with their destination block.
    left_over: VecDeque<(usize, Slot, Time)>,
    waits: bool,
}

impl<'a> Border<'a> {
    fn new(common: &'a Common, block: usize, own: Range<Slot>) -> Border<'a> {
        Border {
            common,
            own,
            writers: common.rings[block].iter().map(RingWriter::new).collect(),
            readers: common
                .rings
                .iter()
                .map(|from| RingReader::new(&from[block]))
                .collect(),
            left_over: VecDeque::new(),
            waits: false,
        }
    }

    /// Publishes as many arrivals to other threads as the rings have space for.
    fn show(&mut self) {
        while let Some(&(block, slot, arrival)) = self.left_over.front()
            && self.writers[block].write(slot, arrival)
        {
            self.left_over.pop_front();
        }
        self.writers.iter_mut().for_each(RingWriter::show);
    }

    fn read(&mut self) -> Option<Progress> {
        let reader = self
            .readers
            .iter_mut()
            .find_map(|reader| reader.has_any().then_some(reader))?;
        if std::mem::take(&mut self.waits) {
            self.common.waiting.fetch_sub(1, SeqCst);
            self.common.resumed.fetch_add(1, SeqCst);
        }
        let (slot, arrival) = reader.read()?;
        Some(Progress::Arrived(Delivery {
            slot,
            start: Time::ZERO,
            arrival,
            left: Time::ZERO,
        }))
    }

    /// Reports that this thread waits; returns `true` if the walk is over. It is called after some time without arrivals.
    fn is_over(&mut self) -> bool {
        if !self.waits {
            self.waits = true;
            self.common.waiting.fetch_add(1, SeqCst);
        }
        self.common.is_over()
    }
}

impl Transit for Border<'_> {
    const SHARED: bool = true;
    const IS_ORDERED: bool = false;

    fn carries(&self, slot: Slot, _is_between_nodes: bool) -> bool {
        !self.own.contains(&slot)
    }

    fn depart(&mut self, departure: Departure) {
        let Departure {
            slot, start, cost, ..
        } = departure;
        let block = self.common.firsts.partition_point(|first| *first <= slot) - 1;
        let arrival = start + cost.delay;
        if !self.left_over.is_empty() || !self.writers[block].write(slot, arrival) {
            self.left_over.push_back((block, slot, arrival));
        }
    }

    fn deliver(&mut self, _limit: Option<Time>) -> NextProgress {
        let mut looks = 0;
        loop {
            self.show();
            if let Some(arrived) = self.read() {
                return Ok(Some(arrived));
            }
            looks += 1;
            if looks < LOOKS {
                std::hint::spin_loop();
            } else if self.left_over.is_empty() && self.is_over() {
                return Ok(None);
            } else {
                std::thread::yield_now();
            }
        }
    }

    fn deliver_more(&mut self) -> Option<Progress> {
        self.read()
    }
}

impl Drop for Border<'_> {
    fn drop(&mut self) {
        self.common.over.store(true, SeqCst);
    }
}
