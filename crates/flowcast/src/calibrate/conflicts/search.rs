//! Search for the parameters of one model that explain the conflicts best, and its errors with them.

use super::{
    Observed, Predictor, PrivateAndSharedLinks,
    links::Ports,
    parameters::{Candidate, Needs},
};
use flowcast_network::{
    cluster::{
        conflicts::{Conflict, ConflictKind},
        flow::PatternFlow,
        racks::Racks,
    },
    network::{Bus, Duplex, LinkRate, MessageRule, Network, Nic},
    sharing::{
        LoopParameters, PacketParameters, SharingError,
        model::Model,
        protocol::{FRAME_OVERHEAD, SEGMENT},
    },
};
use flowcast_statistics::{
    descent::{BoundedParameter, Lowest, descend},
    observation::Observation,
};
use flowcast_units::{Bytes, Rate, Time};

/// Smallest gain of a step, as a fraction of the sum of squares. A step that gains less ends the search.
const NO_GAIN: f64 = 1e-6;

/// Input of predictions, apart from the network.
pub(super) struct Fitter<'a> {
    /// Racks of the nodes.
    pub racks: &'a Racks,
    /// Function that simulates flows.
    pub predictor: &'a Predictor<'a>,
    /// Transport that carried the messages, if it is known.
    pub transport: Option<&'a PacketParameters>,
    /// Assumed sharing between the two directions of a port.
    pub ports: Ports,
    /// Models that are compared with the conflicts.
    pub candidates: Vec<Candidate>,
}

impl Fitter<'_> {
    /// The best result of the searches from all starting points.
    pub(super) fn search(
        &self,
        candidate: &Candidate,
        links: &PrivateAndSharedLinks,
        observed: &[Observed<'_>],
    ) -> Lowest {
        let ends = candidate.starts.iter().map(|start| {
            let start: Vec<f64> = start
                .iter()
                .zip(candidate.parameters)
                .map(|(x, p)| p.to_search(*x))
                .collect();
            self.refine(candidate, &start, links, observed)
        });
        ends.min_by(|a, b| a.squares.total_cmp(&b.squares))
            .expect("each candidate has a start")
    }

    /// Descends from one starting point, and stays there if the model has no solution.
    pub(super) fn refine(
        &self,
        candidate: &Candidate,
        start: &[f64],
        links: &PrivateAndSharedLinks,
        observed: &[Observed<'_>],
    ) -> Lowest {
        let ranges: Vec<BoundedParameter> = candidate
            .parameters
            .iter()
            .map(|parameter| {
                let (low, high) = parameter.search_range();
                BoundedParameter::between(low, high)
            })
            .collect();
        let stay = Lowest {
            at: start.to_vec(),
            squares: f64::INFINITY,
            is_felt: vec![false; start.len()],
        };
        if ranges.is_empty() {
            return Lowest {
                squares: 0.0,
                ..stay
            };
        }
        descend(start, &ranges, NO_GAIN, &mut |at: &[f64]| {
            self.residuals(candidate, at, links, observed)
        })
        .unwrap_or(stay)
    }

    fn residuals(
        &self,
        candidate: &Candidate,
        at: &[f64],
        links: &PrivateAndSharedLinks,
        observed: &[Observed<'_>],
    ) -> Option<Vec<f64>> {
        let network = self.network_with(candidate, at, links);
        let mut all = Vec::new();
        for one in observed.iter().filter(|one| one.is_fitted_to()) {
            let durations = self
                .durations(candidate.model, &network, one.conflict)
                .ok()?;
            let pairs = durations.iter().zip(&one.medians);
            all.extend(
                pairs
                    .map(|(predicted, measured)| (predicted.as_nanos() / measured.as_nanos()).ln()),
            );
        }
        Some(all)
    }

    /// Network for a point of the search.
    pub(super) fn network_with(
        &self,
        candidate: &Candidate,
        at: &[f64],
        links: &PrivateAndSharedLinks,
    ) -> Network {
        let mut network = plain_network(links);
        for (parameter, value) in candidate.parameters.iter().zip(at) {
            parameter.set(&mut network.sharing, parameter.in_file(*value));
        }
        if let Some(transport) = self.transport {
            match candidate.needs {
                Needs::Nothing => {}
                Needs::Window => {
                    network.sharing.packet.window = transport.window;
                    network.sharing.closed_loop = SETTLING;
                }
                Needs::Transport => add_packets(&mut network, links, transport),
            }
        }
        network
    }

    /// Predicted durations of a conflict.
    pub(super) fn durations(
        &self,
        model: Model,
        network: &Network,
        conflict: &Conflict,
    ) -> Result<Vec<Time>, SharingError> {
        (self.predictor)(&conflict.flows, self.racks, network, model)
    }

    /// Predicted and measured durations of a conflict. If the model has no solution for the conflict, its predicted
    /// durations are 0.
    pub(super) fn observations(
        &self,
        model: Model,
        network: &Network,
        observed: &Observed<'_>,
    ) -> Vec<Observation<PatternFlow>> {
        let durations = self
            .durations(model, network, observed.conflict)
            .unwrap_or_else(|_| vec![Time::ZERO; observed.medians.len()]);
        // A message that waits behind others waits longer than it takes, so its error is relative to the time of all of them
        // together.
        let is_short = observed.conflict.kind == ConflictKind::Short;
        let measured = observed.medians.iter().map(|time| time.as_seconds());
        let together = measured.clone().fold(0.0, f64::max);
        let flows = observed.conflict.flows.iter().zip(durations).zip(measured);
        flows
            .map(|((flow, predicted), measured)| {
                let more = if is_short { together - measured } else { 0.0 };
                Observation {
                    of: PatternFlow {
                        pattern: observed.conflict.name.clone(),
                        flow: *flow,
                    },
                    predicted: predicted.as_seconds() + more,
                    measured: measured + more,
                }
            })
            .collect()
    }
}

/// The closed loop with equal windows, followed while queues fill.
pub(super) const SETTLING: LoopParameters = LoopParameters {
    alpha: Some(1.0),
    kappa: Some(1.0),
    transient: Some(true),
};

/// Adds the input of the packet level. This level sends frames, so rates are wire rates, and the latency excludes the time
/// of a frame on the links. On half-duplex ports, the ACKs of a flow, one for two packets, use a share of the rate that it
/// gets alone.
pub(super) fn add_packets(
    network: &mut Network,
    links: &PrivateAndSharedLinks,
    transport: &PacketParameters,
) {
    let segment = transport.segment.unwrap_or(Bytes(SEGMENT));
    let frame = |acknowledgement: f64| {
        let bytes = (segment.0 + FRAME_OVERHEAD) as f64 + acknowledgement;
        move |rate: Rate| {
            Rate::from_bytes_per_second(rate.as_bytes_per_second() * bytes / segment.0 as f64)
        }
    };
    let wire = frame(0.0);
    let with_acknowledgements = frame(FRAME_OVERHEAD as f64 / 2.0);
    let of_port = match links.duplex {
        Duplex::Full => wire(links.rate),
        Duplex::Half => with_acknowledgements(links.rate),
    };
    network.bus = links.bus.map(|rate| {
        bus(LinkRate::Both {
            goodput: rate,
            wire: with_acknowledgements(rate),
        })
    });
    network.sharing.packet = PacketParameters {
        latency: Some(packet_latency(links, transport)),
        ..*transport
    };
    network.nic.rate = LinkRate::Both {
        goodput: links.rate.into(),
        wire: of_port,
    };
    network.backbone = links.backbone.map(|limit| LinkRate::Both {
        goodput: limit.rate,
        wire: wire(limit.rate),
    });
}

/// Latency of a packet: the time of the smallest message alone, without the time of its frame on the links of sender and
/// receiver. Links whose burst covers the frame take no time for it. If the smallest message does not fit into a frame, the
/// start-up of all messages replaces its time.
fn packet_latency(links: &PrivateAndSharedLinks, transport: &PacketParameters) -> Time {
    let segment = transport.segment.unwrap_or(Bytes(SEGMENT));
    let (size, time) = links.smallest;
    let of_links = match transport.burst {
        _ if size > segment => links.rate.time_for(segment),
        Some(burst) if size.0 + FRAME_OVERHEAD <= burst.0 => Time::ZERO,
        _ => links.rate.time_for(size) * 2.0,
    };
    let in_all = if size > segment { links.latency } else { time };
    (in_all - of_links).max(Time::ZERO)
}

/// Network with these links, whose messages follow Hockney's rule. It has the values that are not searched for: the
/// backbone's limit, and the cut of a flow alone.
pub(super) fn plain_network(links: &PrivateAndSharedLinks) -> Network {
    let mut network = Network {
        backbone: links.backbone.map(|limit| LinkRate::Goodput(limit.rate)),
        bus: links.bus.map(|rate| bus(LinkRate::Goodput(rate))),
        ..Network::new(
            "",
            MessageRule::Hockney,
            Nic {
                duplex: links.duplex,
                ..Nic::new(links.latency, links.rate)
            },
        )
    };
    if links.duplex == Duplex::Half {
        (
            network.sharing.flow_cuts.io_out,
            network.sharing.flow_cuts.include,
        ) = (Some(0.0), Some(0.0));
    }
    network.sharing.asymmetric.backbone_from = links.backbone.map(|limit| limit.from);
    network.sharing.flow_cuts.start_end = Some(0.0);
    network
}

/// A medium in each node.
fn bus(rate: LinkRate) -> Bus {
    Bus {
        nodes: Some(1),
        rate,
    }
}
