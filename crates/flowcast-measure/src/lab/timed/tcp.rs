//! Timed flows over TCP with both ends in this process: a thread for each end of each connection, which sleeps in the system
//! while it cannot send or receive.

use std::{
    collections::BTreeMap,
    io::{self, Read, Write},
    net::TcpStream,
    thread,
    time::{Duration, Instant},
};

use flowcast_network::cluster::flow::Flow;
use flowcast_units::{Node, Time};

use super::{Carrier, FlowConnections, FlowTimes, PatternOptions};
use crate::lab::{error::LabError, running::Lab};

/// Bytes that a sender passes to the system in one call. The system accepts no more than the window, so this is not a limit.
pub(super) const BLOCK: usize = 1 << 20;
/// Bytes that a receiver reads in one call.
const READ: usize = 1 << 18;
/// Lead time of the common start, in which all threads begin to wait for it.
const LEAD: Duration = Duration::from_millis(10);
const LEAD_PER_CONNECTION: Duration = Duration::from_micros(200);

/// Persistent connections that can carry a pattern repeatedly.
#[derive(Debug)]
pub struct TcpCarrier {
    connections: Vec<TcpPair>,
    flows: usize,
}

#[derive(Debug)]
struct TcpPair {
    sender: TcpStream,
    receiver: TcpStream,
    /// Messages in the order in which they are sent.
    messages: Vec<TcpMessage>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct TcpMessage {
    /// Position in the pattern.
    pub index: usize,
    pub start: Duration,
    pub size: u64,
}

impl TcpCarrier {
    /// Connects the nodes of all flows over the first rail.
    ///
    /// # Errors
    /// A node or rail that the lab does not have, or a connection that the system refuses.
    pub fn connect(
        lab: &Lab,
        flows: &[Flow],
        options: &PatternOptions,
    ) -> Result<TcpCarrier, LabError> {
        let connections = by_connection(flows, options.connections).into_iter().map(
            |((from, to, _), messages): ((Node, Node, usize), Vec<TcpMessage>)| {
                let (sender, receiver) = lab.tcp_pair(from, to, 0, None)?;
                let timeout = Some(options.timeout);
                sender
                    .set_write_timeout(timeout)
                    .and_then(|()| receiver.set_read_timeout(timeout))
                    .map_err(refused)?;
                Ok(TcpPair {
                    sender,
                    receiver,
                    messages,
                })
            },
        );
        Ok(TcpCarrier {
            connections: connections.collect::<Result<_, LabError>>()?,
            flows: flows.len(),
        })
    }
}

/// Returns the messages of each connection, indexed by the two nodes and a number that separates flows that do not share a
/// connection.
fn by_connection(
    flows: &[Flow],
    connections: FlowConnections,
) -> BTreeMap<(Node, Node, usize), Vec<TcpMessage>> {
    let mut grouped: BTreeMap<(Node, Node, usize), Vec<TcpMessage>> = BTreeMap::new();
    for (index, flow) in flows.iter().enumerate() {
        let apart = if connections == FlowConnections::EachFlow {
            index
        } else {
            0
        };
        let start = Duration::from_secs_f64(flow.start.as_seconds());
        grouped
            .entry((flow.src, flow.dst, apart))
            .or_default()
            .push(TcpMessage {
                index,
                start,
                size: flow.size.0,
            });
    }
    grouped
        .values_mut()
        .for_each(|messages| messages.sort_by_key(|message| message.start));
    grouped
}

impl Carrier for TcpCarrier {
    fn carry(&mut self) -> Result<Vec<FlowTimes>, LabError> {
        let block = vec![0u8; BLOCK];
        let zero = Instant::now() + LEAD + LEAD_PER_CONNECTION * self.connections.len() as u32;
        let mut carried = vec![
            FlowTimes {
                start: Time::ZERO,
                end: Time::ZERO
            };
            self.flows
        ];
        thread::scope(|scope| {
            let mut under_way = Vec::with_capacity(self.connections.len());
            for TcpPair {
                sender,
                receiver,
                messages,
            } in &self.connections
            {
                let block = block.as_slice();
                let starts = scope.spawn(move || send_all(sender, messages, block, zero));
                under_way.push((
                    messages,
                    starts,
                    scope.spawn(move || receive_all(receiver, messages, zero)),
                ));
            }
            for (messages, starts, ends) in under_way {
                let starts = starts.join().expect("senders do not panic");
                let ends = ends.join().expect("receivers do not panic");
                // The error of a sender explains more than the error of the receiver that waits for it.
                let times = starts
                    .and_then(|starts| Ok((starts, ends?)))
                    .map_err(refused)?;
                for (message, (start, end)) in messages.iter().zip(times.0.into_iter().zip(times.1))
                {
                    carried[message.index] = FlowTimes { start, end };
                }
            }
            Ok(carried)
        })
    }
}

/// Sends each message once its start time is reached and earlier messages have been sent. Returns the starts.
pub(super) fn send_all(
    mut stream: &TcpStream,
    messages: &[TcpMessage],
    block: &[u8],
    zero: Instant,
) -> io::Result<Vec<Time>> {
    let mut starts = Vec::with_capacity(messages.len());
    for message in messages {
        thread::sleep((zero + message.start).saturating_duration_since(Instant::now()));
        starts.push(since(zero));
        let mut left = message.size;
        while left > 0 {
            let part = left.min(BLOCK as u64) as usize;
            stream.write_all(&block[..part])?;
            left -= part as u64;
        }
    }
    Ok(starts)
}

/// Receives each message completely. Returns the ends.
pub(super) fn receive_all(
    mut stream: &TcpStream,
    messages: &[TcpMessage],
    zero: Instant,
) -> io::Result<Vec<Time>> {
    let mut block = vec![0u8; READ];
    let mut ends = Vec::with_capacity(messages.len());
    for message in messages {
        // The first byte may take long to arrive; the receiver is ready before the sender's time.
        thread::sleep((zero + message.start).saturating_duration_since(Instant::now()));
        let mut left = message.size;
        while left > 0 {
            let part = left.min(READ as u64) as usize;
            match stream.read(&mut block[..part])? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                count => left -= count as u64,
            }
        }
        ends.push(since(zero));
    }
    Ok(ends)
}

fn since(zero: Instant) -> Time {
    Time::from_seconds(Instant::now().saturating_duration_since(zero).as_secs_f64())
}

fn refused(source: io::Error) -> LabError {
    LabError::System {
        what: "sending a pattern",
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flowcast_units::Bytes;

    fn flow(id: u32, src: u32, dst: u32, start: f64) -> Flow {
        Flow {
            id,
            src: Node(src),
            dst: Node(dst),
            size: Bytes(1),
            start: Time::from_seconds(start),
        }
    }

    #[test]
    fn flows_of_one_pair_share_a_connection_in_start_order_if_requested() {
        let flows = [flow(1, 0, 1, 2.0), flow(2, 1, 0, 0.0), flow(3, 0, 1, 1.0)];
        let orders = |connections| -> Vec<Vec<usize>> {
            let grouped = by_connection(&flows, connections);
            grouped
                .values()
                .map(|messages| messages.iter().map(|message| message.index).collect())
                .collect()
        };
        assert_eq!(orders(FlowConnections::EachPair), [vec![2, 0], vec![1]]);
        assert_eq!(
            orders(FlowConnections::EachFlow),
            [vec![0], vec![2], vec![1]]
        );
    }
}
