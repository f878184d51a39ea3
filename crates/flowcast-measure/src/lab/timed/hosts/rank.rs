//! Rank: the ends of flows on one host, controlled over a connection.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{self, BufRead, BufReader, Read, Write},
    net::{IpAddr, Ipv4Addr, TcpListener, TcpStream, UdpSocket},
    thread,
    time::{Duration, Instant},
};

use crate::{
    clocks::{ClockError, Clocked, guide, learn, look},
    tcp::{Entrance, TOKEN, TcpTransport, Waiting, introduce},
};
use flowcast_units::{ClockLine, Rank};

use super::orders::{HostOrder, HostReply, Leg};
use crate::{
    lab::timed::tcp::{BLOCK, TcpMessage, receive_all, send_all},
    wire::line_of,
};

/// Longest time without progress of a flow, and longest wait for a connection, before it counts as failed.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Identity of a rank.
#[derive(Clone)]
pub struct Introduction {
    /// Number of the rank, counted from 0.
    pub rank: Rank,
    /// Total number of ranks.
    pub size: u32,
    /// Name of the host, by which other ranks reach it.
    pub host: String,
    /// Address in the network for messages, which replaces the address of the host name.
    pub via: Option<IpAddr>,
    /// Secret that all connections of a run must show.
    pub token: [u8; TOKEN],
}

/// Follows the driver's orders until the connection ends.
///
/// # Errors
/// The connection breaks, or a socket cannot be created. The failure of a flow is reported to the driver instead.
pub fn serve(control: &TcpStream, own: &Introduction) -> io::Result<()> {
    control.set_nodelay(true)?;
    let door = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    let port = door.local_addr()?.port();
    let address = match own.via {
        Some(via) => format!("{}:{port}", address_towards(via)?),
        None => format!("{}:{port}", own.host),
    };
    let Introduction {
        rank,
        size,
        host,
        token,
        ..
    } = own.clone();
    introduce(control, &token)?;
    say(
        control,
        &HostReply::Hello {
            rank: rank.0,
            size,
            host,
            address,
        },
    )?;
    let mut follower = Follower {
        host: &own.host,
        token,
        door,
        origin: Instant::now(),
        legs: BTreeMap::new(),
    };
    for line in BufReader::new(control).lines() {
        let line = line?;
        let order = serde_json::from_str(&line)
            .map_err(|_| io::Error::other(format!("found `{line}`, expected an order")));
        let reply = order.and_then(|order| follower.follow(order));
        say(
            control,
            &reply.unwrap_or_else(|error| HostReply::Failed(error.to_string())),
        )?;
    }
    Ok(())
}

fn say(mut control: &TcpStream, reply: &HostReply) -> io::Result<()> {
    control.write_all(line_of(reply).as_bytes())
}

/// Returns this host's own address in the network of another host, according to the system's routes. No packet is sent.
fn address_towards(other: IpAddr) -> io::Result<IpAddr> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    // Any port serves the purpose.
    socket.connect((other, 9))?;
    Ok(socket.local_addr()?.ip())
}

struct Follower<'a> {
    host: &'a str,
    token: [u8; TOKEN],
    door: TcpListener,
    origin: Instant,
    /// Connection and message of each flow, indexed by direction (`true` if it is sent) and number.
    legs: BTreeMap<(bool, u32), (TcpStream, TcpMessage)>,
}

impl Follower<'_> {
    fn follow(&mut self, order: HostOrder) -> io::Result<HostReply> {
        match order {
            HostOrder::Clock => Ok(HostReply::Clock(self.origin.elapsed())),
            HostOrder::Open(legs) => self.open(&legs).map(|()| HostReply::Opened),
            HostOrder::Carry(zero, flows) => self.carry(self.origin + zero, &flows),
            HostOrder::Guide(line) => self.guide(&line).map(|()| HostReply::Guided),
            HostOrder::Learn(address, plan) => self
                .ask(&address, |clock| learn(clock, &plan))
                .map(HostReply::LearnedClock),
            HostOrder::Look(address, exchanges) => self
                .ask(&address, |clock| look(clock, exchanges))
                .map(HostReply::Looked),
        }
    }

    /// Connects the flows that leave, and accepts the connections of the flows that enter; each begins with the flow's
    /// number.
    fn open(&mut self, legs: &[Leg]) -> io::Result<()> {
        self.legs.clear();
        let (sent, taken): (Vec<&Leg>, Vec<&Leg>) = legs.iter().partition(|leg| leg.to.is_some());
        let (door, token) = (&self.door, self.token);
        let (sent, taken) = thread::scope(|scope| {
            // The connections are accepted concurrently, because the other ends wait as well.
            let accepting = scope.spawn(|| accept(door, token, &taken));
            let sent = sent
                .iter()
                .map(|leg| Ok((*leg, self.connect(leg)?)))
                .collect::<io::Result<Vec<_>>>();
            (sent, accepting.join().expect("accepting does not panic"))
        });
        for (leg, stream) in sent?.into_iter().chain(taken?) {
            stream.set_nodelay(true)?;
            stream.set_write_timeout(Some(TIMEOUT))?;
            stream.set_read_timeout(Some(TIMEOUT))?;
            let message = TcpMessage {
                index: leg.flow as usize,
                start: leg.start,
                size: leg.size,
            };
            self.legs
                .insert((leg.to.is_some(), leg.flow), (stream, message));
        }
        Ok(())
    }

    /// Answers questions for the time from the next rank that connects.
    fn guide(&self, line: &ClockLine) -> io::Result<()> {
        let mut entrance = Entrance::new(&self.door, self.token)?;
        let until = Instant::now() + TIMEOUT;
        let stream = loop {
            match entrance.entered().into_iter().next() {
                Some(stream) => break stream,
                None if Instant::now() > until => return Err(missing(1)),
                None => thread::sleep(Duration::from_millis(1)),
            }
        };
        guide(&mut self.clocked(stream)?, line).map_err(io::Error::other)
    }

    /// Asks another rank for the time.
    fn ask<T>(
        &self,
        address: &str,
        how: impl FnOnce(&mut Clocked<TcpTransport>) -> Result<T, ClockError>,
    ) -> io::Result<T> {
        how(&mut self.clocked(self.reach(address)?)?).map_err(io::Error::other)
    }

    /// Returns a transport over a connection with this rank's clock. Both ends sleep while they wait. A polling end would
    /// answer faster than an end that must be woken, so the path would be asymmetric. On a busy host, it would also take the
    /// processor from the other end.
    fn clocked(&self, stream: TcpStream) -> io::Result<Clocked<TcpTransport>> {
        stream.set_nonblocking(false)?;
        let transport = TcpTransport::over(stream, Waiting::Sleep).map_err(io::Error::other)?;
        Ok(Clocked::new(transport, self.origin, ClockLine::default()))
    }

    fn connect(&self, leg: &Leg) -> io::Result<TcpStream> {
        let mut stream = self.reach(leg.to.as_deref().unwrap_or_default())?;
        stream.write_all(&leg.flow.to_le_bytes())?;
        Ok(stream)
    }

    /// Connects to another rank.
    fn reach(&self, to: &str) -> io::Result<TcpStream> {
        // A machine may be unable to resolve its own name.
        let to = match to.rsplit_once(':') {
            Some((host, port)) if host == self.host => format!("127.0.0.1:{port}"),
            _ => to.to_owned(),
        };
        let stream = TcpStream::connect(&to).map_err(|error| {
            io::Error::new(error.kind(), format!("connecting to {to}: {error}"))
        })?;
        introduce(&stream, &self.token)?;
        Ok(stream)
    }

    fn carry(&self, zero: Instant, flows: &[u32]) -> io::Result<HostReply> {
        let block = vec![0u8; BLOCK];
        let wanted: BTreeSet<u32> = flows.iter().copied().collect();
        let legs = self
            .legs
            .iter()
            .filter(|((_, flow), _)| wanted.contains(flow));
        thread::scope(|scope| {
            let mut in_flight = Vec::new();
            for ((is_sent, flow), (stream, message)) in legs {
                let (block, messages) = (block.as_slice(), std::slice::from_ref(message));
                let leg = scope.spawn(move || {
                    if *is_sent {
                        send_all(stream, messages, block, zero)
                    } else {
                        receive_all(stream, messages, zero)
                    }
                });
                in_flight.push((*is_sent, *flow, leg));
            }
            let (mut sent, mut taken) = (Vec::new(), Vec::new());
            for (is_sent, flow, leg) in in_flight {
                let time = leg.join().expect("legs do not panic")?[0];
                let times = if is_sent { &mut sent } else { &mut taken };
                times.push((flow, Duration::from_secs_f64(time.as_seconds())));
            }
            Ok(HostReply::FlowTimes { sent, taken })
        })
    }
}

/// Accepts a connection for each of these flows, and closes connections of strangers.
fn accept<'a>(
    door: &TcpListener,
    token: [u8; TOKEN],
    legs: &[&'a Leg],
) -> io::Result<Vec<(&'a Leg, TcpStream)>> {
    let until = Instant::now() + TIMEOUT;
    let mut entrance = Entrance::new(door, token)?;
    let mut missing: BTreeMap<u32, &Leg> = legs.iter().map(|leg| (leg.flow, *leg)).collect();
    let mut come = Vec::with_capacity(legs.len());
    while !missing.is_empty() {
        for mut stream in entrance.entered() {
            stream.set_nonblocking(false)?;
            stream.set_read_timeout(Some(TIMEOUT))?;
            let mut flow = [0; 4];
            stream.read_exact(&mut flow)?;
            come.extend(
                missing
                    .remove(&u32::from_le_bytes(flow))
                    .map(|leg| (leg, stream)),
            );
        }
        if Instant::now() > until {
            return Err(self::missing(missing.len()));
        }
        thread::sleep(Duration::from_millis(1));
    }
    Ok(come)
}

fn missing(connections: usize) -> io::Error {
    io::Error::new(
        io::ErrorKind::TimedOut,
        format!("{connections} connections did not arrive"),
    )
}
