//! Members of communicators, derived from the calls that made them.
//!
//! Making a communicator is a collective call, so the ranks of the old communicator reach it in the same order. Each rank's
//! list is processed in this order. If the members depend on the arguments of other ranks, the call waits until all of them
//! have reached theirs.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use flowcast_recording::decode::Members;

/// Origin of a rank's communicator. Parents are positions in the rank's own list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CommunicatorOrigin {
    /// All ranks, `MPI_COMM_WORLD`.
    World,
    /// The rank itself, `MPI_COMM_SELF`.
    Own,
    /// Members given by the trace, as ranks of the world.
    Known(Arc<Members>),
    /// Same members as the parent.
    Same(usize),
    /// Members of a group, from `MPI_Comm_create`; the parent is the first field.
    Create(usize, Group),
    /// `MPI_Comm_split`: parent, colour (negative for ranks without a new communicator) and key.
    Split(usize, i64, i64),
    /// `MPI_Cart_sub`: parent and its dimensions, with `true` for those that remain.
    Slice(usize, Vec<(u32, bool)>),
    /// `MPI_Intercomm_create`.
    Between(Leaders),
    /// `MPI_Intercomm_merge`: parent, and `true` if the rank's group comes last.
    Merge(usize, bool),
    /// Unknown: the trace does not contain the members.
    Unknown,
}

/// Arguments of `MPI_Intercomm_create`. The peer arguments are used only at the local leader.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Leaders {
    /// Communicator of the local group.
    pub local: usize,
    /// Rank of the local leader in this communicator.
    pub local_leader: i64,
    /// Communicator that both leaders belong to.
    pub peer: usize,
    /// Rank of the remote leader in the peer communicator.
    pub remote_leader: i64,
    /// Tag, which must be the same at both leaders.
    pub tag: i64,
}

/// Group of ranks, described by the calls that made it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Group {
    /// Group of a communicator, or local group of an intercommunicator.
    Of(usize),
    /// Remote group of an intercommunicator.
    Remote(usize),
    /// Members of a group, selected by their positions.
    Including(Box<Group>, Vec<u32>),
    /// The first members of a group, as many as stated.
    First(Box<Group>, u32),
    /// Members of either group.
    Union(Box<Group>, Box<Group>),
    /// Members of the first group that belong to the second (`true`), or that do not (`false`).
    Sift(Box<Group>, Box<Group>, bool),
    /// Unknown: the trace does not contain the members.
    Unknown,
}

/// Returns the members of each rank's communicators; a communicator with unknown members is empty. Ranks share equal lists.
pub(super) fn resolve(ranks: &[&[CommunicatorOrigin]]) -> Vec<Vec<Arc<Members>>> {
    let mut walk = CommunicatorWalk {
        ranks,
        world: one_group((0..ranks.len() as u32).collect()),
        shared: BTreeSet::new(),
        known: vec![Vec::new(); ranks.len()],
        times: vec![BTreeMap::new(); ranks.len()],
    };
    while !walk.is_done() {
        if !walk.advance() {
            walk.give_up();
        }
    }
    let ranks = walk.known.into_iter();
    ranks
        .map(|rank| rank.into_iter().map(|known| known.members).collect())
        .collect()
}

/// Communicator of a rank.
#[derive(Clone, PartialEq, Eq, Default)]
struct KnownCommunicator {
    members: Arc<Members>,
    /// Number of earlier communicators of the rank with the same members. It distinguishes these communicators.
    nth: usize,
}

struct CommunicatorWalk<'a> {
    ranks: &'a [&'a [CommunicatorOrigin]],
    /// All ranks.
    world: Arc<Members>,
    /// Members of all known communicators, each list once.
    shared: BTreeSet<Arc<Members>>,
    known: Vec<Vec<KnownCommunicator>>,
    /// Number of communicators of each rank with the same members.
    times: Vec<BTreeMap<Arc<Members>, usize>>,
}

impl CommunicatorWalk<'_> {
    fn is_done(&self) -> bool {
        self.ranks
            .iter()
            .zip(&self.known)
            .all(|(origins, known)| origins.len() == known.len())
    }

    /// Returns the origin of a rank's next communicator.
    fn next(&self, rank: u32) -> Option<&CommunicatorOrigin> {
        let known = self.known.get(rank as usize)?.len();
        self.ranks[rank as usize].get(known)
    }

    /// Returns a communicator of a rank; it is empty if it does not exist.
    fn communicator(&self, rank: u32, place: usize) -> KnownCommunicator {
        self.known[rank as usize]
            .get(place)
            .cloned()
            .unwrap_or_default()
    }

    fn members(&self, rank: u32, place: usize) -> Arc<Members> {
        self.communicator(rank, place).members
    }

    /// Returns a communicator if the rank is the first in its group. A call of all members is tried at this rank alone.
    fn led_by(&self, rank: u32, place: usize) -> Option<KnownCommunicator> {
        let known = self.communicator(rank, place);
        (known.members.own.first() == Some(&rank)).then_some(known)
    }

    /// Resolves the communicators that can be resolved now. Returns `true` if there were any.
    fn advance(&mut self) -> bool {
        let mut any = false;
        for rank in 0..self.ranks.len() as u32 {
            while let Some(members) = self.next(rank).and_then(|origin| self.alone(rank, origin)) {
                self.learn(rank as usize, members);
                any = true;
            }
        }
        for rank in 0..self.ranks.len() as u32 {
            let made = match self.next(rank) {
                Some(CommunicatorOrigin::Split(parent, ..)) => self.split(rank, *parent),
                Some(CommunicatorOrigin::Merge(parent, _)) => self.merge(rank, *parent),
                Some(CommunicatorOrigin::Between(leaders)) => self.between(rank, leaders),
                _ => None,
            };
            for (member, members) in made.into_iter().flatten() {
                self.learn(member as usize, members);
                any = true;
            }
        }
        any
    }

    /// Returns the members of a communicator if they do not depend on other ranks' arguments.
    fn alone(&self, rank: u32, origin: &CommunicatorOrigin) -> Option<Arc<Members>> {
        use CommunicatorOrigin::*;
        Some(match origin {
            World => Arc::clone(&self.world),
            Own => one_group(vec![rank]),
            Known(members) => Arc::clone(members),
            Same(place) => self.members(rank, *place),
            // The arguments of the other group are unknown here.
            Create(parent, _) if !self.members(rank, *parent).remote.is_empty() => Arc::default(),
            Create(_, group) => one_group(self.group(rank, group).unwrap_or_default()),
            Slice(place, dimensions) => {
                one_group(slice(&self.members(rank, *place).own, rank, dimensions))
            }
            Unknown => Arc::default(),
            Split(parent, ..) | Merge(parent, _) | Between(Leaders { local: parent, .. }) => {
                let parent = self.members(rank, *parent);
                return parent.own.is_empty().then_some(parent);
            }
        })
    }

    /// Returns the members of a group, as world ranks.
    fn group(&self, rank: u32, group: &Group) -> Option<Vec<u32>> {
        use Group::*;
        match group {
            Of(place) => non_empty(&self.members(rank, *place).own),
            Remote(place) => non_empty(&self.members(rank, *place).remote),
            Including(group, places) => {
                let group = self.group(rank, group)?;
                places
                    .iter()
                    .map(|place| group.get(*place as usize).copied())
                    .collect()
            }
            First(group, count) => {
                let mut members = self.group(rank, group)?;
                let is_whole = members.len() >= *count as usize;
                members.truncate(*count as usize);
                is_whole.then_some(members)
            }
            Union(one, other) => {
                let mut members = self.group(rank, one)?;
                let known = set(&members);
                let others = self.group(rank, other)?.into_iter();
                members.extend(others.filter(|member| !known.contains(member)));
                Some(members)
            }
            Sift(one, other, is_common) => {
                let mut members = self.group(rank, one)?;
                let other = set(&self.group(rank, other)?);
                members.retain(|member| other.contains(member) == *is_common);
                Some(members)
            }
            Unknown => None,
        }
    }

    /// Returns the arguments that the members of the local group pass to a call on this communicator, or `None` until all of
    /// them have reached it. `argument` returns the parent and the argument of a call.
    fn given<'a, T>(
        &'a self,
        known: &KnownCommunicator,
        argument: impl Fn(&'a CommunicatorOrigin) -> Option<(usize, T)>,
    ) -> Option<Vec<T>> {
        let given = known.members.own.iter().map(|member| {
            let (parent, value) = argument(self.next(*member)?)?;
            let parent = self.known[*member as usize].get(parent);
            (parent == Some(known)).then_some(value)
        });
        given.collect()
    }

    /// Splits a rank's communicator once all of its members have reached the call. For an intercommunicator, these are the
    /// members of both groups.
    fn split(&self, rank: u32, parent: usize) -> Option<Vec<(u32, Arc<Members>)>> {
        let known = self.led_by(rank, parent)?;
        let own = self.colours(&known)?;
        let remote = self.colours(&known.swapped())?;
        let is_between = !known.members.remote.is_empty();
        let mut made = Vec::new();
        for (side, other) in [(&own, &remote), (&remote, &own)] {
            let others = groups_by_colour(other);
            for (colour, own) in groups_by_colour(side) {
                let remote = others.get(&colour).cloned().unwrap_or_default();
                let ranks = own.clone();
                let is_empty = colour < 0 || is_between && remote.is_empty();
                let view = match is_empty {
                    true => Arc::default(),
                    false => Arc::new(Members { own, remote }),
                };
                made.extend(ranks.into_iter().map(|rank| (rank, Arc::clone(&view))));
            }
        }
        Some(made)
    }

    /// Returns colour, key, position and rank of each member of the local group, once all have reached the split.
    fn colours(&self, known: &KnownCommunicator) -> Option<Vec<(i64, i64, usize, u32)>> {
        let given = self.given(known, |origin| match origin {
            CommunicatorOrigin::Split(parent, colour, key) => Some((*parent, (*colour, *key))),
            _ => None,
        })?;
        let placed = given.into_iter().zip(&known.members.own).enumerate();
        let colours = placed.map(|(place, ((colour, key), member))| (colour, key, place, *member));
        Some(colours.collect())
    }

    /// Merges both groups once all of their members have reached the call. If both groups give the same order, the one with
    /// the lowest world rank comes first; MPI leaves this open.
    fn merge(&self, rank: u32, parent: usize) -> Option<Vec<(u32, Arc<Members>)>> {
        let known = self.led_by(rank, parent)?;
        let mut groups = Vec::new();
        for known in [known.swapped(), known] {
            let are_last = self.given(&known, |origin| match origin {
                CommunicatorOrigin::Merge(parent, is_last) => Some((*parent, *is_last)),
                _ => None,
            })?;
            let is_last = are_last.last() == Some(&true);
            let own = &known.members.own;
            groups.push((is_last, own.iter().min().copied(), own.clone()));
        }
        groups.sort();
        let all = one_group(groups.into_iter().flat_map(|(.., group)| group).collect());
        Some(seen_by_members(&all))
    }

    /// Joins two groups whose leaders name each other, once all of their members have reached the call.
    fn between(&self, rank: u32, leaders: &Leaders) -> Option<Vec<(u32, Arc<Members>)>> {
        self.led_by(rank, leaders.local)?;
        let (own, remote_leader) = self.led(rank, leaders)?;
        let Some(CommunicatorOrigin::Between(others)) = self.next(remote_leader) else {
            return None;
        };
        let (remote, own_leader) = self.led(remote_leader, others)?;
        let is_mutual = own.first_leader == own_leader && remote.first_leader == remote_leader;
        let is_apart = set(&own.members).is_disjoint(&set(&remote.members));
        if !is_mutual || !is_apart || own.tag != remote.tag {
            return None;
        }
        let (own, remote) = (own.members, remote.members);
        let view = Arc::new(Members { own, remote });
        let mut both = seen_by_members(&view);
        both.extend(seen_by_members(&swapped(&view)));
        Some(both)
    }

    /// Returns the local group of a rank at `MPI_Intercomm_create` and the leader of the remote group, or `None` until all
    /// members of the local group have reached the call.
    fn led(&self, rank: u32, leaders: &Leaders) -> Option<(LedGroup, u32)> {
        let local = self.communicator(rank, leaders.local);
        let given = self.given(&local, |origin| match origin {
            CommunicatorOrigin::Between(leaders) => Some((leaders.local, leaders)),
            _ => None,
        })?;
        let place = usize::try_from(leaders.local_leader).ok()?;
        let members = &local.members.own;
        let (first_leader, at_leader) = (*members.get(place)?, given[place]);
        let peers = self.members(first_leader, at_leader.peer);
        let remote_leader = peers.world_rank(at_leader.remote_leader)?.0;
        let group = LedGroup {
            members: members.clone(),
            first_leader,
            tag: at_leader.tag,
        };
        Some((group, remote_leader))
    }

    /// Adds a rank's next communicator.
    fn learn(&mut self, rank: usize, members: Arc<Members>) {
        let members = self.shared.get(&members).map_or(members, Arc::clone);
        self.shared.insert(Arc::clone(&members));
        let times = self.times[rank].entry(Arc::clone(&members)).or_default();
        let nth = *times;
        *times += 1;
        self.known[rank].push(KnownCommunicator { members, nth });
    }

    /// Resolves the next communicator of each waiting rank as unknown. Its call can never be completed, because the trace is
    /// truncated or incomplete.
    fn give_up(&mut self) {
        for rank in 0..self.ranks.len() {
            if self.known[rank].len() < self.ranks[rank].len() {
                self.learn(rank, Arc::default());
            }
        }
    }
}

impl KnownCommunicator {
    /// Returns an intercommunicator as seen from its other group. For a communicator with one group, the result has no local
    /// members.
    fn swapped(&self) -> KnownCommunicator {
        KnownCommunicator {
            members: swapped(&self.members),
            nth: self.nth,
        }
    }
}

fn non_empty(members: &[u32]) -> Option<Vec<u32>> {
    (!members.is_empty()).then(|| members.to_vec())
}

fn set(members: &[u32]) -> BTreeSet<u32> {
    members.iter().copied().collect()
}

/// Returns each member of a local group with the communicator.
fn seen_by_members(view: &Arc<Members>) -> Vec<(u32, Arc<Members>)> {
    let members = view.own.iter();
    members.map(|member| (*member, Arc::clone(view))).collect()
}

/// One of the two groups of `MPI_Intercomm_create`.
struct LedGroup {
    members: Vec<u32>,
    first_leader: u32,
    tag: i64,
}

fn one_group(own: Vec<u32>) -> Arc<Members> {
    let remote = Vec::new();
    Arc::new(Members { own, remote })
}

fn swapped(members: &Members) -> Arc<Members> {
    Arc::new(Members {
        own: members.remote.clone(),
        remote: members.own.clone(),
    })
}

/// Returns the ranks of each colour, ordered by their keys.
fn groups_by_colour(colours: &[(i64, i64, usize, u32)]) -> BTreeMap<i64, Vec<u32>> {
    let mut sorted = colours.to_vec();
    sorted.sort_unstable();
    let mut groups: BTreeMap<i64, Vec<u32>> = BTreeMap::new();
    for (colour, .., member) in sorted {
        groups.entry(colour).or_default().push(member);
    }
    groups
}

/// Returns the ranks of a rank's slice: their coordinates are equal in all dimensions that the slice drops.
fn slice(parent: &[u32], rank: u32, dimensions: &[(u32, bool)]) -> Vec<u32> {
    let Some(own) = parent.iter().position(|member| *member == rank) else {
        return Vec::new();
    };
    let places = dimensions
        .iter()
        .try_fold(1u64, |size, (width, _)| size.checked_mul(u64::from(*width)));
    if places != Some(parent.len() as u64) {
        return Vec::new();
    }
    // Own position with 0 in the dimensions that remain, and the distances from it to the positions of the slice.
    let (mut first, mut distances): (usize, Vec<usize>) = (own, vec![0]);
    let mut stride: usize = 1;
    for (width, remains) in dimensions.iter().rev() {
        let width = *width as usize;
        if *remains {
            first -= own / stride % width * stride;
            distances = (0..width)
                .flat_map(|step| distances.iter().map(move |inner| step * stride + inner))
                .collect();
        }
        stride *= width;
    }
    let distances = distances.into_iter();
    distances.map(|distance| parent[first + distance]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(ranks: &[Vec<CommunicatorOrigin>]) -> Vec<Vec<Vec<u32>>> {
        let origins: Vec<&[CommunicatorOrigin]> = ranks.iter().map(|rank| &rank[..]).collect();
        resolve(&origins)
            .into_iter()
            .map(|rank| {
                rank.into_iter()
                    .map(|members| members.own.clone())
                    .collect()
            })
            .collect()
    }

    #[test]
    fn a_split_orders_the_ranks_of_a_colour_by_key() {
        let ranks: Vec<Vec<CommunicatorOrigin>> = (0..4)
            .map(|rank| {
                vec![
                    CommunicatorOrigin::World,
                    CommunicatorOrigin::Split(0, rank % 2, -rank),
                    CommunicatorOrigin::Same(1),
                ]
            })
            .collect();
        let known = own(&ranks);
        assert_eq!(known[0], [vec![0, 1, 2, 3], vec![2, 0], vec![2, 0]]);
        assert_eq!(known[3][1], [3, 1]);
    }

    fn reversed() -> CommunicatorOrigin {
        CommunicatorOrigin::Create(1, Group::Including(Box::new(Group::Of(1)), vec![1, 0]))
    }

    #[test]
    fn ranks_without_a_colour_get_no_members_and_a_split_stays_inside_its_parent() {
        let ranks = [
            vec![
                CommunicatorOrigin::World,
                CommunicatorOrigin::Split(0, -1, 0),
            ],
            vec![
                CommunicatorOrigin::World,
                CommunicatorOrigin::Split(0, 5, 0),
                reversed(),
            ],
            vec![
                CommunicatorOrigin::World,
                CommunicatorOrigin::Split(0, 5, 0),
                reversed(),
            ],
        ];
        let known = own(&ranks);
        assert!(known[0][1].is_empty());
        assert_eq!(known[2][2], [2, 1]);
    }

    #[test]
    fn a_grid_is_cut_along_the_dimensions_that_remain() {
        let known = own(&(0..6)
            .map(|_| {
                vec![
                    CommunicatorOrigin::World,
                    CommunicatorOrigin::Slice(0, vec![(2, false), (3, true)]),
                ]
            })
            .collect::<Vec<_>>());
        assert_eq!(known[1][1], [0, 1, 2]);
        assert_eq!(known[4][1], [3, 4, 5]);
        let sides = vec![(2, true), (3, false), (2, true)];
        let cut = CommunicatorOrigin::Slice(0, sides);
        let known = own(&vec![vec![CommunicatorOrigin::World, cut]; 12]);
        assert_eq!(known[3][1], [2, 3, 8, 9]);
    }

    /// Resolves the communicators of four ranks. Each half has its own communicator, and an intercommunicator joins the
    /// halves.
    fn halves(more: &dyn Fn(u32) -> Vec<CommunicatorOrigin>) -> Vec<Vec<Arc<Members>>> {
        let ranks: Vec<Vec<CommunicatorOrigin>> = (0..4)
            .map(|rank| {
                let leaders = Leaders {
                    local: 1,
                    local_leader: 0,
                    peer: 0,
                    // Only the leader's argument counts.
                    remote_leader: [2, -7, 0, 99][rank as usize],
                    tag: 5,
                };
                let split = CommunicatorOrigin::Split(0, i64::from(rank / 2), 0);
                let mut origins = vec![
                    CommunicatorOrigin::World,
                    split,
                    CommunicatorOrigin::Between(leaders),
                ];
                origins.extend(more(rank));
                origins
            })
            .collect();
        resolve(&ranks.iter().map(|rank| &rank[..]).collect::<Vec<_>>())
    }

    fn members(own: &[u32], remote: &[u32]) -> Arc<Members> {
        Arc::new(Members {
            own: own.to_vec(),
            remote: remote.to_vec(),
        })
    }

    #[test]
    fn two_groups_are_joined_by_their_leaders_copied_split_and_merged() {
        let known = halves(&|rank| {
            vec![
                CommunicatorOrigin::Same(2),
                CommunicatorOrigin::Split(3, i64::from(rank % 2), 0),
                CommunicatorOrigin::Merge(2, rank < 2),
                CommunicatorOrigin::Create(2, Group::Of(1)),
            ]
        });
        assert_eq!(known[1][2], members(&[0, 1], &[2, 3]));
        assert_eq!(known[2][3], members(&[2, 3], &[0, 1]));
        assert_eq!(known[3][4], members(&[3], &[1]));
        assert_eq!(known[0][5], members(&[2, 3, 0, 1], &[]));
        assert_eq!(known[0][6], Arc::default());
    }

    #[test]
    fn leaders_with_different_tags_do_not_match() {
        let rank = |tag| {
            vec![
                CommunicatorOrigin::World,
                CommunicatorOrigin::Own,
                CommunicatorOrigin::Between(Leaders {
                    local: 1,
                    local_leader: 0,
                    peer: 0,
                    remote_leader: 1 - tag,
                    tag,
                }),
            ]
        };
        assert!(own(&[rank(0), rank(1)])[0][2].is_empty());
    }

    #[test]
    fn group_operations_keep_the_order_of_mpi() {
        let world = || Box::new(Group::Of(0));
        let some = |places: &[u32]| Box::new(Group::Including(world(), places.to_vec()));
        let groups = [
            Group::Union(some(&[3, 1]), some(&[0, 1])),
            Group::Sift(some(&[3, 1, 0]), some(&[0, 3]), true),
            Group::Sift(some(&[3, 1, 0]), some(&[0, 3]), false),
            Group::Sift(world(), some(&[0, 2]), false),
            Group::Union(some(&[1]), Box::new(Group::Unknown)),
            Group::First(some(&[3, 1, 0]), 2),
            Group::First(world(), 5),
        ];
        let made = groups
            .into_iter()
            .map(|group| CommunicatorOrigin::Create(0, group));
        let rank: Vec<CommunicatorOrigin> = [CommunicatorOrigin::World]
            .into_iter()
            .chain(made)
            .collect();
        let known = own(&[rank.clone(), rank.clone(), rank.clone(), rank]);
        assert_eq!(
            known[0][1..],
            [
                vec![3, 1, 0],
                vec![3, 0],
                vec![1],
                vec![1, 3],
                vec![],
                vec![3, 1],
                vec![]
            ]
        );
    }

    #[test]
    fn a_split_that_some_ranks_do_not_call_still_ends() {
        let ranks = [
            vec![
                CommunicatorOrigin::World,
                CommunicatorOrigin::Split(0, 0, 0),
            ],
            vec![CommunicatorOrigin::World],
        ];
        assert!(own(&ranks)[0][1].is_empty());
    }
}
