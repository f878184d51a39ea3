//! Waiting for a message without being descheduled.
//!
//! A process that polls all the time is descheduled in the end, for milliseconds, and until then it keeps the kernel's
//! network processing from its processor; one that yields loses the processor for as long. One that sleeps is woken at
//! once. A waiting process therefore polls for as long as short messages take, and then sleeps briefly between polls.

use std::{
    ffi::c_ulong,
    thread,
    time::{Duration, Instant},
};

use libc::{PR_GET_TIMERSLACK, PR_SET_TIMERSLACK, prctl};

const BUSY: Duration = Duration::from_micros(300);
/// Ends within some microseconds of it, a hundredth of what takes longer than `BUSY`.
const MOMENT: Duration = Duration::from_micros(10);

/// Since the last message.
#[derive(Debug)]
pub(super) struct Backoff {
    since: Instant,
}

impl Backoff {
    /// A message has come.
    pub(super) fn new() -> Backoff {
        Backoff {
            since: Instant::now(),
        }
    }

    /// None has come yet.
    pub(super) fn wait(&self) {
        if self.since.elapsed() > BUSY {
            thread::sleep(MOMENT);
        }
    }
}

/// Sleeps end when they should while `work` runs: threads may be woken 50 us late otherwise.
pub(super) fn exactly<T>(work: impl FnOnce() -> T) -> T {
    // SAFETY: settings of this thread, which know nanoseconds and no pointers.
    let before = unsafe { prctl(PR_GET_TIMERSLACK) };
    // SAFETY: as above.
    unsafe { prctl(PR_SET_TIMERSLACK, 1 as c_ulong) };
    let done = work();
    if let Ok(before) = c_ulong::try_from(before) {
        // SAFETY: as above.
        unsafe { prctl(PR_SET_TIMERSLACK, before) };
    }
    done
}
