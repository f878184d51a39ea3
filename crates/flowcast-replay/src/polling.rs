//! When ranks see the RTS and CTS that have come for them.
//!
//! With asynchronous progress that is at once. Otherwise a rank polls while it waits in an MPI call, as MPI libraries without a
//! progress thread do; what comes while it computes waits for its next wait.

use flowcast_network::network::Progress;
use flowcast_units::{Rank, Time};

/// What has come for the ranks and was not seen yet: messages by index.
pub(crate) struct Polling {
    progress: Progress,
    hosts: Vec<PollingHost>,
}

/// Where a rank runs.
#[derive(Debug, Clone, Default)]
struct PollingHost {
    /// Since when it polls, if it does.
    polls: Option<Time>,
    /// What its next poll finds: indices of messages, and from when on.
    unseen: Vec<(Time, u32)>,
}

impl Polling {
    /// No rank waits yet.
    pub(crate) fn new(progress: Progress) -> Polling {
        Polling {
            progress,
            hosts: Vec::new(),
        }
    }

    fn host(&mut self, rank: Rank) -> &mut PollingHost {
        let rank = rank.index();
        if self.hosts.len() <= rank {
            self.hosts.resize(rank + 1, PollingHost::default());
        }
        &mut self.hosts[rank]
    }

    /// When a rank sees what comes at this time, if it polls then; else [`Polling::wait`] gives it back.
    pub(crate) fn see(&mut self, rank: Rank, came: Time, index: u32) -> Option<Time> {
        if self.progress == Progress::Asynchronous {
            return Some(came);
        }
        let host = self.host(rank);
        let seen = host.polls.map(|since| since.max(came));
        if seen.is_none() {
            host.unseen.push((came, index));
        }
        seen
    }

    /// A rank waits since this time. Gives what it sees now: when that came, and its index.
    pub(crate) fn wait(&mut self, rank: Rank, since: Time) -> Vec<(Time, u32)> {
        let host = self.host(rank);
        host.polls = Some(since);
        std::mem::take(&mut host.unseen)
    }

    /// A rank goes on and does not poll until it waits again.
    pub(crate) fn go_on(&mut self, rank: Rank) {
        self.host(rank).polls = None;
    }
}
