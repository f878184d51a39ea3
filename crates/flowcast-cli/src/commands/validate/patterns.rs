//! Pattern sets of a validation, and the default lab of each.

use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use flowcast::{
    model::{
        cluster::{
            flow::Flow,
            pattern::{Pattern, Steps},
            racks::Racks,
            staggered::{random_directions, staggered_chain_at},
            two_racks::{CONFIGURATIONS, TwoRackPlan},
        },
        machine::NodeGroup,
    },
    units::{Bytes, Node},
};
use flowcast_measure::lab::LabSpec;

use super::journal::name_of;
use crate::commands::mapping::on_nodes;
use flowcast_terminal::{files::read_bytes, say, trace_args::parse_mapping};

/// Requested set of patterns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Set {
    /// RR-5910: thirty flows of a chain.
    Chain,
    /// Zhu et al.: random flows over two racks.
    TwoRacks,
    /// Pattern files, by path.
    Files(Vec<String>),
}

/// A pattern with its names.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct NamedPattern {
    /// Name of the pattern, unique in its configuration.
    pub name: String,
    /// Configuration to which it belongs.
    pub configuration: String,
    /// Flows with their racks.
    pub pattern: Pattern,
    /// Number of each flow's step, from 0 on. The flows of a step are contiguous.
    pub step_of: Vec<u32>,
}

impl NamedPattern {
    /// Flows, grouped by step.
    pub(super) fn steps(&self) -> Vec<Vec<Flow>> {
        by_step(&self.pattern.flows, &self.step_of)
    }
}

/// Groups flows by step.
pub(super) fn by_step(flows: &[Flow], step_of: &[u32]) -> Vec<Vec<Flow>> {
    let mut flows = flows.iter().copied();
    let steps = step_of.chunk_by(|one, next| one == next);
    steps
        .map(|step| flows.by_ref().take(step.len()).collect())
        .collect()
}

/// Parameters of randomly drawn patterns.
#[derive(Debug, Clone, Copy)]
pub(super) struct Draw {
    /// Number of patterns of a chain, or of each configuration of two racks.
    pub instances: u32,
    /// First seed. Each pattern has its own.
    pub seed: u64,
    /// Number of flows of the chain.
    pub flows: u32,
}

/// Meaning of the ends of flows in pattern files.
#[derive(Debug, Clone, Copy)]
pub(super) enum Ends<'a> {
    /// Nodes of the lab, by number.
    Nodes,
    /// Ranks, which a rule or a file maps to nodes.
    Ranks(&'a str),
}

impl Set {
    /// Parses `A`, `B` or file names.
    pub(super) fn parse(texts: &[String]) -> Result<Set> {
        match texts {
            [one] if one == "A" => Ok(Set::Chain),
            [one] if one == "B" => Ok(Set::TwoRacks),
            files if files.iter().any(|name| name == "A" || name == "B") => {
                bail!(
                    "found `{}`, expected A, B, or pattern files",
                    files.join(" ")
                )
            }
            files => Ok(Set::Files(files.to_vec())),
        }
    }

    /// Profile and overrides of the default lab.
    pub(super) fn usual_lab(&self) -> (&'static str, &'static [&'static str]) {
        match self {
            Set::Chain => (
                "asymmetric",
                &[
                    "cluster.nodes=31",
                    "cluster.ranks_per_node=1",
                    "nic.bandwidth=20Mbit/s",
                    "tcp.window=32KiB",
                ],
            ),
            Set::TwoRacks => ("two-racks", &["cluster.nodes=10", "tcp.window=32KiB"]),
            Set::Files(_) => ("asymmetric", &[]),
        }
    }

    /// Name of the set in reports.
    pub(super) fn title(&self) -> &'static str {
        match self {
            Set::Chain => "Flows of a chain of nodes, one after the other (RR-5910)",
            Set::TwoRacks => "Random flows over two racks (Zhu et al.)",
            Set::Files(_) => "Patterns from files",
        }
    }

    /// Patterns of the set, for a lab.
    pub(super) fn patterns(
        &self,
        draw: Draw,
        ends: Ends<'_>,
        spec: &LabSpec,
    ) -> Result<Vec<NamedPattern>> {
        let patterns = match self {
            Set::Chain => (0..draw.instances)
                .map(|at| chain(draw, at, spec))
                .collect(),
            Set::TwoRacks => two_racks(draw, spec)?,
            Set::Files(names) => names
                .iter()
                .map(|name| from_file(name, ends, spec))
                .collect::<Result<_>>()?,
        };
        for named in &patterns {
            let highest = named
                .pattern
                .flows
                .iter()
                .map(|flow| flow.src.0.max(flow.dst.0))
                .max()
                .unwrap_or(0);
            ensure!(
                highest < spec.cluster.nodes,
                "{}: found node {highest}, expected one of the lab's {} nodes (--lab-set cluster.nodes=..)",
                named.name,
                spec.cluster.nodes
            );
        }
        Ok(patterns)
    }
}

fn chain(draw: Draw, at: u32, spec: &LabSpec) -> NamedPattern {
    let seed = draw.seed + u64::from(at);
    let directions = random_directions(draw.flows as usize, seed);
    named(
        format!("chain {seed}"),
        "chain",
        staggered_chain_at(&directions, spec.wire_rate(0)),
        spec,
    )
}

/// Configurations alternate, so that an interrupted run has some patterns of each.
fn two_racks(draw: Draw, spec: &LabSpec) -> Result<Vec<NamedPattern>> {
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
            let own = seed
                .wrapping_mul(100)
                .wrapping_add(u64::from(nodes * 10 + flows_out));
            patterns.push(named(
                name,
                &format!("|N| = {nodes}, d = {flows_out}"),
                plan.draw(own),
                spec,
            ));
        }
    }
    Ok(patterns)
}

/// First nodes of each of the two racks.
fn halves(nodes: u32, spec: &LabSpec) -> Result<Vec<Node>> {
    let halves = [0, 1].into_iter().flat_map(|rack| {
        let in_rack = spec.nodes().filter(move |node| spec.rack_of(*node) == rack);
        in_rack.take(nodes as usize / 2)
    });
    let halves: Vec<Node> = halves.collect();
    if halves.len() == nodes as usize && spec.cluster.racks == 2 {
        return Ok(halves);
    }
    bail!(
        "pattern set B: found {} nodes in {} racks, expected 10 nodes or more in 2 racks",
        spec.cluster.nodes,
        spec.cluster.racks
    )
}

/// Reads a pattern with or without steps. Messages inside a node are left out because no link carries them.
fn from_file(name: &str, ends: Ends<'_>, spec: &LabSpec) -> Result<NamedPattern> {
    let bytes = read_bytes(Path::new(name))?;
    let Steps { steps, racks } = Steps::read(name, &bytes)?;
    if !racks.is_empty() {
        say!(
            "flowcast: note: {name}: the lab determines the racks of nodes; `node .. rack` lines are ignored"
        );
    }
    let stem = name_of(Path::new(name));
    let node_of = nodes_of_ranks(&steps, ends, spec)?;
    let between = steps
        .into_iter()
        .zip(0..)
        .flat_map(|(step, number)| step.into_iter().map(move |flow| (flow, number)));
    let placed = between.map(|(flow, step)| {
        let [src, dst] = [flow.src, flow.dst]
            .map(|rank| node_of.as_ref().map_or(rank, |nodes| nodes[rank.index()]));
        (Flow { src, dst, ..flow }, step)
    });
    let (flows, step_of): (Vec<Flow>, Vec<u32>) =
        placed.filter(|(flow, _)| flow.src != flow.dst).unzip();
    ensure!(
        !flows.is_empty(),
        "{name}: found only messages inside nodes, expected at least one between nodes"
    );
    let stem = match ends {
        Ends::Nodes => stem,
        Ends::Ranks(map) => format!("{stem} on {}", name_of(Path::new(map))),
    };
    Ok(NamedPattern {
        step_of,
        ..named(stem, "files", flows, spec)
    })
}

/// Node of each rank. `None` if flows are between nodes.
fn nodes_of_ranks(
    steps: &[Vec<Flow>],
    ends: Ends<'_>,
    spec: &LabSpec,
) -> Result<Option<Vec<Node>>> {
    let Ends::Ranks(map) = ends else {
        return Ok(None);
    };
    let highest = steps
        .iter()
        .flatten()
        .map(|flow| flow.src.max(flow.dst).index())
        .max()
        .unwrap_or(0);
    let mapping = parse_mapping(map)?;
    let group = NodeGroup::new(spec.cluster.nodes, spec.cluster.ranks_per_node);
    on_nodes(&mapping, highest + 1, vec![group])
        .with_context(|| format!("--mapping {map}"))
        .map(Some)
}

/// Pattern of one step, whose nodes are in the racks of the lab.
fn named(name: String, configuration: &str, flows: Vec<Flow>, spec: &LabSpec) -> NamedPattern {
    let step_of = vec![0; flows.len()];
    NamedPattern {
        name,
        configuration: configuration.to_owned(),
        pattern: Pattern {
            flows,
            racks: racks_of(spec),
        },
        step_of,
    }
}

/// Racks of the lab's nodes; empty if there is only one rack.
pub(crate) fn racks_of(spec: &LabSpec) -> Racks {
    let mut racks = Racks::default();
    if spec.cluster.racks > 1 {
        for node in spec.nodes() {
            racks
                .place(node, node, &spec.rack_of(node).to_string())
                .expect("each node is placed once");
        }
    }
    racks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::lab::load;
    use flowcast_measure::lab::profile;

    const DRAW: Draw = Draw {
        instances: 3,
        seed: 1,
        flows: 30,
    };

    fn usual(set: &Set) -> LabSpec {
        let (name, fields) = set.usual_lab();
        let fields: Vec<String> = fields.iter().map(ToString::to_string).collect();
        load(name, &fields).unwrap()
    }

    #[test]
    fn the_chain_of_the_default_lab_starts_a_flow_every_fifty_milliseconds() {
        let patterns = Set::Chain
            .patterns(DRAW, Ends::Nodes, &usual(&Set::Chain))
            .unwrap();
        assert_eq!(patterns.len(), 3);
        assert!((patterns[0].pattern.flows[29].start.as_seconds() - 1.5).abs() < 1e-12);
        assert_ne!(patterns[0].pattern, patterns[1].pattern);
    }

    #[test]
    fn two_racks_have_nine_configurations_that_take_turns_and_use_half_of_each_rack() {
        let patterns = Set::TwoRacks
            .patterns(DRAW, Ends::Nodes, &usual(&Set::TwoRacks))
            .unwrap();
        assert_eq!(patterns.len(), 27);
        assert_eq!(patterns[0].configuration, patterns[9].configuration);
        assert_ne!(patterns[0].pattern, patterns[9].pattern);
        let six = &patterns[0].pattern;
        assert!(
            six.flows
                .iter()
                .all(|flow| [0, 1, 2, 5, 6, 7].contains(&flow.src.0))
        );
        assert_eq!(six.racks.count(), 2);
    }

    #[test]
    fn a_lab_that_is_too_small_is_named() {
        let small = profile("fair", &[]).unwrap();
        let said = |set: Set| {
            set.patterns(DRAW, Ends::Nodes, &small)
                .unwrap_err()
                .to_string()
        };
        assert!(said(Set::Chain).contains("found node 30, expected one of the lab's 6 nodes"));
        assert!(said(Set::TwoRacks).contains("found 6 nodes in 1 racks"));
        assert!(Set::parse(&["A".into(), "x.pattern".into()]).is_err());
    }

    #[test]
    fn steps_between_ranks_become_steps_between_nodes_without_messages_inside_them() {
        let folder = tempfile::tempdir().unwrap();
        let (steps, map) = (
            folder.path().join("broadcast.steps"),
            folder.path().join("ring.map"),
        );
        let text = "0 -> 4 1MB\nstep\n0 -> 2 1MB\n4 -> 6 1MB\nstep\n0 -> 1 1MB\n2 -> 3 1MB\n4 -> 5 1MB\n6 -> 7 1MB\n";
        std::fs::write(&steps, text).unwrap();
        std::fs::write(&map, "3\n0\n0\n1\n1\n2\n2\n3\n").unwrap();
        let lab = profile("asymmetric", &[]).unwrap();
        let set = Set::Files(vec![steps.display().to_string()]);
        let ends = |named: &NamedPattern| -> Vec<Vec<(u32, u32)>> {
            named
                .steps()
                .iter()
                .map(|step| step.iter().map(|flow| (flow.src.0, flow.dst.0)).collect())
                .collect()
        };
        let pairs = set.patterns(DRAW, Ends::Ranks("2-per-node"), &lab).unwrap();
        assert_eq!(ends(&pairs[0]), [vec![(0, 2)], vec![(0, 1), (2, 3)]]);
        let map = map.display().to_string();
        let ring = set.patterns(DRAW, Ends::Ranks(&map), &lab).unwrap();
        assert_eq!(
            ends(&ring[0]),
            [
                vec![(3, 1)],
                vec![(3, 0), (1, 2)],
                vec![(3, 0), (0, 1), (1, 2), (2, 3)]
            ]
        );
        assert_eq!(ring[0].name, "broadcast on ring");
    }

    #[test]
    fn the_lab_determines_the_racks_of_a_file_of_steps() {
        let folder = tempfile::tempdir().unwrap();
        let steps = folder.path().join("two.steps");
        std::fs::write(
            &steps,
            "node 0..1 rack A\nnode 2..3 rack B\n0 -> 2 1MB\nstep\n3 -> 1 1MB\n",
        )
        .unwrap();
        let set = Set::Files(vec![steps.display().to_string()]);
        let patterns = set
            .patterns(DRAW, Ends::Nodes, &profile("two-racks", &[]).unwrap())
            .unwrap();
        assert_eq!(patterns[0].steps().len(), 2);
        assert_eq!(
            patterns[0].pattern.racks.rack_of(Node(0)),
            patterns[0].pattern.racks.rack_of(Node(3))
        );
    }
}
