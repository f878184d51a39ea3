//! Trees over the ranks of a communicator, with ranks counted from the root.

/// A tree over `P` ranks with root 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CollectiveTree {
    /// All other ranks are children of the root.
    Flat,
    /// This number of chains, which start at the root.
    Chains(u32),
    /// Two children for each rank. The odd ranks are below one child of the root, the even ranks below the other.
    Binary,
    /// This number of children for each rank. The first child of rank `v` is this number times `v`, plus one.
    Kary(u32),
    /// Rank `v`'s parent is `v` without its lowest non-zero digit in this base; base 2 gives the binomial tree.
    Knomial(u32),
    /// Rank `v`'s parent is `v` without its highest bit; children are in ascending order.
    BinomialNearest,
}

/// A rank's neighbours in a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Branch {
    /// Parent; `None` for the root.
    pub parent: Option<u32>,
    /// Children, in the order in which they are served.
    pub children: Vec<u32>,
}

impl CollectiveTree {
    /// Returns the neighbours of a rank.
    pub(super) fn branch(self, rank: u32, ranks: u32) -> Branch {
        match self {
            CollectiveTree::Flat if rank == 0 => Branch {
                parent: None,
                children: (1..ranks).collect(),
            },
            CollectiveTree::Flat => Branch {
                parent: Some(0),
                children: Vec::new(),
            },
            CollectiveTree::Chains(chains) => chain(rank, ranks, chains.clamp(1, ranks.max(2) - 1)),
            CollectiveTree::Binary => binary(rank, ranks),
            CollectiveTree::Kary(width) => k_ary(rank, ranks, width.max(1)),
            CollectiveTree::Knomial(base) => knomial(rank, ranks, base.max(2)),
            CollectiveTree::BinomialNearest => binomial_nearest(rank, ranks),
        }
    }
}

/// Returns a rank's neighbours in chains of equal length, except that the first chains may have one rank more.
fn chain(rank: u32, ranks: u32, chains: u32) -> Branch {
    let first = |chain: u32| 1 + ((ranks - 1) / chains) * chain + chain.min((ranks - 1) % chains);
    if rank == 0 {
        return Branch {
            parent: None,
            children: (0..chains)
                .map(first)
                .filter(|head| *head < ranks)
                .collect(),
        };
    }
    let own = (0..chains)
        .rev()
        .find(|chain| first(*chain) <= rank)
        .unwrap_or(0);
    let last = if own + 1 < chains {
        first(own + 1)
    } else {
        ranks
    };
    let parent = if first(own) == rank { 0 } else { rank - 1 };
    Branch {
        parent: Some(parent),
        children: (rank + 1..last.min(rank + 2)).collect(),
    }
}

/// Returns a rank's neighbours. Ranks `2^l - 1` to `2^(l+1) - 2` are on level `l`, and children are `2^l` and `2^(l+1)`
/// further.
fn binary(rank: u32, ranks: u32) -> Branch {
    let level = (rank + 1).ilog2();
    let children = [rank + (1 << level), rank + (2 << level)]
        .into_iter()
        .filter(|child| *child < ranks)
        .collect();
    if rank == 0 {
        return Branch {
            parent: None,
            children,
        };
    }
    let above = 1 << (level - 1);
    let parent = if rank - above < 2 * above - 1 {
        rank - above
    } else {
        rank - 2 * above
    };
    Branch {
        parent: Some(parent),
        children,
    }
}

fn k_ary(rank: u32, ranks: u32, width: u32) -> Branch {
    let first = u64::from(rank) * u64::from(width) + 1;
    let behind = (first + u64::from(width)).min(u64::from(ranks));
    Branch {
        parent: rank.checked_sub(1).map(|before| before / width),
        children: (first..behind).map(|child| child as u32).collect(),
    }
}

fn knomial(rank: u32, ranks: u32, base: u32) -> Branch {
    let mut place = 1u64;
    while rank != 0 && (u64::from(rank) / place).is_multiple_of(u64::from(base)) {
        place *= u64::from(base);
    }
    let limit = if rank == 0 { u64::from(ranks) } else { place };
    let parent = (rank != 0).then(|| {
        let digit = u64::from(rank) / place % u64::from(base);
        (u64::from(rank) - digit * place) as u32
    });
    let places = std::iter::successors(Some(1u64), |place| Some(place * u64::from(base)));
    let places: Vec<u64> = places.take_while(|place| *place < limit).collect();
    let children = places
        .into_iter()
        .rev()
        .flat_map(|place| (1..u64::from(base)).map(move |digit| u64::from(rank) + digit * place))
        .filter(|child| *child < u64::from(ranks))
        .map(|child| child as u32)
        .collect();
    Branch { parent, children }
}

fn binomial_nearest(rank: u32, ranks: u32) -> Branch {
    let above = (rank + 1).next_power_of_two();
    let children =
        std::iter::successors(Some(above), |bit| bit.checked_mul(2)).map(|bit| rank | bit);
    let parent = (rank > 0).then(|| rank & !(1 << rank.ilog2()));
    Branch {
        parent,
        children: children.take_while(|child| *child < ranks).collect(),
    }
}

/// Number of ranks in the subtree of a rank of the binomial tree, including itself. They are consecutive.
pub(super) fn binomial_span(rank: u32, ranks: u32) -> u32 {
    if rank == 0 {
        ranks
    } else {
        (1 << rank.trailing_zeros()).min(ranks - rank)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_binary_tree_keeps_odd_and_even_ranks_apart() {
        let children = |rank| CollectiveTree::Binary.branch(rank, 11).children;
        assert_eq!(
            (children(0), children(1), children(2), children(3)),
            (vec![1, 2], vec![3, 5], vec![4, 6], vec![7])
        );
    }

    #[test]
    fn children_are_served_in_the_order_observed_in_open_mpi() {
        let children = |tree: CollectiveTree, rank| tree.branch(rank, 16).children;
        assert_eq!(children(CollectiveTree::Knomial(4), 0), [4, 8, 12, 1, 2, 3]);
        assert_eq!(children(CollectiveTree::BinomialNearest, 0), [1, 2, 4, 8]);
        assert_eq!(children(CollectiveTree::BinomialNearest, 1), [3, 5, 9]);
        assert_eq!(children(CollectiveTree::BinomialNearest, 5), [13]);
    }

    proptest! {
        #[test]
        fn every_rank_but_the_root_is_the_child_of_its_parent(ranks in 2u32..100, width in 1u32..9) {
            let of_one_kind = [CollectiveTree::Flat, CollectiveTree::Binary, CollectiveTree::Knomial(2), CollectiveTree::BinomialNearest];
            for tree in of_one_kind.into_iter().chain([CollectiveTree::Chains(width), CollectiveTree::Knomial(width), CollectiveTree::Kary(width)]) {
                let mut seen = vec![0; ranks as usize];
                for rank in 0..ranks {
                    for child in tree.branch(rank, ranks).children {
                        seen[child as usize] += 1;
                        prop_assert_eq!(tree.branch(child, ranks).parent, Some(rank));
                    }
                }
                prop_assert_eq!(seen[0], 0);
                prop_assert!(seen[1..].iter().all(|times| *times == 1), "{:?} {:?}", tree, seen);
            }
        }
    }
}
