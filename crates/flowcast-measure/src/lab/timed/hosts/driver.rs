//! Driver: gathers the ranks, orders them to connect and to start, and collects the times.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    thread,
    time::{Duration, Instant},
};

use crate::tcp::{Entrance, TOKEN};
use flowcast_network::cluster::flow::Flow;
use flowcast_units::{Node, Rank, Time};

use super::orders::{HostOrder, HostReply, Leg};
use crate::{
    lab::{
        error::LabError,
        timed::{Carrier, FlowTimes},
    },
    wire::line_of,
};

/// Lead time of the common start, in which all ranks receive the order.
const LEAD: Duration = Duration::from_millis(20);
const LEAD_PER_RANK: Duration = Duration::from_millis(1);
const EXCHANGES: usize = 12;
/// Time that a rank may take after the last start, in addition to the duration of a flow.
const TIMEOUT: Duration = Duration::from_secs(600);

/// Time within which a connection that has shown the token must introduce itself as a rank.
const INTRODUCED_WITHIN: Duration = Duration::from_secs(5);
/// Length limit of an introduction, in bytes.
const LONGEST_HELLO: u64 = 1024;

/// Ranks that count as nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeOf {
    /// The first rank of each host.
    Host,
    /// Every rank, even if several run on one host.
    Rank,
}

/// Ranks that wait for orders, one for each node.
#[derive(Debug)]
pub struct Hosts {
    pub(super) links: Vec<HostLink>,
    origin: Instant,
}

#[derive(Debug)]
pub(super) struct HostLink {
    rank: Rank,
    host: String,
    pub address: String,
    orders: TcpStream,
    replies: BufReader<TcpStream>,
}

impl Hosts {
    /// Waits for all ranks that show this token. Meanwhile, calls `is_hopeless` repeatedly, which returns the reason if no
    /// rank can arrive any more.
    ///
    /// # Errors
    /// The time `timeout` is over, or no rank can arrive any more.
    pub fn gather(
        door: &TcpListener,
        token: [u8; TOKEN],
        nodes: NodeOf,
        timeout: Duration,
        is_hopeless: &mut dyn FnMut() -> Option<String>,
    ) -> io::Result<Hosts> {
        let until = Instant::now() + timeout;
        let mut entrance = Entrance::new(door, token)?;
        let (mut links, mut size): (Vec<HostLink>, Option<u32>) = (Vec::new(), None);
        while size.is_none_or(|size| links.len() < size as usize) {
            for (link, of) in entrance
                .entered()
                .into_iter()
                .filter_map(|stream| HostLink::meet(stream).ok())
            {
                // Connections from ranks of another program are closed.
                let is_new = links.iter().all(|known| known.rank != link.rank);
                if size.is_none_or(|size| size == of) && link.rank.0 < of && is_new {
                    links.push(link);
                    size = Some(of);
                }
            }
            if let Some(why) = is_hopeless().or_else(|| {
                (Instant::now() > until)
                    .then(|| format!("{} ranks connected within {timeout:?}", links.len()))
            }) {
                return Err(io::Error::new(io::ErrorKind::TimedOut, why));
            }
            thread::sleep(Duration::from_millis(1));
        }
        links.sort_by_key(|link| link.rank);
        let mut chosen: Vec<HostLink> = Vec::new();
        for link in links {
            if nodes == NodeOf::Rank || chosen.iter().all(|known| known.host != link.host) {
                chosen.push(link);
            }
        }
        Ok(Hosts {
            links: chosen,
            origin: Instant::now(),
        })
    }

    /// Returns the host of each node.
    pub fn names(&self) -> Vec<String> {
        self.links.iter().map(|link| link.host.clone()).collect()
    }

    /// Connects the flows of all steps, each over a connection of its own.
    ///
    /// # Errors
    /// A flow names a node that does not exist, or a rank cannot connect.
    pub fn connect<'a>(
        &'a mut self,
        steps: &'a [Vec<Flow>],
    ) -> Result<impl Carrier + 'a, LabError> {
        let nodes = self.links.len() as u32;
        let all = steps.iter().flatten();
        if let Some(found) = all
            .clone()
            .flat_map(|flow| [flow.src, flow.dst])
            .find(|node| node.0 >= nodes)
        {
            return Err(LabError::NoSuchNode { found, nodes });
        }
        let addresses: Vec<String> = self.links.iter().map(|link| link.address.clone()).collect();
        for (link, node) in self.links.iter_mut().zip((0..).map(Node)) {
            let own = all
                .clone()
                .zip(0..)
                .filter(|(flow, _)| flow.src == node || flow.dst == node);
            link.notify(&HostOrder::Open(
                own.map(|(flow, number)| {
                    let to = (flow.src == node).then(|| addresses[flow.dst.index()].clone());
                    let start = Duration::from_secs_f64(flow.start.as_seconds());
                    Leg {
                        flow: number,
                        to,
                        size: flow.size.0,
                        start,
                    }
                })
                .collect(),
            ))
            .map_err(refused)?;
        }
        for link in &mut self.links {
            match link.answer().map_err(refused)? {
                HostReply::Opened => {}
                other => return Err(refused(link.unexpected(&other))),
            }
        }
        Ok(Connected { hosts: self, steps })
    }
}

struct Connected<'a> {
    hosts: &'a mut Hosts,
    steps: &'a [Vec<Flow>],
}

impl Carrier for Connected<'_> {
    fn carry(&mut self) -> Result<Vec<FlowTimes>, LabError> {
        let (mut all, mut first) = (Vec::new(), 0);
        for step in self.steps {
            let numbers: Vec<u32> = (first..).take(step.len()).collect();
            all.extend(self.hosts.carry(step, &numbers).map_err(refused)?);
            first += step.len() as u32;
        }
        Ok(all)
    }
}

impl Hosts {
    fn carry(&mut self, flows: &[Flow], numbers: &[u32]) -> io::Result<Vec<FlowTimes>> {
        let origin = self.origin;
        let mut ahead = Vec::new();
        for (at, link) in self.links.iter_mut().enumerate().filter(|(at, _)| {
            flows
                .iter()
                .any(|flow| [flow.src, flow.dst].contains(&node(*at)))
        }) {
            ahead.push((at, link.clock_ahead_of(origin)?));
        }
        let start = origin.elapsed() + LEAD + LEAD_PER_RANK * ahead.len() as u32;
        for (at, ahead) in &ahead {
            let zero = Duration::from_secs_f64((start.as_secs_f64() + ahead).max(0.0));
            self.links[*at].notify(&HostOrder::Carry(zero, numbers.to_vec()))?;
        }
        let mut carried = vec![
            FlowTimes {
                start: Time::ZERO,
                end: Time::ZERO
            };
            flows.len()
        ];
        for (at, _) in &ahead {
            let link = &mut self.links[*at];
            let HostReply::FlowTimes { sent, taken } = link.answer_or_failure()? else {
                return Err(io::Error::other(
                    "found a different answer, expected the times of flows",
                ));
            };
            let place = |flow: u32| numbers.iter().position(|number| *number == flow);
            for (flow, start) in sent {
                place(flow)
                    .into_iter()
                    .for_each(|place| carried[place].start = time(start));
            }
            for (flow, end) in taken {
                place(flow)
                    .into_iter()
                    .for_each(|place| carried[place].end = time(end));
            }
        }
        Ok(carried)
    }
}

fn node(at: usize) -> Node {
    Node(at as u32)
}

fn time(time: Duration) -> Time {
    Time::from_seconds(time.as_secs_f64())
}

impl HostLink {
    /// Reads the introduction of a connection. Returns the rank and the total number of ranks.
    fn meet(stream: TcpStream) -> io::Result<(HostLink, u32)> {
        stream.set_nonblocking(false)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(INTRODUCED_WITHIN))?;
        let mut link = HostLink {
            rank: Rank(0),
            host: String::new(),
            address: String::new(),
            replies: BufReader::new(stream.try_clone()?),
            orders: stream,
        };
        let mut line = String::new();
        (&mut link.replies)
            .take(LONGEST_HELLO)
            .read_line(&mut line)?;
        link.orders.set_read_timeout(Some(TIMEOUT))?;
        match serde_json::from_str(&line) {
            Ok(HostReply::Hello {
                rank,
                size,
                host,
                address,
            }) => Ok((
                HostLink {
                    rank: Rank(rank),
                    host,
                    address,
                    ..link
                },
                size,
            )),
            _ => Err(io::Error::other(
                "found an unknown program, expected a rank",
            )),
        }
    }

    pub(super) fn notify(&mut self, order: &HostOrder) -> io::Result<()> {
        self.orders.write_all(line_of(order).as_bytes())
    }

    fn answer(&mut self) -> io::Result<HostReply> {
        let mut line = String::new();
        if self.replies.read_line(&mut line)? == 0 {
            let problem = format!("rank {} on {} has ended", self.rank, self.host);
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, problem));
        }
        serde_json::from_str(&line).map_err(|_| {
            io::Error::other(format!("found `{}`, expected a rank's answer", line.trim()))
        })
    }

    pub(super) fn answer_or_failure(&mut self) -> io::Result<HostReply> {
        match self.answer()? {
            failed @ HostReply::Failed(_) => Err(self.unexpected(&failed)),
            other => Ok(other),
        }
    }

    pub(super) fn unexpected(&self, reply: &HostReply) -> io::Error {
        let reply = match reply {
            HostReply::Failed(why) => format!("failed: {why}"),
            other => line_of(other).trim().to_owned(),
        };
        io::Error::other(format!("rank {} on {}: {reply}", self.rank, self.host))
    }

    /// Returns the lead of the rank's clock over the time since `origin`, in seconds.
    fn clock_ahead_of(&mut self, origin: Instant) -> io::Result<f64> {
        let (mut shortest, mut ahead) = (f64::INFINITY, 0.0);
        for _ in 0..EXCHANGES {
            let asked = origin.elapsed().as_secs_f64();
            self.notify(&HostOrder::Clock)?;
            let HostReply::Clock(clock) = self.answer_or_failure()? else {
                return Err(io::Error::other(
                    "found a different answer, expected the time",
                ));
            };
            let came = origin.elapsed().as_secs_f64();
            if came - asked < shortest {
                (shortest, ahead) = (
                    came - asked,
                    clock.as_secs_f64() - f64::midpoint(asked, came),
                );
            }
        }
        Ok(ahead)
    }
}

fn refused(source: io::Error) -> LabError {
    LabError::System {
        what: "sending a pattern between hosts",
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::rank::{Introduction, serve},
        *,
    };
    use crate::{
        clocks::{ClockPlan, LearnedClock},
        tcp::introduce,
    };
    use flowcast_units::Bytes;

    const SECRET: [u8; TOKEN] = [7; TOKEN];

    /// Starts ranks as threads, which connect to the driver over loopback.
    fn with_ranks(ranks: u32, nodes: NodeOf, then: impl FnOnce(Hosts)) {
        with_ranks_by(ranks, |rank| rank % 2 == 1, nodes, then);
    }

    /// Starts ranks as threads. `has_via` selects the ranks that are reached by an address instead of a name.
    fn with_ranks_by(
        ranks: u32,
        has_via: fn(u32) -> bool,
        nodes: NodeOf,
        then: impl FnOnce(Hosts),
    ) {
        let door = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = door.local_addr().unwrap();
        thread::scope(|scope| {
            for rank in 0..ranks {
                let via = has_via(rank).then_some(address.ip());
                let own = Introduction {
                    rank: Rank(rank),
                    size: ranks,
                    host: format!("here{}", rank / 2),
                    via,
                    token: SECRET,
                };
                scope.spawn(move || serve(&TcpStream::connect(address).unwrap(), &own).unwrap());
            }
            then(
                Hosts::gather(&door, SECRET, nodes, Duration::from_secs(20), &mut || None).unwrap(),
            );
        });
    }

    fn flow(id: u32, src: u32, dst: u32, start: f64) -> Flow {
        let start = Time::from_seconds(start);
        Flow {
            id,
            src: Node(src),
            dst: Node(dst),
            size: Bytes(300_000),
            start,
        }
    }

    #[test]
    fn flows_between_ranks_start_at_their_times_and_keep_their_connections() {
        with_ranks(3, NodeOf::Rank, |mut hosts| {
            assert_eq!(hosts.names(), ["here0", "here0", "here1"]);
            // Ranks 0 and 1 share a host name and can reach each other by it. No other rank can reach rank 2 by its name.
            let steps = [
                vec![flow(1, 0, 1, 0.0), flow(2, 1, 0, 0.03), flow(3, 0, 1, 0.0)],
                vec![flow(4, 1, 0, 0.0)],
            ];
            let mut carrier = hosts.connect(&steps).unwrap();
            for _ in 0..3 {
                let carried = carrier.carry().unwrap();
                assert_eq!(carried.len(), 4);
                for (carried, flow) in carried.iter().zip(steps.iter().flatten()) {
                    assert!(
                        carried.start >= flow.start && carried.end > carried.start,
                        "{carried:?}"
                    );
                }
            }
        });
    }

    #[test]
    fn clocks_of_ranks_on_one_machine_differ_only_by_their_start() {
        with_ranks_by(
            3,
            |_| true,
            NodeOf::Rank,
            |mut hosts| {
                let plan = ClockPlan {
                    bursts: 4,
                    exchanges: 20,
                    span: Time::from_micros(50_000.0),
                };
                let run = hosts.synchronise_clocks(&plan, Duration::ZERO).unwrap();
                assert_eq!(
                    (run.learned[0], run.learned.len()),
                    (LearnedClock::itself(), 3)
                );
                for (learned, deviation) in run.learned.iter().zip(&run.deviations) {
                    // The clocks started within the time in which the ranks gathered.
                    assert!(learned.line.offset.as_seconds().abs() < 30.0, "{learned:?}");
                    let bound = learned.asymmetry + deviation.known_to + learned.deviation * 8.0;
                    assert!(
                        deviation.at_once.as_nanos().abs() <= bound.as_nanos() + 1e5,
                        "{deviation:?} {bound}"
                    );
                }
            },
        );
    }

    #[test]
    fn the_first_rank_of_each_host_is_its_node() {
        with_ranks(4, NodeOf::Host, |mut hosts| {
            assert_eq!(hosts.names(), ["here0", "here1"]);
            let outside = [vec![flow(1, 0, 2, 0.0)]];
            let refused = hosts.connect(&outside).err().unwrap().to_string();
            assert!(
                refused.contains("found node 2, expected one of the lab's 2 nodes"),
                "{refused}"
            );
        });
    }

    #[test]
    fn missing_ranks_are_reported_and_unknown_connections_have_no_effect() {
        let door = TcpListener::bind("127.0.0.1:0").unwrap();
        let gather = |is_hopeless: &mut dyn FnMut() -> Option<String>| {
            Hosts::gather(
                &door,
                SECRET,
                NodeOf::Host,
                Duration::from_secs(20),
                is_hopeless,
            )
            .unwrap_err()
            .to_string()
        };
        assert_eq!(
            gather(&mut || Some("the launcher has ended".into())),
            "the launcher has ended"
        );
        let hello = |host| {
            format!(r#"{{"hello":{{"rank":0,"size":1,"host":"{host}","address":"127.0.0.1:1"}}}}"#)
        };
        let mut stranger = TcpStream::connect(door.local_addr().unwrap()).unwrap();
        stranger.write_all(b"GET / HTTP/1.1\n").unwrap();
        let silent = TcpStream::connect(door.local_addr().unwrap()).unwrap();
        let guessing = TcpStream::connect(door.local_addr().unwrap()).unwrap();
        introduce(&guessing, &[8; TOKEN]).unwrap();
        writeln!(&guessing, "{}", hello("there")).unwrap();
        let rank = TcpStream::connect(door.local_addr().unwrap()).unwrap();
        introduce(&rank, &SECRET).unwrap();
        writeln!(&rank, "{}", hello("here")).unwrap();
        let hosts = Hosts::gather(
            &door,
            SECRET,
            NodeOf::Host,
            Duration::from_secs(20),
            &mut || None,
        )
        .unwrap();
        assert_eq!(hosts.names(), ["here"]);
        drop((stranger, silent, guessing));
    }
}
