//! Transport of the flows of a pattern over a real network: by TCP between the nodes of a lab or other hosts, or by MPI
//! ranks. In a pattern of several steps, a step starts when the last flow of the step before has ended.

use std::{net::IpAddr, time::Duration};

use anyhow::{Result, bail, ensure};
use clap::Args;
use flowcast::model::cluster::flow::Flow;
use flowcast_measure::lab::{
    Carrier, FlowTimes, Lab, LabError, LabSpec, NodeOf, PatternOptions, PatternRun, TcpCarrier,
    repeat,
};

use crate::{
    commands::lab::{explained, load},
    core_pairs::CoreList,
    mpi_session::MpiSession,
    tcp_session::TcpSession,
};
use flowcast_terminal::{repeating::Over, token::TokenArgs};

/// Default of `--lab`: a built-in profile.
const LAB: &str = "asymmetric";

/// Nodes of a lab, or hosts of a launcher, between which messages are carried.
#[derive(Debug, Args)]
pub(crate) struct WhereArgs {
    /// Built-in profile or lab file
    #[arg(
        long,
        value_name = "PROFILE|FILE",
        default_value = LAB,
        conflicts_with = "launcher"
    )]
    pub lab: String,
    /// Replace a field of the lab, such as tcp.window=32KiB (repeatable)
    #[arg(long, value_name = "KEY=VALUE", conflicts_with = "launcher")]
    lab_set: Vec<String>,
    /// Transport of the messages [default: tcp in a lab, mpi with --launcher]
    #[arg(long, value_enum)]
    over: Option<Over>,
    /// Run on real machines instead of a lab: launcher command, such as 'mpirun -np 8'
    #[arg(long, value_name = "WORDS")]
    pub launcher: Option<String>,
    /// With --launcher: treat each rank as a node, even if several share a host
    #[arg(long, requires = "launcher")]
    node_per_rank: bool,
    /// With --launcher and --over tcp: address in the network on which ranks listen, instead of the addresses of the
    /// hosts' names
    #[arg(long, value_name = "ADDR", requires = "launcher")]
    listen: Option<IpAddr>,
    #[command(flatten)]
    token: TokenArgs,
}

impl WhereArgs {
    /// Reads the profile or file of `--lab` and replaces the fields of `--lab-set`.
    pub(crate) fn spec(&self) -> Result<LabSpec> {
        load(&self.lab, &self.lab_set)
    }

    /// Transport between the hosts of a launcher, and the names of the hosts.
    pub(crate) fn between_hosts(&self, launcher: &str) -> Result<(Medium<'static>, Vec<String>)> {
        ensure!(self.over() != Over::Shm, ONE_MACHINE);
        if self.over() == Over::Tcp {
            let session = self.by_tcp(launcher)?;
            let hosts = session.names();
            return Ok((Medium::Hosts(Box::new(session)), hosts));
        }
        ensure!(
            self.listen.is_none(),
            "--listen: found --over mpi, expected --over tcp: MPI libraries have their own options for addresses"
        );
        let (session, hosts) = MpiSession::with_launcher(&words(launcher), self.nodes())?;
        Ok((Medium::Mpi(Box::new(session)), hosts))
    }

    /// Session with ranks of a launcher that communicate by TCP.
    pub(crate) fn by_tcp(&self, launcher: &str) -> Result<TcpSession> {
        TcpSession::with_launcher(&words(launcher), self.nodes(), self.listen, &self.token)
    }

    /// `true` if a lab or a launcher was requested.
    pub(crate) fn is_elsewhere(&self) -> bool {
        self.launcher.is_some() || self.lab != LAB || !self.lab_set.is_empty()
    }

    fn nodes(&self) -> NodeOf {
        if self.node_per_rank {
            NodeOf::Rank
        } else {
            NodeOf::Host
        }
    }

    /// Transport of the messages.
    pub(crate) fn over(&self) -> Over {
        self.over.unwrap_or(if self.launcher.is_some() {
            Over::Mpi
        } else {
            Over::Tcp
        })
    }
}

const ONE_MACHINE: &str = "--over: found shm, expected tcp or mpi: only `measure p2p` and `measure pairs` use shared memory, without a lab or a launcher";

fn words(launcher: &str) -> Vec<String> {
    launcher.split_whitespace().map(str::to_owned).collect()
}

/// Transport of the flows.
#[derive(Debug)]
pub(crate) enum Medium<'a> {
    /// TCP connections of this process.
    Tcp(&'a Lab),
    /// MPI ranks, which are kept between patterns.
    Mpi(Box<MpiSession>),
    /// Processes on other hosts, which are kept between patterns.
    Hosts(Box<TcpSession>),
    /// Two processes on cores of this machine, created for each pair.
    Cores(CoreList),
}

impl<'a> Medium<'a> {
    /// Transport in a lab.
    pub(crate) fn in_lab(lab: &'a Lab, over: Over) -> Result<Medium<'a>> {
        Ok(match over {
            Over::Tcp => Medium::Tcp(lab),
            Over::Mpi => Medium::Mpi(Box::new(MpiSession::in_lab(lab)?)),
            Over::Shm => bail!(ONE_MACHINE),
        })
    }

    /// Name and version of the MPI library, if one is used.
    pub(crate) fn mpi_version(&self) -> Option<&str> {
        match self {
            Medium::Tcp(_) | Medium::Hosts(_) | Medium::Cores(_) => None,
            Medium::Mpi(session) => Some(session.version()),
        }
    }

    /// Executes the steps, one after the other, and repeats them until the durations of all flows are precise enough. The
    /// flows of the run are those of the first step, followed by those of the second, and so on.
    pub(crate) fn run(
        &mut self,
        steps: &[Vec<Flow>],
        options: &PatternOptions,
    ) -> Result<PatternRun> {
        let run = match self {
            Medium::Tcp(lab) => steps
                .iter()
                .map(|flows| TcpCarrier::connect(lab, flows, options))
                .collect::<Result<Vec<_>, _>>()
                .and_then(|steps| repeat(&mut CarryingSteps(steps), options)),
            Medium::Mpi(session) => {
                let mut ranks = Ranks {
                    session,
                    steps,
                    timeout: options.timeout,
                };
                repeat(&mut ranks, options)
            }
            Medium::Hosts(session) => return session.run(steps, options),
            Medium::Cores(cores) => repeat(&mut cores.pair(steps)?, options),
        };
        run.map_err(explained)
    }
}

/// Steps that are carried one after the other: each starts when the last flow of the step before has ended.
struct CarryingSteps(Vec<TcpCarrier>);

impl Carrier for CarryingSteps {
    fn carry(&mut self) -> Result<Vec<FlowTimes>, LabError> {
        let mut all = Vec::new();
        for step in &mut self.0 {
            all.extend(step.carry()?);
        }
        Ok(all)
    }
}

struct Ranks<'a> {
    session: &'a mut MpiSession,
    steps: &'a [Vec<Flow>],
    timeout: Duration,
}

impl Carrier for Ranks<'_> {
    fn carry(&mut self) -> Result<Vec<FlowTimes>, LabError> {
        let mut all = Vec::new();
        for step in self.steps {
            let carried = self.session.carry(step, self.timeout);
            all.extend(carried.map_err(|source| LabError::System {
                what: "carrying a pattern by MPI",
                source,
            })?);
        }
        Ok(all)
    }
}
