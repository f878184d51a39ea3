//! `flowcast place`: which rank should run on which node.

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;
use flowcast::flows::concurrent::Method;
use flowcast::model::cluster::pattern::Steps;
use flowcast::model::network::Network;
use flowcast::place::exhaustive::{Ranking, Slots, search};
use flowcast::place::step_cost::{InsideNode, Mapping, StepCost};
use flowcast::units::{Rate, Rounded, Time};
use serde_json::json;

use super::predict_pattern::method;
use crate::network_args::NetworkArgs;
use crate::tables::table;

/// Find the best mapping of ranks to nodes for a communication in steps, by trying all
#[derive(Debug, Args)]
#[command(after_help = "Example:
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
pub struct Place {
    /// Flows between ranks, steps parted by lines that say `step` (docs/place.md)
    steps: PathBuf,
    #[command(flatten)]
    network: NetworkArgs,
    /// Nodes
    #[arg(long)]
    nodes: u32,
    /// Ranks that fit on a node
    #[arg(long)]
    slots: u32,
    /// How flows share what they cross; the network's own model when absent
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// Time of a message inside a node, such as 18.7ms; what the network's machine says when absent
    #[arg(long, value_name = "TIME")]
    inside: Option<Time>,
    /// flow-cuts refuses more than two flows in one direction of a node
    #[arg(long)]
    strict: bool,
    /// Machine-readable output
    #[arg(long)]
    json: bool,
}

impl Place {
    /// Searches and prints.
    pub fn run(self) -> Result<()> {
        let name = self.steps.display().to_string();
        let content = std::fs::read(&self.steps).with_context(|| format!("cannot read {name}"))?;
        let steps = Steps::read(&name, &content)?;
        let network = self.network.load()?;
        let method = method(self.model.as_deref(), self.strict, &network)?;
        let inside = match self.inside {
            Some(latency) => InsideNode { latency, rate: Rate::default() },
            None => InsideNode::of(&network),
        };
        let cost = StepCost { steps: &steps, network: &network, method, inside };
        let ranking = search(&cost, Slots { nodes: self.nodes, per_node: self.slots })?;
        let mut out = std::io::stdout().lock();
        if self.json {
            writeln!(out, "{}", document(&ranking, &network, method))?;
        } else {
            print_ranking(&mut out, &ranking)?;
        }
        Ok(())
    }
}

fn document(ranking: &Ranking, network: &Network, method: Method) -> serde_json::Value {
    let nodes = |mapping: &Mapping| mapping.0.iter().map(|node| node.0).collect::<Vec<_>>();
    let entry = |(time, count): &(Time, u64)| json!({"time_s": time.as_seconds(), "mappings": count});
    json!({
        "schema": "flowcast/placement/1",
        "network": network.name,
        "model": method.model.name(),
        "mappings": ranking.mappings,
        "best_time_s": ranking.histogram[0].0.as_seconds(),
        "best": ranking.best.iter().map(nodes).collect::<Vec<_>>(),
        "histogram": ranking.histogram.iter().map(entry).collect::<Vec<_>>(),
    })
}

fn print_ranking(out: &mut impl Write, ranking: &Ranking) -> Result<()> {
    const WIDEST: u64 = 40;
    let mut table = table(&[">time", ">against the best", ">mappings", ""]);
    let best = ranking.histogram[0].0;
    let most = ranking.histogram.iter().map(|(_, count)| *count).max().unwrap_or(1);
    for (time, count) in &ranking.histogram {
        let slower = if best == Time::ZERO { 1.0 } else { time.as_nanos() / best.as_nanos() };
        let bar = "▇".repeat((count * WIDEST).div_ceil(most) as usize);
        table.add_row([Rounded(*time).to_string(), format!("{slower:.2}x"), count.to_string(), bar]);
    }
    writeln!(out, "{table}")?;
    let node = |ranks: &Vec<flowcast::units::Rank>| ranks.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
    let groups = ranking.best[0].groups().iter().map(node).collect::<Vec<_>>().join(" | ");
    let also = match ranking.best.len() {
        1 => "the only best".to_owned(),
        several => format!("one of {several} best"),
    };
    writeln!(out, "best of {} mappings, {}: ranks {groups} ({also})", ranking.mappings, Rounded(best))?;
    Ok(())
}
