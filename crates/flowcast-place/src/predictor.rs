//! Predicted times of an input under one mapping after another.

use flowcast_graph::EventGraph;
use flowcast_network::{machine::Mapping, network::Network, sharing::model::Model};
use flowcast_program::{Program, Trace, opcodes::Op, schedule::Operation};
use flowcast_units::{Bytes, Node, Rank, Time};

use super::{input::PlaceInput, matrix::RankMessage};
use flowcast::{
    Case, Error, Input, Options, PreparedProgram, durations_of_steps,
    statements::{of_networks, of_trace},
};

/// Maximum number of messages of a program whose event graph is recorded. It takes 240 bytes per message.
const MOST_RECORDED: u32 = 4_000_000;

/// Flows that take at least this fraction of the longest time of their step are responsible for it.
const LATE: f64 = 0.98;

/// Approximate maximum of the sum of the weights of all messages, in nanoseconds.
const MOST_WEIGHT: f64 = 1e14;

/// A message with a slack of this fraction of the makespan has half its weight.
const HALF_SLACK: f64 = 0.02;

/// An input whose ranks may run on any nodes of a network.
///
/// Everything that does not depend on the mapping is prepared once. The collectives of a program are expanded into
/// messages, which stay the same.
pub struct MappingPredictor<'a> {
    input: &'a PlaceInput,
    case: Case<'a>,
    network: &'a Network,
    /// A program with expanded collectives. `None` for steps, matrices and schedules.
    prepared: Option<PreparedProgram<'a>>,
    /// Position of each node in the topology.
    positions: Vec<Node>,
    /// The network with all nodes up to the last of these positions.
    with_nodes: Network,
}

impl<'a> MappingPredictor<'a> {
    /// Creates a predictor for an input on a network whose nodes are numbered like those of its topology.
    ///
    /// # Errors
    /// Errors of the preparation.
    pub fn new(
        input: &'a PlaceInput,
        network: &'a Network,
        options: Options,
    ) -> Result<MappingPredictor<'a>, Error> {
        let case = Case::new(input.input(), Some(network), options);
        let prepared = match case.input {
            Input::Trace(Trace::Program(program)) => {
                let options = Options {
                    mapping: None,
                    ..case.options.clone()
                };
                Some(PreparedProgram::new(program, network, &options)?)
            }
            Input::Trace(_) | Input::Steps(_) => None,
        };
        Ok(MappingPredictor {
            input,
            case,
            network,
            prepared,
            positions: Vec::new(),
            with_nodes: network.clone(),
        })
    }

    /// Sets the position of each node in the topology.
    pub fn stand_at(&mut self, positions: &[Node]) {
        self.positions = positions.to_vec();
        self.with_nodes = self.with_nodes_of(self.network);
    }

    /// Returns the network with nodes for all positions and ranks if the number of its nodes depends on the job.
    fn with_nodes_of(&self, network: &Network) -> Network {
        let mut network = network.clone();
        let mut groups = network.machine.groups();
        let known: u32 = groups.iter().map(|group| group.count).sum();
        let nodes = self.positions.iter().map(|node| node.0 + 1).max();
        let nodes = nodes.unwrap_or(0).max(self.ranks() as u32);
        for group in groups.iter_mut().filter(|group| group.count == 0) {
            group.count = nodes.saturating_sub(known);
        }
        network.machine.nodes = groups;
        network
    }

    /// Returns the sharing model, if there is one.
    ///
    /// # Errors
    /// Errors of [`Case::model`].
    pub(super) fn sharing_model(&self) -> Result<Option<Model>, Error> {
        match &self.prepared {
            Some(prepared) => Ok(prepared.model().contention.model()),
            None if matches!(self.case.input, Input::Steps(_)) => {
                Ok(Some(self.case.options.method(self.network)?.model))
            }
            None => Ok(self.case.options.contention.model()),
        }
    }

    /// Network whose values apply unless another network is given.
    pub fn network(&self) -> &'a Network {
        self.network
    }

    /// Returns the name of the model.
    ///
    /// # Errors
    /// Errors of [`Case::model`].
    pub fn model(&self) -> Result<&'static str, Error> {
        match &self.prepared {
            Some(prepared) => Ok(prepared.model().name()),
            None => self.case.model(),
        }
    }

    /// Returns sentences about the omissions and assumptions of the predictions and the certainty of the network's values.
    pub fn notes(&self) -> Vec<String> {
        match (&self.prepared, self.case.input) {
            (Some(prepared), _) => prepared.notes(),
            (None, Input::Trace(trace)) => of_trace(trace, [self.network]),
            (None, Input::Steps(_)) => of_networks([self.network]),
        }
    }

    /// Number of ranks to place. For a program with threads, this is the number of its tasks.
    pub fn ranks(&self) -> usize {
        match (&self.prepared, self.input) {
            (Some(prepared), _) => prepared.program().threads_of_tasks().len(),
            (None, PlaceInput::Matrix(matrix, _)) => matrix.ranks,
            (None, _) => self.case.ranks(),
        }
    }

    /// Returns the time at which the last rank or the last flow ends under a mapping.
    ///
    /// # Errors
    /// Errors of [`Case::makespan`].
    pub fn makespan(&self, node_of_rank: &[Node]) -> Result<Time, Error> {
        self.makespan_with(&self.with_nodes, node_of_rank)
    }

    /// Returns the makespan on a network with other values.
    ///
    /// # Errors
    /// Errors of [`Case::makespan`].
    pub fn makespan_on(&self, network: &Network, node_of_rank: &[Node]) -> Result<Time, Error> {
        self.makespan_with(&self.with_nodes_of(network), node_of_rank)
    }

    fn makespan_with(&self, network: &Network, node_of_rank: &[Node]) -> Result<Time, Error> {
        if let Some(prepared) = &self.prepared {
            let placed = self.placed(prepared, network, node_of_rank)?;
            return Ok(placed.outcome()?.makespan());
        }
        let options = self.options(node_of_rank);
        Case::new(self.case.input, Some(network), options).makespan()
    }

    fn placed<'b>(
        &self,
        prepared: &'b PreparedProgram<'_>,
        network: &'b Network,
        node_of_rank: &[Node],
    ) -> Result<PreparedProgram<'b>, Error> {
        prepared.moved(network, &self.options(node_of_rank))
    }

    fn options(&self, node_of_rank: &[Node]) -> Options {
        Options {
            mapping: Some(self.mapping(node_of_rank)),
            ..self.case.options.clone()
        }
    }

    /// Returns all messages, including those of a program's collectives.
    pub fn messages(&self) -> Vec<RankMessage> {
        if let PlaceInput::Matrix(matrix, _) = self.input {
            return matrix.messages.clone();
        }
        match self.case.input {
            Input::Trace(Trace::Schedule(schedule)) => {
                let mut messages = Vec::new();
                for (graph, from) in schedule.graphs.iter().zip(0..) {
                    for node in &graph.nodes {
                        if let Operation::Send { to, size, .. } = node.operation {
                            messages.push(RankMessage {
                                from: Rank(from),
                                to,
                                bytes: size,
                            });
                        }
                    }
                }
                messages
            }
            Input::Steps(steps) => steps
                .steps
                .iter()
                .flatten()
                .map(|flow| RankMessage {
                    from: Rank(flow.src.0),
                    to: Rank(flow.dst.0),
                    bytes: flow.size,
                })
                .collect(),
            Input::Trace(_) => self
                .prepared
                .iter()
                .flat_map(|prepared| messages_of(prepared.program(), |_, bytes| bytes))
                .collect(),
        }
    }

    /// Returns the messages of a program with weights instead of bytes. The weight of a message is its cost alone between
    /// two nodes, in nanoseconds, and decreases with its slack under a mapping: the delay that does not change the makespan.
    /// Other inputs keep their bytes.
    ///
    /// # Errors
    /// Errors of the replay.
    pub fn weighted_messages(&self, node_of_rank: &[Node]) -> Result<Vec<RankMessage>, Error> {
        let Some(prepared) = &self.prepared else {
            return Ok(self.messages());
        };
        let program = prepared.program();
        let rate = self.network.nic.rate.goodput().as_bytes_per_second();
        let latency = self.network.nic.latency.as_nanos();
        let alone = |bytes: Bytes| latency + bytes.0 as f64 / rate * 1e9;
        let mut urgency = vec![1.0; program.messages() as usize];
        if program.messages() <= MOST_RECORDED {
            let placed = self.placed(prepared, &self.with_nodes, node_of_rank)?;
            let engine = placed.engine()?;
            let (outcome, graph) = EventGraph::record(&engine)?;
            let half = outcome.makespan().as_nanos().max(1.0) * HALF_SLACK;
            for message in graph.slacks().messages() {
                urgency[message.slot.index()] = half / (half + message.slack.total.as_nanos());
            }
        }
        // Only ratios matter. The scale keeps the sum within the limit of a matrix.
        let all: f64 = messages_of(program, |_, bytes| bytes)
            .iter()
            .map(|message| alone(message.bytes))
            .sum();
        let scale = (MOST_WEIGHT / all).min(1.0);
        Ok(messages_of(program, |slot, bytes| {
            let nanos = alone(bytes) * urgency[slot] * scale;
            Bytes(nanos.max(1.0) as u64)
        }))
    }

    /// Returns the influence of each rank on the makespan under a mapping, in nanoseconds: the time on the critical path of
    /// a program, or the time of the flows that end last in each step. `None` if it is unknown.
    ///
    /// # Errors
    /// Errors of the replay.
    pub fn blame(&self, node_of_rank: &[Node]) -> Result<Option<Vec<f64>>, Error> {
        let mut times = vec![0.0; self.ranks()];
        if let Input::Steps(steps) = self.case.input {
            let (options, mapping) = (&self.case.options, self.mapping(node_of_rank));
            let durations = durations_of_steps(steps, &self.with_nodes, options, &mapping)?;
            for (flows, durations) in steps.steps.iter().zip(durations) {
                let longest = durations.iter().max().copied().unwrap_or(Time::ZERO);
                for (flow, time) in flows.iter().zip(&durations) {
                    if *time >= longest * LATE {
                        times[flow.src] += time.as_nanos();
                        times[flow.dst] += time.as_nanos();
                    }
                }
            }
            return Ok(Some(times));
        }
        let Some(prepared) = &self.prepared else {
            return Ok(None);
        };
        let program = prepared.program();
        if program.messages() > MOST_RECORDED {
            return Ok(None);
        }
        let placed = self.placed(prepared, &self.with_nodes, node_of_rank)?;
        let (_, path) = placed.critical_path()?;
        for (stream, time) in path.ranks() {
            times[task_of(program, stream)] += time.as_nanos();
        }
        Ok(Some(times))
    }

    fn mapping(&self, node_of_rank: &[Node]) -> Mapping {
        Mapping::List(
            node_of_rank
                .iter()
                .map(|node| self.positions.get(node.index()).unwrap_or(node).0)
                .collect(),
        )
    }
}

/// Returns the messages of a program, with the value of `weight` as the bytes of each.
fn messages_of(program: &Program, weight: impl Fn(usize, Bytes) -> Bytes) -> Vec<RankMessage> {
    let mut messages = Vec::with_capacity(program.messages() as usize);
    for stream in Rank::all(program.streams()) {
        for (_, op) in program.ops(stream) {
            if let Op::Send { class, slot } = op {
                messages.push(RankMessage {
                    from: task_of(program, stream),
                    to: task_of(program, program.receiver(slot)),
                    bytes: weight(slot.index(), program.class(class).size),
                });
            }
        }
    }
    messages
}

fn task_of(program: &Program, stream: Rank) -> Rank {
    Rank(program.task(program.owner(stream)))
}
