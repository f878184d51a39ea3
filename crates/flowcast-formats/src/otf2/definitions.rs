//! What the numbers in the events stand for.

use std::collections::{BTreeMap, BTreeSet};

use crate::read::calls::CommunicatorOrigin;
use flowcast_recording::{decode::Members, table};

const MPI: u8 = 4;
const COMM_LOCATIONS: u8 = 4;
const COMM_GROUP: u8 = 5;
const COMM_SELF: u8 = 6;
const CPU_THREAD: u8 = 1;

/// The definitions of an archive; told in any order.
#[derive(Debug, Clone, Default)]
pub struct Definitions {
    /// Which program wrote the archive.
    pub(super) creator: String,
    ticks_per_second: u64,
    strings: BTreeMap<u32, String>,
    /// Names of regions, and whether they are MPI's.
    regions: BTreeMap<u32, (u32, bool)>,
    /// The locations of MPI's ranks, in the order of the ranks.
    ranks: Option<Vec<u64>>,
    groups: BTreeMap<u32, Otf2Group>,
    /// The groups of each communicator: the second is that of the other side.
    communicators: BTreeMap<u32, (Option<u32>, Option<u32>)>,
    /// The numbers of the lists of MPI's locations, each a group of all ranks.
    worlds: BTreeSet<u32>,
    /// The group of each thread's location.
    threads: BTreeMap<u64, u32>,
}

#[derive(Debug, Clone)]
enum Otf2Group {
    Ranks(Vec<u64>),
    Own,
}

impl Definitions {
    /// No definitions yet, of an archive that this program wrote.
    pub fn by(creator: String) -> Definitions {
        Definitions {
            creator,
            ..Definitions::default()
        }
    }

    /// Ticks of the clock in a second.
    pub fn clock(&mut self, ticks_per_second: u64) {
        self.ticks_per_second = ticks_per_second;
    }

    /// Defines the text with this number, by which other definitions give names.
    pub fn string(&mut self, number: u32, text: &str) {
        self.strings.insert(number, text.to_owned());
    }

    /// Defines a region, a function of MPI if `paradigm` says so; `name` is the number of a text.
    pub fn region(&mut self, number: u32, name: u32, paradigm: u8) {
        self.regions.insert(number, (name, paradigm == MPI));
    }

    /// A group; the first list of MPI's locations counts.
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

    /// A communicator; nothing where its group is not known.
    pub fn communicator(&mut self, number: u32, group: Option<u32>) {
        self.communicators.insert(number, (group, None));
    }

    /// A communicator between two groups.
    pub fn intercommunicator(&mut self, number: u32, groups: [u32; 2]) {
        let [one, other] = groups.map(Some);
        self.communicators.insert(number, (one, other));
    }

    /// Defines a location; only threads of processors are kept.
    pub fn location(&mut self, number: u64, kind: u8, group: u32) {
        if kind == CPU_THREAD {
            self.threads.insert(number, group);
        }
    }

    /// The location of each rank: as MPI's group says, else the first thread of each process.
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

    /// The locations of all threads of processors, in ascending order.
    pub fn threads(&self) -> impl Iterator<Item = u64> + '_ {
        self.threads.keys().copied()
    }

    /// Nanoseconds of so many ticks.
    pub(super) fn nanos(&self, ticks: u64) -> u64 {
        let rate = u128::from(self.ticks_per_second.max(1));
        u64::try_from(u128::from(ticks) * 1_000_000_000 / rate).unwrap_or(u64::MAX)
    }

    /// MPI's regions: the function's name without `MPI_`, if it is one that concerns other ranks.
    pub(super) fn functions(&self) -> BTreeMap<u32, Option<&'static str>> {
        let known: BTreeMap<String, &'static str> = table::by_name()
            .keys()
            .map(|name| (name.to_ascii_lowercase(), *name))
            .collect();
        let mut functions = BTreeMap::new();
        for (number, (name, is_mpi)) in &self.regions {
            let name = self
                .strings
                .get(name)
                .map(|name| name.to_ascii_lowercase())
                .unwrap_or_default();
            // Fortran's names end in underscores.
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

    /// Where a rank's communicators come from, with their numbers in the archive; the same order for all ranks.
    pub(super) fn communicators_of(&self, rank: u32, ranks: u32) -> Vec<(u32, CommunicatorOrigin)> {
        let known = self
            .communicators
            .iter()
            .filter_map(|(number, (group, other))| {
                Some((*number, self.origin(rank, ranks, *group, *other)?))
            });
        known.collect()
    }

    /// The communicator that a rank sees of a group and, if it is between two, the other group.
    fn origin(
        &self,
        rank: u32,
        ranks: u32,
        group: Option<u32>,
        other: Option<u32>,
    ) -> Option<CommunicatorOrigin> {
        let Some(own) = self.members(rank, ranks, group) else {
            return Some(CommunicatorOrigin::Unknown);
        };
        let Some(other) = other else {
            let remote = Vec::new();
            return own
                .contains(&rank)
                .then_some(CommunicatorOrigin::Known(Members { own, remote }));
        };
        match self.members(rank, ranks, Some(other)) {
            None => Some(CommunicatorOrigin::Unknown),
            Some(remote) if own.contains(&rank) => {
                Some(CommunicatorOrigin::Known(Members { own, remote }))
            }
            Some(remote) => remote
                .contains(&rank)
                .then_some(CommunicatorOrigin::Known(Members {
                    own: remote,
                    remote: own,
                })),
        }
    }

    fn members(&self, rank: u32, ranks: u32, group: Option<u32>) -> Option<Vec<u32>> {
        match self.groups.get(&group?) {
            Some(Otf2Group::Own) => Some(vec![rank]),
            Some(Otf2Group::Ranks(members)) => members
                .iter()
                .map(|member| u32::try_from(*member).ok())
                .collect(),
            None => group
                .filter(|group| self.worlds.contains(group))
                .map(|_| (0..ranks).collect()),
        }
    }
}
