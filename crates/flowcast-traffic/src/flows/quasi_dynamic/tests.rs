//! Comparison with the same equations in tiny steps, with the conditions of the steady rates, and with shorter steps.

use flowcast_network::{
    cluster::{flow::Flow, racks::Racks},
    sharing::fabric::{AllocatedFraction, LinkId},
};
use flowcast_units::Node;
use proptest::prelude::*;

use super::*;

const LAG: f64 = 1000.0;

/// Start of a flow and its time alone, in nanoseconds.
type Demand = (f64, f64);

fn fabric(pairs: &[(u32, u32)], backbone: Option<f64>) -> Fabric {
    let mut racks = Racks::default();
    racks.place(Node(0), Node(4), "A").unwrap();
    racks.place(Node(5), Node(9), "B").unwrap();
    Fabric::new(
        &pairs
            .iter()
            .map(|(src, dst): &(u32, u32)| Flow {
                id: 1,
                src: Node(*src),
                dst: Node(*dst),
                size: Bytes(1),
                start: Time::ZERO,
            })
            .collect::<Vec<_>>(),
        &racks,
        backbone.map(AllocatedFraction),
    )
}

/// Returns the ends of the flows.
fn ends(fabric: &Fabric, demands: &[Demand], feedback: Feedback, fineness: u32) -> Vec<f64> {
    let mut flows_in_flight = QuasiDynamicFlows::new(
        fabric,
        feedback,
        Pace {
            lag: Time::from_nanos(LAG),
            fineness,
        },
    );
    let mut waiting: Vec<usize> = (0..demands.len()).collect();
    waiting.sort_by(|one, other| demands[*other].0.total_cmp(&demands[*one].0));
    let mut ends = vec![0.0; demands.len()];
    loop {
        let start = waiting
            .last()
            .map(|flow| Time::from_nanos(demands[*flow].0));
        let next = start
            .into_iter()
            .chain(flows_in_flight.next_end())
            .chain(flows_in_flight.next_step())
            .min();
        let Some(now) = next else { return ends };
        if flows_in_flight.next_step() == Some(now)
            && flows_in_flight.next_end() != Some(now)
            && start != Some(now)
        {
            flows_in_flight.step_on(fabric);
            continue;
        }
        while let Some(flow) = flows_in_flight.end_next(fabric, now) {
            ends[flow as usize] = now.as_nanos();
        }
        while let Some(flow) = waiting.pop_if(|flow| demands[*flow].0 <= now.as_nanos()) {
            flows_in_flight.start(fabric, flow as u32, Time::from_nanos(demands[flow].1));
        }
        flows_in_flight.adapt(fabric, now);
    }
}

/// Quasi-dynamic queues computed as they are defined, without optimization.
struct Reference<'a> {
    fabric: &'a Fabric,
    feedback: Feedback,
    delays: Vec<f64>,
    /// Remaining work of each flow in flight, indexed by flow.
    left: Vec<Option<f64>>,
}

impl Reference<'_> {
    fn delay(&self, flow: usize) -> f64 {
        let sum = |links: &[LinkId]| {
            links
                .iter()
                .map(|link| self.delays[link.index()])
                .sum::<f64>()
        };
        let path = &self.fabric.paths[flow];
        sum(path.data()) + self.feedback.kappa * sum(path.acknowledgements())
    }

    fn rate(&self, delay: f64) -> f64 {
        delay.powf(-1.0 / self.feedback.alpha)
    }

    fn members(&self, link: LinkId) -> Vec<usize> {
        let flows = 0..self.left.len();
        flows
            .filter(|flow| {
                self.left[*flow].is_some() && self.fabric.paths[*flow].data().contains(&link)
            })
            .collect()
    }

    /// Delay at a link for the flows over it.
    fn felt(&self, link: LinkId) -> f64 {
        self.delays[link.index()]
            + self.feedback.kappa * self.delays[self.fabric.opposite(link).index()]
    }

    /// Finds the delay that fills a link, by bisection.
    fn filling(&self, link: LinkId) -> f64 {
        let (members, own, capacity) = (
            self.members(link),
            self.felt(link),
            self.fabric.capacity(link).0,
        );
        let load = |felt: f64| -> f64 {
            members
                .iter()
                .map(|flow| self.rate((self.delay(*flow) - own).max(0.0) + felt))
                .sum()
        };
        let (mut low, mut high) = (0.0, 1e9);
        if load(low) <= capacity {
            return 0.0;
        }
        for _ in 0..200 {
            let middle = (low + high) / 2.0;
            if load(middle) > capacity {
                low = middle
            } else {
                high = middle
            }
        }
        high
    }

    /// Approximates the delay that fills a link by one step of Newton's method.
    fn balance(&self, link: LinkId) -> f64 {
        let (alpha, own) = (self.feedback.alpha, self.felt(link));
        let delays: Vec<f64> = self
            .members(link)
            .into_iter()
            .map(|flow| self.delay(flow))
            .collect();
        if delays.is_empty() {
            return 0.0;
        }
        let load: f64 = delays.iter().map(|delay| self.rate(*delay)).sum();
        let slope: f64 = delays.iter().map(|delay| self.rate(*delay) / delay).sum();
        let excess = (load / self.fabric.capacity(link).0).powf(alpha) - 1.0;
        (own + excess * load / slope).max(0.0)
    }

    fn pair(&self, link: LinkId, felt: impl Fn(LinkId) -> f64) -> Vec<(usize, f64)> {
        if self.feedback.kappa == 0.0 {
            return vec![(link.index(), felt(link))];
        }
        let (out, into) = (LinkId(link.0 & !1), LinkId(link.0 | 1));
        let (x, y, kappa) = (felt(out), felt(into), self.feedback.kappa);
        let (own, other) = match () {
            () if kappa * x >= y => (x, 0.0),
            () if kappa * y >= x => (0.0, y),
            () => (
                (x - kappa * y) / (1.0 - kappa * kappa),
                (y - kappa * x) / (1.0 - kappa * kappa),
            ),
        };
        vec![(out.index(), own), (into.index(), other)]
    }

    fn fit(&mut self, touched: &[usize]) {
        let mut links: Vec<LinkId> = touched
            .iter()
            .flat_map(|flow| self.fabric.paths[*flow].data())
            .copied()
            .collect();
        links.sort_by_key(|link| (!self.fabric.is_of_node(*link), link.0 % 2, *link));
        links.dedup();
        for link in links.repeat(2) {
            for (place, delay) in self.pair(link, |link| self.filling(link)) {
                self.delays[place] = delay;
            }
        }
    }

    fn approach(&mut self, part: f64) {
        let pairs =
            (0..self.delays.len() as u32).step_by(if self.feedback.kappa == 0.0 { 1 } else { 2 });
        let goals: Vec<_> = pairs
            .flat_map(|link| self.pair(LinkId(link), |link| self.balance(link)))
            .collect();
        for (place, goal) in goals {
            self.delays[place] += part * (goal - self.delays[place]);
        }
    }

    fn shares(&self) -> Vec<f64> {
        let lone = |flow: usize| self.fabric.uncontended_share(&self.fabric.paths[flow]).0;
        (0..self.left.len())
            .map(|flow| self.rate(self.delay(flow)).min(lone(flow)))
            .collect()
    }

    fn ends(&mut self, demands: &[Demand], step: f64) -> Vec<f64> {
        let (mut now, mut ends) = (0.0, vec![f64::INFINITY; demands.len()]);
        while ends.contains(&f64::INFINITY) {
            let mut touched = Vec::new();
            for (flow, left) in self.left.iter_mut().enumerate() {
                if left.take_if(|left| *left <= 1e-9).is_some() {
                    ends[flow] = now;
                    touched.push(flow);
                }
            }
            for (flow, demand) in demands.iter().enumerate() {
                if self.left[flow].is_none() && ends[flow] == f64::INFINITY && demand.0 <= now {
                    self.left[flow] = Some(demand.1);
                    touched.push(flow);
                }
            }
            self.fit(&touched);
            let shares = self.shares();
            let starts = demands
                .iter()
                .map(|demand| demand.0 - now)
                .filter(|start| *start > 0.0);
            let rest = self
                .left
                .iter()
                .zip(&shares)
                .filter_map(|(left, share)| Some((*left)? / share));
            let elapsed = starts.chain(rest).fold(step, f64::min);
            for (left, share) in self.left.iter_mut().zip(&shares) {
                *left = left.map(|left| left - share * elapsed);
            }
            self.approach(1.0 - (-elapsed / LAG).exp());
            now += elapsed;
        }
        ends
    }
}

fn pairs(most: usize) -> impl Strategy<Value = Vec<(u32, u32)>> {
    let pair = (0u32..10, 0u32..9)
        .prop_map(|(src, other)| (src, if other >= src { other + 1 } else { other }));
    proptest::collection::vec(pair, 1..most)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, max_shrink_iters: 40, rng_seed: proptest::test_runner::RngSeed::Fixed(8), ..ProptestConfig::default() })]

    #[test]
    fn coarse_steps_approach_the_solution_of_tiny_steps(
        pairs in pairs(16), times in proptest::collection::vec((0u32..20_000, 500u32..20_000), 16),
        alpha in prop_oneof![Just(1.0), 0.5..2.0f64], kappa in prop_oneof![Just(1.0), Just(0.0), 0.0..1.0f64],
        backbone in proptest::option::of(0.5..6.0f64),
    ) {
        let (fabric, feedback) = (fabric(&pairs, backbone), Feedback { alpha, kappa });
        let demands: Vec<Demand> =
            times.iter().take(pairs.len()).map(|(start, work)| (f64::from(*start), f64::from(*work))).collect();
        let delays = vec![0.0; fabric.link_count()];
        let mut twin = Reference { fabric: &fabric, feedback, delays, left: vec![None; demands.len()] };
        let slow = twin.ends(&demands, LAG / 200.0);
        let error = |fineness: u32| -> f64 {
            let ends = ends(&fabric, &demands, feedback, fineness);
            let each = ends.iter().zip(&slow).zip(&demands);
            each.map(|((end, slow), (start, _))| (end - slow).abs() / (slow - start + LAG)).fold(0.0, f64::max)
        };
        let (coarse, fine) = (error(2), error(50));
        prop_assert!(coarse < 6e-2 && fine < 1e-3, "{coarse} {fine}");
    }

    #[test]
    fn a_steady_state_meets_the_conditions(pairs in pairs(40), alpha in 0.5..2.0f64, kappa in 0.0..=1.0f64) {
        let (fabric, feedback) = (fabric(&pairs, None), Feedback { alpha, kappa });
        let mut flows_in_flight = QuasiDynamicFlows::new(&fabric, feedback, Pace { lag: Time::from_nanos(LAG), fineness: 1 });
        for flow in 0..pairs.len() as u32 {
            flows_in_flight.start(&fabric, flow, Time::from_nanos(1e18));
        }
        flows_in_flight.adapt(&fabric, Time::ZERO);
        let mut steps = 0;
        while flows_in_flight.next_step().is_some() {
            flows_in_flight.step_on(&fabric);
            steps += 1;
            prop_assert!(steps < 100_000, "no rest");
        }
        let mut loads = vec![0.0; fabric.link_count()];
        for (flow, path) in fabric.paths.iter().enumerate() {
            let share = flows_in_flight.queues.share(&fabric, flow as u32);
            path.data().iter().for_each(|link| loads[link.index()] += share);
        }
        for (link, load) in loads.into_iter().enumerate().filter(|(_, load)| *load > 0.0) {
            prop_assert!(load < 1.0 + 1e-8, "link {link} carries {load}");
            prop_assert!(flows_in_flight.queues.delays()[link] < 1e-6 || load > 1.0 - 1e-8, "link {link} waits at {load}");
        }
    }
}

#[test]
fn a_flow_without_contention_takes_its_time_alone() {
    let fabric = fabric(&[(0, 1), (2, 3)], None);
    let feedback = Feedback {
        alpha: 1.0,
        kappa: 1.0,
    };
    assert_eq!(
        ends(&fabric, &[(1.25, 7777.7), (3.0, 1e6 / 3.0)], feedback, 1),
        [1.25 + 7777.7, 3.0 + 1e6 / 3.0]
    );
}
