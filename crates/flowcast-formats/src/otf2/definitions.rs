//! Definitions of an archive: the objects that the numbers in its events refer to.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use crate::read::calls::CommunicatorOrigin;
use flowcast_recording::{decode::Members, table};

const MPI: u8 = 4;
const COMM_LOCATIONS: u8 = 4;
const COMM_GROUP: u8 = 5;
const COMM_SELF: u8 = 6;
const CPU_THREAD: u8 = 1;

/// Definitions of an archive, which may be added in any order.
#[derive(Debug, Clone, Default)]
pub struct Definitions {
    /// Program that wrote the archive.
    pub(super) creator: String,
    ticks_per_second: u64,
    strings: BTreeMap<u32, String>,
    /// Name of each region, as the number of a string, and `true` if the region belongs to MPI.
    regions: BTreeMap<u32, (u32, bool)>,
    /// Locations of MPI's ranks, in the order of the ranks.
    ranks: Option<Vec<u64>>,
    groups: BTreeMap<u32, Otf2Group>,
    /// Groups of each communicator; the second is the remote group.
    communicators: BTreeMap<u32, (Option<u32>, Option<u32>)>,
    /// Numbers of the groups that list all of MPI's locations. Each is a group of all ranks.
    worlds: BTreeSet<u32>,
    /// Location group of each CPU thread, by the thread's location.
    threads: BTreeMap<u64, u32>,
}

#[derive(Debug, Clone)]
enum Otf2Group {
    Ranks(Vec<u64>),
    Own,
}

impl Definitions {
    /// Creates empty definitions for an archive that the program `creator` wrote.
    pub fn by(creator: String) -> Definitions {
        Definitions {
            creator,
            ..Definitions::default()
        }
    }

    /// Defines the clock by its ticks per second.
    pub fn clock(&mut self, ticks_per_second: u64) {
        self.ticks_per_second = ticks_per_second;
    }

    /// Defines the text with this number, to which the names in other definitions refer.
    pub fn string(&mut self, number: u32, text: &str) {
        self.strings.insert(number, text.to_owned());
    }

    /// Defines a region. `paradigm` marks functions of MPI; `name` is the number of a string definition.
    pub fn region(&mut self, number: u32, name: u32, paradigm: u8) {
        self.regions.insert(number, (name, paradigm == MPI));
    }

    /// Defines a group. The first list of MPI's locations determines the ranks.
    pub fn group(&mut self, number: u32, kind: u8, paradigm: u8, members: &[u64]) {
        match kind {
            COMM_LOCATIONS if paradigm == MPI => {
                self.worlds.insert(number);
                self.ranks.get_or_insert_with(|| members.to_vec());
            }
            COMM_GROUP => drop(
                self.groups
                    .insert(number, Otf2Group::Ranks(members.to_vec())),
            ),
            COMM_SELF => drop(self.groups.insert(number, Otf2Group::Own)),
            _ => {}
        }
    }

    /// Defines a communicator; `group` is `None` if its group is unknown.
    pub fn communicator(&mut self, number: u32, group: Option<u32>) {
        self.communicators.insert(number, (group, None));
    }

    /// Defines an intercommunicator by the numbers of its two groups. The second is the remote group.
    pub fn intercommunicator(&mut self, number: u32, groups: [u32; 2]) {
        let [one, other] = groups.map(Some);
        self.communicators.insert(number, (one, other));
    }

    /// Defines a location. Only CPU threads are kept.
    pub fn location(&mut self, number: u64, kind: u8, group: u32) {
        if kind == CPU_THREAD {
            self.threads.insert(number, group);
        }
    }

    /// Returns the location of each rank, either from MPI's group or else as the first thread of each process.
    pub fn ranks(&self) -> Vec<u64> {
        if let Some(ranks) = &self.ranks {
            return ranks.clone();
        }
        let mut first: BTreeMap<u32, u64> = BTreeMap::new();
        for (location, group) in &self.threads {
            first.entry(*group).or_insert(*location);
        }
        first.into_values().collect()
    }

    /// Returns the locations of all CPU threads, in ascending order.
    pub fn threads(&self) -> impl Iterator<Item = u64> + '_ {
        self.threads.keys().copied()
    }

    /// Converts ticks to nanoseconds.
    pub(super) fn nanos(&self, ticks: u64) -> u64 {
        let rate = u128::from(self.ticks_per_second.max(1));
        u64::try_from(u128::from(ticks) * 1_000_000_000 / rate).unwrap_or(u64::MAX)
    }

    /// Returns the regions of MPI. Each has the function's name without `MPI_`, or `None` if recordings do not contain this
    /// function.
    pub(super) fn functions(&self) -> BTreeMap<u32, Option<&'static str>> {
        let known: BTreeMap<String, &'static str> = table::functions()
            .iter()
            .map(|function| (function.name.to_ascii_lowercase(), &*function.name))
            .collect();
        let mut functions = BTreeMap::new();
        for (number, (name, is_mpi)) in &self.regions {
            let name = self
                .strings
                .get(name)
                .map(|name| name.to_ascii_lowercase())
                .unwrap_or_default();
            // Fortran names end with underscores.
            let bare = name
                .strip_prefix("mpi_")
                .or_else(|| name.strip_prefix("pmpi_"));
            let bare = bare.map(|bare| bare.trim_end_matches('_').trim_end_matches("_f08"));
            if bare.is_some() || *is_mpi {
                functions.insert(*number, bare.and_then(|bare| known.get(bare).copied()));
            }
        }
        functions
    }

    /// Returns the communicators of each rank: their numbers in the archive and their origins. The order is the same for all
    /// ranks, and members of a group share its list.
    pub(super) fn communicators(&self, ranks: u32) -> Vec<Vec<(u32, CommunicatorOrigin)>> {
        let mut all: Vec<Vec<(u32, CommunicatorOrigin)>> = vec![Vec::new(); ranks as usize];
        for (number, (group, other)) in &self.communicators {
            let remote = match other {
                None => Some(Vec::new()),
                other => self.members(ranks, *other),
            };
            let Some((own, remote)) = self.members(ranks, *group).zip(remote) else {
                let group = group.and_then(|group| self.groups.get(&group));
                let origin = match group {
                    Some(Otf2Group::Own) => CommunicatorOrigin::Own,
                    _ => CommunicatorOrigin::Unknown,
                };
                all.iter_mut()
                    .for_each(|known| known.push((*number, origin.clone())));
                continue;
            };
            let from_other = Members {
                own: remote.clone(),
                remote: own.clone(),
            };
            for view in [Members { own, remote }, from_other].map(Arc::new) {
                for member in &view.own {
                    let known = &mut all[*member as usize];
                    if known.last().is_none_or(|(last, _)| last != number) {
                        known.push((*number, CommunicatorOrigin::Known(Arc::clone(&view))));
                    }
                }
            }
        }
        all
    }

    /// Returns the members of a group. `None` if they are unknown or not ranks, and for the group of a rank alone.
    fn members(&self, ranks: u32, group: Option<u32>) -> Option<Vec<u32>> {
        let group = group?;
        match self.groups.get(&group) {
            Some(Otf2Group::Own) => None,
            Some(Otf2Group::Ranks(members)) => members
                .iter()
                .map(|member| u32::try_from(*member).ok().filter(|rank| *rank < ranks))
                .collect(),
            None => self.worlds.contains(&group).then(|| (0..ranks).collect()),
        }
    }
}
