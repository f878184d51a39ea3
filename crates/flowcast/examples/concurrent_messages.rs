//! Predicts the times of concurrent messages by the model of each paper.
//!
//! `cargo run --release -p flowcast --example concurrent_messages`

use flowcast::{
    Contention, Options,
    model::{builtin, cluster::pattern::Pattern, sharing::model::Model},
    predict_pattern,
};

/// Node 1 sends to two others while it receives from a third.
const PATTERN: &str = "1 -> 0 4MB\n1 -> 2 4MB\n3 -> 1 4MB\n";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let pattern = Pattern::read("three.pattern", PATTERN.as_bytes())?;
    let network = builtin::network("gige-lam")?;
    for model in [Model::Independent, Model::Fair, Model::FlowCuts] {
        let options = Options {
            contention: Contention::Shared(model),
            ..Options::default()
        };
        let predicted = predict_pattern(&pattern, &network, &options)?;
        let slowdowns: Vec<String> = predicted
            .prediction
            .flows
            .iter()
            .map(|flow| format!("{:.2}", flow.slowdown()))
            .collect();
        println!("{:12} slowdowns {}", model.name(), slowdowns.join(", "));
    }
    Ok(())
}
