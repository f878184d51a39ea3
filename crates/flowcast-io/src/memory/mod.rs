//! Wrapper of the system's allocator that requests huge pages for large blocks.
//!
//! A replay of ten million messages accesses hundreds of megabytes. With pages of 4 KiB, each page costs a page
//! fault, and most accesses miss the TLB. With pages of 2 MiB, the contention-free replay is 1.3 to 1.4 times as fast, or
//! 1.1 times as fast for one million messages. A program selects this allocator with
//!
//! ```
//! #[global_allocator]
//! static ALLOCATOR: flowcast_io::memory::HugePages = flowcast_io::memory::HugePages;
//! # let zeros = vec![0u64; 1 << 20];
//! # assert!(zeros.iter().all(|zero| *zero == 0));
//! ```
//!
//! If the kernel has no huge pages available, it behaves like the system's allocator.

#![expect(unsafe_code, reason = "an allocator")]

use std::{
    alloc::{GlobalAlloc, Layout, System},
    ffi::c_void,
};

/// Smallest block, in bytes, for which huge pages are requested wherever it starts. Smaller ones contain few whole huge
/// pages.
const MUCH: usize = 4 << 20;

/// Blocks from this size up to [`MUCH`], in bytes, start at a huge page and consist of whole ones; elsewhere they would
/// contain none. An engine stores the state of tens of thousands of ranks in a few such blocks, and each event reads from
/// all of them.
const SOME: usize = 1 << 20;

/// Size of a huge page, in bytes.
const HUGE_PAGE: usize = 2 << 20;

/// Size of a page, in bytes. Advice must start and end at multiples of it.
const PAGE: usize = 4 << 10;

/// The system's allocator, with huge pages for large blocks if the kernel has them.
#[derive(Debug, Clone, Copy, Default)]
pub struct HugePages;

// SAFETY: all blocks are the system allocator's, and advice does not change the content.
unsafe impl GlobalAlloc for HugePages {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if (SOME..MUCH).contains(&layout.size()) && layout.align() <= HUGE_PAGE {
            return alloc_huge_pages(layout.size());
        }
        // SAFETY: the caller keeps the same contract.
        let block = unsafe { System.alloc(layout) };
        advise(block, layout.size());
        block
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the same contract.
        let block = unsafe { System.alloc_zeroed(layout) };
        advise(block, layout.size());
        block
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller keeps the same contract.
        let block = unsafe { System.realloc(block, layout, size) };
        advise(block, size);
        block
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the same contract.
        unsafe { System.dealloc(block, layout) }
    }
}

/// Allocates a block of whole huge pages. Like all blocks of the system's allocator, it belongs to `malloc`, so it can be
/// resized and freed like the others.
#[cold]
fn alloc_huge_pages(size: usize) -> *mut u8 {
    let size = size.next_multiple_of(HUGE_PAGE);
    // SAFETY: the alignment is a power of two and divides the size.
    let block = unsafe { libc::aligned_alloc(HUGE_PAGE, size) }.cast::<u8>();
    if !block.is_null() {
        advise_pages(block, size);
    }
    block
}

/// Requests huge pages for a block, which may be null if allocation failed.
#[inline]
fn advise(block: *mut u8, size: usize) {
    if size >= MUCH && !block.is_null() {
        advise_pages(block, size);
    }
}

#[cold]
fn advise_pages(block: *mut u8, size: usize) {
    let start = block.addr().next_multiple_of(PAGE);
    let length = (block.addr() + size - start) / PAGE * PAGE;
    // SAFETY: these pages lie within the block, and the advice does not change the content. After an error, pages are small.
    unsafe {
        libc::madvise(
            block.with_addr(start).cast::<c_void>(),
            length,
            libc::MADV_HUGEPAGE,
        )
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `true` if huge pages are requested at this address.
    fn is_advised(block: *mut u8) -> bool {
        let maps =
            std::fs::read_to_string("/proc/self/smaps").expect("a process can read its own maps");
        let mut is_inside = false;
        for line in maps.lines() {
            let range = line
                .split(' ')
                .next()
                .and_then(|range| range.split_once('-'));
            if let Some((Ok(from), Ok(to))) = range.map(|(from, to)| {
                (
                    usize::from_str_radix(from, 16),
                    usize::from_str_radix(to, 16),
                )
            }) {
                is_inside = (from..to).contains(&block.addr());
            } else if let Some(flags) = line.strip_prefix("VmFlags:").filter(|_| is_inside) {
                return flags.split(' ').any(|flag| flag == "hg");
            }
        }
        false
    }

    #[test]
    fn large_blocks_lie_in_huge_pages_and_keep_their_contents() {
        let kernel_has_them = std::path::Path::new("/sys/kernel/mm/transparent_hugepage").exists();
        let layout = |size| Layout::from_size_align(size, 8).expect("a small alignment");
        // SAFETY: sizes are not 0, each block is freed with its layout, and reads stay within the written bytes.
        unsafe {
            let mut block = HugePages.alloc(layout(1 << 20));
            (0..1 << 20).for_each(|byte| block.add(byte).write(byte as u8));
            block = HugePages.realloc(block, layout(1 << 20), 64 << 20);
            assert_eq!(is_advised(block.add(32 << 20)), kernel_has_them);
            block.add((64 << 20) - 1).write(7);
            block = HugePages.realloc(block, layout(64 << 20), 80 << 20);
            assert!((0..1 << 20).all(|byte| block.add(byte).read() == byte as u8));
            assert_eq!(block.add((64 << 20) - 1).read(), 7);
            HugePages.dealloc(block, layout(80 << 20));

            let zeros = HugePages.alloc_zeroed(layout(64 << 20));
            assert_eq!(is_advised(zeros.add(32 << 20)), kernel_has_them);
            assert!(
                (0..64 << 20)
                    .step_by(4000)
                    .all(|byte| zeros.add(byte).read() == 0)
            );
            HugePages.dealloc(zeros, layout(64 << 20));

            let mut block = HugePages.alloc(layout(3 << 20));
            assert_eq!(block.addr() % HUGE_PAGE, 0);
            assert_eq!(is_advised(block), kernel_has_them);
            (0..3 << 20).for_each(|byte| block.add(byte).write(byte as u8));
            block = HugePages.realloc(block, layout(3 << 20), 6 << 20);
            assert!((0..3 << 20).all(|byte| block.add(byte).read() == byte as u8));
            HugePages.dealloc(block, layout(6 << 20));
        }
    }

    #[test]
    fn an_allocation_that_is_too_large_returns_null() {
        let layout = Layout::from_size_align(1 << 60, 8).expect("a small alignment");
        // SAFETY: the size is not 0.
        assert!(unsafe { HugePages.alloc(layout) }.is_null());
    }
}
