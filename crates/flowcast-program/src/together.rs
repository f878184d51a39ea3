//! Several programs as one: their ranks are numbered one after another, without communication between programs.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    TraceError,
    opcodes::{self, MAX_PAYLOAD, Op},
    program::{
        CollectiveCall, Communicator, IgnoredRecords, MessageClass, Program, RankSource,
        RankStream, RecordSources,
    },
    slot::Slot,
};
use flowcast_units::{Bytes, Rank};

/// Offsets of a program's numbers in the joined program.
#[derive(Debug, Clone, Copy)]
struct Offsets {
    rank: u32,
    slot: u32,
    class: u32,
    call: u32,
    communicator: u32,
    instance: u32,
    event: u32,
    access: u32,
}

/// Joins programs that run at the same time.
///
/// ```
/// use flowcast_program::Trace;
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
/// let Trace::Program(program) = shape.trace()? else { panic!("it has no loop") };
/// let both = flowcast_program::together::together(&[&program, &program])?;
/// assert_eq!((both.name.as_str(), both.ranks(), both.messages()), ("shift and shift", 8, 8));
/// # Ok::<(), flowcast_program::TraceError>(())
/// ```
///
/// # Errors
/// [`TraceError::Limit`] if the messages, calls or events of all programs are too many to be numbered, or if a program has
/// progress streams.
pub fn together(programs: &[&Program]) -> Result<Program, TraceError> {
    let mut whole = Program {
        name: programs
            .iter()
            .map(|program| program.name.as_str())
            .collect::<Vec<_>>()
            .join(" and "),
        source: sources(programs),
        ..Program::default()
    };
    if programs.iter().any(|program| !program.progress.is_empty()) {
        return Err(TraceError::Limit(
            "programs with expanded non-blocking collectives, which cannot be combined with other programs",
        ));
    }
    let have_threads = programs.iter().any(|program| program.has_threads());
    let mut task = 0;
    for program in programs {
        let from = Offsets {
            rank: whole.streams.len() as u32,
            slot: whole.slots,
            class: whole.classes.len() as u32,
            call: whole.calls.len() as u32,
            communicator: whole.communicators.len() as u32,
            instance: whole.instances.len() as u32,
            event: whole.events.len() as u32,
            access: whole.accesses.len() as u32,
        };
        if have_threads {
            let ranks = Rank::all(program.ranks());
            whole
                .threads
                .extend(ranks.map(|rank| (task + program.task(rank), program.thread(rank))));
        }
        task += program.threads_of_tasks().len() as u32;
        let ids = Ids::beside(&whole, program)?;
        append(&mut whole, program, from, &ids)?;
    }
    Ok(whole)
}

const TOO_MANY: TraceError =
    TraceError::Limit("more messages, calls or events in all programs than can be numbered");

/// New numbers for those communicators of a program whose numbers are already used in the joined program. The other
/// communicators keep their numbers, so that no two have the same.
struct Ids(BTreeMap<i32, i32>);

impl Ids {
    fn beside(whole: &Program, program: &Program) -> Result<Ids, TraceError> {
        let taken = all_ids(whole);
        let own = all_ids(program);
        let mut next = i64::from(taken.iter().chain(&own).copied().max().unwrap_or(0).max(0));
        let mut ids = BTreeMap::new();
        for id in own.into_iter().filter(|id| taken.contains(id)) {
            next += 1;
            ids.insert(id, i32::try_from(next).map_err(|_| TOO_MANY)?);
        }
        Ok(Ids(ids))
    }

    fn new_id(&self, id: i32) -> i32 {
        self.0.get(&id).copied().unwrap_or(id)
    }
}

/// Numbers of communicators, including those that only messages name. Negative numbers in messages belong to collectives and
/// are left out.
fn all_ids(program: &Program) -> BTreeSet<i32> {
    let defined = program
        .communicators
        .iter()
        .map(|communicator| communicator.id);
    defined
        .chain(
            program
                .classes
                .iter()
                .map(|class| class.communicator)
                .filter(|id| *id >= 0),
        )
        .collect()
}

fn append(
    whole: &mut Program,
    program: &Program,
    from: Offsets,
    ids: &Ids,
) -> Result<(), TraceError> {
    for rank in Rank::all(program.ranks()) {
        let first_slot = program
            .first_slot(rank)
            .0
            .checked_add(from.slot)
            .map(Slot)
            .ok_or(TOO_MANY)?;
        whole.streams.push(RankStream::new(
            renumbered(program.words(rank), from),
            first_slot,
        ));
    }
    let member = |rank: Rank| Rank(rank.0 + from.rank);
    whole.slots = whole.slots.checked_add(program.slots).ok_or(TOO_MANY)?;
    whole
        .classes
        .extend(program.classes.iter().map(|class| MessageClass {
            communicator: ids.new_id(class.communicator),
            ..*class
        }));
    whole
        .calls
        .extend(program.calls.iter().map(|call| CollectiveCall {
            communicator: call.communicator + from.communicator,
            root: call.root.map(member),
            ..*call
        }));
    whole
        .communicators
        .extend(program.communicators.iter().map(|known| Communicator {
            id: ids.new_id(known.id),
            members: known.members.iter().map(|rank| member(*rank)).collect(),
        }));
    whole.instances.extend(
        program
            .instances
            .iter()
            .map(|index| index + from.communicator),
    );
    whole.events.extend_from_slice(&program.events);
    whole.accesses.extend(
        program
            .accesses
            .iter()
            .map(|access| access.moved(from.rank)),
    );
    whole.self_messages |= program.self_messages;
    whole.bytes = Bytes(whole.bytes.0.saturating_add(program.bytes.0));
    program
        .ignored
        .iter()
        .for_each(|ignored| add_ignored(&mut whole.ignored, ignored));
    let numbered = whole
        .classes
        .len()
        .max(whole.calls.len())
        .max(whole.events.len())
        .max(whole.accesses.len());
    if numbered > MAX_PAYLOAD as usize {
        Err(TOO_MANY)
    } else {
        Ok(())
    }
}

fn add_ignored(all: &mut Vec<IgnoredRecords>, more: &IgnoredRecords) {
    match all.iter_mut().find(|known| known.kind == more.kind) {
        Some(known) => known.count += more.count,
        None => all.push(more.clone()),
    }
}

fn renumbered(words: &[u32], from: Offsets) -> Vec<u32> {
    let mut whole = Vec::with_capacity(words.len());
    opcodes::rewrite(words, &mut whole, |op| match op {
        Op::Send { class, slot } => Op::Send {
            class: class + from.class,
            slot: Slot(slot.0.wrapping_add(from.slot)),
        },
        Op::Collective { call, instance } => Op::Collective {
            call: call + from.call,
            instance: instance + from.instance,
        },
        Op::WaitCollective(instance) => Op::WaitCollective(instance + from.instance),
        Op::Event(event) => Op::Event(event + from.event),
        Op::Access(access) => Op::Access(access + from.access),
        other => other,
    });
    whole
}

/// Sources of the records; `None` unless they are known for all programs.
fn sources(programs: &[&Program]) -> Option<RecordSources> {
    let mut whole = RecordSources::default();
    for program in programs {
        let source = program.source.as_ref()?;
        let first = whole.names.len() as u32;
        whole.names.extend_from_slice(&source.names);
        whole.texts.extend(source.texts.iter().cloned());
        whole
            .ranks
            .extend(source.ranks.iter().map(|rank| RankSource {
                file: rank.file + first,
                ..*rank
            }));
    }
    Some(whole)
}
