//! Waiting for a message without being descheduled.
//!
//! A process that polls all the time is eventually descheduled for milliseconds, and until then it keeps the kernel's
//! network processing from its processor. A process that yields loses the processor for as long. A process that sleeps is
//! woken immediately. A waiting process therefore polls for the duration of short messages, and then sleeps briefly between
//! polls.

use std::{
    ffi::c_ulong,
    thread,
    time::{Duration, Instant},
};

use libc::{PR_GET_TIMERSLACK, PR_SET_TIMERSLACK, prctl};

const BUSY: Duration = Duration::from_micros(300);
/// Duration of a sleep. The thread wakes up within a few microseconds of its end, about 1 % of any wait longer than `BUSY`.
const MOMENT: Duration = Duration::from_micros(10);

/// Time since the last message.
#[derive(Debug)]
pub(super) struct Backoff {
    since: Instant,
}

impl Backoff {
    /// Starts the time at the arrival of a message.
    pub(super) fn new() -> Backoff {
        Backoff {
            since: Instant::now(),
        }
    }

    /// Waits briefly if no message has arrived for a while.
    pub(super) fn wait(&self) {
        if self.since.elapsed() > BUSY {
            thread::sleep(MOMENT);
        }
    }
}

/// Runs `work` with exact sleeps. Otherwise threads may be woken 50 us late.
pub(super) fn exactly<T>(work: impl FnOnce() -> T) -> T {
    // SAFETY: settings of this thread, which take nanoseconds and no pointers.
    let before = unsafe { prctl(PR_GET_TIMERSLACK) };
    // SAFETY: the same as above.
    unsafe { prctl(PR_SET_TIMERSLACK, 1 as c_ulong) };
    let done = work();
    if let Ok(before) = c_ulong::try_from(before) {
        // SAFETY: the same as above.
        unsafe { prctl(PR_SET_TIMERSLACK, before) };
    }
    done
}
