//! `flowcast place`: which rank should run on which node.

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::Args;
use flowcast::model::cluster::pattern::Steps;
use flowcast::model::network::Network;
use flowcast::model::sharing::model::Model;
use flowcast::place::exhaustive::{Slots, search};
use flowcast::place::step_cost::{InsideNode, MappingCost, StepCost};
use flowcast::units::{Rank, Rate, Time};
use flowcast::{Contention, Options, PatternOptions, Prepared, TraceCost};
use flowcast_io::{Holding, is_pattern};
use serde::Serialize;

use crate::network_args::NetworkArgs;
use crate::terminal::output::{Format, Seconds, Shown, println_out, show};
use crate::terminal::progress::Progress;
use crate::terminal::tables::table;
use crate::trace_args::{first_file, open_trace, print_notes, read_pattern, refuse_cut};
use flowcast::report::answer::Grouped;

/// Find the best mapping of ranks to nodes for a communication in steps or a program, by trying all
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowcast place prog.rec --network gige-tcp --nodes 4 --slots 2
  flowcast place broadcast.steps --network gige-lam --nodes 4 --slots 2 --inside 18.7ms

broadcast.steps, a binomial broadcast among eight ranks:
  0 -> 4 10MB
  step
  0 -> 2 10MB
  4 -> 6 10MB
  step
  0 -> 1 10MB
  2 -> 3 10MB
  4 -> 5 10MB
  6 -> 7 10MB")]
pub(crate) struct Place {
    /// Flows between ranks, steps parted by lines that say `step` (docs/reference/place.md); or a recording, or another
    /// trace, which is replayed under each mapping; - for the standard input
    #[arg(value_name = "STEPS|TRACE")]
    input: PathBuf,
    #[command(flatten)]
    network: NetworkArgs,
    /// Nodes
    #[arg(long)]
    nodes: u32,
    /// Ranks that fit on a node
    #[arg(long)]
    slots: u32,
    /// How flows share what they cross, for a trace as for `flowcast predict`; the network's own model when absent
    #[arg(long, value_name = "MODEL", help_heading = "Network")]
    model: Option<String>,
    /// Time of a message of steps inside a node, such as 18.7ms; what the network's machine says when absent
    #[arg(long, value_name = "TIME", help_heading = "Network")]
    inside: Option<Time>,
    /// flow-cuts refuses more than two flows in one direction of a node
    #[arg(long, help_heading = "Network")]
    strict: bool,
    #[command(flatten)]
    format: Format,
}

impl Place {
    /// Searches and prints.
    pub(crate) fn run(self) -> Result<()> {
        let network = self.network.load()?;
        match is_pattern(&first_file(&self.input)?)? {
            Holding::Pattern => self.place_steps(&network),
            Holding::Trace => self.place_trace(&network),
        }
    }

    fn place_steps(&self, network: &Network) -> Result<()> {
        let (name, content) = read_pattern(&self.input)?;
        let steps = Steps::read(&name, &content)?;
        if !steps.racks.is_empty() {
            bail!(
                "{name}: found `node .. rack` lines, expected steps between ranks, whose nodes are what is searched for"
            );
        }
        let model = self.model.as_deref().map(Model::named).transpose()?;
        let method = PatternOptions {
            model,
            is_strict: self.strict,
            seeds: None,
        }
        .method(network);
        let inside = match self.inside {
            Some(latency) => InsideNode {
                latency,
                rate: Rate::default(),
            },
            None => InsideNode::of(network),
        };
        self.search(
            &StepCost {
                steps: &steps,
                network,
                method,
                inside,
            },
            &network.name,
            method.model.name(),
        )
    }

    fn place_trace(&self, network: &Network) -> Result<()> {
        if self.inside.is_some() || self.strict {
            bail!(
                "--inside, --strict: found a trace, expected steps between ranks (costs inside nodes: machine.nodes)"
            );
        }
        let contention = self
            .model
            .as_deref()
            .map_or(Ok(Contention::Automatic), Contention::named)?;
        let options = Options {
            contention,
            ..Options::default()
        };
        let trace = open_trace(&self.input)?;
        refuse_cut(&trace)?;
        print_notes(&trace.ignored());
        let model = Prepared::new(&trace, Some(network), &options)?
            .model()
            .name();
        self.search(
            &TraceCost {
                trace: &trace,
                network,
                options: &options,
            },
            &network.name,
            model,
        )
    }

    fn search(&self, cost: &dyn MappingCost, network: &str, model: &'static str) -> Result<()> {
        let mut progress = None;
        let ranking = search(
            cost,
            Slots {
                nodes: self.nodes,
                per_node: self.slots,
            },
            &mut |_, all| {
                progress
                    .get_or_insert_with(|| Progress::of("trying", "mappings", all))
                    .add(1);
            },
        )?;
        drop(progress);
        let bests = || ranking.best.iter();
        let placed = Placed {
            network,
            model,
            mappings: ranking.mappings,
            best_time_s: Seconds(ranking.histogram[0].0),
            best: bests()
                .map(|mapping| mapping.0.iter().map(|node| node.0).collect())
                .collect(),
            groups: ranking.best[0].groups(),
            histogram: ranking
                .histogram
                .iter()
                .map(|(time, count)| Bar {
                    time_s: Seconds(*time),
                    mappings: *count,
                })
                .collect(),
        };
        show(&placed, self.format)
    }
}

/// The best mappings, and how long each of the others takes.
#[derive(Serialize)]
struct Placed<'a> {
    network: &'a str,
    model: &'static str,
    mappings: u64,
    best_time_s: Seconds,
    best: Vec<Vec<u32>>,
    #[serde(skip)]
    groups: Vec<Vec<Rank>>,
    histogram: Vec<Bar>,
}

/// How many mappings take the same time.
#[derive(Serialize)]
struct Bar {
    time_s: Seconds,
    mappings: u64,
}

impl Shown for Placed<'_> {
    const SCHEMA: &'static str = "flowcast/placement/1";

    fn print(&self) {
        const WIDEST: u64 = 40;
        let mut table = table(&[">time", ">against the best", ">mappings", ""]);
        let best = self.best_time_s.0;
        let most = self
            .histogram
            .iter()
            .map(|bar| bar.mappings)
            .max()
            .unwrap_or(1);
        for Bar { time_s, mappings } in &self.histogram {
            let slower = if best == Time::ZERO {
                1.0
            } else {
                time_s.0.as_nanos() / best.as_nanos()
            };
            let bar = "▇".repeat((mappings * WIDEST).div_ceil(most) as usize);
            table.add_row([
                time_s.to_string(),
                format!("{slower:.2}x"),
                Grouped(*mappings).to_string(),
                bar,
            ]);
        }
        println_out!("{table}");
        let node = |ranks: &Vec<Rank>| {
            ranks
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join(" ")
        };
        let groups = self.groups.iter().map(node).collect::<Vec<_>>().join(" | ");
        let also = match self.best.len() {
            1 => "the only best".to_owned(),
            several => format!("one of {} best", Grouped(several as u64)),
        };
        println_out!(
            "best of {} mappings, {}: ranks {groups} ({also})",
            Grouped(self.mappings),
            self.best_time_s
        );
    }
}
