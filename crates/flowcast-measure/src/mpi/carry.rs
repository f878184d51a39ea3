//! What one rank does to carry a pattern of flows.
//!
//! All ranks meet at a barrier; rank 0 then names the common start by its own clock, and each rank knows by how much
//! its clock differs from that. The difference is found by exchanges of one byte before each pattern: the one with the
//! shortest round trip counts, and its middle is taken for the instant at which the other clock was read.

use std::time::{Duration, Instant};

use flowcast_model::cluster::flow::Flow;
use flowcast_units::{Node, Rank, Time};

use super::MpiError;
use super::library::{GENTLY, Mpi, ROOT, Request};

/// Pause between two polls of the messages in flight.
const LOOK: Duration = Duration::from_micros(50);
/// The common start is so far ahead that all ranks wait for it.
const LEAD: Duration = Duration::from_millis(20);
const EXCHANGES: usize = 12;

/// Tags above those of flows.
const CLOCK_TAG: i32 = 30_000;
const RESULT_TAG: i32 = 30_001;
/// Flows have the tags below these.
pub const MOST_FLOWS: usize = 30_000;

/// Start and end of a flow, from the common start on.
pub type Passage = (Time, Time);

/// A process that carries patterns with others.
#[derive(Debug)]
pub struct Carrier<'a> {
    mpi: &'a Mpi,
    origin: Instant,
    outgoing: Vec<u8>,
    incoming: Vec<Vec<u8>>,
}

/// A message in flight that this rank sends or receives.
struct Leg {
    flow: usize,
    is_receive: bool,
    request: Request,
}

impl<'a> Carrier<'a> {
    /// With a clock that starts now.
    pub fn new(mpi: &'a Mpi) -> Carrier<'a> {
        Carrier {
            mpi,
            origin: Instant::now(),
            outgoing: Vec::new(),
            incoming: Vec::new(),
        }
    }

    /// Carries flows between ranks (their nodes are ranks) once; rank 0 gets the passages of all of them.
    ///
    /// # Errors
    /// A call of MPI fails.
    pub fn carry(&mut self, flows: &[Flow]) -> Result<Vec<Passage>, MpiError> {
        let ahead = self.clock_difference()?;
        self.mpi.barrier()?;
        let mut start = if self.mpi.rank == ROOT {
            (self.clock() + LEAD.as_secs_f64()).to_le_bytes()
        } else {
            [0; 8]
        };
        self.mpi.broadcast(&mut start)?;
        let zero = f64::from_le_bytes(start) + ahead;
        let mut passages = vec![(Time::ZERO, Time::ZERO); flows.len()];
        self.take_part(flows, zero, &mut passages)?;
        self.mpi.barrier()?;
        self.gather(flows, &mut passages)?;
        Ok(passages)
    }

    /// Seconds since this rank began.
    fn clock(&self) -> f64 {
        self.origin.elapsed().as_secs_f64()
    }

    fn take_part(
        &mut self,
        flows: &[Flow],
        zero: f64,
        passages: &mut [Passage],
    ) -> Result<(), MpiError> {
        let (mpi, origin) = (self.mpi, self.origin);
        let since = || Time::from_seconds((origin.elapsed().as_secs_f64() - zero).max(0.0));
        let own = |node: Node| Rank(node.0) == mpi.rank;
        let mut legs = self.receives(flows)?;
        let largest = flows
            .iter()
            .filter(|flow| own(flow.src))
            .map(|flow| flow.size.0 as usize)
            .max()
            .unwrap_or(0);
        self.outgoing.resize(largest, 0);
        let mut to_send: Vec<usize> = (0..flows.len())
            .filter(|flow| own(flows[*flow].src))
            .collect();
        to_send.sort_by_key(|flow| std::cmp::Reverse((flows[*flow].start, *flow)));
        while !legs.is_empty() || !to_send.is_empty() {
            while let Some(flow) = to_send
                .last()
                .copied()
                .filter(|flow| since() >= flows[*flow].start && self.clock() >= zero)
            {
                to_send.pop();
                passages[flow].0 = since();
                let data = &self.outgoing[..flows[flow].size.0 as usize];
                let request = mpi.isend(data, Rank(flows[flow].dst.0), flow as i32)?;
                legs.push(Leg {
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
                    passages[leg.flow].1 = since();
                }
            }
            if !done {
                std::thread::sleep(LOOK);
            }
        }
        Ok(())
    }

    fn receives(&mut self, flows: &[Flow]) -> Result<Vec<Leg>, MpiError> {
        let mpi = self.mpi;
        let own: Vec<usize> = (0..flows.len())
            .filter(|flow| Rank(flows[*flow].dst.0) == mpi.rank)
            .collect();
        self.incoming
            .resize_with(own.len().max(self.incoming.len()), Vec::new);
        let mut legs = Vec::with_capacity(own.len());
        for (flow, buffer) in own.into_iter().zip(&mut self.incoming) {
            buffer.resize(flows[flow].size.0 as usize, 0);
            let request = mpi.irecv(buffer, Rank(flows[flow].src.0), flow as i32)?;
            legs.push(Leg {
                flow,
                is_receive: true,
                request,
            });
        }
        Ok(legs)
    }

    /// Starts are known to senders, ends to receivers; rank 0 wants both.
    fn gather(&self, flows: &[Flow], passages: &mut [Passage]) -> Result<(), MpiError> {
        if self.mpi.rank != ROOT {
            let bytes: Vec<u8> = passages
                .iter()
                .flat_map(|(start, end)| [start.as_seconds(), end.as_seconds()])
                .flat_map(f64::to_le_bytes)
                .collect();
            return self
                .mpi
                .wait(self.mpi.isend(&bytes, ROOT, RESULT_TAG)?, GENTLY);
        }
        let mut bytes = vec![0; passages.len() * 16];
        for rank in self.mpi.others() {
            self.mpi
                .wait(self.mpi.irecv(&mut bytes, rank, RESULT_TAG)?, GENTLY)?;
            let seconds = |at: usize| {
                Time::from_seconds(f64::from_le_bytes(
                    bytes[at * 8..at * 8 + 8].try_into().expect("eight bytes"),
                ))
            };
            for (at, flow) in flows.iter().enumerate() {
                if Rank(flow.src.0) == rank {
                    passages[at].0 = seconds(2 * at);
                }
                if Rank(flow.dst.0) == rank {
                    passages[at].1 = seconds(2 * at + 1);
                }
            }
        }
        Ok(())
    }

    /// By how many seconds this rank's clock is ahead of rank 0's.
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

    /// The first question is waited for asleep: rank 0 asks the others one after the other.
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
