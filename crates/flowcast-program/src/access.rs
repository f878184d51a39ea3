//! RMA and I/O operations: actions of a rank in which no other rank takes part.

use std::hash::Hash;

use flowcast_units::{Bytes, Rank};

/// An operation on another rank's memory, or on a file. Windows and files are named by the numbers of the trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Access {
    /// Data moves between the rank and a target, in the background.
    Transfer {
        /// Direction of the transfer, or accumulation at the target.
        kind: TransferKind,
        /// Window whose memory is accessed.
        window: i32,
        /// The rank whose memory is accessed.
        target: Rank,
        /// Bytes that are transferred.
        size: Bytes,
    },
    /// The rank waits until its transfers to a target, or to all, have completed.
    Flush {
        /// Window of the transfers.
        window: i32,
        /// Target; `None` for all.
        target: Option<Rank>,
    },
    /// The rank waits for a lock on a target's memory.
    Lock {
        /// Window of the lock.
        window: i32,
        /// The rank whose memory is locked.
        target: Rank,
        /// Kind of the lock: shared with other ranks, or exclusive.
        kind: LockKind,
    },
    /// The rank waits for its transfers to the target and releases the lock.
    Unlock {
        /// Window of the lock.
        window: i32,
        /// The rank whose memory is unlocked.
        target: Rank,
    },
    /// A request to the file system, for which the rank waits.
    File {
        /// Kind of the request.
        kind: FileKind,
        /// Number of the file.
        file: i32,
        /// Bytes that are read or written.
        size: Bytes,
    },
}

/// Kind of a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TransferKind {
    /// From the rank to the target.
    Put,
    /// From the target to the rank.
    Get,
    /// From the rank to the target, combined with the data there.
    Accumulate,
}

/// Kind of a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LockKind {
    /// All ranks that request a shared lock hold it at the same time.
    Shared,
    /// One rank alone holds the lock; no other rank has a lock, not even a shared one.
    Exclusive,
}

/// Kind of a request to the file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FileKind {
    /// Opens the file, `MPI_File_open`.
    Open,
    /// Closes the file, `MPI_File_close`.
    Close,
    /// Reads from the file.
    Read,
    /// Writes to the file.
    Write,
}

impl Access {
    /// The operation's name in MPI, without the prefix.
    pub const fn name(&self) -> &'static str {
        match self {
            Access::Transfer {
                kind: TransferKind::Put,
                ..
            } => "Put",
            Access::Transfer {
                kind: TransferKind::Get,
                ..
            } => "Get",
            Access::Transfer {
                kind: TransferKind::Accumulate,
                ..
            } => "Accumulate",
            Access::Flush { .. } => "Win_flush",
            Access::Lock { .. } => "Win_lock",
            Access::Unlock { .. } => "Win_unlock",
            Access::File {
                kind: FileKind::Open,
                ..
            } => "File_open",
            Access::File {
                kind: FileKind::Close,
                ..
            } => "File_close",
            Access::File {
                kind: FileKind::Read,
                ..
            } => "File_read",
            Access::File {
                kind: FileKind::Write,
                ..
            } => "File_write",
        }
    }

    /// Rank whose memory is accessed; `None` for files and for a flush of all targets.
    pub const fn target(&self) -> Option<Rank> {
        match self {
            Access::Transfer { target, .. }
            | Access::Lock { target, .. }
            | Access::Unlock { target, .. } => Some(*target),
            Access::Flush { target, .. } => *target,
            Access::File { .. } => None,
        }
    }

    /// Target rank to be changed, if there is one.
    pub fn target_mut(&mut self) -> Option<&mut Rank> {
        match self {
            Access::Transfer { target, .. }
            | Access::Lock { target, .. }
            | Access::Unlock { target, .. } => Some(target),
            Access::Flush { target, .. } => target.as_mut(),
            Access::File { .. } => None,
        }
    }

    /// Returns the same access with a target whose number is higher by `ranks`.
    pub(super) fn moved(mut self, ranks: u32) -> Access {
        if let Some(target) = self.target_mut() {
            target.0 += ranks;
        }
        self
    }

    /// Encodes the access as four numbers for the compiled format: operation, window or file, target (or -1), bytes.
    pub(super) fn row(&self) -> (u8, i32, i64, u64) {
        let target = self.target().map_or(-1, |target| i64::from(target.0));
        match *self {
            Access::Transfer {
                kind, window, size, ..
            } => (kind as u8, window, target, size.0),
            Access::Flush { window, .. } => (3, window, target, 0),
            Access::Lock { window, kind, .. } => (4 + kind as u8, window, target, 0),
            Access::Unlock { window, .. } => (6, window, target, 0),
            Access::File { kind, file, size } => (8 + kind as u8, file, -1, size.0),
        }
    }

    /// Decodes the numbers of [`Access::row`]; `None` if they are invalid.
    pub(super) fn from_row(
        (operation, window, target, size): (u8, i32, i64, u64),
    ) -> Option<Access> {
        use TransferKind::*;
        let (rank, size, file) = (u32::try_from(target).ok().map(Rank), Bytes(size), window);
        match operation {
            0..=2 => Some(Access::Transfer {
                kind: [Put, Get, Accumulate][usize::from(operation)],
                window,
                target: rank?,
                size,
            }),
            3 => Some(Access::Flush {
                window,
                target: rank,
            }),
            4 => Some(Access::Lock {
                window,
                target: rank?,
                kind: LockKind::Shared,
            }),
            5 => Some(Access::Lock {
                window,
                target: rank?,
                kind: LockKind::Exclusive,
            }),
            6 => Some(Access::Unlock {
                window,
                target: rank?,
            }),
            8 => Some(Access::File {
                kind: FileKind::Open,
                file,
                size,
            }),
            9 => Some(Access::File {
                kind: FileKind::Close,
                file,
                size,
            }),
            10 => Some(Access::File {
                kind: FileKind::Read,
                file,
                size,
            }),
            11 => Some(Access::File {
                kind: FileKind::Write,
                file,
                size,
            }),
            _ => None,
        }
    }
}

/// Size of the message that carries an access to another rank; `None` if the access sends no message.
pub fn size_of(access: &Access) -> Option<Bytes> {
    match access {
        Access::Transfer { size, .. } => Some(*size),
        Access::Lock { .. } => Some(Bytes(0)),
        Access::File { .. } | Access::Flush { .. } | Access::Unlock { .. } => None,
    }
}
