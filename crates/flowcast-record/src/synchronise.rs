//! Common time axis for ranks on several hosts. Each rank learns the lead of rank 0's clock over its own at the start and at
//! the end of the recording, so the reader can interpolate linearly. This is done only on request, because the recorders
//! exchange additional messages for it.
//!
//! Ranks learn along a binomial tree (HCA3; Hunold and Carpen-Amarie, CLUSTER 2018): a guide answers with its estimate of
//! rank 0's time. The exchange with the shortest round trip counts.

use std::{env, ffi::c_int, sync::OnceLock};

use crate::{
    clock,
    library::{ExchangeFunctions, LoadedMpi},
};

/// Environment variable that requests the synchronisation of clocks.
const CLOCKS: &str = "FLOWCAST_RECORD_CLOCKS";
const EXCHANGES: usize = 100;
const TAG: c_int = 1;

/// Rank 0's clock relative to this one's at one moment.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Reading {
    /// Lead of rank 0's clock, in nanoseconds.
    pub ahead: i64,
    /// Half the shortest round trips between this rank and rank 0, in nanoseconds; 0 at rank 0 itself.
    pub known_to: u64,
}

/// Communicator for the synchronisation alone, made by the first reading; 0 if there is none.
static OWN: OnceLock<usize> = OnceLock::new();

/// Reads rank 0's clock, together with all other ranks. Returns `None` if it was not requested or is impossible.
pub(crate) fn read_clock(library: &LoadedMpi) -> Option<Reading> {
    if env::var_os(CLOCKS).is_none_or(|value| value.is_empty() || value == "0") {
        return None;
    }
    let exchange = library.exchange()?;
    let communicator = *OWN.get_or_init(|| exchange.duplicate(library.world).unwrap_or(0));
    if communicator == 0 {
        return None;
    }
    let (rank, size) = (library.world_rank(), library.world_size());
    let mut reading = Reading::default();
    let mut reach = (size.max(1) as u32).next_power_of_two() as c_int;
    while reach > 0 {
        let talk = PeerLink {
            exchange: &exchange,
            communicator,
        };
        match rank % (2 * reach) {
            0 if rank + reach < size => talk.guide(rank + reach, reading)?,
            behind if behind == reach => reading = talk.learn(rank - reach)?,
            _ => {}
        }
        reach /= 2;
    }
    Some(reading)
}

struct PeerLink<'a> {
    exchange: &'a ExchangeFunctions,
    communicator: usize,
}

impl PeerLink<'_> {
    /// Sends rank 0's time and its error bound to another rank.
    fn guide(&self, other: c_int, own: Reading) -> Option<()> {
        for _ in 0..EXCHANGES {
            self.receive(other)?;
            self.send(other, clock::monotonic().wrapping_add_signed(own.ahead))?;
        }
        self.receive(other)?;
        self.send(other, own.known_to)
    }

    fn learn(&self, guide: c_int) -> Option<Reading> {
        let mut best = (u64::MAX, 0);
        for _ in 0..EXCHANGES {
            let asked = clock::monotonic();
            self.send(guide, 0)?;
            let told = self.receive(guide)?;
            let took = clock::monotonic().saturating_sub(asked);
            best = best.min((took, told.wrapping_sub(asked + took / 2).cast_signed()));
        }
        self.send(guide, 0)?;
        Some(Reading {
            ahead: best.1,
            known_to: self.receive(guide)?.saturating_add(best.0 / 2),
        })
    }

    fn send(&self, other: c_int, value: u64) -> Option<()> {
        self.exchange.send(value, other, TAG, self.communicator)
    }

    fn receive(&self, other: c_int) -> Option<u64> {
        self.exchange.receive(other, TAG, self.communicator)
    }
}
