//! `flowcast rails simulate`: what a scheduler does with a list of messages.

use anyhow::{Result, ensure};
use clap::Args;
use flowcast::scheduler::discipline::{Discipline, SchedulerName};
use flowcast::scheduler::processor::{self, SizedCost};
use flowcast::scheduler::schedule::{Message, simulate};
use flowcast::scheduler::split::SplitRule;
use flowcast::units::{Bytes, Rounded, Time};
use serde::Serialize;

use super::inputs::{MessageArgs, RailArgs, SHOW_MESSAGES, choices, micros, shares};
use super::split;
use crate::terminal::output::{Format, Micros, Shown, println_out, show};
use crate::terminal::tables::{Most, cells, table};

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
    /// round-robin, weighted-round-robin, wfq, vtrr, gap, vft, vft-clock, latency, overlap, fixed-point,
    /// earliest-delivery or earliest-overlap; with -printed as the thesis' pseudo-code has it
    #[arg(
        long,
        default_value = "earliest-delivery",
        value_name = "NAME",
        help_heading = "Scheduler"
    )]
    scheduler: SchedulerName,
    /// Messages of a cycle for each rail, for the schedulers by share [default: in proportion to the bandwidths]
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "COUNT,COUNT...",
        help_heading = "Scheduler"
    )]
    shares: Vec<u32>,
    /// Count the processor's time, o + O(s-1) for each message, one message after the other on all rails;
    /// earliest-delivery then schedules by it
    #[arg(long, help_heading = "Scheduler")]
    processor: bool,
    /// Split messages from this size on so that all rails finish together (earliest-delivery only)
    #[arg(long, value_name = "SIZE", conflicts_with_all = ["processor", "shares"], help_heading = "Scheduler")]
    split_from: Option<Bytes>,
    /// No piece of a split message is shorter
    #[arg(
        long,
        default_value = "8KiB",
        value_name = "SIZE",
        requires = "split_from",
        help_heading = "Scheduler"
    )]
    minimal_piece: Bytes,
    #[command(flatten)]
    format: Format,
}

impl Simulate {
    /// Prints the schedule.
    pub(crate) fn run(self) -> Result<()> {
        let (rails, messages) = (self.rails.costs(), self.messages.read()?);
        if let Some(from) = self.split_from {
            let rule = self.split_rule(from)?;
            return split::run(
                &self.rails.rails,
                (&messages, self.messages.show_messages),
                rule,
                self.format,
            );
        }
        let found = if self.processor {
            let rails: Vec<SizedCost> = self.rails.rails.iter().map(SizedCost::of).collect();
            processor::simulate(
                self.scheduler,
                &rails,
                shares(&self.shares, &self.rails.costs())?,
                &messages,
            )?
        } else {
            simulate(
                self.scheduler,
                &rails,
                shares(&self.shares, &rails)?,
                &messages,
            )?
        };
        let scheduled = Scheduled {
            messages: &messages,
            show: self.messages.show_messages,
            scheduler: self.scheduler.to_string(),
            rails: self
                .rails
                .rails
                .iter()
                .map(|rail| rail.name.as_str())
                .collect(),
            choices: choices(&found.schedule),
            delivered_us: micros(&found.schedule.delivered),
            vft_us: micros(&found.virtual_finish),
            makespan_us: Micros(found.schedule.makespan),
            mean_us: Micros(found.schedule.mean),
        };
        show(&scheduled, self.format)
    }

    fn split_rule(&self, from: Bytes) -> Result<SplitRule> {
        ensure!(
            self.scheduler == SchedulerName::new(Discipline::EarliestDelivery),
            "--split-from: found --scheduler {}, expected earliest-delivery, which alone splits messages",
            self.scheduler
        );
        Ok(SplitRule {
            from,
            minimal_piece: self.minimal_piece,
            least_gain: Time::ZERO,
        })
    }
}

/// What the scheduler did.
#[derive(Serialize)]
struct Scheduled<'a> {
    #[serde(skip)]
    messages: &'a [Message],
    #[serde(skip)]
    show: Most,
    scheduler: String,
    rails: Vec<&'a str>,
    choices: Vec<u8>,
    delivered_us: Vec<Micros>,
    vft_us: Vec<Micros>,
    makespan_us: Micros,
    mean_us: Micros,
}

impl Shown for Scheduled<'_> {
    const SCHEMA: &'static str = "flowcast/rails-schedule/1";

    fn print(&self) {
        let mut table = table(&[
            ">message",
            ">arrival",
            ">size",
            "rail",
            ">delivered",
            ">rail's VFT",
        ]);
        for (index, message) in self.show.of(self.messages).iter().enumerate() {
            let (arrival, rail) = (
                Rounded(message.arrival),
                self.rails[usize::from(self.choices[index])],
            );
            table.add_row(cells![
                index,
                arrival,
                message.size,
                rail,
                self.delivered_us[index],
                self.vft_us[index]
            ]);
        }
        println_out!(
            "{}",
            self.show.shown(&table, self.messages.len(), SHOW_MESSAGES)
        );
        println_out!(
            "{}: last delivery {}, mean {}",
            self.scheduler,
            self.makespan_us,
            self.mean_us
        );
    }
}
