//! Programs in the compiled form.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{
    Damage,
    check::{Totals, check},
    encode_tables,
};
use crate::{
    access::Access,
    program::{
        CollectiveCall, CollectiveMode, Communicator, IgnoredRecords, MessageClass, Program,
        RankStream, SendMode, SharedBytes, StreamWords,
    },
    slot::Slot,
};
use flowcast_network::algorithm::Base;
use flowcast_units::{Bytes, CollectiveOp, Rank};

/// Fields of a call: operation, communicator, mode, `true` at the root, root, bytes sent, bytes received.
type CallRow = (u8, u32, u8, bool, Option<u32>, u64, u64);

/// Tables as stored in the file.
#[derive(Serialize, Deserialize)]
pub(super) struct Tables {
    schema: String,
    name: String,
    /// Number of words and of posted receives of each rank.
    ranks: Vec<(u64, u32)>,
    /// Size, tag and communicator of each class, `true` if it is synchronous, and `true` if it is non-blocking.
    classes: Vec<(u64, i32, i32, bool, bool)>,
    /// Numbers of the classes that are sent by starts of persistent requests.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    persistent: Vec<u32>,
    calls: Vec<CallRow>,
    communicators: Vec<(i32, Vec<u32>)>,
    /// Runs of executions: communicator and count.
    instances: Vec<(u32, u32)>,
    events: Vec<(i64, i64)>,
    /// Operation, window or file, target, and bytes of each access.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    accesses: Vec<(u8, i32, i64, u64)>,
    self_messages: bool,
    bytes: u64,
    ignored: Vec<(String, u64)>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    assumed: Vec<String>,
    /// Task and thread of each rank, if tasks have several threads.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    threads: Vec<(u32, u32)>,
    /// Rank of each progress stream; these streams are the last ones.
    #[serde(rename = "strands", default, skip_serializing_if = "Vec::is_empty")]
    progress: Vec<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    library: Option<Base>,
}

const SCHEMA: &str = "flowcast/compiled-trace/1";

/// Encodes the tables, followed by the streams.
pub(super) fn parts(program: &Program) -> Vec<Vec<u8>> {
    std::iter::once(encode_tables(&tables_of(program)))
        .chain(streams(program))
        .collect()
}

/// The streams of all ranks.
pub(super) fn streams(program: &Program) -> impl Iterator<Item = Vec<u8>> + '_ {
    let ranks = Rank::all(program.streams());
    ranks.map(|rank| {
        program
            .words(rank)
            .iter()
            .flat_map(|word| word.to_le_bytes())
            .collect()
    })
}

pub(super) fn tables_of(program: &Program) -> Tables {
    let ranks = Rank::all(program.streams());
    let ranks = ranks.map(|rank| (program.words(rank).len() as u64, program.posts(rank)));
    let instances = program
        .instances
        .chunk_by(|a, b| a == b)
        .map(|run| (run[0], run.len() as u32));
    Tables {
        schema: SCHEMA.to_owned(),
        name: program.name.clone(),
        ranks: ranks.collect(),
        classes: program.classes.iter().map(class).collect(),
        persistent: (0..)
            .zip(&program.classes)
            .filter(|(_, class)| class.mode.persistent)
            .map(|(number, _)| number)
            .collect(),
        calls: program
            .calls
            .iter()
            .map(|call: &CollectiveCall| {
                let root = call.root.map(|root| root.0);
                (
                    call.op as u8,
                    call.communicator,
                    call.mode as u8,
                    call.is_root,
                    root,
                    call.send.0,
                    call.recv.0,
                )
            })
            .collect(),
        communicators: program
            .communicators
            .iter()
            .map(|c| (c.id, c.members.iter().map(|r| r.0).collect()))
            .collect(),
        instances: instances.collect(),
        events: program.events.clone(),
        accesses: program.accesses.iter().map(Access::row).collect(),
        self_messages: program.self_messages,
        bytes: program.bytes.0,
        ignored: program
            .ignored
            .iter()
            .map(|ignored| (ignored.kind.clone(), ignored.count))
            .collect(),
        assumed: program.assumed.clone(),
        threads: program.threads.clone(),
        progress: program.progress.iter().map(|rank| rank.0).collect(),
        library: program.library,
    }
}

fn class(class: &MessageClass) -> (u64, i32, i32, bool, bool) {
    let SendMode {
        synchronous,
        non_blocking,
        ..
    } = class.mode;
    (
        class.size.0,
        class.tag,
        class.communicator,
        synchronous,
        non_blocking,
    )
}

/// Reads a program whose streams begin at `start`. Returns it with the end of the streams.
pub(super) fn read(
    bytes: &SharedBytes,
    tables: Tables,
    start: usize,
) -> Result<(Program, usize), Damage> {
    let Some(calls) = tables
        .calls
        .iter()
        .map(|call| read_call(*call))
        .collect::<Option<Vec<_>>>()
    else {
        return Err("found a collective call of unknown kind".into());
    };
    let Some(accesses) = tables
        .accesses
        .iter()
        .map(|row| Access::from_row(*row))
        .collect::<Option<Vec<_>>>()
    else {
        return Err("found an access of unknown kind".into());
    };
    let class =
        |&(size, tag, communicator, synchronous, non_blocking): &(u64, i32, i32, bool, bool)| {
            MessageClass {
                size: Bytes(size),
                tag,
                communicator,
                mode: SendMode {
                    synchronous,
                    non_blocking,
                    persistent: false,
                },
            }
        };
    let words = (**bytes).as_ref().len() / 4;
    // Each execution of a collective needs a call, and each slot a receive.
    let executions = tables
        .instances
        .iter()
        .fold(0u64, |sum, (_, count)| sum + u64::from(*count));
    let slots = tables
        .ranks
        .iter()
        .fold(0u64, |sum, (_, posts)| sum + u64::from(*posts));
    if executions.max(slots) > words as u64 {
        return Err(
            "found more messages or collectives in the tables than there are instructions".into(),
        );
    }
    if tables.progress.len() > tables.ranks.len() {
        return Err("found more progress streams than streams".into());
    }
    let instances = tables
        .instances
        .iter()
        .flat_map(|(communicator, count)| std::iter::repeat_n(*communicator, *count as usize));
    let mut program = Program {
        name: tables.name,
        streams: Vec::with_capacity(tables.ranks.len()),
        classes: tables.classes.iter().map(class).collect(),
        calls,
        communicators: tables
            .communicators
            .into_iter()
            .map(|(id, members)| Communicator {
                id,
                members: members.into_iter().map(Rank).collect(),
            })
            .collect(),
        instances: instances.collect(),
        events: tables.events,
        accesses,
        self_messages: tables.self_messages,
        bytes: Bytes(tables.bytes),
        ignored: tables
            .ignored
            .into_iter()
            .map(|(kind, count)| IgnoredRecords { kind, count })
            .collect(),
        assumed: tables.assumed,
        threads: tables.threads,
        progress: tables.progress.into_iter().map(Rank).collect(),
        library: tables.library,
        ..Program::default()
    };
    for number in tables.persistent {
        let class = program
            .classes
            .get_mut(number as usize)
            .ok_or("found a persistent send without a class")?;
        class.mode.persistent = true;
    }
    let file = (**bytes).as_ref();
    // Maps and vectors are aligned to eight bytes or more; a slice of other memory is copied.
    let aligned = (file.as_ptr() as usize).is_multiple_of(4);
    let mut at = start;
    for (length, posts) in tables.ranks {
        let len = usize::try_from(length)
            .ok()
            .and_then(|length| length.checked_mul(4));
        let end = len
            .and_then(|len| at.checked_add(len))
            .filter(|end| *end <= file.len());
        let end = end.ok_or("found streams longer than the file")?;
        let words = if aligned {
            StreamWords::Mapped {
                bytes: Arc::clone(bytes),
                start: at,
                len: end - at,
            }
        } else {
            StreamWords::Owned(
                file[at..end]
                    .chunks_exact(4)
                    .map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]))
                    .collect(),
            )
        };
        program.streams.push(RankStream {
            words,
            first_slot: Slot(program.slots),
            awaited_sends: 0,
        });
        program.slots = program
            .slots
            .checked_add(posts)
            .ok_or("found more than 2^32 messages")?;
        at = end;
    }
    let Totals {
        bytes,
        self_messages,
        awaited_sends,
    } = check(&program)?;
    for (stream, awaited) in program.streams.iter_mut().zip(awaited_sends) {
        stream.awaited_sends = awaited;
    }
    Ok((
        Program {
            bytes,
            self_messages,
            ..program
        },
        at,
    ))
}

fn read_call(call: CallRow) -> Option<CollectiveCall> {
    let (op, communicator, mode, is_root, root, send, recv) = call;
    let mode = match mode {
        0 => CollectiveMode::Blocking,
        1 => CollectiveMode::NonBlocking,
        2 => CollectiveMode::RootSynchronous,
        _ => return None,
    };
    let op = *CollectiveOp::ALL.get(usize::from(op))?;
    Some(CollectiveCall {
        op,
        communicator,
        mode,
        is_root,
        root: root.map(Rank),
        send: Bytes(send),
        recv: Bytes(recv),
    })
}
