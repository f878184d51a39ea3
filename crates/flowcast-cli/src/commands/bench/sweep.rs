//! `flowcast bench sweep`: cost of many what-ifs of one trace relative to a single replay, on one core.

use std::time::Instant;

use anyhow::{Result, ensure};
use flowcast::{
    Contention, Options, PreparedProgram,
    model::network::{LinkRate, Network},
    sweep,
    table::Document,
    trace::Program,
    units::{Rate, Time},
};

use super::Timing;

/// Alternately measures one replay and one sweep, `runs` times each, and prints the median of the ratios.
pub(super) fn run(program: &Program, network: &Network, sets: usize, timing: Timing) -> Result<()> {
    let runs = timing.runs;
    ensure!(sets != 0, "--count: found 0, expected at least 1");
    let networks = what_ifs(network, sets);
    // With contention, each network would need its own replay.
    let options = Options {
        contention: Contention::Limits,
        ..Options::default()
    };
    let (mut ratios, mut alone, mut swept) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..runs {
        let begin = Instant::now();
        std::hint::black_box(
            PreparedProgram::new(program, &networks[0], &options)?
                .engine()?
                .run()?,
        );
        let one = begin.elapsed().as_secs_f64();
        let begin = Instant::now();
        std::hint::black_box(sweep(program, &networks, &options)?);
        let all = begin.elapsed().as_secs_f64();
        ratios.push(all / one);
        alone.push(one);
        swept.push(all);
    }
    let (ratio, one, all) = (median(&mut ratios), median(&mut alone), median(&mut swept));
    let (least, most) = (ratios[0], ratios[ratios.len() - 1]);
    let line = format!(
        "{sets} what-ifs take as long as {ratio:.2} replays (median of {runs}; {least:.2} to {most:.2}): {:.1} ms; one replay: {:.1} ms",
        all * 1e3,
        one * 1e3
    );
    timing.format.print(
        &Document::new("bench-sweep")
            .field("messages", program.messages())
            .field("sets", sets)
            .field("runs", runs)
            .field("replay_s", one)
            .field("sweep_s", all)
            .field("ratio", ratio)
            .field("ratio_min", least)
            .field("ratio_max", most)
            .line(line),
    )
}

/// Networks from the given one up to twice its latency and half its bandwidth.
fn what_ifs(network: &Network, sets: usize) -> Vec<Network> {
    (0..sets)
        .map(|index: usize| {
            let factor = 1.0 + index as f64 / sets as f64;
            let mut network = network.clone();
            network.nic.latency = Time::from_nanos(network.nic.latency.as_nanos() * factor);
            let rate =
                Rate::from_bytes_per_second(network.nic.rate().as_bytes_per_second() / factor);
            network.nic.rate = LinkRate::Goodput(rate.into());
            network
        })
        .collect()
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
