//! Bulk TCP flows between nodes of a lab, driven by threads of this process, and the goodput of each flow.

use std::{
    io::{Read, Write},
    net::{Shutdown, TcpStream},
    sync::Barrier,
    thread,
    time::{Duration, Instant},
};

use flowcast_units::{Bytes, Node, Rate};

use crate::lab::{error::LabError, running::Lab};

/// Flow with one sender and one receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ByteFlow {
    /// Sending node.
    pub from: Node,
    /// Receiving node, at which the goodput is measured.
    pub to: Node,
    /// Rail of the flow.
    pub rail: usize,
}

/// Observation periods and buffers of flows.
#[derive(Debug, Clone, Copy)]
pub struct FlowWatch {
    /// Time before counting, in which the flows settle.
    pub settle: Duration,
    /// Time after settling in which received bytes are counted. The sender stops at its end.
    pub count: Duration,
    /// Buffer that replaces the lab's window and congestion control, as in [`Lab::tcp_pair`].
    pub buffer: Option<Bytes>,
}

/// Returns the goodput of each of several concurrent flows, which start at the same time.
///
/// # Errors
/// A flow names a node or rail that the lab does not have, or a connection fails.
pub fn steady_goodput(
    lab: &Lab,
    flows: &[ByteFlow],
    watch: &FlowWatch,
) -> Result<Vec<Rate>, LabError> {
    let pairs: Vec<(TcpStream, TcpStream)> = flows
        .iter()
        .map(|flow| lab.tcp_pair(flow.from, flow.to, flow.rail, watch.buffer))
        .collect::<Result<_, _>>()?;
    let start = Barrier::new(2 * pairs.len());
    let rates = thread::scope(|scope| {
        let receivers: Vec<_> = pairs
            .into_iter()
            .map(|(sender, receiver)| {
                let (ours, theirs) = (&start, &start);
                scope.spawn(move || send(sender, ours, watch.settle + watch.count));
                scope.spawn(move || receive(receiver, theirs, watch))
            })
            .collect();
        receivers
            .into_iter()
            .map(|receiver| receiver.join().expect("receivers do not panic"))
            .collect()
    });
    Ok(rates)
}

/// Sends until the time is over. A broken connection shows as a low rate at the receiver.
fn send(mut stream: TcpStream, start: &Barrier, time: Duration) {
    let block = vec![0; 1 << 16];
    start.wait();
    let began = Instant::now();
    while began.elapsed() < time && stream.write_all(&block).is_ok() {}
    let _ = stream.shutdown(Shutdown::Write);
}

/// Returns the bytes from the first read after settling to the last read in time, divided by the time between the two. It
/// then reads until the end, so that no queue keeps bytes that would disturb later flows.
fn receive(mut stream: TcpStream, start: &Barrier, watch: &FlowWatch) -> Rate {
    let mut block = vec![0; 1 << 18];
    start.wait();
    let began = Instant::now();
    let (mut first, mut last, mut bytes) = (None, watch.settle, 0);
    while let Ok(count @ 1..) = stream.read(&mut block) {
        let now = began.elapsed();
        if now < watch.settle || now > watch.settle + watch.count {
            continue;
        }
        if first.is_none() {
            first = Some(now);
        } else {
            (last, bytes) = (now, bytes + count);
        }
    }
    let time = last.saturating_sub(first.unwrap_or(last)).as_secs_f64();
    Rate::from_bytes_per_second(if time > 0.0 { bytes as f64 / time } else { 0.0 })
}
