//! Wall time in ticks, and the processor time of a thread.
//!
//! The time stamp counter takes 13 ns to read, the vDSO's clock 37 ns. The recorder therefore uses the counter if the kernel
//! itself trusts it as its clock source. The processor time of a thread needs a system call (0.5 us) and is read rarely.

use std::sync::atomic::{AtomicU64, Ordering};

fn read(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the structure is valid for the call.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Returns the monotonic clock, in nanoseconds.
pub(crate) fn monotonic() -> u64 {
    read(libc::CLOCK_MONOTONIC)
}

/// Returns the processor time of this thread, in nanoseconds.
pub(crate) fn thread_cpu() -> u64 {
    read(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// Nanoseconds in a tick, times 2^32; 0 while the counter is not in use and ticks are nanoseconds.
static SCALE: AtomicU64 = AtomicU64::new(0);

/// Returns the current time, in ticks.
#[inline]
pub(crate) fn now() -> u64 {
    #[cfg(target_arch = "x86_64")]
    if SCALE.load(Ordering::Relaxed) != 0 {
        return counter();
    }
    monotonic()
}

#[cfg(target_arch = "x86_64")]
#[inline]
fn counter() -> u64 {
    // SAFETY: every 64-bit x86 processor has the instruction.
    unsafe { std::arch::x86_64::_rdtsc() }
}

/// Converts ticks to nanoseconds.
#[inline]
pub(crate) fn nanos(ticks: u64) -> u64 {
    match SCALE.load(Ordering::Relaxed) {
        0 => ticks,
        scale => ((u128::from(ticks) * u128::from(scale)) >> 32) as u64,
    }
}

/// Start of a calibration. Some milliseconds must pass before its end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Calibration {
    #[cfg(target_arch = "x86_64")]
    start: (u64, u64),
}

impl Calibration {
    pub(crate) fn begin() -> Calibration {
        Calibration {
            #[cfg(target_arch = "x86_64")]
            start: both(),
        }
    }

    /// Ends the calibration. From now on, [`now`] reads the counter if the kernel trusts it.
    pub(crate) fn end(self) {
        #[cfg(target_arch = "x86_64")]
        if is_trusted() {
            const LEAST: u64 = 4_000_000;
            let (ticks, nanos) = loop {
                let end = both();
                let took = end.1.saturating_sub(self.start.1);
                if took >= LEAST {
                    break (end.0.saturating_sub(self.start.0), took);
                }
            };
            let scale = (u128::from(nanos) << 32) / u128::from(ticks.max(1));
            SCALE.store(scale as u64, Ordering::Relaxed);
        }
    }
}

/// Returns the counter and the clock at the same moment: the fastest of a few attempts.
#[cfg(target_arch = "x86_64")]
fn both() -> (u64, u64) {
    let (_, ticks, nanos) = (0..8)
        .map(|_| {
            let before = counter();
            let nanos = monotonic();
            let after = counter();
            let took = after.saturating_sub(before);
            (took, before + took / 2, nanos)
        })
        .min()
        .unwrap_or((0, 0, 0));
    (ticks, nanos)
}

#[cfg(target_arch = "x86_64")]
fn is_trusted() -> bool {
    const SOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    std::fs::read_to_string(SOURCE).is_ok_and(|name| name.trim() == "tsc")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_become_the_nanoseconds_of_the_system_clock() {
        Calibration::begin().end();
        let (ticks, nanos_before) = (now(), monotonic());
        let mut sum = 0u64;
        while monotonic() - nanos_before < 20_000_000 {
            sum = sum.wrapping_add(1);
        }
        let (measured, real) = (nanos(now() - ticks), monotonic() - nanos_before);
        assert!(
            sum > 0 && measured.abs_diff(real) * 200 < real,
            "{measured} ns instead of {real}"
        );
    }

    #[test]
    fn a_thread_that_computes_uses_its_processor() {
        let before = thread_cpu();
        let end = monotonic() + 5_000_000;
        while monotonic() < end {}
        assert!(thread_cpu() > before);
    }
}
