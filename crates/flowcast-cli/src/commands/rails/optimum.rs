//! `flowcast rails optimum`: the best that any scheduler could do.

use anyhow::Result;
use clap::{Args, ValueEnum};
use flowcast::scheduler::Rail;
use flowcast::scheduler::bound::lower_bound;
use flowcast::scheduler::optimum::{Objective, optimum};
use flowcast::scheduler::schedule::Message;
use flowcast::units::Rounded;
use serde::Serialize;

use super::inputs::{MessageArgs, RailArgs, SHOW_MESSAGES, choices, micros};
use crate::terminal::output::{Format, Micros, Shown, println_out, show};
use crate::terminal::tables::{Most, cells, table};

/// Find the best schedule of a small set, and a lower bound for a large one
///
/// Branch and bound over all choices of rails, messages in order of arrival on each. If the search is cut short the
/// best schedule found is printed with a makespan that none can beat.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  flowcast rails optimum --rail ib=1.4,0.00103,1.4,2.82us --rail myri=3.4,0.00409,1.9,24.3us \
                        --messages burst.csv"
)]
pub(crate) struct FindOptimum {
    #[command(flatten)]
    rails: RailArgs,
    #[command(flatten)]
    messages: MessageArgs,
    /// What is to be small
    #[arg(long, value_enum, default_value_t = Goal::Makespan, help_heading = "Scheduler")]
    objective: Goal,
    /// Give up the proof after so many branches
    #[arg(
        long,
        default_value_t = 5_000_000,
        value_name = "BRANCHES",
        help_heading = "Precision"
    )]
    limit: u64,
    #[command(flatten)]
    format: Format,
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
    pub(crate) fn run(self) -> Result<()> {
        let (rails, messages) = (self.rails.costs(), self.messages.read()?);
        let objective = match self.objective {
            Goal::Makespan => Objective::Makespan,
            Goal::Mean => Objective::Mean,
        };
        let found = optimum(&rails, &messages, objective, self.limit)?;
        let lower_bound_us = Micros(lower_bound(&rails, &messages)?);
        let best = Best {
            rails: &self.rails.rails,
            messages: &messages,
            show: self.messages.show_messages,
            proven: found.proven,
            choices: choices(&found.schedule),
            delivered_us: micros(&found.schedule.delivered),
            makespan_us: Micros(found.schedule.makespan),
            mean_us: Micros(found.schedule.mean),
            lower_bound_us,
            branches: found.branches,
        };
        show(&best, self.format)
    }
}

/// The best schedule that was found.
#[derive(Serialize)]
struct Best<'a> {
    #[serde(skip)]
    rails: &'a [Rail],
    #[serde(skip)]
    messages: &'a [Message],
    #[serde(skip)]
    show: Most,
    proven: bool,
    choices: Vec<u8>,
    delivered_us: Vec<Micros>,
    makespan_us: Micros,
    mean_us: Micros,
    lower_bound_us: Micros,
    branches: u64,
}

impl Shown for Best<'_> {
    const SCHEMA: &'static str = "flowcast/rails-optimum/1";

    fn print(&self) {
        let mut table = table(&[">message", ">arrival", ">size", "rail", ">delivered"]);
        for (index, message) in self.show.of(self.messages).iter().enumerate() {
            let rail = &self.rails[usize::from(self.choices[index])].name;
            table.add_row(cells![
                index,
                Rounded(message.arrival),
                message.size,
                rail,
                self.delivered_us[index]
            ]);
        }
        println_out!(
            "{}",
            self.show.shown(&table, self.messages.len(), SHOW_MESSAGES)
        );
        let standing = if self.proven {
            "proven best"
        } else {
            "best found, not proven"
        };
        println_out!(
            "{standing}: last delivery {}, mean {}; no last delivery is before {}",
            self.makespan_us,
            self.mean_us,
            self.lower_bound_us
        );
    }
}
