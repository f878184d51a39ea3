//! Counters of the messages on each rail.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counters of a rail; any thread may increment them.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(crate) struct Counters {
    asked: AtomicU64,
    eager_messages: AtomicU64,
    eager_bytes: AtomicU64,
    other_messages: AtomicU64,
    other_bytes: AtomicU64,
}

/// Values of the counters at one instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct CounterValues {
    /// Number of first fragments that ob1 requested for this rail.
    pub asked: u64,
    /// Number of first fragments that the scheduler assigned to this rail.
    pub eager_messages: u64,
    /// Bytes of these first fragments, including headers of ob1.
    pub eager_bytes: u64,
    /// Number of other messages that ob1 sent over this rail, without a choice by the scheduler: fragments, puts,
    /// acknowledgements.
    pub other_messages: u64,
    /// Bytes of these other messages, including headers of ob1.
    pub other_bytes: u64,
}

impl Counters {
    /// Counts a first fragment that ob1 requested for this rail.
    #[inline]
    pub(crate) fn ask(&self) {
        self.asked.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a message for which the scheduler chose this rail.
    #[inline]
    pub(crate) fn eager(&self, bytes: u64) {
        self.eager_messages.fetch_add(1, Ordering::Relaxed);
        self.eager_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Counts a message for which ob1 used this rail.
    #[inline]
    pub(crate) fn other(&self, bytes: u64) {
        self.other_messages.fetch_add(1, Ordering::Relaxed);
        self.other_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn read(&self) -> CounterValues {
        CounterValues {
            asked: load(&self.asked),
            eager_messages: load(&self.eager_messages),
            eager_bytes: load(&self.eager_bytes),
            other_messages: load(&self.other_messages),
            other_bytes: load(&self.other_bytes),
        }
    }
}

fn load(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

impl CounterValues {
    pub(crate) fn messages(&self) -> u64 {
        self.eager_messages + self.other_messages
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.eager_bytes + self.other_bytes
    }
}
