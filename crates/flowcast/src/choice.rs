//! Choice of the model that predicts a trace, with its reason.

use std::{collections::BTreeMap, fmt};

use flowcast_network::{
    accuracy::{self, CaseKind},
    machine::{NodeGroup, inside::InsideSource},
    network::{Network, Progress},
    sharing::{
        LIMITS, PacketParameters, model::Model, protocol::SEGMENT, rates::transient_windows,
    },
};
use flowcast_program::{Folded, Program, opcodes::Op, schedule::Schedule};
use flowcast_report::NetworkView;
use flowcast_units::{Bytes, Rank, Rounded, Time};

use crate::Contention::{self, *};

/// Longest time for which packets are followed by default.
const TIMEOUT: Time = Time::from_nanos(10e9);

/// Time to simulate one packet and its acknowledgement: about four link crossings, at 28 million crossings a second.
const PER_PACKET: Time = Time::from_nanos(150.0);

/// Time for each message in addition to its packets.
const PER_MESSAGE: Time = Time::from_nanos(1500.0);

/// Model of a prediction, the reason for it, and the effects that it leaves out. `Display` writes all its
/// [sentences](Self::sentences) in one line.
///
/// If the caller names no model, the first rule that applies decides:
///
/// - A network whose accuracy record has models that were validated on programs, or on messages of the program's sizes,
///   takes the most accurate of them.
/// - A network that comes from a Dimemas `.cfg`, or whose machine has links or buses, takes `limits`.
/// - A network with the parameters of packets takes `packet`, if that takes less than ten seconds.
/// - Any other network takes its own sharing model, or `fair` if it has none, or if it has flow cuts and the program has
///   more than 128 ranks.
///
/// Schedules ignore links and buses. They take `loggops` if LogGOPS parameters are given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelChoice {
    /// The model, never [`Contention::Automatic`].
    pub contention: Contention,
    /// Reason for this model, in words for people.
    pub reason: String,
    /// `true` if no two messages used an interface at the same time, so that a contention-free replay gave the model's result.
    pub is_uncontended: bool,
    /// Way in which collectives are carried out, by its name in `--collectives`; `None` before the replay, and without
    /// collectives.
    pub collectives: Option<&'static str>,
    /// Source of the costs inside nodes; `None` before the replay, and if all messages go between nodes.
    pub inside: Option<InsideSource>,
    /// Progress of messages while ranks compute; `None` for schedules, whose rules define it.
    pub progress: Option<Progress>,
}

/// Largest number of ranks for which flow cuts are followed by default. With hundreds of concurrent flows they take minutes,
/// or find no rates.
const MOST_CUT_RANKS: usize = 128;

/// Estimated size of a simulation.
#[derive(Debug, Clone, Copy)]
struct EstimatedLoad {
    /// Number of ranks; 0 if the model is chosen again before messages share the network.
    ranks: usize,
    messages: u64,
    bytes: Bytes,
    /// Message size up to which messages carry half of the bytes; the mean size if the sizes are unknown.
    usual: Bytes,
}

impl EstimatedLoad {
    fn of_program(program: &Program) -> EstimatedLoad {
        let mut bytes_by_size: BTreeMap<Bytes, u128> = BTreeMap::new();
        for (_, op) in (0..program.streams() as u32).flat_map(|stream| program.ops(Rank(stream))) {
            if let Op::Send { class, .. } = op {
                let size = program.classes()[class as usize].size;
                *bytes_by_size.entry(size).or_default() += u128::from(size.0);
            }
        }
        let (half, mut below) = (bytes_by_size.values().sum::<u128>() / 2, 0);
        let usual = bytes_by_size.iter().find(|(_, bytes)| {
            below += **bytes;
            below > half
        });
        let usual = usual.map_or(Bytes(0), |(size, _)| *size);
        EstimatedLoad {
            usual,
            ranks: program.ranks(),
            ..EstimatedLoad::new(u64::from(program.messages()), program.bytes())
        }
    }

    /// Load of messages of unknown sizes. The usual size is the mean size.
    fn new(messages: u64, bytes: Bytes) -> EstimatedLoad {
        EstimatedLoad {
            ranks: 0,
            messages,
            bytes,
            usual: Bytes(bytes.0 / messages.max(1)),
        }
    }

    /// Estimated time to follow every packet.
    fn by_packets(self, packet: &PacketParameters) -> Time {
        let packets =
            self.bytes.0 as f64 / packet.segment.unwrap_or(Bytes(SEGMENT)).0.max(1) as f64;
        PER_PACKET * packets + PER_MESSAGE * self.messages as f64
    }
}

impl ModelChoice {
    pub(crate) fn for_program(
        contention: Contention,
        program: &Program,
        network: &Network,
    ) -> ModelChoice {
        ModelChoice::for_load(contention, || EstimatedLoad::of_program(program), network)
            .with_progress_of(network)
    }

    pub(crate) fn for_folded(
        contention: Contention,
        folded: &Folded,
        network: &Network,
    ) -> ModelChoice {
        ModelChoice::for_load(
            contention,
            || EstimatedLoad::new(folded.messages(), folded.bytes()),
            network,
        )
        .with_progress_of(network)
    }

    fn for_load(
        contention: Contention,
        load: impl FnOnce() -> EstimatedLoad,
        network: &Network,
    ) -> ModelChoice {
        if contention != Automatic {
            return ModelChoice::requested(contention);
        }
        let load = load();
        ModelChoice::by_own_record(load, network)
            .or_else(|| ModelChoice::by_limits(network))
            .unwrap_or_else(|| ModelChoice::sharing(load, network))
    }

    pub(crate) fn for_schedule(
        contention: Contention,
        schedule: &Schedule,
        network: &Network,
    ) -> ModelChoice {
        let load = EstimatedLoad {
            ranks: schedule.ranks(),
            ..EstimatedLoad::new(schedule.messages(), schedule.bytes())
        };
        match contention {
            Automatic => ModelChoice::by_own_record(load, network)
                .filter(|choice| choice.contention != Limits)
                .unwrap_or_else(|| ModelChoice::sharing(load, network)),
            asked => ModelChoice::requested(asked),
        }
    }

    pub(crate) fn by_parameters() -> ModelChoice {
        ModelChoice::new(Loggops, "LogGOPS parameters are given")
    }

    /// The most accurate model on this network for messages of these sizes; `None` if no model is known, or if it takes too
    /// long.
    fn by_own_record(load: EstimatedLoad, network: &Network) -> Option<ModelChoice> {
        let best = network
            .accuracy_record()
            .best(CaseKind::Programs, Some(load.usual));
        if !network.accuracy_record().is_empty()
            && !best.is_some_and(|best| {
                matches!(best.judged, Some(CaseKind::Programs | CaseKind::Regions))
            })
            && let Some(packet) = ModelChoice::by_laboratories(load, network)
        {
            return Some(packet);
        }
        let best = best?;
        let contention = Contention::named(best.base_model()).ok()?;
        let is_by_packets = match contention {
            Shared(Model::Packet) => true,
            Shared(model) => {
                transient_windows(model, network).is_ok_and(|windows| windows.is_some())
            }
            _ => false,
        };
        let takes_long = is_by_packets && load.by_packets(&network.sharing.packet) >= TIMEOUT;
        let error = best.mean? * 100.0;
        let sizes = match best.messages {
            Some([smallest, largest]) => format!(
                ", with messages of {} to {} like the program's {}",
                Rounded(smallest),
                Rounded(largest),
                Rounded(load.usual)
            ),
            None => String::new(),
        };
        let reason = format!(
            "the most accurate on this network, with a mean error of {error:.1} % on {}{sizes}",
            best.validated_on
        );
        (!takes_long).then(|| ModelChoice::new(contention, reason))
    }

    /// The packet model, if it is the most accurate on programs in laboratories. Errors on patterns of other messages do not
    /// tell how well a model predicts a program, whose messages wait for one another.
    fn by_laboratories(load: EstimatedLoad, network: &Network) -> Option<ModelChoice> {
        let best = accuracy::of_programs_in_laboratories().best(CaseKind::Programs, None)?;
        let packet = &network.sharing.packet;
        let is_there =
            network.sharing.model == Some(Model::Packet) || *packet != PacketParameters::default();
        let is_best = best.base_model() == Model::Packet.name();
        if !is_best || !is_there || load.by_packets(packet) >= TIMEOUT {
            return None;
        }
        let error = best.mean? * 100.0;
        let reason = format!(
            "the most accurate on programs measured in laboratories, with a mean error of {error:.1} %; half of the \
             bytes are in messages of up to {}",
            Rounded(load.usual)
        );
        Some(ModelChoice::new(Shared(Model::Packet), reason))
    }

    /// Dimemas' rules, if the network prescribes them or has links or buses.
    fn by_limits(network: &Network) -> Option<ModelChoice> {
        let reason = match network.sharing.limits {
            true => Some("the network prescribes Dimemas' rules"),
            false => has_links_or_buses(network).then_some("the network has links or buses"),
        };
        reason.map(|reason| ModelChoice::new(Limits, reason))
    }

    fn with_progress_of(self, network: &Network) -> ModelChoice {
        ModelChoice {
            progress: Some(network.point_to_point.progress),
            ..self
        }
    }

    fn requested(contention: Contention) -> ModelChoice {
        ModelChoice::new(contention, "as requested")
    }

    fn new(contention: Contention, reason: impl Into<String>) -> ModelChoice {
        ModelChoice {
            contention,
            reason: reason.into(),
            is_uncontended: false,
            collectives: None,
            inside: None,
            progress: None,
        }
    }

    fn sharing(load: EstimatedLoad, network: &Network) -> ModelChoice {
        let sharing = &network.sharing;
        let own = sharing.model.filter(|model| *model != Model::Packet);
        let takes = load.by_packets(&sharing.packet);
        let mut long = String::new();
        if sharing.model == Some(Model::Packet) || sharing.packet != PacketParameters::default() {
            if takes < TIMEOUT {
                return ModelChoice::new(
                    Shared(Model::Packet),
                    "the network has packet parameters",
                );
            }
            long = format!("; --model packet takes about {:.0} s", takes.as_seconds());
        }
        let (model, reason) = match own {
            Some(Model::FlowCuts) if load.ranks > MOST_CUT_RANKS => (
                Model::Fair,
                "the network's flow cuts take too long for a program of this size (--model flow-cuts uses them anyway)",
            ),
            Some(model) => (model, "the network's own"),
            None => (Model::Fair, "the network file names no model"),
        };
        ModelChoice::new(Shared(model), format!("{reason}{long}"))
    }

    /// `true` if messages share the network under this model.
    pub(crate) fn shares(&self) -> bool {
        self.contention
            .model()
            .is_some_and(|model| model != Model::Independent)
    }

    /// View of a replay's network, with the model among its parameters.
    pub(crate) fn named_in(&self, view: NetworkView) -> NetworkView {
        let inside = self
            .inside
            .map_or(String::new(), |source| format!("; inside nodes {source}"));
        NetworkView {
            parameters: format!("{}; model {}{inside}", view.parameters, self.name()),
            ..view
        }
    }

    /// Name of the model, as `--model` takes it.
    pub fn name(&self) -> &'static str {
        match self.contention {
            Automatic => "automatic",
            Limits => LIMITS,
            Loggops => "loggops",
            Shared(model) => model.name(),
        }
    }

    /// Effects that the results leave out.
    pub fn leaves_out(&self) -> &'static str {
        match self.contention {
            Automatic => "unknown until the model is chosen",
            Limits => "sharing of bandwidth between messages in flight",
            Loggops => "contention between the interfaces of sender and receiver",
            Shared(Model::Independent) => {
                "contention: messages do not affect each other, regardless of links, buses and sharing"
            }
            Shared(Model::ClosedLoop | Model::AlphaFair) => "losses, slow start, other traffic",
            Shared(Model::Packet) => "other traffic, host noise",
            Shared(_) => "the transport's windows and losses, other traffic",
        }
    }
}

impl ModelChoice {
    /// Sentences on the model and its reason, on the other rules, and on the effects that the results leave out.
    pub fn sentences(&self) -> Vec<String> {
        let met = match self.is_uncontended {
            true => "; no two messages used an interface at the same time",
            false => "",
        };
        let mut rules = Vec::new();
        rules.extend(self.collectives.map(|how| match how {
            "formula" => "collectives by formula".to_owned(),
            "algorithm" => "collectives by the given algorithms".to_owned(),
            library => format!("collectives as in {library}"),
        }));
        let progress = self.progress;
        rules.extend(progress.map(|progress| format!("progress {}", progress.name())));
        rules.extend(self.inside.map(|source| format!("inside nodes {source}")));
        let mut all = vec![format!("model {}: {}{met}", self.name(), self.reason)];
        all.extend((!rules.is_empty()).then(|| rules.join(", ")));
        all.push(format!("left out: {}", self.leaves_out()));
        all
    }
}

impl fmt::Display for ModelChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentences().join("; "))
    }
}

fn has_links_or_buses(network: &Network) -> bool {
    let machine = &network.machine;
    machine.buses > 0
        || machine.further_sites.iter().any(|site| site.buses > 0)
        || machine
            .nodes
            .iter()
            .any(|group| links(group) + group.intra_buses > 0)
}

fn links(group: &NodeGroup) -> u32 {
    group.in_links + group.out_links + group.intra_in_links + group.intra_out_links
}
