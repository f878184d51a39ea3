//! Which of several networks carries the next message.
//!
//! A node that reaches another over several networks (rails) has to choose one for each message. The schedulers here
//! follow chapter 4 of Lichei's thesis: each rail has a virtual finish time (VFT), the instant at which it will have
//! sent all that was given to it, and a message goes where a rule over VFT and LogGP parameters is smallest.
//! `docs/rails.md` has the equations, the readings of garbled places and the figures.
//!
//! [`RailScheduler::pick`] runs inside a message path: it does no I/O, allocates nothing and divides nothing. The clock
//! is an argument. Everything else here (evaluation, optimum, comparison) is for people who choose a scheduler.

pub mod adaptive;
pub mod advise;
pub mod bound;
pub mod compare;
pub mod discipline;
pub mod drift;
pub mod emulated;
pub mod guard;
pub mod messages;
pub mod moment;
pub mod optimum;
pub mod ordering;
pub mod processor;
pub mod rail;
pub mod random_sets;
pub mod rules;
pub mod schedule;
pub mod shared;
pub mod split;
pub mod table;
pub mod turns;
pub mod virtual_time;

use flowcast_units::Bytes;
use moment::Moment;
pub use rail::{MAX_RAILS, Rail, RailId, RailSet, RailsError};

/// Chooses rails one message at a time.
pub trait RailScheduler<M: Moment> {
    /// Chooses the rail of a message of `size` that is ready at `now` and may take any rail of `usable`, and accounts
    /// for it. `None` if no rail of the scheduler is usable. `now` never decreases from call to call.
    fn pick(&mut self, now: M, size: Bytes, usable: RailSet) -> Option<RailId>;

    /// When `rail` will have sent all that it was given.
    fn virtual_finish(&self, rail: RailId) -> M;

    /// Moves the clock's zero forward by `elapsed`, for clocks whose range ends (see [`moment::Ticks`]).
    fn restart_clock(&mut self, elapsed: M);
}
