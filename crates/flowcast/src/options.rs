//! Options of predictions, and the ways in which the collectives of a program are carried out.

use flowcast_network::{
    algorithm::{AlgorithmTable, Base},
    machine::Mapping,
    network::Network,
    sharing::{SharingError, model::Model},
};
use flowcast_program::{
    Program, ReadOptions, TraceError,
    expand::{Expanded, Expansion, NonBlocking},
};
use flowcast_replay::loggops::Loggops;
use flowcast_traffic::packet::seeds::Runs;
use flowcast_units::Bytes;

use crate::RailsOptions;

/// Options for the prediction of a trace or a pattern. The default takes everything from the input and the network.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Options {
    /// Model of contention between concurrent messages.
    pub contention: Contention,
    /// Node of each rank. The default is the network's own mapping, or one rank on each node if the network has none.
    pub mapping: Option<Mapping>,
    /// Size from which messages wait for their receiver, regardless of the trace.
    pub rendezvous_from: Option<Bytes>,
    /// Way in which collective operations are carried out.
    pub collectives: Collectives,
    /// For GOAL schedules: LogGOPSim's parameters instead of the network's.
    pub loggops: Option<Loggops>,
    /// For patterns: `true` if flow cuts reject more than two flows in one direction of a node, which their paper does not
    /// define.
    pub is_strict: bool,
    /// For patterns: `true` to keep the share of each flow over time, and the reason why it is not larger
    /// ([`Prediction::intervals`](crate::flows::concurrent::FlowsPrediction::intervals)).
    pub keeps_intervals: bool,
    /// For patterns under the packet model: runs with random starts and random times of hosts.
    pub runs: Option<Runs>,
    /// For programs: further networks that carry messages in addition to the first.
    pub rails: RailsOptions,
    /// Threads that prepare the trace, and that solve parts of a shared network concurrently; 0 means 1. The result does not
    /// depend on their number.
    pub threads: usize,
}

/// Model of contention between concurrent messages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Contention {
    /// The network decides ([`ModelChoice`](crate::ModelChoice)).
    #[default]
    Automatic,
    /// For programs: Dimemas' rules, with links, buses and processors if the network limits them (Badia, Labarta, Girona).
    Limits,
    /// For schedules: LogGOPSim's rules, under which only the interfaces of sender and receiver are occupied (Hoefler et
    /// al.).
    Loggops,
    /// Messages share the network by a model. Links, buses and processors also count if the network limits them.
    Shared(Model),
}

impl Contention {
    /// Returns the contention of this name: `limits`, `loggops`, or a sharing model.
    ///
    /// # Errors
    /// Unknown name of a model.
    pub fn named(name: &str) -> Result<Contention, SharingError> {
        match name {
            "limits" => Ok(Contention::Limits),
            "loggops" => Ok(Contention::Loggops),
            name => match Model::named(name) {
                Err(SharingError::UnknownModel { found, expected }) => {
                    Err(SharingError::UnknownModel {
                        found,
                        expected: format!("limits, loggops, {expected}"),
                    })
                }
                model => model.map(Contention::Shared),
            },
        }
    }

    /// The sharing model, if there is one.
    pub fn model(self) -> Option<Model> {
        match self {
            Contention::Shared(model) => Some(model),
            Contention::Automatic | Contention::Limits | Contention::Loggops => None,
        }
    }
}

/// Way in which collective operations are carried out.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Collectives {
    /// Messages of the MPI library under which a recording was made, or of Open MPI 4.1 for other traces. The formula
    /// applies on networks that prescribe Dimemas' rules or have their own values for the formula, and instead of more than
    /// [`MOST_MESSAGES`].
    #[default]
    Automatic,
    /// Dimemas' formula gives their time; no messages are sent.
    Formula,
    /// Messages, with the algorithms that Open MPI 4.1 chooses.
    OpenMpi,
    /// Messages, with the algorithms that MPICH 4.0 chooses.
    Mpich,
    /// Messages, with the algorithms of the network file; where it names none, those of the recording's library or of Open
    /// MPI.
    OfNetwork,
    /// Messages, with the algorithms of this table; where it names none, those of its base.
    Table(AlgorithmTable),
}

/// Largest number of messages that replace a program's collectives unless they are requested. At 55 bytes each, and about a
/// microsecond each under a sharing model, they take a gigabyte and half a minute.
pub const MOST_MESSAGES: u64 = 20_000_000;

/// Result of carrying out the collectives of a program.
pub struct CollectivesExpansion {
    /// The program with its collectives as messages; `None` if the formula applies or there are no collectives.
    pub expanded: Option<Expanded>,
    /// Way in which they were carried out.
    pub way: CollectivesWay,
}

/// Way in which the collectives of a program are carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CollectivesWay {
    /// Name in accuracy records, after the model: `formula`, `openmpi`, `mpich` or `algorithm`.
    pub name: &'static str,
    /// `true` if the program has collectives.
    pub is_used: bool,
    /// Number of collectives that keep their formula although messages were requested: their communicator names a rank
    /// twice.
    pub kept: u64,
    /// Number of messages if it exceeds [`MOST_MESSAGES`], so that the formula applies instead.
    pub too_many: Option<u64>,
}

impl CollectivesWay {
    /// Way in which the formula of the network replaces the messages of a program's collectives.
    pub fn formula(program: &Program) -> CollectivesWay {
        CollectivesWay {
            name: "formula",
            is_used: program.collectives() > 0,
            kept: 0,
            too_many: None,
        }
    }
}

/// A named way of carrying out collectives.
#[derive(Debug)]
pub struct NamedCollectives {
    /// Name in options, scenarios and Python.
    pub name: &'static str,
    /// Description in help texts.
    pub help: &'static str,
    /// The way in which collectives are carried out.
    pub collectives: Collectives,
}

impl Collectives {
    /// All named ways, which options accept and help texts list.
    pub fn named() -> [NamedCollectives; 4] {
        [
            (
                "formula",
                "Dimemas' formula, no messages",
                Collectives::Formula,
            ),
            (
                Base::OpenMpi.name(),
                "messages as in Open MPI 4.1",
                Collectives::OpenMpi,
            ),
            (
                Base::Mpich.name(),
                "messages as in MPICH 4.0",
                Collectives::Mpich,
            ),
            (
                "algorithm",
                "messages by the network file's algorithms or, where it names none, as in the recording's library \
                 or Open MPI",
                Collectives::OfNetwork,
            ),
        ]
        .map(|(name, help, collectives)| NamedCollectives {
            name,
            help,
            collectives,
        })
    }

    /// Description of [`Collectives::Automatic`] for help texts.
    pub fn automatic_help() -> String {
        format!(
            "by default messages as in the MPI library of a recording, or as in `{}` for other traces; the formula on \
             networks whose file names the model limits or has a formula, and instead of more than {} million messages",
            Base::default().name(),
            MOST_MESSAGES / 1_000_000
        )
    }

    fn name(&self, program: &Program) -> &'static str {
        match self {
            Collectives::Automatic => program.library().unwrap_or_default().name(),
            Collectives::Formula => "formula",
            Collectives::OpenMpi => Base::OpenMpi.name(),
            Collectives::Mpich => Base::Mpich.name(),
            Collectives::OfNetwork | Collectives::Table(_) => "algorithm",
        }
    }

    /// Algorithms for a program; `None` if the formula applies or the program has no collectives.
    pub fn table(&self, program: &Program, network: Option<&Network>) -> Option<AlgorithmTable> {
        if program.collectives() == 0 || self.takes_formula(program, network) {
            return None;
        }
        let table = match self {
            Collectives::Automatic | Collectives::Formula => of_library(program),
            Collectives::OpenMpi => AlgorithmTable::from_base(Base::OpenMpi),
            Collectives::Mpich => AlgorithmTable::from_base(Base::Mpich),
            Collectives::OfNetwork => {
                of_network(network).map_or_else(|| of_library(program), AlgorithmTable::with_base)
            }
            Collectives::Table(table) => table.clone().with_base(),
        };
        let reduction = network.and_then(|network| network.collectives.reduction);
        Some(AlgorithmTable {
            reduction: reduction.unwrap_or(table.reduction),
            ..table
        })
    }

    /// Source of the algorithms for a program's collectives, and the reason for it.
    pub fn source(&self, program: &Program, network: Option<&Network>) -> String {
        match (self, of_network(network), program.library()) {
            (Collectives::Table(table), ..) => of_table("the", table),
            (Collectives::OfNetwork, Some(table), _) => of_table("the network's", table),
            (Collectives::OpenMpi | Collectives::Mpich, ..) => {
                format!("algorithms of {}, as requested", self.name(program))
            }
            (_, _, Some(library)) => {
                format!(
                    "algorithms of {}, which the recording names",
                    library.name()
                )
            }
            (_, _, None) => format!(
                "algorithms of {}: the trace names no library with known algorithms",
                Base::default().name()
            ),
        }
    }

    fn takes_formula(&self, program: &Program, network: Option<&Network>) -> bool {
        match self {
            Collectives::Formula => true,
            Collectives::Automatic => network.is_some_and(|network| has_formula(program, network)),
            _ => false,
        }
    }

    /// Carries out the collectives of a program.
    ///
    /// # Errors
    /// [`TraceError::Limit`] for more messages than a program can hold.
    pub fn carry_out(
        &self,
        program: &Program,
        network: Option<&Network>,
        threads: usize,
    ) -> Result<CollectivesExpansion, TraceError> {
        let formula = CollectivesWay::formula(program);
        let name = if self.takes_formula(program, network) {
            formula.name
        } else {
            self.name(program)
        };
        let messages_way = CollectivesWay { name, ..formula };
        let Some(table) = self.table(program, network) else {
            return Ok(CollectivesExpansion {
                expanded: None,
                way: messages_way,
            });
        };
        let expansion = Expansion::new(program, &table, NonBlocking::Expanded);
        let messages = expansion.messages();
        if *self == Collectives::Automatic && messages > MOST_MESSAGES {
            return Ok(CollectivesExpansion {
                expanded: None,
                way: CollectivesWay {
                    too_many: Some(messages),
                    ..formula
                },
            });
        }
        let expanded = expansion.carry_out(ReadOptions {
            threads: threads.max(1),
        })?;
        let way = CollectivesWay {
            kept: expanded.kept,
            ..messages_way
        };
        Ok(CollectivesExpansion {
            expanded: Some(expanded),
            way,
        })
    }
}

fn of_table(whose: &str, table: &AlgorithmTable) -> String {
    let base = table.base.name();
    format!("algorithms of {whose} table, or of {base} where the table has no entry")
}

/// Algorithms of the library under which a recording was made, or the default ones.
pub(crate) fn of_library(program: &Program) -> AlgorithmTable {
    AlgorithmTable::from_base(program.library().unwrap_or_default())
}

fn of_network(network: Option<&Network>) -> Option<&AlgorithmTable> {
    network?.collectives.algorithms.as_ref()
}

/// `true` if a formula gives the cost of a program's collectives by default. Dimemas' rules always use the formula, and a
/// network may have measured values for it. A recording follows the formula only under Dimemas' rules, because its library
/// is known.
fn has_formula(program: &Program, network: &Network) -> bool {
    network.sharing.limits || (program.library().is_none() && network.collectives.has_own_formula())
}
