//! Times of MPI calls on real clusters: fitted to one half of the sizes, predicted for the other.

use std::collections::BTreeMap;

use flowcast::{
    fit::calls::{
        CallFit, fit_calls,
        network::to_network,
        table::{CallName, CallTimes},
    },
    model::{
        network::{Network, Overheads},
        stats::{resampling::Resampler, sample::median},
    },
    units::{Bytes, Time},
};

const MEASURED: &str = include_str!("../../../../tests/data/calls/point_to_point.csv");
const PIECES: usize = 8;

type Sizes = BTreeMap<Bytes, Time>;

fn measured(cluster: &str) -> CallTimes {
    CallTimes::from_csv(MEASURED).unwrap().of_cluster(cluster)
}

/// Those at the places for which `is_kept`, and the others.
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

/// Of all calls of a cluster: the errors on sizes that were not fitted, beside what interpolation misses them by, and which
/// share of them lies in its interval.
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
fn every_second_size_of_taurus_tells_the_others() {
    judge("taurus", |at| at % 2 == 0);
}

#[test]
fn a_random_half_of_the_sizes_of_miriel_tells_the_others() {
    let mut places: Vec<usize> = (0..490).collect();
    Resampler::from_seed(1).shuffle(&mut places);
    let kept: Vec<usize> = places[..245].to_vec();
    judge("miriel", |at| kept.contains(&at));
}

/// The sender's time falls where it no longer copies, at 64 KiB, and half a round trip comes back.
#[test]
fn a_network_is_made_of_the_overheads() {
    let mut times = measured("taurus");
    for sizes in times.calls.values_mut() {
        *sizes = split(sizes, |at| at % 4 == 0)[0].clone();
    }
    let fits = fit_calls(&times, PIECES).unwrap();
    let network = to_network(&fits, "taurus", BTreeMap::new()).unwrap();
    assert_eq!(
        Network::from_toml(&network.to_toml(), &[]).unwrap(),
        network
    );
    assert_eq!(network.point_to_point.rendezvous_from, Some(Bytes(65_536)));
    let [send, receive] = ["MPI_Send", "MPI_Recv"]
        .map(|call| &times.calls[&CallName::new("taurus", "PingPong", call)]);
    let half: Sizes = send
        .iter()
        .map(|(size, time)| (*size, (*time + receive[size]) * 0.5))
        .collect();
    let predicted = |size| {
        let sides = [&network.overheads.send, &network.overheads.receive];
        let sides = sides.map(|side| Overheads::at(side, size).unwrap());
        sides[0] + network.nic.latency + network.nic.time_for(size) + sides[1]
    };
    // Beneath the overheads is one line, of a network whose round trips vary by 11 % from size to size.
    assert!(
        median_error(&half, predicted) < 0.2,
        "{}",
        median_error(&half, predicted)
    );
}

#[test]
fn a_network_needs_one_cluster_and_its_four_calls() {
    let few =
        "cluster,experiment,call,bytes,median_ns\na,Isend,MPI_Isend,1,9\na,Isend,MPI_Isend,2,9\n";
    let network = |text: &str| {
        let fits = fit_calls(&CallTimes::from_csv(text).unwrap(), PIECES).unwrap();
        to_network(&fits, "x", BTreeMap::new())
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
