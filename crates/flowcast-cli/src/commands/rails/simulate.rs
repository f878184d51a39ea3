//! `flowcast rails simulate`: schedule of a list of messages by a scheduler.

use anyhow::{Result, ensure};
use clap::Args;
use flowcast::{
    scheduler::{
        discipline::{Discipline, SchedulerName},
        processor::{self, SizedCost},
        schedule::simulate,
        split::SplitRule,
    },
    table::Value,
    units::Rounded,
};

use super::{
    inputs::{MessageArgs, RailArgs, scheduled, shares},
    split,
};
use flowcast_terminal::output::Format;

/// Let a scheduler choose the rail of each message
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  flowcast rails simulate --rail ib=1.4,0.00103,1.4,2.82us --rail myri=3.4,0.00409,1.9,24.3us \
                        --messages burst.csv --scheduler latency --json"
)]
pub(crate) struct Simulate {
    #[command(flatten)]
    rails: RailArgs,
    #[command(flatten)]
    messages: MessageArgs,
    /// Scheduler: round-robin, weighted-round-robin, wfq, vtrr, gap, vft, vft-clock, latency, overlap, fixed-point,
    /// earliest-delivery or earliest-overlap; append -printed for the pseudo-code printed in Lichei's thesis, such as
    /// latency-printed
    #[arg(long, default_value = "earliest-delivery", value_name = "NAME")]
    scheduler: SchedulerName,
    /// Number of messages of each rail in a cycle, for schedulers by share [default: in proportion to the bandwidths]
    #[arg(long, value_delimiter = ',', value_name = "COUNT,COUNT...")]
    count: Vec<u32>,
    /// Count processor time, o + O(s-1) for each message, one message after the other on all rails; earliest-delivery then
    /// includes it in its choices
    #[arg(long)]
    processor: bool,
    /// Split messages of at least this size so that all rails finish at the same time (earliest-delivery only), into pieces
    /// of at least the second size, by default 8KiB
    #[arg(long, value_name = "SIZE[,PIECE]", conflicts_with_all = ["processor", "count"], value_parser = split::rule)]
    split_from: Option<SplitRule>,
    #[command(flatten)]
    format: Format,
}

impl Simulate {
    /// Computes and prints the schedule.
    pub(crate) fn run(self) -> Result<()> {
        let (rails, messages) = (self.rails.costs(), self.messages.read()?);
        if let Some(rule) = self.split_from {
            ensure!(
                self.scheduler == SchedulerName::new(Discipline::EarliestDelivery),
                "--split-from: found --scheduler {}, expected earliest-delivery, the only scheduler that splits messages",
                self.scheduler
            );
            return split::run(
                &self.rails.rails,
                &messages,
                self.messages.rows,
                rule,
                self.format,
            );
        }
        let found = if self.processor {
            let rails: Vec<SizedCost> = self.rails.rails.iter().map(SizedCost::from_rail).collect();
            processor::simulate(
                self.scheduler,
                &rails,
                shares(&self.count, &self.rails.costs())?,
                &messages,
            )?
        } else {
            simulate(
                self.scheduler,
                &rails,
                shares(&self.count, &rails)?,
                &messages,
            )?
        };
        let schedule = &found.schedule;
        let table = self.messages.table(&messages, &self.rails.rails, schedule);
        let table = table.cell("rail's VFT", |index| found.virtual_finish[index]);
        let names = self.rails.rails.iter().map(|rail| &rail.name);
        self.format.print(
            &scheduled("rails-schedule", schedule)
                .field("scheduler", self.scheduler.to_string())
                .field("rails", names.collect::<Value>())
                .field("vft_us", &found.virtual_finish)
                .shown(table)
                .line(format!(
                    "{}: last delivery {}, mean {}",
                    self.scheduler,
                    Rounded(schedule.makespan),
                    Rounded(schedule.mean)
                )),
        )
    }
}
