//! Common time for all hosts: the driver assigns guides and learners, round by round.

use std::{io, thread, time::Duration};

use crate::clocks::{BurstReading, ClockPlan, LearnedClock, rounds};
use flowcast_units::{ClockLine, Time};

use super::{
    driver::Hosts,
    orders::{HostOrder, HostReply},
};
use crate::lab::{
    clocks::{ClockRun, Deviation},
    error::LabError,
};

/// Number of exchanges for checking a clock afterwards.
const LOOKS: u32 = 200;

impl Hosts {
    /// Synchronises the clocks of all ranks. Then determines their errors immediately and after `hold`, by comparing each
    /// clock with the first rank's clock directly, independently of the tree that was used for learning.
    ///
    /// # Errors
    /// A rank or a connection fails.
    pub fn synchronise_clocks(
        &mut self,
        plan: &ClockPlan,
        hold: Duration,
    ) -> Result<ClockRun, LabError> {
        let refused = |source| LabError::System {
            what: "synchronising the clocks",
            source,
        };
        let learned = self.learn_clocks(plan).map_err(refused)?;
        let at_once = self.look_at_clocks(&learned).map_err(refused)?;
        thread::sleep(hold);
        let later = self.look_at_clocks(&learned).map_err(refused)?;
        let deviations = at_once
            .iter()
            .zip(&later)
            .map(|(first, second)| Deviation {
                at_once: first.0,
                later: second.0,
                known_to: first.1.max(second.1),
            })
            .collect();
        Ok(ClockRun {
            learned,
            deviations,
        })
    }

    fn learn_clocks(&mut self, plan: &ClockPlan) -> io::Result<Vec<LearnedClock>> {
        let mut learned = vec![LearnedClock::itself(); self.links.len()];
        for round in rounds(self.links.len() as u32) {
            for (guide, learner) in &round {
                self.links[guide.index()].notify(&HostOrder::Guide(learned[guide.index()].line))?;
                let address = self.links[guide.index()].address.clone();
                self.links[learner.index()].notify(&HostOrder::Learn(address, *plan))?;
            }
            for (guide, learner) in round {
                let HostReply::LearnedClock(found) =
                    self.links[learner.index()].answer_or_failure()?
                else {
                    return Err(io::Error::other(
                        "found a different answer, expected a clock",
                    ));
                };
                self.expect_guided(guide.index())?;
                learned[learner.index()] = found.behind(&learned[guide.index()]);
            }
        }
        Ok(learned)
    }

    /// Returns the error of each estimate, and half the round trip of its measurement.
    fn look_at_clocks(&mut self, learned: &[LearnedClock]) -> io::Result<Vec<(Time, Time)>> {
        let mut errors = vec![(Time::ZERO, Time::ZERO)];
        for (rank, learned) in learned.iter().enumerate().skip(1) {
            self.links[0].notify(&HostOrder::Guide(ClockLine::default()))?;
            let address = self.links[0].address.clone();
            self.links[rank].notify(&HostOrder::Look(address, LOOKS))?;
            let HostReply::Looked(BurstReading {
                own,
                ahead,
                round_trip,
            }) = self.links[rank].answer_or_failure()?
            else {
                return Err(io::Error::other(
                    "found a different answer, expected a clock reading",
                ));
            };
            self.expect_guided(0)?;
            errors.push((learned.line.read(own) - own - ahead, round_trip * 0.5));
        }
        Ok(errors)
    }

    fn expect_guided(&mut self, rank: usize) -> io::Result<()> {
        match self.links[rank].answer_or_failure()? {
            HostReply::Guided => Ok(()),
            other => Err(self.links[rank].unexpected(&other)),
        }
    }
}
