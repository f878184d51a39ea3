//! Differences from run to run: starts of messages, times of frames from their interface to the switch, and times that the
//! hosts themselves add or save.
//!
//! Deterministic drop-tail queues lock phase: of two flows that arrive at the rate at which the queue is emptied, one loses
//! packets again and again. A random delay of each packet, up to the time of one frame on the link, prevents this (Floyd
//! and Jacobson, Internetworking 3(3), 1992, section 4). The delay is not longer than the frame would wait at the next link
//! anyway, so a message over idle links takes no longer. Frames stay in order, and no capacity is lost.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::picos::Picos;

/// Disturbances of one run.
#[derive(Debug, Clone)]
pub(super) struct Jitter(Pcg64Mcg);

impl Jitter {
    pub(super) fn from_seed(seed: u64) -> Jitter {
        Jitter(Pcg64Mcg::seed_from_u64(seed))
    }

    /// Random delay of a message's start.
    pub(super) fn of_start(&mut self, most: Picos) -> Picos {
        self.up_to(most)
    }

    /// Random delay of a frame that leaves its interface.
    #[inline]
    pub(super) fn of_frame(&mut self, frame: Picos) -> Picos {
        self.up_to(frame)
    }

    /// Random factor of a duration, whose logarithm has this standard deviation (Box and Muller 1958).
    pub(super) fn of_duration(&mut self, deviation: f64) -> f64 {
        let [radius, angle] = [self.0.random::<f64>(), self.0.random::<f64>()];
        let normal = (-2.0 * (1.0 - radius).ln()).sqrt() * (std::f64::consts::TAU * angle).cos();
        (deviation * normal).exp()
    }

    #[inline]
    fn up_to(&mut self, most: Picos) -> Picos {
        // The upper half of the product of two 64-bit numbers is evenly distributed, without a division.
        Picos(((u128::from(self.0.random::<u64>()) * u128::from(most.0)) >> 64) as u64)
    }
}
