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

/// Time of a message, its channel and its number in the channel.
type SentMessage = (u64, Channel, usize);

/// Messages without those of receives whose channel is known. A channel's messages are taken in the order of their sends.
struct RemainingMessages {
    /// Messages for the receives of a rank with these criteria, the latest first.
    queues: BTreeMap<(Rank, MatchCriteria), Vec<SentMessage>>,
    /// Number of messages that were taken from each channel of a receiver.
    taken: BTreeMap<(Rank, Channel), usize>,
}

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
        let mut left = RemainingMessages {
            queues: BTreeMap::new(),
            taken: BTreeMap::new(),
        };
        for (receiver, actions) in (0..).map(Rank).zip(ranks) {
            for post in &actions.posts {
                if let Some(channel) = post.channel {
                    // The choice of messages for these receives does not matter. The first ones sent remain for the
                    // wildcards.
                    sent.get_mut(&(receiver, channel)).and_then(Vec::pop);
                } else if let Some(takes) = post.takes {
                    left.queues.entry((receiver, takes)).or_default();
                }
            }
        }
        for ((receiver, channel), times) in sent {
            for source in [None, Some(channel.peer)] {
                for tag in [None, Some(channel.tag)] {
                    let communicator = channel.communicator;
                    let takes = MatchCriteria {
                        communicator,
                        source,
                        tag,
                    };
                    if let Some(queue) = left.queues.get_mut(&(receiver, takes)) {
                        let mut latest: u64 = 0;
                        queue.extend((0..).zip(&times).map(|(number, time)| {
                            latest = latest.max(*time);
                            (latest, channel, number)
                        }));
                    }
                }
            }
        }
        for queue in left.queues.values_mut() {
            queue.sort_unstable_by(|one, other| other.cmp(one));
        }
        left
    }

    /// Takes the matching message that was sent first.
    fn first(&mut self, receiver: Rank, takes: &MatchCriteria) -> Option<Channel> {
        let queue = self.queues.get_mut(&(receiver, *takes))?;
        while let Some((_, channel, number)) = queue.pop() {
            let taken = self.taken.entry((receiver, channel)).or_default();
            if *taken == number {
                *taken += 1;
                return Some(channel);
            }
        }
        None
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
        let any_tag = Post {
            takes: any.takes.map(|takes| MatchCriteria { tag: None, ..takes }),
            ..any
        };
        let named = Post {
            channel: Some(channel(3)),
            takes: None,
        };
        let receiver = RankActions {
            posts: vec![any, named, any_tag, any],
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
