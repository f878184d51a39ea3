//! `flowcast bench flows`: number of a pattern's flows per second that a fluid model simulates on one core, from the first
//! start to the last end. The time includes the setup of links and routes.

use std::path::Path;

use anyhow::Result;
use flowcast::{
    flows::concurrent::{Method, predict_ends},
    model::{
        cluster::pattern::Pattern,
        network::Network,
        sharing::{flow_cuts::Strictness, model::Model},
    },
    table::Document,
};

use super::{Timing, print_rates, timed};
use flowcast_terminal::trace_args::read_pattern;

/// Simulates the pattern several times and prints the median.
pub(super) fn run(input: &Path, network: &Network, model: Model, timing: Timing) -> Result<()> {
    let (name, content) = read_pattern(input)?;
    let pattern = Pattern::read(&name, &content)?;
    let method = Method {
        model,
        strictness: Strictness::Extended,
    };
    let seconds = timed(timing, || {
        Ok(predict_ends(
            &pattern.flows,
            &pattern.racks,
            network,
            method,
        )?)
    })?;
    let document = Document::new("bench-flows")
        .field("model", model.name())
        .field("flows", pattern.flows.len());
    let tail = format!(", model {}", model.name());
    print_rates(
        "flows",
        pattern.flows.len() as u64,
        seconds,
        document,
        &tail,
        timing,
    )
}
