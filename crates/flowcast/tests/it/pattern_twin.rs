//! A reference implementation with exact fractions, for the models whose shares are fractions. It follows the papers' rules
//! and shares no code with the library: every flow is compared with every other, at every event.

use flowcast::{
    flows::concurrent::{Method, predict_flows},
    model::{
        builtin,
        cluster::{flow::Flow, racks::Racks},
        sharing::{flow_cuts::Strictness, model::Model},
    },
    units::{Bytes, Node, Time},
};
use proptest::prelude::*;

/// `numerator / denominator`, reduced, with a positive denominator; `None` if it does not fit any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Fraction(i128, i128);

impl Fraction {
    fn new(numerator: i128, denominator: i128) -> Option<Fraction> {
        let (mut a, mut b) = (numerator.unsigned_abs(), denominator.unsigned_abs());
        while b != 0 {
            (a, b) = (b, a % b);
        }
        let divisor = i128::try_from(a.max(1)).ok()? * denominator.signum();
        Some(Fraction(numerator / divisor, denominator / divisor))
    }

    fn plus(self, other: Fraction) -> Option<Fraction> {
        let left = self
            .0
            .checked_mul(other.1)?
            .checked_add(other.0.checked_mul(self.1)?)?;
        Fraction::new(left, self.1.checked_mul(other.1)?)
    }

    fn minus(self, other: Fraction) -> Option<Fraction> {
        self.plus(Fraction(-other.0, other.1))
    }

    fn times(self, other: Fraction) -> Option<Fraction> {
        Fraction::new(self.0.checked_mul(other.0)?, self.1.checked_mul(other.1)?)
    }

    fn over(self, other: Fraction) -> Option<Fraction> {
        self.times(Fraction::new(other.1, other.0)?)
    }

    fn is_before(self, other: Fraction) -> Option<bool> {
        Some(self.minus(other)?.0 < 0)
    }

    fn value(self) -> f64 {
        self.0 as f64 / self.1 as f64
    }
}

const ONE: Fraction = Fraction(1, 1);
const ZERO: Fraction = Fraction(0, 1);

#[derive(Debug, Clone, Copy)]
struct RateRequest {
    src: u32,
    dst: u32,
    size: u32,
    start: u32,
}

/// Ends of all flows, from event to event.
fn ends(
    wishes: &[RateRequest],
    shares: &dyn Fn(&[RateRequest]) -> Vec<Fraction>,
) -> Option<Vec<Fraction>> {
    let mut ends = vec![ZERO; wishes.len()];
    let mut left: Vec<Fraction> = wishes
        .iter()
        .map(|wish| Fraction(i128::from(wish.size), 1))
        .collect();
    let start = |flow: usize| Fraction(i128::from(wishes[flow].start), 1);
    let mut is_done: Vec<bool> = vec![false; wishes.len()];
    let mut now = ZERO;
    loop {
        let mut active = Vec::new();
        let mut next: Option<Fraction> = None;
        for flow in (0..wishes.len()).filter(|flow| !is_done[*flow]) {
            if now.is_before(start(flow))? {
                next = earlier(next, start(flow))?;
            } else {
                active.push(flow);
            }
        }
        if active.is_empty() {
            match next {
                Some(start) => now = start,
                None => return Some(ends),
            }
            continue;
        }
        let under_way: Vec<RateRequest> = active.iter().map(|flow| wishes[*flow]).collect();
        let shares = shares(&under_way);
        for (flow, share) in active.iter().zip(&shares) {
            next = earlier(next, now.plus(left[*flow].over(*share)?)?)?;
        }
        let then = next.expect("a flow is active");
        for (flow, share) in active.iter().zip(&shares) {
            left[*flow] = left[*flow].minus(then.minus(now)?.times(*share)?)?;
            if left[*flow] == ZERO {
                (is_done[*flow], ends[*flow]) = (true, then);
            }
        }
        now = then;
    }
}

fn earlier(best: Option<Fraction>, other: Fraction) -> Option<Option<Fraction>> {
    match best {
        Some(best) if !other.is_before(best)? => Some(Some(best)),
        _ => Some(Some(other)),
    }
}

/// Cuts: odd end, odd inner, income/outgo, include.
type Profile = [Fraction; 4];

const LAM: Profile = [
    Fraction(1, 2),
    Fraction(2, 1),
    Fraction(3, 1),
    Fraction(1, 2),
];
const MPICH: Profile = [
    Fraction(3, 4),
    Fraction(4, 3),
    Fraction(3, 1),
    Fraction(1, 2),
];
const MYRINET: Profile = [ONE, ONE, ZERO, ZERO];

fn cut_shares(flows: &[RateRequest], profile: Profile) -> Vec<Fraction> {
    let cut = |flow: usize| cut(flows, flow, profile);
    (0..flows.len())
        .map(|flow| ONE.over(ONE.plus(cut(flow)).unwrap()).unwrap())
        .collect()
}

fn cut(
    flows: &[RateRequest],
    flow: usize,
    [odd_end, odd_inner, io_out, include]: Profile,
) -> Fraction {
    let all = || 0..flows.len();
    let same_src = |one: usize, other: usize| one != other && flows[one].src == flows[other].src;
    let same_dst = |one: usize, other: usize| one != other && flows[one].dst == flows[other].dst;
    let has_src = |one: usize| all().any(|other| same_src(one, other));
    let has_dst = |one: usize| all().any(|other| same_dst(one, other));
    let dominant = |one: usize| has_src(one) || has_dst(one);
    if dominant(flow) {
        // Distances from an end determine the place; a component without an end is closed.
        let mut component = vec![flow];
        while let Some(more) = all().find(|other| {
            !component.contains(other)
                && component
                    .iter()
                    .any(|one| same_src(*one, *other) || same_dst(*one, *other))
        }) {
            component.push(more);
        }
        let is_end = |one: &usize| has_src(*one) != has_dst(*one);
        let is_closed = !component.iter().any(is_end);
        if is_closed || component.len() % 2 == 0 {
            return ONE;
        }
        let (mut here, mut came_by_src, mut place) = (flow, has_src(flow) && !has_dst(flow), 0);
        // From this flow over its source neighbours to the end; an end is 0 steps away from itself.
        while !(is_end(&here) && (place > 0 || here == flow)) {
            let follow_src = if place == 0 { true } else { !came_by_src };
            here = all()
                .find(|other| {
                    if follow_src {
                        same_src(here, *other)
                    } else {
                        same_dst(here, *other)
                    }
                })
                .unwrap();
            came_by_src = follow_src;
            place += 1;
        }
        return if place % 2 == 0 { odd_end } else { odd_inner };
    }
    let before =
        |one: usize| all().find(|other| !dominant(*other) && flows[*other].dst == flows[one].src);
    let after =
        |one: usize| all().find(|other| !dominant(*other) && flows[*other].src == flows[one].dst);
    let mut ring = vec![flow];
    while let Some(next) = after(*ring.last().unwrap()).filter(|next| *next != flow) {
        ring.push(next);
        if ring.len() > flows.len() {
            break;
        }
    }
    let is_ring = after(*ring.last().unwrap()) == Some(flow);
    let first = ring.iter().copied().min().unwrap();
    let (mut place, mut here) = (0, flow);
    while let Some(previous) = before(here).filter(|_| !is_ring || here != first) {
        (place, here) = (place + 1, previous);
    }
    let has_next = after(flow).is_some_and(|next| !is_ring || next != first);
    let has_neighbours = flows.iter().any(|other| other.dst == flows[flow].src)
        && flows.iter().any(|other| other.src == flows[flow].dst);
    match (place % 2, has_next, has_neighbours) {
        (1, _, _) => io_out,
        (_, true, _) => ZERO,
        (_, false, true) => include,
        (_, false, false) => ZERO,
    }
}

/// Nodes below `RACK` are in the first rack.
const RACK: u32 = 4;

#[derive(Clone, Copy)]
enum Counts {
    Both,
    OwnDirection,
}

fn ethernet_shares(flows: &[RateRequest], ratio: i128, counts: Counts) -> Vec<Fraction> {
    let crosses = |wish: &RateRequest| (wish.src < RACK) != (wish.dst < RACK);
    let count = |test: &dyn Fn(&RateRequest) -> bool| {
        flows.iter().filter(|wish| test(wish)).count() as i128
    };
    let worst = |wish: &RateRequest| {
        let mut degrees = vec![
            count(&|other| other.src == wish.src),
            count(&|other| other.dst == wish.dst),
        ];
        let ahead = count(&|other| crosses(other) && (other.src < RACK) == (wish.src < RACK));
        let back = count(&|other| crosses(other) && (other.src < RACK) != (wish.src < RACK));
        let mut crossing = ahead;
        if let Counts::Both = counts {
            degrees.extend([
                count(&|other| other.dst == wish.src),
                count(&|other| other.src == wish.dst),
            ]);
            crossing = ahead.max(back);
        }
        let node = Fraction(degrees.into_iter().max().unwrap(), 1);
        let backbone = Fraction::new(crossing, ratio).unwrap();
        if crosses(wish) && node.is_before(backbone).unwrap() {
            backbone
        } else {
            node
        }
    };
    flows
        .iter()
        .map(|wish| ONE.over(worst(wish)).unwrap())
        .collect()
}

fn check(
    wishes: &[RateRequest],
    network: &str,
    overrides: &[(&str, &str)],
    model: Model,
    expected: &[Fraction],
) {
    let overrides: Vec<_> = overrides
        .iter()
        .map(|(key, value)| (key.to_string(), value.to_string()))
        .collect();
    let network = builtin::network(network)
        .unwrap()
        .with_overrides(&overrides)
        .unwrap();
    let flow = |(id, wish): (u32, &RateRequest)| Flow {
        id,
        src: Node(wish.src),
        dst: Node(wish.dst),
        size: Bytes(u64::from(wish.size)),
        start: Time::from_seconds(f64::from(wish.start)),
    };
    let flows: Vec<Flow> = (1..).zip(wishes).map(flow).collect();
    let mut racks = Racks::default();
    racks.place(Node(0), Node(RACK - 1), "A").unwrap();
    racks.place(Node(RACK), Node(99), "B").unwrap();
    let method = Method {
        model,
        strictness: Strictness::Strict,
    };
    let found = predict_flows(&flows, &racks, &network, method).unwrap();
    for (flow, expected) in found.flows.iter().zip(expected) {
        let (found, expected) = (flow.end.as_seconds(), expected.value());
        assert!(
            (found - expected).abs() <= 1e-9 * expected,
            "{wishes:?}: found {found}, expected {expected}"
        );
    }
}

fn wishes(nodes: u32, most: usize) -> impl Strategy<Value = Vec<RateRequest>> {
    let wish = (0..nodes, 0..nodes - 1, 1u32..6, 0u32..4).prop_map(|(src, other, size, start)| {
        let dst = if other >= src { other + 1 } else { other };
        RateRequest {
            src,
            dst,
            size,
            start,
        }
    });
    proptest::collection::vec(wish, 1..most)
}

/// At most two flows in each direction of a node, regardless of their starts: the cases that the paper defines.
fn dual(wishes: Vec<RateRequest>) -> Vec<RateRequest> {
    let mut kept: Vec<RateRequest> = Vec::new();
    for wish in wishes {
        let count =
            |test: &dyn Fn(&RateRequest) -> bool| kept.iter().filter(|other| test(other)).count();
        if count(&|other| other.src == wish.src) < 2 && count(&|other| other.dst == wish.dst) < 2 {
            kept.push(wish);
        }
    }
    kept
}

const UNIT: (&str, &str) = ("nic.bandwidth", "1B/s");
const NO_LATENCY: (&str, &str) = ("nic.latency", "0us");

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]

    #[test]
    fn flow_cuts_agree_with_the_twin(wishes in wishes(7, 11)) {
        let wishes = dual(wishes);
        for (network, profile) in [("gige-lam", LAM), ("gige-mpich", MPICH), ("myrinet-mx", MYRINET)] {
            // Fractions that exceed 127 bits are skipped, which is rare.
            if let Some(expected) = ends(&wishes, &|flows| cut_shares(flows, profile)) {
                check(&wishes, network, &[UNIT, NO_LATENCY], Model::FlowCuts, &expected);
            }
        }
    }

    #[test]
    fn hierarchical_ethernet_agrees_with_the_twin(wishes in wishes(8, 14), ratio in 1u32..5) {
        let backbone = format!("{ratio}B/s");
        let overrides = [UNIT, NO_LATENCY, ("backbone.bandwidth", backbone.as_str())];
        for (model, counts) in [(Model::Asymmetric, Counts::Both), (Model::DegreeFair, Counts::OwnDirection)] {
            if let Some(expected) = ends(&wishes, &|flows| ethernet_shares(flows, i128::from(ratio), counts)) {
                check(&wishes, "ethernet-1g-10g", &overrides, model, &expected);
            }
        }
    }
}

#[test]
fn the_twin_itself_gives_the_printed_cuts() {
    let wish = |src, dst| RateRequest {
        src,
        dst,
        size: 1,
        start: 0,
    };
    let times = |flows: &[RateRequest], profile| -> Vec<f64> {
        ends(flows, &|flows| cut_shares(flows, profile))
            .unwrap()
            .into_iter()
            .map(Fraction::value)
            .collect()
    };
    let zigzag = [wish(0, 1), wish(2, 1), wish(2, 3)];
    assert_eq!(times(&zigzag, LAM), [1.5, 2.0, 1.5]);
    assert_eq!(times(&zigzag, MPICH), [1.75, 2.0, 1.75]);
    assert_eq!(
        times(&[wish(1, 0), wish(1, 2), wish(2, 3), wish(3, 4)], LAM),
        [2.0, 2.0, 1.0, 1.75]
    );
}
