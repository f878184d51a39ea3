//! `flowcast rails optimum`: the best that any scheduler could do.

use anyhow::Result;
use clap::{Args, ValueEnum};
use flowcast::scheduler::bound::lower_bound;
use flowcast::scheduler::optimum::{Objective, Optimum, optimum};
use flowcast::scheduler::schedule::Message;
use flowcast::units::{Rounded, Time};

use super::inputs::{MessageArgs, RailArgs, choices, micros};
use crate::output::println_out;
use crate::tables::table;

/// Find the best schedule of a small set, and a lower bound for a large one
///
/// Branch and bound over all choices of rails, messages in order of arrival on each. If the search is cut short the
/// best schedule found is printed with a makespan that none can beat.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  flowcast rails optimum --rail ib=1.4,0.00103,1.4,2.82us --rail myri=3.4,0.00409,1.9,24.3us \
                        --messages burst.csv"
)]
pub struct FindOptimum {
    #[command(flatten)]
    rails: RailArgs,
    #[command(flatten)]
    messages: MessageArgs,
    /// What is to be small
    #[arg(long, value_enum, default_value_t = Goal::Makespan)]
    objective: Goal,
    /// Give up the proof after so many branches
    #[arg(long, default_value_t = 5_000_000, value_name = "BRANCHES")]
    limit: u64,
    /// Machine-readable output
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Goal {
    /// The last delivery
    Makespan,
    /// The mean delivery
    Mean,
}

impl FindOptimum {
    /// Prints the schedule.
    pub fn run(self) -> Result<()> {
        let (rails, messages) = (self.rails.costs(), self.messages.read()?);
        let objective = match self.objective {
            Goal::Makespan => Objective::Makespan,
            Goal::Mean => Objective::Mean,
        };
        let found = optimum(&rails, &messages, objective, self.limit)?;
        let bound = lower_bound(&rails, &messages)?;
        if self.json {
            print_json(&found, bound)
        } else {
            self.print_table(&messages, &found, bound)
        }
        Ok(())
    }

    fn print_table(&self, messages: &[Message], found: &Optimum, bound: Time) {
        let mut table = table(&[">message", ">arrival", ">size", "rail", ">delivered"]);
        for (index, message) in messages.iter().enumerate() {
            table.add_row([
                index.to_string(),
                Rounded(message.arrival).to_string(),
                message.size.to_string(),
                self.rails.rails[found.schedule.choices[index].index()].name.clone(),
                Rounded(found.schedule.delivered[index]).to_string(),
            ]);
        }
        println_out!("{table}");
        let standing = if found.proven { "proven best" } else { "best found, not proven" };
        println_out!(
            "{standing}: last delivery {}, mean {}; no last delivery is before {}",
            Rounded(found.schedule.makespan),
            Rounded(found.schedule.mean),
            Rounded(bound)
        );
    }
}

fn print_json(found: &Optimum, bound: Time) {
    let document = serde_json::json!({
        "schema": "flowcast/rails-optimum/1",
        "proven": found.proven,
        "choices": choices(&found.schedule),
        "delivered_us": micros(&found.schedule.delivered),
        "makespan_us": found.schedule.makespan.as_micros(),
        "mean_us": found.schedule.mean.as_micros(),
        "lower_bound_us": bound.as_micros(),
        "branches": found.branches,
    });
    println_out!("{document}");
}
