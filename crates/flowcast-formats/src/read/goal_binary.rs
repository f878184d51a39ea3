//! LogGOPSim's binary GOAL, written by its `txt2bin`, and used by ATLAHS to distribute traces.
//!
//! All numbers are little-endian, and nothing is aligned. Offsets start after the magic number:
//!
//! | part | content |
//! |---|---|
//! | magic | u64: 4223; 2342 in a file that `LogGOPSim --save-mem` has overwritten while it simulated |
//! | header | u32 ranks, u8 highest processor, u8 highest network interface |
//! | table | for each rank u64 begin and u64 end of its part |
//! | part | u32 operations, u32 roots, the roots as u32 each, the operations of 39 bytes each, the dependents as u32 each |
//! | operation | u32 operations that it waits for, u8 kind, u32 peer, u64 bytes or nanoseconds, u32 tag, u8 processor, u8 network interface, then twice u32 count and u32 index of its first dependent: those that wait for its end, those that wait for its start |
//!
//! A peer or tag of 2^32 - 1 means any. The roots are the operations without requirements.

use flowcast_program::{
    TraceError,
    schedule::{After, Dependency, Graph, Operation, OperationNode, Schedule, graph, node},
};
use flowcast_units::{Bytes, Rank, Time};

/// First eight bytes of a file.
pub const MAGIC: [u8; 8] = 4223u64.to_le_bytes();
const OVERWRITTEN: [u8; 8] = 2342u64.to_le_bytes();
/// Kind of a send.
pub const SEND: u8 = 1;
/// Kind of a receive.
pub(crate) const RECEIVE: u8 = 2;
/// Kind of a computation.
pub(crate) const CALCULATION: u8 = 3;
/// Value of a peer or tag that means any.
pub const ANY: u32 = u32::MAX;
/// Bytes of the header after the magic number.
pub(crate) const HEADER_BYTES: u64 = 6;
/// Bytes of a rank's entry in the table.
pub(crate) const RANGE_BYTES: u64 = 16;
/// Bytes of an operation.
pub(crate) const OPERATION_BYTES: usize = 39;

/// Returns `true` if the file is a binary schedule, even one that can no longer be used.
pub(super) fn recognises(bytes: &[u8]) -> bool {
    bytes.starts_with(&MAGIC) || bytes.starts_with(&OVERWRITTEN)
}

/// Reads a schedule.
pub(super) fn read(name: &str, bytes: &[u8]) -> Result<Schedule, TraceError> {
    if bytes.starts_with(&OVERWRITTEN) {
        let overwritten = "found a schedule that `LogGOPSim --save-mem` has overwritten, expected one that `txt2bin` wrote";
        return Err(TraceError::damaged(name, overwritten));
    }
    let graphs =
        read_ranks(&bytes[MAGIC.len()..]).map_err(|problem| TraceError::damaged(name, problem))?;
    Ok(Schedule {
        name: name.to_owned(),
        graphs,
    })
}

/// Reader that takes fields from the front of bytes. Its errors, and those of the functions below, describe the damage.
struct GoalBinaryFields<'a>(&'a [u8]);

impl<'a> GoalBinaryFields<'a> {
    fn bytes(&mut self, count: usize) -> Result<&'a [u8], String> {
        let (taken, rest) = self
            .0
            .split_at_checked(count)
            .ok_or("found fewer bytes than expected: the file is cut off or damaged")?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], String> {
        Ok(self.bytes(N)?.try_into().expect("the slice has N bytes"))
    }

    fn u8(&mut self) -> Result<u8, String> {
        Ok(self.array::<1>()?[0])
    }

    fn u32(&mut self) -> Result<u32, String> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, String> {
        self.array().map(u64::from_le_bytes)
    }
}

fn read_ranks(bytes: &[u8]) -> Result<Vec<Graph>, String> {
    let mut fields = GoalBinaryFields(bytes);
    let ranks = fields.u32()? as usize;
    let _highest = (fields.u8()?, fields.u8()?);
    let table = ranks
        .checked_mul(RANGE_BYTES as usize)
        .ok_or("found more ranks than the file describes")?;
    let mut table = GoalBinaryFields(fields.bytes(table)?);
    if ranks == 0 {
        return Err("found no ranks, expected at least one".into());
    }
    let mut graphs = Vec::with_capacity(ranks);
    let mut behind = HEADER_BYTES + ranks as u64 * RANGE_BYTES;
    for rank in 0..ranks {
        let (begin, end) = (table.u64()?, table.u64()?);
        // With overlapping parts, a small file could describe any number of operations.
        if begin < behind || end < begin || end > bytes.len() as u64 {
            let found = format!("found rank {rank} at bytes {begin} to {end}");
            return Err(format!(
                "{found}, expected it between bytes {behind} and {}",
                bytes.len()
            ));
        }
        let part = GoalBinaryFields(&bytes[begin as usize..end as usize]);
        let graph = read_rank(part, ranks);
        graphs.push(graph.map_err(|problem| format!("rank {rank}: {problem}"))?);
        behind = end;
    }
    Ok(graphs)
}

fn read_rank(mut part: GoalBinaryFields<'_>, ranks: usize) -> Result<Graph, String> {
    let (operations, roots) = (part.u32()? as usize, part.u32()? as usize);
    let roots = part.bytes(
        roots
            .checked_mul(4)
            .ok_or("found more roots than the file can contain")?,
    )?;
    let stated = operations
        .checked_mul(OPERATION_BYTES)
        .ok_or("found more operations than the file can contain")?;
    let records = part.bytes(stated)?.chunks_exact(OPERATION_BYTES);
    let dependents = part.0;
    let mut nodes = Vec::with_capacity(operations);
    let mut dependencies = Vec::with_capacity(dependents.len() / 4);
    let mut waits = Vec::with_capacity(operations);
    for (record, number) in records.zip(1..) {
        let place = |problem: String| format!("operation {number}: {problem}");
        let mut record = GoalBinaryFields(record);
        waits.push(record.u32()?);
        nodes.push(read_operation(&mut record, ranks).map_err(place)?);
        for after in [After::End, After::Start] {
            let (count, first) = (record.u32()? as usize, record.u32()? as usize);
            let later = dependents_of(dependents, first, count, operations).map_err(place)?;
            let earlier = number - 1;
            dependencies.extend(later.map(|later| Dependency {
                later,
                earlier,
                after,
            }));
            if dependencies.len() > dependents.len() / 4 {
                return Err(place(
                    "found dependents that are listed for another operation, too".into(),
                ));
            }
        }
    }
    let graph = graph(nodes, &dependencies);
    check_counts(&graph, &waits, roots)?;
    Ok(graph)
}

/// Returns the operations with these numbers among the dependents of a rank.
fn dependents_of(
    dependents: &[u8],
    first: usize,
    count: usize,
    operations: usize,
) -> Result<impl Iterator<Item = u32> + '_, String> {
    // The index of the first dependent has no meaning if there are none.
    let first = if count == 0 { 0 } else { first };
    let range = first
        .checked_mul(4)
        .zip(first.checked_add(count).and_then(|end| end.checked_mul(4)));
    let found = range
        .and_then(|(begin, end)| dependents.get(begin..end))
        .ok_or("found a list of dependents that ends outside the rank")?;
    let (numbers, _) = found.as_chunks::<4>();
    let numbers = numbers.iter().map(|bytes| u32::from_le_bytes(*bytes));
    match numbers
        .clone()
        .find(|number| *number as usize >= operations)
    {
        Some(number) => Err(format!(
            "found dependent {number} in a rank of {operations} operations"
        )),
        None => Ok(numbers),
    }
}

fn read_operation(
    record: &mut GoalBinaryFields<'_>,
    ranks: usize,
) -> Result<OperationNode, String> {
    let (kind, peer, amount, tag) = (record.u8()?, record.u32()?, record.u64()?, record.u32()?);
    let (cpu, nic) = (record.u8()?, record.u8()?);
    let peer = (peer != ANY).then_some(Rank(peer));
    if let Some(peer) = peer.filter(|peer| peer.0 as usize >= ranks) {
        return Err(format!("found rank {peer}, expected a rank below {ranks}"));
    }
    let tag = (tag != ANY).then_some(tag);
    let operation = match kind {
        SEND => Operation::Send {
            to: peer.ok_or("found a send to any rank, expected one receiver")?,
            size: Bytes(amount),
            tag,
        },
        RECEIVE => Operation::Recv {
            from: peer,
            size: Bytes(amount),
            tag,
        },
        CALCULATION => Operation::Calc(Time::from_nanos(amount as f64)),
        other => {
            let expected = "send (1), receive (2) or calculation (3); LogGOPSim 2 has more kinds and longer records";
            return Err(format!("found kind {other}, expected {expected}"));
        }
    };
    Ok(OperationNode {
        cpu,
        nic,
        ..node(operation, 0)
    })
}

/// Compares the file's counts of requirements and its roots with the dependencies.
fn check_counts(graph: &Graph, waits: &[u32], roots: &[u8]) -> Result<(), String> {
    let wrong = graph
        .nodes
        .iter()
        .zip(waits)
        .zip(1..)
        .find(|((node, waits), _)| node.dependencies != **waits);
    if let Some(((node, waits), number)) = wrong {
        let found = format!("operation {number}: found {waits} required operations");
        return Err(format!(
            "{found}, expected {}, the number of operations that list it as a dependent",
            node.dependencies
        ));
    }
    let are_roots = (0u32..)
        .zip(waits)
        .filter(|(_, waits)| **waits == 0)
        .flat_map(|(number, _)| number.to_le_bytes());
    if are_roots.eq(roots.iter().copied()) {
        Ok(())
    } else {
        Err("found a list of roots that differs from the operations without requirements".into())
    }
}
