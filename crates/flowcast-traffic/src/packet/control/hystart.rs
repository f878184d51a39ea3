//! HyStart: ends cubic's slow start before packets are lost (Ha and Rhee, Computer Networks 55(9), 2011; the constants are
//! those of Linux).
//!
//! In each round of at least 16 packets, slow start ends when
//! - the train of ACKs, each within 2 ms of the one before, is longer than half the sum of the least round trip and the time
//!   of four bursts of 64 KiB (at most 1 ms), or
//! - the least of the first eight round trips exceeds the least of all by an eighth of it, at least 4 ms and at most 16 ms.
//!
//! On fast local links the first condition is met at 16 packets: the ACKs of a window that keeps the link busy are a train
//! that is longer than any round trip without queues. Cubic therefore stays below windows that reno fills.

use super::{
    super::{picos::Picos, shift::Shift},
    Acknowledgement, CongestionWindow,
};

const LEAST_WINDOW: u32 = 16;
const SAMPLES: u32 = 8;
const TRAIN_GAP: Picos = Picos::from_millis(2);
const BURSTS: f64 = 4.0 * 65_536.0;
const MOST_FOR_BURSTS: Picos = Picos::from_millis(1);
const LEAST_RISE: Picos = Picos::from_millis(4);
const MOST_RISE: Picos = Picos::from_millis(16);

/// One round of slow start.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Hystart {
    /// Payload of a packet.
    segment: u32,
    begun: Picos,
    /// First packet of the next round.
    end: u32,
    last_answer: Picos,
    least_now: Picos,
    samples: u32,
}

impl Hystart {
    pub(super) fn new(segment: u32) -> Hystart {
        Hystart {
            segment,
            begun: Picos::ZERO,
            end: 0,
            last_answer: Picos::ZERO,
            least_now: Picos::NEVER,
            samples: 0,
        }
    }

    pub(super) fn segment(&self) -> u32 {
        self.segment
    }

    /// Advances all times and numbers.
    pub(super) fn shift(&mut self, by: Shift) {
        (self.begun, self.last_answer) = (self.begun + by.time, self.last_answer + by.time);
        self.end += by.packets;
    }

    /// Returns `true` if slow start is over; `least` is the connection's least round trip.
    pub(super) fn is_over(
        &mut self,
        window: &CongestionWindow,
        heard: &Acknowledgement,
        least: Picos,
        round_trip: Picos,
    ) -> bool {
        let (first_missing, first_unsent) = heard.reach;
        if first_missing >= self.end {
            *self = Hystart {
                begun: heard.now,
                end: first_unsent,
                last_answer: heard.now,
                ..Hystart::new(self.segment)
            };
        }
        if window.packets < LEAST_WINDOW {
            return false;
        }
        // During slow start, Linux sends at twice the window per round trip.
        let bytes = 2.0 * f64::from(window.packets) * f64::from(self.segment);
        let bursts = round_trip.scaled(BURSTS / bytes).min(MOST_FOR_BURSTS);
        let train = self.is_long_train(heard.now, (least + bursts).scaled(0.5));
        self.least_now = self.least_now.min(round_trip);
        if self.samples < SAMPLES {
            self.samples += 1;
            return train;
        }
        train || self.least_now > least + least.scaled(0.125).clamp(LEAST_RISE, MOST_RISE)
    }

    fn is_long_train(&mut self, now: Picos, longest: Picos) -> bool {
        if now.since(self.last_answer) > TRAIN_GAP {
            return false;
        }
        self.last_answer = now;
        now.since(self.begun) > longest
    }
}
