//! Explanations of predictions: their causes, their dependence on costs, and changes that would help; each as a
//! [`Document`].

pub(crate) mod changes;
mod gradient;
mod noise;
mod path;
mod runs;
mod scenarios;
mod slack;

use std::borrow::Cow;

use flowcast_graph::EventGraph;
use flowcast_network::network::Network;
use flowcast_program::{Program, Trace};
use flowcast_units::{Rounded, Time};

use crate::{Error, ModelChoice, Options, PreparedProgram, statements::marked_name};
use flowcast_table::{Document, Grouped};
pub use gradient::gradient;
pub use noise::{NoiseOptions, Noisy, parse_noise};
pub use path::path;
pub use runs::compare_runs;
pub use scenarios::{Cost, Scenario, scenarios};
pub use slack::slack;

/// The program of a trace, without its loops.
fn program_of(trace: &Trace) -> Result<Cow<'_, Program>, Error> {
    match trace {
        Trace::Program(program) => Ok(Cow::Borrowed(program)),
        Trace::Folded(folded) => Ok(Cow::Owned(folded.unfold()?)),
        Trace::Schedule(_) => Err(Error::option(
            "TRACE",
            "a GOAL schedule",
            "a trace of a program",
        )),
    }
}

/// Replays for a graph. Returns a summary of the replay, and the result of `use_graph`.
fn recorded<R>(
    trace: &Trace,
    network: &Network,
    options: &Options,
    use_graph: impl FnOnce(&EventGraph<'_>) -> Result<R, Error>,
) -> Result<(ReplaySummary, R), Error> {
    let prepared = PreparedProgram::prepare(program_of(trace)?, Some(network), options)?;
    let model = prepared.model().clone();
    let mut is_exact = false;
    let (outcome, found) = prepared.with_graph(|graph| {
        is_exact = graph.is_exact();
        use_graph(graph)
    })?;
    Ok((
        ReplaySummary {
            makespan: outcome.makespan(),
            model,
            is_exact,
            notes: prepared.notes(),
        },
        found,
    ))
}

/// Summary of the replay behind an answer.
struct ReplaySummary {
    makespan: Time,
    model: ModelChoice,
    is_exact: bool,
    notes: Vec<String>,
}

impl ReplaySummary {
    /// The answer in words, its basis, and the fields that all documents have.
    fn document(&self, kind: &'static str, network: &Network, answer: String) -> Document {
        let order = "events keep the order and the waiting times of this replay (--model independent is exact)";
        let time = Rounded(self.makespan);
        Document::new(kind)
            .field("network", &network.name)
            .field("model", self.model.name())
            .field("makespan_s", self.makespan)
            .field("exact", self.is_exact)
            .line(answer)
            .line(&self.model)
            .lines((!self.is_exact).then_some(order))
            .line(format!(
                "predicted time on {}: {time}",
                marked_name(network)
            ))
            .noted(&self.notes)
    }
}

/// A relative change of a time in words. A change of 1000 % or more is written as a factor. `change` is infinite if the time
/// before was 0 and the time after is not.
pub fn change_words(change: f64) -> String {
    const FACTOR_FROM: f64 = 10.0;
    match change {
        f64::INFINITY => "longer than before, which took no time".to_owned(),
        change if change >= FACTOR_FROM => {
            let times = (1.0 + change).round() as u64;
            format!("{} times as long as before", Grouped(times))
        }
        change if change > 0.0 => format!("{} longer than before", percent(change)),
        change if change < 0.0 => format!("{} shorter than before", percent(-change)),
        _ => "no change".to_owned(),
    }
}

/// Relative change from one time to another; see [`change_words`].
pub fn relative_change(before: Time, after: Time) -> f64 {
    match (before, after) {
        (Time::ZERO, Time::ZERO) => 0.0,
        (Time::ZERO, _) => f64::INFINITY,
        _ => after.as_nanos() / before.as_nanos() - 1.0,
    }
}

fn percent(part: f64) -> String {
    format!("{:.1} %", part * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_changes_are_factors_and_zero_is_not_a_divisor() {
        let words = |before: f64, after: f64| {
            change_words(relative_change(
                Time::from_nanos(before),
                Time::from_nanos(after),
            ))
        };
        assert_eq!(words(10.0, 11.0), "10.0 % longer than before");
        assert_eq!(words(10.0, 5.0), "50.0 % shorter than before");
        assert_eq!(words(1.0, 184_630.485), "184,630 times as long as before");
        assert_eq!(words(0.0, 0.0), "no change");
        assert_eq!(words(0.0, 1.0), "longer than before, which took no time");
    }
}
