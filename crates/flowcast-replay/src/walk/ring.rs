//! A ring of arrivals from one thread to another. Neither thread waits for the other. The writer publishes several arrivals
//! at a time, and the reader returns several places at a time. Each thread thus rarely touches the other's cache lines.

use std::sync::atomic::{
    AtomicU32, AtomicU64, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release, SeqCst},
};

use flowcast_program::slot::Slot;
use flowcast_units::Time;

/// Number of places, a power of two.
const PLACES: usize = 1 << 12;

/// Maximum number of arrivals that are published together.
const TOGETHER: usize = 8;

/// Separates data written by two threads into different cache lines, of which processors fetch two at a time.
#[repr(align(128))]
#[derive(Default)]
struct Apart<T>(T);

#[derive(Default)]
struct RingPlace {
    slot: AtomicU32,
    arrival: AtomicU64,
}

/// State shared by both threads.
pub(super) struct SpanRing {
    places: Box<[RingPlace]>,
    /// Number of arrivals ever published.
    written: Apart<AtomicUsize>,
    /// Number of places ever returned.
    read: Apart<AtomicUsize>,
}

impl SpanRing {
    pub(super) fn new() -> SpanRing {
        let places = std::iter::repeat_with(RingPlace::default)
            .take(PLACES)
            .collect();
        SpanRing {
            places,
            written: Apart::default(),
            read: Apart::default(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.read.0.load(SeqCst) == self.written.0.load(SeqCst)
    }
}

/// The writing thread's end.
pub(super) struct RingWriter<'a> {
    ring: &'a SpanRing,
    written: usize,
    shown: usize,
    /// Number of returned places at the last look at the ring.
    read: usize,
}

impl<'a> RingWriter<'a> {
    /// Creates the writer of a new ring.
    pub(super) fn new(ring: &'a SpanRing) -> RingWriter<'a> {
        RingWriter {
            ring,
            written: 0,
            shown: 0,
            read: 0,
        }
    }

    /// Adds an arrival, which the reader may see only after [`RingWriter::show`]; returns `false` if the ring is full.
    pub(super) fn write(&mut self, slot: Slot, arrival: Time) -> bool {
        if self.written - self.read == PLACES {
            self.read = self.ring.read.0.load(Acquire);
            if self.written - self.read == PLACES {
                return false;
            }
        }
        let place = &self.ring.places[self.written % PLACES];
        place.slot.store(slot.0, Relaxed);
        place.arrival.store(arrival.as_nanos().to_bits(), Relaxed);
        self.written += 1;
        if self.written - self.shown == TOGETHER {
            self.show();
        }
        true
    }

    /// Publishes the added arrivals.
    pub(super) fn show(&mut self) {
        if self.shown != self.written {
            self.shown = self.written;
            self.ring.written.0.store(self.written, Release);
        }
    }
}

/// The reading thread's end.
pub(super) struct RingReader<'a> {
    ring: &'a SpanRing,
    read: usize,
    /// Number of published arrivals at the last look at the ring.
    written: usize,
}

impl<'a> RingReader<'a> {
    /// Creates the reader of a new ring.
    pub(super) fn new(ring: &'a SpanRing) -> RingReader<'a> {
        RingReader {
            ring,
            read: 0,
            written: 0,
        }
    }

    /// `true` if there is an arrival to read.
    pub(super) fn has_any(&mut self) -> bool {
        if self.read == self.written {
            self.ring.read.0.store(self.read, Release);
            self.written = self.ring.written.0.load(Acquire);
        }
        self.read != self.written
    }

    /// Removes and returns an arrival; `None` if there is none.
    pub(super) fn read(&mut self) -> Option<(Slot, Time)> {
        if !self.has_any() {
            return None;
        }
        let place = &self.ring.places[self.read % PLACES];
        let (slot, arrival) = (
            Slot(place.slot.load(Relaxed)),
            f64::from_bits(place.arrival.load(Relaxed)),
        );
        self.read += 1;
        Some((slot, Time::from_nanos(arrival)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrivals_leave_in_order_and_none_is_lost() {
        let ring = SpanRing::new();
        let count = 10 * PLACES as u32;
        let at = |slot: Slot| Time::from_nanos(f64::from(slot.0) / 2.0);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut writer = RingWriter::new(&ring);
                for slot in (0..count).map(Slot) {
                    while !writer.write(slot, at(slot)) {
                        std::thread::yield_now();
                    }
                }
                writer.show();
            });
            let mut reader = RingReader::new(&ring);
            for slot in (0..count).map(Slot) {
                while !reader.has_any() {
                    std::thread::yield_now();
                }
                assert_eq!(reader.read(), Some((slot, at(slot))));
            }
            assert_eq!(reader.read(), None);
        });
        assert!(ring.is_empty());
    }

    #[test]
    fn a_full_ring_accepts_no_arrival_until_one_is_read() {
        let ring = SpanRing::new();
        let (mut writer, mut reader) = (RingWriter::new(&ring), RingReader::new(&ring));
        let all = || (0..PLACES as u32).map(Slot);
        assert!(all().all(|slot| writer.write(slot, Time::ZERO)));
        assert!(!writer.write(Slot(0), Time::ZERO) && !ring.is_empty());
        assert!(all().all(|slot| reader.read() == Some((slot, Time::ZERO))) && !reader.has_any());
        assert!(writer.write(Slot(0), Time::ZERO) && ring.is_empty());
        writer.show();
        assert!(!ring.is_empty() && reader.has_any());
    }
}
