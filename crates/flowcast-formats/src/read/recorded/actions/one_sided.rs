//! One-sided communication: transfers to and from the memory of other ranks, and their synchronisation.
//!
//! The ranks of a window synchronise on a communicator that belongs to this window alone (`Communicators`). In a post, a
//! rank exposes its memory and sends an empty message to each rank of the accessing group. It gets an empty message back
//! from each of these ranks after their accesses.

use std::collections::{BTreeMap, BTreeSet};

use super::{Action, LEFT_OUT, RequestKind, Translation, word};
use flowcast_program::{
    access::{Access, LockKind, TransferKind},
    build::{CallRecord, Channel, NON_BLOCKING},
};
use flowcast_recording::{
    decode::Members,
    format::{LOCK_EXCLUSIVE, LOCK_SHARED},
    table::MpiFunction,
};
use flowcast_units::{Bytes, Rank};

const UNKNOWN_LOCK: &str = " without a recorded lock type; treated as shared";

/// Tags of the message that allows access to a rank's memory, and of the message that reports the end of an access.
const POSTED: i32 = 0;
const COMPLETED: i32 = 1;

/// Open epochs of a rank on its windows.
#[derive(Default)]
pub(super) struct Epochs {
    /// Locks that the rank holds.
    locks: BTreeSet<(i32, Rank)>,
    /// Ranks that may access the rank's memory, by window.
    exposed_to: BTreeMap<i32, Vec<Rank>>,
    /// Ranks whose memory the rank accesses, by window.
    accessed: BTreeMap<i32, Vec<Rank>>,
}

impl<'a> Translation<'a> {
    pub(super) fn one_sided(&mut self, function: &MpiFunction, words: &[i64]) {
        let (begin, end) = (self.begin, self.end);
        let Some((window, members)) = self.window(words) else {
            self.leave_out(words, LEFT_OUT);
            return self.request(function, RequestKind::Nothing);
        };
        let target = members.world_rank(word(words, 2));
        match (function.name.as_str(), target) {
            ("Win_fence" | "Win_free", _) => self.fence(window),
            ("Win_flush_all" | "Win_flush_local_all" | "Win_unlock_all", _) => {
                self.flush(window, None, end)
            }
            ("Win_post", _) => self.expose(window, words),
            ("Win_start", _) => self.start_access(window, words),
            ("Win_complete", _) => self.complete_access(window),
            ("Win_wait" | "Win_test", _) => self.end_exposure(window),
            ("Win_flush" | "Win_flush_local", Some(_)) => self.flush(window, target, end),
            ("Win_lock", Some(target)) => self.lock(window, target, words),
            ("Win_unlock", Some(target)) => self.unlock(window, target),
            (name, Some(target)) => match transfer_kind(name) {
                Some(kind) => {
                    let size = Bytes(word(words, 3).max(0) as u64);
                    self.access(
                        Access::Transfer {
                            kind,
                            window,
                            target,
                            size,
                        },
                        begin,
                    );
                    return self.request(function, RequestKind::Transfer { window, target });
                }
                None => self.at_begin(Action::Nothing),
            },
            // A lock of all ranks costs nothing, and neither does an operation without a target.
            (_, None) => self.at_begin(Action::Nothing),
        }
        self.request(function, RequestKind::Nothing);
    }

    /// Releases the locks that the program held at its end.
    pub(super) fn release_locks(&mut self) {
        let end = self.out.steps.last().map_or(0, |step| step.time);
        for (window, target) in std::mem::take(&mut self.epochs.locks) {
            self.access(Access::Unlock { window, target }, end);
        }
    }

    /// Makes the rank wait for its transfers to a target, or to all targets.
    pub(super) fn flush(&mut self, window: i32, target: Option<Rank>, time: u64) {
        self.access(Access::Flush { window, target }, time);
    }

    /// Returns the window's global number and its ranks.
    fn window(&self, words: &[i64]) -> Option<(i32, &'a Members)> {
        let own = usize::try_from(word(words, 1)).ok()?;
        let communicator = usize::try_from(*self.file.windows.get(own)?).ok()?;
        Some((
            (*self.context.windows.get(own)?)?,
            &**self.file.communicators.get(communicator)?,
        ))
    }

    fn access(&mut self, access: Access, time: u64) {
        self.out.accesses.push(access);
        self.push(time, Action::Access(self.out.accesses.len() as u32 - 1));
    }

    /// Makes all ranks of the window wait for their transfers and then for each other.
    fn fence(&mut self, window: i32) {
        self.flush(window, None, self.begin);
        let barrier = CallRecord::barrier(window, self.mode_of_blocking());
        let number = self.out.add_collective(barrier);
        self.execute(number);
    }

    fn lock(&mut self, window: i32, target: Rank, words: &[i64]) {
        let kind = match word(words, 4) {
            LOCK_EXCLUSIVE => LockKind::Exclusive,
            LOCK_SHARED => LockKind::Shared,
            _ => {
                self.count_left_out(words, UNKNOWN_LOCK);
                LockKind::Shared
            }
        };
        self.epochs.locks.insert((window, target));
        self.access(
            Access::Lock {
                window,
                target,
                kind,
            },
            self.end,
        );
    }

    /// Releases a lock. The replay does not know a lock that was acquired before recording began, so the rank then only
    /// waits for its transfers.
    fn unlock(&mut self, window: i32, target: Rank) {
        if self.epochs.locks.remove(&(window, target)) {
            self.access(Access::Unlock { window, target }, self.end);
        } else {
            self.flush(window, Some(target), self.end);
        }
    }

    fn expose(&mut self, window: i32, words: &[i64]) {
        let ranks = group(words);
        self.notify(window, POSTED, &ranks, self.begin);
        self.epochs.exposed_to.insert(window, ranks);
    }

    fn start_access(&mut self, window: i32, words: &[i64]) {
        let ranks = group(words);
        self.await_notes(window, POSTED, &ranks);
        self.epochs.accessed.insert(window, ranks);
    }

    fn complete_access(&mut self, window: i32) {
        self.flush(window, None, self.end);
        let ranks = self.epochs.accessed.remove(&window).unwrap_or_default();
        self.notify(window, COMPLETED, &ranks, self.end);
    }

    fn end_exposure(&mut self, window: i32) {
        let ranks = self.epochs.exposed_to.remove(&window).unwrap_or_default();
        self.await_notes(window, COMPLETED, &ranks);
    }

    /// Sends an empty message to each rank.
    fn notify(&mut self, window: i32, tag: i32, ranks: &[Rank], time: u64) {
        self.push(time, Action::Nothing);
        for peer in ranks {
            let channel = Channel {
                peer: *peer,
                tag,
                communicator: window,
            };
            let send = self.out.add_send(channel, Bytes(0), NON_BLOCKING);
            self.push(time, Action::Send(send));
        }
    }

    /// Waits for an empty message from each rank.
    fn await_notes(&mut self, window: i32, tag: i32, ranks: &[Rank]) {
        self.at_begin(Action::Nothing);
        for peer in ranks {
            let channel = Channel {
                peer: *peer,
                tag,
                communicator: window,
            };
            let post = self.out.add_post(Some(channel), None);
            self.receive(post);
        }
    }
}

/// Returns the transfer of a function.
fn transfer_kind(function: &str) -> Option<TransferKind> {
    match function {
        "Put" | "Rput" => Some(TransferKind::Put),
        "Get" | "Rget" => Some(TransferKind::Get),
        "Accumulate" | "Raccumulate" | "Get_accumulate" | "Rget_accumulate" | "Fetch_and_op"
        | "Compare_and_swap" => Some(TransferKind::Accumulate),
        _ => None,
    }
}

/// Returns the world ranks of the group that a signature names.
fn group(words: &[i64]) -> Vec<Rank> {
    let ranks = words.get(5..).unwrap_or(&[]);
    ranks
        .iter()
        .filter_map(|rank| u32::try_from(*rank).ok().map(Rank))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::recorded_by_hand::{TestCall, notes_of, read};
    use flowcast_program::{
        Program,
        access::{Access, LockKind, TransferKind},
        opcodes::Op,
    };
    use flowcast_recording::format::LOCK_EXCLUSIVE;
    use flowcast_units::{Bytes, Rank};

    fn accesses(program: &Program, rank: u32) -> Vec<Access> {
        let access = |op| match op {
            Op::Access(access) => Some(program.accesses()[access as usize]),
            _ => None,
        };
        program
            .ops(Rank(rank))
            .filter_map(|(_, op)| access(op))
            .collect()
    }

    const WINDOW: i32 = 1;
    const PUT: Access = Access::Transfer {
        kind: TransferKind::Put,
        window: WINDOW,
        target: Rank(1),
        size: Bytes(80),
    };

    #[test]
    fn recordings_without_lock_types_and_groups_are_read_with_notes() {
        let calls: [TestCall<'_>; 6] = [
            ("Win_lock", &[0, 1, 0], 0),
            ("Put", &[0, 1, 80], 0),
            ("Win_unlock", &[0, 1, 0], 0),
            ("Win_start", &[0, -1, 0], 0),
            ("Put", &[0, 1, 80], 0),
            ("Win_complete", &[0, -1, 0], 0),
        ];
        let program = read([&calls, &[]]);
        let lock = Access::Lock {
            window: WINDOW,
            target: Rank(1),
            kind: LockKind::Shared,
        };
        let unlock = Access::Unlock {
            window: WINDOW,
            target: Rank(1),
        };
        let flush = Access::Flush {
            window: WINDOW,
            target: None,
        };
        assert_eq!(accesses(&program, 0), [lock, PUT, unlock, PUT, flush]);
        let unknown = "1 calls of MPI_Win_lock without a recorded lock type; treated as shared";
        assert_eq!(
            notes_of(&program),
            [unknown, "1 calls of MPI_Win_start left out of the replay"]
        );
    }

    #[test]
    fn an_open_lock_is_released_at_the_end_and_an_unlock_without_a_lock_only_waits() {
        let calls: [TestCall<'_>; 3] = [
            ("Win_unlock", &[0, 0, 0], 0),
            ("Win_lock", &[0, 1, 0, LOCK_EXCLUSIVE], 0),
            ("Put", &[0, 1, 80], 0),
        ];
        let program = read([&calls, &[]]);
        let flush = Access::Flush {
            window: WINDOW,
            target: Some(Rank(0)),
        };
        let lock = Access::Lock {
            window: WINDOW,
            target: Rank(1),
            kind: LockKind::Exclusive,
        };
        let unlock = Access::Unlock {
            window: WINDOW,
            target: Rank(1),
        };
        assert_eq!(accesses(&program, 0), [flush, lock, PUT, unlock]);
        assert!(program.ignored().is_empty(), "{:?}", program.ignored());
    }

    #[test]
    fn each_thread_accesses_the_memory_of_the_target_s_first_stream() {
        let threads: [TestCall<'_>; 4] = [
            ("Put", &[0, 1, 80], 0),
            ("Put", &[0, 0, 80], 1),
            ("Win_flush", &[0, 1, 0], 0),
            ("Win_flush", &[0, 0, 0], 1),
        ];
        let program = read([&threads, &[("Put", &[0, 0, 80], 0)]]);
        let to = |target| match PUT {
            Access::Transfer {
                kind, window, size, ..
            } => Access::Transfer {
                kind,
                window,
                target: Rank(target),
                size,
            },
            other => other,
        };
        let flush = |target| Access::Flush {
            window: WINDOW,
            target: Some(Rank(target)),
        };
        assert_eq!(program.ranks(), 3, "two threads and a rank");
        assert_eq!(accesses(&program, 0), [to(2), flush(2)]);
        assert_eq!(accesses(&program, 1), [to(0), flush(0)]);
        assert_eq!(accesses(&program, 2), [to(0)]);
    }
}
