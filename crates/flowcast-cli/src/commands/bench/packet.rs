//! `flowcast bench packet`: how many frames a second cross a link in the packet model, on one core; those count as well that
//! are passed over because the state repeats.

use std::path::Path;

use anyhow::Result;
use flowcast::flows::concurrent::PredictError;
use flowcast::model::cluster::pattern::Pattern;
use flowcast::model::network::Network;
use flowcast::packet::Carried;
use serde_json::json;

use super::{Counted, timed};
use crate::trace_args::read_pattern;
use flowcast::report::answer::Grouped;

/// Simulates the pattern `runs` times and prints the median.
pub(super) fn run(
    input: &Path,
    network: &Network,
    carry: fn(&Pattern, &Network) -> Result<Carried, PredictError>,
    runs: u32,
    json: bool,
) -> Result<()> {
    let (name, content) = read_pattern(input)?;
    let pattern = Pattern::read(&name, &content)?;
    let (mut hops, mut dropped) = (0, 0);
    let seconds = timed(runs, || {
        let carried = carry(&pattern, network)?;
        (hops, dropped) = (carried.packet_hops, carried.dropped);
        Ok(carried)
    })?;
    let document = json!({
        "schema": "flowcast/bench-packet/1", "flows": pattern.flows.len(), "packet_hops": hops, "dropped": dropped,
        "runs": runs,
    });
    let tail = format!(
        ", {} packet-hops, {} dropped",
        Grouped(hops),
        Grouped(dropped)
    );
    Counted {
        name: "packet-hops",
        count: hops,
        document,
        tail,
    }
    .print(seconds, json);
    Ok(())
}
