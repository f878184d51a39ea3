//! Schedulers that use only shares (section 4.3.4): round robin, its weighted form, weighted fair queuing and virtual-time
//! round robin. They depend neither on sizes nor on the clock. The virtual finish times are kept in addition, so that their
//! schedules can be compared with the others.

mod round_robin;
mod vtrr;
mod weighted_fair_queuing;
mod weighted_round_robin;

pub use round_robin::RoundRobin;
pub use vtrr::VirtualTimeRoundRobin;
pub use weighted_fair_queuing::WeightedFairQueuing;
pub use weighted_round_robin::WeightedRoundRobin;

use super::{
    MAX_RAILS, RailId, RailScheduler, RailSet, RailsError,
    clock::ClockArithmetic,
    rail::check_count,
    rules::{ScoreRule, Vft},
    table::{Accounting, RailTable},
};
use flowcast_network::loggp::LogGp;
use flowcast_units::Bytes;

/// Order in which rails take messages.
pub trait Turn: Send {
    /// Returns the next of the rails in `usable`, or `None` if none of them takes turns.
    fn next(&mut self, usable: RailSet) -> Option<RailId>;
}

/// Number of messages of a cycle that each rail takes.
#[derive(Debug, Clone, Copy)]
pub struct Shares {
    of: [u8; MAX_RAILS],
    count: usize,
}

impl Shares {
    /// Creates shares, one for each rail.
    ///
    /// # Errors
    /// No share or too many, or a share outside 1 to 255.
    pub fn new(shares: &[u32]) -> Result<Shares, RailsError> {
        check_count(shares.len())?;
        let mut of = [0; MAX_RAILS];
        for (slot, share) in of.iter_mut().zip(shares) {
            *slot = u8::try_from(*share)
                .ok()
                .filter(|share| *share > 0)
                .ok_or(RailsError::Share(*share))?;
        }
        Ok(Shares {
            of,
            count: shares.len(),
        })
    }

    /// Creates shares in proportion to the bandwidths of the rails; the slowest rail has 1.
    ///
    /// # Errors
    /// No rail, or too many.
    pub fn by_bandwidth(rails: &[LogGp]) -> Result<Shares, RailsError> {
        let slowest = rails.iter().map(per_byte).fold(0.0, f64::max);
        Shares::new(
            &rails
                .iter()
                .map(|rail: &LogGp| match per_byte(rail) {
                    0.0 if slowest == 0.0 => 1,
                    0.0 => 255,
                    own => (slowest / own).round().clamp(1.0, 255.0) as u32,
                })
                .collect::<Vec<_>>(),
        )
    }

    /// The share of a rail.
    #[inline]
    pub fn share(&self, rail: RailId) -> u8 {
        self.of[rail.index()]
    }

    /// All rails with a share.
    #[inline]
    pub fn all(&self) -> RailSet {
        RailSet::first(self.count)
    }
}

fn per_byte(rail: &LogGp) -> f64 {
    rail.gap_per_byte.as_nanos()
}

/// Turns, together with the virtual finish times of the rails.
#[derive(Debug, Clone)]
pub struct TakingTurns<T: Turn, M: ClockArithmetic> {
    turn: T,
    table: RailTable<M>,
    accounting: Accounting,
}

impl<T: Turn, M: ClockArithmetic> TakingTurns<T, M> {
    /// Creates a scheduler for idle rails; `turn` must have been created for the same number of rails.
    ///
    /// # Errors
    /// No rail, or more than [`MAX_RAILS`].
    pub fn new(
        turn: T,
        rails: &[LogGp],
        accounting: Accounting,
        scale: M::Scale,
    ) -> Result<TakingTurns<T, M>, RailsError> {
        Ok(TakingTurns {
            turn,
            table: RailTable::new(rails, scale)?,
            accounting,
        })
    }
}

impl<T: Turn, M: ClockArithmetic> RailScheduler<M> for TakingTurns<T, M> {
    #[inline]
    fn pick(&mut self, now: M, size: Bytes, usable: RailSet) -> Option<RailId> {
        let rail = self.turn.next(usable.and(self.table.all()))?;
        let busy = Vft::busy(&self.table.entries()[rail.index()], self.table.tail(size));
        self.table
            .account(rail, now.bounded(), busy, self.accounting);
        Some(rail)
    }

    fn virtual_finish(&self, rail: RailId) -> M {
        self.table.entries()[rail.index()].virtual_finish
    }

    fn restart_clock(&mut self, elapsed: M) {
        self.table.restart_clock(elapsed);
    }
}
