//! Network file from fitted calls: overheads of sender and receiver by size, and the remaining latency and bandwidth.
//!
//! - **Eager limit.** An eager `MPI_Send` takes the same time as `MPI_Isend`; one that waits for its receiver takes longer.
//!   The limit is the size for which the fewest sizes are on the wrong side of this rule.
//! - **Overheads.** `o_s(s)` is the time of `MPI_Isend` alone, and `o_r(s)` the time of `MPI_Recv` for a message that has
//!   arrived. Calls that are measured alone may find cold caches. The two would then take longer than the whole trip. So if
//!   an eager `MPI_Send` in the ping-pong takes less time than `MPI_Isend` alone, it is the sender's overhead. The
//!   receiver's overhead is reduced by the same ratio, the median over the eager sizes.
//! - From the eager limit on, `MPI_Recv` contains the transfer. The receiver's overhead is then the value for the
//!   smallest message.
//! - **The rest** of half a round trip belongs to the network (`half_trip`).

use std::collections::{BTreeMap, BTreeSet};

use super::{
    CallError, CallFit,
    half_trip::{HalfTrip, HalfTrips, Transfer},
    median_error,
    table::CallName,
};
use crate::network::{tidy, tidy_per_byte, tidy_time};
use flowcast_network::{
    link_rate::{LinkRate, SingleFlowRate},
    network::{FitQuality, MessageRule, Network, Nic, OverheadPiece, Overheads, ParameterInterval},
    quantity::Quantity,
};
use flowcast_statistics::{
    StatsError,
    observation::{Observation, Observations},
    piecewise::{LinePiece, PiecewiseLine},
    regression::Line,
    resampling::{Resampler, percentile_interval},
    sample::median,
};
use flowcast_units::{Bytes, Time, TimePerByte};

/// An `MPI_Send` that takes more than this multiple of the time of `MPI_Isend` waits for its receiver.
const WAITS: f64 = 1.5;

/// Ratio of the time of a call in the ping-pong to its time alone. Below it, a warning is given.
const COLD: f64 = 0.8;

/// Minimum number of sizes that support an eager limit, so that a single outlier does not create one.
const FEWEST: usize = 2;

/// Fields that calls determine. Their intervals and origins in the known network are removed.
const SHOWN: [&str; 6] = [
    "nic.latency",
    "nic.bandwidth",
    "nic.gap_per_byte",
    "nic.overhead",
    "point_to_point.",
    "overheads.",
];

/// Options for the network of fitted calls.
#[derive(Debug, Clone)]
pub struct CallNetworkOptions<'a> {
    /// Name of the network.
    pub name: &'a str,
    /// Known parts of the network: nodes, times inside them, switches.
    pub known: Option<&'a Network>,
    /// Maximum number of lines for the half round trips, at least 1.
    pub pieces: usize,
    /// Number of bootstrap replicates, at least 1.
    pub replicates: usize,
    /// Confidence level of the intervals, in (0, 1).
    pub level: f64,
    /// Seed of the bootstrap.
    pub seed: u64,
    /// Description of the measurement.
    pub provenance: BTreeMap<String, String>,
}

/// Returns the network of the only cluster that was fitted.
///
/// # Errors
/// Several clusters, a missing call of the four that are required, and options out of range.
pub fn to_network(
    fits: &BTreeMap<CallName, CallFit>,
    options: &CallNetworkOptions<'_>,
) -> Result<Network, CallError> {
    let calls = CallsByKind::new(fits)?;
    let name = CallName::new(calls.cluster, "PingPong", "MPI_Send and MPI_Recv");
    let network = calls.network(options);
    network.map_err(|source| CallError::Fit {
        name: Box::new(name),
        source,
    })
}

/// Size from which messages wait for their receiver.
#[derive(Debug, Clone, Copy, PartialEq)]
struct EagerLimit {
    rendezvous_from: Bytes,
    /// Range of `rendezvous_from` that the measured sizes around it allow.
    between: [Bytes; 2],
}

impl EagerLimit {
    /// Chooses the limit between the largest size below, if there is one, and the smallest size above. It is a power of two
    /// if one lies between them, as is usual for limits of protocols, and otherwise the geometric mean.
    fn new(below: Option<Bytes>, above: Bytes) -> EagerLimit {
        let Some(below) = below else {
            return EagerLimit {
                rendezvous_from: Bytes(0),
                between: [Bytes(0), above],
            };
        };
        let power = 1 << above.0.max(1).ilog2();
        let mean = (below.0 as f64 * above.0 as f64).sqrt().ceil() as u64;
        let from = if power > below.0 { power } else { mean };
        EagerLimit {
            rendezvous_from: Bytes(from.clamp(below.0 + 1, above.0)),
            between: [Bytes(below.0 + 1), above],
        }
    }
}

/// Estimates from calls, without the known parts of the network.
struct CallEstimate {
    limit: Option<EagerLimit>,
    /// Ratios of the times in the ping-pong to those of calls measured alone, for each eager size. `warmth` is their
    /// median.
    warmths: Vec<f64>,
    warmth: f64,
    overheads: Overheads,
    trips: HalfTrips,
    transfer: Transfer,
}

struct CallsByKind<'a> {
    cluster: &'a str,
    send: &'a CallFit,
    receive: &'a CallFit,
    /// Fits of both calls of a round trip.
    round_trip: [&'a CallFit; 2],
}

impl CallsByKind<'_> {
    fn new(fits: &BTreeMap<CallName, CallFit>) -> Result<CallsByKind<'_>, CallError> {
        let clusters: BTreeSet<&str> = fits.keys().map(|name| name.cluster.as_str()).collect();
        let clusters: Vec<&str> = clusters.into_iter().collect();
        let [cluster] = clusters[..] else {
            return Err(CallError::Clusters(clusters.join(", ")));
        };
        let [send, receive, there, back] = [
            ("Isend", "MPI_Isend"),
            ("Recv", "MPI_Recv"),
            ("PingPong", "MPI_Send"),
            ("PingPong", "MPI_Recv"),
        ]
        .map(|(experiment, call)| {
            let name = CallName::new(cluster, experiment, call);
            fits.get(&name).ok_or(CallError::NoCall(name))
        });
        Ok(CallsByKind {
            cluster,
            send: send?,
            receive: receive?,
            round_trip: [there?, back?],
        })
    }

    fn estimate(&self, most_pieces: usize) -> Result<CallEstimate, StatsError> {
        let limit = self.eager_limit();
        let rendezvous_from = limit.map(|limit| limit.rendezvous_from);
        let warmths = self.warmths(rendezvous_from);
        let warmth = warmth(&warmths);
        let mut overheads = Overheads {
            send: self.sending(rendezvous_from, warmth),
            receive: self.receiving(rendezvous_from),
            latency: Vec::new(),
        };
        let trips = HalfTrips::new(self.half_trips(&overheads), most_pieces)?;
        let transfer = trips.transfer(warmth)?;
        overheads.latency = added(&trips.added(warmth, transfer)?);
        for piece in &mut overheads.receive {
            piece.fixed = tidy_time(piece.fixed * warmth);
            piece.per_byte =
                tidy_per_byte(TimePerByte::from_nanos(piece.per_byte.as_nanos() * warmth));
        }
        Ok(CallEstimate {
            limit,
            warmths,
            warmth,
            overheads,
            trips,
            transfer,
        })
    }

    fn network(&self, options: &CallNetworkOptions<'_>) -> Result<Network, StatsError> {
        let estimate = self.estimate(options.pieces)?;
        let Transfer { latency, per_byte } = estimate.transfer;
        let nic = Nic {
            overhead: self.smallest_overhead(&estimate.overheads),
            ..Nic::new(
                tidy_time(Time::from_nanos(latency)),
                SingleFlowRate::GapPerByte(tidy_per_byte(TimePerByte::from_nanos(per_byte))),
            )
        };
        let mut network = with_known(options.known, nic);
        network.name = options.name.to_owned();
        network.title = format!("{}: overheads by size", self.cluster);
        network.source = format!("flowcast fit of calls, {} sizes", self.send.times.len());
        network.point_to_point.rendezvous_from = estimate.limit.map(|limit| limit.rendezvous_from);
        network.overheads = estimate.overheads.clone();
        network.provenance = options.provenance.clone();
        network.fit = FitQuality {
            misfit: Some(tidy(self.misfit(&network, &estimate.trips)?)),
            warnings: warnings(&network, estimate.warmth),
        };
        let intervals = self.intervals(&estimate, &network, options)?;
        network.intervals.extend(intervals);
        Ok(network)
    }

    fn intervals(
        &self,
        estimate: &CallEstimate,
        network: &Network,
        options: &CallNetworkOptions<'_>,
    ) -> Result<BTreeMap<String, ParameterInterval>, StatsError> {
        let [latency, per_byte] = estimate.transfer_intervals(options)?;
        let overhead = self.overhead_interval(estimate.warmth, options.level)?;
        let nic = &network.nic;
        let mut ends: Vec<(&str, Quantity, (f64, f64))> = vec![
            ("nic.latency", nic.latency.into(), latency),
            ("nic.gap_per_byte", nic.per_byte().into(), per_byte),
            ("nic.overhead", nic.overhead.into(), overhead),
        ];
        if let Some(limit) = estimate.limit {
            let [low, high] = limit.between.map(|size| size.0 as f64);
            let from = limit.rendezvous_from.into();
            ends.push(("point_to_point.rendezvous_from", from, (low, high)));
        }
        let mut intervals = BTreeMap::new();
        for (field, value, (low, high)) in ends {
            let [low, high] = [low, high].map(|number| value.with_number(tidy(number)));
            let interval = ParameterInterval::around(value, low, high, options.level);
            intervals.insert(field.to_owned(), interval);
        }
        intervals.retain(|_, interval| interval.has_width());
        Ok(intervals)
    }

    /// Returns the size from which `MPI_Send` waits. `None` if fewer than two sizes support a limit.
    fn eager_limit(&self) -> Option<EagerLimit> {
        let sends = &self.round_trip[0].times;
        let waits: Vec<(Bytes, bool)> = sends
            .iter()
            .map(|(size, time)| (*size, *time > self.sent_alone(*size) * WAITS))
            .collect();
        // Number of sizes on the wrong side of a limit at the first size, then at the second, and so on, up to one after
        // the last size.
        let mut wrong = waits.iter().filter(|(_, waits)| !waits).count();
        let mut best = (0, wrong);
        for (at, (_, waits)) in (1..).zip(&waits) {
            wrong = if *waits { wrong + 1 } else { wrong - 1 };
            if wrong <= best.1 {
                best = (at, wrong);
            }
        }
        let (at, least) = best;
        let (above, _) = *waits.get(at)?;
        let below = at.checked_sub(1).map(|at| waits[at].0);
        (least + FEWEST <= wrong).then(|| EagerLimit::new(below, above))
    }

    /// Time of `MPI_Isend` alone: measured if possible, since the curve is least reliable at the limit, and otherwise from
    /// the curve.
    fn sent_alone(&self, size: Bytes) -> Time {
        let measured = self.send.times.get(&size).copied();
        measured.unwrap_or_else(|| self.send.at(size))
    }

    /// Ratios of `MPI_Send` in the ping-pong to `MPI_Isend` alone, for each eager size. A single 1 if no size is eager.
    fn warmths(&self, rendezvous_from: Option<Bytes>) -> Vec<f64> {
        let sends = self.round_trip[0].times.iter();
        let eager = sends.filter(|(size, _)| rendezvous_from.is_none_or(|from| **size < from));
        let ratios: Vec<f64> = eager
            .map(|(size, time)| time.as_nanos() / self.sent_alone(*size).as_nanos())
            .filter(|ratio| ratio.is_finite())
            .collect();
        if ratios.is_empty() { vec![1.0] } else { ratios }
    }

    /// The sender's overhead.
    fn sending(&self, rendezvous_from: Option<Bytes>, warmth: f64) -> Vec<OverheadPiece> {
        let alone = pieces(&self.send.curve);
        if warmth < 1.0 {
            joined(pieces(&self.round_trip[0].curve), rendezvous_from, &alone)
        } else {
            alone
        }
    }

    /// The receiver's overhead as measured alone.
    fn receiving(&self, rendezvous_from: Option<Bytes>) -> Vec<OverheadPiece> {
        let request = OverheadPiece {
            from: Bytes(0),
            fixed: smallest(self.receive),
            per_byte: TimePerByte::default(),
        };
        joined(pieces(&self.receive.curve), rendezvous_from, &[request])
    }

    fn half_trips(&self, overheads: &Overheads) -> Vec<HalfTrip> {
        let [send, receive] = self.round_trip.map(|fit| &fit.times);
        let both = send
            .iter()
            .filter_map(|(size, time)| Some((*size, *time + *receive.get(size)?)));
        both.map(|(size, round_trip)| HalfTrip {
            size: size.0 as f64,
            half: round_trip.as_nanos() / 2.0,
            send: overhead(&overheads.send, size).as_nanos(),
            receive: overhead(&overheads.receive, size).as_nanos(),
        })
        .collect()
    }

    /// A single overhead for models that have only one: the mean of both sides at the smallest size.
    fn smallest_overhead(&self, overheads: &Overheads) -> Time {
        let size = self.send.times.keys().next().copied().unwrap_or_default();
        let both = overhead(&overheads.send, size) + overhead(&overheads.receive, size);
        tidy_time(both * 0.5)
    }

    /// Interval of the mean of both overheads, in nanoseconds. A repeated measurement would lie in it.
    fn overhead_interval(&self, warmth: f64, level: f64) -> Result<(f64, f64), StatsError> {
        let sender = match warmth < 1.0 {
            true => self.round_trip[0],
            false => self.send,
        };
        let [send, receive] = [sender, self.receive].map(|fit| {
            let size = fit.times.keys().next().copied().unwrap_or_default();
            fit.predict(size, level)
        });
        let (send, receive) = (send?, receive?);
        let low = send.low + receive.low * warmth;
        let high = send.high + receive.high * warmth;
        Ok((low.as_nanos() / 2.0, high.as_nanos() / 2.0))
    }

    /// Median of `|predicted / measured - 1|` of the round trips: the larger of the values for fitted sizes and for sizes
    /// left out.
    fn misfit(&self, network: &Network, trips: &HalfTrips) -> Result<f64, StatsError> {
        let measured = self.half_trips(&network.overheads).into_iter();
        let observed = Observations::new(measured.map(|trip| {
            let size = Bytes(trip.size as u64);
            let added = overhead(&network.overheads.latency, size);
            let transfer = network.nic.latency + network.nic.time_for(size) + added;
            Observation {
                of: size,
                predicted: trip.send + transfer.as_nanos() + trip.receive,
                measured: trip.half,
            }
        }))?;
        Ok(observed
            .median_absolute()
            .max(median_error(&trips.residuals)?))
    }
}

/// Median ratio of the times in the ping-pong to those of calls measured alone, limited to at most 1.
fn warmth(ratios: &[f64]) -> f64 {
    median(ratios).map_or(1.0, |ratio| ratio.min(1.0))
}

/// Returns the known network, or an otherwise empty one, with the times of this interface.
fn with_known(known: Option<&Network>, nic: Nic) -> Network {
    let Some(known) = known else {
        return Network::new("", MessageRule::Loggops, nic);
    };
    let mut network = known.clone();
    network.nic = Nic {
        rate: LinkRate::given(nic.rate.given_goodput(), known.nic.rate.given_wire())
            .unwrap_or(nic.rate),
        latency: nic.latency,
        overhead: nic.overhead,
        ..known.nic
    };
    network.point_to_point.rule = MessageRule::Loggops;
    network.sharing.packet.latency = None;
    network.accuracy.clear();
    network.intervals.retain(|name, _| !is_shown(name));
    for interval in network.intervals.values_mut() {
        interval.correlations.retain(|name, _| !is_shown(name));
    }
    network.origins.retain(|name, _| !is_shown(name));
    network
}

fn is_shown(name: &str) -> bool {
    SHOWN.iter().any(|shown| name.starts_with(shown))
}

/// Returns the warnings that readers need before the values.
fn warnings(network: &Network, warmth: f64) -> Vec<String> {
    let mut warnings = Vec::new();
    if warmth < COLD {
        warnings.push(format!(
            "MPI_Send in the ping-pong takes {warmth:.2} times as long as MPI_Isend alone: the overheads apply to \
             a ping-pong"
        ));
    }
    if network.nic.latency == Time::ZERO {
        warnings
            .push("the overheads take up all of half a round trip, so the latency is 0".to_owned());
    }
    let nodes = &network.machine.nodes;
    if nodes.is_empty()
        || !nodes
            .iter()
            .all(|group| group.intra_latency.is_some() && group.intra_bandwidth.is_some())
    {
        warnings.push(
            "calls between two nodes contain no messages inside a node: the built-in network shared-memory supplies their \
             costs (--network NET states intra_latency, intra_bandwidth, ranks on a node and switches)"
                .to_owned(),
        );
    }
    warnings
}

impl CallEstimate {
    /// Intervals of latency and gap per byte, from resampled sizes.
    fn transfer_intervals(
        &self,
        options: &CallNetworkOptions<'_>,
    ) -> Result<[(f64, f64); 2], StatsError> {
        let mut resampler = Resampler::from_seed(options.seed);
        let (mut latencies, mut per_bytes, mut drawn) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..options.replicates {
            resampler.draw_into(&self.warmths, &mut drawn);
            let again = self.trips.resampled(&mut resampler);
            let transfer = again.transfer(warmth(&drawn))?;
            latencies.push(transfer.latency);
            per_bytes.push(transfer.per_byte);
        }
        Ok([
            percentile_interval(&latencies, options.level)?,
            percentile_interval(&per_bytes, options.level)?,
        ])
    }
}

/// Joins pieces: those of `below` up to the limit, and those of `above` from there on.
fn joined(
    mut below: Vec<OverheadPiece>,
    limit: Option<Bytes>,
    above: &[OverheadPiece],
) -> Vec<OverheadPiece> {
    let Some(limit) = limit else { return below };
    below.retain(|piece| piece.from < limit);
    let in_force = above.iter().rposition(|piece| piece.from <= limit);
    let mut above = above[in_force.unwrap_or(0)..].to_vec();
    above[0].from = limit;
    below.extend(above);
    below
}

fn overhead(pieces: &[OverheadPiece], size: Bytes) -> Time {
    Overheads::at(pieces, size).unwrap_or_default()
}

fn smallest(fit: &CallFit) -> Time {
    fit.times
        .keys()
        .next()
        .map_or(Time::ZERO, |size| fit.at(*size))
}

fn pieces(curve: &PiecewiseLine) -> Vec<OverheadPiece> {
    let lines = curve.pieces().iter();
    by_size(lines.map(|piece: &LinePiece| (piece.from, piece.line)))
}

/// Time that the network adds by size, rounded to a millionth of a nanosecond. Empty if it is 0 for all sizes.
fn added(lines: &[(f64, Line)]) -> Vec<OverheadPiece> {
    let lines = lines.iter().map(|(from, line)| {
        let [intercept, slope] =
            [line.intercept, line.slope].map(|number| (number * 1e6).round() / 1e6);
        (*from, Line { intercept, slope })
    });
    let pieces = by_size(lines);
    if pieces
        .iter()
        .all(|piece| piece.fixed == Time::ZERO && piece.per_byte == TimePerByte::default())
    {
        return Vec::new();
    }
    pieces
}

fn by_size(lines: impl Iterator<Item = (f64, Line)>) -> Vec<OverheadPiece> {
    let mut pieces: Vec<OverheadPiece> = lines
        .map(|(from, line)| OverheadPiece {
            // The smallest whole size in the piece.
            from: Bytes(from.ceil() as u64),
            fixed: tidy_time(Time::from_nanos(line.intercept)),
            per_byte: tidy_per_byte(TimePerByte::from_nanos(line.slope)),
        })
        .collect();
    // If several pieces start within one byte, the last one applies.
    pieces.reverse();
    pieces.dedup_by_key(|piece| piece.from);
    pieces.reverse();
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calls::{fit_calls, table::CallTimes};
    use proptest::prelude::*;

    const CALLS: [(&str, &str); 4] = [
        ("Isend", "MPI_Isend"),
        ("Recv", "MPI_Recv"),
        ("PingPong", "MPI_Send"),
        ("PingPong", "MPI_Recv"),
    ];

    fn options() -> CallNetworkOptions<'static> {
        CallNetworkOptions {
            name: "x",
            known: None,
            pieces: 4,
            replicates: 5,
            level: 0.9,
            seed: 1,
            provenance: BTreeMap::new(),
        }
    }

    /// Returns the limit if `MPI_Send` takes `sends` nanoseconds at 1, 2, 4, .. bytes and `MPI_Isend` takes 100.
    fn limit(sends: &[f64]) -> Option<EagerLimit> {
        let times = CallTimes {
            calls: CALLS
                .into_iter()
                .map(|(experiment, call)| {
                    let sizes = sends.iter().enumerate().map(|(at, send)| {
                        let time = if call == "MPI_Send" { *send } else { 100.0 };
                        (Bytes(1 << at), Time::from_nanos(time))
                    });
                    (CallName::new("k", experiment, call), sizes.collect())
                })
                .collect(),
        };
        let fits = fit_calls(&times, 2).unwrap();
        CallsByKind::new(&fits).unwrap().eager_limit()
    }

    #[test]
    fn the_eager_limit_misplaces_the_fewest_sizes() {
        let from = |sends: &[f64]| limit(sends).map(|limit| limit.rendezvous_from);
        assert_eq!(from(&[100.0; 6]), None);
        assert_eq!(from(&[100.0, 100.0, 100.0, 100.0, 100.0, 900.0]), None);
        assert_eq!(
            from(&[90.0, 110.0, 100.0, 300.0, 400.0, 500.0]),
            Some(Bytes(8))
        );
        // One outlier on each side.
        assert_eq!(
            from(&[90.0, 800.0, 100.0, 100.0, 300.0, 400.0, 90.0, 500.0, 600.0]),
            Some(Bytes(16))
        );
        assert_eq!(from(&[200.0; 4]), Some(Bytes(0)));
        let found = EagerLimit::new(Some(Bytes(8093)), Bytes(12_610));
        assert_eq!(found.rendezvous_from, Bytes(8192));
        assert_eq!(found.between, [Bytes(8094), Bytes(12_610)]);
        let found = EagerLimit::new(Some(Bytes(9000)), Bytes(16_000));
        assert_eq!(found.rendezvous_from, Bytes(12_000));
    }

    proptest! {
        #[test]
        fn the_network_of_any_calls_reads_back(
            medians in prop::collection::btree_map(0..1u64 << 50, prop::array::uniform4(-9.0..18.0f64), 2..16),
        ) {
            let of_call = |(at, (experiment, call)): (usize, (&str, &str))| {
                let times = medians.iter().map(|(size, powers)| (Bytes(*size), Time::from_nanos(10f64.powf(powers[at]))));
                (CallName::new("k", experiment, call), times.collect())
            };
            let times = CallTimes { calls: CALLS.into_iter().enumerate().map(of_call).collect() };
            let Ok(fits) = fit_calls(&times, 4) else { return Ok(()) };
            let Ok(network) = to_network(&fits, &options()) else { return Ok(()) };
            let read = Network::from_toml(&network.to_toml(), &[]);
            prop_assert!(read.is_ok(), "{read:?}\n{}", network.to_toml());
        }
    }
}
