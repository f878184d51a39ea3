//! The closed loop's solutions against the conditions that define them, and its special cases by hand.

use flowcast::cluster::flow::Flow;
use flowcast::cluster::racks::Racks;
use flowcast::model::sharing::closed_loop::{ClosedLoop, Feedback};
use flowcast::model::sharing::fabric::{Fabric, LinkId, Share};
use flowcast::model::sharing::fair::Fair;
use flowcast::model::sharing::{RateModel, SharingError};
use flowcast::units::{Bytes, Node, Time};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

fn flows(pairs: &[(u32, u32)]) -> Vec<Flow> {
    let flow = |(id, (src, dst)): (u32, &(u32, u32))| {
        let (src, dst) = (Node(*src), Node(*dst));
        Flow { id, src, dst, size: Bytes(1), start: Time::ZERO }
    };
    (1..).zip(pairs).map(flow).collect()
}

fn shares(pairs: &[(u32, u32)], alpha: f64, kappa: f64) -> Vec<f64> {
    let fabric = Fabric::new(&flows(pairs), &Racks::default(), None);
    let active: Vec<usize> = (0..pairs.len()).collect();
    let mut model = ClosedLoop::new(Feedback { alpha, kappa });
    model.shares(&fabric, &active).unwrap().iter().map(|allocation| allocation.share.0).collect()
}

fn assert_close(found: &[f64], expected: &[f64]) {
    assert_eq!(found.len(), expected.len());
    for (one, other) in found.iter().zip(expected) {
        assert!((one - other).abs() < 1e-6, "found {found:?}, expected {expected:?}");
    }
}

const ZIGZAG_OF_THREE: [(u32, u32); 3] = [(0, 1), (2, 1), (2, 3)];

#[test]
fn proportional_fairness_gives_the_cuts_of_lam_in_a_zigzag_of_three() {
    assert_close(&shares(&ZIGZAG_OF_THREE, 1.0, 0.0), &[2.0 / 3.0, 1.0 / 3.0, 2.0 / 3.0]);
}

#[test]
fn the_ratio_of_end_to_middle_in_a_zigzag_of_three_is_two_to_the_inverse_of_alpha() {
    for alpha in [0.3, 0.5, 1.0, 2.41, 10.0, 50.0] {
        let end = 2f64.powf(1.0 / alpha) / (1.0 + 2f64.powf(1.0 / alpha));
        assert_close(&shares(&ZIGZAG_OF_THREE, alpha, 0.0), &[end, 1.0 - end, end]);
    }
}

#[test]
fn a_zigzag_of_five_is_shared_three_to_two() {
    let found = shares(&[(0, 1), (2, 1), (2, 3), (4, 3), (4, 5)], 1.0, 0.0);
    assert_close(&found, &[0.6, 0.4, 0.6, 0.4, 0.6]);
}

#[test]
fn acknowledgements_make_two_in_and_one_out_equal() {
    assert_close(&shares(&[(1, 0), (2, 0), (0, 3)], 1.0, 1.0), &[0.5, 0.5, 0.5]);
    assert_close(&shares(&[(1, 0), (2, 0), (0, 3)], 1.0, 0.0), &[0.5, 0.5, 1.0]);
}

/// Twelve nodes in two racks, up to so many flows.
fn pairs(most: usize) -> impl Strategy<Value = Vec<(u32, u32)>> {
    let pair = (0u32..12, 0u32..11).prop_map(|(src, other)| (src, if other >= src { other + 1 } else { other }));
    proptest::collection::vec(pair, 1..most)
}

fn racks() -> Racks {
    let mut racks = Racks::default();
    racks.place(Node(0), Node(5), "A").unwrap();
    racks.place(Node(6), Node(11), "B").unwrap();
    racks
}

/// Load of each link, and what the rates must be for these delays.
fn check_conditions(fabric: &Fabric, active: &[usize], feedback: Feedback, model: &mut ClosedLoop) {
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
        assert!(*load <= capacity * (1.0 + 1e-8), "link {link} carries {load} of {capacity}");
        let has_queue = delays[link].powf(1.0 / feedback.alpha.max(1.0)) > 1e-8;
        assert!(!has_queue || (load - capacity).abs() <= 1e-8 * capacity, "link {link} waits at {load} of {capacity}");
    }
    for (flow, allocation) in active.iter().zip(&allocations) {
        let path = &fabric.paths[*flow];
        let sum = |links: &[LinkId]| links.iter().map(|link| delays[link.index()]).sum::<f64>();
        let delay = sum(path.data()) + feedback.kappa * sum(path.acknowledgements());
        // A flow that meets nobody has no delay to find: any that gives its lone rate will do.
        let is_alone = allocation.share == fabric.lone_share(path);
        let rate = delay.powf(-1.0 / feedback.alpha);
        assert!(is_alone || (rate - allocation.share.0).abs() <= 1e-6 * rate, "{rate} against {allocation:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, max_shrink_iters: 40, rng_seed: proptest::test_runner::RngSeed::Fixed(6), ..ProptestConfig::default() })]

    #[test]
    fn rates_and_delays_satisfy_the_complementarity_conditions(
        pairs in pairs(20), alpha in 0.3..2.0f64, kappa in 0.0..1.0f64, backbone in 0.5..6.0f64, half in any::<bool>(),
    ) {
        let feedback = Feedback { alpha, kappa };
        let fabric = Fabric::new(&flows(&pairs), &racks(), Some(Share(backbone)));
        let mut model = ClosedLoop::new(feedback);
        let all: Vec<usize> = (0..pairs.len()).collect();
        check_conditions(&fabric, &all, feedback, &mut model);
        // From the solution with all flows to the one with fewer.
        let some: Vec<usize> = all.into_iter().filter(|flow| half || flow % 3 > 0).collect();
        check_conditions(&fabric, &some, feedback, &mut model);
    }

    #[test]
    fn kappa_one_and_alpha_one_settle(pairs in pairs(24), backbone in 0.5..6.0f64) {
        let feedback = Feedback { alpha: 1.0, kappa: 1.0 };
        let fabric = Fabric::new(&flows(&pairs), &racks(), Some(Share(backbone)));
        let all: Vec<usize> = (0..pairs.len()).collect();
        check_conditions(&fabric, &all, feedback, &mut ClosedLoop::new(feedback));
    }

    #[test]
    fn a_large_alpha_comes_near_max_min(pairs in pairs(12)) {
        let fabric = Fabric::new(&flows(&pairs), &racks(), Some(Share(2.0)));
        let all: Vec<usize> = (0..pairs.len()).collect();
        let fair = Fair::default().shares(&fabric, &all).unwrap();
        let near = ClosedLoop::new(Feedback { alpha: 30.0, kappa: 0.0 }).shares(&fabric, &all);
        // How often it may fail to settle is bounded below.
        prop_assume!(!matches!(near, Err(SharingError::Unsettled { .. })));
        let near = near.unwrap();
        for (one, other) in fair.iter().zip(&near) {
            prop_assert!((one.share.0 - other.share.0).abs() < 0.05, "{fair:?} {near:?}");
        }
    }
}

#[test]
fn at_a_large_alpha_nearly_all_patterns_settle() {
    const PATTERNS: usize = 400;
    let feedback = Feedback { alpha: 30.0, kappa: 0.0 };
    let mut runner = TestRunner::deterministic();
    let settles = |_: &usize| {
        let pairs = pairs(12).new_tree(&mut runner).unwrap().current();
        let fabric = Fabric::new(&flows(&pairs), &racks(), Some(Share(2.0)));
        let all: Vec<usize> = (0..pairs.len()).collect();
        ClosedLoop::new(feedback).shares(&fabric, &all).is_ok()
    };
    let settled = (0..PATTERNS).filter(settles).count();
    assert!(settled * 100 >= PATTERNS * 97, "{settled} of {PATTERNS} settle");
}
