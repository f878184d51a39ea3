//! Scan over the rails, as in the thesis (section 4.4): finds the rail with the smallest score and assigns the message to
//! it.
//!
//! All destinations share the rails (section 4.4.6): a destination is just a set of usable rails.

use std::marker::PhantomData;

use super::{
    RailId, RailScheduler, RailSet, RailsError,
    clock::ClockArithmetic,
    rules::ScoreRule,
    table::{Accounting, RailTable},
};
use flowcast_network::loggp::LogGp;
use flowcast_units::Bytes;

/// Chooses the rail with the smallest score of the rule `R`.
#[derive(Debug, Clone)]
pub struct VirtualTime<R: ScoreRule, M: ClockArithmetic> {
    table: RailTable<M>,
    accounting: Accounting,
    rule: PhantomData<R>,
}

impl<R: ScoreRule, M: ClockArithmetic> VirtualTime<R, M> {
    /// Creates a scheduler for idle rails.
    ///
    /// # Errors
    /// No rail, or more than [`super::MAX_RAILS`].
    pub fn new(
        rails: &[LogGp],
        accounting: Accounting,
        scale: M::Scale,
    ) -> Result<VirtualTime<R, M>, RailsError> {
        Ok(VirtualTime {
            table: RailTable::new(rails, scale)?,
            accounting,
            rule: PhantomData,
        })
    }
}

impl<R: ScoreRule, M: ClockArithmetic> RailScheduler<M> for VirtualTime<R, M> {
    #[inline]
    fn pick(&mut self, now: M, size: Bytes, usable: RailSet) -> Option<RailId> {
        let asked = self.table.timing_of_message(now, size, self.accounting);
        self.table.take::<R>(asked, usable)
    }

    #[inline]
    fn virtual_finish(&self, rail: RailId) -> M {
        self.table.entries()[rail.index()].virtual_finish
    }

    fn restart_clock(&mut self, elapsed: M) {
        self.table.restart_clock(elapsed);
    }
}
