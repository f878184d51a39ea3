//! Asking the memory for what will be needed soon.
//!
//! With many ranks an event's rank, message, links and slot are far away, and waiting for them one after the other takes
//! most of the time. The next events are known, so what they need is asked for while the one before is worked on.

/// Asks for the cache line of a value; without effect on any result, and nothing at all where it cannot be done.
#[inline(always)]
pub fn prefetch<T>(value: &T) {
    #[cfg(target_arch = "x86_64")]
    // Sound: a prefetch reads nothing that anybody sees, and a reference is a valid address.
    #[allow(unsafe_code)]
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(value).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = value;
}

/// The same for a place of a list, if there is one.
#[inline(always)]
pub fn prefetch_at<T>(values: &[T], index: u32) {
    if let Some(value) = values.get(index as usize) {
        prefetch(value);
    }
}
