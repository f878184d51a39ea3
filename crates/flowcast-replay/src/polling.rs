//! Times at which ranks notice the RTS and CTS that have arrived for them.
//!
//! With asynchronous progress, a rank notices them immediately. Otherwise a rank polls while it waits in an MPI call, as in
//! MPI libraries without a progress thread; arrivals during a computation are noticed in the next wait.

use flowcast_network::network::Progress;
use flowcast_units::{Rank, Time};

/// Arrivals that the ranks have not noticed yet, as indices of messages.
pub(crate) struct Polling {
    progress: Progress,
    hosts: Vec<PollingHost>,
}

/// Polling state of a rank.
#[derive(Debug, Clone, Default)]
struct PollingHost {
    /// Start of its polling; `None` if it does not poll.
    polls: Option<Time>,
    /// Arrivals for its next poll: time and index of the message.
    unseen: Vec<(Time, u32)>,
}

impl Polling {
    /// Starts with no rank waiting.
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

    /// Time at which a rank notices an arrival at `came`, if it polls; otherwise `None`, and [`Polling::wait`] returns the
    /// arrival.
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

    /// Records that a rank has been waiting since this time. Returns the arrivals that it notices now, with their times.
    pub(crate) fn wait(&mut self, rank: Rank, since: Time) -> Vec<(Time, u32)> {
        let host = self.host(rank);
        host.polls = Some(since);
        std::mem::take(&mut host.unseen)
    }

    /// Records that a rank continues and does not poll until it waits again.
    pub(crate) fn go_on(&mut self, rank: Rank) {
        self.host(rank).polls = None;
    }
}
