//! Allocator of the recorder. Rust ends a process whose allocations fail, but this process is the user's program. The
//! allocator therefore has a reserve, which is large enough to end the recording.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::UnsafeCell,
    mem::size_of,
    ptr,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
};

const BYTES: usize = 4 << 20;

/// Untouched pages of the reserve take no memory.
#[repr(align(64))]
struct Reserve(UnsafeCell<[u8; BYTES]>);

// SAFETY: each part is handed out only once.
unsafe impl Sync for Reserve {}

static RESERVE: Reserve = Reserve(UnsafeCell::new([0; BYTES]));
static TAKEN: AtomicUsize = AtomicUsize::new(0);
static SHORT: AtomicBool = AtomicBool::new(false);

/// Returns `true` if the system has refused memory.
#[inline]
pub(crate) fn is_short() -> bool {
    SHORT.load(Relaxed)
}

/// Returns `true` if a list may grow to `elements` elements. A long list, which could exceed the reserve, allocates its
/// memory here; a short one may always grow.
pub(crate) fn may_grow<T>(list: &mut Vec<T>, elements: usize) -> bool {
    let may = elements < BYTES / 4 / size_of::<T>() || list.try_reserve_exact(elements).is_ok();
    SHORT.fetch_or(!may, Relaxed);
    may
}

struct WithReserve;

#[global_allocator]
static ALLOCATOR: WithReserve = WithReserve;

fn is_reserve(address: *mut u8) -> bool {
    (address as usize).wrapping_sub(RESERVE.0.get() as usize) < BYTES
}

fn of_reserve(layout: Layout) -> *mut u8 {
    SHORT.store(true, Relaxed);
    let bytes = layout.size() + layout.align();
    // Longer lists must request their memory with `may_grow`.
    if bytes > BYTES {
        return ptr::null_mut();
    }
    let begin = TAKEN.fetch_add(bytes, Relaxed);
    if begin.saturating_add(bytes) > BYTES {
        return ptr::null_mut();
    }
    let address = RESERVE.0.get().cast::<u8>().wrapping_add(begin);
    address.wrapping_add(address.align_offset(layout.align()))
}

// SAFETY: memory from the system follows the system's rules, and each part of the reserve is handed out only once.
unsafe impl GlobalAlloc for WithReserve {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: guaranteed by the caller.
        let given = unsafe { System.alloc(layout) };
        if given.is_null() {
            of_reserve(layout)
        } else {
            given
        }
    }

    unsafe fn dealloc(&self, address: *mut u8, layout: Layout) {
        if !is_reserve(address) {
            // SAFETY: guaranteed by the caller.
            unsafe { System.dealloc(address, layout) };
        }
    }

    unsafe fn realloc(&self, address: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let kept = if is_reserve(address) {
            ptr::null_mut()
        } else {
            // SAFETY: guaranteed by the caller.
            unsafe { System.realloc(address, layout, size) }
        };
        if !kept.is_null() {
            return kept;
        }
        // SAFETY: the alignment was valid in an earlier request, and both places have at least the number of bytes copied,
        // the smaller of the two sizes.
        unsafe {
            let other = of_reserve(Layout::from_size_align_unchecked(size, layout.align()));
            if !other.is_null() {
                ptr::copy_nonoverlapping(address, other, layout.size().min(size));
                self.dealloc(address, layout);
            }
            other
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reserve_returns_parts_without_overlap_until_it_is_used_up() {
        let layout = Layout::from_size_align(1000, 64).unwrap();
        let (first, second) = (of_reserve(layout), of_reserve(layout));
        assert!(is_reserve(first) && is_reserve(second));
        assert!(second as usize - first as usize >= 1000);
        assert_eq!(second as usize % 64, 0);
        assert!(is_short());
        assert!(of_reserve(Layout::from_size_align(BYTES, 1).unwrap()).is_null());
        assert!(!may_grow(&mut Vec::<u64>::new(), usize::MAX / 16));
    }
}
