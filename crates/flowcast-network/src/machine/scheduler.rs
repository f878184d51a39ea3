//! Scheduling of ranks that share a processor.

use serde::{Deserialize, Serialize};

use flowcast_units::Time;

section! {
    /// The scheduler of a node, the same for all nodes.
    #[serde(default)]
    pub struct Scheduler {
        /// Order in which waiting ranks get a free processor: `fifo`, `round-robin` or `priority`.
        /// Default: `fifo`. Example: `"round-robin"`.
        policy: Policy,
        /// Time slice of a rank with `round-robin`.
        /// Default: 3us. Example: `"10us"`.
        quantum: Time,
        /// Processor time at the start of each turn.
        /// Default: 0. Example: `"1us"`.
        context_switch: Time,
        /// Priority of each rank with `priority`; the smallest number runs first, and ranks without an entry have 0.
        /// Default: none. Example: `[1, 0]`.
        priorities: Vec<i32> | default,
        /// `true`: with `priority`, a rank preempts a running rank that has a larger number.
        /// Default: `false`. Example: `true`.
        preemptive: bool,
    }
}

/// Order of the queue for processors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// First come, first served. A rank keeps the processor to the end of its computation.
    #[default]
    Fifo,
    /// First come, first served. A rank keeps the processor for at most one quantum.
    RoundRobin,
    /// The smallest number first; of equal numbers, the first to arrive.
    Priority,
}

impl Default for Scheduler {
    fn default() -> Scheduler {
        Scheduler {
            policy: Policy::Fifo,
            quantum: Time::from_nanos(3000.0),
            context_switch: Time::ZERO,
            priorities: Vec::new(),
            preemptive: false,
        }
    }
}
