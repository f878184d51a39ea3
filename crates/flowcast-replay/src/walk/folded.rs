//! A program with loops on one network: each part is walked separately, starting where the part before it has ended. Loops
//! are walked until they repeat a pattern.

use std::collections::HashMap;

use super::{
    Walk,
    grid::LaneGrid,
    jump::{Boundary, JumpStop, Walked, repeat},
    lanes::LaneCosts,
    later,
    rank_state::RankState,
    replay::Replay,
};
use crate::{
    SimulateError,
    observer::Unobserved,
    outcome::{Outcome, RankOutcome},
    transit::Undisturbed,
};
use flowcast_program::{
    folded::{FoldedPart as Part, map_all, pieces},
    program::{CollectiveMode, Program},
};
use flowcast_units::{Bytes, Rank, Time};

/// Initial room for times, as a multiple of the longest part. Sums of times are exact up to the room.
const ROOM: f64 = 16.0;

/// Factor by which the room grows in the next attempt.
const MORE_ROOM: f64 = 256.0;

/// Largest room: above it, a tick would be longer than a nanosecond.
const MOST_ROOM: Time = Time::from_nanos((1u64 << 52) as f64);

/// A program with loops on a network, ready to run.
pub struct FoldedReplay<'a> {
    replays: Vec<Replay<'a>>,
    /// Order of the replays, as indices into `replays`.
    parts: Vec<Part<usize>>,
}

/// Result of the replay of a program with loops.
#[derive(Debug, Clone, PartialEq)]
pub struct FoldedOutcome {
    /// The times of the ranks.
    pub outcome: Outcome,
    /// Iterations of the outermost loops.
    pub iterations: u64,
    /// Number of iterations that were walked, including those walked again for a check; all others were extrapolated.
    pub walked: u64,
    /// Tick: each cost was rounded to a multiple of it.
    pub tick: Time,
}

impl<'a> FoldedReplay<'a> {
    /// Creates the replay from the replays of the parts. Returns `None` if the times of an iteration are not maxima of sums,
    /// or if more than times lasts beyond an iteration. Reasons are one-sided communication and files, ranks that answer
    /// each other in calls only, collectives whose cost depends on the last rank to arrive, and progress streams.
    pub fn new(parts: Vec<Part<Replay<'a>>>) -> Option<FoldedReplay<'a>> {
        let mut replays = Vec::new();
        let parts = map_all(parts, &mut |replay| {
            if !is_maxima_of_sums(&replay) {
                return Err(());
            }
            replays.push(replay);
            Ok(replays.len() - 1)
        });
        Some(FoldedReplay {
            parts: parts.ok()?,
            replays,
        })
    }

    /// Runs to the end; `None` if the times of the ranks differ too much to be exact.
    ///
    /// # Errors
    /// [`SimulateError::Deadlock`] if ranks wait for each other.
    pub fn run(&self) -> Result<Option<FoldedOutcome>, SimulateError> {
        let mut longest = Time::from_nanos(1.0);
        for replay in &self.replays {
            longest = later(longest, replay.observed(&mut Unobserved)?.makespan());
        }
        let mut room = longest * ROOM;
        while let Some(grid) = LaneGrid::reaching(room).filter(|_| room <= MOST_ROOM) {
            match self.run_on(grid) {
                Ok(outcome) => return Ok(Some(outcome)),
                Err(JumpStop::Unreachable) => room = room * MORE_ROOM,
                Err(JumpStop::Failed(error)) => return Err(error),
            }
        }
        Ok(None)
    }

    fn run_on(&self, grid: LaneGrid) -> Result<FoldedOutcome, JumpStop<SimulateError>> {
        let parts: Vec<_> = self.replays.iter().map(|replay| &replay.costs).collect();
        let costs: Vec<_> = parts
            .iter()
            .map(|costs| LaneCosts::of_part(&[costs], &parts).on(grid))
            .collect();
        let walks: Vec<_> = self
            .replays
            .iter()
            .zip(&costs)
            .map(|(replay, costs)| replay.walk(costs))
            .collect();
        let streams = self.replays[0].program.streams();
        let has_interfaces = costs.iter().any(|costs| costs.interfaces.are_busy);
        let mut now = Boundary::new(if has_interfaces { 2 * streams } else { streams });
        let mut passes = Passes {
            walks: &walks,
            grid,
            streams,
            spent: vec![Vec::new(); walks.len()],
            states: Vec::new(),
        };
        let mut whole = FoldedOutcome {
            outcome: Outcome::default(),
            iterations: 0,
            walked: 0,
            tick: grid.time(1),
        };
        for part in &self.parts {
            let Walked { walked, jumped } = passes.part(part, &mut now)?;
            if let Part::Loop(count, _) = part {
                whole.iterations = whole.iterations.saturating_add(*count);
                whole.walked += walked;
                debug_assert!(walked + jumped >= *count);
            }
        }
        whole.outcome = self.outcome(&passes, &now);
        Ok(whole)
    }

    fn outcome(&self, passes: &Passes<'_>, now: &Boundary) -> Outcome {
        let pieces = pieces(&self.parts).expect("the iterations were counted");
        let spent = |rank: usize, of: usize| -> Time {
            let ticks = pieces.iter().map(|(piece, times)| {
                i128::from(passes.spent[**piece][rank][of]) * i128::from(*times)
            });
            passes.grid.time(ticks.sum())
        };
        let sum = |of: fn(&Program) -> u64| {
            let terms = pieces
                .iter()
                .map(|(piece, times)| of(self.replays[**piece].program).saturating_mul(*times));
            terms.fold(0, u64::saturating_add)
        };
        Outcome {
            ranks: (0..passes.streams)
                .map(|rank| {
                    RankOutcome::new(
                        passes.grid.time(now.time(rank)),
                        spent(rank, 0),
                        spent(rank, 1),
                    )
                })
                .collect(),
            messages: sum(|program| u64::from(program.messages())),
            bytes: Bytes(sum(|program| program.bytes().0)),
            ..Outcome::default()
        }
    }
}

/// Successive walks of a program's parts.
struct Passes<'a> {
    walks: &'a [Walk<'a, 1>],
    grid: LaneGrid,
    streams: usize,
    /// Computation and overhead of one pass, in ticks, indexed by part, then by rank.
    spent: Vec<Vec<[i64; 2]>>,
    /// Always empty: keeps the memory of the last pass's states for reuse.
    states: Vec<RankState<'static, 1>>,
}

impl Passes<'_> {
    fn part(
        &mut self,
        part: &Part<usize>,
        now: &mut Boundary,
    ) -> Result<Walked, JumpStop<SimulateError>> {
        match part {
            Part::Once(index) => self.pass(*index, now).map(|()| Walked::default()),
            Part::Loop(count, body) => repeat(*count, now, |now| {
                body.iter()
                    .try_for_each(|part| self.part(part, now).map(drop))
            }),
        }
    }

    /// Walks a part from one boundary to the next.
    fn pass(&mut self, index: usize, now: &mut Boundary) -> Result<(), JumpStop<SimulateError>> {
        let walk = &self.walks[index];
        let (grid, streams) = (self.grid, self.streams);
        let mut states: Vec<RankState<'_, 1>> = emptied(std::mem::take(&mut self.states));
        states.extend((0..streams).map(|rank| {
            let time = grid.time(now.above[rank].into());
            let free = now
                .above
                .get(streams + rank)
                .map_or(time, |free| grid.time((*free).into()));
            RankState::new(walk.program, Rank(rank as u32)).from(time, free)
        }));
        let (mut observer, mut transit) = (Unobserved, Undisturbed);
        let ended = walk
            .run_from(states, &mut observer, &mut transit)
            .map_err(JumpStop::Failed)?;
        let ticks = |time: Time| grid.ticks(time).ok_or(JumpStop::Unreachable);
        for (rank, state) in ended.iter().enumerate() {
            now.above[rank] = ticks(state.time[0])?;
            if let Some(free) = now.above.get_mut(streams + rank) {
                // Until the rank continues, it does not use its interface.
                *free = ticks(later(state.interface_free[0], state.time[0]))?;
            }
        }
        now.settle();
        if self.spent[index].is_empty() {
            let spent =
                |state: &RankState<'_, 1>| Ok([ticks(state.compute[0])?, ticks(state.overhead)?]);
            self.spent[index] = ended.iter().map(spent).collect::<Result<_, _>>()?;
        }
        self.states = emptied(ended);
        Ok(())
    }
}

/// Empties a vector of states, so that its memory serves other states.
fn emptied<'a>(mut states: Vec<RankState<'_, 1>>) -> Vec<RankState<'a, 1>> {
    states.clear();
    states
        .into_iter()
        .map(|_| unreachable!("the vector is empty"))
        .collect()
}

/// `true` if the history of each rank is a maximum of sums, and nothing but the times of the ranks lasts beyond the end.
fn is_maxima_of_sums(replay: &Replay<'_>) -> bool {
    let program = replay.program;
    let is_plain = program.accesses().is_empty() && program.progress_streams().is_empty();
    is_plain
        && !replay.costs.needs_polling()
        && (program.calls().is_empty() || collectives_cost_the_same(replay))
}

/// `true` if the cost of each collective does not depend on the rank that determines its end.
fn collectives_cost_the_same(replay: &Replay<'_>) -> bool {
    let (program, costs) = (replay.program, &replay.costs);
    let mut known: HashMap<(u32, usize), Time> = HashMap::new();
    let mut executions = vec![LoopExecution::default(); program.instances().len()];
    for (rank, call, instance) in program.collective_ops() {
        let made = program.call(call);
        let cost = known
            .entry((call, costs.group_index(rank)))
            .or_insert_with(|| {
                costs.collective(made.op, made.communicator, rank, made.send, made.recv)
            });
        executions[instance as usize].add(*cost, made.mode, made.is_root);
    }
    executions.iter().all(LoopExecution::is_decided)
}

/// Cost of an execution of a collective, separately for roots and for other ranks.
#[derive(Debug, Clone, Copy, Default)]
struct LoopExecution {
    roots: Agreed,
    others: Agreed,
    mode: Option<CollectiveMode>,
    modes_differ: bool,
}

#[derive(Debug, Clone, Copy, Default)]
struct Agreed {
    cost: Option<Time>,
    is_not: bool,
}

impl LoopExecution {
    fn add(&mut self, cost: Time, mode: CollectiveMode, is_root: bool) {
        let side = if is_root {
            &mut self.roots
        } else {
            &mut self.others
        };
        side.is_not |= side.cost.is_some_and(|known| known != cost);
        side.cost = Some(cost);
        self.modes_differ |= self.mode.is_some_and(|known| known != mode);
        self.mode = Some(mode);
    }

    /// `true` if the cost does not depend on the deciding rank. If there is a root, its call decides.
    fn is_decided(&self) -> bool {
        let decides = if self.roots.cost.is_some() {
            self.roots
        } else {
            self.others
        };
        !self.modes_differ
            && (!decides.is_not || self.mode == Some(CollectiveMode::RootSynchronous))
    }
}
