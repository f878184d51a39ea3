//! Predicts the time of a recorded program on each of three networks.
//!
//! `cargo run --release -p flowcast --example predict_recording prog.rec`

use std::path::PathBuf;

use flowcast::{Options, model::builtin, recording::format::RECORDING, units::Rounded};

/// A program that exchanges the borders of a grid, recorded on four ranks.
const HEAT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/heat.rec");

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args_os()
        .nth(1)
        .map_or_else(|| HEAT.into(), PathBuf::from);
    let trace = flowcast::read_files(RECORDING, |file| std::fs::read(folder.join(file)))?;
    println!(
        "{}: {} ranks, {} messages",
        trace.name(),
        trace.ranks(),
        trace.messages()
    );
    for ignored in trace.ignored().iter() {
        println!("left out: {} {}", ignored.count, ignored.kind);
    }
    for name in ["gige-tcp", "infiniband-2006", "infiniband-ndr"] {
        let prediction = flowcast::predict(&trace, &builtin::network(name)?, &Options::default())?;
        println!("{name:16} {}", Rounded(prediction.outcome.makespan()));
    }
    Ok(())
}
