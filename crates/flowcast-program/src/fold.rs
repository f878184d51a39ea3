//! Loops of a program without loops: parts that all ranks repeat.
//!
//! Each rank's instructions are divided into runs in the same way as a recording's calls ([`flowcast_recording::fold`]). The
//! run that saves most is the rank's loop. The ranks' loops form one loop of the program if their iterations are closed:
//! each iteration receives the messages that it sends and waits for the operations that it starts. The parts before, inside
//! and after the loop may have loops of their own.

use flowcast_recording::fold::{FoldEntry, runs};

use super::{
    Trace, TraceError,
    folded::{Folded, FoldedPart},
    key_map::KeyMap,
    opcodes::{self, Op},
    program::{Program, RankStream},
    slot::Slot,
};
use flowcast_units::Rank;

/// Returns the same program with its loops, if it has any.
///
/// ```
/// use flowcast_program::Trace;
/// use flowcast_formats::convert::generate::{ProgramShape, Workload};
/// use flowcast_units::{Bytes, Time};
///
/// let shape = ProgramShape {
///     workload: Workload::Shift,
///     ranks: 4,
///     iterations: 50,
///     size: Bytes(8),
///     compute: Time::from_micros(1.0),
///     jitter: 0.0,
///     seed: 1,
///     period: 0,
/// };
/// let Trace::Folded(loops) = shape.trace()? else { panic!("it has a loop") };
/// let flat = loops.unfold()?;
/// assert!(matches!(flowcast_program::fold::fold(flat)?, Trace::Folded(_)));
/// # Ok::<(), flowcast_program::TraceError>(())
/// ```
///
/// # Errors
/// [`TraceError::Limit`] if the parts repeat more often than can be counted. The parts of a program never do.
pub fn fold(program: Program) -> Result<Trace, TraceError> {
    if !program.accesses.is_empty() || !program.progress.is_empty() {
        return Ok(Trace::Program(program));
    }
    match parts(&program) {
        Some(parts) => Folded::new(parts).map(Trace::Folded),
        None => Ok(Trace::Program(program)),
    }
}

/// Returns the part before the loop of a program, the loop, and the part after it; `None` if there is no loop.
fn parts(program: &Program) -> Option<Vec<FoldedPart<Program>>> {
    let ranks = Rank::all(program.ranks());
    let loops = common(ranks.map(|rank| longest_run(program, rank)).collect())?;
    let cut = Cut::new(program, &loops)?;
    let mut all = Vec::new();
    for section in [FoldSection::Before, FoldSection::Loop, FoldSection::Behind] {
        let mut piece = cut.piece(section);
        if section == FoldSection::Before {
            piece.ignored.clone_from(&program.ignored);
        }
        let is_empty = piece
            .streams
            .iter()
            .all(|stream| stream.words.get().is_empty());
        if is_empty && piece.ignored.is_empty() {
            continue;
        }
        let inner = parts(&piece).unwrap_or_else(|| vec![FoldedPart::Once(piece)]);
        match section {
            FoldSection::Loop => all.push(FoldedPart::Loop(cut.repeats as u64, inner)),
            _ => all.extend(inner),
        }
    }
    Some(all)
}

/// Loop of a rank: number of words before it, words per iteration, and iterations.
#[derive(Debug, Clone, Copy)]
struct RankLoop {
    start: usize,
    words: usize,
    repeats: usize,
}

/// Returns the ranks' loops with a common number of iterations. A rank without instructions has as many as the other ranks.
fn common(mut loops: Vec<Option<RankLoop>>) -> Option<Vec<RankLoop>> {
    let repeats = loops
        .iter()
        .flatten()
        .filter(|own| own.words > 0)
        .map(|own| own.repeats)
        .min()?;
    for own in loops.iter_mut().flatten() {
        own.words *= own.repeats / repeats;
        own.repeats = repeats;
    }
    (repeats > 1).then(|| loops.into_iter().collect()).flatten()
}

/// Returns the run that saves most; `None` if nothing repeats.
fn longest_run(program: &Program, rank: Rank) -> Option<RankLoop> {
    let words = program.words(rank);
    if words.is_empty() {
        return Some(RankLoop {
            start: 0,
            words: 0,
            repeats: usize::MAX,
        });
    }
    let mut symbols = KeyMap::new();
    let (mut entries, mut places) = (Vec::new(), Vec::new());
    let (mut at, mut received) = (0, 0);
    while let Some((op, next)) = opcodes::decode(words, at) {
        let behind = |index: usize| words.get(at + index).copied().unwrap_or(0);
        let symbol = match op {
            Op::Send { slot, .. } => (behind(0), program.receiver(slot).0, 0),
            Op::WaitRecv(slot) => (u32::MAX, received - slot, 0),
            Op::Collective { .. } | Op::WaitCollective(_) => (behind(0), 0, 0),
            _ => (
                behind(0),
                if next > at + 1 { behind(1) } else { 0 },
                if next > at + 2 { behind(2) } else { 0 },
            ),
        };
        received += u32::from(matches!(op, Op::Recv | Op::Irecv));
        entries.push(FoldEntry {
            signature: symbols.number(symbol),
            ..FoldEntry::default()
        });
        places.push(at);
        at = next;
    }
    places.push(at);
    let mut best = (
        0,
        RankLoop {
            start: 0,
            words: 0,
            repeats: 1,
        },
    );
    runs(
        &entries,
        &mut vec![0; entries.len()],
        &mut vec![0; symbols.len() + 1],
        |run| {
            let (start, behind) = (places[run.start], places[run.start + run.period]);
            let saved = run.period * (run.repeats - 1);
            if saved > best.0 {
                best = (
                    saved,
                    RankLoop {
                        start,
                        words: behind - start,
                        repeats: run.repeats,
                    },
                );
            }
        },
    );
    (best.0 > 0).then_some(best.1)
}

/// Part of a program, relative to its loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FoldSection {
    Before,
    Loop,
    Behind,
}

/// A program cut at its loop.
struct Cut<'a> {
    program: &'a Program,
    loops: &'a [RankLoop],
    repeats: usize,
    /// Number of receives before the loop and in an iteration, indexed by rank.
    posts: Vec<(u32, u32)>,
    /// Section and iteration of each execution of a collective, and the execution of the first iteration that it repeats.
    executions: Vec<Option<(FoldSection, usize, u32)>>,
}

impl<'a> Cut<'a> {
    /// Cuts a program at its loop; `None` if the iterations are not closed.
    fn new(program: &'a Program, loops: &'a [RankLoop]) -> Option<Cut<'a>> {
        let mut cut = Cut {
            program,
            loops,
            repeats: loops[0].repeats,
            posts: (0..)
                .zip(loops)
                .map(|(rank, own)| {
                    let words = program.words(Rank(rank));
                    (
                        count_posts(&words[..own.start]),
                        count_posts(&words[own.start..own.start + own.words]),
                    )
                })
                .collect(),
            executions: vec![None; program.instances.len()],
        };
        (0..program.ranks() as u32)
            .map(Rank)
            .try_for_each(|rank| cut.check(rank))?;
        Some(cut)
    }

    /// Words of a rank in a section; for the loop, those of all iterations.
    fn words(&self, rank: Rank, section: FoldSection) -> &'a [u32] {
        let (words, own) = (self.program.words(rank), self.loops[rank.index()]);
        let end = own.start + own.words * own.repeats;
        match section {
            FoldSection::Before => &words[..own.start],
            FoldSection::Loop => &words[own.start..end],
            FoldSection::Behind => &words[end..],
        }
    }

    /// Section, iteration and position in it of a rank's receive.
    fn posted(&self, rank: Rank, post: u32) -> (FoldSection, usize, u32) {
        let (before, each) = self.posts[rank.index()];
        match post.checked_sub(before) {
            None => (FoldSection::Before, 0, post),
            Some(post) if post < each * self.repeats as u32 => {
                (FoldSection::Loop, (post / each) as usize, post % each)
            }
            Some(post) => (FoldSection::Behind, 0, post - each * self.repeats as u32),
        }
    }

    /// Checks that each iteration of a rank is closed and does the same as the first.
    fn check(&mut self, rank: Rank) -> Option<()> {
        let each = self.loops[rank.index()].words;
        self.check_piece(
            rank,
            FoldSection::Before,
            0,
            self.words(rank, FoldSection::Before),
            None,
        )?;
        let all = self.words(rank, FoldSection::Loop);
        for (iteration, words) in all.chunks(each.max(1)).enumerate() {
            self.check_piece(rank, FoldSection::Loop, iteration, words, Some(all))?;
        }
        self.check_piece(
            rank,
            FoldSection::Behind,
            0,
            self.words(rank, FoldSection::Behind),
            None,
        )
    }

    fn check_piece(
        &mut self,
        rank: Rank,
        section: FoldSection,
        iteration: usize,
        words: &[u32],
        first: Option<&[u32]>,
    ) -> Option<()> {
        let (mut at, mut sent) = (0, 0);
        while let Some((op, next)) = opcodes::decode(words, at) {
            let before = first
                .and_then(|first| opcodes::decode(first, at))
                .map_or(op, |(op, _)| op);
            let is_right = match (op, before) {
                (Op::Send { slot, .. }, Op::Send { slot: first, .. }) => {
                    sent += 1;
                    let to = self.program.receiver(slot);
                    let [own, first] = [slot, first]
                        .map(|slot| self.posted(to, slot - self.program.first_slot(to)));
                    (own.0, own.1) == (section, iteration) && own.2 == first.2
                }
                (Op::WaitRecv(post), _) => {
                    let own = self.posted(rank, post);
                    (own.0, own.1) == (section, iteration)
                }
                (Op::WaitSend(ago), _) => ago < sent,
                (
                    Op::Collective { instance, .. },
                    Op::Collective {
                        instance: first, ..
                    },
                ) => {
                    let own = (section, iteration, first);
                    *self.executions[instance as usize].get_or_insert(own) == own
                }
                (Op::WaitCollective(instance), Op::WaitCollective(first)) => {
                    self.executions[instance as usize] == Some((section, iteration, first))
                }
                _ => true,
            };
            is_right.then_some(())?;
            at = next;
        }
        Some(())
    }

    /// Program of a section; for the loop, the program of one iteration.
    fn piece(&self, section: FoldSection) -> Program {
        let program = self.program;
        let mut piece = self.tables();
        let (executions, instances) = self.instances(section);
        piece.instances = instances;
        let mut first_slots = Vec::with_capacity(program.ranks());
        for rank in Rank::all(program.ranks()) {
            first_slots.push(Slot(piece.slots));
            piece.slots += count_posts(self.first_words(rank, section));
        }
        for rank in Rank::all(program.ranks()) {
            let mut words = Vec::new();
            opcodes::rewrite(self.first_words(rank, section), &mut words, |op| match op {
                Op::Send { class, slot } => {
                    let to = program.receiver(slot);
                    let (_, _, post) = self.posted(to, slot - program.first_slot(to));
                    piece.bytes.0 = piece
                        .bytes
                        .0
                        .saturating_add(program.classes[class as usize].size.0);
                    piece.self_messages |= to == rank;
                    Op::Send {
                        class,
                        slot: first_slots[to.index()] + post,
                    }
                }
                Op::WaitRecv(post) => Op::WaitRecv(self.posted(rank, post).2),
                Op::Collective { call, instance } => Op::Collective {
                    call,
                    instance: executions[instance as usize],
                },
                Op::WaitCollective(instance) => Op::WaitCollective(executions[instance as usize]),
                other => other,
            });
            words.shrink_to_fit();
            piece
                .streams
                .push(RankStream::new(words, first_slots[rank.index()]));
        }
        piece
    }

    fn first_words(&self, rank: Rank, section: FoldSection) -> &'a [u32] {
        let words = self.words(rank, section);
        if section == FoldSection::Loop {
            &words[..self.loops[rank.index()].words]
        } else {
            words
        }
    }

    /// Numbers the executions of a section. Returns the number of each in the section's program, and their communicators.
    fn instances(&self, section: FoldSection) -> (Vec<u32>, Vec<u32>) {
        let (mut numbers, mut communicators) = (vec![0; self.executions.len()], Vec::new());
        for (index, execution) in self.executions.iter().enumerate() {
            if execution.is_some_and(|(of, iteration, _)| of == section && iteration == 0) {
                numbers[index] = communicators.len() as u32;
                communicators.push(self.program.instances[index]);
            }
        }
        (numbers, communicators)
    }

    /// The program without its instructions.
    fn tables(&self) -> Program {
        let whole = self.program;
        Program {
            name: whole.name.clone(),
            classes: whole.classes.clone(),
            calls: whole.calls.clone(),
            communicators: whole.communicators.clone(),
            events: whole.events.clone(),
            assumed: whole.assumed.clone(),
            threads: whole.threads.clone(),
            library: whole.library,
            ..Program::default()
        }
    }
}

fn count_posts(words: &[u32]) -> u32 {
    opcodes::iterate(words)
        .filter(|(_, op)| matches!(op, Op::Recv | Op::Irecv))
        .count() as u32
}
