//! Records that Dimemas lacks: one-sided communication (30) and files (31).

use super::{DimSection, kinds::format_of, peers::Peers, size, small};
use crate::read::{cursor::Cursor, fault::Fault};
use flowcast_program::{
    access::{Access, FileKind, LockKind, TransferKind},
    build::CallRecord,
    opcodes::Record,
    program::CollectiveMode,
};

impl DimSection {
    pub(super) fn read_one_sided(
        &mut self,
        cursor: &mut Cursor<'_>,
        peers: &Peers,
    ) -> Result<(), Fault> {
        use Access::*;
        let [operation, window, target, bytes] = cursor
            .integers()
            .ok_or_else(|| Fault::malformed(format_of(30)))?;
        let (window, size) = (small(window, "a communicator")?, size(bytes)?);
        let tasks = peers.tasks();
        let task = u32::try_from(target).ok().filter(|task| *task < tasks);
        let rank = task.map(|task| peers.rank(task, 0));
        let target = rank.ok_or_else(|| {
            Fault::value(
                format!("target {target}"),
                format!("a task from 0 to {}", tasks - 1),
            )
        });
        let access = match operation {
            0..=2 => Transfer {
                kind: [
                    TransferKind::Put,
                    TransferKind::Get,
                    TransferKind::Accumulate,
                ][operation as usize],
                window,
                target: target?,
                size,
            },
            3 => Flush {
                window,
                target: None,
            },
            4 => Lock {
                window,
                target: target?,
                kind: LockKind::Shared,
            },
            5 => Lock {
                window,
                target: target?,
                kind: LockKind::Exclusive,
            },
            6 => Unlock {
                window,
                target: target?,
            },
            7 => Flush {
                window,
                target: rank,
            },
            other => {
                return Err(Fault::value(
                    format!("operation {other}"),
                    "a one-sided operation, 0 to 7",
                ));
            }
        };
        self.builder.access(access, Record::Begins)?;
        if operation == 3 {
            self.meet(window)?;
        }
        Ok(())
    }

    pub(super) fn read_file(&mut self, cursor: &mut Cursor<'_>) -> Result<(), Fault> {
        let [operation, file, communicator, bytes] = cursor
            .integers()
            .ok_or_else(|| Fault::malformed(format_of(31)))?;
        let kind = match operation {
            0 => FileKind::Open,
            1 => FileKind::Close,
            2 => FileKind::Read,
            3 => FileKind::Write,
            other => {
                return Err(Fault::value(
                    format!("operation {other}"),
                    "a file operation, 0 to 3",
                ));
            }
        };
        let file = Access::File {
            kind,
            file: small(file, "a file")?,
            size: size(bytes)?,
        };
        if communicator <= 0 {
            return Ok(self.builder.access(file, Record::Begins)?);
        }
        self.builder.nothing();
        self.meet(small(communicator, "a communicator")?)?;
        Ok(self.builder.access(file, Record::Continues)?)
    }

    /// Makes all ranks of a communicator wait for each other, as a further part of the record.
    fn meet(&mut self, communicator: i32) -> Result<(), Fault> {
        let call = CallRecord::barrier(communicator, CollectiveMode::Blocking);
        Ok(self.builder.further_collective(call, Record::Continues)?)
    }
}
