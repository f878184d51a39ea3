//! The encoded instruction stream of a rank, which readers write and the replay executes: opcodes and operands.
//!
//! An instruction is one 32-bit word, some with one or two more after it: kind (4 bits), continuation mark (1), payload
//! (27). Receives carry no payload: the k-th receive that a rank posts is the k-th *slot* of that rank. Messages are thus
//! numbered by receiver and posting order, a waiting receiver reads its slots one after another, and a send names the slot
//! that it fills. A halo exchange with four neighbours takes 17 bytes per message in this encoding.

use super::slot::Slot;
use flowcast_units::Time;

/// Largest payload of an instruction word, which has 27 bits for it.
pub(crate) const MAX_PAYLOAD: u32 = (1 << 27) - 1;

/// `true` if a record may take this many nanoseconds: at most 3·10^10 years, so that the sums of a replay stay finite.
pub fn is_duration(nanos: f64) -> bool {
    (0.0..=Time::LONGEST.as_nanos()).contains(&nanos)
}

const KIND_SHIFT: u32 = 28;
const CONTINUES: u32 = 1 << 27;

/// An instruction of a rank, decoded from its words.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Op {
    /// A record without effect on time.
    Nothing,
    /// Computation on the processor.
    Compute(Time),
    /// Computation on an accelerator.
    Accelerator(Time),
    /// A send of message class `class` into slot `slot` (before linking: route, unused).
    Send {
        /// Index into the classes.
        class: u32,
        /// The receiver's slot, counted over all ranks.
        slot: Slot,
    },
    /// A blocking receive into the rank's next slot.
    Recv,
    /// A non-blocking receive into the rank's next slot.
    Irecv,
    /// A wait for the receive posted into this slot of the rank.
    WaitRecv(u32),
    /// A wait for an earlier send, counted back from the last one (0).
    WaitSend(u32),
    /// A collective operation of a communicator.
    Collective {
        /// Index into the collective calls.
        call: u32,
        /// Index of the execution of the collective, counted over all communicators.
        instance: u32,
    },
    /// A wait for a non-blocking collective of this rank, by the index of its execution.
    WaitCollective(u32),
    /// An event of the trace, by index into the events.
    Event(u32),
    /// One-sided communication or a file, by index into the accesses.
    Access(u32),
    /// A record whose kind is not modelled, by its number in the trace's format.
    Ignored(u32),
}

mod kind {
    pub(super) const NOTHING: u32 = 0;
    pub(super) const COMPUTE: u32 = 1;
    pub(super) const COMPUTE_LONG: u32 = 2;
    pub(super) const SEND: u32 = 3;
    pub(super) const RECV: u32 = 4;
    pub(super) const IRECV: u32 = 5;
    pub(super) const WAIT_RECV: u32 = 6;
    pub(super) const WAIT_SEND: u32 = 7;
    pub(super) const COLLECTIVE: u32 = 8;
    pub(super) const WAIT_COLLECTIVE: u32 = 9;
    pub(super) const EVENT: u32 = 10;
    pub(super) const IGNORED: u32 = 11;
    pub(super) const ACCELERATOR: u32 = 12;
    pub(super) const ACCESS: u32 = 13;
}

/// Relation of an instruction to the records of the trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Record {
    /// The instruction begins a record.
    Begins,
    /// The instruction is a further part of the record before it, such as the second wait of a waitall.
    Continues,
}

/// Appends an instruction. The caller must prevent payloads above `MAX_PAYLOAD`.
#[inline(always)]
pub fn push(words: &mut Vec<u32>, op: Op, record: Record) {
    let mark = if record == Record::Continues {
        CONTINUES
    } else {
        0
    };
    let word = |kind: u32, payload: u32| {
        debug_assert!(payload <= MAX_PAYLOAD);
        kind << KIND_SHIFT | mark | payload
    };
    match op {
        Op::Nothing => words.push(word(kind::NOTHING, 0)),
        Op::Compute(time) => push_compute(words, time, mark),
        Op::Accelerator(time) => push_long(words, word(kind::ACCELERATOR, 0), time),
        Op::Send { class, slot } => words.extend_from_slice(&[word(kind::SEND, class), slot.0]),
        Op::Recv => words.push(word(kind::RECV, 0)),
        Op::Irecv => words.push(word(kind::IRECV, 0)),
        Op::WaitRecv(slot) => words.push(word(kind::WAIT_RECV, slot)),
        Op::WaitSend(ago) => words.push(word(kind::WAIT_SEND, ago)),
        Op::Collective { call, instance } => {
            words.extend_from_slice(&[word(kind::COLLECTIVE, call), instance])
        }
        Op::WaitCollective(instance) => {
            words.extend_from_slice(&[word(kind::WAIT_COLLECTIVE, 0), instance])
        }
        Op::Event(event) => words.push(word(kind::EVENT, event)),
        Op::Access(access) => words.push(word(kind::ACCESS, access)),
        Op::Ignored(number) => words.push(word(kind::IGNORED, number)),
    }
}

/// Appends a computation. Whole nanoseconds below 2^27 (0.13 s) fit into the payload; other times follow as a double.
#[inline]
fn push_compute(words: &mut Vec<u32>, time: Time, mark: u32) {
    let nanos = time.as_nanos();
    let whole = nanos as u32;
    if f64::from(whole) == nanos && whole <= MAX_PAYLOAD {
        words.push(kind::COMPUTE << KIND_SHIFT | mark | whole);
    } else {
        push_long(words, kind::COMPUTE_LONG << KIND_SHIFT | mark, time);
    }
}

fn push_long(words: &mut Vec<u32>, word: u32, time: Time) {
    let bits = time.as_nanos().to_bits();
    words.extend_from_slice(&[word, bits as u32, (bits >> 32) as u32]);
}

/// Decodes the instruction at `at` and returns it with the position of the next; `None` at the end or if the stream is
/// damaged.
///
/// ```
/// use flowcast_program::opcodes::{Op, Record, decode, push};
///
/// let mut words = Vec::new();
/// push(&mut words, Op::Irecv, Record::Begins);
/// push(&mut words, Op::WaitRecv(0), Record::Begins);
/// let (op, next) = decode(&words, 0).unwrap();
/// assert_eq!(op, Op::Irecv);
/// assert_eq!(decode(&words, next).unwrap().0, Op::WaitRecv(0));
/// ```
#[inline(always)]
pub fn decode(words: &[u32], at: usize) -> Option<(Op, usize)> {
    let word = *words.get(at)?;
    let payload = word & MAX_PAYLOAD;
    let next = at + 1;
    Some(match word >> KIND_SHIFT {
        kind::COMPUTE => (Op::Compute(Time::from_nanos(f64::from(payload))), next),
        kind::SEND => (
            Op::Send {
                class: payload,
                slot: Slot(*words.get(next)?),
            },
            at + 2,
        ),
        kind::RECV => (Op::Recv, next),
        kind::IRECV => (Op::Irecv, next),
        kind::WAIT_RECV => (Op::WaitRecv(payload), next),
        kind::WAIT_SEND => (Op::WaitSend(payload), next),
        kind::COMPUTE_LONG => (Op::Compute(long(words, next)?), at + 3),
        kind::COLLECTIVE => (
            Op::Collective {
                call: payload,
                instance: *words.get(next)?,
            },
            at + 2,
        ),
        kind::WAIT_COLLECTIVE => (Op::WaitCollective(*words.get(next)?), at + 2),
        kind::EVENT => (Op::Event(payload), next),
        kind::IGNORED => (Op::Ignored(payload), next),
        kind::ACCESS => (Op::Access(payload), next),
        kind::ACCELERATOR => (Op::Accelerator(long(words, next)?), at + 3),
        kind::NOTHING => (Op::Nothing, next),
        _ => return None,
    })
}

/// `true` if the instruction at `at` is a computation; `None` at the end of the stream.
#[inline(always)]
pub fn computes(words: &[u32], at: usize) -> Option<bool> {
    words
        .get(at)
        .map(|word| matches!(word >> KIND_SHIFT, kind::COMPUTE | kind::COMPUTE_LONG))
}

/// `true` if the instruction at `at` is a non-blocking receive; `false` at the end of the stream.
#[inline(always)]
pub fn is_irecv(words: &[u32], at: usize) -> bool {
    words
        .get(at)
        .is_some_and(|word| word >> KIND_SHIFT == kind::IRECV)
}

/// Slot that the instruction at `at` sends to; `None` if it is not a send.
#[inline(always)]
pub fn sends_to(words: &[u32], at: usize) -> Option<Slot> {
    match words.get(at..at + 2)? {
        [word, slot] if word >> KIND_SHIFT == kind::SEND => Some(Slot(*slot)),
        _ => None,
    }
}

#[inline]
fn long(words: &[u32], at: usize) -> Option<Time> {
    let bits = u64::from(*words.get(at)?) | u64::from(*words.get(at + 1)?) << 32;
    let nanos = f64::from_bits(bits);
    is_duration(nanos).then(|| Time::from_nanos(nanos))
}

/// `true` if the instruction at `at` belongs to the record before it.
pub fn continues(words: &[u32], at: usize) -> bool {
    words[at] & CONTINUES != 0
}

/// Appends all instructions of a stream to `out`, each converted by `change`.
pub fn rewrite(words: &[u32], out: &mut Vec<u32>, mut change: impl FnMut(Op) -> Op) {
    let mut at = 0;
    while let Some((op, next)) = decode(words, at) {
        let record = if continues(words, at) {
            Record::Continues
        } else {
            Record::Begins
        };
        push(out, change(op), record);
        at = next;
    }
}

/// Replaces the class and slot of the send at `at`.
#[inline]
pub(crate) fn patch_send(words: &mut [u32], at: usize, class: u32, slot: Slot) {
    words[at] = words[at] & !MAX_PAYLOAD | class;
    words[at + 1] = slot.0;
}

/// Replaces the payload at `at`, and the word after it if `second` is given.
pub(crate) fn patch(words: &mut [u32], at: usize, payload: u32, second: Option<u32>) {
    words[at] = words[at] & !MAX_PAYLOAD | payload;
    if let Some(second) = second {
        words[at + 1] = second;
    }
}

/// Iterates over a whole stream; each instruction comes with the number of its record, counted from 1.
pub(crate) fn iterate(words: &[u32]) -> impl Iterator<Item = (u32, Op)> + '_ {
    let mut at = 0;
    let mut record = 0;
    std::iter::from_fn(move || {
        let (op, next) = decode(words, at)?;
        record += u32::from(!continues(words, at));
        at = next;
        Some((record, op))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_op() -> impl Strategy<Value = Op> {
        let payload = 0..=MAX_PAYLOAD;
        prop_oneof![
            (0.0..1e12f64).prop_map(|nanos| Op::Compute(Time::from_nanos(nanos))),
            (0u32..1 << 30).prop_map(|nanos| Op::Compute(Time::from_nanos(f64::from(nanos)))),
            (payload.clone(), any::<u32>()).prop_map(|(class, slot)| Op::Send {
                class,
                slot: Slot(slot)
            }),
            (payload.clone(), any::<u32>())
                .prop_map(|(call, instance)| Op::Collective { call, instance }),
            payload.clone().prop_map(Op::WaitRecv),
            payload.clone().prop_map(Op::WaitSend),
            payload.clone().prop_map(Op::Access),
            payload.prop_map(Op::Event),
            Just(Op::Recv),
            Just(Op::Irecv),
            Just(Op::Nothing),
        ]
    }

    proptest! {
        #[test]
        fn pushed_instructions_are_decoded(ops in proptest::collection::vec((any_op(), any::<bool>()), 0..50)) {
            let mut words = Vec::new();
            for (op, continues) in &ops {
                push(&mut words, *op, if *continues { Record::Continues } else { Record::Begins });
            }
            let back: Vec<Op> = iterate(&words).map(|(_, op)| op).collect();
            prop_assert_eq!(back, ops.iter().map(|(op, _)| *op).collect::<Vec<_>>());
        }

        #[test]
        fn damaged_streams_end_and_do_not_panic(words in proptest::collection::vec(any::<u32>(), 0..100)) {
            prop_assert!(iterate(&words).count() <= words.len());
        }
    }
}
