//! Node allocations of runs: the groups and switches of their ranks.

use flowcast_program::key_map::number_of;
use std::collections::BTreeMap;

use flowcast_network::csv::{CsvError, Table, whole_number};
use flowcast_place::rank_place::RankPlace;

use super::job::JobKey;

/// Node allocations, indexed by run: machine, name and number of nodes.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Allocations {
    /// Places of the nodes, in the order of their first ranks.
    jobs: BTreeMap<JobKey, Vec<RankPlace>>,
}

impl Allocations {
    /// Reads rows `system,run,nodes,rank,node,group,switch`. Groups and switches are names; the name of a switch is unique
    /// within its group.
    ///
    /// # Errors
    /// A missing column or number; a run whose number of nodes differs from its column `nodes`.
    pub fn from_csv(text: &str) -> Result<Allocations, CsvError> {
        let table = Table::parse(text)?;
        let mut ranks: BTreeMap<JobKey, BTreeMap<u64, NodeRow>> = BTreeMap::new();
        let rows = table.fields(["system", "run", "nodes", "rank", "node", "group", "switch"])?;
        for (line, [system, run, nodes, rank, node, group, switch]) in rows {
            let nodes = whole_number(line, "nodes", nodes, 1..=1 << 20)? as u32;
            let rank = from_zero(line, "rank", rank)?;
            let node = from_zero(line, "node", node)?;
            let job = JobKey {
                system: system.to_owned(),
                run: run.to_owned(),
                nodes,
            };
            let row = NodeRow {
                line,
                node,
                group,
                switch,
            };
            ranks.entry(job).or_default().insert(rank, row);
        }
        let jobs = ranks
            .into_iter()
            .map(|(job, rows)| {
                let places = places(rows.values().copied());
                if places.len() == job.nodes as usize {
                    return Ok((job, places));
                }
                let line = rows.values().next().map_or(0, |row| row.line);
                let found = format!("{} nodes of run `{}`", places.len(), job.run);
                Err(CsvError::at(
                    line,
                    found,
                    format!("{}, the value of its column nodes", job.nodes),
                ))
            })
            .collect::<Result<_, _>>()?;
        Ok(Allocations { jobs })
    }

    /// Places of the nodes if there is exactly one run.
    ///
    /// # Errors
    /// No run, or several.
    pub fn only_job(&self) -> Result<Vec<RankPlace>, CsvError> {
        match self.jobs.len() {
            1 => Ok(self.jobs.values().flatten().copied().collect()),
            runs => Err(CsvError::at(1, format!("{runs} runs"), "one")),
        }
    }

    /// Places of a run's ranks with `ranks_per_node` ranks on each node, node after node. `None` for an unknown run.
    pub fn places(&self, job: &JobKey, ranks_per_node: u32) -> Option<Vec<RankPlace>> {
        let nodes = self.jobs.get(job)?;
        Some(on_ranks(nodes, ranks_per_node))
    }
}

/// Places of all ranks with `ranks_per_node` ranks on each node, node after node.
pub fn on_ranks(nodes: &[RankPlace], ranks_per_node: u32) -> Vec<RankPlace> {
    nodes
        .iter()
        .flat_map(|place| std::iter::repeat_n(*place, ranks_per_node as usize))
        .collect()
}

/// Node of a rank, with the node's group and switch.
#[derive(Debug, Clone, Copy)]
pub(super) struct NodeRow<'a> {
    pub(super) line: usize,
    pub(super) node: u64,
    pub(super) group: &'a str,
    pub(super) switch: &'a str,
}

fn from_zero(line: usize, column: &str, field: &str) -> Result<u64, CsvError> {
    let number = field.parse().ok();
    number.ok_or_else(|| CsvError::field(line, column, field, "a whole number from 0"))
}

/// Places of the nodes. Nodes, groups and switches are numbered in order of appearance.
pub(super) fn places<'a>(rows: impl Iterator<Item = NodeRow<'a>>) -> Vec<RankPlace> {
    let (mut nodes, mut groups, mut switches) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    let mut places = Vec::new();
    for row in rows {
        let node = number_of(&mut nodes, row.node);
        if node < places.len() {
            continue;
        }
        let group = number_of(&mut groups, row.group) as u32;
        let switch = number_of(&mut switches, [row.group, row.switch]) as u32;
        places.push(RankPlace {
            node: node as u32,
            switch,
            group,
        });
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO_NODES: &str =
        "system,run,nodes,rank,node,group,switch\na,r,2,0,0,g,1\na,r,2,1,0,g,1\na,r,2,2,1,h,1\n";

    #[test]
    fn nodes_are_in_the_order_of_their_ranks() {
        let allocations = Allocations::from_csv(TWO_NODES).unwrap();
        let job = JobKey {
            system: "a".to_owned(),
            run: "r".to_owned(),
            nodes: 2,
        };
        let places = allocations.places(&job, 2).unwrap();
        let numbers: Vec<_> = places
            .iter()
            .map(|place| (place.node, place.switch, place.group))
            .collect();
        assert_eq!(numbers, [(0, 0, 0), (0, 0, 0), (1, 1, 1), (1, 1, 1)]);
        assert_eq!(allocations.places(&JobKey { nodes: 3, ..job }, 1), None);
    }

    #[test]
    fn a_run_with_a_wrong_number_of_nodes_is_refused() {
        let text = TWO_NODES.replace("a,r,2,2,1,h,1\n", "");
        let error = Allocations::from_csv(&text).unwrap_err().to_string();
        assert_eq!(
            error,
            "line 2: found 1 nodes of run `r`, expected 2, the value of its column nodes"
        );
    }
}
