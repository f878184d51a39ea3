//! The costs of a program as linear functions of a parameter.

use std::collections::{HashMap, HashSet, hash_map::Entry};

use super::obstacle::Obstacle;
use flowcast_program::{
    opcodes::Op,
    program::{CollectiveMode, Program},
};
use flowcast_replay::{
    costs::{ClassCost, Costs, PathCosts},
    placement::Placement,
};
use flowcast_units::{Rank, Time};

/// How the costs change for each unit of the parameter.
#[derive(Debug, Default)]
pub(super) struct CostSlopes {
    /// By kind of route.
    pub paths: Vec<PathSlopes>,
    /// By rank: of the time that a nanosecond of the trace's computation takes.
    pub inverse_speeds: Vec<f64>,
    /// By execution of a collective: of its time once all have come.
    pub collectives: Vec<f64>,
    /// By execution of a collective and rank, where each rank sends to the root and goes on: of the way to the root.
    pub to_roots: HashMap<(u32, Rank), f64>,
    /// By communicator and group of a rank's node: of the start-up of collectives that do not block.
    startups: HashMap<(u32, usize), f64>,
    /// The executions that start after a start-up that changes, cut to whole nanoseconds.
    pub truncated: HashSet<u32>,
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
    pub placement: &'a Placement,
}

/// What an execution of a collective takes at the first value of the parameter, and its slope.
type LinearCostsLine = Result<(Time, f64), Obstacle>;

impl CostSlopes {
    /// Of costs that turn out to be linear.
    pub(super) fn new(program: &Program, samples: &Samples<'_>) -> Result<CostSlopes, Obstacle> {
        let routes = 0..samples.costs[0].paths.len();
        let mut slopes = CostSlopes {
            paths: routes
                .map(|route| samples.path(route))
                .collect::<Result<_, _>>()?,
            ..CostSlopes::default()
        };
        let mut collectives = LinearCostsCollectives::default();
        for rank in Rank::all(program.streams()) {
            let speed = samples.line(|costs| 1.0 / costs.speeds[rank])?;
            let accelerator = samples.line(|costs| 1.0 / costs.accelerator_speeds[rank])?;
            slopes.inverse_speeds.push(speed);
            for (_, op) in program.ops(rank) {
                match op {
                    Op::Accelerator(_) if speed != 0.0 || accelerator != 0.0 => {
                        return Err(Obstacle::Accelerators);
                    }
                    Op::Collective { call, instance } => {
                        slopes.starts(program, samples, rank, call, instance)?;
                        collectives.add(program, samples, rank, call, instance);
                    }
                    _ => {}
                }
            }
        }
        slopes.collectives = (0..program.instances().len() as u32)
            .map(|instance| match collectives.deciding.get(&instance) {
                Some((_, line)) => line.map(|(_, slope)| slope),
                None => Ok(0.0),
            })
            .collect::<Result<_, _>>()?;
        Ok(slopes)
    }

    /// The start-up of a rank's call of a collective, and the way of its data to a root.
    fn starts(
        &mut self,
        program: &Program,
        samples: &Samples<'_>,
        rank: Rank,
        call: u32,
        instance: u32,
    ) -> Result<(), Obstacle> {
        let made = program.call(call);
        if made.mode == CollectiveMode::Blocking {
            return Ok(());
        }
        let communicator = program.communicator_of(instance);
        let key = (communicator, samples.costs[0].group_index(rank));
        let startup = match self.startups.entry(key) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(unknown) => *unknown
                .insert(samples.slope(|costs| costs.collective_startup(communicator, rank))?),
        };
        if startup != 0.0 {
            self.truncated.insert(instance);
        }
        if made.mode == CollectiveMode::RootSynchronous && !made.is_root {
            let to_root = samples.slope(|costs| {
                let (_, (bytes, flight)) = costs.to_root(samples.placement, rank, made);
                bytes + flight
            })?;
            self.to_roots.insert((instance, rank), to_root);
        }
        Ok(())
    }

    /// Of the start-up of a collective that does not block, for ranks of a group.
    pub(super) fn startup(&self, communicator: u32, group: usize) -> f64 {
        self.startups
            .get(&(communicator, group))
            .copied()
            .unwrap_or(0.0)
    }
}

/// What the executions of collectives take once all have come.
#[derive(Default)]
struct LinearCostsCollectives {
    /// By call, and group of the node of the rank that makes it.
    lines: HashMap<(u32, usize), LinearCostsLine>,
    /// By execution: whether a root decides, else any rank that may come last, and what it takes by that.
    deciding: HashMap<u32, (bool, LinearCostsLine)>,
}

impl LinearCostsCollectives {
    fn add(
        &mut self,
        program: &Program,
        samples: &Samples<'_>,
        rank: Rank,
        call: u32,
        instance: u32,
    ) {
        let made = program.call(call);
        if made.mode == CollectiveMode::RootSynchronous {
            return;
        }
        let takes = |costs: &Costs| {
            costs.collective(made.op, made.communicator, rank, made.send, made.recv)
        };
        let first = &samples.costs[0];
        let line = *self
            .lines
            .entry((call, first.group_index(rank)))
            .or_insert_with(|| Ok((takes(first), samples.slope(takes)?)));
        let (is_root, known) = self
            .deciding
            .entry(instance)
            .or_insert((made.is_root, line));
        if made.is_root && !*is_root {
            (*is_root, *known) = (true, line);
        } else if made.is_root == *is_root && *known != line {
            *known = Err(Obstacle::Sizes);
        }
    }
}

impl Samples<'_> {
    /// How many nanoseconds a cost changes by for each unit of the parameter, if it is a linear function of it.
    fn slope(&self, cost: impl Fn(&Costs) -> Time) -> Result<f64, Obstacle> {
        self.line(|costs| cost(costs).as_nanos())
    }

    /// As [`Samples::slope`], of a number.
    fn line(&self, cost: impl Fn(&Costs) -> f64) -> Result<f64, Obstacle> {
        let at = |index: usize| cost(&self.costs[index]);
        let last = self.values.len() - 1;
        let (first, end) = (at(0), at(last));
        if last == 0 || first == end && (1..last).all(|index| at(index) == first) {
            return Ok(0.0);
        }
        let slope = (end - first) / (self.values[last] - self.values[0]);
        let rounding = 1e-9 + 1e-13 * (first.abs() + end.abs());
        if slope.is_finite()
            && (1..last).all(|index: usize| {
                let line = first + slope * (self.values[index] - self.values[0]);
                (at(index) - line).abs() <= rounding
            })
        {
            Ok(slope)
        } else {
            Err(Obstacle::NotLinear)
        }
    }

    fn path(&self, route: usize) -> Result<PathSlopes, Obstacle> {
        let of = |cost: fn(&PathCosts) -> Time| self.slope(|costs| cost(&costs.paths[route]));
        Ok(PathSlopes {
            send_overhead: of(|path| path.send_overhead)?,
            recv_before: of(|path| path.recv_before)?,
            recv_after: of(|path| path.recv_after)?,
            classes: (0..self.costs[0].paths[route].classes.len())
                .map(|class: usize| {
                    let of = |cost: fn(&ClassCost) -> Time| {
                        self.slope(|costs| cost(&costs.paths[route].classes[class]))
                    };
                    Ok(ClassSlopes {
                        delay: of(|cost| cost.delay)?,
                        busy: of(|cost| cost.busy)?,
                        held: of(|cost| cost.held)?,
                    })
                })
                .collect::<Result<_, _>>()?,
        })
    }
}
