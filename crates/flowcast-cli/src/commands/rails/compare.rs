//! `flowcast rails compare`: schedulers against the optimum on random sets.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use flowcast::model::loggp::LogGp;
use flowcast::report::sweep_page;
use flowcast::scheduler::Rail;
use flowcast::scheduler::compare::{Comparison, Ratios};
use flowcast::scheduler::discipline::SchedulerName;
use flowcast::scheduler::random_sets::{SetPlan, thesis_rails};
use flowcast::units::{Bytes, Time};
use serde::Serialize;

use super::inputs::RailParameters;
use super::plot::{self, Row};
use crate::terminal::files::{Output, declare};
use crate::terminal::output::{Format, Micros, Shown, println_out, show};
use crate::terminal::provenance;
use crate::terminal::tables::table;

/// Compare schedulers with the optimum on random sets of messages
///
/// For each set the last delivery under a scheduler is divided by the last delivery of the best schedule there is. A
/// row shows the median, the 95th percentile, the largest and the mean of these ratios; 1 is the best possible.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  flowcast rails compare\n  flowcast rails compare --rail a=1.4,0.00103,1.4,2.82us \
                        --rail b=0.9,0.0085,6.1,65us --window 200us --plot ratios.html"
)]
pub(crate) struct Compare {
    /// A network: name, then g, G per byte, o and L in microseconds (repeatable) [default: the six combinations of the
    /// thesis' networks, one after the other]
    #[arg(long = "rail", value_name = "NAME=g,G,o,Lus", value_parser = Rail::parse, help_heading = "Network")]
    rails: Vec<Rail>,
    /// Schedulers [default: all, and the printed forms that differ]
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "NAME,NAME...",
        help_heading = "Scheduler"
    )]
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
    #[arg(
        long,
        default_value_t = 5_000_000,
        value_name = "BRANCHES",
        help_heading = "Precision"
    )]
    limit: u64,
    /// Write a plot: a page (.html) or a picture (.svg)
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    plot: Option<PathBuf>,
    #[command(flatten)]
    format: Format,
}

/// Schedulers against the optimum, by combination of rails and over all of them.
#[derive(Serialize)]
struct Compared {
    #[serde(skip)]
    caption: String,
    sets: usize,
    messages: usize,
    #[serde(rename = "largest_B")]
    largest: u64,
    window_us: Micros,
    seed: u64,
    combinations: Vec<Combination>,
    overall: Vec<Figures>,
    provenance: BTreeMap<String, String>,
}

/// One combination of rails.
#[derive(Serialize)]
struct Combination {
    #[serde(skip)]
    name: String,
    #[serde(skip)]
    ratios: Vec<Ratios>,
    rails: Vec<RailParameters>,
    proven: usize,
    schedulers: Vec<Figures>,
}

/// A scheduler's ratios in four figures.
#[derive(Serialize)]
struct Figures {
    scheduler: String,
    median: f64,
    p95: f64,
    max: f64,
    mean: f64,
}

impl Figures {
    fn of((name, ratios): (&SchedulerName, &Ratios)) -> Figures {
        Figures {
            scheduler: name.to_string(),
            median: ratios.quantile(0.5),
            p95: ratios.quantile(0.95),
            max: ratios.quantile(1.0),
            mean: ratios.mean(),
        }
    }
}

impl Compare {
    /// Compares and prints.
    pub(crate) fn run(self) -> Result<()> {
        declare(
            [],
            self.plot.iter().map(|path| Output {
                option: "--plot",
                path,
                endings: &["html", "svg"],
            }),
        )?;
        let rails = if self.rails.is_empty() {
            thesis_rails()
        } else {
            vec![self.rails.clone()]
        };
        let schedulers = self.schedulers();
        let combinations: Vec<Combination> = rails
            .into_iter()
            .map(|rails| self.combination(rails, &schedulers))
            .collect::<Result<_>>()?;
        let overall: Vec<Ratios> = (0..schedulers.len())
            .map(|index| {
                Ratios::together(
                    combinations
                        .iter()
                        .map(|combination| &combination.ratios[index]),
                )
            })
            .collect();
        let caption = self.caption(combinations.len());
        if let Some(path) = &self.plot {
            let rows = schedulers.iter().zip(&overall).map(|(name, ratios)| Row {
                name: name.to_string(),
                ratios,
            });
            let rows: Vec<Row> = rows.collect();
            let page = || {
                sweep_page::ratios(
                    &format!("Rail schedulers: {caption}"),
                    &plot::quantiles(&rows),
                )
            };
            plot::write(path, || plot::ratios(&caption, &rows), page)?;
        }
        let compared = Compared {
            caption,
            sets: self.sets,
            messages: self.messages,
            largest: self.largest.0,
            window_us: Micros(self.window),
            seed: self.seed,
            combinations,
            overall: schedulers.iter().zip(&overall).map(Figures::of).collect(),
            provenance: provenance::of_this_run(),
        };
        show(&compared, self.format)
    }

    fn schedulers(&self) -> Vec<SchedulerName> {
        if self.schedulers.is_empty() {
            SchedulerName::distinct().collect()
        } else {
            self.schedulers.clone()
        }
    }

    fn combination(&self, rails: Vec<Rail>, schedulers: &[SchedulerName]) -> Result<Combination> {
        let plan = SetPlan {
            messages: self.messages,
            largest: self.largest,
            window: self.window,
        };
        let comparison = Comparison {
            sets: self.sets,
            plan,
            seed: self.seed,
            limit: self.limit,
        };
        let costs: Vec<LogGp> = rails.iter().map(|rail| rail.cost).collect();
        let compared = comparison.run(&costs, schedulers)?;
        Ok(Combination {
            name: rails
                .iter()
                .map(|rail| rail.name.as_str())
                .collect::<Vec<_>>()
                .join(" + "),
            rails: rails
                .iter()
                .map(|rail| RailParameters::new(&rail.name, &rail.cost))
                .collect(),
            proven: compared.proven,
            schedulers: schedulers
                .iter()
                .zip(&compared.ratios)
                .map(Figures::of)
                .collect(),
            ratios: compared.ratios,
        })
    }

    fn caption(&self, combinations: usize) -> String {
        let (sets, messages, largest) = (self.sets * combinations, self.messages, self.largest);
        let when = if self.window == Time::ZERO {
            "at once".to_owned()
        } else {
            format!("within {}", self.window)
        };
        format!(
            "{sets} sets of {messages} messages of 1 B to {largest} {when}, seed {}",
            self.seed
        )
    }
}

impl Shown for Compared {
    const SCHEMA: &'static str = "flowcast/rails-comparison/1";

    fn print(&self) {
        for combination in &self.combinations {
            print_figures(&combination.name, &combination.schedulers);
            if combination.proven < self.sets {
                let open = self.sets - combination.proven;
                println_out!(
                    "{open} of {} optima are not proven; the best schedule found stands for them.",
                    self.sets
                );
            }
            println_out!();
        }
        if self.combinations.len() > 1 {
            print_figures("all together", &self.overall);
        }
        println_out!(
            "Last delivery over that of the best schedule; {}.",
            self.caption
        );
    }
}

fn print_figures(title: &str, schedulers: &[Figures]) {
    let mut table = table(&[title, ">median", ">95 %", ">largest", ">mean"]);
    for Figures {
        scheduler,
        median,
        p95,
        max,
        mean,
    } in schedulers
    {
        let figures = [median, p95, max, mean].map(|figure| format!("{figure:.3}"));
        table.add_row([scheduler.clone()].into_iter().chain(figures));
    }
    println_out!("{table}");
}
