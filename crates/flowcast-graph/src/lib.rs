//! The events of a replay and the events that each of them waits for. Analyses show the costs behind the makespan, its
//! dependence on every cost, the slack of each event and the effect of random delays.
//!
//! A replay only adds costs and takes the later of two times. A graph therefore stores the time of each event, the one or
//! two events that it waits for, and the costs in between. A replay with other costs needs nothing else, as long as the
//! dependencies stay the same. An [`EventGraph`] is recorded once, by an observer of any engine: a [`ProgramRecorder`] or,
//! for schedules, a [`ScheduleRecorder`].
//!
//! | question | answer |
//! |---|---|
//! | costs along the chain that ends last | [`critical_path`] |
//! | time over a range of the costs of some ranks, pairs, links, sizes | [`EventGraph::curve`] |
//! | slope of the end with respect to every cost, in one pass | [`gradient`] |
//! | slack of each message and computation | [`slack`] |
//! | time with some costs changed | [`EventGraph::changed`] |
//! | effect of random delays of computations on the end | [`noise`] |
//!
//! All of this is exact without contention between messages. Under sharing, and with limited links, buses and
//! processors, events keep the order and the waiting times of the recorded replay ([`EventGraph::is_exact`]).

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
