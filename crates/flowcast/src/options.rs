//! How a trace is predicted.

use flowcast_model::algorithm::{AlgorithmTable, Base};
use flowcast_model::machine::Mapping;
use flowcast_model::network::Network;
use flowcast_model::sharing::SharingError;
use flowcast_model::sharing::model::Model;
use flowcast_replay::loggops::Loggops;
use flowcast_trace::expand::{Expanded, NonBlocking, expand};
use flowcast_trace::{Program, ReadOptions, TraceError};
use flowcast_units::Bytes;

/// How a trace is predicted. The default takes everything from the trace and the network.
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
    /// Threads that prepare the trace, 1 if 0. The result does not depend on it.
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
                    Err(SharingError::UnknownModel { found, expected: format!("limits, loggops, {expected}") })
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
    /// By messages, as the MPI library does it that a recording was made under; otherwise, and on networks that prescribe
    /// Dimemas' rules, by formula.
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

impl Collectives {
    /// How the collectives of a program are carried out, as ledgers have it behind the model.
    pub fn name(&self, program: &Program, network: &Network) -> &'static str {
        match self {
            Collectives::Automatic if !network.sharing.limits => program.library().map_or("formula", Base::name),
            Collectives::Automatic | Collectives::Formula => "formula",
            Collectives::OpenMpi => Base::OpenMpi.name(),
            Collectives::Mpich => Base::Mpich.name(),
            Collectives::OfNetwork | Collectives::Table(_) => "algorithm",
        }
    }

    /// The algorithms for a program; none where the formula holds.
    pub fn table(&self, program: &Program, network: Option<&Network>) -> Option<AlgorithmTable> {
        let of_network = || network.and_then(|network| network.collectives.algorithms.clone()).unwrap_or_default();
        match self {
            Collectives::Automatic if network.is_some_and(|network| network.sharing.limits) => None,
            Collectives::Automatic => program.library().map(AlgorithmTable::of),
            Collectives::Formula => None,
            Collectives::OpenMpi => Some(AlgorithmTable::of(Base::OpenMpi)),
            Collectives::Mpich => Some(AlgorithmTable::of(Base::Mpich)),
            Collectives::OfNetwork => Some(of_network().with_base()),
            Collectives::Table(table) => Some(table.clone().with_base()),
        }
    }

    /// The program with its collectives as messages, and which algorithm carries out which; none where the formula holds.
    ///
    /// # Errors
    /// [`TraceError::Limit`] for more messages than a program can hold.
    pub fn expand(
        &self,
        program: &Program,
        network: Option<&Network>,
        threads: usize,
    ) -> Result<Option<Expanded>, TraceError> {
        let options = ReadOptions { threads: threads.max(1) };
        self.table(program, network).map(|table| expand(program, &table, NonBlocking::Expanded, options)).transpose()
    }
}
