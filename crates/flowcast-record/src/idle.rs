//! Optional sleep of waiting ranks, for measurements with more ranks than processors.
//!
//! A waiting rank polls, and an MPI library that is configured to yield calls `sched_yield` between two polls. Linux lets
//! such a rank continue until its time slice of some milliseconds is used up, while the rank that it waits for has no
//! processor: an operation of 0.3 ms takes 5 ms. A short sleep instead releases the processor immediately, as on a cluster
//! where each rank has a processor of its own.

use std::{
    env,
    ffi::{c_int, c_ulong},
    sync::atomic::{AtomicI64, Ordering},
    time::Duration,
};

/// Environment variable with the time that `sched_yield` sleeps, in nanoseconds. Without it, `sched_yield` yields.
pub(crate) const SLEEP: &str = "FLOWCAST_IDLE_SLEEP_NS";

const NOT_ASKED: i64 = -1;

static NANOS: AtomicI64 = AtomicI64::new(NOT_ASKED);

thread_local! {
    static PREPARED: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// Replaces the C library's function.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn sched_yield() -> c_int {
    match NANOS.load(Ordering::Relaxed) {
        NOT_ASKED => {
            let asked = env::var(SLEEP)
                .ok()
                .and_then(|text| text.parse::<i64>().ok());
            NANOS.store(asked.unwrap_or(0).max(0), Ordering::Relaxed);
            sched_yield()
        }
        // SAFETY: the call takes no arguments.
        0 => unsafe { libc::syscall(libc::SYS_sched_yield) as c_int },
        nanos => {
            sleep(nanos);
            0
        }
    }
}

/// Sleeps. The system adds up to 50 us to a sleep unless the thread requests less.
fn sleep(nanos: i64) {
    // A thread that is ending no longer has this cell, and keeps its slack.
    let is_prepared = PREPARED
        .try_with(|prepared| prepared.replace(true))
        .unwrap_or(true);
    if !is_prepared {
        // SAFETY: the option takes one number.
        unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1 as c_ulong) };
    }
    std::thread::sleep(Duration::from_nanos(nanos as u64));
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn a_rank_that_yields_sleeps_for_the_requested_time() {
        NANOS.store(2_000_000, Ordering::Relaxed);
        let begun = Instant::now();
        assert_eq!(sched_yield(), 0);
        assert!(begun.elapsed() >= Duration::from_millis(2));
        NANOS.store(0, Ordering::Relaxed);
        assert_eq!(sched_yield(), 0);
    }
}
