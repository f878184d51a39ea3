//! When everything happens: replay of traces, and the stepping of concurrent flows.

pub mod outcome;
pub mod timeline;
