//! Calls of MPI from other tracers, converted to the form of Flowcast's own recordings.
//!
//! A tracer writes functions with their arguments and times, but in different ways. Handles of communicators and requests
//! are numbers or addresses. The members of a communicator follow from the call that made it (`communicators`). Some tracers
//! do not write whether a test found its request completed (`settle`). After these conversions, a rank's calls equal those
//! of a recording (`rank_file`), and are lowered, matched and ordered in the same way.

mod communicators;
mod rank_file;
mod settle;

use super::{ignored, recorded};
use flowcast_program::{ReadOptions, TraceError, program::Program};
use flowcast_units::CollectiveOp;
use std::collections::BTreeMap;

pub(crate) use communicators::{CommunicatorOrigin, Group, Leaders};

/// Call of MPI. Its words are the known words of a recording's signature, without the function.
#[derive(Debug, Clone, Default)]
pub(crate) struct TracedCall {
    /// Name of the function, without `MPI_`.
    pub function: &'static str,
    /// Words. If the kind has a communicator, the first word is its number at this rank.
    pub words: Vec<i64>,
    /// Sizes of a collective, whose bytes depend on the communicator.
    pub sizes: Option<Sizes>,
    /// Request that the call makes.
    pub makes: Option<u64>,
    /// `true` if this request is persistent.
    pub persistent: bool,
    /// Requests that the call starts.
    pub starts: Vec<u64>,
    /// Requests that the call completes.
    pub completes: Vec<CompletedRequest>,
    /// Requests that the call may have completed; the trace does not say which.
    pub tests: Vec<u64>,
    /// Request that the call frees.
    pub frees: Option<u64>,
    /// Number of the thread that made the call.
    pub thread: u32,
    /// Start of the call, in ns.
    pub begin: u64,
    /// Return of the call, in ns.
    pub end: u64,
}

/// Completed request, with the source and tag that it matched, if the trace has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CompletedRequest {
    /// Request that is completed.
    pub request: u64,
    /// Source and tag that it matched, if the trace has them.
    pub matched: Option<(i64, i64)>,
    /// `true` if the request was cancelled.
    pub cancelled: bool,
}

impl CompletedRequest {
    /// Creates a completion without a known status.
    pub(crate) fn new(request: u64) -> CompletedRequest {
        CompletedRequest {
            request,
            matched: None,
            cancelled: false,
        }
    }
}

/// Sizes from the arguments of a collective, in bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Sizes {
    /// Bytes sent, from the count and the datatype.
    pub out: i64,
    /// Bytes received, from the count and the datatype.
    pub into: i64,
    /// Bytes sent to each rank.
    pub outs: Option<Vec<i64>>,
    /// Bytes received from each rank.
    pub ins: Option<Vec<i64>>,
    /// `true` if the sent data are in the receive buffer (`MPI_IN_PLACE`).
    pub send_in_place: bool,
    /// `true` if the received data are in the send buffer (`MPI_IN_PLACE`).
    pub recv_in_place: bool,
}

impl Sizes {
    /// Returns the bytes that a rank sends and receives, as sums over all peers, as recordings count them.
    fn volume(&self, op: CollectiveOp, size: i64, position: usize, is_root: bool) -> (i64, i64) {
        use CollectiveOp::*;
        let (ins, outs) = (self.ins.as_deref(), self.outs.as_deref());
        let all_in = ins.map_or_else(|| self.into.saturating_mul(size), sum);
        let all_out = outs.map_or_else(|| self.out.saturating_mul(size), sum);
        let share =
            |all: i64, in_place: bool, own: i64| if in_place { all / size.max(1) } else { own };
        match op {
            Barrier => (0, 0),
            Bcast | Reduce | Allreduce | Scan => (self.out, self.out),
            Gather | Gatherv => {
                let all = if is_root { all_in } else { 0 };
                (share(all, self.send_in_place, self.out), all)
            }
            Scatter | Scatterv => {
                let all = if is_root { all_out } else { 0 };
                (all, share(all, self.recv_in_place, self.into))
            }
            Allgather | Allgatherv => (share(all_in, self.send_in_place, self.out), all_in),
            Alltoall | Alltoallv | Alltoallw if self.send_in_place => (all_in, all_in),
            Alltoall | Alltoallv | Alltoallw => (all_out, all_in),
            ReduceScatter | ReduceScatterBlock => {
                let own = ins.map_or(self.into, |ins| ins.get(position).copied().unwrap_or(0));
                (all_in, own)
            }
        }
    }
}

fn sum(list: &[i64]) -> i64 {
    list.iter()
        .fold(0i64, |sum, bytes| sum.saturating_add(*bytes))
}

/// Calls of a rank.
#[derive(Debug, Clone, Default)]
pub(crate) struct RankCalls {
    /// Name of the program, if the trace has it.
    pub program: String,
    /// Calls in the order in which they returned.
    pub calls: Vec<TracedCall>,
    /// Origins of the rank's communicators, in the order in which they were made.
    pub communicators: Vec<CommunicatorOrigin>,
}

/// Builds a program from the calls of all ranks. `unread` lists what the reader itself has left out.
///
/// # Errors
/// Ranks that call different collectives in the same turn, or numbers that are too large for the compiled form.
pub(crate) fn program(
    name: &str,
    mut ranks: Vec<RankCalls>,
    unread: impl IntoIterator<Item = (String, u64)>,
    options: ReadOptions,
) -> Result<Program, TraceError> {
    let origins: Vec<&[CommunicatorOrigin]> =
        ranks.iter().map(|rank| &rank.communicators[..]).collect();
    let members = communicators::resolve(&origins);
    ranks
        .iter_mut()
        .for_each(|rank| settle::settle(&mut rank.calls));
    let count = ranks.len() as u32;
    let mut left_out: BTreeMap<&str, u64> = BTreeMap::new();
    let mut files = Vec::with_capacity(ranks.len());
    for ((rank, calls), members) in (0..count).zip(ranks).zip(members) {
        let (file, skipped) = rank_file::rank_file(rank, count, calls, members);
        for (kind, count) in skipped {
            *left_out.entry(kind).or_default() += count;
        }
        files.push(file);
    }
    let mut program = recorded::program(name, &files, recorded::Clock::Wall, options)?;
    program.ignored.extend(ignored(unread));
    program.ignored.extend(ignored(left_out));
    Ok(program)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_a_collective_are_sums_over_all_peers() {
        let sizes = Sizes {
            out: 8,
            into: 4,
            ..Sizes::default()
        };
        assert_eq!(sizes.volume(CollectiveOp::Alltoall, 4, 0, false), (32, 16));
        assert_eq!(sizes.volume(CollectiveOp::Gather, 4, 0, true), (8, 16));
        assert_eq!(sizes.volume(CollectiveOp::Gather, 4, 1, false), (8, 0));
        assert_eq!(sizes.volume(CollectiveOp::Scatter, 4, 0, true), (32, 4));
        assert_eq!(sizes.volume(CollectiveOp::Bcast, 4, 0, true), (8, 8));
        let vector = Sizes {
            ins: Some(vec![8, 16, 24]),
            ..Sizes::default()
        };
        assert_eq!(
            vector.volume(CollectiveOp::ReduceScatter, 3, 1, false),
            (48, 16)
        );
        let in_place = Sizes {
            send_in_place: true,
            into: 4,
            ..Sizes::default()
        };
        assert_eq!(
            in_place.volume(CollectiveOp::Allgather, 4, 0, false),
            (4, 16)
        );
    }
}
