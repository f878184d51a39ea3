//! Executions of collectives, numbered over all communicators. The members of each communicator must agree on them.

use super::{
    super::{
        TraceError,
        build::RankBuilder,
        key_map::KeyMap,
        opcodes::{self, Op},
        program::{CollectiveCall, Communicator, Program},
    },
    ProgramParts, numbered,
};
use flowcast_units::Rank;

/// Executions of collectives, numbered over all communicators.
pub(super) struct Instances {
    /// Index of each communicator, by its id.
    pub index: KeyMap<i32>,
    firsts: Vec<u32>,
    /// Index of the communicator of each execution.
    pub communicator: Vec<u32>,
}

impl Instances {
    pub(super) fn new(
        parts: &ProgramParts,
        place: &dyn Fn(Rank, u32) -> String,
    ) -> Result<Instances, TraceError> {
        let mut index = KeyMap::default();
        for communicator in &parts.communicators {
            index.number(communicator.id);
        }
        let counts = collective_counts(parts, &index, place)?;
        let mut firsts = Vec::with_capacity(counts.len());
        let mut communicator = Vec::new();
        for (number, count) in counts.iter().enumerate() {
            firsts.push(communicator.len() as u32);
            communicator.extend(std::iter::repeat_n(number as u32, *count as usize));
        }
        Ok(Instances {
            index,
            firsts,
            communicator,
        })
    }

    /// Number of the first execution on a communicator.
    pub(super) fn first(&self, id: i32) -> u32 {
        self.index
            .get(&id)
            .map_or(0, |number| self.firsts[number as usize])
    }
}

/// Number of collectives that each communicator's members call; all must agree.
fn collective_counts(
    parts: &ProgramParts,
    index: &KeyMap<i32>,
    place: &dyn Fn(Rank, u32) -> String,
) -> Result<Vec<u32>, TraceError> {
    let mut counts = vec![0; parts.communicators.len()];
    let members: Vec<Vec<Rank>> = parts.communicators.iter().map(sorted_members).collect();
    for (rank, builder) in numbered(&parts.ranks) {
        for (id, count) in builder.collective_counts() {
            let (found, expected) = match index.get(&id).map(|number| number as usize) {
                Some(number) if members[number].binary_search(&rank).is_ok() => {
                    counts[number] = counts[number].max(count);
                    continue;
                }
                Some(_) => (
                    format!("a collective of rank {rank} on communicator {id}"),
                    "a communicator of which the rank is a member",
                ),
                None => (
                    format!("a collective on communicator {id}"),
                    "a defined communicator",
                ),
            };
            return Err(TraceError::At {
                place: place(rank, nth_collective(builder, id, 0)),
                found,
                expected: expected.into(),
            });
        }
    }
    for (number, communicator) in parts.communicators.iter().enumerate() {
        check_members(parts, communicator, counts[number], place)?;
    }
    Ok(counts)
}

fn sorted_members(communicator: &Communicator) -> Vec<Rank> {
    let mut members = communicator.members.clone();
    members.sort_unstable();
    members
}

fn check_members(
    parts: &ProgramParts,
    communicator: &Communicator,
    count: u32,
    place: &dyn Fn(Rank, u32) -> String,
) -> Result<(), TraceError> {
    let called = |rank: &Rank| {
        let found = parts.ranks[rank.index()].collectives_on(communicator.id);
        found.map_or(0, |(_, count)| count)
    };
    let Some(short) = communicator
        .members
        .iter()
        .find(|rank| called(rank) < count)
    else {
        return Ok(());
    };
    let have = called(short);
    let long = communicator.members.iter().find(|rank| called(rank) > have);
    let long = *long.expect("some member calls it `count` times");
    let record = nth_collective(&parts.ranks[long.index()], communicator.id, have);
    Err(TraceError::At {
        place: place(long, record),
        found: format!(
            "collective number {} on communicator {}, by rank {long}",
            have + 1,
            communicator.id
        ),
        expected: format!("the same call by rank {short}, which makes only {have}"),
    })
}

/// Record of the n-th collective (from 0) of a rank on a communicator.
fn nth_collective(builder: &RankBuilder, id: i32, n: u32) -> u32 {
    let found = opcodes::iterate(&builder.words).find(|(_, op)| match op {
        Op::Collective { call, instance } => {
            builder.beyond_messages().calls.key(*call).communicator == id && *instance == n
        }
        _ => false,
    });
    found.map_or(0, |(record, _)| record)
}

pub(super) fn number_calls(
    rank: &RankBuilder,
    index: &KeyMap<i32>,
    calls: &mut KeyMap<CollectiveCall>,
) -> Box<[(u32, u32)]> {
    rank.beyond_messages()
        .calls
        .keys()
        .map(|call| {
            let communicator = index
                .get(&call.communicator)
                .expect("counted communicators are defined");
            let (counter, _) = rank
                .collectives_on(call.communicator)
                .expect("a call is counted");
            (calls.number(call.over(communicator)), counter)
        })
        .collect()
}

/// Checks that all members of a communicator call the same operation at the same turn.
pub(super) fn check_collectives(program: &Program) -> Result<(), TraceError> {
    let mut seen: Vec<Option<(u32, Rank)>> = vec![None; program.instances.len()];
    if program
        .calls
        .iter()
        .all(|call| call.op == program.calls[0].op)
    {
        return Ok(());
    }
    for rank in Rank::all(program.ranks()) {
        for (record, op) in program.ops(rank) {
            let Op::Collective { call, instance } = op else {
                continue;
            };
            let own = program.calls[call as usize].op;
            match seen[instance as usize] {
                None => seen[instance as usize] = Some((call, rank)),
                Some((first, other)) if program.calls[first as usize].op != own => {
                    let expected = program.calls[first as usize].op.name();
                    return Err(TraceError::At {
                        place: program.place(rank, record),
                        found: format!("{} by rank {rank}", own.name()),
                        expected: format!("{expected}, the call of rank {other} at this position"),
                    });
                }
                Some(_) => {}
            }
        }
    }
    Ok(())
}

/// Number of executions of operations with a root in which several ranks call themselves the root, or name different ones.
pub(super) fn executions_of_several_roots(program: &Program) -> u64 {
    if !program.calls.iter().any(|call| has_root(call.op)) {
        return 0;
    }
    // Indexed by execution: rank that calls itself the root, root that was named, and `true` if another was found.
    let mut roots: Vec<(Option<Rank>, Option<Rank>, bool)> =
        vec![(None, None, false); program.instances.len()];
    program.collective_ops().for_each(|(rank, call, instance)| {
        let call = &program.calls[call as usize];
        let (own, named, differ) = &mut roots[instance as usize];
        for (known, found) in [(own, call.is_root.then_some(rank)), (named, call.root)] {
            *differ |= has_root(call.op) && found.is_some() && known.is_some() && *known != found;
            *known = known.or(found);
        }
    });
    roots.iter().filter(|(_, _, differ)| *differ).count() as u64
}

fn has_root(op: flowcast_units::CollectiveOp) -> bool {
    use flowcast_units::CollectiveOp::{Bcast, Gather, Gatherv, Reduce, Scatter, Scatterv};
    matches!(op, Bcast | Gather | Gatherv | Reduce | Scatter | Scatterv)
}
