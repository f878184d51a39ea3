//! Predictions of patterns of concurrent communications, from a network and a model.

use std::collections::{BTreeMap, btree_map::Entry};

use super::{
    bottleneck,
    fluid::{self, Demand, Intervals},
};
use crate::packet::{
    CarriedPackets, PacketMessage, Wire,
    seeds::{self, Runs, Spread},
};
use flowcast_network::{
    cluster::{flow::Flow, pattern::Pattern, racks::Racks},
    network::Network,
    sharing::{
        RateModel, SharingError,
        completion::{FlowCompletion, RateInterval},
        fabric::{Fabric, Limit},
        flow_cuts::Strictness,
        link_loads::{ClassLoad, LinkLoads},
        model::Model,
        protocol::Protocol,
        rates::{finite_rate, rate_model, transient_windows},
    },
};
use flowcast_units::{Bytes, Time};

/// Model that predicts a pattern, and its strictness.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Method {
    /// Model by which concurrent flows share the links.
    pub model: Model,
    /// Acceptance or refusal of situations that the paper on flow cuts does not define.
    pub strictness: Strictness,
}

/// End of a flow of a pattern, and its duration alone.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FlowPrediction {
    /// The flow as in the pattern.
    pub flow: Flow,
    /// Time at which its last byte arrives.
    pub end: Time,
    /// Time from start to end.
    pub duration: Time,
    /// Duration without any other flow: `L + m*x`.
    pub alone: Time,
}

impl FlowPrediction {
    /// Ratio of the duration to the duration alone.
    pub fn slowdown(&self) -> f64 {
        if self.alone == Time::ZERO {
            1.0
        } else {
            self.duration.as_nanos() / self.alone.as_nanos()
        }
    }
}

/// End of each flow of a pattern, and the intervals that lead to it.
#[derive(Debug, Clone, PartialEq)]
pub struct FlowsPrediction {
    /// Flows in the pattern's order.
    pub flows: Vec<FlowPrediction>,
    /// Share of each flow over time, and the reason why it was not larger; latency follows the last interval. Empty if
    /// intervals are not kept.
    pub intervals: Intervals,
    /// Fabric with the links that the limits name.
    pub fabric: Fabric,
}

impl FlowsPrediction {
    /// Load of the links of each class from the first start to the last end, on the network as the model sees it
    /// ([`Network::seen_by`]). Headers do not count.
    pub fn loads(&self, network: &Network) -> Vec<ClassLoad> {
        let loads = LinkLoads::new(&self.fabric);
        for (flow, path) in self.flows.iter().zip(&self.fabric.paths) {
            loads.add(path, network.nic.time_for(flow.flow.size));
        }
        let first = self.flows.iter().map(|flow| flow.flow.start).min();
        loads.by_class(self.makespan() - first.unwrap_or_default())
    }

    /// Time at which the last flow ends.
    pub fn makespan(&self) -> Time {
        self.flows
            .iter()
            .map(|flow| flow.end)
            .fold(Time::ZERO, Time::max)
    }

    /// Returns the same flows, all of them later by this time.
    #[must_use]
    pub fn later(mut self, by: Time) -> FlowsPrediction {
        for predicted in &mut self.flows {
            predicted.flow.start += by;
            predicted.end += by;
        }
        for interval in self.intervals.of_flow.iter_mut().flatten() {
            (interval.from, interval.to) = (interval.from + by, interval.to + by);
        }
        self
    }

    /// Describes a limit of the flow with this index in the pattern, for people.
    pub fn reason(&self, flow: usize, limit: Limit) -> String {
        let id = |index: u32| self.flows[index as usize].flow.id;
        match limit {
            Limit::Alone => "alone".into(),
            Limit::Link(link) => {
                let phrase = self.fabric.link(link).phrase();
                match self.fabric.paths[flow].data().contains(&link) {
                    true => format!("shares the {phrase}"),
                    false => format!("slowed by the opposite direction, the {phrase}"),
                }
            }
            Limit::Acknowledgements(link) => format!(
                "acknowledgements wait on the {}",
                self.fabric.link(link).phrase()
            ),
            Limit::ZigZag { flows } => {
                format!("outgoing/incoming conflict, zig-zag of {flows}")
            }
            Limit::CrowdedZigZag { flows } => {
                format!("{flows} flows with more than two in one direction of a node")
            }
            Limit::IncomingOfPair { partner } => {
                format!("incoming, conflict with outgoing flow {}", id(partner))
            }
            Limit::OutgoingOfPair { partner } => {
                format!("outgoing, conflict with incoming flow {}", id(partner))
            }
            Limit::Queues => "queues on its route, packet by packet".into(),
            Limit::Between => "unpaired between two active neighbours".into(),
            Limit::StartOrEnd => "unpaired at an end of its conflict chain".into(),
        }
    }

    /// Intervals of the flow with this index in the pattern, in time order; empty if they are not kept.
    pub fn intervals_of(&self, flow: usize) -> &[RateInterval] {
        self.intervals.of_flow.get(flow).map_or(&[], Vec::as_slice)
    }
}

/// Predicts when each flow of a pattern ends.
///
/// ```
/// use flowcast_network::builtin;
/// use flowcast_network::cluster::pattern::Pattern;
/// use flowcast_network::sharing::flow_cuts::Strictness;
/// use flowcast_network::sharing::model::Model;
/// use flowcast_traffic::flows::concurrent::{Method, predict};
///
/// let pattern = Pattern::read("two.pattern", b"0 -> 1 4MB\n0 -> 2 4MB\n").unwrap();
/// let method = Method { model: Model::Fair, strictness: Strictness::Extended };
/// let prediction = predict(&pattern, &builtin::network("gige-tcp").unwrap(), method)?;
/// assert!((prediction.flows[0].slowdown() - 2.0).abs() < 0.01);
/// # Ok::<(), flowcast_network::sharing::SharingError>(())
/// ```
///
/// # Errors
/// A parameter that is missing for the model, or a situation that the model does not cover.
pub fn predict(
    pattern: &Pattern,
    network: &Network,
    method: Method,
) -> Result<FlowsPrediction, SharingError> {
    predict_flows(&pattern.flows, &pattern.racks, network, method)
}

/// Predicts like [`predict`], for flows that are not in a file.
///
/// # Errors
/// Errors of [`predict`].
pub fn predict_flows(
    flows: &[Flow],
    racks: &Racks,
    network: &Network,
    method: Method,
) -> Result<FlowsPrediction, SharingError> {
    predict_keeping(flows, racks, network, method, true)
}

/// Predicts like [`predict_flows`], without the intervals, which take time and memory for each flow at each event.
///
/// # Errors
/// Errors of [`predict`].
pub fn predict_ends(
    flows: &[Flow],
    racks: &Racks,
    network: &Network,
    method: Method,
) -> Result<FlowsPrediction, SharingError> {
    predict_keeping(flows, racks, network, method, false)
}

fn predict_keeping(
    flows: &[Flow],
    racks: &Racks,
    network: &Network,
    method: Method,
    keeps_intervals: bool,
) -> Result<FlowsPrediction, SharingError> {
    if let Some(windows) = transient_windows(method.model, network)? {
        let usual = Bytes(
            flows
                .iter()
                .map(|flow| flow.size.0 / flows.len() as u64)
                .sum(),
        );
        let goodput = finite_rate(network)?.as_bytes_per_second();
        let network = network.in_trains(windows, usual);
        let fabric = Fabric::from_network(flows, racks, &network)?;
        let mut prediction = carry_packets(flows, &network, fabric, keeps_intervals)?;
        let wire = finite_rate(&network)?.as_bytes_per_second();
        for interval in prediction.intervals.of_flow.iter_mut().flatten() {
            interval.share.0 *= wire / goodput;
        }
        return Ok(prediction);
    }
    let network = &*network.seen_by(method.model);
    let fabric = Fabric::from_network(flows, racks, network)?;
    match rate_model(method.model, network, method.strictness)? {
        Some(mut model) => step_flows(flows, network, fabric, model.as_mut(), keeps_intervals),
        None => carry_packets(flows, network, fabric, keeps_intervals),
    }
}

/// Adds the latency after the last byte. A flow alone takes `L + m*x`.
fn with_latency(
    flows: &[Flow],
    network: &Network,
    fabric: &Fabric,
    completions: Vec<FlowCompletion>,
) -> Vec<FlowPrediction> {
    let each = flows.iter().zip(&fabric.paths).zip(completions);
    each.map(|((flow, path), completion)| {
        let latency = network.nic.latency + fabric.latency(path);
        let alone = network.nic.time_for(flow.size) * (1.0 / fabric.uncontended_share(path).0);
        FlowPrediction {
            flow: *flow,
            end: completion.end + latency,
            duration: completion.duration + latency,
            alone: alone + latency,
        }
    })
    .collect()
}

fn step_flows(
    flows: &[Flow],
    network: &Network,
    mut fabric: Fabric,
    model: &mut dyn RateModel,
    keeps_intervals: bool,
) -> Result<FlowsPrediction, SharingError> {
    let demands: Vec<Demand> = flows
        .iter()
        .map(|flow: &Flow| Demand {
            start: flow.start,
            work: network.nic.time_for(flow.size),
        })
        .collect();
    let mut intervals = Intervals::default();
    let completions = if keeps_intervals {
        intervals = Intervals::new(flows.len());
        fluid::simulate_choosing(&demands, &mut fabric, model, &mut intervals)?
    } else {
        fluid::simulate_choosing(&demands, &mut fabric, model, &mut ())?
    };
    let flows = with_latency(flows, network, &fabric, completions);
    Ok(FlowsPrediction {
        flows,
        intervals,
        fabric,
    })
}

fn carry_packets(
    flows: &[Flow],
    network: &Network,
    mut fabric: Fabric,
    keeps_intervals: bool,
) -> Result<FlowsPrediction, SharingError> {
    let wire = undisturbed(wire(network)?);
    let mut carried = crate::packet::simulate(&messages(flows), &fabric, &wire)?;
    let mut taken: Vec<usize> = (0..flows.len()).collect();
    for flow in &carried.detoured {
        taken[*flow] = fabric.detour(*flow).unwrap_or(*flow);
    }
    fabric.settle_ways(&taken);
    let flows = predictions(flows, &fabric, &wire, &carried.completions)?;
    let mut intervals = Intervals::default();
    if keeps_intervals {
        bottleneck::name_links(&mut carried.intervals, &fabric);
        intervals.of_flow = carried.intervals;
    }
    Ok(FlowsPrediction {
        flows,
        intervals,
        fabric,
    })
}

/// Predicts packet by packet with several seeds. Returns the medians as a prediction, and the spread of each flow. Intervals
/// are those of the run without disturbances.
///
/// # Errors
/// Errors of [`predict`].
pub fn predict_seeds(
    pattern: &Pattern,
    network: &Network,
    runs: Runs,
) -> Result<(FlowsPrediction, Vec<Spread>), SharingError> {
    let network = &*network.seen_by(Model::Packet);
    let fabric = Fabric::from_network(&pattern.flows, &pattern.racks, network)?;
    let wire = wire(network)?;
    let spreads = seeds::spreads(&messages(&pattern.flows), &fabric, &wire, runs)?;
    let mut prediction = carry_packets(&pattern.flows, network, fabric, true)?;
    for (flow, spread) in prediction.flows.iter_mut().zip(&spreads) {
        (flow.end, flow.duration) = (spread.median.end, spread.median.duration);
    }
    Ok((prediction, spreads))
}

/// Simulates a pattern packet by packet and counts frames, links crossed and losses. With `each_packet`, exact repetitions
/// are also simulated, not skipped.
///
/// # Errors
/// Errors of [`predict`].
pub fn carry(
    pattern: &Pattern,
    network: &Network,
    each_packet: bool,
) -> Result<CarriedPackets, SharingError> {
    let network = &*network.seen_by(Model::Packet);
    let fabric = Fabric::from_network(&pattern.flows, &pattern.racks, network)?;
    let (messages, wire) = (messages(&pattern.flows), undisturbed(wire(network)?));
    if each_packet {
        crate::packet::simulate_each_packet(&messages, &fabric, &wire)
    } else {
        crate::packet::simulate(&messages, &fabric, &wire)
    }
}

fn wire(network: &Network) -> Result<Wire, SharingError> {
    Ok(Wire {
        rate: finite_rate(network)?,
        latency: network.nic.latency,
        protocol: Protocol::new(&network.sharing.packet)?,
        seed: None,
    })
}

/// Returns the wire for the messages of a program, whose starts depend on each other. Without a seed, starts have no random
/// delays.
pub fn trace_wire(network: &Network, seed: Option<u64>) -> Result<Wire, SharingError> {
    let wire = wire(network)?;
    Ok(if seed.is_some() {
        Wire { seed, ..wire }
    } else {
        undisturbed(wire)
    })
}

/// Removes the random delays of starts. Host times remain random if queues are limited, because overflows would otherwise
/// lock phase.
fn undisturbed(wire: Wire) -> Wire {
    let protocol = Protocol {
        jitter: Time::ZERO,
        ..wire.protocol
    };
    Wire {
        protocol,
        seed: protocol.queue.map(|_| 0),
        ..wire
    }
}

fn messages(flows: &[Flow]) -> Vec<PacketMessage> {
    flows
        .iter()
        .map(|flow| PacketMessage {
            start: flow.start,
            size: flow.size,
        })
        .collect()
}

fn predictions(
    flows: &[Flow],
    fabric: &Fabric,
    wire: &Wire,
    completions: &[FlowCompletion],
) -> Result<Vec<FlowPrediction>, SharingError> {
    let mut lone_times = BTreeMap::new();
    let mut predicted = Vec::with_capacity(flows.len());
    for ((flow, path), completion) in flows.iter().zip(&fabric.paths).zip(completions) {
        let alone = match lone_times.entry((flow.size, fabric.classes_on(path))) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(unknown) => {
                let message = PacketMessage {
                    start: Time::ZERO,
                    size: flow.size,
                };
                *unknown.insert(
                    crate::packet::simulate(&[message], &fabric.only(path), wire)?.completions[0]
                        .duration,
                )
            }
        };
        predicted.push(FlowPrediction {
            flow: *flow,
            end: completion.end,
            duration: completion.duration,
            alone,
        });
    }
    Ok(predicted)
}
