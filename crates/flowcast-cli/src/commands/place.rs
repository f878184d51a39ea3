//! `flowcast place`: which rank should run on which node.

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::Args;
use flowcast::{
    Case, Contention, Input, Options,
    model::{cluster::pattern::Steps, machine::inside::InsideNode, network::Network},
    place::exhaustive::{Ranking, Slots, ranks_of_nodes, search},
    table::Grouped,
    units::{Rate, Rounded, Time},
};
use flowcast_io::{Holding, is_pattern};
use serde_json::{Value, json};

use crate::{
    network_args::NetworkArgs,
    terminal::{
        output::{Format, println_out},
        progress::Progress,
        tables::table,
    },
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
        if !self.format.json {
            print(&ranking);
            return Ok(());
        }
        let mut best: Vec<Vec<u32>> = Vec::new();
        for mapping in &ranking.best {
            best.push(mapping.iter().map(|node| node.0).collect());
        }
        let histogram = ranking.histogram.iter();
        let histogram: Vec<Value> = histogram
            .map(|(time, mappings)| json!({"time_s": time.as_seconds(), "mappings": mappings}))
            .collect();
        let document = json!({
            "schema": "flowcast/placement/1",
            "network": network.name,
            "model": model,
            "mappings": ranking.mappings,
            "best_time_s": ranking.histogram[0].0.as_seconds(),
            "best": best,
            "histogram": histogram,
        });
        println_out!("{document}");
        Ok(())
    }
}

fn print(ranking: &Ranking) {
    const WIDEST: u64 = 40;
    let mut table = table(&[">time", ">against the best", ">mappings", ""]);
    let best = ranking.histogram[0].0;
    let counts = ranking.histogram.iter().map(|(_, mappings)| *mappings);
    let most = counts.max().unwrap_or(1);
    for (time, mappings) in &ranking.histogram {
        let slower = if best == Time::ZERO {
            1.0
        } else {
            time.as_nanos() / best.as_nanos()
        };
        let bar = "▇".repeat((mappings * WIDEST).div_ceil(most) as usize);
        table.add_row([
            Rounded(*time).to_string(),
            format!("{slower:.2}x"),
            Grouped(*mappings).to_string(),
            bar,
        ]);
    }
    println_out!("{table}");
    let mut groups = Vec::new();
    for ranks in ranks_of_nodes(&ranking.best[0]) {
        let ranks: Vec<String> = ranks.iter().map(ToString::to_string).collect();
        groups.push(ranks.join(" "));
    }
    let also = match ranking.best.len() {
        1 => "the only best".to_owned(),
        several => format!("one of {} best", Grouped(several as u64)),
    };
    println_out!(
        "best of {} mappings, {}: ranks {} ({also})",
        Grouped(ranking.mappings),
        Rounded(best),
        groups.join(" | ")
    );
}
