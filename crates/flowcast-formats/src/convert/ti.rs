//! Writer of SimGrid's time-independent traces: the actions of one rank. Sizes are in bytes; computations count operations
//! of a host of 1 Gflop/s. In this format, all collectives include all ranks.

use std::io::{self, Write};

use super::{
    BARRIER_BYTES, Losses, ROOT_SYNCHRONOUS, WriterTables, is_plain_world,
    steps::{StepFile, StepMessage, StreamStep},
};
use flowcast_program::program::{CollectiveCall, CollectiveMode, Program};
use flowcast_units::{CollectiveOp, Rank};

/// Returns `true` if the collectives must be converted to messages first. They must if a collective includes only some of
/// the ranks, or if its sizes do not determine the bytes between each pair of ranks.
pub fn needs_messages(program: &Program) -> bool {
    let tables = WriterTables::new(program);
    let ranks = program.ranks() as u64;
    program
        .calls()
        .iter()
        .any(|call| !is_plain_world(program, call.communicator))
        || tables.executions.iter().any(|calls| {
            let Some(first) = calls.first().map(|(_, call)| tables.call(*call)) else {
                return false;
            };
            let is_exchange = matches!(
                first.op,
                CollectiveOp::Alltoall | CollectiveOp::Alltoallv | CollectiveOp::Alltoallw
            );
            is_exchange
                && !calls.iter().all(|(_, call)| {
                    let call = tables.call(*call);
                    (call.send, call.recv) == (first.send, first.recv)
                        && call.send == call.recv
                        && call.send.0.is_multiple_of(ranks)
                })
        })
}

/// Writes a rank's actions. All collectives must be blocking, and must have been converted to messages if [`needs_messages`]
/// requires it.
///
/// # Errors
/// The errors of `out`.
pub fn ti_rank(
    tables: &WriterTables<'_>,
    rank: Rank,
    losses: &mut Losses,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut writer = TiWriter {
        out,
        tables,
        rank,
        losses,
    };
    writeln!(writer.out, "{rank} init")?;
    let mut steps = StepFile::new(tables, rank);
    while let Some(step) = steps.next(writer.losses) {
        match step {
            StreamStep::Collective(call, instance) => writer.collective(call, instance)?,
            step => action(step, rank, writer.out)?,
        }
    }
    writeln!(writer.out, "{rank} finalize")
}

/// Writes a rank's actions from steps without collectives.
///
/// # Errors
/// The errors of `out`.
pub(crate) fn ti_steps(
    steps: impl Iterator<Item = StreamStep>,
    rank: Rank,
    out: &mut dyn Write,
) -> io::Result<()> {
    writeln!(out, "{rank} init")?;
    for step in steps {
        action(step, rank, out)?;
    }
    writeln!(out, "{rank} finalize")
}

fn action(step: StreamStep, rank: Rank, out: &mut dyn Write) -> io::Result<()> {
    use StreamStep::*;
    let (action, message) = match step {
        Send(sent) if sent.mode.non_blocking => ("isend", sent),
        Send(sent) => ("send", sent),
        Receive(received) => ("recv", received),
        Post(posted) => ("irecv", posted),
        Compute(time) => return writeln!(out, "{rank} compute {}", time.as_nanos()),
        AwaitReceive(StepMessage { peer, tag, .. }) => {
            return writeln!(out, "{rank} wait {peer} {rank} {tag}");
        }
        AwaitSend(StepMessage {
            peer, tag, mode, ..
        }) if mode.non_blocking => {
            return writeln!(out, "{rank} wait {rank} {peer} {tag}");
        }
        AwaitAll => return writeln!(out, "{rank} waitall"),
        AwaitSend(_) | Collective(..) | Meeting(..) => return Ok(()),
    };
    let StepMessage {
        peer, tag, size, ..
    } = message;
    // The datatype is 6, bytes. Without it, a small count would be read as the datatype of the form without tags.
    writeln!(out, "{rank} {action} {peer} {tag} {} 6", size.0)
}

struct TiWriter<'a> {
    out: &'a mut dyn Write,
    tables: &'a WriterTables<'a>,
    rank: Rank,
    losses: &'a mut Losses,
}

impl TiWriter<'_> {
    fn collective(&mut self, call: u32, instance: u32) -> io::Result<()> {
        use CollectiveOp::*;
        let own = self.tables.call(call);
        if own.mode == CollectiveMode::RootSynchronous {
            self.losses.count(ROOT_SYNCHRONOUS);
        }
        let calls: Vec<&CollectiveCall> = self.tables.executions[instance as usize]
            .iter()
            .map(|(_, call)| self.tables.call(*call))
            .collect();
        let ranks = calls.len() as u64;
        let root = self.tables.root(instance).unwrap_or(Rank(0));
        let (send, recv) = (own.send.0, own.recv.0);
        let sent = list(calls.iter().map(|call| call.send.0));
        let received = list(calls.iter().map(|call| call.recv.0));
        let same_sent = calls.iter().all(|call| call.send == own.send);
        let same_received = calls.iter().all(|call| call.recv == own.recv);
        let text = match own.op {
            Barrier => {
                if own.send.0 + own.recv.0 > 0 {
                    self.losses.count(BARRIER_BYTES);
                }
                "barrier".to_owned()
            }
            Bcast => format!("bcast {} {root}", send.max(recv)),
            Reduce => format!("reduce {send} 0 {root}"),
            Allreduce => format!("allreduce {send} 0"),
            Scan => format!("scan {send} 0"),
            Alltoall | Alltoallv | Alltoallw => {
                format!("alltoall {} {}", send / ranks, recv / ranks)
            }
            Gather | Gatherv if same_sent => format!("gather {send} {send} {root}"),
            Gather | Gatherv => format!("gatherv {send} {sent} {root}"),
            Scatter | Scatterv if same_received => format!("scatter {recv} {recv} {root}"),
            Scatter | Scatterv => format!("scatterv {received} {recv} {root}"),
            Allgather | Allgatherv if same_sent => format!("allgather {send} {send}"),
            Allgather | Allgatherv => format!("allgatherv {send} {sent}"),
            ReduceScatter | ReduceScatterBlock => format!("reducescatter {received} 0"),
        };
        writeln!(self.out, "{} {text}", self.rank)
    }
}

fn list(bytes: impl Iterator<Item = u64>) -> String {
    let texts: Vec<String> = bytes.map(|bytes| bytes.to_string()).collect();
    texts.join(" ")
}
