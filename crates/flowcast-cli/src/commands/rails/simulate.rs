//! `flowcast rails simulate`: what a scheduler does with a list of messages.

use anyhow::Result;
use clap::Args;
use flowcast::rails::discipline::SchedulerName;
use flowcast::rails::schedule::{Message, Simulation, simulate};
use flowcast::units::Rounded;

use super::inputs::{MessageArgs, RailArgs, choices, micros, shares};
use crate::output::println_out;
use crate::tables::table;

/// Let a scheduler choose the rail of each message
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  flowcast rails simulate --rail ib=1.4,0.00103,1.4,2.82us --rail myri=3.4,0.00409,1.9,24.3us \
                        --messages burst.csv --scheduler latency --json"
)]
pub struct Simulate {
    #[command(flatten)]
    rails: RailArgs,
    #[command(flatten)]
    messages: MessageArgs,
    /// round-robin, weighted-round-robin, wfq, vtrr, gap, vft, vft-clock, latency, overlap, fixed-point,
    /// earliest-delivery or earliest-overlap; with -printed as the thesis' pseudo-code has it
    #[arg(long, default_value = "earliest-delivery", value_name = "NAME")]
    scheduler: SchedulerName,
    /// Messages of a cycle for each rail, for the schedulers by share [default: in proportion to the bandwidths]
    #[arg(long, value_delimiter = ',', value_name = "COUNT,COUNT...")]
    shares: Vec<u32>,
    /// Machine-readable output
    #[arg(long)]
    json: bool,
}

impl Simulate {
    /// Prints the schedule.
    pub fn run(self) -> Result<()> {
        let (rails, messages) = (self.rails.costs(), self.messages.read()?);
        let found = simulate(self.scheduler, &rails, shares(&self.shares, &rails)?, &messages)?;
        if self.json {
            self.print_json(&found)
        } else {
            self.print_table(&messages, &found)
        }
        Ok(())
    }

    fn print_json(&self, found: &Simulation) {
        let names: Vec<&str> = self.rails.rails.iter().map(|rail| rail.name.as_str()).collect();
        let document = serde_json::json!({
            "schema": "flowcast/rails-schedule/1",
            "scheduler": self.scheduler.to_string(),
            "rails": names,
            "choices": choices(&found.schedule),
            "delivered_us": micros(&found.schedule.delivered),
            "vft_us": micros(&found.virtual_finish),
            "makespan_us": found.schedule.makespan.as_micros(),
            "mean_us": found.schedule.mean.as_micros(),
        });
        println_out!("{document}");
    }

    fn print_table(&self, messages: &[Message], found: &Simulation) {
        let mut table = table(&[">message", ">arrival", ">size", "rail", ">delivered", ">rail's VFT"]);
        for (index, message) in messages.iter().enumerate() {
            let rail = found.schedule.choices[index];
            table.add_row([
                index.to_string(),
                Rounded(message.arrival).to_string(),
                message.size.to_string(),
                self.rails.rails[rail.index()].name.clone(),
                Rounded(found.schedule.delivered[index]).to_string(),
                Rounded(found.virtual_finish[index]).to_string(),
            ]);
        }
        println_out!("{table}");
        let (makespan, mean) = (Rounded(found.schedule.makespan), Rounded(found.schedule.mean));
        println_out!("{}: last delivery {makespan}, mean {mean}", self.scheduler);
    }
}
