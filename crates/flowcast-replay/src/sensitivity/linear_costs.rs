//! The costs of a program as linear functions of a parameter.

use std::collections::HashMap;

use super::family::Obstacle;
use crate::costs::{ClassCost, Costs, PathCosts};
use flowcast_trace::opcodes::Op;
use flowcast_trace::program::{CollectiveCall, CollectiveMode, Program};
use flowcast_units::Rank;

/// How the costs change for each unit of the parameter.
#[derive(Debug, Clone)]
pub(super) struct CostSlopes {
    /// By kind of way.
    pub paths: Vec<PathSlopes>,
    /// By rank: of the time that a nanosecond of the trace's computation takes.
    pub inverse_speeds: Vec<f64>,
    /// By execution of a collective.
    pub collectives: Vec<f64>,
}

/// As [`PathCosts`].
#[derive(Debug, Clone)]
pub(super) struct PathSlopes {
    pub send_overhead: f64,
    pub recv_before: f64,
    pub recv_after: f64,
    pub classes: Vec<ClassSlopes>,
}

/// As [`ClassCost`].
#[derive(Debug, Clone, Copy)]
pub(super) struct ClassSlopes {
    pub delay: f64,
    pub busy: f64,
    pub held: f64,
}

/// The costs at several values of a parameter, the ends of its range first and last.
pub(super) struct Samples<'a> {
    pub values: &'a [f64],
    pub costs: &'a [Costs],
}

impl CostSlopes {
    /// Of costs that turn out to be linear.
    pub(super) fn of(program: &Program, samples: &Samples<'_>) -> Result<CostSlopes, Obstacle> {
        let Samples { costs, .. } = *samples;
        let inverse_speed = |rank: usize| samples.slope(|costs| 1.0 / costs.speeds[rank]);
        let inverse_speeds: Vec<f64> = (0..program.streams()).map(inverse_speed).collect::<Result<_, _>>()?;
        let accelerator = |rank: usize| samples.slope(|costs| 1.0 / costs.accelerator_speeds[rank]);
        let accelerators: Vec<f64> = (0..program.streams()).map(accelerator).collect::<Result<_, _>>()?;
        let is_constant = inverse_speeds.iter().chain(&accelerators).all(|slope| *slope == 0.0);
        let uses = Uses::of(program);
        if uses.accelerators && !is_constant {
            return Err(Obstacle::Accelerators);
        }
        Ok(CostSlopes {
            paths: (0..costs[0].paths.len()).map(|way| samples.path(way)).collect::<Result<_, _>>()?,
            inverse_speeds,
            collectives: uses.collective_slopes(program, samples)?,
        })
    }
}

impl Samples<'_> {
    /// How a cost changes for each unit of the parameter, if it is a linear function of it.
    fn slope(&self, cost: impl Fn(&Costs) -> f64) -> Result<f64, Obstacle> {
        let at = |index: usize| cost(&self.costs[index]);
        let last = self.values.len() - 1;
        let (first, end) = (at(0), at(last));
        if last == 0 || first == end && (1..last).all(|index| at(index) == first) {
            return Ok(0.0);
        }
        let slope = (end - first) / (self.values[last] - self.values[0]);
        let rounding = 1e-9 + 1e-13 * (first.abs() + end.abs());
        let is_on_line = |index: usize| {
            let line = first + slope * (self.values[index] - self.values[0]);
            (at(index) - line).abs() <= rounding
        };
        if slope.is_finite() && (1..last).all(is_on_line) { Ok(slope) } else { Err(Obstacle::NotLinear) }
    }

    fn path(&self, way: usize) -> Result<PathSlopes, Obstacle> {
        let of = |cost: fn(&PathCosts) -> f64| self.slope(|costs| cost(&costs.paths[way]));
        let class = |class: usize| {
            let of = |cost: fn(&ClassCost) -> f64| self.slope(|costs| cost(&costs.paths[way].classes[class]));
            Ok(ClassSlopes { delay: of(|cost| cost.delay)?, busy: of(|cost| cost.busy)?, held: of(|cost| cost.held)? })
        };
        Ok(PathSlopes {
            send_overhead: of(|path| path.send_overhead)?,
            recv_before: of(|path| path.recv_before)?,
            recv_after: of(|path| path.recv_after)?,
            classes: (0..self.costs[0].paths[way].classes.len()).map(class).collect::<Result<_, _>>()?,
        })
    }

    /// As [`Costs::collective`].
    fn collective(&self, call: &CollectiveCall, rank: Rank) -> Result<f64, Obstacle> {
        self.slope(|costs| costs.collective(call.op, call.communicator, rank, (call.send, call.recv)))
    }
}

/// What of the rarer instructions a program has.
#[derive(Default)]
struct Uses {
    accelerators: bool,
    /// By execution of a collective: the calls that may decide how long it takes, each with the rank that makes it.
    deciding: Vec<Vec<(u32, Rank)>>,
}

impl Uses {
    fn of(program: &Program) -> Uses {
        let mut uses = Uses { deciding: vec![Vec::new(); program.instances().len()], ..Uses::default() };
        for rank in (0..program.streams() as u32).map(Rank) {
            for (_, op) in program.ops(rank) {
                match op {
                    Op::Accelerator(_) => uses.accelerators = true,
                    Op::Collective { call, instance } => uses.decides(program, (call, rank), instance),
                    _ => {}
                }
            }
        }
        uses
    }

    /// Where there are roots, one of these decides, else any rank that may come last.
    fn decides(&mut self, program: &Program, (call, rank): (u32, Rank), instance: u32) {
        let calls = program.calls();
        let known = &mut self.deciding[instance as usize];
        let has_root = known.first().is_some_and(|(first, _)| calls[*first as usize].is_root);
        let is_root = calls[call as usize].is_root;
        if is_root && !has_root {
            known.clear();
        }
        if is_root == has_root || is_root {
            known.push((call, rank));
        }
        known.dedup_by_key(|(call, _)| *call);
    }

    fn collective_slopes(&self, program: &Program, samples: &Samples<'_>) -> Result<Vec<f64>, Obstacle> {
        for call in program.calls() {
            match call.mode {
                CollectiveMode::Blocking => {}
                CollectiveMode::RootSynchronous => return Err(Obstacle::RootSynchronous),
                CollectiveMode::NonBlocking => check_startup(program, call, samples)?,
            }
        }
        let mut known: HashMap<(u32, usize), (f64, f64)> = HashMap::new();
        let mut of_call = |call: u32, rank: Rank| -> Result<(f64, f64), Obstacle> {
            let key = (call, samples.costs[0].group_index(rank));
            if let Some(found) = known.get(&key) {
                return Ok(*found);
            }
            let made = &program.calls()[call as usize];
            let first = samples.costs[0].collective(made.op, made.communicator, rank, (made.send, made.recv));
            let found = (first, samples.collective(made, rank)?);
            known.insert(key, found);
            Ok(found)
        };
        let slope = |deciding: &Vec<(u32, Rank)>| {
            let Some((first, rest)) = deciding.split_first() else { return Ok(0.0) };
            let line = of_call(first.0, first.1)?;
            for (call, rank) in rest {
                if of_call(*call, *rank)? != line {
                    return Err(Obstacle::Sizes);
                }
            }
            Ok(line.1)
        };
        self.deciding.iter().map(slope).collect()
    }
}

/// The start-up of a collective that does not block is cut to whole nanoseconds.
fn check_startup(program: &Program, call: &CollectiveCall, samples: &Samples<'_>) -> Result<(), Obstacle> {
    let members = &program.communicators()[call.communicator as usize].members;
    let startup = |costs: &Costs, rank: Rank| costs.collective_startup(call.communicator, rank);
    let is_constant = |rank: &Rank| {
        let first = startup(&samples.costs[0], *rank);
        samples.costs.iter().all(|costs| startup(costs, *rank) == first)
    };
    if members.iter().all(is_constant) { Ok(()) } else { Err(Obstacle::Startup) }
}
