//! `flowcast rails compare`: schedulers against the optimum on random sets.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use flowcast::model::loggp::LogGp;
use flowcast::scheduler::Rail;
use flowcast::scheduler::compare::{Compared, Comparison, Ratios};
use flowcast::scheduler::discipline::SchedulerName;
use flowcast::scheduler::random_sets::{SetPlan, thesis_rails};
use flowcast::units::{Bytes, Time};
use serde_json::{Value, json};

use super::plot::{self, Row};
use crate::files::write_whole;
use crate::output::println_out;
use crate::provenance;
use crate::tables::table;

/// Compare schedulers with the optimum on random sets of messages
///
/// For each set the last delivery under a scheduler is divided by the last delivery of the best schedule there is. A
/// row shows the median, the 95th percentile, the largest and the mean of these ratios; 1 is the best possible.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  flowcast rails compare\n  flowcast rails compare --rail a=1.4,0.00103,1.4,2.82us \
                        --rail b=0.9,0.0085,6.1,65us --window 200us --plot ratios.html"
)]
pub struct Compare {
    /// A network: name, then g, G per byte, o and L in microseconds (repeatable) [default: the six combinations of the
    /// thesis' networks, one after the other]
    #[arg(long = "rail", value_name = "NAME=g,G,o,Lus", value_parser = Rail::parse)]
    rails: Vec<Rail>,
    /// Schedulers [default: all, and the printed forms that differ]
    #[arg(long, value_delimiter = ',', value_name = "NAME,NAME...")]
    schedulers: Vec<SchedulerName>,
    /// Sets for each combination of rails
    #[arg(long, default_value_t = 400, value_name = "COUNT")]
    sets: usize,
    /// Messages of a set
    #[arg(long, default_value_t = 8, value_name = "COUNT")]
    messages: usize,
    /// Longest message; each power of two up to it is as likely as any other
    #[arg(long, default_value = "16KiB", value_name = "SIZE")]
    largest: Bytes,
    /// Messages arrive within this time; 0us is a burst
    #[arg(long, default_value = "0us", value_name = "TIME")]
    window: Time,
    /// Seed of the sets
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Give up an optimum after so many branches
    #[arg(long, default_value_t = 5_000_000, value_name = "BRANCHES")]
    limit: u64,
    /// Write a plot: a page (.html) or a picture (.svg)
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    /// Machine-readable output
    #[arg(long)]
    json: bool,
}

/// One combination of rails and its ratios.
struct Part {
    name: String,
    rails: Vec<Rail>,
    compared: Compared,
}

impl Compare {
    /// Compares and prints.
    pub fn run(self) -> Result<()> {
        let combinations = if self.rails.is_empty() { thesis_rails() } else { vec![self.rails.clone()] };
        let schedulers = self.schedulers();
        let parts: Vec<Part> =
            combinations.into_iter().map(|rails| self.part(rails, &schedulers)).collect::<Result<_>>()?;
        let overall: Vec<Ratios> = (0..schedulers.len())
            .map(|index| Ratios::together(parts.iter().map(|part| &part.compared.ratios[index])))
            .collect();
        if let Some(path) = &self.plot {
            let rows = schedulers.iter().zip(&overall).map(|(name, ratios)| Row { name: name.to_string(), ratios });
            let picture = plot::ratios(&self.caption(&parts), &rows.collect::<Vec<_>>());
            let whole =
                if path.extension().is_some_and(|ending| ending == "svg") { picture } else { plot::page(&picture) };
            write_whole(path, |out| Ok(out.write_all(whole.as_bytes())?))?;
        }
        if self.json {
            self.print_json(&schedulers, &parts, &overall)
        } else {
            self.print(&schedulers, &parts, &overall)
        }
        Ok(())
    }

    fn schedulers(&self) -> Vec<SchedulerName> {
        if self.schedulers.is_empty() { SchedulerName::distinct().collect() } else { self.schedulers.clone() }
    }

    fn part(&self, rails: Vec<Rail>, schedulers: &[SchedulerName]) -> Result<Part> {
        let plan = SetPlan { messages: self.messages, largest: self.largest, window: self.window };
        let comparison = Comparison { sets: self.sets, plan, seed: self.seed, limit: self.limit };
        let costs: Vec<LogGp> = rails.iter().map(|rail| rail.cost).collect();
        let name = rails.iter().map(|rail| rail.name.as_str()).collect::<Vec<_>>().join(" + ");
        Ok(Part { name, rails, compared: comparison.run(&costs, schedulers)? })
    }

    fn caption(&self, parts: &[Part]) -> String {
        let (sets, messages, largest) = (self.sets * parts.len(), self.messages, self.largest);
        let when = if self.window == Time::ZERO { "at once".to_owned() } else { format!("within {}", self.window) };
        format!("{sets} sets of {messages} messages of 1 B to {largest} {when}, seed {}", self.seed)
    }

    fn print(&self, schedulers: &[SchedulerName], parts: &[Part], overall: &[Ratios]) {
        for part in parts {
            print_ratios(&part.name, schedulers, &part.compared.ratios);
            if part.compared.proven < self.sets {
                let open = self.sets - part.compared.proven;
                println_out!("{open} of {} optima are not proven; the best schedule found stands for them.", self.sets);
            }
            println_out!();
        }
        if parts.len() > 1 {
            print_ratios("all together", schedulers, overall);
        }
        println_out!("Last delivery over that of the best schedule; {}.", self.caption(parts));
    }

    fn print_json(&self, schedulers: &[SchedulerName], parts: &[Part], overall: &[Ratios]) {
        let combination = |part: &Part| {
            let rails: Vec<Value> = part.rails.iter().map(rail_json).collect();
            let ratios = ratios_json(schedulers, &part.compared.ratios);
            json!({ "rails": rails, "proven": part.compared.proven, "schedulers": ratios })
        };
        let document = json!({
            "schema": "flowcast/rails-comparison/1",
            "sets": self.sets,
            "messages": self.messages,
            "largest_B": self.largest.0,
            "window_us": self.window.as_micros(),
            "seed": self.seed,
            "combinations": parts.iter().map(combination).collect::<Vec<_>>(),
            "overall": ratios_json(schedulers, overall),
            "provenance": provenance::of_this_run(),
        });
        println_out!("{document}");
    }
}

fn print_ratios(title: &str, schedulers: &[SchedulerName], ratios: &[Ratios]) {
    let mut table = table(&[title, ">median", ">95 %", ">largest", ">mean"]);
    for (name, ratios) in schedulers.iter().zip(ratios) {
        let figures = [ratios.quantile(0.5), ratios.quantile(0.95), ratios.quantile(1.0), ratios.mean()];
        table.add_row([name.to_string()].into_iter().chain(figures.map(|figure| format!("{figure:.3}"))));
    }
    println_out!("{table}");
}

fn rail_json(rail: &Rail) -> Value {
    json!({
        "name": rail.name,
        "g_us": rail.cost.gap.as_micros(),
        "G_us_per_B": rail.cost.gap_per_byte.as_micros(),
        "o_us": rail.cost.overhead.as_micros(),
        "L_us": rail.cost.latency.as_micros(),
    })
}

fn ratios_json(schedulers: &[SchedulerName], ratios: &[Ratios]) -> Value {
    let one = |(name, ratios): (&SchedulerName, &Ratios)| {
        json!({
            "scheduler": name.to_string(),
            "median": ratios.quantile(0.5),
            "p95": ratios.quantile(0.95),
            "max": ratios.quantile(1.0),
            "mean": ratios.mean(),
        })
    };
    schedulers.iter().zip(ratios).map(one).collect()
}
