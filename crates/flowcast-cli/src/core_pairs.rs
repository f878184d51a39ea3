//! Messages between the cores of this machine: the cores, their shared units, and measurements of one pair at a time.

use std::{collections::BTreeMap, io, str::FromStr};

use anyhow::{Result, bail};
use flowcast::{fit::pairs::racks::Groups, model::cluster::flow::Flow, units::Node};
use flowcast_measure::{
    lab::{Carrier, FlowTimes, LabError},
    shm::{
        CoreUnit, ShmTransport,
        one_way::{Direction, one_way},
        unit_of, usable_cores,
    },
};

use crate::{
    round_trips::explained,
    shm_ends::{AnsweringProcess, one_way_pair},
};

/// Smallest number of ranks. With fewer, slow ones cannot be identified.
const FEWEST: usize = 4;

/// Core of each rank. Several ranks may be on the same core.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CoreList(Vec<usize>);

impl FromStr for CoreList {
    type Err = String;

    /// Parses a list such as `0-3,8`.
    fn from_str(text: &str) -> Result<CoreList, String> {
        let ranges: Option<Vec<_>> = text
            .split(',')
            .map(|part: &str| {
                let (first, last) = part.split_once('-').unwrap_or((part, part));
                let (first, last): (u16, u16) =
                    (first.trim().parse().ok()?, last.trim().parse().ok()?);
                (first <= last).then(|| (first..=last).map(usize::from))
            })
            .collect();
        let ranges =
            ranges.ok_or_else(|| format!("found `{text}`, expected cores such as 0-3,8"))?;
        Ok(CoreList(ranges.into_iter().flatten().collect()))
    }
}

impl CoreList {
    /// Cores that this process may use.
    pub(crate) fn usable() -> Result<CoreList> {
        usable_cores().map(CoreList).map_err(explained)
    }

    /// Refuses fewer ranks than a model of all pairs needs.
    pub(crate) fn checked(self) -> Result<CoreList> {
        match self.0.len() {
            FEWEST.. => Ok(self),
            count => bail!(
                "--cores: found {count} ranks, expected {FEWEST} or more: `flowcast measure p2p --over shm` measures two cores; \
                 a core that is listed twice gets two ranks, as in --cores 0,1,0,1"
            ),
        }
    }

    /// The only core of the list.
    pub(crate) fn single(&self) -> Result<usize> {
        match self.0[..] {
            [core] => Ok(core),
            _ => bail!(
                "--cores: found {} cores, expected one, the answering core",
                self.0.len()
            ),
        }
    }

    /// All ranks.
    pub(crate) fn ranks(&self) -> Vec<Node> {
        (0..self.0.len() as u32).map(Node).collect()
    }

    /// Core of each rank, and its package and cache according to the system, for the record.
    pub(crate) fn provenance(&self) -> BTreeMap<String, String> {
        let cores: Vec<String> = self.0.iter().map(usize::to_string).collect();
        let mut all = BTreeMap::from([("cores".to_owned(), cores.join(" "))]);
        for (name, unit) in [("packages", CoreUnit::Package), ("caches", CoreUnit::Cache)] {
            let units: Option<Vec<String>> =
                self.0.iter().map(|core| unit_of(*core, unit)).collect();
            all.extend(units.map(|units| (name.to_owned(), units.join(" "))));
        }
        all
    }

    /// Starts one of these pairs. The other cores are idle.
    pub(crate) fn pair<'a>(&self, steps: &'a [Vec<Flow>]) -> Result<CorePair<'a>> {
        let Some(Flow { src, dst, .. }) = steps.iter().flatten().next() else {
            bail!("found no message to carry")
        };
        let (end, answering) = one_way_pair(self.0[src.index()], self.0[dst.index()])?;
        Ok(CorePair {
            end,
            _answering: answering,
            measuring: *src,
            steps,
        })
    }
}

/// Two ranks on two cores. The order of the fields matters: `end` is dropped first and closes the rings. Then the drop of
/// `_answering` waits for its process.
pub(crate) struct CorePair<'a> {
    end: ShmTransport,
    _answering: AnsweringProcess,
    measuring: Node,
    steps: &'a [Vec<Flow>],
}

impl Carrier for CorePair<'_> {
    fn carry(&mut self) -> Result<Vec<FlowTimes>, LabError> {
        self.steps
            .iter()
            .flatten()
            .map(|flow| {
                let direction = if flow.src == self.measuring {
                    Direction::Away
                } else {
                    Direction::Back
                };
                let time = one_way(&mut self.end, direction, flow.size).map_err(|error| {
                    LabError::System {
                        what: "carrying a message between two cores",
                        source: io::Error::other(error),
                    }
                })?;
                Ok(FlowTimes {
                    start: flow.start,
                    end: flow.start + time,
                })
            })
            .collect()
    }
}

/// Unit of each rank in the format of a file: a core, a package, or the cores of a cache.
struct Places<'a>(Vec<&'a str>);

impl Places<'_> {
    fn from_provenance<'a>(
        provenance: &'a BTreeMap<String, String>,
        name: &str,
    ) -> Option<Places<'a>> {
        let units = provenance.get(name)?;
        Some(Places(units.split_whitespace().collect()))
    }

    /// Ranks of each unit, ordered by the first rank of each.
    fn groups(&self) -> Vec<Vec<Node>> {
        let mut groups: BTreeMap<&str, Vec<Node>> = BTreeMap::new();
        (0..)
            .zip(&self.0)
            .for_each(|(rank, unit)| groups.entry(unit).or_default().push(Node(rank)));
        let mut groups: Vec<Vec<Node>> = groups.into_values().collect();
        groups.sort();
        groups
    }
}

/// Notes on times between cores. Empty for times between nodes.
pub(crate) fn notes(provenance: &BTreeMap<String, String>, found: Option<&Groups>) -> Vec<String> {
    let Some(cores) = Places::from_provenance(provenance, "cores") else {
        return Vec::new();
    };
    let mut notes = vec![format!(
        "Ranks 0 to {} run on the cores {}.",
        cores.0.len().saturating_sub(1),
        cores.0.join(" ")
    )];
    for ranks in cores.groups().iter().filter(|ranks| ranks.len() > 1) {
        let core = cores.0[ranks[0].index()];
        notes.push(format!(
            "Ranks {} share core {core}: times between them depend on the scheduler's time slices.",
            names(ranks)
        ));
    }
    if let Some(found) = found {
        let units = [
            ("packages", "packages"),
            ("caches", "L3 caches"),
            ("cores", "cores"),
        ];
        let known = units
            .into_iter()
            .find(|(name, _)| {
                Places::from_provenance(provenance, name)
                    .is_some_and(|it| it.groups() == found.nodes)
            })
            .map_or("not units that the system reports", |(_, words)| words);
        notes.push(format!("The groups are {known}."));
    }
    notes
}

fn names(ranks: &[Node]) -> String {
    ranks
        .iter()
        .map(Node::to_string)
        .collect::<Vec<_>>()
        .join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_are_numbers_and_ranges_and_may_repeat() {
        assert_eq!("0-3, 8,0".parse(), Ok(CoreList(vec![0, 1, 2, 3, 8, 0])));
        for wrong in ["", "3-1", "a", "0,,1", "0-70000"] {
            assert_eq!(
                CoreList::from_str(wrong).unwrap_err(),
                format!("found `{wrong}`, expected cores such as 0-3,8")
            );
        }
        let refused = CoreList(vec![0, 1]).checked().unwrap_err().to_string();
        assert!(
            refused.starts_with("--cores: found 2 ranks, expected 4 or more"),
            "{refused}"
        );
    }

    #[test]
    fn groups_are_named_after_what_the_system_knows() {
        let provenance = |caches: &str| {
            let all = [
                ("cores", "0 1 2 3"),
                ("packages", "0 0 0 0"),
                ("caches", caches),
            ];
            all.map(|(name, text)| (name.to_owned(), text.to_owned()))
                .into()
        };
        let groups = Groups {
            nodes: vec![vec![Node(0), Node(2)], vec![Node(1), Node(3)]],
            times: 2.0,
        };
        let said = |caches: &str| notes(&provenance(caches), Some(&groups)).concat();
        assert!(said("0,2 1,3 0,2 1,3").ends_with("The groups are L3 caches."));
        assert!(
            said("0-1 0-1 2-3 2-3").ends_with("The groups are not units that the system reports.")
        );
        assert_eq!(notes(&BTreeMap::new(), Some(&groups)), [""; 0]);
    }

    #[test]
    fn ranks_that_share_a_core_are_reported() {
        let provenance = BTreeMap::from([("cores".to_owned(), "0 1 0 1".to_owned())]);
        let notes = notes(&provenance, None);
        assert_eq!(notes[0], "Ranks 0 to 3 run on the cores 0 1 0 1.");
        assert!(
            notes[1].starts_with("Ranks 0, 2 share core 0:")
                && notes[2].starts_with("Ranks 1, 3 share core 1:")
        );
    }
}
