//! The members of communicators, from how they were made.
//!
//! Making one is a collective call, so the ranks of the old one come to it in the same order. Each rank's list is walked
//! through in that order; a call whose members depend on what others give waits until all of them have come to theirs.

use std::collections::BTreeMap;

use flowcast_recording::decode::Members;

/// How a rank came to a communicator. Parents are places in the rank's own list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CommunicatorOrigin {
    /// All ranks, `MPI_COMM_WORLD`.
    World,
    /// The rank alone, `MPI_COMM_SELF`.
    Own,
    /// The trace gives the members, as ranks of the world.
    Known(Members),
    /// The members of its parent.
    Same(usize),
    /// The members of a group, as `MPI_Comm_create` has it; the parent is the first.
    Create(usize, Group),
    /// `MPI_Comm_split`: colour (below 0 for ranks that get none) and key.
    Split(usize, i64, i64),
    /// `MPI_Cart_sub` of a parent with these dimensions, of which those marked remain.
    Slice(usize, Vec<(u32, bool)>),
    /// `MPI_Intercomm_create`.
    Between(Leaders),
    /// `MPI_Intercomm_merge`, and whether the rank's group is to come last.
    Merge(usize, bool),
    /// The trace does not hold the members.
    Unknown,
}

/// The arguments of `MPI_Intercomm_create`. Those of the peer count at the local leader alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Leaders {
    /// The communicator of the own group.
    pub local: usize,
    /// The leader's rank in it.
    pub local_leader: i64,
    /// The communicator that both leaders are in.
    pub peer: usize,
    /// The other leader's rank in that.
    pub remote_leader: i64,
    /// The tag, which both leaders give.
    pub tag: i64,
}

/// A group of ranks, from the calls that made it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Group {
    /// The own group of a communicator.
    Of(usize),
    /// The other group of one between two.
    Remote(usize),
    /// Members by their places in a group.
    Including(Box<Group>, Vec<u32>),
    /// The members of one group or of both.
    Union(Box<Group>, Box<Group>),
    /// The first group's members that are in the second, or that are not.
    Sift(Box<Group>, Box<Group>, bool),
    /// The trace does not hold the members.
    Unknown,
}

/// The members of each rank's communicators; nobody where they are not known.
pub(super) fn resolve(ranks: &[&[CommunicatorOrigin]]) -> Vec<Vec<Members>> {
    let mut walk = CommunicatorWalk {
        ranks,
        known: vec![Vec::new(); ranks.len()],
        before: vec![Vec::new(); ranks.len()],
        times: vec![BTreeMap::new(); ranks.len()],
    };
    while !walk.is_done() {
        if !walk.advance() {
            walk.give_up();
        }
    }
    walk.known
}

struct CommunicatorWalk<'a> {
    ranks: &'a [&'a [CommunicatorOrigin]],
    known: Vec<Vec<Members>>,
    /// For each communicator that a rank knows, how many of the same members it knew before.
    before: Vec<Vec<usize>>,
    times: Vec<BTreeMap<Members, usize>>,
}

impl CommunicatorWalk<'_> {
    fn is_done(&self) -> bool {
        self.ranks
            .iter()
            .zip(&self.known)
            .all(|(origins, known)| origins.len() == known.len())
    }

    /// The next communicator of a rank.
    fn next(&self, rank: u32) -> Option<&CommunicatorOrigin> {
        let known = self.known.get(rank as usize)?.len();
        self.ranks[rank as usize].get(known)
    }

    /// A communicator of a rank; nobody is in one that does not exist.
    fn members(&self, rank: u32, place: usize) -> Members {
        self.known[rank as usize]
            .get(place)
            .cloned()
            .unwrap_or_default()
    }

    /// Settles what can be settled; gives whether there was anything.
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

    /// The members that a rank knows without the others.
    fn alone(&self, rank: u32, origin: &CommunicatorOrigin) -> Option<Members> {
        let all = self.ranks.len() as u32;
        Some(match origin {
            CommunicatorOrigin::World => one_group((0..all).collect()),
            CommunicatorOrigin::Own => one_group(vec![rank]),
            CommunicatorOrigin::Known(members) => {
                let mut both = members.own.iter().chain(&members.remote);
                if both.all(|member| *member < all) {
                    members.clone()
                } else {
                    Members::default()
                }
            }
            CommunicatorOrigin::Same(place) => self.members(rank, *place),
            // What the other group gave is not known here.
            CommunicatorOrigin::Create(parent, _)
                if !self.members(rank, *parent).remote.is_empty() =>
            {
                Members::default()
            }
            CommunicatorOrigin::Create(_, group) => {
                one_group(self.group(rank, group).unwrap_or_default())
            }
            CommunicatorOrigin::Slice(place, dimensions) => {
                one_group(slice(&self.members(rank, *place).own, rank, dimensions))
            }
            CommunicatorOrigin::Unknown => Members::default(),
            CommunicatorOrigin::Split(parent, ..)
            | CommunicatorOrigin::Merge(parent, _)
            | CommunicatorOrigin::Between(Leaders { local: parent, .. }) => {
                let parent = self.members(rank, *parent);
                return parent.own.is_empty().then_some(parent);
            }
        })
    }

    /// The members of a group, as ranks of the world.
    fn group(&self, rank: u32, group: &Group) -> Option<Vec<u32>> {
        match group {
            Group::Of(place) => non_empty(self.members(rank, *place).own),
            Group::Remote(place) => non_empty(self.members(rank, *place).remote),
            Group::Including(group, places) => {
                let group = self.group(rank, group)?;
                places
                    .iter()
                    .map(|place| group.get(*place as usize).copied())
                    .collect()
            }
            Group::Union(one, other) => {
                let mut members = self.group(rank, one)?;
                let mut others = self.group(rank, other)?;
                others.retain(|member| !members.contains(member));
                members.append(&mut others);
                Some(members)
            }
            Group::Sift(one, other, is_common) => {
                let mut members = self.group(rank, one)?;
                let other = self.group(rank, other)?;
                members.retain(|member| other.contains(member) == *is_common);
                Some(members)
            }
            Group::Unknown => None,
        }
    }

    /// Whether a rank has come to the same call on a communicator as another one, which sees it as `members` and has made
    /// `nth` of the kind before.
    fn is_at(&self, rank: u32, parent: usize, members: &Members, nth: usize) -> bool {
        self.known[rank as usize].get(parent) == Some(members) && self.nth(rank, parent) == nth
    }

    /// What each member of the own group gives to its next call, once all have come to the same one; `argument` has the
    /// parent and what is given.
    fn given<'a, T>(
        &'a self,
        members: &Members,
        nth: usize,
        argument: impl Fn(&'a CommunicatorOrigin) -> Option<(usize, T)>,
    ) -> Option<Vec<T>> {
        let given = members.own.iter().map(|member| {
            let (parent, value) = argument(self.next(*member)?)?;
            self.is_at(*member, parent, members, nth).then_some(value)
        });
        given.collect()
    }

    /// Splits a rank's communicator if all of its members have come to it, those of both groups of one between two.
    fn split(&self, rank: u32, parent: usize) -> Option<Vec<(u32, Members)>> {
        let members = self.members(rank, parent);
        let nth = self.nth(rank, parent);
        let own = self.colours(&members, nth)?;
        let remote = self.colours(&swapped(&members), nth)?;
        let is_between = !members.remote.is_empty();
        let mut made = Vec::new();
        for (side, other) in [(&own, &remote), (&remote, &own)] {
            for (colour, .., member) in side {
                let members = Members {
                    own: of_colour(side, *colour),
                    remote: of_colour(other, *colour),
                };
                let is_empty = is_between && members.remote.is_empty();
                made.push((
                    *member,
                    if is_empty {
                        Members::default()
                    } else {
                        members
                    },
                ));
            }
        }
        Some(made)
    }

    /// Colour, key, place and rank of each member of the own group, once all have come to the split.
    fn colours(&self, members: &Members, nth: usize) -> Option<Vec<(i64, i64, usize, u32)>> {
        let given = self.given(members, nth, |origin| match origin {
            CommunicatorOrigin::Split(parent, colour, key) => Some((*parent, (*colour, *key))),
            _ => None,
        })?;
        let colours = given.into_iter().zip(&members.own).enumerate();
        Some(
            colours
                .map(|(place, ((colour, key), member))| (colour, key, place, *member))
                .collect(),
        )
    }

    /// Merges both groups if all of their members have come to it. Of two groups that give the same order, the one with
    /// the lowest rank of the world comes first; MPI leaves that open.
    fn merge(&self, rank: u32, parent: usize) -> Option<Vec<(u32, Members)>> {
        let members = self.members(rank, parent);
        let nth = self.nth(rank, parent);
        let mut groups = Vec::new();
        for view in [members.clone(), swapped(&members)] {
            let are_last = self.given(&view, nth, |origin| match origin {
                CommunicatorOrigin::Merge(parent, is_last) => Some((*parent, *is_last)),
                _ => None,
            })?;
            let is_last = are_last.last() == Some(&true);
            groups.push((is_last, view.own.iter().min().copied(), view.own));
        }
        groups.sort();
        let own: Vec<u32> = groups.into_iter().flat_map(|(.., group)| group).collect();
        let made = own.iter().map(|member| (*member, one_group(own.clone())));
        Some(made.collect())
    }

    /// Joins two groups whose leaders name each other if all of their members have come to it.
    fn between(&self, rank: u32, leaders: &Leaders) -> Option<Vec<(u32, Members)>> {
        let (own, remote_leader) = self.led(rank, leaders)?;
        let Some(CommunicatorOrigin::Between(others)) = self.next(remote_leader) else {
            return None;
        };
        let (remote, own_leader) = self.led(remote_leader, others)?;
        let is_mutual = own.first_leader == own_leader && remote.first_leader == remote_leader;
        let is_apart = own
            .members
            .iter()
            .all(|member| !remote.members.contains(member));
        if !is_mutual || !is_apart || own.tag != remote.tag {
            return None;
        }
        let (own, remote) = (own.members, remote.members);
        let [here, there] = [(&own, &remote), (&remote, &own)].map(|(own, remote)| {
            own.iter().map(|member| {
                let (own, remote) = (own.to_vec(), remote.to_vec());
                (*member, Members { own, remote })
            })
        });
        Some(here.chain(there).collect())
    }

    /// The group of a rank that has come to `MPI_Intercomm_create` with all others of it, and the leader of the other one.
    fn led(&self, rank: u32, leaders: &Leaders) -> Option<(LedGroup, u32)> {
        let local = self.members(rank, leaders.local);
        let nth = self.nth(rank, leaders.local);
        let given = self.given(&local, nth, |origin| match origin {
            CommunicatorOrigin::Between(leaders) => Some((leaders.local, leaders)),
            _ => None,
        })?;
        let place = usize::try_from(leaders.local_leader).ok()?;
        let (first_leader, at_leader) = (*local.own.get(place)?, given[place]);
        let peers = self.members(first_leader, at_leader.peer);
        let remote_leader = peers.world_rank(at_leader.remote_leader)?.0;
        let group = LedGroup {
            members: local.own,
            first_leader,
            tag: at_leader.tag,
        };
        Some((group, remote_leader))
    }

    /// Communicators of the same members are told apart by their order.
    fn nth(&self, rank: u32, place: usize) -> usize {
        let before = self.before[rank as usize].get(place);
        before.copied().unwrap_or_default()
    }

    /// A rank's next communicator is this one.
    fn learn(&mut self, rank: usize, members: Members) {
        let times = self.times[rank].entry(members.clone()).or_default();
        self.before[rank].push(*times);
        *times += 1;
        self.known[rank].push(members);
    }

    /// The ranks wait for what never comes: the trace is cut, or leaves something out.
    fn give_up(&mut self) {
        for rank in 0..self.ranks.len() {
            if self.known[rank].len() < self.ranks[rank].len() {
                self.learn(rank, Members::default());
            }
        }
    }
}

fn non_empty(members: Vec<u32>) -> Option<Vec<u32>> {
    (!members.is_empty()).then_some(members)
}

/// One of the two groups of `MPI_Intercomm_create`.
struct LedGroup {
    members: Vec<u32>,
    first_leader: u32,
    tag: i64,
}

fn one_group(own: Vec<u32>) -> Members {
    let remote = Vec::new();
    Members { own, remote }
}

/// A communicator between two groups, seen from the other one; of one group, without members there.
fn swapped(members: &Members) -> Members {
    Members {
        own: members.remote.clone(),
        remote: members.own.clone(),
    }
}

/// The ranks of a colour in the order of their keys.
fn of_colour(colours: &[(i64, i64, usize, u32)], colour: i64) -> Vec<u32> {
    let same = colours
        .iter()
        .filter(|other| other.0 == colour && colour >= 0);
    let mut group: Vec<_> = same.collect();
    group.sort_unstable();
    group.into_iter().map(|(.., member)| *member).collect()
}

/// The ranks whose coordinates agree with the rank's in all dimensions that do not remain.
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
    let wanted = fixed(dimensions, own);
    (0..parent.len())
        .filter(|place| fixed(dimensions, *place) == wanted)
        .map(|place| parent[place])
        .collect()
}

/// The coordinates of a place, 0 in the dimensions that remain.
fn fixed(dimensions: &[(u32, bool)], mut place: usize) -> Vec<usize> {
    let mut coordinates = Vec::with_capacity(dimensions.len());
    for (width, remains) in dimensions.iter().rev() {
        let width = *width as usize;
        coordinates.push(if *remains { 0 } else { place % width });
        place /= width;
    }
    coordinates
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(ranks: &[Vec<CommunicatorOrigin>]) -> Vec<Vec<Vec<u32>>> {
        let origins: Vec<&[CommunicatorOrigin]> = ranks.iter().map(|rank| &rank[..]).collect();
        resolve(&origins)
            .into_iter()
            .map(|rank| rank.into_iter().map(|members| members.own).collect())
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
    fn ranks_without_a_colour_get_nobody_and_parts_are_parts_of_their_parent() {
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
    }

    /// Four ranks in two halves, each with a communicator of its own, and one between them.
    fn halves(more: &dyn Fn(u32) -> Vec<CommunicatorOrigin>) -> Vec<Vec<Members>> {
        let ranks: Vec<Vec<CommunicatorOrigin>> = (0..4)
            .map(|rank| {
                let leaders = Leaders {
                    local: 1,
                    local_leader: 0,
                    peer: 0,
                    // What others than the leader give does not count.
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

    fn members(own: &[u32], remote: &[u32]) -> Members {
        Members {
            own: own.to_vec(),
            remote: remote.to_vec(),
        }
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
        assert_eq!(known[0][6], Members::default());
    }

    #[test]
    fn leaders_that_give_other_tags_do_not_meet() {
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
    fn groups_are_joined_and_sifted_in_the_order_that_mpi_gives_them() {
        let world = || Box::new(Group::Of(0));
        let some = |places: &[u32]| Box::new(Group::Including(world(), places.to_vec()));
        let groups = [
            Group::Union(some(&[3, 1]), some(&[0, 1])),
            Group::Sift(some(&[3, 1, 0]), some(&[0, 3]), true),
            Group::Sift(some(&[3, 1, 0]), some(&[0, 3]), false),
            Group::Sift(world(), some(&[0, 2]), false),
            Group::Union(some(&[1]), Box::new(Group::Unknown)),
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
            [vec![3, 1, 0], vec![3, 0], vec![1], vec![1, 3], vec![]]
        );
    }

    #[test]
    fn a_split_that_not_all_come_to_ends_all_the_same() {
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
