//! How a trace is predicted.

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

/// How a trace or a pattern is predicted. The default takes everything from the input and the network.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Options {
    /// What concurrent messages do to each other.
    pub contention: Contention,
    /// The node of each rank; without it the network's own mapping holds, without either one rank runs on each node.
    pub mapping: Option<Mapping>,
    /// Messages of at least this size wait for their receiver, whatever the trace says.
    pub rendezvous_from: Option<Bytes>,
    /// How collective operations are carried out.
    pub collectives: Collectives,
    /// For GOAL schedules: LogGOPSim's parameters in place of the network's.
    pub loggops: Option<Loggops>,
    /// For patterns: flow cuts refuse more than two flows in one direction of a node, which their paper does not define.
    pub is_strict: bool,
    /// For patterns: keep what each flow got when, and why not more
    /// ([`Prediction::intervals`](crate::flows::concurrent::FlowsPrediction::intervals)).
    pub keeps_intervals: bool,
    /// For patterns under the packet model: so many runs with random starts and random times of hosts.
    pub runs: Option<Runs>,
    /// For programs: further networks that carry messages beside the first.
    pub rails: RailsOptions,
    /// Threads that prepare the trace, and that solve parts of a shared network side by side; 1 if 0. The result does not
    /// depend on it.
    pub threads: usize,
}

/// What concurrent messages do to each other.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Contention {
    /// What the network calls for ([`ModelChoice`](crate::ModelChoice)).
    #[default]
    Automatic,
    /// Programs: Dimemas' rules: links, buses and processors where the network limits them (Badia, Labarta, Girona).
    Limits,
    /// Schedules: LogGOPSim's rules: the interfaces of sender and receiver are busy, nothing else (Hoefler et al.).
    Loggops,
    /// Messages share the network by a model; links, buses and processors count as well where the network limits them.
    Shared(Model),
}

impl Contention {
    /// By name: `limits`, `loggops`, or a sharing model.
    ///
    /// # Errors
    /// No model has this name.
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

/// How collective operations are carried out.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Collectives {
    /// By messages: as the MPI library does it that a recording was made under, of other traces as Open MPI 4.1 does it. By
    /// formula on networks that prescribe Dimemas' rules or have values of their own for the formula, and where there
    /// would be more than [`MOST_MESSAGES`].
    #[default]
    Automatic,
    /// Their time is what Dimemas' formula says; no messages are sent.
    Formula,
    /// By messages, with the algorithms that Open MPI 4.1 chooses.
    OpenMpi,
    /// By messages, with the algorithms that MPICH 4.0 chooses.
    Mpich,
    /// By messages, with the algorithms of the network file; Open MPI's where it names none.
    OfNetwork,
    /// By messages, with these algorithms; those of its base where it names none.
    Table(AlgorithmTable),
}

/// More messages than this do not take the place of a program's collectives unless they are asked for: at 55 bytes each, and
/// about a microsecond each under a sharing model, they take a gigabyte and half a minute.
pub const MOST_MESSAGES: u64 = 20_000_000;

/// A program's collectives, carried out.
pub struct CarriedOut {
    /// The program with its collectives as messages; none where the formula holds.
    pub expanded: Option<Expanded>,
    /// How it was done.
    pub way: CollectivesWay,
}

/// How the collectives of a program are carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CollectivesWay {
    /// As ledgers have it behind the model: `formula`, `openmpi`, `mpich` or `algorithm`.
    pub name: &'static str,
    /// Whether there are any.
    pub is_used: bool,
    /// Those that keep their formula although messages were asked for: their communicator names a rank twice.
    pub kept: u64,
    /// More messages than [`MOST_MESSAGES`], for which the formula stands.
    pub too_many: Option<u64>,
}

impl CollectivesWay {
    /// The formula of a program's network.
    pub fn formula(program: &Program) -> CollectivesWay {
        CollectivesWay {
            name: "formula",
            is_used: program.collectives() > 0,
            kept: 0,
            too_many: None,
        }
    }
}

/// A way of carrying out collectives that has a name.
#[derive(Debug)]
pub struct NamedCollectives {
    /// The name in options, scenarios and Python.
    pub name: &'static str,
    /// The words of help texts.
    pub help: &'static str,
    /// The way.
    pub collectives: Collectives,
}

impl Collectives {
    /// The ways with a name, which options accept and help texts list.
    pub fn named() -> [NamedCollectives; 4] {
        [
            (
                "formula",
                "Dimemas' formula, no messages",
                Collectives::Formula,
            ),
            (
                Base::OpenMpi.name(),
                "the messages of Open MPI 4.1",
                Collectives::OpenMpi,
            ),
            (
                Base::Mpich.name(),
                "the messages of MPICH 4.0",
                Collectives::Mpich,
            ),
            (
                "algorithm",
                "the messages of the network file's algorithms, those of the recording's library or Open MPI where it names none",
                Collectives::OfNetwork,
            ),
        ]
        .map(|(name, help, collectives)| NamedCollectives {
            name,
            help,
            collectives,
        })
    }

    /// The behaviour of [`Collectives::Automatic`], for help texts.
    pub fn automatic_help() -> String {
        format!(
            "by default the messages of the MPI library under which a recording was made, else those of `{}`; the formula on \
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

    /// The algorithms for a program; none where the formula holds or there is nothing to carry out.
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

    /// Whose algorithms a program's collectives take, and why.
    pub fn source(&self, program: &Program, network: Option<&Network>) -> String {
        match (self, of_network(network), program.library()) {
            (Collectives::Table(table), ..) => of_table("the", table),
            (Collectives::OfNetwork, Some(table), _) => of_table("the network's", table),
            (Collectives::OpenMpi | Collectives::Mpich, ..) => {
                format!("algorithms of {}, as asked for", self.name(program))
            }
            (_, _, Some(library)) => {
                format!(
                    "algorithms of {}, which the recording names",
                    library.name()
                )
            }
            (_, _, None) => format!(
                "algorithms of {}: the trace names no library whose algorithms are known",
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
    ) -> Result<CarriedOut, TraceError> {
        let formula = CollectivesWay::formula(program);
        let name = if self.takes_formula(program, network) {
            formula.name
        } else {
            self.name(program)
        };
        let messages_way = CollectivesWay { name, ..formula };
        let Some(table) = self.table(program, network) else {
            return Ok(CarriedOut {
                expanded: None,
                way: messages_way,
            });
        };
        let expansion = Expansion::new(program, &table, NonBlocking::Expanded);
        let messages = expansion.messages();
        if *self == Collectives::Automatic && messages > MOST_MESSAGES {
            return Ok(CarriedOut {
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
        Ok(CarriedOut {
            expanded: Some(expanded),
            way,
        })
    }
}

fn of_table(whose: &str, table: &AlgorithmTable) -> String {
    let base = table.base.name();
    format!("algorithms of {whose} table, and of {base} where it has none")
}

/// The algorithms of the library under which a recording was made, or the default ones.
pub(crate) fn of_library(program: &Program) -> AlgorithmTable {
    AlgorithmTable::from_base(program.library().unwrap_or_default())
}

fn of_network(network: Option<&Network>) -> Option<&AlgorithmTable> {
    network?.collectives.algorithms.as_ref()
}

/// Whether a program's collectives take what a formula says unless asked for otherwise: Dimemas' rules have no other, and a
/// network may have measured values for it. A recording's library is known.
fn has_formula(program: &Program, network: &Network) -> bool {
    network.sharing.limits || (program.library().is_none() && network.collectives.has_own_formula())
}
