//! Which patterns a validation runs, and the lab that it runs them in unless another is asked for.

use std::path::Path;

use anyhow::{Context, Result, bail};
use flowcast::cluster::flow::Flow;
use flowcast::cluster::pattern::Pattern;
use flowcast::cluster::racks::Racks;
use flowcast::cluster::staggered::{random_directions, staggered_chain_at};
use flowcast::cluster::two_racks::{CONFIGURATIONS, TwoRackPlan};
use flowcast::units::{Bytes, Node};
use flowcast_lab::LabSpec;

/// The set that was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Set {
    /// RR-5910: thirty flows of a chain.
    Chain,
    /// Zhu et al.: random flows over two racks.
    TwoRacks,
    /// Pattern files.
    Files(Vec<String>),
}

/// A pattern with its names.
#[derive(Debug, Clone, PartialEq)]
pub struct Named {
    /// Its name.
    pub name: String,
    /// The configuration it belongs to.
    pub configuration: String,
    /// The flows and their racks.
    pub pattern: Pattern,
}

/// How patterns are drawn.
#[derive(Debug, Clone, Copy)]
pub struct Draw {
    /// Patterns of a chain, or of each configuration of two racks.
    pub instances: u32,
    /// The first seed; each pattern has one of its own.
    pub seed: u64,
    /// Flows of the chain.
    pub flows: u32,
}

impl Set {
    /// `A`, `B` or files.
    pub fn parse(texts: &[String]) -> Result<Set> {
        match texts {
            [one] if one == "A" => Ok(Set::Chain),
            [one] if one == "B" => Ok(Set::TwoRacks),
            files if files.iter().any(|name| name == "A" || name == "B") => {
                bail!("--set: found `{}`, expected A, B, or pattern files", files.join(" "))
            }
            files => Ok(Set::Files(files.to_vec())),
        }
    }

    /// Profile and overrides of the usual lab.
    pub fn usual_lab(&self) -> (&'static str, Vec<(String, String)>) {
        let set = |fields: &[(&str, &str)]| {
            fields.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect::<Vec<_>>()
        };
        let window = ("tcp.window", "32KiB");
        match self {
            Set::Chain => {
                let nodes = [("cluster.nodes", "31"), ("cluster.ranks_per_node", "1")];
                ("asymmetric", set(&[nodes[0], nodes[1], ("nic.bandwidth", "20Mbit/s"), window]))
            }
            Set::TwoRacks => ("two-racks", set(&[("cluster.nodes", "10"), window])),
            Set::Files(_) => ("asymmetric", Vec::new()),
        }
    }

    /// Its name in reports.
    pub fn title(&self) -> &'static str {
        match self {
            Set::Chain => "Flows of a chain of nodes, one after the other (RR-5910)",
            Set::TwoRacks => "Random flows over two racks (Zhu et al.)",
            Set::Files(_) => "Patterns from files",
        }
    }

    /// The patterns, for a lab.
    pub fn patterns(&self, draw: Draw, spec: &LabSpec) -> Result<Vec<Named>> {
        let patterns = match self {
            Set::Chain => (0..draw.instances).map(|at| chain(draw, at, spec)).collect(),
            Set::TwoRacks => two_racks(draw, spec)?,
            Set::Files(names) => names.iter().map(|name| from_file(name, spec)).collect::<Result<_>>()?,
        };
        for named in &patterns {
            let highest = named.pattern.flows.iter().map(|flow| flow.src.0.max(flow.dst.0)).max().unwrap_or(0);
            if highest >= spec.cluster.nodes {
                bail!(
                    "{}: found node {highest}, expected one of the lab's {} nodes (--lab-set cluster.nodes=..)",
                    named.name,
                    spec.cluster.nodes
                );
            }
        }
        Ok(patterns)
    }
}

fn chain(draw: Draw, at: u32, spec: &LabSpec) -> Named {
    let seed = draw.seed + u64::from(at);
    let directions = random_directions(draw.flows as usize, seed);
    named(format!("chain {seed}"), "chain", staggered_chain_at(&directions, spec.nic.bandwidth.0[0]), spec)
}

/// Configurations take turns, so that a run that is cut short has some of each.
fn two_racks(draw: Draw, spec: &LabSpec) -> Result<Vec<Named>> {
    let mut patterns = Vec::new();
    for at in 0..draw.instances {
        for (nodes, flows_out) in CONFIGURATIONS {
            let plan = TwoRackPlan {
                nodes: halves(nodes, spec)?,
                flows_out,
                smallest: Bytes(500_000),
                largest: Bytes(2_000_000),
            };
            let seed = draw.seed + u64::from(at);
            let name = format!("{nodes} nodes, {flows_out} out, {seed}");
            let own = seed.wrapping_mul(100).wrapping_add(u64::from(nodes * 10 + flows_out));
            patterns.push(named(name, &format!("|N| = {nodes}, d = {flows_out}"), plan.draw(own), spec));
        }
    }
    Ok(patterns)
}

/// The first nodes of each of the two racks.
fn halves(nodes: u32, spec: &LabSpec) -> Result<Vec<Node>> {
    let in_rack = |rack| spec.nodes().filter(move |node| spec.rack_of(*node) == rack);
    let halves: Vec<Node> = in_rack(0).take(nodes as usize / 2).chain(in_rack(1).take(nodes as usize / 2)).collect();
    if halves.len() == nodes as usize && spec.cluster.racks == 2 {
        return Ok(halves);
    }
    bail!(
        "--set B: found {} nodes in {} racks, expected 10 nodes or more in 2 racks",
        spec.cluster.nodes,
        spec.cluster.racks
    )
}

fn from_file(name: &str, spec: &LabSpec) -> Result<Named> {
    let bytes = std::fs::read(name).with_context(|| format!("cannot read {name}"))?;
    let pattern = Pattern::read(name, &bytes)?;
    let stem = Path::new(name).file_stem().map_or_else(|| name.to_owned(), |stem| stem.to_string_lossy().into_owned());
    Ok(named(stem, "files", pattern.flows, spec))
}

/// Nodes stand where the lab has them.
fn named(name: String, configuration: &str, flows: Vec<Flow>, spec: &LabSpec) -> Named {
    Named { name, configuration: configuration.to_owned(), pattern: Pattern { flows, racks: racks_of(spec) } }
}

/// Where the lab's nodes stand; nowhere if it has one rack.
pub fn racks_of(spec: &LabSpec) -> Racks {
    let mut racks = Racks::default();
    if spec.cluster.racks > 1 {
        for node in spec.nodes() {
            racks.place(node, node, &spec.rack_of(node).to_string()).expect("each node is placed once");
        }
    }
    racks
}

#[cfg(test)]
mod tests {
    use super::*;
    use flowcast_lab::profile;

    const DRAW: Draw = Draw { instances: 3, seed: 1, flows: 30 };

    fn usual(set: &Set) -> LabSpec {
        let (name, overrides) = set.usual_lab();
        profile(name, &overrides).unwrap()
    }

    #[test]
    fn the_chain_of_the_usual_lab_starts_a_flow_every_fifty_milliseconds() {
        let patterns = Set::Chain.patterns(DRAW, &usual(&Set::Chain)).unwrap();
        assert_eq!(patterns.len(), 3);
        assert!((patterns[0].pattern.flows[29].start.as_seconds() - 1.5).abs() < 1e-12);
        assert_ne!(patterns[0].pattern, patterns[1].pattern);
    }

    #[test]
    fn two_racks_have_nine_configurations_that_take_turns_and_use_half_of_each_rack() {
        let patterns = Set::TwoRacks.patterns(DRAW, &usual(&Set::TwoRacks)).unwrap();
        assert_eq!(patterns.len(), 27);
        assert_eq!(patterns[0].configuration, patterns[9].configuration);
        assert_ne!(patterns[0].pattern, patterns[9].pattern);
        let six = &patterns[0].pattern;
        assert!(six.flows.iter().all(|flow| [0, 1, 2, 5, 6, 7].contains(&flow.src.0)));
        assert_eq!(six.racks.count(), 2);
    }

    #[test]
    fn a_lab_that_is_too_small_is_named() {
        let small = profile("fair", &[]).unwrap();
        let said = |set: Set| set.patterns(DRAW, &small).unwrap_err().to_string();
        assert!(said(Set::Chain).contains("found node 30, expected one of the lab's 6 nodes"));
        assert!(said(Set::TwoRacks).contains("found 6 nodes in 1 racks"));
        assert!(Set::parse(&["A".into(), "x.pattern".into()]).is_err());
    }
}
