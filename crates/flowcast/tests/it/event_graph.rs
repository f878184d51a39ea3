//! Events of a replay, compared with replays with other costs: curves of selected costs, slopes, slack, noise.

// Each test crate uses its own part of this module.
#[allow(dead_code)]
use crate::event_driven::end_times_where;
use crate::random_programs::{Numbers, Record, Records, any_numbers, any_records};
use flowcast::{
    graph::{EventGraph, noise::ComputeNoise, selector::Selector},
    model::network::MessageRule,
    replay::{ReplayEngine, placement::Placement, walk::Replay},
    trace::slot::Slot,
    units::{Rank, Time},
};
use proptest::prelude::*;

fn engine<'a>(program: &'a flowcast::trace::Program, numbers: &Numbers) -> ReplayEngine<'a> {
    numbers.replay(program).into()
}

/// Records without collectives by formula, whose costs depend on latencies in a different way.
fn messages_only(records: &Records) -> Records {
    let is_message =
        |record: &&Record| !matches!(record, Record::Collective { .. } | Record::WaitCollective);
    let ranks = records
        .ranks
        .iter()
        .map(|records| records.iter().filter(is_message).copied().collect())
        .collect();
    Records {
        ranks,
        comms: records.comms.clone(),
    }
}

fn last(ends: &[f64]) -> f64 {
    ends.iter().copied().fold(0.0, f64::max)
}

/// Makespan if a rank takes `factor` times as long to compute.
fn slowed(records: &Records, numbers: &Numbers, rank: usize, factor: f64) -> f64 {
    let program = records.program();
    let network = numbers.network(program.ranks());
    let placement = Placement::new(&network.machine, None, program.ranks()).unwrap();
    let placement = placement.paced(Rank(rank as u32), 1.0 / factor);
    let replay = Replay::new(&program, &network, placement, numbers.rendezvous()).unwrap();
    replay.run().unwrap().makespan().as_nanos()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn a_graph_without_contention_is_exact_and_ends_when_the_replay_does(
        records in any_records(),
        numbers in any_numbers(),
    ) {
        let program = records.program();
        let engine = engine(&program, &numbers);
        let (outcome, graph) = EventGraph::record(&engine).unwrap();
        prop_assert!(graph.is_exact());
        prop_assert!((graph.makespan() - outcome.makespan()).as_nanos().abs() <= 1e-3);
        let gradient = graph.gradient();
        let sum = gradient.compute.iter().chain(&gradient.overhead).chain(&gradient.gap).map(|slope| slope.now);
        let links = gradient.links.values().map(|slopes| slopes.latency.now + slopes.per_byte.now);
        let explained: Time = sum.chain(links).chain(gradient.collectives.values().map(|slope| slope.now)).sum();
        prop_assert!((explained + gradient.other - gradient.makespan).as_nanos().abs() <= 1e-3);
    }

    #[test]
    fn the_curve_of_a_rank_equals_predictions_with_a_slower_rank(
        records in any_records(),
        numbers in any_numbers(),
        rank in 0usize..8,
        factors in proptest::collection::vec(0.3..4.0f64, 5),
    ) {
        let rank = rank % records.ranks.len();
        let program = records.program();
        let engine = engine(&program, &numbers);
        let (_, graph) = EventGraph::record(&engine).unwrap();
        let selected = graph.selected(&Selector::parse(&format!("compute[rank={rank}]")).unwrap());
        // A computation counts with its duration on its node.
        let curve = graph.curve(&selected, 0.25..4.0, 1000).unwrap();
        for factor in factors {
            let expected = slowed(&records, &numbers, rank, factor);
            let found = curve.at(factor).unwrap().as_nanos();
            prop_assert!((found - expected).abs() <= 2e-3 + 1e-11 * expected, "{found} {expected} at {factor}");
        }
    }

    #[test]
    fn the_curve_of_some_messages_equals_the_reference_for_their_latency(
        records in any_records(),
        numbers in any_numbers(),
        pair in (0usize..8, 0usize..8),
        least in prop_oneof![Just(0u64), 1u64..6000],
        values in proptest::collection::vec(0.0..200_000.0f64, 4),
    ) {
        prop_assume!(numbers.rule != MessageRule::Dimemas);
        let records = messages_only(&records);
        let ranks = records.ranks.len();
        let (a, b) = (pair.0 % ranks, pair.1 % ranks);
        let program = records.program();
        let engine = engine(&program, &numbers);
        let (_, graph) = EventGraph::record(&engine).unwrap();
        let selector = format!("latency[pair={a}-{b},size>={least}B]");
        let selected = graph.selected(&Selector::parse(&selector).unwrap());
        let curve = graph.curve(&selected, 0.0..200_000.0, 1000).unwrap();
        for value in values {
            let is_meant = |from, to, bytes| ((from, to) == (a, b) || (from, to) == (b, a)) && bytes >= least;
            let latency = |from, to, bytes| is_selector(from, to, bytes).then_some(value);
            let expected = last(&end_times_where(&records, &numbers, &latency));
            let found = curve.at(value).unwrap().as_nanos();
            prop_assert!((found - expected).abs() <= 2e-3 + 1e-11 * expected, "{found} {expected} at {value}");
        }
    }

    #[test]
    fn the_gradient_is_the_slope_of_finite_differences_where_nothing_ties(
        records in any_records(),
        numbers in any_numbers(),
        rank in 0usize..8,
    ) {
        let rank = rank % records.ranks.len();
        let program = records.program();
        let engine = engine(&program, &numbers);
        let (_, graph) = EventGraph::record(&engine).unwrap();
        let gradient = graph.gradient();
        let makespan = graph.makespan().as_nanos();
        let step = 1e-7;
        let [less, more] = [-step, step].map(|step| slowed(&records, &numbers, rank, 1.0 + step));
        let (left, right) = ((makespan - less) / step, (more - makespan) / step);
        let rounding = 1e-3 / step * 1e-2 + 1e-4 * makespan.abs();
        let found = gradient.compute[rank].per_unit;
        prop_assert!(found >= left - rounding && found <= right + rounding, "{left} {found} {right}");
        let meant = Selector::parse(&format!("compute[rank={rank}]")).unwrap();
        prop_assert!((graph.slope(&meant) - found).abs() <= 1e-6 * makespan.max(1.0));
    }

    #[test]
    fn the_gradient_of_all_messages_is_the_slope_of_the_network(records in any_records(), numbers in any_numbers()) {
        prop_assume!(numbers.latency >= 2.0 && numbers.overhead >= 2.0 && numbers.gap >= 2.0);
        let numbers = Numbers { rule: MessageRule::Loggops, ..numbers };
        let records = messages_only(&records);
        let program = records.program();
        let of = |numbers: &Numbers| numbers.replay(&program).run().unwrap().makespan().as_nanos();
        let engine = engine(&program, &numbers);
        let (_, graph) = EventGraph::record(&engine).unwrap();
        let step = 1e-2;
        for (name, change) in [
            ("latency[link=between]", &(|numbers: &mut Numbers, by| numbers.latency += by) as &dyn Fn(&mut Numbers, f64)),
            ("gap", &|numbers, by| numbers.gap += by),
            ("overhead", &|numbers, by| numbers.overhead += by),
        ] {
            let at = |by: f64| {
                let mut other = numbers;
                change(&mut other, by);
                of(&other)
            };
            let (left, right) = ((of(&numbers) - at(-step)) / step, (at(step) - of(&numbers)) / step);
            let selector = Selector::parse(name).unwrap();
            let found = graph.slope(&selector);
            prop_assert!(found >= left - 1e-3 && found <= right + 1e-3, "{name}: {left} {found} {right}");
        }
    }

    #[test]
    fn a_computation_may_be_late_by_its_slack_and_no_more(
        records in any_records(),
        numbers in any_numbers(),
        chosen in any::<prop::sample::Index>(),
    ) {
        let places: Vec<(usize, usize, u64)> = records.ranks.iter().enumerate().flat_map(|(rank, records)| {
            records.iter().enumerate().filter_map(move |(at, record)| match record {
                Record::Compute(nanos) if *nanos > 0 => Some((rank, at, *nanos)),
                _ => None,
            })
        }).collect();
        prop_assume!(!places.is_empty());
        let (rank, at, nanos) = places[chosen.index(places.len())];
        let program = records.program();
        let engine = engine(&program, &numbers);
        let (outcome, graph) = EventGraph::record(&engine).unwrap();
        let before = records.ranks[rank][..at].iter().filter(|record| matches!(record, Record::Compute(1..))).count();
        let slacks = graph.slacks();
        let own = slacks.computations().filter(|(of, ..)| *of == Rank(rank as u32)).nth(before);
        let Some((_, _, slack)) = own else { return Err(TestCaseError::fail("a computation is missing")) };
        let with = |more: f64| {
            let mut changed = records.clone();
            changed.ranks[rank][at] = Record::Compute((nanos as f64 + more * numbers.speed) as u64);
            numbers.replay(&changed.program()).run().unwrap().makespan().as_nanos()
        };
        let makespan = outcome.makespan().as_nanos();
        prop_assert!(with(slack.total.as_nanos().floor()) <= makespan + 1e-3);
        prop_assert!(with(slack.total.as_nanos() + 10.0) > makespan + 1.0);
    }

    #[test]
    fn a_message_may_be_late_by_its_slack_and_no_more(
        records in any_records(),
        numbers in any_numbers(),
        chosen in any::<prop::sample::Index>(),
    ) {
        prop_assume!(numbers.rule != MessageRule::Dimemas);
        let records = messages_only(&records);
        let program = records.program();
        let engine = engine(&program, &numbers);
        let (outcome, graph) = EventGraph::record(&engine).unwrap();
        let slacks = graph.slacks();
        let messages: Vec<_> = slacks.messages().collect();
        prop_assume!(!messages.is_empty());
        // The reference can identify a message that is the only one of its pair and size.
        let one = messages[chosen.index(messages.len())];
        let meant = graph.message(one.slot);
        let same = |slot: Slot| {
            let other = graph.message(slot);
            (other.from, other.to, other.size) == (meant.from, meant.to, meant.size)
        };
        prop_assume!(messages.iter().filter(|other| same(other.slot)).count() == 1);
        prop_assume!((0..program.messages()).map(Slot).filter(|slot| same(*slot)).count() == 1);
        let inside = numbers.node(meant.from.index()) == numbers.node(meant.to.index());
        let latency = if inside { numbers.inside_latency } else { numbers.latency };
        let with = |more: f64| {
            let of = |from, to, bytes| {
                ((from, to, bytes) == (meant.from.index(), meant.to.index(), meant.size.0)).then_some(latency + more)
            };
            last(&end_times_where(&records, &numbers, &of))
        };
        let makespan = outcome.makespan().as_nanos();
        prop_assert!(with(one.slack.total.as_nanos()) <= makespan + 1e-3);
        prop_assert!(with(one.slack.total.as_nanos() + 10.0) > makespan + 1.0);
    }

    #[test]
    fn a_rank_may_be_slower_by_its_slack(records in any_records(), numbers in any_numbers()) {
        let program = records.program();
        let engine = engine(&program, &numbers);
        let (outcome, graph) = EventGraph::record(&engine).unwrap();
        for rank in graph.slacks().ranks().into_iter().filter(|rank| rank.slower.is_finite()) {
            let makespan = slowed(&records, &numbers, rank.rank.index(), 1.0 + rank.slower);
            prop_assert!(makespan <= outcome.makespan().as_nanos() * (1.0 + 1e-9) + 1e-3, "{rank:?}");
        }
    }

    #[test]
    fn noise_equals_predictions_with_longer_computations_on_any_number_of_threads(
        records in any_records(),
        numbers in any_numbers(),
        rank in 0usize..8,
    ) {
        let rank = rank % records.ranks.len();
        let program = records.program();
        let engine = engine(&program, &numbers);
        let (_, graph) = EventGraph::record(&engine).unwrap();
        let mut later = records.clone();
        let first = later.ranks[rank].iter_mut().find_map(|record| match record {
            Record::Compute(nanos) if *nanos > 0 => Some(nanos),
            _ => None,
        });
        prop_assume!(first.is_some());
        first.into_iter().for_each(|nanos| *nanos += 1_000_000);
        let expected = numbers.replay(&later.program()).run().unwrap();
        let delay = Time::from_nanos(1e6 / numbers.speed);
        let once = graph.disturbed(&graph.disturbed_ends(&ComputeNoise::Once { rank: Rank(rank as u32), delay }, 1, 0..1, 1));
        prop_assert!((once.makespans[0] - expected.makespan()).as_nanos().abs() <= 1e-2);
        let noise = ComputeNoise::Exponential(Time::from_nanos(1e4));
        let drawn = |threads| graph.disturbed(&graph.disturbed_ends(&noise, 3, 0..20, threads));
        let parts = [0..3, 3..11, 11..20].into_iter().flat_map(|runs| graph.disturbed_ends(&noise, 3, runs, 1));
        prop_assert_eq!(drawn(1), graph.disturbed(&parts.collect::<Vec<_>>()));
        let one = drawn(1);
        prop_assert_eq!(&one, &drawn(3));
        prop_assert!(one.makespans.iter().all(|makespan| *makespan >= graph.makespan() - Time::from_nanos(1e-3)));
    }
}
