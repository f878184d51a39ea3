//! Speed of the walk relative to a bare loop over the same messages.

use std::{fs, path::Path, process::Command};

use anyhow::{Context, Result};
use serde_json::Value;

use super::{FOLDER, counts::valgrind::one_processor, workloads};
use crate::suite::{
    Outcome,
    programs::{find, output, run},
};

/// The bare loop.
const SOURCE: &str = "benches/bare_walk.cpp";

/// Halos of about a million messages, by ranks and iterations.
const HALOS: [(&str, &str); 3] = [("64", "3907"), ("1024", "245"), ("16384", "16")];
/// Runs of both, in turn.
const ROUNDS: usize = 7;
/// Replays in a run, of which the median counts.
const REPLAYS: &str = "11";
/// So fast the walk has to be at least, beside the bare loop.
const LEAST: f64 = 0.5;

/// Compiles the bare loop, runs both in turn on one processor, and compares the medians.
///
/// # Errors
/// Something cannot be compiled or run.
pub(super) fn compare(flowcast: &Path) -> Result<Outcome> {
    if find("g++").is_none() {
        return Ok(Outcome::Skipped("g++ is not installed".into()));
    }
    fs::create_dir_all(FOLDER)?;
    let folder = Path::new(FOLDER).canonicalize()?;
    let bare = folder.join("bare-walk");
    run(Command::new("g++")
        .args(["-O2", "-o"])
        .arg(&bare)
        .arg(SOURCE))?;
    let mut slow = Vec::new();
    for (ranks, iterations) in HALOS {
        let trace = workloads::compiled_halo(flowcast, &folder, ranks, iterations)?;
        let [walk, bare] = medians(
            || walk_rate(flowcast, &trace),
            || bare_rate(&bare, &[ranks, iterations, REPLAYS]),
        )?;
        let ratio = walk / bare;
        let [walk, bare] = [walk, bare].map(|rate| rate / 1e6);
        println!(
            "halo of {ranks} ranks: walk {walk:.1}, bare {bare:.1} million messages/s, ratio {ratio:.2}"
        );
        slow.extend(
            (ratio < LEAST)
                .then(|| format!("{ranks} ranks: ratio {ratio:.2}, expected at least {LEAST}")),
        );
    }
    Ok(if slow.is_empty() {
        Outcome::Passed
    } else {
        Outcome::Failed(slow.join("; "))
    })
}

/// The medians of what two measurements give that take turns.
fn medians(first: impl Fn() -> Result<f64>, second: impl Fn() -> Result<f64>) -> Result<[f64; 2]> {
    let mut rates = [Vec::new(), Vec::new()];
    for _ in 0..ROUNDS {
        rates[0].push(first()?);
        rates[1].push(second()?);
    }
    Ok(rates.map(|mut rates| {
        rates.sort_by(f64::total_cmp);
        rates[ROUNDS / 2]
    }))
}

fn walk_rate(flowcast: &Path, trace: &Path) -> Result<f64> {
    let (flowcast, trace) = (flowcast.display().to_string(), trace.display().to_string());
    let arguments = [
        "bench",
        "replay",
        &trace,
        "--network",
        "gige-tcp",
        "--repetitions",
        REPLAYS,
        "--json",
    ];
    let printed: Value = serde_json::from_str(&on_one_processor(&flowcast, &arguments)?)?;
    printed["messages_per_s"]
        .as_f64()
        .with_context(|| format!("found no messages_per_s in {printed}"))
}

fn bare_rate(bare: &Path, arguments: &[&str]) -> Result<f64> {
    let printed = on_one_processor(&bare.display().to_string(), arguments)?;
    let rate = printed
        .split_whitespace()
        .next()
        .context("the bare walk printed nothing")?;
    Ok(rate.parse()?)
}

fn on_one_processor(program: &str, arguments: &[&str]) -> Result<String> {
    let processor = one_processor()?;
    output(
        "taskset",
        &[&["-c", &processor, program], arguments].concat(),
    )
}
