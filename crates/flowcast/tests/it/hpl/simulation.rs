//! The simulation of HPL compared with the replay of its trace, and invariants of all clusters.

use flowcast::{
    Contention, Options,
    hpl::{
        Broadcast, Cluster, HplSettings, KernelRates, MeasuredRun, NodeProcessors, Pivots,
        RunPrediction, Script, SimulatedExtent, Swap, fit_linpack, predict_runs,
    },
    model::{linpack_costs::LinpackCosts, network::Network},
    predict,
    trace::Trace,
    units::Time,
};
use proptest::prelude::*;

/// Seed of the pivots of a run that is predicted once.
const SEED: u64 = 1;

fn processors(ranks: u32) -> NodeProcessors {
    let mut text = "node,intercept_s,s_per_mnk,resid_per_mnk\n".to_owned();
    for rank in 0..ranks {
        let per_mnk = 1e-10 * (1.0 + 0.01 * f64::from(rank % 5));
        text += &format!("{rank},1e-6,{per_mnk:e},0\n");
    }
    NodeProcessors::parse(&text).unwrap()
}

fn network() -> Network {
    let network = "schema = \"flowcast/network/2\"\nname = \"x\"\n[point_to_point]\nrule = \"hockney\"\n\
                   [nic]\nlatency = \"2us\"\ngap_per_byte = \"1ns/B\"\n";
    Network::from_toml(network, &[]).unwrap()
}

/// One rank on each node, and interfaces for any number of concurrent messages.
fn one_rank_a_node(ranks: u32) -> Cluster {
    let mut cluster = Cluster::new(network(), processors(ranks), 1);
    cluster.network.nic.count = u32::MAX;
    let KernelRates {
        multiply,
        solve,
        cache_bytes,
        cache_rate,
        memory_rate,
    } = KernelRates::default();
    cluster.costs = LinpackCosts {
        multiply,
        call_spread: 0.0,
        solve,
        cache: cache_bytes,
        cache_gap: 1.0 / cache_rate,
        memory_gap: 1.0 / memory_rate,
        node_memory_gap: 1.0 / memory_rate,
        ..cluster.costs
    };
    cluster
}

/// Time of the trace if its messages have the same costs.
fn replayed(settings: HplSettings) -> f64 {
    let script = Script::new(
        settings,
        &Pivots::Random { seed: SEED },
        KernelRates::default(),
        processors(settings.ranks())
            .of_ranks(settings.ranks(), 1)
            .unwrap(),
    );
    let network = network();
    let trace = Trace::Program(script.program().unwrap());
    let options = Options {
        contention: Contention::Limits,
        ..Options::default()
    };
    let prediction = predict(&trace, &network, &options).unwrap();
    prediction.outcome.makespan().as_seconds()
}

fn simulated(settings: HplSettings) -> f64 {
    seconds(&one_rank_a_node(settings.ranks()), settings)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn the_simulation_without_look_ahead_takes_as_long_as_the_replayed_trace(
        order in 1u64..400,
        block in 1u32..40,
        rows in 1u32..7,
        columns in 1u32..7,
        broadcast in 0usize..4,
        swap in prop::sample::select(vec![Swap::Binary, Swap::Long, Swap::Mix(20)]),
    ) {
        let settings = HplSettings {
            order,
            block,
            rows,
            columns,
            depth: 0,
            broadcast: Broadcast::ALL[broadcast],
            swap,
        };
        let (simulated, replayed) = (simulated(settings), replayed(settings));
        // The trace has computations in whole nanoseconds: several for each column, several for each panel.
        let roundings = 2.0 * order as f64 + 20.0 * f64::from(settings.panels()) + 10.0;
        let apart = (simulated - replayed).abs();
        prop_assert!(apart < roundings * 0.5e-9 + 1e-9 * replayed, "{simulated} {replayed}");
    }
}

fn nodes(count: usize, factor: f64) -> NodeProcessors {
    let mut text = "node,intercept_s,s_per_mnk,resid_per_mnk\n".to_owned();
    for node in 0..count {
        let per_mnk = factor * 7e-11 * (1.0 + 0.02 * (node % 4) as f64);
        text += &format!("{node},2e-6,{per_mnk:e},2e-12\n");
    }
    NodeProcessors::parse(&text).unwrap()
}

fn cluster(nodes: NodeProcessors, bandwidth: &str) -> Cluster {
    let network = format!(
        "schema = \"flowcast/network/2\"\nname = \"x\"\n\
         [point_to_point]\nrule = \"loggops\"\nrendezvous_from = \"8KiB\"\n\
         [nic]\nlatency = \"1us\"\nbandwidth = \"{bandwidth}\"\n"
    );
    Cluster::new(Network::from_toml(&network, &[]).unwrap(), nodes, 4)
}

fn run(order: u64, rows: u32, columns: u32) -> HplSettings {
    HplSettings {
        order,
        block: 64,
        rows,
        columns,
        depth: 1,
        broadcast: Broadcast::TwoRings,
        swap: Swap::Binary,
    }
}

fn seconds(cluster: &Cluster, settings: HplSettings) -> f64 {
    let whole = predicted(cluster, settings, SimulatedExtent::Full);
    whole.time.as_seconds()
}

fn predicted(cluster: &Cluster, settings: HplSettings, extent: SimulatedExtent) -> RunPrediction {
    predict_runs(cluster, &[settings], extent, 1, 0.9, 1, &|| ()).unwrap()[0]
}

#[test]
fn slower_products_lengthen_a_run_and_a_slower_network_never_shortens_it() {
    let settings = run(12_000, 4, 8);
    let usual = seconds(&cluster(nodes(8, 1.0), "10GB/s"), settings);
    let slower = seconds(&cluster(nodes(8, 1.5), "10GB/s"), settings);
    assert!((1.3..1.5).contains(&(slower / usual)), "{slower} {usual}");
    let narrow = seconds(&cluster(nodes(8, 1.0), "5GB/s"), settings);
    assert!(narrow >= usual, "{narrow} {usual}");
    let more = seconds(&cluster(nodes(16, 1.0), "10GB/s"), run(12_000, 8, 8));
    assert!(more < usual, "{more} {usual}");
}

#[test]
fn some_panels_predict_the_time_of_all_within_the_stated_error() {
    let cluster = cluster(nodes(4, 1.0), "10GB/s");
    for settings in [run(20_000, 4, 4), run(20_000, 8, 2)] {
        let whole = seconds(&cluster, settings);
        let some = predicted(&cluster, settings, SimulatedExtent::Windows(6));
        let error = (some.time.as_seconds() / whole - 1.0).abs();
        assert!(error < some.left_out.max(0.02), "{error} {}", some.left_out);
    }
}

#[test]
fn predictions_are_equal_on_any_number_of_threads_and_inside_their_intervals() {
    let cluster = cluster(nodes(6, 1.0), "10GB/s");
    let runs = [run(3000, 2, 8), run(3000, 4, 4), run(3000, 16, 1)];
    let predict = |threads| {
        predict_runs(
            &cluster,
            &runs,
            SimulatedExtent::Full,
            3,
            0.9,
            threads,
            &|| (),
        )
    };
    let predictions = predict(1).unwrap();
    assert_eq!(predictions, predict(3).unwrap());
    for prediction in predictions {
        assert!(prediction.low < prediction.time && prediction.time < prediction.high);
    }
}

#[test]
fn a_fit_finds_a_cluster_whose_products_are_slower_than_measured() {
    let mut slow = cluster(nodes(4, 1.0), "10GB/s");
    slow.costs.multiply = 1.06;
    let runs: Vec<MeasuredRun> = [4000, 6000, 8000]
        .map(|order| run(order, 4, 4))
        .map(|settings| MeasuredRun {
            settings,
            time: Time::from_seconds(seconds(&slow, settings)),
        })
        .to_vec();
    let fit = fit_linpack(&cluster(nodes(4, 1.0), "10GB/s"), &runs, 2, &|| ()).unwrap();
    let multiply = fit.linpack.costs.costs.multiply;
    assert!((1.02..1.08).contains(&multiply), "{multiply}");
    assert!(
        fit.errors.iter().all(|error| error.abs() < 0.02),
        "{:?}",
        fit.errors
    );
}

#[test]
fn products_that_take_forever_have_no_time_and_no_fit() {
    let mut endless = cluster(nodes(4, 1.0), "10GB/s");
    endless.costs.multiply = f64::MAX;
    let settings = run(3000, 2, 2);
    let measured = MeasuredRun {
        settings,
        time: Time::from_seconds(1.0),
    };
    let found = predict_runs(
        &endless,
        &[settings],
        SimulatedExtent::Full,
        1,
        0.9,
        1,
        &|| (),
    );
    let error = found.unwrap_err().to_string();
    assert!(error.contains("a run of N = 3000 on 2x2 ranks"), "{error}");
    let slow = cluster(nodes(4, 1e308), "10GB/s");
    let error = fit_linpack(&slow, &[measured], 1, &|| ()).unwrap_err();
    assert!(error.to_string().contains("not a finite number"), "{error}");
}
