//! Choice of the network that carries the next message.
//!
//! A node that reaches another over several networks (rails) chooses one for each message. A [`RailScheduler`] keeps a
//! virtual finish time (VFT) for each rail, the instant at which the rail will have sent everything assigned to it. It picks
//! the rail with the smallest score, a rule over VFT and LogGP parameters (Lichei's thesis, chapter 4;
//! `docs/reference/rails.md` has the equations).
//!
//! ```
//! use flowcast_scheduler::clock::{ClockArithmetic, Ticks};
//! use flowcast_scheduler::discipline::SchedulerName;
//! use flowcast_scheduler::{Rail, RailId, RailScheduler, RailSet, turns::Shares};
//! use flowcast_units::Bytes;
//!
//! let rails = [Rail::parse("ib=1.4,0.00103,1.4,2.82us")?.cost, Rail::parse("myri=3.4,0.00409,1.9,24.3us")?.cost];
//! let name: SchedulerName = "earliest-delivery".parse()?;
//! let mut scheduler = name.scheduler::<Ticks>(&rails, Shares::by_bandwidth(&rails)?, ())?;
//! // The faster rail is then busy for 1 ms, so that the second message arrives earlier over the other one.
//! assert_eq!(scheduler.pick(Ticks::ZERO, Bytes(1_000_000), RailSet::ALL), Some(RailId(0)));
//! assert_eq!(scheduler.pick(Ticks::ZERO, Bytes(64), RailSet::ALL), Some(RailId(1)));
//! # Ok::<(), flowcast_scheduler::RailsError>(())
//! ```
//!
//! [`RailScheduler::pick`] runs inside a message path: it uses no I/O, allocation or division, and the clock is an argument.
//! [`schedule`], [`optimum`], [`compare`] and [`advise`] evaluate schedulers.

pub mod adaptive;
pub mod advise;
pub mod bound;
pub mod clock;
pub mod compare;
pub mod discipline;
mod drift;
mod entry;
pub mod guard;
pub mod messages;
pub mod optimum;
pub mod policy;
pub mod processor;
mod rail;
pub mod random_sets;
mod remeasure;
pub mod rules;
pub mod schedule;
pub mod shared;
pub mod shared_split;
pub mod split;
mod table;
pub mod turns;
pub mod virtual_time;

use clock::ClockArithmetic;
pub use drift::DriftRule;
use flowcast_units::Bytes;
pub use rail::{MAX_RAILS, Rail, RailId, RailSet, RailsError};
pub use table::Accounting;

/// Chooses rails one message at a time.
pub trait RailScheduler<M: ClockArithmetic> {
    /// Chooses the rail of a message of `size` that is ready at `now` and may take any rail of `usable`, and accounts for
    /// it. Returns `None` if no rail of the scheduler is usable. `now` must never decrease from call to call.
    fn pick(&mut self, now: M, size: Bytes, usable: RailSet) -> Option<RailId>;

    /// Time at which `rail` will have sent everything assigned to it.
    fn virtual_finish(&self, rail: RailId) -> M;

    /// Moves the clock's zero forward by `elapsed`, for clocks with a limited range (see [`clock::Ticks`]).
    fn restart_clock(&mut self, elapsed: M);
}
