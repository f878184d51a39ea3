//! Predicts the time of a program on Gigabit Ethernet, and the causes of its communication time.
//!
//! `cargo run --release -p flowcast --example predict`

use flowcast::{
    Options, Outputs, Prepared, model::builtin, replay::time_part::TimePart, units::Rounded,
};

/// NAS LU, class S, four ranks.
const TRACE: &[u8] = include_bytes!("data/lu.S.4.dim.gz");

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let trace = flowcast::read_text("lu.S.4.dim.gz", TRACE)?;
    let network = builtin::network("gige-tcp")?;
    let prepared = Prepared::new(&trace, Some(&network), &Options::default())?;
    let prediction = prepared.predict(
        Outputs {
            explanation: true,
            ..Outputs::default()
        },
        &[],
    )?;

    println!(
        "{} on {}: {}",
        trace.name(),
        network.name,
        Rounded(prediction.outcome.makespan())
    );
    let explanation = prediction.explanation.expect("the outputs include it");
    for (rank, sums) in explanation.ranks.iter().enumerate() {
        let parts = TimePart::COMMUNICATION
            .map(|cost| format!("{} {}", cost.cost_name(), Rounded(sums.time(cost))));
        println!("rank {rank}: {}", parts.join(", "));
    }
    Ok(())
}
