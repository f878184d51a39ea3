//! How ranks that share a processor take turns.

use serde::{Deserialize, Serialize};

use flowcast_units::Time;

section! {
    /// The scheduler of a node: the same for all nodes.
    #[serde(default)]
    pub struct Scheduler {
        /// Which waiting rank gets a free processor next: `fifo`, `round-robin` or `priority`.
        /// Default: `fifo`. Example: `"round-robin"`.
        policy: Policy,
        /// Longest time on the processor before others get it, with `round-robin`.
        /// Default: 3us. Example: `"10us"`.
        quantum: Time,
        /// Processor time that each turn costs before it begins.
        /// Default: 0. Example: `"1us"`.
        context_switch: Time,
        /// Priority of each rank, the smallest first, with `priority`; ranks without one have 0.
        /// Default: none. Example: `[1, 0]`.
        priorities: Vec<i32> | default,
        /// Whether a rank takes the processor from one of a larger number at once, with `priority`.
        /// Default: `false`. Example: `true`.
        preemptive: bool,
    }
}

/// The order of the queue for processors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// First come, first served, to the end of a computation.
    #[default]
    Fifo,
    /// First come, first served, for a quantum at most.
    RoundRobin,
    /// The smallest number first, of equals the first to come.
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
