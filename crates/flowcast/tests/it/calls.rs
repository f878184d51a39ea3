//! Times of MPI calls on real clusters: fitted to one half of the sizes, predicted for the other.

use std::collections::BTreeMap;

use flowcast::{
    Contention, Options,
    fit::calls::{
        CallError, CallFit, fit_calls,
        network::{CallNetworkOptions, to_network},
        table::{CallName, CallTimes},
    },
    model::{network::Network, sharing::model::Model},
    predict, read_text,
    statistics::{resampling::Resampler, sample::median},
    units::{Bytes, Time},
};
use proptest::prelude::*;

const DAHU: &str = include_str!("../../../../tests/data/calls/dahu.csv");
const MEASURED: &str = include_str!("../../../../tests/data/calls/point_to_point.csv");
const PIECES: usize = 8;

type Sizes = BTreeMap<Bytes, Time>;

fn measured(cluster: &str) -> CallTimes {
    CallTimes::from_csv(MEASURED).unwrap().of_cluster(cluster)
}

/// The entries at indices for which `is_kept` is `true`, and the other entries.
fn split(times: &Sizes, is_kept: impl Fn(usize) -> bool) -> [Sizes; 2] {
    let (kept, others): (Vec<_>, Vec<_>) =
        times.iter().enumerate().partition(|(at, _)| is_kept(*at));
    [kept, others].map(|part| {
        part.into_iter()
            .map(|(_, (size, time))| (*size, *time))
            .collect()
    })
}

fn fit(name: &CallName, times: Sizes) -> CallFit {
    let times = CallTimes {
        calls: BTreeMap::from([(name.clone(), times)]),
    };
    fit_calls(&times, PIECES).unwrap().remove(name).unwrap()
}

fn median_error(others: &Sizes, predict: impl Fn(Bytes) -> Time) -> f64 {
    let errors: Vec<f64> = others
        .iter()
        .map(|(size, time)| (predict(*size).as_nanos() / time.as_nanos() - 1.0).abs())
        .collect();
    median(&errors).unwrap()
}

fn interpolated(kept: &Sizes, size: Bytes) -> Time {
    let (below, above) = (kept.range(..size).next_back(), kept.range(size..).next());
    let (Some(below), Some(above)) = (below, above) else {
        return *below.or(above).unwrap().1;
    };
    let share = (size.0 - below.0.0) as f64 / (above.0.0 - below.0.0) as f64;
    *below.1 * (1.0 - share) + *above.1 * share
}

/// For all calls of a cluster: errors on sizes that were not fitted, compared with the errors of interpolation, and the
/// share of them that the interval contains.
fn judge(cluster: &str, is_kept: impl Fn(usize) -> bool) {
    let (mut inside, mut all) = (0, 0);
    for (name, times) in measured(cluster).calls {
        let [kept, others] = split(&times, &is_kept);
        let fit = fit(&name, kept.clone());
        let error = median_error(&others, |size| fit.at(size));
        let interpolation = median_error(&others, |size| interpolated(&kept, size));
        let limit = (1.5 * interpolation).max(0.03);
        println!(
            "{name}: {error:.4}, interpolated {interpolation:.4}, {} pieces",
            fit.curve.pieces().len()
        );
        assert!(error <= limit, "{name}: {error} is above {limit}");
        assert!(fit.curve.pieces().len() <= PIECES);
        inside += others
            .iter()
            .filter(|(size, time)| {
                let interval = fit.predict(**size, 0.9).unwrap();
                (interval.low..=interval.high).contains(*time)
            })
            .count();
        all += others.len();
    }
    let share = f64::from(inside as u32) / f64::from(all as u32);
    println!("{cluster}: {share:.3} of the medians are in their intervals");
    assert!((0.86..=0.95).contains(&share), "{share}");
}

#[test]
fn every_second_size_of_taurus_predicts_the_others() {
    judge("taurus", |at| at % 2 == 0);
}

#[test]
fn a_random_half_of_the_sizes_of_miriel_predicts_the_others() {
    let mut places: Vec<usize> = (0..490).collect();
    Resampler::from_seed(1).shuffle(&mut places);
    let kept: Vec<usize> = places[..245].to_vec();
    judge("miriel", |at| kept.contains(&at));
}

fn every_second(times: &CallTimes) -> [CallTimes; 2] {
    [0, 1].map(|part| {
        let of_call = |(name, sizes): (&CallName, &Sizes)| {
            (name.clone(), split(sizes, |at| at % 2 == part)[0].clone())
        };
        CallTimes {
            calls: times.calls.iter().map(of_call).collect(),
        }
    })
}

fn network_of(times: &CallTimes, known: Option<&Network>) -> Result<Network, CallError> {
    let options = CallNetworkOptions {
        name: "fitted",
        known,
        pieces: PIECES,
        replicates: 40,
        level: 0.95,
        seed: 1,
        provenance: BTreeMap::new(),
    };
    to_network(&fit_calls(times, PIECES).unwrap(), &options)
}

/// Replayed times of the experiments in which calls were measured.
struct ReplayedCalls {
    round_trip: Time,
    isend: Time,
    /// Time of a receive of a message that has arrived.
    receive: Time,
}

fn replayed(network: &Network, size: Bytes, contention: Contention) -> ReplayedCalls {
    const COMPUTED: f64 = 10.0;
    let Bytes(size) = size;
    let ping_pong = format!(
        "#DIMEMAS:\"pingpong\":1,0:2(1,1),1\nd:1:1:2:0:1\n2:0:0:1:-1:{size}:7:1:0\n3:0:0:1:-1:{size}:7:1:0\n\
         3:1:0:0:-1:{size}:7:1:0\n2:1:0:0:-1:{size}:7:1:0\n"
    );
    let alone = format!(
        "#DIMEMAS:\"alone\":1,0:2(1,1),1\nd:1:1:2:0:1\n2:0:0:1:-1:{size}:7:1:2\n1:1:0:{COMPUTED}\n3:1:0:0:-1:{size}:7:1:0\n"
    );
    let options = Options {
        contention,
        ..Options::default()
    };
    let [round_trip, alone] = [ping_pong, alone].map(|text| {
        let trace = read_text("calls.dim", text).unwrap();
        predict(&trace, network, &options).unwrap().outcome
    });
    ReplayedCalls {
        round_trip: round_trip.ranks[0].end,
        isend: alone.ranks[0].end,
        receive: alone.ranks[1].end - Time::from_seconds(COMPUTED),
    }
}

fn series<'a>(times: &'a CallTimes, cluster: &str, experiment: &str, call: &str) -> &'a Sizes {
    &times.calls[&CallName::new(cluster, experiment, call)]
}

fn round_trips(times: &CallTimes, cluster: &str) -> Sizes {
    let [send, receive] =
        ["MPI_Send", "MPI_Recv"].map(|call| series(times, cluster, "PingPong", call));
    let both = send
        .iter()
        .map(|(size, time)| (*size, *time + receive[size]));
    both.collect()
}

/// Median errors of round trips, of `MPI_Isend` alone and of `MPI_Recv` of messages that have arrived, and the size from
/// which messages of the network wait.
struct HeldOutCalls {
    rendezvous_from: Option<Bytes>,
    round_trip: f64,
    isend: f64,
    receive: f64,
}

/// Network from every second size, and its replays of the other sizes. Errors of round trips are as small as those of
/// interpolation.
fn held_out(times: &CallTimes, cluster: &str) -> HeldOutCalls {
    let [kept, others] = every_second(times);
    let network = network_of(&kept, None).unwrap();
    let known = round_trips(&kept, cluster);
    let interpolation = median_error(&round_trips(&others, cluster), |size| {
        interpolated(&known, size)
    });
    let replay = |size| replayed(&network, size, Contention::Limits);
    let [round_trip, isend, receive] = [
        median_error(&round_trips(&others, cluster), |size| {
            replay(size).round_trip
        }),
        median_error(series(&others, cluster, "Isend", "MPI_Isend"), |size| {
            replay(size).isend
        }),
        median_error(series(&others, cluster, "Recv", "MPI_Recv"), |size| {
            replay(size).receive
        }),
    ];
    println!(
        "{cluster}: round trip {round_trip:.4}, interpolated {interpolation:.4}, Isend {isend:.4}, Recv {receive:.4}"
    );
    assert!(round_trip < (1.2 * interpolation).max(0.02));
    HeldOutCalls {
        rendezvous_from: network.point_to_point.rendezvous_from,
        round_trip,
        isend,
        receive,
    }
}

/// Samples of Dahu's `MPI_Isend` alone differ by a factor of two and more, so no function of the size has a smaller error.
#[test]
fn replays_of_dahu_agree_with_measurements_of_other_sizes() {
    let times = CallTimes::from_csv(DAHU).unwrap();
    let found = held_out(&times, "dahu");
    assert!(found.round_trip < 0.05 && found.isend < 0.45 && found.receive < 0.05);
    // MPI_Send takes 1.3 us for 8093 bytes and 6.5 us for 12,610.
    let Bytes(from) = network_of(&times, None)
        .unwrap()
        .point_to_point
        .rendezvous_from
        .unwrap();
    assert!((8094..=12_610).contains(&from), "{from}");
}

#[test]
fn replays_of_taurus_and_miriel_agree_with_measurements_of_other_sizes() {
    for (cluster, limit) in [("taurus", 65_536), ("miriel", 131_072)] {
        let found = held_out(&measured(cluster), cluster);
        assert!(found.isend < 0.02 && found.receive < 0.1);
        assert_eq!(found.rendezvous_from, Some(Bytes(limit)), "{cluster}");
    }
}

#[test]
fn a_network_fitted_to_calls_reads_back_and_keeps_other_fields() {
    let times = CallTimes::from_csv(DAHU).unwrap();
    let known = "schema = 'flowcast/network/2'\nname = 'base'\n[point_to_point]\nrule = 'hockney'\n[nic]\nlatency = '9us'\n\
                 bandwidth = '1GB/s'\nwire_rate = '100Gbit/s'\n[topology]\nfat_tree = 8\n[machine]\nmapping = { per-node = 2 }\n\
                 [[machine.nodes]]\ncount = 32\ncpus = 2\nintra_latency = '0.3us'\nintra_bandwidth = '8GB/s'\n\
                 [intervals]\n'nic.latency' = { low = '8us', high = '10us', level = 0.9 }\n\
                 'machine.nodes.0.intra_latency' = { low = '0.2us', high = '0.4us', level = 0.9 }\n";
    let known = Network::from_toml(known, &[]).unwrap();
    let [alone, besides] = [None, Some(&known)].map(|known| network_of(&times, known).unwrap());
    for network in [&alone, &besides] {
        assert_eq!(
            Network::from_toml(&network.to_toml(), &[]).unwrap(),
            *network
        );
    }
    assert_eq!(besides.machine, known.machine);
    assert_eq!(besides.topology, known.topology);
    assert_eq!(besides.nic.rate.wire(), known.nic.rate.wire());
    assert_eq!(besides.nic.latency, alone.nic.latency);
    assert_eq!(
        besides.intervals["nic.latency"],
        alone.intervals["nic.latency"]
    );
    assert!(
        besides
            .intervals
            .contains_key("machine.nodes.0.intra_latency")
    );
    let tells_of_nodes = |network: &Network| {
        network
            .fit
            .warnings
            .iter()
            .any(|told| told.contains("inside a node"))
    };
    assert!(tells_of_nodes(&alone) && !tells_of_nodes(&besides));
}

/// Times of a made-up network, in nanoseconds. `limit` is the first size that waits.
#[derive(Debug, Clone, Copy)]
struct MadeUpCalls {
    latency: f64,
    per_byte: f64,
    send: f64,
    receive: f64,
    copy_per_byte: f64,
    handshake: f64,
    limit: f64,
}

impl MadeUpCalls {
    fn half(&self, size: f64) -> f64 {
        let eager = size < self.limit;
        let copied = if eager {
            size * self.copy_per_byte
        } else {
            0.0
        };
        let waited = if eager { 0.0 } else { self.handshake };
        self.send + self.receive + 2.0 * copied + waited + self.latency + size * self.per_byte
    }

    /// Times of the four calls, with errors of up to one part in a hundred.
    fn times(&self, resampler: &mut Resampler) -> CallTimes {
        let mut calls: BTreeMap<CallName, Sizes> = BTreeMap::new();
        for step in 0..90 {
            let size = (2.0 + 0.25 * f64::from(step)).exp2().floor();
            let eager = size < self.limit;
            let copied = if eager {
                size * self.copy_per_byte
            } else {
                0.0
            };
            let isend = self.send + copied;
            let send = if eager { isend } else { self.half(size) };
            let received = if eager {
                self.receive + copied
            } else {
                self.half(size) - self.send
            };
            for (experiment, call, time) in [
                ("Isend", "MPI_Isend", isend),
                ("Recv", "MPI_Recv", received),
                ("PingPong", "MPI_Send", send),
                ("PingPong", "MPI_Recv", 2.0 * self.half(size) - send),
            ] {
                let time = Time::from_nanos(time * (0.99 + 0.02 * resampler.share()));
                let sizes = calls.entry(CallName::new("k", experiment, call));
                sizes.or_default().insert(Bytes(size as u64), time);
            }
        }
        CallTimes { calls }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn made_up_calls_give_back_their_network(
        latency in 800.0..20_000.0f64,
        per_byte in 0.05..2.0f64,
        overheads in (200.0..800.0f64, 200.0..800.0f64),
        copied in 0.1..0.5f64,
        handshake in 1.0..10.0f64,
        limit in 11..18i32,
        seed in 0..1000u64,
    ) {
        let made_up = MadeUpCalls {
            latency,
            per_byte,
            send: overheads.0,
            receive: overheads.1,
            copy_per_byte: copied * per_byte,
            handshake: handshake * latency,
            limit: f64::from(limit).exp2(),
        };
        let network = network_of(&made_up.times(&mut Resampler::from_seed(seed)), None).unwrap();
        let near = |found: f64, expected: f64, share: f64| (found / expected - 1.0).abs() < share;
        prop_assert_eq!(network.point_to_point.rendezvous_from, Some(Bytes(1 << limit)));
        prop_assert!(near(network.nic.per_byte().as_nanos(), per_byte, 0.05), "{:?}", network.nic);
        prop_assert!(near(network.nic.latency.as_nanos(), latency, 0.15), "{:?}", network.nic);
        for size in [16u64, 1000, 30_000, 1_000_000, 20_000_000] {
            let [limits, fair] = [Contention::Limits, Contention::Shared(Model::Fair)]
                .map(|contention| replayed(&network, Bytes(size), contention).round_trip.as_nanos());
            prop_assert!(near(limits, 2.0 * made_up.half(size as f64), 0.1), "{size}: {limits} {made_up:?}");
            prop_assert!(near(fair, limits, 1e-6), "{size}: {fair} {limits}");
        }
    }
}

#[test]
fn a_network_needs_one_cluster_and_its_four_calls() {
    let few =
        "cluster,experiment,call,bytes,median_ns\na,Isend,MPI_Isend,1,9\na,Isend,MPI_Isend,2,9\n";
    let network = |text: &str| {
        network_of(&CallTimes::from_csv(text).unwrap(), None)
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        network(few),
        "found no a Recv MPI_Recv, expected it for a network file"
    );
    let two = network(&(few.to_owned() + "b,Isend,MPI_Isend,1,9\nb,Isend,MPI_Isend,2,9\n"));
    assert_eq!(
        two,
        "found the clusters a, b, expected one for a network file"
    );
}
