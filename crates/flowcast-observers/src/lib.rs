//! Observers of replays: a [`ReplayJournal`](journal::ReplayJournal) for timelines and files, the causes of communication
//! time ([`explain`], for schedules [`schedule_explain`]), the times of calls and regions ([`run_times`]), and the messages
//! that stay [`inside`] nodes.

pub mod distribution;
pub mod explain;
pub mod flights;
pub mod inside;
pub mod journal;
pub mod run_times;
pub mod schedule_explain;
