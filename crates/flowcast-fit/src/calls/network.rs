//! Fitted calls as a network file: overheads of sender and receiver by size, latency and bandwidth beneath them.
//!
//! - `o_s(s)` is what `MPI_Isend` alone takes, `o_r(s)` what `MPI_Recv` takes of a message that has arrived.
//! - Half a round trip is `o_s(s) + L + s·G + o_r(s)`: what the overheads leave of it is a line, of which relative errors of
//!   the whole are least.
//! - A sender that copies eagerly is done in less time from the size on at which it sends a request instead, so the
//!   switch from eager to rendezvous is the largest fall of `o_s`. From there on an arrived message is a request alone,
//!   and `MPI_Recv` contains the transfer; the receiver's overhead goes on as below.

use std::collections::{BTreeMap, BTreeSet};

use super::{CallError, CallFit, table::CallName};
use crate::network::{tidy_per_byte, tidy_time};
use flowcast_model::{
    network::{LoneFlow, Network, Nic, OverheadPiece, Overheads, Rule},
    stats::{piecewise::PiecewiseLine, relative_line::weighted_line_at_least_zero},
};
use flowcast_units::{Bytes, Time, TimePerByte};

/// A sender's time falls by more than this share where a protocol changes, not by noise.
const FALL: f64 = 0.2;

/// The network of the one cluster that was fitted.
///
/// # Errors
/// Several clusters, or one of the four calls is missing.
pub fn to_network(
    fits: &BTreeMap<CallName, CallFit>,
    name: &str,
    provenance: BTreeMap<String, String>,
) -> Result<Network, CallError> {
    let calls = Calls::new(fits)?;
    let rendezvous_from = rendezvous_from(&calls.send.curve);
    let overheads = calls.overheads(rendezvous_from);
    let (latency, per_byte) = calls.beneath(&overheads)?;
    let nic = Nic {
        overhead: calls.smallest_overhead(),
        ..Nic::new(latency, LoneFlow::GapPerByte(per_byte))
    };
    let mut network = Network {
        title: format!("{}: overheads by size", calls.cluster),
        source: format!("flowcast fit of calls, {} sizes", calls.send.times.len()),
        overheads,
        provenance,
        ..Network::new(name, Rule::Loggops, nic)
    };
    network.point_to_point.rendezvous_from = rendezvous_from;
    Ok(network)
}

/// The size from which the sender's time falls most, if it falls by more than noise would.
fn rendezvous_from(send: &PiecewiseLine) -> Option<Bytes> {
    let falls = send.pieces().windows(2).map(|pair| {
        let knee = pair[1].from;
        (1.0 - pair[1].line.at(knee) / pair[0].line.at(knee), knee)
    });
    let (fall, knee) = falls.max_by(|one, other| one.0.total_cmp(&other.0))?;
    (fall > FALL).then(|| first_size(knee))
}

/// The smallest size of a piece.
fn first_size(from: f64) -> Bytes {
    Bytes(from.ceil() as u64)
}

struct Calls<'a> {
    cluster: &'a str,
    send: &'a CallFit,
    receive: &'a CallFit,
    /// A round trip is both together.
    round_trip: [&'a CallFit; 2],
}

impl Calls<'_> {
    fn new(fits: &BTreeMap<CallName, CallFit>) -> Result<Calls<'_>, CallError> {
        let clusters: BTreeSet<&str> = fits.keys().map(|name| name.cluster.as_str()).collect();
        let mut clusters = clusters.into_iter();
        let (Some(cluster), None) = (clusters.next(), clusters.next()) else {
            let all: BTreeSet<&str> = fits.keys().map(|name| name.cluster.as_str()).collect();
            return Err(CallError::Clusters(
                all.into_iter().collect::<Vec<_>>().join(", "),
            ));
        };
        let call = |experiment, call| {
            let name = CallName::new(cluster, experiment, call);
            fits.get(&name).ok_or(CallError::NoCall(name))
        };
        Ok(Calls {
            cluster,
            send: call("Isend", "MPI_Isend")?,
            receive: call("Recv", "MPI_Recv")?,
            round_trip: [call("PingPong", "MPI_Send")?, call("PingPong", "MPI_Recv")?],
        })
    }

    fn overheads(&self, rendezvous_from: Option<Bytes>) -> Overheads {
        let mut receive = pieces(&self.receive.curve);
        if let Some(switch) = rendezvous_from {
            receive.retain(|piece| piece.from < switch);
        }
        Overheads {
            send: pieces(&self.send.curve),
            receive,
            latency: Vec::new(),
        }
    }

    /// Latency `L` and time per byte `G` that remain of half round trips without the overheads.
    fn beneath(&self, overheads: &Overheads) -> Result<(Time, TimePerByte), CallError> {
        let [send, receive] = self.round_trip;
        let both = send
            .times
            .iter()
            .filter_map(|(size, time)| Some((*size, *time + *receive.times.get(size)?)));
        let points = both.map(|(size, round_trip)| {
            let half = round_trip.as_nanos() / 2.0;
            let [sender, receiver] = [&overheads.send, &overheads.receive]
                .map(|side| Overheads::at(side, size).unwrap_or_default());
            (
                size.0 as f64,
                (half - sender.as_nanos() - receiver.as_nanos(), 1.0 / half),
            )
        });
        let (x, rest): (Vec<f64>, Vec<(f64, f64)>) = points.unzip();
        let (y, weights): (Vec<f64>, Vec<f64>) = rest.into_iter().unzip();
        let name = || {
            Box::new(CallName::new(
                self.cluster,
                "PingPong",
                "MPI_Send and MPI_Recv",
            ))
        };
        let line =
            weighted_line_at_least_zero(&x, &y, &weights).map_err(|source| CallError::Fit {
                name: name(),
                source,
            })?;
        Ok((
            tidy_time(Time::from_nanos(line.intercept)),
            tidy_per_byte(TimePerByte::from_nanos(line.slope)),
        ))
    }

    /// For what knows one overhead alone, the mean of both sides at the smallest size.
    fn smallest_overhead(&self) -> Time {
        tidy_time((smallest(self.send) + smallest(self.receive)) * 0.5)
    }
}

fn smallest(fit: &CallFit) -> Time {
    fit.times
        .keys()
        .next()
        .map_or(Time::ZERO, |size| fit.at(*size))
}

fn pieces(curve: &PiecewiseLine) -> Vec<OverheadPiece> {
    let piece = |piece: &flowcast_model::stats::piecewise::LinePiece| OverheadPiece {
        from: first_size(piece.from),
        fixed: tidy_time(Time::from_nanos(piece.line.intercept)),
        per_byte: tidy_per_byte(TimePerByte::from_nanos(piece.line.slope)),
    };
    let mut pieces: Vec<OverheadPiece> = curve.pieces().iter().map(piece).collect();
    // Of pieces that begin within one byte the last one holds.
    pieces.reverse();
    pieces.dedup_by_key(|piece| piece.from);
    pieces.reverse();
    pieces
}
