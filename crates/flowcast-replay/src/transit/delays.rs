//! Time that each message loses to other messages, and the link where it does: for `--explain`.

use std::sync::{Arc, Mutex, PoisonError};

use flowcast_network::sharing::fabric::{Fabric, Limit, LinkId};
use flowcast_program::slot::Slot;
use flowcast_traffic::flows::traffic::RateChange;
use flowcast_units::Time;

use crate::outcome::{DelayedMessage, LevelDelay};

/// Maximum number of messages in the report: those that lose the most.
const MOST_TOLD: usize = 100;

/// Losses at links so far. Several threads may record messages on different links.
#[derive(Debug)]
pub(crate) struct LinkDelays {
    fabric: Fabric,
    noted: Mutex<NotedDelays>,
}

#[derive(Debug)]
struct NotedDelays {
    /// Losses, indexed by link.
    links: Vec<LinkDelay>,
    /// Messages with the largest losses, in no particular order.
    worst: Vec<(Time, Slot, LinkId)>,
}

/// Loss at one link.
#[derive(Debug, Clone, Copy, Default)]
struct LinkDelay {
    /// Messages that lost more here than at any other link.
    messages: u64,
    lost: Time,
}

impl LinkDelays {
    /// Creates an empty record of losses.
    pub(super) fn new(fabric: &Fabric) -> LinkDelays {
        LinkDelays {
            fabric: fabric.without_paths(),
            noted: Mutex::new(NotedDelays {
                links: vec![LinkDelay::default(); fabric.link_count()],
                worst: Vec::new(),
            }),
        }
    }

    fn note(&self, slot: Slot, lost: &[(LinkId, Time)]) {
        let Some((worst, _)) = lost
            .iter()
            .copied()
            .reduce(|worst, other| if other.1 > worst.1 { other } else { worst })
        else {
            return;
        };
        let mut noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        noted.links[worst.index()].messages += 1;
        let mut sum = Time::ZERO;
        for (link, time) in lost {
            noted.links[link.index()].lost += *time;
            sum += *time;
        }
        noted.worst.push((sum, slot, worst));
        if noted.worst.len() >= 2 * MOST_TOLD {
            noted.keep_worst();
        }
    }

    /// Losses of each class of links, without classes that lost nothing, and the messages with the largest losses, the worst
    /// first.
    pub(crate) fn finish(&self) -> (Vec<LevelDelay>, Vec<DelayedMessage>) {
        let mut noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        noted.keep_worst();
        let name = |link: LinkId| self.fabric.link(link).phrase();
        let messages = noted.worst.iter().map(|(lost, slot, link)| DelayedMessage {
            slot: *slot,
            lost: *lost,
            link: name(*link),
        });
        let messages = messages.collect();
        let mut levels: Vec<Option<(LevelDelay, LinkId, Time)>> =
            vec![None; self.fabric.classes().len()];
        for (delay, link) in noted.links.iter().zip((0..).map(LinkId)) {
            if delay.lost == Time::ZERO {
                continue;
            }
            let class = self.fabric.class(link);
            let (level, worst, most) = levels[class].get_or_insert_with(|| {
                let level = LevelDelay {
                    class: self.fabric.classes()[class].clone(),
                    messages: 0,
                    lost: Time::ZERO,
                    worst: String::new(),
                    lost_there: Time::ZERO,
                };
                (level, link, delay.lost)
            });
            level.messages += delay.messages;
            level.lost += delay.lost;
            if delay.lost > *most {
                (*worst, *most) = (link, delay.lost);
            }
        }
        let levels = levels.into_iter().flatten();
        let levels = levels.map(|(level, worst, most)| LevelDelay {
            worst: name(worst),
            lost_there: most,
            ..level
        });
        (levels.collect(), messages)
    }
}

impl NotedDelays {
    fn keep_worst(&mut self) {
        self.worst
            .sort_unstable_by(|one, other| other.0.cmp(&one.0).then(one.1.cmp(&other.1)));
        self.worst.truncate(MOST_TOLD);
    }
}

/// Moving messages with their losses so far.
#[derive(Debug)]
pub(super) struct MessageDelays {
    links: Arc<LinkDelays>,
    /// Indexed by flow; an index is reused after the flow's end.
    moving: Vec<MovingMessage>,
}

#[derive(Debug, Clone)]
struct MovingMessage {
    /// Start of its current rate.
    since: Time,
    /// The link that limits it, and the fraction of its time that it loses there.
    limit: Option<(LinkId, f64)>,
    /// Loss at each link that has limited it.
    lost: Vec<(LinkId, Time)>,
}

impl MessageDelays {
    pub(super) fn new(links: Arc<LinkDelays>) -> MessageDelays {
        MessageDelays {
            links,
            moving: Vec::new(),
        }
    }

    pub(super) fn links(&self) -> Arc<LinkDelays> {
        Arc::clone(&self.links)
    }

    /// Records a new rate of a moving message, or its first.
    pub(super) fn change(&mut self, fabric: &Fabric, change: RateChange, now: Time) {
        let index = change.flow as usize;
        if self.moving.len() <= index {
            let nothing = MovingMessage {
                since: now,
                limit: None,
                lost: Vec::new(),
            };
            self.moving.resize(index + 1, nothing);
        }
        let moving = &mut self.moving[index];
        moving.settle(now);
        let alone = fabric.uncontended_share(&fabric.paths[index]).0;
        moving.limit = match change.allocation.limit {
            Limit::Link(link) | Limit::Acknowledgements(link) => {
                let part = 1.0 - change.allocation.share.0 / alone;
                (part > 0.0).then_some((link, part))
            }
            _ => None,
        };
    }

    /// Records the losses of a message whose last byte passes. Its index may be reused.
    pub(super) fn end(&mut self, index: u32, slot: Slot, now: Time) {
        let Some(moving) = self.moving.get_mut(index as usize) else {
            return;
        };
        moving.settle(now);
        moving.limit = None;
        self.links.note(slot, &moving.lost);
        moving.lost.clear();
    }
}

impl MovingMessage {
    fn settle(&mut self, now: Time) {
        if let Some((link, part)) = self.limit {
            let lost = (now - self.since) * part;
            match self.lost.iter_mut().find(|(known, _)| *known == link) {
                Some((_, sum)) => *sum += lost,
                None => self.lost.push((link, lost)),
            }
        }
        self.since = now;
    }
}
