//! Programs with loops: a part that repeats is stored once, with its number of iterations.
//!
//! A [`FoldedPart`] that is repeated is *closed*: each iteration receives the messages that it sends and waits for the
//! operations that it starts. All members of a communicator make a collective call in the same iteration. No operation is
//! therefore in flight between two iterations, and each iteration is a complete [`Program`].

use serde::{Deserialize, Serialize};

use super::{
    TraceError,
    access::Access,
    key_map::KeyMap,
    opcodes::{self, MAX_PAYLOAD, Op},
    program::{CollectiveCall, IgnoredRecords, MessageClass, Program, RankStream},
    slot::Slot,
};
use flowcast_units::{Bytes, Rank};

/// A part of a sequence: a piece, or a loop over parts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FoldedPart<T> {
    /// A piece that occurs once at its place.
    Once(T),
    /// A loop: number of iterations, at least 1, and the parts that are repeated.
    Loop(u64, Vec<FoldedPart<T>>),
}

impl<T> FoldedPart<T> {
    /// Replaces each piece by the result of `change`.
    ///
    /// # Errors
    /// The first error of `change`.
    pub(crate) fn try_map<U, E>(
        self,
        change: &mut impl FnMut(T) -> Result<U, E>,
    ) -> Result<FoldedPart<U>, E> {
        Ok(match self {
            FoldedPart::Once(piece) => FoldedPart::Once(change(piece)?),
            FoldedPart::Loop(count, body) => FoldedPart::Loop(count, map_all(body, change)?),
        })
    }

    /// Returns the same part with references to its pieces.
    pub fn as_ref(&self) -> FoldedPart<&T> {
        match self {
            FoldedPart::Once(piece) => FoldedPart::Once(piece),
            FoldedPart::Loop(count, body) => {
                FoldedPart::Loop(*count, body.iter().map(FoldedPart::as_ref).collect())
            }
        }
    }
}

/// Applies `try_map` to each part.
///
/// # Errors
/// The first error of `change`.
pub fn map_all<T, U, E>(
    parts: Vec<FoldedPart<T>>,
    change: &mut impl FnMut(T) -> Result<U, E>,
) -> Result<Vec<FoldedPart<U>>, E> {
    parts.into_iter().map(|part| part.try_map(change)).collect()
}

/// Returns each piece once, with its total number of executions; `None` if such a number is beyond 2^64.
///
/// ```
/// use flowcast_program::folded::{FoldedPart, pieces};
///
/// let inner = FoldedPart::Loop(2, vec![FoldedPart::Once('c')]);
/// let parts = [FoldedPart::Once('a'), FoldedPart::Loop(3, vec![FoldedPart::Once('b'), inner])];
/// assert_eq!(pieces(&parts), Some(vec![(&'a', 1), (&'b', 3), (&'c', 6)]));
/// ```
pub fn pieces<T>(parts: &[FoldedPart<T>]) -> Option<Vec<(&T, u64)>> {
    let mut all = Vec::new();
    collect(parts, 1, &mut all).map(|()| all)
}

fn collect<'a, T>(
    parts: &'a [FoldedPart<T>],
    times: u64,
    all: &mut Vec<(&'a T, u64)>,
) -> Option<()> {
    parts.iter().try_for_each(|part| match part {
        FoldedPart::Once(piece) => {
            all.push((piece, times));
            Some(())
        }
        FoldedPart::Loop(count, body) => collect(body, times.checked_mul(*count)?, all),
    })
}

/// A program with loops. All parts have the same ranks, threads, communicators and progress streams.
///
/// ```
/// use flowcast_program::folded::FoldedPart;
/// use flowcast_program::{Folded, Trace};
/// use flowcast_formats::convert::generate::{ProgramShape, Workload};
/// use flowcast_units::{Bytes, Time};
///
/// let shape = ProgramShape {
///     workload: Workload::Shift,
///     ranks: 4,
///     iterations: 1,
///     size: Bytes(8),
///     compute: Time::from_micros(1.0),
///     jitter: 0.0,
///     seed: 1,
///     period: 0,
/// };
/// let Trace::Program(iteration) = shape.trace()? else { panic!("it has no loop") };
/// let folded = Folded::new(vec![FoldedPart::Loop(10, vec![FoldedPart::Once(iteration)])])?;
/// assert_eq!(folded.messages(), 40);
/// assert_eq!(folded.unfold()?.messages(), 40);
/// # Ok::<(), flowcast_program::TraceError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Folded {
    parts: Vec<FoldedPart<Program>>,
    messages: u64,
    collectives: u64,
    bytes: Bytes,
}

impl Folded {
    /// Creates a program with loops from at least one program.
    ///
    /// # Errors
    /// [`TraceError::Limit`] if the parts do not fit together, or repeat more often than can be counted.
    pub fn new(parts: Vec<FoldedPart<Program>>) -> Result<Folded, TraceError> {
        let pieces = pieces(&parts).ok_or(TraceError::Limit("more iterations than 2^64"))?;
        let (first, _) = pieces
            .first()
            .ok_or(TraceError::Limit("a program of loops without instructions"))?;
        if !pieces
            .iter()
            .all(|(piece, times)| *times > 0 && fits(first, piece))
        {
            return Err(TraceError::Limit(
                "loops over programs with different ranks, or loops without iterations",
            ));
        }
        let sum = |of: fn(&Program) -> u64| {
            let mut terms = pieces
                .iter()
                .map(|(piece, times)| of(piece).checked_mul(*times));
            terms
                .try_fold(0u64, |sum, term| sum.checked_add(term?))
                .ok_or(TraceError::Limit("more messages than 2^64"))
        };
        let (messages, collectives) = (
            sum(|piece| u64::from(piece.slots))?,
            sum(Program::collectives)?,
        );
        let bytes = pieces
            .iter()
            .map(|(piece, times)| piece.bytes.0.saturating_mul(*times));
        let bytes = Bytes(bytes.fold(0, u64::saturating_add));
        Ok(Folded {
            parts,
            messages,
            collectives,
            bytes,
        })
    }

    /// Parts in the order of execution.
    pub fn parts(&self) -> &[FoldedPart<Program>] {
        &self.parts
    }

    /// Returns the parts and drops the program.
    pub fn into_parts(self) -> Vec<FoldedPart<Program>> {
        self.parts
    }

    /// First part, whose name, ranks and communicators are those of the whole program.
    pub fn first(&self) -> &Program {
        let mut parts = &self.parts;
        loop {
            match &parts[0] {
                FoldedPart::Once(piece) => return piece,
                FoldedPart::Loop(_, body) => parts = body,
            }
        }
    }

    /// Number of point-to-point messages.
    pub fn messages(&self) -> u64 {
        self.messages
    }

    /// Number of collectives, each counted once regardless of the number of ranks.
    pub fn collectives(&self) -> u64 {
        self.collectives
    }

    /// Bytes of all messages.
    pub fn bytes(&self) -> Bytes {
        self.bytes
    }

    /// Records that the reader found and the replay leaves out.
    pub fn ignored(&self) -> Vec<IgnoredRecords> {
        ignored(&pieces(&self.parts).expect("the iterations were counted"))
    }

    /// Approximate size of the program without loops, in bytes.
    pub fn unfolded_bytes(&self) -> u64 {
        let pieces = pieces(&self.parts).expect("the iterations were counted");
        let bytes = pieces
            .iter()
            .map(|(piece, times)| (piece.compiled_bytes() as u64 + 1).saturating_mul(*times));
        bytes.fold(0, u64::saturating_add)
    }

    /// Returns the same program without loops.
    ///
    /// # Errors
    /// [`TraceError::Limit`] if it has more messages or instructions than a program can number.
    pub fn unfold(&self) -> Result<Program, TraceError> {
        let pieces = pieces(&self.parts).expect("the iterations were counted");
        if self.unfolded_bytes() > MOST_UNFOLDED || u32::try_from(self.messages).is_err() {
            return Err(TOO_LONG);
        }
        let mut flat = Flat::new(self.first(), &pieces);
        flat.append(&self.parts)?;
        flat.finish(self)
    }
}

/// Largest size of a program without loops, in bytes. Without a limit, a small file could require more than any memory.
const MOST_UNFOLDED: u64 = 1 << 35;

const TOO_LONG: TraceError = TraceError::Limit(
    "more messages or instructions than fit into a program without loops (2^32, 32 GiB); --model independent predicts it \
     with loops",
);

fn fits(first: &Program, piece: &Program) -> bool {
    first.streams.len() == piece.streams.len()
        && first.progress == piece.progress
        && first.threads == piece.threads
        && first.communicators == piece.communicators
}

/// A program while its loops are unfolded.
#[derive(Default)]
struct Flat {
    words: Vec<Vec<u32>>,
    first_slots: Vec<Slot>,
    /// Number of receives posted so far, indexed by stream.
    received: Vec<u32>,
    instances: Vec<u32>,
    classes: KeyMap<MessageClass>,
    calls: KeyMap<CollectiveCall>,
    events: KeyMap<(i64, i64)>,
    accesses: KeyMap<Access>,
}

impl Flat {
    fn new(first: &Program, pieces: &[(&Program, u64)]) -> Flat {
        let mut next = Slot(0);
        let mut first_slots = Vec::with_capacity(first.streams());
        for stream in Rank::all(first.streams()) {
            first_slots.push(next);
            next += pieces
                .iter()
                .map(|(piece, times)| piece.posts(stream) * *times as u32)
                .sum::<u32>();
        }
        Flat {
            words: vec![Vec::new(); first.streams()],
            first_slots,
            received: vec![0; first.streams()],
            ..Flat::default()
        }
    }

    fn append(&mut self, parts: &[FoldedPart<Program>]) -> Result<(), TraceError> {
        for part in parts {
            match part {
                FoldedPart::Once(piece) => self.piece(piece)?,
                FoldedPart::Loop(count, body) => (0..*count).try_for_each(|_| self.append(body))?,
            }
        }
        Ok(())
    }

    fn piece(&mut self, piece: &Program) -> Result<(), TraceError> {
        let classes = self.classes.numbers(piece.classes.iter().copied());
        let calls = self.calls.numbers(piece.calls.iter().copied());
        let events = self.events.numbers(piece.events.iter().copied());
        let accesses = self.accesses.numbers(piece.accesses.iter().copied());
        let (first_slots, received) = (&self.first_slots, &self.received);
        let instance = self.instances.len() as u32;
        for (stream, words) in (0..).map(Rank).zip(&mut self.words) {
            let own = received[stream.index()];
            opcodes::rewrite(piece.words(stream), words, |op| match op {
                Op::Send { class, slot } => {
                    let to = piece.receiver(slot);
                    let slot = first_slots[to.index()]
                        + received[to.index()]
                        + (slot - piece.first_slot(to));
                    Op::Send {
                        class: classes[class as usize],
                        slot,
                    }
                }
                // A slot that is too large is detected below.
                Op::WaitRecv(slot) => Op::WaitRecv((own + slot).min(MAX_PAYLOAD)),
                Op::Collective { call, instance: of } => Op::Collective {
                    call: calls[call as usize],
                    instance: instance + of,
                },
                Op::WaitCollective(of) => Op::WaitCollective(instance + of),
                Op::Event(event) => Op::Event(events[event as usize]),
                Op::Access(access) => Op::Access(accesses[access as usize]),
                other => other,
            });
        }
        for (stream, received) in (0..).map(Rank).zip(&mut self.received) {
            *received += piece.posts(stream);
        }
        self.instances.extend_from_slice(&piece.instances);
        let is_numbered = self
            .received
            .iter()
            .all(|received| *received <= MAX_PAYLOAD);
        if is_numbered && u32::try_from(self.instances.len()).is_ok() {
            Ok(())
        } else {
            Err(TOO_LONG)
        }
    }

    fn finish(self, folded: &Folded) -> Result<Program, TraceError> {
        let numbered = [
            self.classes.len(),
            self.calls.len(),
            self.events.len(),
            self.accesses.len(),
        ];
        if numbered
            .into_iter()
            .any(|length| length > MAX_PAYLOAD as usize)
        {
            return Err(TOO_LONG);
        }
        let pieces = pieces(&folded.parts).expect("the iterations were counted");
        let first = folded.first();
        Ok(Program {
            name: first.name.clone(),
            streams: self
                .words
                .into_iter()
                .zip(self.first_slots)
                .map(|(words, first_slot)| RankStream::new(words, first_slot))
                .collect(),
            slots: folded.messages as u32,
            classes: self.classes.keys().collect(),
            calls: self.calls.keys().collect(),
            communicators: first.communicators.clone(),
            instances: self.instances,
            self_messages: pieces.iter().any(|(piece, _)| piece.self_messages),
            events: self.events.keys().collect(),
            accesses: self.accesses.keys().collect(),
            bytes: folded.bytes,
            ignored: ignored(&pieces),
            assumed: first.assumed.clone(),
            threads: first.threads.clone(),
            progress: first.progress.clone(),
            library: first.library,
            source: None,
        })
    }
}

/// Records that the readers found in the parts and the replay leaves out, counted over the whole program.
fn ignored(pieces: &[(&Program, u64)]) -> Vec<IgnoredRecords> {
    let mut all: Vec<IgnoredRecords> = Vec::new();
    for (piece, times) in pieces {
        for IgnoredRecords { kind, count } in &piece.ignored {
            let count = count.saturating_mul(*times);
            match all.iter_mut().find(|known| known.kind == *kind) {
                Some(known) => known.count = known.count.saturating_add(count),
                None => all.push(IgnoredRecords {
                    kind: kind.clone(),
                    count,
                }),
            }
        }
    }
    all
}
