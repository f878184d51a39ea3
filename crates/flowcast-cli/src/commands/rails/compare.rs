//! `flowcast rails compare`: compares schedulers with the optimum on random sets of messages.

use anyhow::Result;
use clap::Args;
use flowcast::{
    model::loggp::LogGp,
    scheduler::{
        Rail,
        compare::{Ratios, SchedulerComparison},
        discipline::SchedulerName,
        random_sets::{SetPlan, thesis_rails},
    },
    table::{Document, Rows, fixed, rows},
    units::{Bytes, Time},
};

use super::inputs::rail_parameters;
use flowcast_terminal::{
    network_args::rail,
    output::Format,
    provenance,
    shares::{count, seed},
};

/// Compare schedulers with the optimum on random sets of messages
///
/// For each set, divides the last delivery under a scheduler by the last delivery of the best schedule. A row shows the
/// median, the 95th percentile, the largest and the mean of these ratios; 1 is the best possible.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  flowcast rails compare\n  flowcast rails compare --rail a=1.4,0.00103,1.4,2.82us \
                        --rail b=0.9,0.0085,6.1,65us --span 200us"
)]
pub(crate) struct Compare {
    /// Network: a name, a file, or NAME=g,G,o,Lus in microseconds (G per byte) (repeatable) [default: the six
    /// combinations of the thesis' networks, one after the other]
    #[arg(long = "rail", value_name = "RAIL", value_parser = rail)]
    rails: Vec<Rail>,
    /// Schedulers to compare [default: all, and the printed forms that differ]
    #[arg(long = "scheduler", value_delimiter = ',', value_name = "NAME,NAME...")]
    schedulers: Vec<SchedulerName>,
    /// Number of sets for each combination of rails; at most 100000
    #[arg(long, default_value_t = 400, value_name = "COUNT", value_parser = count::<usize>(..=100_000))]
    count: usize,
    /// Number of messages in a set; at most 1000000
    #[arg(long, default_value_t = 8, value_name = "COUNT", value_parser = count::<usize>(..=1_000_000))]
    burst: usize,
    /// Largest message size; all octaves are equally likely, and sizes are uniform within an octave
    #[arg(long, default_value = "16KiB", value_name = "SIZE")]
    size: Bytes,
    /// Time within which messages arrive; 0us is a burst
    #[arg(long, default_value = "0us", value_name = "TIME")]
    span: Time,
    /// Seed of the sets, at most 2^53
    #[arg(long, default_value_t = 1, value_parser = seed())]
    seed: u64,
    /// Number of branches after which the search for an optimum is given up
    #[arg(long, default_value_t = 5_000_000, value_name = "COUNT")]
    limit: u64,
    #[command(flatten)]
    format: Format,
}

/// One combination of rails.
struct Combination {
    rails: Vec<Rail>,
    proven: usize,
    ratios: Vec<Ratios>,
}

impl Compare {
    /// Compares and prints the ratios.
    pub(crate) fn run(self) -> Result<()> {
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
        let mut document = Document::new("rails-comparison")
            .titled(format!("Rail schedulers: {caption}"))
            .field("sets", self.count)
            .field("messages", self.burst)
            .field("largest_B", self.size)
            .field("window_us", self.span)
            .field("seed", self.seed)
            .field("provenance", provenance::of_this_run());
        for combination in &combinations {
            let names = combination.rails.iter().map(|rail| rail.name.as_str());
            document = document.shown(figures(
                names.collect::<Vec<_>>().join(" + "),
                &schedulers,
                &combination.ratios,
            ));
            let open = self.count - combination.proven;
            document = document.lines((open > 0).then(|| {
                format!(
                    "{open} of {} optima are not proven; the best schedule found replaces them.",
                    self.count
                )
            }));
            document = document.line("");
        }
        if combinations.len() > 1 {
            document = document.shown(figures("all combinations", &schedulers, &overall));
        }
        let each = rows(&combinations)
            .field("rails", |combination| {
                rail_parameters(
                    combination
                        .rails
                        .iter()
                        .map(|rail| (&*rail.name, &rail.cost)),
                )
            })
            .field("proven", |combination| combination.proven)
            .field("schedulers", |combination| {
                figures("", &schedulers, &combination.ratios)
            });
        let document = document
            .field("combinations", each)
            .field("overall", figures("", &schedulers, &overall))
            .line(format!(
                "Last delivery, divided by the last delivery of the best schedule; {caption}."
            ));
        self.format.print(&document)
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
            messages: self.burst,
            largest: self.size,
            window: self.span,
        };
        let comparison = SchedulerComparison {
            sets: self.count,
            plan,
            seed: self.seed,
            limit: self.limit,
        };
        let costs: Vec<LogGp> = rails.iter().map(|rail| rail.cost).collect();
        let compared = comparison.run(&costs, schedulers)?;
        Ok(Combination {
            rails,
            proven: compared.proven,
            ratios: compared.ratios,
        })
    }

    fn caption(&self, combinations: usize) -> String {
        let (sets, messages, largest) = (self.count * combinations, self.burst, self.size);
        let when = if self.span == Time::ZERO {
            "at the same time".to_owned()
        } else {
            format!("within {}", self.span)
        };
        format!(
            "{sets} sets of {messages} messages of 1 B to {largest} {when}, seed {}",
            self.seed
        )
    }
}

/// Four statistics of each scheduler's ratios.
fn figures(
    title: impl Into<String>,
    schedulers: &[SchedulerName],
    ratios: &[Ratios],
) -> Rows<usize> {
    let mut table =
        rows(0..ratios.len()).column("scheduler", title, |index| schedulers[index].to_string());
    for (name, heading, share) in [
        ("median", "median", 0.5),
        ("p95", "95 %", 0.95),
        ("max", "largest", 1.0),
    ] {
        table = table.column(name, heading, |index| {
            fixed(ratios[index].quantile(share), 3)
        });
    }
    table.column("mean", "mean", |index| fixed(ratios[index].mean(), 3))
}
