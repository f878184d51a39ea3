//! Ring of bytes in memory that two processes share, with one writer and one reader.
//!
//! Two counters hold the total bytes written and read. The writer stores the first counter after it has copied bytes into
//! the ring (release), and the reader copies them out after it has loaded it (acquire). In the same way, the second counter
//! prevents the writer from overwriting unread bytes. Each counter has cache lines of its own, so the stores of one end do
//! not evict the line that the other end polls.
//!
//! The ring does not trust the other process with this one's memory: its counter is used only within the limits of the ring.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Capacity of a ring in bytes, a power of two.
pub(super) const CAPACITY: usize = 1 << 18;
/// Distance of two cache lines of 64 bytes: processors fetch lines in pairs.
const APART: usize = 128;
const READ: usize = APART;
const CLOSED: usize = 2 * APART;
const CLAIMED: usize = CLOSED + 4;
const DATA: usize = 4096;
/// Bytes that a ring occupies, a multiple of a page.
pub(super) const LENGTH: usize = DATA + CAPACITY;

/// Ring in memory that outlives it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ring {
    base: *mut u8,
}

// SAFETY: all memory of the ring is either atomic or passed from one end to the other by acquire and release.
unsafe impl Send for Ring {}

impl Ring {
    /// Returns the ring at `base`. Memory of zeros is an empty ring.
    ///
    /// # Safety
    /// `base` must be aligned to 128 bytes. The [`LENGTH`] bytes from it on must be valid for reads and writes as long as
    /// the ring is used. Nothing may access them except at most one writing and one reading ring.
    pub(super) unsafe fn new(base: *mut u8) -> Ring {
        Ring { base }
    }

    fn counter(&self, at: usize) -> &AtomicU64 {
        // SAFETY: the counter is inside the ring and aligned, by `new`. Only atomics access these bytes.
        unsafe { AtomicU64::from_ptr(self.base.add(at).cast()) }
    }

    fn flag(&self, at: usize) -> &AtomicU32 {
        // SAFETY: the same as for counters.
        unsafe { AtomicU32::from_ptr(self.base.add(at).cast()) }
    }

    /// Claims the writing end. Returns `false` if it is already claimed.
    pub(super) fn claim(&self) -> bool {
        self.flag(CLAIMED).swap(1, Ordering::AcqRel) == 0
    }

    /// Marks the ring as closed because one end is gone.
    pub(super) fn close(&self) {
        self.flag(CLOSED).store(1, Ordering::Release);
    }

    /// Returns `true` if an end is gone. Bytes that were written before can still be read.
    pub(super) fn is_closed(&self) -> bool {
        self.flag(CLOSED).load(Ordering::Acquire) != 0
    }

    /// Copies in as many bytes as fit, and returns their number.
    pub(super) fn write(&self, bytes: &[u8]) -> usize {
        let written = self.counter(0).load(Ordering::Relaxed);
        let waiting = written.wrapping_sub(self.counter(READ).load(Ordering::Acquire)) as usize;
        let count = bytes.len().min(CAPACITY - waiting.min(CAPACITY));
        let (first, second) = halves(written, count);
        // SAFETY: both parts lie inside the data. The reader does not access them until the counter marks them as written.
        unsafe {
            let data = self.base.add(DATA);
            data.add(first.start)
                .copy_from_nonoverlapping(bytes.as_ptr(), first.len());
            data.copy_from_nonoverlapping(bytes.as_ptr().add(first.len()), second);
        }
        self.counter(0)
            .store(written.wrapping_add(count as u64), Ordering::Release);
        count
    }

    /// Copies out as many bytes as are available, and returns their number.
    pub(super) fn read(&self, bytes: &mut [u8]) -> usize {
        let read = self.counter(READ).load(Ordering::Relaxed);
        let waiting = self.counter(0).load(Ordering::Acquire).wrapping_sub(read) as usize;
        let count = bytes.len().min(waiting.min(CAPACITY));
        let (first, second) = halves(read, count);
        // SAFETY: both parts lie inside the data. The writer does not access them until the counter marks them as read.
        unsafe {
            let data = self.base.add(DATA);
            bytes
                .as_mut_ptr()
                .copy_from_nonoverlapping(data.add(first.start), first.len());
            bytes
                .as_mut_ptr()
                .add(first.len())
                .copy_from_nonoverlapping(data, second);
        }
        self.counter(READ)
            .store(read.wrapping_add(count as u64), Ordering::Release);
        count
    }
}

/// Returns the position of `count` bytes that start at a counter: the range up to the end of the data, and the number of
/// further bytes at its beginning.
fn halves(counter: u64, count: usize) -> (std::ops::Range<usize>, usize) {
    let start = counter as usize % CAPACITY;
    let first = count.min(CAPACITY - start);
    (start..start + first, count - first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[repr(C, align(128))]
    struct Memory([u8; LENGTH]);

    /// Returns the memory, which the caller must free, and a ring for each end.
    fn rings() -> (*mut Memory, Ring, Ring) {
        // SAFETY: zero is a valid value of a byte.
        let memory = Box::into_raw(unsafe { Box::<Memory>::new_zeroed().assume_init() });
        // SAFETY: the memory is aligned and long enough, and each test has one writer and one reader.
        unsafe { (memory, Ring::new(memory.cast()), Ring::new(memory.cast())) }
    }

    fn free(memory: *mut Memory) {
        // SAFETY: the pointer comes from `into_raw`, and no ring is in use any more.
        drop(unsafe { Box::from_raw(memory) });
    }

    #[test]
    fn bytes_come_out_in_order_between_two_threads() {
        let (memory, writer, reader) = rings();
        let total = if cfg!(miri) { 3000u32 } else { 1_000_000 };
        std::thread::scope(|scope| {
            scope.spawn(move || {
                let writer = writer;
                let mut next = 0;
                while next < total {
                    let bytes: Vec<u8> = (next..total.min(next + 1000))
                        .map(|at| (at % 251) as u8)
                        .collect();
                    next += writer.write(&bytes) as u32;
                    std::hint::spin_loop();
                }
            });
            let (mut next, mut bytes) = (0u32, [0; 777]);
            while next < total {
                let count = reader.read(&mut bytes);
                for byte in &bytes[..count] {
                    assert_eq!(u32::from(*byte), next % 251);
                    next += 1;
                }
                std::hint::spin_loop();
            }
        });
        free(memory);
    }

    #[test]
    fn a_full_ring_accepts_no_more_bytes_and_wraps_around() {
        let (memory, writer, reader) = rings();
        assert_eq!(writer.write(&vec![1; CAPACITY + 5]), CAPACITY);
        assert_eq!(writer.write(&[2]), 0);
        assert_eq!(reader.read(&mut [0; 3]), 3);
        assert_eq!(writer.write(&[7, 8, 9, 10]), 3);
        let mut rest = vec![0; CAPACITY];
        assert_eq!(reader.read(&mut rest), CAPACITY);
        assert_eq!(
            (rest[CAPACITY - 4], &rest[CAPACITY - 3..]),
            (1, &[7, 8, 9][..])
        );
        free(memory);
    }

    #[test]
    fn a_counter_out_of_range_is_limited_to_the_size_of_the_ring() {
        let (memory, writer, reader) = rings();
        writer.counter(0).store(u64::MAX / 2, Ordering::Release);
        assert_eq!(reader.read(&mut vec![0; 2 * CAPACITY]), CAPACITY);
        assert_eq!(writer.write(&[1]), 0);
        free(memory);
    }
}
