//! Processes of this program that a launcher has started on other hosts. They carry patterns over TCP.

use std::{
    env, io,
    net::{IpAddr, Ipv4Addr, TcpListener},
    os::fd::AsFd,
    process::{Child, Stdio},
    time::Duration,
};

use anyhow::Result;
use flowcast::model::cluster::flow::Flow;
use flowcast_measure::{
    clocks::ClockPlan,
    lab::{ClockRun, Hosts, NodeOf, PatternOptions, PatternRun, repeat},
};

use crate::{
    commands::lab::explained,
    mpi_session::{end, launched, start},
};
use flowcast_terminal::{exit::EnvironmentLacks, provenance, token::TokenArgs};

/// Subcommand that runs a rank.
const RANK: &str = "tcp-rank";

/// Hint for ranks that start but do not connect.
const TOKEN_HINT: &str = "they need the token in FLOWCAST_TOKEN, which the launcher has to pass on, or in a --token FILE \
                          that all hosts can read";

/// Maximum start time of a launcher.
const START: Duration = Duration::from_secs(60);

/// Ranks that wait for orders.
#[derive(Debug)]
pub(crate) struct TcpSession {
    child: Child,
    hosts: Option<Hosts>,
}

impl TcpSession {
    /// Starts ranks by the command line of a launcher. Ranks connect to this host by its name. Messages are sent to the
    /// hosts' names, or to their addresses in the network of `via`.
    pub(crate) fn with_launcher(
        words: &[String],
        nodes: NodeOf,
        via: Option<IpAddr>,
        token: &TokenArgs,
    ) -> Result<TcpSession> {
        let mut command = launched(words)?;
        let secret = token.given_or_new()?;
        let door = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0))?;
        let driver = format!("{}:{}", provenance::host(), door.local_addr()?.port());
        command.arg(env::current_exe()?).args([RANK, &driver]);
        token.hand_over(&mut command, secret);
        command.args(
            via.into_iter()
                .flat_map(|via| ["--via".to_owned(), via.to_string()]),
        );
        // The standard output is reserved for results.
        let output = io::stderr().as_fd().try_clone_to_owned()?;
        let child = start(command.stdin(Stdio::null()).stdout(Stdio::from(output)))?;
        let mut session = TcpSession { child, hosts: None };
        let hosts = Hosts::gather(&door, *secret.bytes(), nodes, START, &mut || {
            let status = session.child.try_wait().ok()??;
            Some(format!("the launcher has ended, {status}"))
        });
        session.hosts = Some(hosts.map_err(|error| {
            EnvironmentLacks(format!("the ranks did not start: {error} ({TOKEN_HINT})"))
        })?);
        Ok(session)
    }

    /// Host of each node.
    pub(crate) fn names(&self) -> Vec<String> {
        self.hosts.as_ref().map(Hosts::names).unwrap_or_default()
    }

    /// Synchronises the clocks of all ranks.
    pub(crate) fn synchronise_clocks(
        &mut self,
        plan: &ClockPlan,
        hold: Duration,
    ) -> Result<ClockRun> {
        let hosts = self.hosts.as_mut().expect("ranks are there until the end");
        hosts.synchronise_clocks(plan, hold).map_err(explained)
    }

    /// Repeats the steps until the durations of all flows are precise enough.
    pub(crate) fn run(
        &mut self,
        steps: &[Vec<Flow>],
        options: &PatternOptions,
    ) -> Result<PatternRun> {
        let hosts = self.hosts.as_mut().expect("ranks are there until the end");
        hosts
            .connect(steps)
            .and_then(|mut carrier| repeat(&mut carrier, options))
            .map_err(explained)
    }
}

impl Drop for TcpSession {
    /// Closes the connections, which ends the ranks. A launcher that does not end is killed.
    fn drop(&mut self) {
        self.hosts = None;
        end(&mut self.child);
    }
}
