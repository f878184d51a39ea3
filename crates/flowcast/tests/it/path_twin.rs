//! The critical path over the event graph and the search over the journal's causes.

use std::collections::BTreeMap;

use crate::{
    random_programs::{Offsets, any_numbers, any_records, as_program, read_text},
    replay_contention::{any_limits, with_odd_computations},
};
use flowcast::{
    graph::EventGraph,
    model::{network::Progress, sharing::model::Model},
    replay::{
        Engine, critical_path::CriticalPath, journal::{Journal, Keeps}, placement::Placement, time_part::TimePart,
    },
};
use proptest::{prelude::*, strategy::ValueTree as _, test_runner::TestRunner};

fn totals(path: &CriticalPath) -> BTreeMap<TimePart, f64> {
    path.shares().iter().map(|share| (share.limit, share.time.as_nanos())).collect()
}

/// Which limits differ between two paths.
fn differ(a: &CriticalPath, b: &CriticalPath, merge: bool) -> Vec<TimePart> {
    let (mut a_parts, mut b_parts) = (totals(a), totals(b));
    if merge {
        for parts in [&mut a_parts, &mut b_parts] {
            let moved = parts.remove(&TimePart::Contention).unwrap_or(0.0);
            *parts.entry(TimePart::Bandwidth).or_default() += moved;
        }
    }
    let of = |parts: &BTreeMap<TimePart, f64>, limit| parts.get(&limit).copied().unwrap_or(0.0);
    TimePart::LIMITS
        .into_iter()
        .filter(|limit| (of(&a_parts, *limit) - of(&b_parts, *limit)).abs() > 1e-3 + 1e-9 * a.makespan.as_nanos())
        .collect()
}

fn compare_all(name: &str, cases: u32, kind: u32) {
    let mut runner = TestRunner::deterministic();
    let (mut bad, mut shown, mut other) = (0, 0, [0, 0]);
    for case in 0..cases {
        let records = any_records().new_tree(&mut runner).unwrap().current();
        let numbers = any_numbers().new_tree(&mut runner).unwrap().current();
        let limits = any_limits().new_tree(&mut runner).unwrap().current();
        let text = with_odd_computations(&records.to_dim(Offsets::Absent), u64::from(case));
        let program = as_program(read_text(text).unwrap());
        let ranks = program.ranks();
        let mut network = numbers.network(ranks);
        if kind == 1 || kind == 4 || kind == 5 {
            network = limits.on(&numbers, ranks);
        }
        if kind >= 10 {
            network.point_to_point.progress = Progress::InCalls;
        }
        let placement = Placement::new(&network.machine, None, ranks).unwrap();
        let rendezvous = numbers.rendezvous();
        let engine = match kind {
            0 | 1 | 10 => Engine::new(&program, &network, placement, rendezvous),
            2 | 4 | 12 => Engine::sharing(&program, &network, placement, rendezvous, Model::Fair),
            _ => Engine::sharing(&program, &network, placement, rendezvous, Model::Packet),
        };
        let Ok(engine) = engine else { continue };
        let mut journal = Journal::new(&program, Keeps::CAUSES);
        let Ok(outcome) = engine.observed(&mut journal) else { continue };
        let old = engine.critical_path(&journal);
        let (_, graph) = EventGraph::record(&engine).unwrap();
        let new = graph.critical_path();
        assert_eq!(old.makespan, outcome.makespan());
        assert_eq!(new.makespan, outcome.makespan(), "{name} {case}");
        let mut at = flowcast::units::Time::ZERO;
        for step in &new.steps {
            assert!(step.start == at && step.end > step.start);
            at = step.end;
        }
        assert_eq!(at, new.makespan);
        for (count, path) in other.iter_mut().zip([&old, &new]) {
            *count += u32::from(totals(path).get(&TimePart::Other).copied().unwrap_or(0.0) > 1e-3);
        }
        if totals(&old).contains_key(&TimePart::Other) { continue; }
        let parts = differ(&old, &new, kind != 0 && kind != 1 && kind != 10);
        let counts = old.counts != new.counts && parts.is_empty();
        if !parts.is_empty() || counts {
            bad += 1;
            if shown < std::env::var("SHOWN").map_or(2, |n| n.parse().unwrap()) {
                shown += 1;
                println!("{name} {case} {parts:?} rule {:?} overhead {} ranks/node {} gap {} limits {limits:?} rendezvous {:?}", numbers.rule, numbers.overhead, numbers.ranks_per_node, numbers.gap, numbers.rendezvous_from);
                println!("  old {:?} {:?}\n  new {:?} {:?}", totals(&old), old.counts, totals(&new), new.counts);
                let at = old.steps.iter().rev().zip(new.steps.iter().rev()).take_while(|(a, b)| (a.start - b.start).as_nanos().abs() < 1e-3 && a.limit == b.limit).count();
                for (which, path) in [("old", &old), ("new", &new)] {
                    for step in path.steps.iter().rev().skip(at.saturating_sub(2)).take(5) { println!("    {which} {} {:.0} {:.0} {:?}", step.rank, step.start.as_nanos(), step.end.as_nanos(), step.limit); }
                }
                if std::env::var("STEPS").is_ok() {
                    for (rank, records) in records.ranks.iter().enumerate() { println!("    {rank}: {records:?}"); }
                    for step in &old.steps { println!("    old {step:?}"); }
                    for step in &new.steps { println!("    new {step:?}"); }
                }
            }
        }
    }
    println!("{name}: {bad} of {cases} differ; with other time {other:?}");
}

#[test]
fn twin_free() { compare_all("free", 1000, 0); }
#[test]
fn twin_limits() { compare_all("limits", 1000, 1); }
#[test]
fn twin_fair() { compare_all("fair", 300, 2); }
#[test]
fn twin_packet() { compare_all("packet", 40, 3); }
#[test]
fn twin_limits_fair() { compare_all("limits fair", 300, 4); }
#[test]
fn twin_polls() { compare_all("polls", 500, 10); }
#[test]
fn twin_polls_fair() { compare_all("polls fair", 200, 12); }
