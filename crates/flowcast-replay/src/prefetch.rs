//! Prefetching: what will be needed soon is fetched into the cache while something else is worked on.
//!
//! The only unsafe code of the replay stands here. The language has no safe prefetch, and the replays spend a third to
//! half of their time waiting for memory without it.

/// From so many ranks on, the states of ranks do not stay in the nearest caches, and an engine that goes from event to
/// event looks ahead.
pub const MANY_RANKS: usize = 4096;

/// Fetches the cache line of a value; without effect on any result, and nothing at all where it cannot be done.
#[inline(always)]
pub fn prefetch<T>(value: &T) {
    prefetch_behind(std::slice::from_ref(value), 0);
}

/// The same for a place of a list, if there is one.
#[inline(always)]
pub fn prefetch_at<T>(values: &[T], index: u32) {
    if let Some(value) = values.get(index as usize) {
        prefetch(value);
    }
}

/// The same for a place that may lie behind the end of a list: cheaper than to ask.
#[inline(always)]
pub fn prefetch_behind<T>(values: &[T], index: usize) {
    #[cfg(target_arch = "x86_64")]
    // Sound: a prefetch reads nothing that anybody sees, whatever the address.
    #[expect(unsafe_code, reason = "an instruction of the processor")]
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(values.as_ptr().wrapping_add(index).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (values, index);
}
