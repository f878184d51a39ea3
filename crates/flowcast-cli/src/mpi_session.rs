//! Processes of this program that a launcher has started as MPI ranks. They are controlled by the standard streams of rank
//! 0.

use std::{
    collections::BTreeMap,
    env,
    io::{self, BufRead, BufReader, Write},
    process::{Child, ChildStdin, Command, Stdio},
    sync::mpsc::{Receiver, RecvTimeoutError, channel},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Result, bail};
use flowcast::{
    model::cluster::flow::Flow,
    units::{Node, Time},
};
use flowcast_measure::{
    lab::{FlowTimes, Lab, NodeOf, host},
    mpi::{CarriedMessage, MOST_FLOWS, Order, Reply},
};

use serde_json::json;

use crate::commands::lab::explained;
use flowcast_terminal::{exit::EnvironmentLacks, say};

/// Subcommand that runs a rank.
pub(crate) const RANK: &str = "mpi-rank";

/// Maximum start time of a launcher.
const START: Duration = Duration::from_secs(60);
/// Maximum time for the ranks to end.
const END: Duration = Duration::from_secs(5);

/// Ranks that wait for orders.
#[derive(Debug)]
pub(crate) struct MpiSession {
    child: Child,
    orders: Option<ChildStdin>,
    replies: Receiver<String>,
    version: String,
    /// First rank of each node.
    ranks: Vec<u32>,
}

impl MpiSession {
    /// Starts one rank on each node of a lab with Open MPI's launcher.
    pub(crate) fn in_lab(lab: &Lab) -> Result<MpiSession> {
        let nodes = lab.spec().cluster.nodes;
        let mut command = lab.command_in(Node(0), "mpirun").map_err(explained)?;
        command
            .args(["-np", &nodes.to_string(), "--map-by", "node"])
            .envs(lab.launcher_environment());
        let mut session = MpiSession::start(command)?;
        let hosts: Vec<String> = lab.spec().nodes().map(host).collect();
        session.ranks = session.first_ranks(&hosts)?;
        Ok(session)
    }

    /// Starts ranks by the command line of a launcher. The host of the first rank is node 0, the next different host node 1,
    /// and so on; or each rank is a node. Returns the host of each node, too.
    pub(crate) fn with_launcher(
        words: &[String],
        nodes: NodeOf,
    ) -> Result<(MpiSession, Vec<String>)> {
        let mut session = MpiSession::start(launched(words)?)?;
        let mut hosts: Vec<String> = Vec::new();
        for (host, rank) in session.hosts()?.into_iter().zip(0..) {
            if nodes == NodeOf::Rank || !hosts.contains(&host) {
                hosts.push(host);
                session.ranks.push(rank);
            }
        }
        Ok((session, hosts))
    }

    fn start(mut command: Command) -> Result<MpiSession> {
        command
            .arg(env::current_exe()?)
            .arg(RANK)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = start(&mut command)?;
        let (sender, replies) = channel();
        let output = BufReader::new(child.stdout.take().expect("it is piped"));
        thread::spawn(move || {
            output
                .lines()
                .map_while(Result::ok)
                .try_for_each(|line| sender.send(line))
        });
        let orders = child.stdin.take();
        let mut session = MpiSession {
            child,
            orders,
            replies,
            version: String::new(),
            ranks: Vec::new(),
        };
        match session.reply(START) {
            Ok(Reply::Ready(version)) => session.version = version,
            Ok(other) => bail!("found `{other:?}` from rank 0, expected `ready`"),
            Err(error) => bail!(EnvironmentLacks(format!(
                "the MPI ranks did not start ({error}); expected mpirun and the library of Open MPI or MPICH"
            ))),
        }
        Ok(session)
    }

    /// Name and version of the MPI library.
    pub(crate) fn version(&self) -> &str {
        &self.version
    }

    fn hosts(&mut self) -> Result<Vec<String>> {
        match self.reply(START)? {
            Reply::Hosts(hosts) => Ok(hosts),
            other => bail!("found `{other:?}` from rank 0, expected `hosts`"),
        }
    }

    fn first_ranks(&mut self, hosts: &[String]) -> Result<Vec<u32>> {
        let mut first = BTreeMap::new();
        for (host, rank) in self.hosts()?.into_iter().zip(0..) {
            first.entry(host).or_insert(rank);
        }
        let ranks: Option<Vec<u32>> = hosts.iter().map(|host| first.get(host).copied()).collect();
        ranks.ok_or_else(|| {
            EnvironmentLacks(format!(
                "found ranks on {first:?}, expected one on each node"
            ))
            .into()
        })
    }

    /// Carries flows between nodes once.
    pub(crate) fn carry(
        &mut self,
        flows: &[Flow],
        timeout: Duration,
    ) -> io::Result<Vec<FlowTimes>> {
        if flows.len() > MOST_FLOWS {
            return Err(input_error(format!(
                "found {} flows, expected at most {MOST_FLOWS}",
                flows.len()
            )));
        }
        let order = Order(
            flows
                .iter()
                .map(|flow| {
                    Ok(CarriedMessage {
                        from: self.rank(flow.src)?,
                        to: self.rank(flow.dst)?,
                        bytes: flow.size.0,
                        start: flow.start.as_nanos().round() as u64,
                    })
                })
                .collect::<io::Result<_>>()?,
        );
        let orders = self
            .orders
            .as_mut()
            .expect("orders are taken until the end");
        writeln!(orders, "{}", json!(order)).and_then(|()| orders.flush())?;
        let last = flows
            .iter()
            .map(|flow| flow.start.as_seconds())
            .fold(0.0, f64::max);
        match self.reply(timeout + Duration::from_secs_f64(last))? {
            Reply::FlowTimes(times) if times.len() == flows.len() => Ok(times
                .into_iter()
                .map(|(start, end)| FlowTimes {
                    start: Time::from_nanos(start as f64),
                    end: Time::from_nanos(end as f64),
                })
                .collect()),
            other => Err(io::Error::other(format!(
                "found `{other:?}` from rank 0, expected the times of the flows"
            ))),
        }
    }

    fn rank(&self, node: Node) -> io::Result<u32> {
        let found = self.ranks.get(node.index()).copied();
        found.ok_or_else(|| {
            input_error(format!(
                "found node {node}, expected one below {}",
                self.ranks.len()
            ))
        })
    }

    /// Waits for the next line of rank 0 that is a reply.
    fn reply(&mut self, timeout: Duration) -> io::Result<Reply> {
        let until = Instant::now() + timeout;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let line = self
                .replies
                .recv_timeout(left)
                .map_err(|error| match error {
                    RecvTimeoutError::Timeout => io::Error::new(
                        io::ErrorKind::TimedOut,
                        format!("no answer within {timeout:?}"),
                    ),
                    RecvTimeoutError::Disconnected => {
                        io::Error::new(io::ErrorKind::UnexpectedEof, "the launcher has ended")
                    }
                })?;
            match serde_json::from_str(&line) {
                Ok(reply) => return Ok(reply),
                Err(_) => say!("{line}"),
            }
        }
    }
}

fn input_error(problem: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, problem)
}

impl Drop for MpiSession {
    /// Closes the orders, which ends the ranks. Ranks that do not end are killed.
    fn drop(&mut self) {
        self.orders = None;
        end(&mut self.child);
    }
}

/// Command of a launcher, to which this program's name and arguments will be added.
pub(crate) fn launched(words: &[String]) -> Result<Command> {
    let Some((program, arguments)) = words.split_first() else {
        bail!(
            "--launcher: found nothing, expected a launcher and its options, such as `mpirun -np 8`"
        );
    };
    let mut command = Command::new(program);
    command.args(arguments);
    Ok(command)
}

/// Starts a launcher.
pub(crate) fn start(command: &mut Command) -> Result<Child> {
    let program = command.get_program().to_string_lossy().into_owned();
    command
        .spawn()
        .map_err(|error| EnvironmentLacks(format!("cannot start {program}: {error}")).into())
}

/// Waits for a launcher whose ranks were ordered to end. Kills it after a timeout.
pub(crate) fn end(child: &mut Child) {
    let until = Instant::now() + END;
    while Instant::now() < until {
        if !matches!(child.try_wait(), Ok(None)) {
            return;
        }
        thread::sleep(Duration::from_millis(10));
    }
    let _ = child.kill();
    let _ = child.wait();
}
