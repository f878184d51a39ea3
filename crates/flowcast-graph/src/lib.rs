//! The events of a replay and what each waits for: what the end is spent on, how it depends on every cost, how late each may
//! be, and what random delays do.
//!
//! A replay only adds costs and takes the later of two times. So the times of all events, and for each the one or two
//! events that it waits for with the cost in between, hold everything that a replay with other costs needs, as long as
//! what waits for what stays the same. An [`EventGraph`] is recorded once, by an observer of any engine: a
//! [`ProgramRecorder`] or, of schedules, a [`ScheduleRecorder`].
//!
//! | question | answer |
//! |---|---|
//! | what the time is spent on along the chain that ends last | [`critical_path`] |
//! | the time over a range of the costs of some ranks, pairs, links, sizes | [`EventGraph::curve`] |
//! | the slope of the end with respect to every cost, at once | [`gradient`] |
//! | how late each message and computation may be | [`slack`] |
//! | the time where some costs are others | [`EventGraph::changed`] |
//! | what random delays of computations do to the end | [`noise`] |
//!
//! Where messages do not disturb one another all of this is exact. Under sharing, and with limited links, buses and
//! processors, events keep the order and the waiting times of the replay that was recorded ([`EventGraph::is_exact`]).

pub mod critical_path;
mod curve;
pub mod gradient;
mod graph;
pub mod noise;
mod parts;
pub mod selector;
pub mod slack;

pub use curve::{Selected, To};
pub use graph::{EventGraph, ProgramRecorder, ScheduleRecorder};
