//! `flowcast bench packet`: how many frames a second cross a link in the packet model, on one core.

use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result};
use flowcast::flows::concurrent::carry;
use flowcast::model::cluster::pattern::Pattern;
use flowcast::model::network::Network;
use serde_json::json;

use crate::output::println_out;

/// Simulates the pattern `runs` times and prints the median.
pub fn run(input: &Path, network: &Network, runs: u32, json: bool) -> Result<()> {
    let name = input.display().to_string();
    let content = std::fs::read(input).with_context(|| format!("cannot read {name}"))?;
    let pattern = Pattern::read(&name, &content)?;
    let (mut seconds, mut hops, mut dropped) = (Vec::new(), 0, 0);
    for _ in 0..runs {
        let begin = Instant::now();
        let carried = std::hint::black_box(carry(&pattern, network)?);
        seconds.push(begin.elapsed().as_secs_f64());
        (hops, dropped) = (carried.packet_hops, carried.dropped);
    }
    seconds.sort_by(f64::total_cmp);
    let rate = |seconds: f64| hops as f64 / seconds;
    let (slow, middle, fast) = (rate(seconds[seconds.len() - 1]), rate(seconds[seconds.len() / 2]), rate(seconds[0]));
    if json {
        println_out!(
            "{}",
            json!({
                "schema": "flowcast/bench-packet/1", "flows": pattern.flows.len(), "packet_hops": hops,
                "dropped": dropped, "runs": runs, "packet_hops_per_s": middle, "packet_hops_per_s_min": slow,
                "packet_hops_per_s_max": fast,
            })
        );
    } else {
        println_out!(
            "{:.1} million packet-hops/s (median of {runs}; {:.1} to {:.1}), {hops} packet-hops, {dropped} dropped",
            middle / 1e6,
            slow / 1e6,
            fast / 1e6
        );
    }
    Ok(())
}
