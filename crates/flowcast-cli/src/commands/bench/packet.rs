//! `flowcast bench packet`: number of frames per second that cross a link in the packet model on one core. Frames that are
//! skipped because the state repeats count too.

use std::path::Path;

use anyhow::Result;
use flowcast::{
    flows::concurrent::carry,
    model::{cluster::pattern::Pattern, network::Network},
    table::{Document, Grouped},
};

use super::{Timing, print_rates, timed};
use flowcast_terminal::trace_args::read_pattern;

/// Simulates the pattern several times and prints the median.
pub(super) fn run(
    input: &Path,
    network: &Network,
    each_packet: bool,
    timing: Timing,
) -> Result<()> {
    let (name, content) = read_pattern(input)?;
    let pattern = Pattern::read(&name, &content)?;
    let (mut hops, mut dropped) = (0, 0);
    let seconds = timed(timing, || {
        let carried = carry(&pattern, network, each_packet)?;
        (hops, dropped) = (carried.packet_hops, carried.dropped);
        Ok(carried)
    })?;
    let document = Document::new("bench-packet")
        .field("flows", pattern.flows.len())
        .field("packet_hops", hops)
        .field("dropped", dropped);
    let tail = format!(
        ", {} packet-hops, {} dropped",
        Grouped(hops),
        Grouped(dropped)
    );
    print_rates("packet-hops", hops, seconds, document, &tail, timing)
}
