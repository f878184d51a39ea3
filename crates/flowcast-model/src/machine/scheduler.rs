//! How ranks that share a processor take turns.

use serde::{Deserialize, Serialize};

use flowcast_units::Time;

/// The scheduler of a node: the same for all nodes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Scheduler {
    /// Which waiting rank gets a free processor next; `fifo` by default.
    pub policy: Policy,
    /// Longest time on the processor before others get it, with `round-robin`.
    pub quantum: Time,
    /// Processor time that each turn costs before it begins.
    pub context_switch: Time,
    /// Priority of each rank, the smallest first, with `priority`; ranks without one have 0.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub priorities: Vec<i32>,
    /// Whether a rank takes the processor from one of a larger number at once, with `priority`.
    pub preemptive: bool,
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

impl Scheduler {}
