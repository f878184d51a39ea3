//! A ring of bytes in memory that two processes share: one writes, one reads.
//!
//! Two counters say how many bytes were ever written and read. The writer stores the first after it has copied bytes in
//! (release), and the reader copies them out after it has loaded it (acquire); the second counter keeps the writer, in the same
//! way, from overwriting what is not read yet. Each counter has cache lines of its own, so that one end's stores do not take
//! away the line that the other end waits on.
//!
//! The other process is not trusted with this one's memory: its counter is only believed as far as the ring goes.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Bytes that a ring holds, a power of two.
pub(super) const CAPACITY: usize = 1 << 18;
/// Two lines of 64 bytes: processors fetch lines in pairs.
const APART: usize = 128;
const READ: usize = APART;
const CLOSED: usize = 2 * APART;
const CLAIMED: usize = CLOSED + 4;
const DATA: usize = 4096;
/// What a ring takes, a multiple of a page.
pub(super) const LENGTH: usize = DATA + CAPACITY;

/// A ring in memory that outlives it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ring {
    base: *mut u8,
}

// SAFETY: all of the ring's memory is either atomic or handed from one end to the other by acquire and release.
unsafe impl Send for Ring {}

impl Ring {
    /// The ring at `base`; memory that is all zeros is an empty one.
    ///
    /// # Safety
    /// `base` is aligned to 128 bytes, [`LENGTH`] bytes from it on are valid for reads and writes for as long as the ring is
    /// used, and nothing but at most one writing and one reading ring touches them.
    pub(super) unsafe fn new(base: *mut u8) -> Ring {
        Ring { base }
    }

    fn counter(&self, at: usize) -> &AtomicU64 {
        // SAFETY: inside of the ring and aligned, by `new`; only atomics touch these bytes.
        unsafe { AtomicU64::from_ptr(self.base.add(at).cast()) }
    }

    fn flag(&self, at: usize) -> &AtomicU32 {
        // SAFETY: as for counters.
        unsafe { AtomicU32::from_ptr(self.base.add(at).cast()) }
    }

    /// Takes the writing end; false where it was taken before.
    pub(super) fn claim(&self) -> bool {
        self.flag(CLAIMED).swap(1, Ordering::AcqRel) == 0
    }

    /// One end is gone.
    pub(super) fn close(&self) {
        self.flag(CLOSED).store(1, Ordering::Release);
    }

    /// Whether an end is gone; what was written before may still be read.
    pub(super) fn is_closed(&self) -> bool {
        self.flag(CLOSED).load(Ordering::Acquire) != 0
    }

    /// Copies as many bytes in as there is room for, and says how many.
    pub(super) fn write(&self, bytes: &[u8]) -> usize {
        let written = self.counter(0).load(Ordering::Relaxed);
        let waiting = written.wrapping_sub(self.counter(READ).load(Ordering::Acquire)) as usize;
        let count = bytes.len().min(CAPACITY - waiting.min(CAPACITY));
        let (first, second) = halves(written, count);
        // SAFETY: both parts lie inside of the data; the reader does not touch them until the counter says that they are written.
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

    /// Copies as many bytes out as there are, and says how many.
    pub(super) fn read(&self, bytes: &mut [u8]) -> usize {
        let read = self.counter(READ).load(Ordering::Relaxed);
        let waiting = self.counter(0).load(Ordering::Acquire).wrapping_sub(read) as usize;
        let count = bytes.len().min(waiting.min(CAPACITY));
        let (first, second) = halves(read, count);
        // SAFETY: both parts lie inside of the data; the writer does not touch them until the counter says that they are read.
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

/// Where `count` bytes from a counter on lie: up to the end of the data, and how many more from its beginning.
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

    /// The memory, to be freed by the caller, and a ring for each end.
    fn rings() -> (*mut Memory, Ring, Ring) {
        // SAFETY: bytes may be zero.
        let memory = Box::into_raw(unsafe { Box::<Memory>::new_zeroed().assume_init() });
        // SAFETY: aligned, long enough, and used by one writer and one reader in each test.
        unsafe { (memory, Ring::new(memory.cast()), Ring::new(memory.cast())) }
    }

    fn free(memory: *mut Memory) {
        // SAFETY: from `into_raw`, and no ring is used any more.
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
    fn a_full_ring_takes_no_more_and_wraps_around() {
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
    fn a_counter_out_of_range_is_believed_as_far_as_the_ring_goes() {
        let (memory, writer, reader) = rings();
        writer.counter(0).store(u64::MAX / 2, Ordering::Release);
        assert_eq!(reader.read(&mut vec![0; 2 * CAPACITY]), CAPACITY);
        assert_eq!(writer.write(&[1]), 0);
        free(memory);
    }
}
