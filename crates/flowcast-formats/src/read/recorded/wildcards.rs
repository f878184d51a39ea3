//! Receives from any source whose matched message is not in the trace.
//!
//! They get the messages that no other receive takes. In the order of their posts, each gets the matching message that was
//! sent first. The actual message of the traced run is unknown; the counts and sizes are the same.

use std::collections::BTreeMap;

use super::{
    actions::{Action, MatchCriteria, RankActions},
    ignored,
};
use flowcast_program::{build::Channel, program::IgnoredRecords};
use flowcast_units::Rank;

/// Assigns the channels of these receives. Returns the number of receives that got one, or `None` if it is 0.
pub(super) fn assign(ranks: &mut [RankActions]) -> Option<IgnoredRecords> {
    if !ranks.iter().any(|actions| {
        actions
            .posts
            .iter()
            .any(|post| post.channel.is_none() && post.takes.is_some())
    }) {
        return None;
    }
    let mut left = RemainingMessages::new(ranks);
    let mut count = 0;
    for (receiver, actions) in (0..).map(Rank).zip(ranks) {
        for post in actions
            .posts
            .iter_mut()
            .filter(|post| post.channel.is_none())
        {
            post.channel = post.takes.and_then(|takes| left.first(receiver, &takes));
            count += u64::from(post.channel.is_some());
        }
    }
    let kind = "receives whose source is not in the trace; they get the remaining messages in sending order";
    ignored([(kind, count)]).next()
}

/// Send times of the messages in each receiver's channels, without the messages of receives whose channel is known.
struct RemainingMessages(BTreeMap<(Rank, Channel), Vec<u64>>);

impl RemainingMessages {
    fn new(ranks: &[RankActions]) -> RemainingMessages {
        let mut sent: BTreeMap<(Rank, Channel), Vec<u64>> = BTreeMap::new();
        for (sender, actions) in (0..).map(Rank).zip(ranks) {
            for step in &actions.steps {
                if let Action::Send(number) = step.action {
                    let seen = actions.sends[number as usize].seen_by_receiver(sender);
                    sent.entry(seen).or_default().push(step.time);
                }
            }
        }
        for (receiver, actions) in (0..).map(Rank).zip(ranks) {
            for channel in actions.posts.iter().filter_map(|post| post.channel) {
                // The choice of messages for these receives does not matter. The first ones sent remain for the wildcards.
                sent.get_mut(&(receiver, channel)).and_then(Vec::pop);
            }
        }
        sent.values_mut().for_each(|times| times.reverse());
        RemainingMessages(sent)
    }

    /// Takes the matching message that was sent first.
    fn first(&mut self, receiver: Rank, takes: &MatchCriteria) -> Option<Channel> {
        let lowest = Channel {
            peer: Rank(0),
            tag: i32::MIN,
            communicator: i32::MIN,
        };
        let highest = Channel {
            peer: Rank(u32::MAX),
            tag: i32::MAX,
            communicator: i32::MAX,
        };
        let own = self.0.range_mut((receiver, lowest)..=(receiver, highest));
        let times = own.filter(|((_, channel), _)| {
            channel.communicator == takes.communicator
                && takes.tag.is_none_or(|tag| tag == channel.tag)
                && takes.source.is_none_or(|source| source == channel.peer)
        });
        let (key, times) = times
            .filter(|(_, times)| !times.is_empty())
            .min_by_key(|(_, times)| times.last().copied())?;
        times.pop();
        Some(key.1)
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::actions::{ActionStep, Post, Send},
        *,
    };
    use flowcast_program::build::EAGER;
    use flowcast_units::Bytes;

    #[test]
    fn receives_from_any_source_get_remaining_messages_in_sending_order() {
        let channel = |peer| Channel {
            peer: Rank(peer),
            tag: 3,
            communicator: 0,
        };
        let sender = |time| RankActions {
            steps: vec![ActionStep {
                item: 0,
                thread: 0,
                time,
                action: Action::Send(0),
            }],
            sends: vec![Send {
                channel: channel(0),
                size: Bytes(8),
                mode: EAGER,
                dropped: false,
            }],
            ..RankActions::default()
        };
        let any = Post {
            channel: None,
            takes: Some(MatchCriteria {
                communicator: 0,
                source: None,
                tag: Some(3),
            }),
        };
        let named = Post {
            channel: Some(channel(3)),
            takes: None,
        };
        let receiver = RankActions {
            posts: vec![any, named, any, any],
            ..RankActions::default()
        };
        let mut ranks = [receiver, sender(20), sender(10), sender(5)];
        assert_eq!(assign(&mut ranks).unwrap().count, 2);
        let peers: Vec<_> = ranks[0]
            .posts
            .iter()
            .map(|post| post.channel.map(|channel| channel.peer.0))
            .collect();
        assert_eq!(
            peers,
            [Some(2), Some(3), Some(1), None],
            "the fourth gets nothing"
        );
    }
}
