//! Prefetching: data that are needed soon are fetched into the cache during other work.
//!
//! This is the only unsafe code of the replay. The language has no safe prefetch, and without it the replays spend a third
//! to half of their time waiting for memory.

/// Number of ranks from which their states do not fit into the nearest caches, so that an event-driven engine looks ahead.
pub const MANY_RANKS: usize = 4096;

/// Fetches the cache line of a value. It has no effect on any result, and does nothing where the processor has no such
/// instruction.
#[inline(always)]
pub fn prefetch<T>(value: &T) {
    prefetch_behind(std::slice::from_ref(value), 0);
}

/// Fetches the cache line of an element of a list, if it exists.
#[inline(always)]
pub fn prefetch_at<T>(values: &[T], index: u32) {
    if let Some(value) = values.get(index as usize) {
        prefetch(value);
    }
}

/// Fetches the cache line of an element that may be past the end of a list: cheaper than a check.
#[inline(always)]
pub fn prefetch_behind<T>(values: &[T], index: usize) {
    #[cfg(target_arch = "x86_64")]
    // Sound: a prefetch reads nothing that a program can observe, whatever the address.
    #[expect(unsafe_code, reason = "an instruction of the processor")]
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(values.as_ptr().wrapping_add(index).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (values, index);
}
