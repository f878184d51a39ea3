//! Cases of seed D, LogGP measurement and the multi-rail packet scheduler (Lichei).

use flowcast::simulate::loggops::Loggops;
use flowcast::units::{Time, TimePerByte};

use super::Check;
use super::case::{Case, Mismatch};
use super::simulation;

/// Kinds and their checks.
pub const KINDS: &[(&str, Check)] = &[("loggp_reduce_tree", loggp_reduce_tree)];

/// Times in the case are nanoseconds.
fn loggp_reduce_tree(case: &Case) -> Result<(), Mismatch> {
    let input = case.input();
    if input.at("unit")?.text()? != "ns" {
        return Err(input.at("unit")?.unlike("ns"));
    }
    let nanos = |key: &str| Ok(Time::from_nanos(input.at(key)?.number()?));
    let parameters = Loggops {
        latency: nanos("L")?,
        overhead: nanos("o")?,
        gap: nanos("g")?,
        gap_per_byte: TimePerByte::from_nanos(input.at("G")?.number()?),
        eager_up_to: None,
    };
    let schedule = reduce_tree(input.at("P")?.whole()?, input.at("bytes")?.whole()?);
    let outcome = simulation::run_schedule(&simulation::parse(schedule)?, parameters)?;
    let expected = case.expected().at("host_end_ns")?.items()?;
    if expected.len() != outcome.ranks.len() {
        return Err(case.expected().unlike("one end for each host"));
    }
    expected.iter().zip(&outcome.ranks).try_for_each(|(end, rank)| case.near(end, rank.end.as_nanos()))
}

/// A binomial reduction to rank 0 as a schedule: the far half sends to the near half, and so on; a rank that has sent is
/// done.
fn reduce_tree(ranks: u32, bytes: u64) -> String {
    let mut text = format!("num_ranks {ranks}\n");
    for rank in 0..ranks {
        let own = if rank == 0 { 0 } else { 1 << rank.ilog2() };
        let halves = (0..u32::BITS).rev().map(|bit| 1u32 << bit);
        let senders = halves.filter(|half| *half > own || rank == 0).filter_map(|half| rank.checked_add(half));
        let mut steps: Vec<String> =
            senders.filter(|sender| *sender < ranks).map(|sender| format!("recv {bytes}b from {sender}")).collect();
        if rank > 0 {
            steps.push(format!("send {bytes}b to {}", rank - own));
        }
        text += &format!("rank {rank} {{\n");
        for (at, step) in steps.iter().enumerate() {
            text += &format!("l{at}: {step}\n");
            text += &if at > 0 { format!("l{at} requires l{}\n", at - 1) } else { String::new() };
        }
        text += "}\n";
    }
    text
}
