//! The members of communicators, from how they were made.
//!
//! Making one is a collective call, so the ranks of the old one come to it in the same order. Each rank's list is walked
//! through in that order; a split waits until all members of its parent have come to theirs.

use flowcast_recording::decode::Members;

/// How a rank came to a communicator. Parents are places in the rank's own list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Origin {
    /// All ranks, `MPI_COMM_WORLD`.
    World,
    /// The rank alone, `MPI_COMM_SELF`.
    Own,
    /// The trace tells the members, as ranks of the world.
    Group(Vec<u32>),
    /// The members of its parent.
    Same(usize),
    /// Some ranks of its parent.
    Part(usize, Vec<u32>),
    /// `MPI_Comm_split`: colour (below 0 for ranks that get none) and key.
    Split(usize, i64, i64),
    /// `MPI_Cart_sub` of a parent with these dimensions, of which those marked remain.
    Slice(usize, Vec<(u32, bool)>),
    /// The trace does not tell.
    Unknown,
}

/// The members of each rank's communicators; nobody where they are not known.
pub(super) fn resolve(ranks: &[&[Origin]]) -> Vec<Vec<Members>> {
    let mut walk = CommunicatorWalk {
        ranks,
        known: vec![Vec::new(); ranks.len()],
    };
    while !walk.is_done() {
        if !walk.advance() {
            walk.give_up();
        }
    }
    walk.known
        .into_iter()
        .map(|known| {
            known
                .into_iter()
                .map(|own| Members {
                    own,
                    remote: Vec::new(),
                })
                .collect()
        })
        .collect()
}

struct CommunicatorWalk<'a> {
    ranks: &'a [&'a [Origin]],
    known: Vec<Vec<Vec<u32>>>,
}

impl CommunicatorWalk<'_> {
    fn is_done(&self) -> bool {
        self.ranks
            .iter()
            .zip(&self.known)
            .all(|(origins, known)| origins.len() == known.len())
    }

    /// The next communicator of a rank.
    fn next(&self, rank: usize) -> Option<&Origin> {
        self.ranks[rank].get(self.known[rank].len())
    }

    /// Settles what can be settled; gives whether there was anything.
    fn advance(&mut self) -> bool {
        let mut any = false;
        for rank in 0..self.ranks.len() {
            while let Some(members) = self.next(rank).and_then(|origin| self.alone(rank, origin)) {
                self.known[rank].push(members);
                any = true;
            }
        }
        for rank in 0..self.ranks.len() {
            if let Some(Origin::Split(parent, ..)) = self.next(rank) {
                any |= self.split(rank, *parent);
            }
        }
        any
    }

    /// What a rank knows without the others.
    fn alone(&self, rank: usize, origin: &Origin) -> Option<Vec<u32>> {
        let all = self.ranks.len() as u32;
        let parent = |place: &usize| self.known[rank].get(*place).cloned().unwrap_or_default();
        Some(match origin {
            Origin::World => (0..all).collect(),
            Origin::Own => vec![rank as u32],
            Origin::Group(members) if members.iter().all(|member| *member < all) => members.clone(),
            Origin::Same(place) => parent(place),
            Origin::Part(place, places) => {
                let parent = parent(place);
                let members: Option<Vec<u32>> = places
                    .iter()
                    .map(|place| parent.get(*place as usize).copied())
                    .collect();
                members.unwrap_or_default()
            }
            Origin::Slice(place, dimensions) => slice(&parent(place), rank as u32, dimensions),
            Origin::Unknown | Origin::Group(_) => Vec::new(),
            Origin::Split(..) => return None,
        })
    }

    /// Splits a rank's communicator if all of its members have come to it.
    fn split(&mut self, rank: usize, parent: usize) -> bool {
        let Some(members) = self.known[rank].get(parent).cloned() else {
            return false;
        };
        let nth = self.nth(rank, parent);
        let mut colours = Vec::with_capacity(members.len());
        for (place, member) in members.iter().enumerate() {
            let Some(Origin::Split(own, colour, key)) = self.next(*member as usize) else {
                return false;
            };
            let is_same = self.known[*member as usize].get(*own) == Some(&members);
            if !is_same || self.nth(*member as usize, *own) != nth {
                return false;
            }
            colours.push((*colour, *key, place, *member));
        }
        for (colour, _, _, member) in &colours {
            let mut group: Vec<_> = colours
                .iter()
                .filter(|other| other.0 == *colour && *colour >= 0)
                .collect();
            group.sort_unstable();
            self.known[*member as usize]
                .push(group.into_iter().map(|(.., member)| *member).collect());
        }
        !members.is_empty()
    }

    /// Communicators of the same members are told apart by their order.
    fn nth(&self, rank: usize, place: usize) -> usize {
        let known = &self.known[rank];
        known[..place]
            .iter()
            .filter(|members| **members == known[place])
            .count()
    }

    /// The ranks wait for what never comes: the trace is cut, or leaves something out.
    fn give_up(&mut self) {
        for (origins, known) in self.ranks.iter().zip(&mut self.known) {
            if known.len() < origins.len() {
                known.push(Vec::new());
            }
        }
    }
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
    let fixed = |mut place: usize| {
        let mut coordinates = Vec::with_capacity(dimensions.len());
        for (width, remains) in dimensions.iter().rev() {
            let width = *width as usize;
            coordinates.push(if *remains { 0 } else { place % width });
            place /= width;
        }
        coordinates
    };
    let wanted = fixed(own);
    (0..parent.len())
        .filter(|place| fixed(*place) == wanted)
        .map(|place| parent[place])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(ranks: &[Vec<Origin>]) -> Vec<Vec<Vec<u32>>> {
        let origins: Vec<&[Origin]> = ranks.iter().map(|rank| &rank[..]).collect();
        resolve(&origins)
            .into_iter()
            .map(|rank| rank.into_iter().map(|members| members.own).collect())
            .collect()
    }

    #[test]
    fn a_split_orders_the_ranks_of_a_colour_by_key() {
        let ranks: Vec<Vec<Origin>> = (0..4)
            .map(|rank| {
                vec![
                    Origin::World,
                    Origin::Split(0, rank % 2, -rank),
                    Origin::Same(1),
                ]
            })
            .collect();
        let known = own(&ranks);
        assert_eq!(known[0], [vec![0, 1, 2, 3], vec![2, 0], vec![2, 0]]);
        assert_eq!(known[3][1], [3, 1]);
    }

    #[test]
    fn ranks_without_a_colour_get_nobody_and_parts_are_parts_of_their_parent() {
        let ranks = [
            vec![Origin::World, Origin::Split(0, -1, 0)],
            vec![
                Origin::World,
                Origin::Split(0, 5, 0),
                Origin::Part(1, vec![1, 0]),
            ],
            vec![
                Origin::World,
                Origin::Split(0, 5, 0),
                Origin::Part(1, vec![1, 0]),
            ],
        ];
        let known = own(&ranks);
        assert!(known[0][1].is_empty());
        assert_eq!(known[2][2], [2, 1]);
    }

    #[test]
    fn a_grid_is_cut_along_the_dimensions_that_remain() {
        let known = own(&(0..6)
            .map(|_| vec![Origin::World, Origin::Slice(0, vec![(2, false), (3, true)])])
            .collect::<Vec<_>>());
        assert_eq!(known[1][1], [0, 1, 2]);
        assert_eq!(known[4][1], [3, 4, 5]);
    }

    #[test]
    fn a_split_that_not_all_come_to_ends_all_the_same() {
        let ranks = [
            vec![Origin::World, Origin::Split(0, 0, 0)],
            vec![Origin::World],
        ];
        assert!(own(&ranks)[0][1].is_empty());
    }
}
