//! The costs of a program as linear functions of a parameter.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::obstacle::Obstacle;
use crate::costs::{ClassCost, Costs, PathCosts};
use crate::placement::Placement;
use crate::routes::route;
use flowcast_trace::opcodes::Op;
use flowcast_trace::program::{CollectiveCall, CollectiveMode, Program};
use flowcast_units::{Rank, Time};

/// How the costs change for each unit of the parameter.
#[derive(Debug, Clone)]
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
    /// How many executions start after a start-up that changes, cut to whole nanoseconds.
    pub truncated: u64,
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

impl CostSlopes {
    /// Of costs that turn out to be linear.
    pub(super) fn of(program: &Program, samples: &Samples<'_>) -> Result<CostSlopes, Obstacle> {
        let Samples { costs, .. } = *samples;
        let inverse_speed = |rank: usize| samples.line(|costs| 1.0 / costs.speeds[rank]);
        let inverse_speeds: Vec<f64> = (0..program.streams())
            .map(inverse_speed)
            .collect::<Result<_, _>>()?;
        let accelerator = |rank: usize| samples.line(|costs| 1.0 / costs.accelerator_speeds[rank]);
        let accelerators: Vec<f64> = (0..program.streams())
            .map(accelerator)
            .collect::<Result<_, _>>()?;
        let is_constant = inverse_speeds
            .iter()
            .chain(&accelerators)
            .all(|slope| *slope == 0.0);
        let uses = Uses::of(program);
        if uses.accelerators && !is_constant {
            return Err(Obstacle::Accelerators);
        }
        let startups = uses.startups(program, samples)?;
        let changes = |(instance, rank): &(u32, Rank)| {
            let key = (
                program.instances()[*instance as usize],
                costs[0].group_index(*rank),
            );
            startups.get(&key).is_some_and(|slope| *slope != 0.0)
        };
        let mut truncated: Vec<u32> = uses
            .starting
            .iter()
            .filter(|start| changes(start))
            .map(|start| start.0)
            .collect();
        truncated.sort_unstable();
        truncated.dedup();
        Ok(CostSlopes {
            paths: (0..costs[0].paths.len())
                .map(|route| samples.path(route))
                .collect::<Result<_, _>>()?,
            inverse_speeds,
            collectives: uses.collectives(program, samples)?,
            to_roots: uses.to_roots(program, samples)?,
            startups,
            truncated: truncated.len() as u64,
        })
    }

    /// Of the start-up of a collective that does not block, for ranks of a group.
    pub(super) fn startup(&self, communicator: u32, group: usize) -> f64 {
        self.startups
            .get(&(communicator, group))
            .copied()
            .unwrap_or(0.0)
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
        let is_on_line = |index: usize| {
            let line = first + slope * (self.values[index] - self.values[0]);
            (at(index) - line).abs() <= rounding
        };
        if slope.is_finite() && (1..last).all(is_on_line) {
            Ok(slope)
        } else {
            Err(Obstacle::NotLinear)
        }
    }

    fn path(&self, route: usize) -> Result<PathSlopes, Obstacle> {
        let of = |cost: fn(&PathCosts) -> Time| self.slope(|costs| cost(&costs.paths[route]));
        let class = |class: usize| {
            let of = |cost: fn(&ClassCost) -> Time| {
                self.slope(|costs| cost(&costs.paths[route].classes[class]))
            };
            Ok(ClassSlopes {
                delay: of(|cost| cost.delay)?,
                busy: of(|cost| cost.busy)?,
                held: of(|cost| cost.held)?,
            })
        };
        Ok(PathSlopes {
            send_overhead: of(|path| path.send_overhead)?,
            recv_before: of(|path| path.recv_before)?,
            recv_after: of(|path| path.recv_after)?,
            classes: (0..self.costs[0].paths[route].classes.len())
                .map(class)
                .collect::<Result<_, _>>()?,
        })
    }

    /// As [`Costs::collective`].
    fn collective(&self, call: &CollectiveCall, rank: Rank) -> Result<f64, Obstacle> {
        self.slope(|costs| {
            costs.collective(call.op, call.communicator, rank, (call.send, call.recv))
        })
    }
}

/// What of the rarer instructions a program has.
#[derive(Default)]
struct Uses {
    accelerators: bool,
    /// By execution of a collective: the calls that may decide how long it takes, each with the rank that makes it.
    deciding: Vec<Vec<(u32, Rank)>>,
    /// Executions and ranks that have a start-up there.
    starting: Vec<(u32, Rank)>,
    /// Executions in which ranks send to the root and go on, the call and the rank.
    sending: Vec<(u32, u32, Rank)>,
}

impl Uses {
    fn of(program: &Program) -> Uses {
        let mut uses = Uses {
            deciding: vec![Vec::new(); program.instances().len()],
            ..Uses::default()
        };
        for rank in (0..program.streams() as u32).map(Rank) {
            for (_, op) in program.ops(rank) {
                match op {
                    Op::Accelerator(_) => uses.accelerators = true,
                    Op::Collective { call, instance } => {
                        uses.collective(program, (call, rank), instance)
                    }
                    _ => {}
                }
            }
        }
        uses
    }

    fn collective(&mut self, program: &Program, (call, rank): (u32, Rank), instance: u32) {
        let made = &program.calls()[call as usize];
        if made.mode != CollectiveMode::Blocking {
            self.starting.push((instance, rank));
        }
        if made.mode != CollectiveMode::RootSynchronous {
            self.decides(program, (call, rank), instance);
        } else if !made.is_root {
            self.sending.push((instance, call, rank));
        }
    }

    /// Where there are roots, one of these decides, else any rank that may come last.
    fn decides(&mut self, program: &Program, (call, rank): (u32, Rank), instance: u32) {
        let calls = program.calls();
        let known = &mut self.deciding[instance as usize];
        let has_root = known
            .first()
            .is_some_and(|(first, _)| calls[*first as usize].is_root);
        let is_root = calls[call as usize].is_root;
        if is_root && !has_root {
            known.clear();
        }
        if is_root == has_root || is_root {
            known.push((call, rank));
        }
        known.dedup_by_key(|(call, _)| *call);
    }

    fn collectives(&self, program: &Program, samples: &Samples<'_>) -> Result<Vec<f64>, Obstacle> {
        let mut known: HashMap<(u32, usize), (Time, f64)> = HashMap::new();
        let mut of_call = |call: u32, rank: Rank| -> Result<(Time, f64), Obstacle> {
            let key = (call, samples.costs[0].group_index(rank));
            if let Some(found) = known.get(&key) {
                return Ok(*found);
            }
            let made = &program.calls()[call as usize];
            let first = samples.costs[0].collective(
                made.op,
                made.communicator,
                rank,
                (made.send, made.recv),
            );
            let found = (first, samples.collective(made, rank)?);
            known.insert(key, found);
            Ok(found)
        };
        let slope = |deciding: &Vec<(u32, Rank)>| {
            let Some((first, rest)) = deciding.split_first() else {
                return Ok(0.0);
            };
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

    fn to_roots(
        &self,
        program: &Program,
        samples: &Samples<'_>,
    ) -> Result<HashMap<(u32, Rank), f64>, Obstacle> {
        let slope = |(instance, call, rank): &(u32, u32, Rank)| {
            let made = &program.calls()[*call as usize];
            let nodes =
                [*rank, made.root.unwrap_or(*rank)].map(|rank| samples.placement.node(rank));
            let slope = samples.slope(|costs| {
                let route = route(
                    costs.network(),
                    samples.placement,
                    (nodes[0], nodes[1]),
                    (0, made.send),
                );
                let (bytes, flight) = costs.to_root(route, *rank, made.send);
                bytes + flight
            })?;
            Ok(((*instance, *rank), slope))
        };
        self.sending.iter().map(slope).collect()
    }

    fn startups(
        &self,
        program: &Program,
        samples: &Samples<'_>,
    ) -> Result<HashMap<(u32, usize), f64>, Obstacle> {
        let mut startups = HashMap::new();
        for (instance, rank) in &self.starting {
            let communicator = program.instances()[*instance as usize];
            let key = (communicator, samples.costs[0].group_index(*rank));
            if let Entry::Vacant(unknown) = startups.entry(key) {
                unknown
                    .insert(samples.slope(|costs| costs.collective_startup(communicator, *rank))?);
            }
        }
        Ok(startups)
    }
}
