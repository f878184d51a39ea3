//! Removal of actions without a counterpart, so that the rest can be replayed.
//!
//! A killed program, a used-up budget, a message without a receive and a cancelled receive all leave an action without a
//! counterpart. The last sends or receives of a channel are removed, and the last collective calls of a communicator; each
//! is counted.

use std::collections::BTreeMap;

use super::{actions::RankActions, ignored};
use flowcast_program::{
    build::Channel,
    program::{Communicator, IgnoredRecords},
};
use flowcast_units::Rank;

/// Prunes all ranks and returns the removed actions.
pub(super) fn prune(
    ranks: &mut [RankActions],
    communicators: &[Communicator],
) -> Vec<IgnoredRecords> {
    let (sends, receives) = prune_messages(ranks);
    let collectives = prune_collectives(ranks, communicators);
    ignored([
        ("sends without a matching receive", sends),
        ("receives without a matching send", receives),
        ("collective calls that only some ranks made", collectives),
    ])
    .collect()
}

/// Number of remaining sends minus receives, by receiver and channel as seen by the receiver.
type Balance = BTreeMap<(Rank, Channel), i64>;

fn prune_messages(ranks: &mut [RankActions]) -> (u64, u64) {
    let count = ranks.len();
    let mut balance = Balance::new();
    for (rank, actions) in (0..).map(Rank).zip(ranks.iter()) {
        for send in &actions.sends {
            *balance.entry(send.seen_by_receiver(rank)).or_default() += 1;
        }
        for channel in actions.posts.iter().filter_map(|post| post.channel) {
            *balance.entry((rank, channel)).or_default() -= 1;
        }
    }
    balance.retain(|_, open| *open != 0);
    let (mut sends, mut receives) = (0, 0);
    for (rank, actions) in (0..).map(Rank).zip(ranks) {
        for send in actions.sends.iter_mut().rev() {
            let open = balance
                .get_mut(&send.seen_by_receiver(rank))
                .filter(|open| **open > 0);
            if let Some(open) = open {
                *open -= 1;
                send.dropped = true;
                sends += 1;
            }
            send.dropped |= send.channel.peer.index() >= count;
        }
        for post in actions.posts.iter_mut().rev() {
            let open = post
                .channel
                .and_then(|channel| balance.get_mut(&(rank, channel)))
                .filter(|open| **open < 0);
            if let Some(open) = open {
                *open += 1;
                post.channel = None;
            }
            receives += u64::from(post.channel.is_none());
        }
    }
    (sends, receives)
}

fn prune_collectives(ranks: &mut [RankActions], communicators: &[Communicator]) -> u64 {
    let mut made: Vec<BTreeMap<i32, u64>> = Vec::with_capacity(ranks.len());
    for actions in ranks.iter() {
        let mut calls = BTreeMap::new();
        actions
            .collectives
            .iter()
            .for_each(|call| *calls.entry(call.record.communicator).or_default() += 1);
        made.push(calls);
    }
    let common: BTreeMap<i32, u64> = communicators
        .iter()
        .map(|communicator| {
            let calls = communicator
                .members
                .iter()
                .map(|member| made.get(member.index())?.get(&communicator.id).copied());
            (communicator.id, calls.min().flatten().unwrap_or(0))
        })
        .collect();
    let mut taken = 0;
    for actions in ranks {
        let mut seen: BTreeMap<i32, u64> = BTreeMap::new();
        for call in &mut actions.collectives {
            let seen = seen.entry(call.record.communicator).or_default();
            *seen += 1;
            call.dropped = *seen > common.get(&call.record.communicator).copied().unwrap_or(0);
            taken += u64::from(call.dropped);
        }
    }
    taken
}
