//! What differs from run to run: when messages start, and how long a host takes to put a frame on its wire.
//!
//! Deterministic drop-tail queues can lock phase: the same flow loses again and again. Real hosts take a random time for
//! each packet, which breaks this; up to one frame's time on the link is enough (Floyd and Jacobson, Internetworking
//! 3(3), 1992, section 4). A busy interface hides it, and no capacity is lost.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::picos::Picos;

/// A run's own disturbances.
#[derive(Debug, Clone)]
pub(super) struct Jitter(Pcg64Mcg);

impl Jitter {
    pub(super) fn from_seed(seed: u64) -> Jitter {
        Jitter(Pcg64Mcg::seed_from_u64(seed))
    }

    /// How much later a message starts.
    pub(super) fn of_start(&mut self, most: Picos) -> Picos {
        self.up_to(most)
    }

    /// How much later a frame is at its interface.
    #[inline]
    pub(super) fn of_frame(&mut self, frame: Picos) -> Picos {
        self.up_to(frame)
    }

    #[inline]
    fn up_to(&mut self, most: Picos) -> Picos {
        Picos((self.0.random::<f64>() * most.0 as f64) as u64)
    }
}
