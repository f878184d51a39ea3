//! Details that Extrae writes beside the event of a collective call: bytes, root and communicator. Without them no reader
//! can determine the participants.

use std::fmt;

use super::super::Replayed;
use flowcast_observers::journal::Function;
use flowcast_program::{
    TraceRef,
    opcodes::Op,
    paraver_events::{COMMUNICATOR, IS_ROOT, RECV_SIZE, SEND_SIZE},
    program::{CollectiveCall, CollectiveMode, Program},
};
use flowcast_units::Rank;

/// The details of one call, as pairs of type and value with a colon before each.
#[derive(Debug, Clone, Copy)]
pub(super) struct Details<'a> {
    call: &'a CollectiveCall,
    communicator: i32,
}

impl fmt::Display for Details<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let CollectiveCall {
            send,
            recv,
            is_root,
            ..
        } = self.call;
        write!(f, ":{SEND_SIZE}:{}:{RECV_SIZE}:{}", send.0, recv.0)?;
        write!(
            f,
            ":{IS_ROOT}:{}:{COMMUNICATOR}:{}",
            u8::from(*is_root),
            self.communicator
        )
    }
}

/// Returns the details of the collective calls in a rank's journal, in order. Calls that take no time, on communicators of
/// one rank, are missing in the journal. If other calls are missing too, the calls cannot be matched, and there are no
/// details. There are no details either if ranks continue before all have arrived, because the calls would be read back as
/// blocking.
pub(super) fn of_rank<'a>(
    replayed: Replayed<'a>,
    rank: Rank,
) -> Box<dyn Iterator<Item = Details<'a>> + 'a> {
    let program = match replayed.trace {
        TraceRef::Program(program) if !program.calls().is_empty() => program,
        _ => return Box::new(std::iter::empty()),
    };
    let shown = || {
        replayed
            .journal
            .calls(rank)
            .map(|call| call.function)
            .filter(is_collective)
    };
    let all = || calls(program, rank);
    let of_several =
        move || all().filter(|call| program.communicator(call.communicator).members.len() > 1);
    let details = move |call: &'a CollectiveCall| Details {
        call,
        communicator: program.communicator(call.communicator).id,
    };
    if all().any(|call| call.mode != CollectiveMode::Blocking) {
        Box::new(std::iter::empty())
    } else if all().map(function).eq(shown()) {
        Box::new(all().map(details))
    } else if of_several().map(function).eq(shown()) {
        Box::new(of_several().map(details))
    } else {
        Box::new(std::iter::empty())
    }
}

fn function(call: &CollectiveCall) -> Function {
    Function::Collective(call.op)
}

fn is_collective(function: &Function) -> bool {
    matches!(function, Function::Collective(_))
}

fn calls(program: &Program, rank: Rank) -> impl Iterator<Item = &CollectiveCall> {
    program.ops(rank).filter_map(|(_, op)| match op {
        Op::Collective { call, .. } => Some(program.call(call)),
        _ => None,
    })
}
