//! `flowcast place`: which rank should run on which node.

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::Args;
use flowcast::{
    Case, Contention, Input, Options,
    model::{cluster::pattern::Steps, machine::inside::InsideNode, network::Network},
    place::exhaustive::{Ranking, Slots, ranks_of_nodes, search},
    table::{Document, Grouped, Value, figure, rows},
    units::{Rate, Rounded, Time},
};
use flowcast_io::{Holding, is_pattern};

use crate::{
    network_args::NetworkArgs,
    terminal::{output::Format, progress::Progress},
    trace_args::{first_file, open_trace, print_notes, read_pattern, refuse_cut, threads},
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
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// Time of a message of steps inside a node, such as 18.7ms; what the network's machine says when absent
    #[arg(long, value_name = "TIME")]
    inside: Option<Time>,
    /// flow-cuts refuses more than two flows in one direction of a node
    #[arg(long)]
    strict: bool,
    #[command(flatten)]
    format: Format,
}

impl Place {
    /// Searches and prints.
    pub(crate) fn run(self) -> Result<()> {
        let network = self.network.load()?;
        match is_pattern(&first_file(&self.input)?)? {
            Holding::Pattern => self.place_steps(network),
            Holding::Trace => self.place_trace(&network),
        }
    }

    fn place_steps(&self, mut network: Network) -> Result<()> {
        let (name, content) = read_pattern(&self.input)?;
        let steps = Steps::read(&name, &content)?;
        if !steps.racks.is_empty() {
            bail!(
                "{name}: found `node .. rack` lines, expected steps between ranks, whose nodes are what is searched for"
            );
        }
        if let Some(latency) = self.inside {
            let rate = Rate::default();
            network.machine = network.machine.with_inside(InsideNode { latency, rate });
        }
        self.search(Input::Steps(&steps), &network)
    }

    fn place_trace(&self, network: &Network) -> Result<()> {
        if self.inside.is_some() || self.strict {
            bail!(
                "--inside, --strict: found a trace, expected steps between ranks (costs inside nodes: machine.nodes)"
            );
        }
        let trace = open_trace(&self.input)?;
        refuse_cut(&trace)?;
        print_notes(&trace.ignored());
        self.search(Input::Trace(&trace), network)
    }

    fn search(&self, input: Input<'_>, network: &Network) -> Result<()> {
        let contention = self.model.as_deref().map(Contention::named).transpose()?;
        let options = Options {
            contention: contention.unwrap_or_default(),
            is_strict: self.strict,
            ..Options::default()
        };
        let case = Case::new(input, Some(network), options);
        let model = case.model()?;
        let mut progress = None;
        let ranking = search(
            &case,
            Slots {
                nodes: self.nodes,
                per_node: self.slots,
            },
            threads(),
            &mut |_, all| {
                progress
                    .get_or_insert_with(|| Progress::of("trying", "mappings", all))
                    .add(1);
            },
        )?;
        drop(progress);
        self.format.print(
            &ranked(&ranking)
                .field("network", &network.name)
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
    for ranks in ranks_of_nodes(&ranking.best[0]) {
        let ranks: Vec<String> = ranks.iter().map(ToString::to_string).collect();
        groups.push(ranks.join(" "));
    }
    let also = match ranking.best.len() {
        1 => "the only best".to_owned(),
        several => format!("one of {} best", Grouped(several as u64)),
    };
    let nodes = ranking.best.iter();
    Document::new("placement")
        .schema("flowcast/placement/1")
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
