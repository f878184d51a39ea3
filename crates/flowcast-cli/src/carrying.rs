//! Sends the flows of a pattern over a real network: by TCP between the nodes of a testbed or of other hosts, or by MPI
//! ranks. A pattern of several steps starts each step when the last flow of the one before has ended.

use anyhow::Result;
use flowcast::model::cluster::flow::Flow;
use flowcast_lab::{Carried, Carrier, Lab, LabError, PatternOptions, PatternRun, TcpCarrier, repeat};

use crate::commands::lab::explained;
use crate::mpi_session::MpiSession;
use crate::repeating::Over;
use crate::tcp_session::TcpSession;

/// The transport of the flows.
#[derive(Debug)]
pub(crate) enum Means<'a> {
    /// Connections of this process.
    Tcp(&'a Lab),
    /// MPI ranks, which stay between patterns.
    Mpi(Box<MpiSession>),
    /// Processes on other hosts, which stay between patterns.
    Hosts(Box<TcpSession>),
}

impl<'a> Means<'a> {
    /// In a lab.
    pub(crate) fn in_lab(lab: &'a Lab, over: Over) -> Result<Means<'a>> {
        Ok(match over {
            Over::Tcp => Means::Tcp(lab),
            Over::Mpi => Means::Mpi(Box::new(MpiSession::in_lab(lab)?)),
        })
    }

    /// Name and version of the MPI library, if there is one.
    pub(crate) fn mpi_version(&self) -> Option<&str> {
        match self {
            Means::Tcp(_) | Means::Hosts(_) => None,
            Means::Mpi(session) => Some(session.version()),
        }
    }

    /// Carries the steps, each after the one before, until the durations of all flows are known. Flows of the run are
    /// those of the first step, then those of the second, and so on.
    pub(crate) fn run(&mut self, steps: &[Vec<Flow>], options: &PatternOptions) -> Result<PatternRun> {
        let run = match self {
            Means::Tcp(lab) => {
                let connect = |flows: &Vec<Flow>| TcpCarrier::connect(lab, flows, options);
                steps
                    .iter()
                    .map(connect)
                    .collect::<Result<Vec<_>, _>>()
                    .and_then(|steps| repeat(&mut Steps(steps), options))
            }
            Means::Mpi(session) => {
                let mut ranks = Ranks { session, steps, options: *options };
                repeat(&mut ranks, options)
            }
            Means::Hosts(session) => return session.run(steps, options),
        };
        run.map_err(explained)
    }
}

/// One step after the other: each begins when the last flow of the one before has ended.
struct Steps(Vec<TcpCarrier>);

impl Carrier for Steps {
    fn carry(&mut self) -> Result<Vec<Carried>, LabError> {
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
    options: PatternOptions,
}

impl Carrier for Ranks<'_> {
    fn carry(&mut self) -> Result<Vec<Carried>, LabError> {
        let mut all = Vec::new();
        for step in self.steps {
            let refused = |source| LabError::System { what: "carrying a pattern by MPI", source };
            all.extend(self.session.carry(step, self.options.patience).map_err(refused)?);
        }
        Ok(all)
    }
}
