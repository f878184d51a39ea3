//! `flowcast place`: which rank should run on which node.

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::Args;
use flowcast::{
    Contention, Options, PatternOptions, Prepared, TraceCost,
    model::{cluster::pattern::Steps, network::Network, sharing::model::Model},
    place::{
        exhaustive::{Ranking, Slots, search},
        step_cost::{MappingCost, StepCost},
    },
    table::{Document, Grouped, Value, figure, rows},
    units::{Rounded, Time},
};
use flowcast_io::{Holding, is_pattern};

use crate::{
    network_args::NetworkArgs,
    terminal::{output::Format, progress::Progress},
    trace_args::{first_file, open_trace, print_notes, read_pattern, refuse_cut},
};

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
            Holding::Trace => self.place_trace(network),
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
        let options = PatternOptions {
            model: self.model.as_deref().map(Model::named).transpose()?,
            is_strict: self.strict,
            runs: None,
        };
        let cost = StepCost::new(steps, network, &options, self.inside);
        self.search(&cost, &network.name, cost.method.model.name())
    }

    fn place_trace(&self, network: Network) -> Result<()> {
        if self.inside.is_some() || self.strict {
            bail!(
                "--inside, --strict: found a trace, expected steps between ranks (costs inside nodes: machine.nodes)"
            );
        }
        let contention = self.model.as_deref().map(Contention::named).transpose()?;
        let options = Options {
            contention: contention.unwrap_or_default(),
            ..Options::default()
        };
        let trace = open_trace(&self.input)?;
        refuse_cut(&trace)?;
        print_notes(&trace.ignored());
        let model = Prepared::new(&trace, Some(&network), &options)?
            .model()
            .name();
        let name = network.name.clone();
        let cost = TraceCost {
            trace,
            network,
            options,
        };
        self.search(&cost, &name, model)
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
        self.format.print(
            &ranked(&ranking)
                .field("network", network)
                .field("model", model),
        )
    }
}

fn ranked(ranking: &Ranking) -> Document {
    const WIDEST: u64 = 40;
    let best = ranking.histogram[0].0;
    let counts = ranking.histogram.iter().map(|(_, mappings)| *mappings);
    let most = counts.max().unwrap_or(1);
    let histogram = rows(&ranking.histogram)
        .column("time_s", "time", |(time, _)| time)
        .cell("against the best", |(time, _)| {
            let slower = match best {
                Time::ZERO => 1.0,
                best => time.as_nanos() / best.as_nanos(),
            };
            figure(format!("{slower:.2}x"))
        })
        .column("mappings", "mappings", |(_, mappings)| Grouped(*mappings))
        .cell("", |(_, mappings)| {
            "▇".repeat((mappings * WIDEST).div_ceil(most) as usize)
        });
    let mut groups = Vec::new();
    for ranks in ranking.best[0].groups() {
        let ranks: Vec<String> = ranks.iter().map(ToString::to_string).collect();
        groups.push(ranks.join(" "));
    }
    let also = match ranking.best.len() {
        1 => "the only best".to_owned(),
        several => format!("one of {} best", Grouped(several as u64)),
    };
    let nodes = ranking.best.iter().map(|mapping| &mapping.0);
    Document::new("flowcast/placement/1")
        .field("mappings", ranking.mappings)
        .field("best_time_s", best)
        .field("best", nodes.collect::<Value>())
        .table("histogram", histogram)
        .line(format!(
            "best of {} mappings, {}: ranks {} ({also})",
            Grouped(ranking.mappings),
            Rounded(best),
            groups.join(" | ")
        ))
}
