//! Solutions of the closed loop, compared with the conditions that define them, and special cases by hand.

use flowcast::{
    flows::fluid::{self, Demand},
    model::{
        cluster::{flow::Flow, racks::Racks, streaming::Stream},
        sharing::{
            Changes, RateModel, SharingError,
            active_flows::ActiveFlows,
            closed_loop::{ClosedLoop, Feedback},
            completion::FlowCompletion,
            fabric::{AllocatedFraction, Fabric, LinkId},
            fair::Fair,
        },
    },
    units::{Bytes, Node, Rate, Time},
};
use proptest::{
    prelude::*,
    strategy::ValueTree,
    test_runner::{TestCaseError, TestRunner},
};

fn flows(pairs: &[(u32, u32)]) -> Vec<Flow> {
    let flow = |(id, (src, dst)): (u32, &(u32, u32))| {
        let (src, dst) = (Node(*src), Node(*dst));
        Flow {
            id,
            src,
            dst,
            size: Bytes(1),
            start: Time::ZERO,
        }
    };
    (1..).zip(pairs).map(flow).collect()
}

fn shares(pairs: &[(u32, u32)], alpha: f64, kappa: f64) -> Vec<f64> {
    let fabric = Fabric::new(&flows(pairs), &Racks::default(), None);
    let active: Vec<usize> = (0..pairs.len()).collect();
    let mut model = ClosedLoop::new(Feedback { alpha, kappa });
    model
        .shares(&fabric, &active)
        .unwrap()
        .iter()
        .map(|allocation| allocation.share.0)
        .collect()
}

fn assert_close(found: &[f64], expected: &[f64]) {
    assert_eq!(found.len(), expected.len());
    for (one, other) in found.iter().zip(expected) {
        assert!(
            (one - other).abs() < 1e-6,
            "found {found:?}, expected {expected:?}"
        );
    }
}

const ZIGZAG_OF_THREE: [(u32, u32); 3] = [(0, 1), (2, 1), (2, 3)];

#[test]
fn proportional_fairness_gives_the_cuts_of_lam_in_a_zigzag_of_three() {
    assert_close(
        &shares(&ZIGZAG_OF_THREE, 1.0, 0.0),
        &[2.0 / 3.0, 1.0 / 3.0, 2.0 / 3.0],
    );
}

#[test]
fn the_ratio_of_end_to_middle_in_a_zigzag_of_three_is_two_to_the_inverse_of_alpha() {
    for alpha in [0.3, 0.5, 1.0, 2.41, 10.0, 50.0] {
        let end = 2f64.powf(1.0 / alpha) / (1.0 + 2f64.powf(1.0 / alpha));
        assert_close(
            &shares(&ZIGZAG_OF_THREE, alpha, 0.0),
            &[end, 1.0 - end, end],
        );
    }
}

#[test]
fn a_zigzag_of_five_is_shared_three_to_two() {
    let found = shares(&[(0, 1), (2, 1), (2, 3), (4, 3), (4, 5)], 1.0, 0.0);
    assert_close(&found, &[0.6, 0.4, 0.6, 0.4, 0.6]);
}

#[test]
fn acknowledgements_make_two_in_and_one_out_equal() {
    assert_close(
        &shares(&[(1, 0), (2, 0), (0, 3)], 1.0, 1.0),
        &[0.5, 0.5, 0.5],
    );
    assert_close(
        &shares(&[(1, 0), (2, 0), (0, 3)], 1.0, 0.0),
        &[0.5, 0.5, 1.0],
    );
}

/// Pairs of twelve nodes in two racks, for at most `most` flows.
fn pairs(most: usize) -> impl Strategy<Value = Vec<(u32, u32)>> {
    let pair = (0u32..12, 0u32..11)
        .prop_map(|(src, other)| (src, if other >= src { other + 1 } else { other }));
    proptest::collection::vec(pair, 1..most)
}

fn racks() -> Racks {
    let mut racks = Racks::default();
    racks.place(Node(0), Node(5), "A").unwrap();
    racks.place(Node(6), Node(11), "B").unwrap();
    racks
}

/// Checks the load of each link, and the rates that these delays require.
fn check_conditions(
    fabric: &Fabric,
    active: &[usize],
    feedback: Feedback,
    model: &mut ClosedLoop,
    tolerance: f64,
) {
    let allocations = model.shares(fabric, active).unwrap();
    let delays = model.delays();
    let mut loads = vec![0.0; fabric.link_count()];
    for (flow, allocation) in active.iter().zip(&allocations) {
        for link in fabric.paths[*flow].data() {
            loads[link.index()] += allocation.share.0;
        }
    }
    for (link, load) in loads.iter().enumerate() {
        let capacity = fabric.capacity(LinkId(link as u32)).0;
        assert!(
            *load <= capacity * (1.0 + tolerance),
            "link {link} carries {load} of {capacity}"
        );
        let has_queue = delays[link].powf(1.0 / feedback.alpha.max(1.0)) > tolerance;
        assert!(
            !has_queue || (load - capacity).abs() <= tolerance * capacity,
            "link {link} waits at {load} of {capacity}"
        );
    }
    for (flow, allocation) in active.iter().zip(&allocations) {
        let path = &fabric.paths[*flow];
        let sum = |links: &[LinkId]| links.iter().map(|link| delays[link.index()]).sum::<f64>();
        let delay = sum(path.data()) + feedback.kappa * sum(path.acknowledgements());
        // The delay of a flow without contention is arbitrary: any delay that gives the rate of a flow alone is valid.
        let is_alone = allocation.share == fabric.uncontended_share(path);
        let rate = delay.powf(-1.0 / feedback.alpha);
        assert!(
            is_alone || (rate - allocation.share.0).abs() <= 1e-6 * rate,
            "{rate} against {allocation:?}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, max_shrink_iters: 40, rng_seed: proptest::test_runner::RngSeed::Fixed(6), ..ProptestConfig::default() })]

    #[test]
    fn rates_and_delays_satisfy_the_complementarity_conditions(
        pairs in pairs(20), alpha in 0.3..2.0f64, kappa in 0.0..1.0f64, backbone in 0.5..6.0f64, half in any::<bool>(),
    ) {
        let feedback = Feedback { alpha, kappa };
        let fabric = Fabric::new(&flows(&pairs), &racks(), Some(AllocatedFraction(backbone)));
        let mut model = ClosedLoop::new(feedback);
        let all: Vec<usize> = (0..pairs.len()).collect();
        check_conditions(&fabric, &all, feedback, &mut model, 1e-8);
        // Starts from the solution with all flows and finds the one with fewer flows.
        let some: Vec<usize> = all.into_iter().filter(|flow| half || flow % 3 > 0).collect();
        check_conditions(&fabric, &some, feedback, &mut model, 1e-8);
    }

    #[test]
    fn kappa_one_and_alpha_one_settle(pairs in pairs(24), backbone in 0.5..6.0f64) {
        let feedback = Feedback { alpha: 1.0, kappa: 1.0 };
        let fabric = Fabric::new(&flows(&pairs), &racks(), Some(AllocatedFraction(backbone)));
        let all: Vec<usize> = (0..pairs.len()).collect();
        check_conditions(&fabric, &all, feedback, &mut ClosedLoop::new(feedback), 1e-8);
    }

    #[test]
    fn a_large_alpha_comes_near_max_min(pairs in pairs(12)) {
        let fabric = Fabric::new(&flows(&pairs), &racks(), Some(AllocatedFraction(2.0)));
        let all: Vec<usize> = (0..pairs.len()).collect();
        let fair = Fair::default().shares(&fabric, &all).unwrap();
        let near = ClosedLoop::new(Feedback { alpha: 30.0, kappa: 0.0 }).shares(&fabric, &all);
        // Another test limits the number of failures to settle.
        prop_assume!(!matches!(near, Err(SharingError::Unsettled { .. })));
        let near = near.unwrap();
        for (one, other) in fair.iter().zip(&near) {
            prop_assert!((one.share.0 - other.share.0).abs() < 0.05, "{fair:?} {near:?}");
        }
    }
}

/// Checks that the last reported rates of the flows and the stored delays meet the conditions, up to a tolerance.
fn check_kept(
    fabric: &Fabric,
    rates: &[Option<f64>],
    delays: &[f64],
    tolerance: f64,
) -> Result<(), TestCaseError> {
    let mut loads = vec![0.0; fabric.link_count()];
    for (path, rate) in fabric
        .paths
        .iter()
        .zip(rates)
        .filter_map(|(path, rate)| Some((path, (*rate)?)))
    {
        path.data()
            .iter()
            .for_each(|link| loads[link.index()] += rate);
    }
    for (link, load) in loads.into_iter().enumerate() {
        let capacity = fabric.capacity(LinkId(link as u32)).0;
        prop_assert!(
            load <= capacity * (1.0 + tolerance),
            "link {link} carries {load} of {capacity}"
        );
        let is_full = load >= capacity * (1.0 - tolerance);
        prop_assert!(
            load == 0.0 || delays[link] == 0.0 || is_full,
            "link {link} waits at {load} of {capacity}"
        );
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, max_shrink_iters: 20, rng_seed: proptest::test_runner::RngSeed::Fixed(7), ..ProptestConfig::default() })]

    #[test]
    fn the_conditions_hold_after_each_start_and_end_of_a_flow(
        pairs in pairs(150), steps in proptest::collection::vec(0usize..150, 1..150),
        alpha in 0.5..2.0f64, kappa in prop_oneof![Just(0.0), Just(1.0), 0.0..1.0f64], backbone in 0.5..6.0f64,
    ) {
        let fabric = Fabric::new(&flows(&pairs), &racks(), Some(AllocatedFraction(backbone)));
        let mut model = ClosedLoop::for_program(Feedback { alpha, kappa });
        let mut active_flows = ActiveFlows::new(fabric.link_count());
        let mut rates = vec![None; pairs.len()];
        for flow in steps.into_iter().map(|step| step % pairs.len()) {
            match rates[flow].take() {
                Some(_) => active_flows.remove(flow as u32, &fabric.paths[flow]),
                None => {
                    active_flows.insert(flow as u32, &fabric.paths[flow]);
                    rates[flow] = Some(0.0);
                }
            }
            let mut changes = Changes::default();
            model.update(&fabric, &mut active_flows, &mut changes).unwrap();
            active_flows.settle();
            for (changed, allocation) in changes.flows {
                rates[changed as usize] = rates[changed as usize].map(|_| allocation.share.0);
            }
            check_kept(&fabric, &rates, model.delays(), 5e-3)?;
        }
    }
}

#[test]
fn a_torus_of_neighbours_that_all_send_at_once_settles() {
    // Six by six nodes, each with its four neighbours. Some do not send, so that nothing is symmetric.
    let at = |row: u32, column: u32| row % 6 * 6 + column % 6;
    let neighbours = |node: u32| {
        let (row, column) = (node / 6, node % 6);
        [
            at(row + 1, column),
            at(row + 5, column),
            at(row, column + 1),
            at(row, column + 5),
        ]
        .map(|other| (node, other))
    };
    let sends = |(place, _): &(usize, (u32, u32))| place * 7919 % 11 > 2;
    let pairs: Vec<(u32, u32)> = (0..36)
        .flat_map(neighbours)
        .enumerate()
        .filter(sends)
        .map(|(_, pair)| pair)
        .collect();
    let feedback = Feedback {
        alpha: 1.0,
        kappa: 1.0,
    };
    let fabric = Fabric::new(&flows(&pairs), &Racks::default(), None);
    let all: Vec<usize> = (0..pairs.len()).collect();
    assert!(all.len() > 90);
    check_conditions(
        &fabric,
        &all,
        feedback,
        &mut ClosedLoop::new(feedback),
        2e-6,
    );
}

#[test]
fn at_a_large_alpha_nearly_all_patterns_settle() {
    const PATTERNS: usize = 400;
    let feedback = Feedback {
        alpha: 30.0,
        kappa: 0.0,
    };
    let mut runner = TestRunner::deterministic();
    let settles = |_: &usize| {
        let pairs = pairs(12).new_tree(&mut runner).unwrap().current();
        let fabric = Fabric::new(&flows(&pairs), &racks(), Some(AllocatedFraction(2.0)));
        let all: Vec<usize> = (0..pairs.len()).collect();
        ClosedLoop::new(feedback).shares(&fabric, &all).is_ok()
    };
    let settled = (0..PATTERNS).filter(settles).count();
    assert!(
        settled * 100 >= PATTERNS * 97,
        "{settled} of {PATTERNS} settle"
    );
}

#[test]
fn streams_of_flows_over_oscillating_rings_of_links_settle() {
    // Two of these did not settle with the step sizes that suit most cases.
    for seed in [1, 2] {
        let stream = Stream {
            nodes: 32,
            flows: 2000,
            sizes: (Bytes(64 << 10), Bytes(4 << 20)),
            load: 0.8,
            rate: Rate::from_bytes_per_second(125e6),
            seed,
        };
        let flows = stream.draw();
        let fabric = Fabric::new(&flows, &Racks::default(), None);
        let demand = |flow: &Flow| Demand {
            start: flow.start,
            work: stream.rate.time_for(flow.size),
        };
        let demands: Vec<Demand> = flows.iter().map(demand).collect();
        let mut model = ClosedLoop::new(Feedback {
            alpha: 1.0,
            kappa: 1.0,
        });
        let completions = fluid::simulate(&demands, &fabric, &mut model, &mut ()).unwrap();
        let is_possible = |(demand, completion): (&Demand, &FlowCompletion)| {
            completion.duration >= demand.work * 0.999
        };
        assert!(demands.iter().zip(&completions).all(is_possible));
    }
}
