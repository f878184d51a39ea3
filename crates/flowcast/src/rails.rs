//! Programs whose messages go over several networks at the same time.

use std::fmt;

use flowcast_network::{
    machine::Mapping,
    network::{Network, Progress},
    sharing::model::Model,
};
use flowcast_program::Program;
use flowcast_replay::{
    costs::Rendezvous,
    outcome::RailTraffic,
    placement::Placement,
    rails_transit::{ProgramRail, RailRule},
};
use flowcast_scheduler::{
    policy::{EAGER_LIMIT, MessagePolicy},
    split::SplitRule,
};
use flowcast_units::{Bytes, Rank, Rounded};

use crate::{Contention, Error, ModelChoice, Options, PreparedProgram};

/// Further networks for messages, and the policy that chooses among all networks.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RailsOptions {
    /// Further networks; empty if there is only one network.
    pub further: Vec<Network>,
    /// Policy that assigns messages to networks.
    pub policy: MessagePolicy,
}

/// Further networks, prepared for a program.
#[derive(Debug, Clone)]
pub(crate) struct FurtherRails {
    rails: Vec<ProgramRail>,
    policy: MessagePolicy,
}

/// Prediction over several networks. `Display` describes how messages were assigned to them.
#[derive(Debug, Clone, PartialEq)]
pub struct RailsPrediction {
    /// Policy that chose among them.
    pub policy: MessagePolicy,
    /// All networks, beginning with the first.
    pub rails: Vec<RailPrediction>,
}

/// Prediction for one of several networks.
#[derive(Debug, Clone, PartialEq)]
pub struct RailPrediction {
    /// Name of the network.
    pub name: String,
    /// Model of contention between its messages.
    pub model: &'static str,
    /// Traffic that it carried between nodes.
    pub traffic: RailTraffic,
}

impl Options {
    /// Rejects several networks where messages cannot use them.
    pub(crate) fn refuse_rails(&self, found: &str) -> Result<(), Error> {
        if self.rails.further.is_empty() {
            return Ok(());
        }
        let expected = "one network, or the trace of one program";
        Err(Error::option("several --rail", found, expected))
    }
}

impl RailsPrediction {
    /// Effects that the results leave out, in addition to those that the models leave out.
    pub const LEAVES_OUT: &'static str =
        "processor time for splitting messages and choosing rails, other traffic of the rails";

    /// Fraction of the bytes that a rail carried; 0 if none were sent between nodes.
    pub fn share(&self, rail: &RailPrediction) -> f64 {
        let all: f64 = self
            .rails
            .iter()
            .map(|rail| rail.traffic.bytes.0 as f64)
            .sum();
        if all == 0.0 {
            0.0
        } else {
            rail.traffic.bytes.0 as f64 / all
        }
    }
}

impl fmt::Display for RailsPrediction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rails: Vec<String> = self
            .rails
            .iter()
            .map(|rail| format!("{} ({})", rail.name, rail.model))
            .collect();
        write!(f, "rails {} by {}", rails.join(" and "), self.policy)?;
        if self.policy == MessagePolicy::default() {
            let SplitRule { from, .. } = SplitRule::inside_mpi();
            write!(
                f,
                ", messages of {} or more are split if they then arrive earlier",
                Rounded(from)
            )?;
        }
        f.write_str(match self.policy {
            MessagePolicy::Stock => ", chosen for each pair of processes as in Open MPI",
            _ => ", one scheduler for each node",
        })?;
        write!(f, ", left out: {}", RailsPrediction::LEAVES_OUT)
    }
}

impl FurtherRails {
    /// Prepares the further networks, with each rank on the same node in all of them. Returns `None` if there is only one
    /// network.
    ///
    /// # Errors
    /// A model that does not support several networks, a machine without room for the ranks.
    pub(crate) fn new(
        options: &RailsOptions,
        contention: Contention,
        program: &Program,
        placement: &Placement,
    ) -> Result<Option<FurtherRails>, Error> {
        if options.further.is_empty() {
            return Ok(None);
        }
        let nodes = Rank::all(placement.ranks()).map(|rank| placement.node(rank).0);
        let mapping = Mapping::List(nodes.collect());
        let mut rails = Vec::new();
        for network in &options.further {
            let choice = ModelChoice::for_program(contention, program, network);
            rails.push(ProgramRail {
                network: network.clone(),
                model: sharing_model(&choice)?,
                placement: Placement::of_program(&network.machine, Some(&mapping), program)?,
            });
        }
        Ok(Some(FurtherRails {
            rails,
            policy: options.policy,
        }))
    }

    pub(crate) fn networks(&self) -> impl Iterator<Item = &Network> {
        self.rails.iter().map(|rail| &rail.network)
    }
}

fn has_links(network: &Network) -> bool {
    let nodes = &network.machine.nodes;
    network.machine.buses > 0
        || nodes
            .iter()
            .any(|group| group.in_links + group.out_links > 0)
}

/// Model by which messages share one of several networks.
fn sharing_model(choice: &ModelChoice) -> Result<Model, Error> {
    choice.contention.model().ok_or_else(|| {
        Error::option(
            "--rail",
            format!("the model {} ({})", choice.name(), choice.reason),
            "a model of sharing for each rail, such as fair or packet (--model)",
        )
    })
}

impl PreparedProgram<'_> {
    /// All networks, beginning with the first; `None` if there is only one.
    ///
    /// # Errors
    /// A model that does not support several networks.
    pub(crate) fn rails(&self) -> Result<Option<(Vec<ProgramRail>, RailRule)>, Error> {
        let Some(further) = &self.further_rails else {
            return Ok(None);
        };
        let first = ProgramRail {
            network: self.network.clone(),
            model: sharing_model(&self.model)?,
            placement: self.placement.clone(),
        };
        let rule = RailRule {
            policy: further.policy,
            eager_limit: match self.rendezvous {
                Rendezvous::From(Bytes(from)) => Bytes(from.saturating_sub(1)),
                Rendezvous::AsRecorded => EAGER_LIMIT,
            },
        };
        let further = further.rails.iter().cloned();
        Ok(Some((
            std::iter::once(first).chain(further).collect(),
            rule,
        )))
    }

    /// Prediction for the networks, after a replay with this traffic.
    pub(crate) fn rails_prediction(&self, traffic: &[RailTraffic]) -> Option<RailsPrediction> {
        let further = self.further_rails.as_ref()?;
        let names = std::iter::once((&self.network.name, self.model.name())).chain(
            further
                .rails
                .iter()
                .map(|rail| (&rail.network.name, rail.model.name())),
        );
        let rails = names
            .zip(traffic)
            .map(|((name, model), traffic)| RailPrediction {
                name: name.clone(),
                model,
                traffic: *traffic,
            });
        Some(RailsPrediction {
            policy: further.policy,
            rails: rails.collect(),
        })
    }

    /// Sentences on settings of the first network that differ from those of other networks.
    pub(crate) fn disagreements(&self) -> Vec<String> {
        let own = self.network;
        let mut notes = Vec::new();
        for other in self.further_rails.iter().flat_map(FurtherRails::networks) {
            let name = &other.name;
            let [here, there] =
                [own, other].map(|network| match network.point_to_point.rendezvous_from {
                    Some(from) => format!("from {from}"),
                    None => "as in the trace".to_owned(),
                });
            if here != there {
                notes.push(format!(
                    "rendezvous follows {} ({here}), not {name} ({there})",
                    own.name
                ));
            }
            let [here, there] =
                [own, other].map(|network| Progress::name(network.point_to_point.progress));
            if here != there {
                notes.push(format!(
                    "progress follows {} ({here}), not {name} ({there})",
                    own.name
                ));
            }
            if has_links(own) || has_links(other) {
                notes.push(format!(
                    "links and buses of machines do not limit messages over {} and {name}",
                    own.name
                ));
            }
            if own.nic.overhead != other.nic.overhead || own.overheads != other.overheads {
                notes.push(format!(
                    "if {} is the first rail, messages over {name} have its overheads",
                    own.name
                ));
            }
        }
        notes
    }
}
