//! The scan over the rails that the thesis uses: smallest score, then account (section 4.4).
//!
//! Rails are shared by all destinations (section 4.4.6): a destination is a set of usable rails, nothing more.

use std::marker::PhantomData;

use super::moment::Moment;
use super::rules::Rule;
use super::table::{Accounting, RailTable};
use super::{RailId, RailScheduler, RailSet, RailsError};
use crate::model::loggp::LogGp;
use crate::units::Bytes;

/// Chooses the rail with the smallest score of the rule `R`.
#[derive(Debug, Clone)]
pub struct VirtualTime<R: Rule, I: Moment> {
    table: RailTable<I>,
    accounting: Accounting,
    scale: I::Scale,
    rule: PhantomData<R>,
}

impl<R: Rule, I: Moment> VirtualTime<R, I> {
    /// For rails with nothing to send.
    ///
    /// # Errors
    /// No rail, or more than [`super::MAX_RAILS`].
    pub fn new(rails: &[LogGp], accounting: Accounting, scale: I::Scale) -> Result<VirtualTime<R, I>, RailsError> {
        Ok(VirtualTime { table: RailTable::new(rails, scale)?, accounting, scale, rule: PhantomData })
    }

    /// Replaces the parameters of a rail; what it has to send stays.
    pub fn set_cost(&mut self, rail: RailId, cost: &LogGp) {
        self.table.set_cost(rail, cost, self.scale);
    }
}

impl<R: Rule, I: Moment> RailScheduler<I> for VirtualTime<R, I> {
    #[inline]
    fn pick(&mut self, now: I, size: Bytes, usable: RailSet) -> Option<RailId> {
        let tail = size.0.saturating_sub(1);
        let now = now.bounded();
        let rail = self.table.smallest(usable, |entry| R::score(entry, now, tail))?;
        let busy = R::busy(&self.table.entries()[rail.index()], tail);
        self.table.account(rail, now, busy, self.accounting);
        Some(rail)
    }

    #[inline]
    fn virtual_finish(&self, rail: RailId) -> I {
        self.table.entries()[rail.index()].virtual_finish
    }

    fn restart_clock(&mut self, elapsed: I) {
        self.table.restart_clock(elapsed);
    }
}
