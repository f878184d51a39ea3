//! A link: frames leave it one after another, in the order of their arrival.
//!
//! A frame that arrives at `t` at a link that is busy until `free` leaves at `max(free, t) + bytes/rate`, regardless of
//! later frames. Its departure is thus known when it arrives, so that the queue needs no events except departures, of which
//! only the first is pending. The waiting bytes are `(free - t) * rate`, so that a full queue is detected without a count of
//! bytes.

use super::{FRAME_OVERHEAD, frame::Frame, picos::Picos};
use flowcast_units::{Bytes, Rate, Time};

/// Properties of a link.
#[derive(Debug, Clone, Copy)]
pub(super) struct LinkKind {
    /// Rate of frames on the wire, headers included.
    pub rate: Rate,
    /// Payload of a full packet.
    pub segment: Bytes,
    /// Latency after the link.
    pub latency: Time,
    /// Largest number of waiting bytes, including the frame in flight; `None` for no limit.
    pub queue: Option<Bytes>,
    /// Number of bytes that pass without delay after a pause: the size of a token bucket.
    pub burst: Bytes,
}

/// State of a link.
#[derive(Debug, Clone)]
pub(super) struct PacketLink {
    /// Time at which the link would be free without its token bucket, which lets frames leave earlier.
    free: Picos,
    /// Last departure, if there is a token bucket.
    passed: Picos,
    full_frame: Picos,
    ack: Picos,
    latency: Picos,
    longest_wait: Picos,
    /// Time in which the token bucket fills. Frames leave earlier by this time, but after their arrival.
    burst: Picos,
    /// Last departure that was delayed.
    last: Picos,
    picos_per_byte: f64,
    /// Pending departures, in a ring whose size is a power of two.
    leaving: Box<[(Picos, Frame)]>,
    head: usize,
    waiting: usize,
    /// Number of frames so far, and number of frames that were dropped at a full queue.
    pub(super) carried: u64,
    pub(super) dropped: u64,
}

impl PacketLink {
    pub(super) fn new(kind: LinkKind) -> PacketLink {
        let picos_per_byte = 1e12 / kind.rate.as_bytes_per_second();
        let mut link = PacketLink {
            free: Picos::ZERO,
            passed: Picos::ZERO,
            full_frame: Picos::ZERO,
            ack: Picos::ZERO,
            latency: Picos::from_time(kind.latency),
            longest_wait: Picos::NEVER,
            burst: Picos((kind.burst.0 as f64 * picos_per_byte) as u64),
            last: Picos::ZERO,
            picos_per_byte,
            leaving: vec![(Picos::NEVER, Frame::ack(0, 0)); 16].into(),
            head: 0,
            waiting: 0,
            carried: 0,
            dropped: 0,
        };
        link.full_frame = link.service(kind.segment);
        link.ack = link.service(Bytes(0));
        // A full frame fits into an empty queue, regardless of rounding.
        link.longest_wait = kind.queue.map_or(Picos::NEVER, |queue| {
            Picos((queue.0 as f64 * picos_per_byte) as u64).max(link.full_frame)
        });
        link
    }

    /// Time for which a frame with this payload occupies the link.
    pub(super) fn service(&self, payload: Bytes) -> Picos {
        Picos((((payload.0 + FRAME_OVERHEAD) as f64 * self.picos_per_byte).round() as u64).max(1))
    }

    #[inline]
    pub(super) fn full_frame(&self) -> Picos {
        self.full_frame
    }

    #[inline]
    pub(super) fn ack(&self) -> Picos {
        self.ack
    }

    /// Time of an ACK on an idle link, whose tokens it can use.
    pub(super) fn lone_ack(&self) -> Picos {
        self.ack.since(self.burst)
    }

    /// Admits a frame that arrives at `now` from another link. Returns its departure, latency included, or `None` if the
    /// queue is full.
    #[inline]
    pub(super) fn admit(&mut self, now: Picos, service: Picos) -> Option<Picos> {
        if self.wait(now) + service > self.longest_wait {
            return None;
        }
        Some(self.admit_own(now, service))
    }

    /// Admits a frame of the host at which the link begins, and returns its departure like [`PacketLink::admit`]. The queue
    /// of the host has no limit.
    #[inline]
    pub(super) fn admit_own(&mut self, now: Picos, service: Picos) -> Picos {
        self.free = self.free.max(now) + service;
        if self.burst == Picos::ZERO {
            return self.free + self.latency;
        }
        self.passed = (self.free - self.burst)
            .max(now + Picos(1))
            .max(self.passed + Picos(1));
        self.passed + self.latency
    }

    /// Time for which a frame that arrives at `at` would wait behind those that have arrived before.
    #[inline]
    pub(super) fn wait(&self, at: Picos) -> Picos {
        self.free.since(at + self.burst)
    }

    /// Delays a departure by `later`, or more if it would otherwise not be after the previous departure.
    #[inline]
    pub(super) fn put_off(&mut self, departure: Picos, later: Picos) -> Picos {
        self.last = (departure + later).max(self.last + Picos(1));
        self.last
    }

    /// Adds a departure that is later than all others. Returns `true` if it is the only one.
    #[inline]
    pub(super) fn push(&mut self, at: Picos, frame: Frame) -> bool {
        if self.waiting == self.leaving.len() {
            self.grow();
        }
        let mask = self.leaving.len() - 1;
        self.leaving[(self.head + self.waiting) & mask] = (at, frame);
        self.waiting += 1;
        self.waiting == 1
    }

    /// Takes the first departure, which must exist. Returns its frame and the time of the next departure.
    #[inline]
    pub(super) fn pop(&mut self) -> (Frame, Picos) {
        let mask = self.leaving.len() - 1;
        let frame = self.leaving[self.head & mask].1;
        self.head = (self.head + 1) & mask;
        self.waiting -= 1;
        (
            frame,
            if self.waiting == 0 {
                Picos::NEVER
            } else {
                self.leaving[self.head & mask].0
            },
        )
    }

    /// Time that the waiting frames need.
    pub(super) fn waiting(&self, now: Picos) -> Picos {
        self.free.since(now)
    }

    /// `true` if the link has as many waiting frames, with the same remaining times, as in `then`, its state at the time
    /// `earlier`.
    pub(super) fn is_alike(&self, now: Picos, then: &PacketLink, earlier: Picos) -> bool {
        let waits =
            |time: fn(&PacketLink) -> Picos| time(self).since(now) == time(then).since(earlier);
        self.waiting == then.waiting
            && waits(|link| link.free)
            && waits(|link| link.passed)
            && waits(|link| link.last)
    }

    /// `true` if the same frames wait as in `then`, with times later by `later` and numbers larger by `packets`.
    pub(super) fn repeats(&self, then: &PacketLink, later: Picos, packets: &[u32]) -> bool {
        self.departures().zip(then.departures()).all(
            |((at, frame), (earlier, before)): (&(Picos, Frame), &(Picos, Frame))| {
                *at == *earlier + later
                    && *frame == before.advanced(packets[frame.connection() as usize])
            },
        )
    }

    /// Advances the link by `periods` periods, if `then` was its state one period ago.
    pub(super) fn skip(&mut self, then: &PacketLink, periods: u32, period: Picos, packets: &[u32]) {
        self.carried += u64::from(periods) * (self.carried - then.carried);
        self.dropped += u64::from(periods) * (self.dropped - then.dropped);
        let time = period * u64::from(periods);
        (self.free, self.passed, self.last) =
            (self.free + time, self.passed + time, self.last + time);
        let mask = self.leaving.len() - 1;
        for place in self.head..self.head + self.waiting {
            let (at, frame) = &mut self.leaving[place & mask];
            *at += time;
            *frame = frame.advanced(packets[frame.connection() as usize] * periods);
        }
    }

    /// Time at which the first frame leaves.
    pub(super) fn first(&self) -> Picos {
        self.departures().next().map_or(Picos::NEVER, |(at, _)| *at)
    }

    fn departures(&self) -> impl Iterator<Item = &(Picos, Frame)> {
        let mask = self.leaving.len() - 1;
        (self.head..self.head + self.waiting).map(move |place| &self.leaving[place & mask])
    }

    #[cold]
    fn grow(&mut self) {
        self.leaving.rotate_left(self.head);
        self.head = 0;
        let mut larger = self.leaving.to_vec();
        larger.resize(2 * larger.len(), larger[0]);
        self.leaving = larger.into();
    }
}
