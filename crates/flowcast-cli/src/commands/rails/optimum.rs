//! `flowcast rails optimum`: the best possible schedule.

use anyhow::Result;
use clap::{Args, ValueEnum};
use flowcast::{
    scheduler::{
        bound::lower_bound,
        optimum::{Objective, optimum},
    },
    units::Rounded,
};

use super::inputs::{MessageArgs, RailArgs, scheduled};
use flowcast_terminal::output::Format;

/// Find the best schedule of a small set of messages, or a bound for a large one
///
/// Branch and bound over all choices of rails, with messages in order of arrival on each. If the search ends early, the best
/// schedule found is printed with a lower bound of the makespan.
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
    /// Time that the schedule minimizes
    #[arg(long, value_enum, default_value_t = Goal::Makespan)]
    objective: Goal,
    /// Number of branches after which the proof is given up
    #[arg(long, default_value_t = 5_000_000, value_name = "COUNT")]
    limit: u64,
    #[command(flatten)]
    format: Format,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Goal {
    /// Time of the last delivery
    Makespan,
    /// Mean time of delivery
    Mean,
}

impl FindOptimum {
    /// Finds and prints the schedule.
    pub(crate) fn run(self) -> Result<()> {
        let (rails, messages) = (self.rails.costs(), self.messages.read()?);
        let objective = match self.objective {
            Goal::Makespan => Objective::Makespan,
            Goal::Mean => Objective::Mean,
        };
        let found = optimum(&rails, &messages, objective, self.limit)?;
        let (schedule, names) = (&found.schedule, &self.rails.rails);
        let standing = if found.proven {
            "proven best"
        } else {
            "best found, not proven"
        };
        let bound = lower_bound(&rails, &messages)?;
        let line = format!(
            "{standing}: last delivery {}, mean {}; lower bound of the last delivery {}",
            Rounded(schedule.makespan),
            Rounded(schedule.mean),
            Rounded(bound)
        );
        self.format.print(
            &scheduled("rails-optimum", schedule)
                .field("proven", found.proven)
                .field("lower_bound_us", bound)
                .field("branches", found.branches)
                .shown(self.messages.table(&messages, names, schedule))
                .line(line),
        )
    }
}
