//! Predicts the effect of latency on a program. One walk over its trace serves 32 networks.
//!
//! `cargo run --release -p flowcast --example sweep_latency`

use flowcast::{
    Options,
    model::{builtin, network::Network},
    sweep,
    trace::Trace,
    units::{Rounded, Time},
};

/// NAS LU, class S, four ranks.
const TRACE: &[u8] = include_bytes!("data/lu.S.4.dim.gz");

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let Trace::Program(program) = flowcast::read_text("lu.S.4.dim.gz", TRACE)? else {
        return Err("a .dim file holds a program".into());
    };
    let base = builtin::network("gige-tcp")?;
    let with_latency = |step: u32| {
        let mut network: Network = base.clone();
        network.nic.latency = Time::from_micros(f64::from(step) * 10.0);
        network
    };
    let networks: Vec<Network> = (0..32).map(with_latency).collect();
    for (network, outcome) in networks
        .iter()
        .zip(sweep(&program, &networks, &Options::default())?)
    {
        println!(
            "{:>8}  {}",
            Rounded(network.nic.latency).to_string(),
            Rounded(outcome.makespan())
        );
    }
    Ok(())
}
