//! Part of one rank in carrying a pattern of flows.
//!
//! All ranks meet at a barrier. Then rank 0 announces the common start on its own clock, and each rank converts it with the
//! difference between the clocks. The difference is measured before each pattern by exchanges of eight bytes: only the
//! exchange with the shortest round trip is used, and its middle is taken as the instant at which the other clock was read.

use std::time::{Duration, Instant};

use flowcast_units::Rank;
use serde::{Deserialize, Serialize};

use super::{
    MpiError,
    library::{GENTLY, Mpi, ROOT, Request},
};

/// Pause between two polls of the messages in flight.
const LOOK: Duration = Duration::from_micros(50);
/// Lead time of the common start, in which all ranks begin to wait for it.
const LEAD: Duration = Duration::from_millis(20);
const EXCHANGES: usize = 12;

/// Tags above the tags of flows.
const CLOCK_TAG: i32 = 30_000;
const RESULT_TAG: i32 = 30_001;
/// Limit for the number of flows, whose tags are below this number.
pub const MOST_FLOWS: usize = 30_000;

/// Message between two ranks. In a line, it may be a list of its four numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CarriedMessage {
    /// Number of the sending rank, from 0.
    pub from: u32,
    /// Number of the receiving rank, from 0.
    pub to: u32,
    /// Size of the message, in bytes.
    pub bytes: u64,
    /// Time at which the sender calls, in ns since the common start.
    pub start: u64,
}

/// Start and end of a message, in ns since the common start.
type CarryTimes = (u64, u64);

/// Process that carries patterns together with the other ranks.
#[derive(Debug)]
pub struct MpiCarrier<'a> {
    mpi: &'a Mpi,
    origin: Instant,
    outgoing: Vec<u8>,
    incoming: Vec<Vec<u8>>,
}

/// Message in flight that this rank sends or receives.
struct CarriedLeg {
    flow: usize,
    is_receive: bool,
    request: Request,
}

impl<'a> MpiCarrier<'a> {
    /// Creates a carrier with a clock that starts now.
    pub fn new(mpi: &'a Mpi) -> MpiCarrier<'a> {
        MpiCarrier {
            mpi,
            origin: Instant::now(),
            outgoing: Vec::new(),
            incoming: Vec::new(),
        }
    }

    /// Carries messages between ranks once. Rank 0 gets start and end of all messages, in ns since the common start.
    ///
    /// # Errors
    /// A call of MPI fails.
    pub fn carry(&mut self, flows: &[CarriedMessage]) -> Result<Vec<(u64, u64)>, MpiError> {
        let ahead = self.clock_difference()?;
        self.mpi.barrier()?;
        let mut start = if self.mpi.rank == ROOT {
            (self.clock() + LEAD.as_secs_f64()).to_le_bytes()
        } else {
            [0; 8]
        };
        self.mpi.broadcast(&mut start)?;
        let zero = f64::from_le_bytes(start) + ahead;
        let mut times = vec![(0, 0); flows.len()];
        self.take_part(flows, zero, &mut times)?;
        self.mpi.barrier()?;
        self.gather(flows, &mut times)?;
        Ok(times)
    }

    /// Returns the seconds since this rank began.
    fn clock(&self) -> f64 {
        self.origin.elapsed().as_secs_f64()
    }

    fn take_part(
        &mut self,
        flows: &[CarriedMessage],
        zero: f64,
        times: &mut [CarryTimes],
    ) -> Result<(), MpiError> {
        let (mpi, origin) = (self.mpi, self.origin);
        let since = || ((origin.elapsed().as_secs_f64() - zero).max(0.0) * 1e9).round() as u64;
        let mut legs = self.receives(flows)?;
        let largest = flows
            .iter()
            .filter(|flow| flow.from == mpi.rank.0)
            .map(|flow| flow.bytes as usize)
            .max()
            .unwrap_or(0);
        self.outgoing.resize(largest, 0);
        let mut to_send: Vec<usize> = (0..flows.len())
            .filter(|flow| flows[*flow].from == mpi.rank.0)
            .collect();
        to_send.sort_by_key(|flow| std::cmp::Reverse((flows[*flow].start, *flow)));
        while !legs.is_empty() || !to_send.is_empty() {
            while let Some(flow) = to_send
                .last()
                .copied()
                .filter(|flow| since() >= flows[*flow].start && self.clock() >= zero)
            {
                to_send.pop();
                times[flow].0 = since();
                let data = &self.outgoing[..flows[flow].bytes as usize];
                let request = mpi.isend(data, Rank(flows[flow].to), flow as i32)?;
                legs.push(CarriedLeg {
                    flow,
                    is_receive: false,
                    request,
                });
            }
            let mut done = false;
            let mut at = 0;
            while at < legs.len() {
                if !mpi.is_done(&mut legs[at].request)? {
                    at += 1;
                    continue;
                }
                let leg = legs.swap_remove(at);
                done = true;
                if leg.is_receive {
                    times[leg.flow].1 = since();
                }
            }
            if !done {
                std::thread::sleep(LOOK);
            }
        }
        Ok(())
    }

    fn receives(&mut self, flows: &[CarriedMessage]) -> Result<Vec<CarriedLeg>, MpiError> {
        let mpi = self.mpi;
        let own: Vec<usize> = (0..flows.len())
            .filter(|flow| flows[*flow].to == mpi.rank.0)
            .collect();
        self.incoming
            .resize_with(own.len().max(self.incoming.len()), Vec::new);
        let mut legs = Vec::with_capacity(own.len());
        for (flow, buffer) in own.into_iter().zip(&mut self.incoming) {
            buffer.resize(flows[flow].bytes as usize, 0);
            let request = mpi.irecv(buffer, Rank(flows[flow].from), flow as i32)?;
            legs.push(CarriedLeg {
                flow,
                is_receive: true,
                request,
            });
        }
        Ok(legs)
    }

    /// Collects the times at rank 0: the senders know the starts, the receivers know the ends.
    fn gather(&self, flows: &[CarriedMessage], times: &mut [CarryTimes]) -> Result<(), MpiError> {
        if self.mpi.rank != ROOT {
            let bytes: Vec<u8> = times
                .iter()
                .flat_map(|(start, end)| [*start, *end])
                .flat_map(u64::to_le_bytes)
                .collect();
            return self
                .mpi
                .wait(self.mpi.isend(&bytes, ROOT, RESULT_TAG)?, GENTLY);
        }
        let mut bytes = vec![0; times.len() * 16];
        for rank in self.mpi.others() {
            self.mpi
                .wait(self.mpi.irecv(&mut bytes, rank, RESULT_TAG)?, GENTLY)?;
            let (numbers, _) = bytes.as_chunks::<8>();
            for (at, flow) in flows.iter().enumerate() {
                if flow.from == rank.0 {
                    times[at].0 = u64::from_le_bytes(numbers[2 * at]);
                }
                if flow.to == rank.0 {
                    times[at].1 = u64::from_le_bytes(numbers[2 * at + 1]);
                }
            }
        }
        Ok(())
    }

    /// Returns the lead of this rank's clock over rank 0's clock, in seconds.
    fn clock_difference(&self) -> Result<f64, MpiError> {
        if self.mpi.rank != ROOT {
            return self.answer_clock();
        }
        for rank in self.mpi.others() {
            self.read_clock(rank)?;
        }
        Ok(0.0)
    }

    fn read_clock(&self, rank: Rank) -> Result<(), MpiError> {
        let (mut shortest, mut ahead) = (f64::INFINITY, 0.0);
        for _ in 0..EXCHANGES {
            let sent = self.clock();
            let mut answer = [0; 8];
            let coming = self.mpi.irecv(&mut answer, rank, CLOCK_TAG)?;
            self.mpi
                .wait(self.mpi.isend(&[0; 8], rank, CLOCK_TAG)?, Duration::ZERO)?;
            self.mpi.wait(coming, Duration::ZERO)?;
            let came = self.clock();
            if came - sent < shortest {
                (shortest, ahead) = (
                    came - sent,
                    f64::from_le_bytes(answer) - f64::midpoint(sent, came),
                );
            }
        }
        self.mpi.wait(
            self.mpi.isend(&ahead.to_le_bytes(), rank, CLOCK_TAG)?,
            GENTLY,
        )
    }

    /// Answers rank 0's questions for the time. The rank sleeps until the first question, because rank 0 asks one rank after
    /// the other.
    fn answer_clock(&self) -> Result<f64, MpiError> {
        let mut asked = [0; 8];
        for exchange in 0..EXCHANGES {
            let pause = if exchange == 0 {
                GENTLY
            } else {
                Duration::ZERO
            };
            self.mpi
                .wait(self.mpi.irecv(&mut asked, ROOT, CLOCK_TAG)?, pause)?;
            let now = self.clock().to_le_bytes();
            self.mpi
                .wait(self.mpi.isend(&now, ROOT, CLOCK_TAG)?, Duration::ZERO)?;
        }
        self.mpi
            .wait(self.mpi.irecv(&mut asked, ROOT, CLOCK_TAG)?, GENTLY)?;
        Ok(f64::from_le_bytes(asked))
    }
}
