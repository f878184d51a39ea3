//! Synthetic workloads, generated step by step: memory holds at most one iteration of one rank.

use std::io;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::{StepMessage, StreamStep};
use flowcast_program::{
    Trace, TraceError,
    build::{Channel, EAGER, NON_BLOCKING, RankBuilder, RecordFault},
    folded::{Folded, FoldedPart},
    link::link_generated,
    opcodes::{Record, is_duration},
    program::{MessageClass, Program, SendMode},
};
use flowcast_units::{Bytes, Rank, Time, named};

named! {
    /// Communication pattern of the ranks in each iteration.
    pub enum Workload {
        /// Exchange with four neighbours on a two-dimensional torus.
        Halo = "halo",
        /// Send to the right neighbour, receive from the left one.
        Shift = "shift",
        /// One message that travels around the ring. Each rank computes before it passes the message on.
        Chain = "chain",
        /// `ceil(log2 P)` rounds; in round `k`, messages go to the rank at distance `2^k`.
        Dissemination = "dissemination",
        /// Exchange of each rank with every other rank.
        Alltoall = "alltoall",
        /// Exchange of each rank with every other rank in its row of a grid. The grid is as square as the number of ranks
        /// allows.
        Rows = "rows",
        /// A broadcast from rank 0 over a binomial tree.
        BinomialBroadcast = "binomial-broadcast",
        /// Training of a neural network by replicas of a pipeline of stages. Each stage passes on as many microbatches as
        /// there are stages, alternating between one forward and one backward. Then the replicas of each stage reduce their
        /// gradients over a ring.
        Training = "training",
    }
}

/// Size and length of a workload.
///
/// ```
/// use flowcast_program::Trace;
/// use flowcast_formats::convert::generate::{ProgramShape, Workload};
/// use flowcast_units::{Bytes, Time};
///
/// let shape = ProgramShape {
///     workload: Workload::Shift,
///     ranks: 4,
///     iterations: 100,
///     size: Bytes(8),
///     compute: Time::from_micros(1.0),
///     jitter: 0.0,
///     seed: 1,
///     period: 0,
/// };
/// let trace = shape.trace()?;
/// assert_eq!((trace.ranks(), trace.messages()), (4, 400));
/// assert!(matches!(trace, Trace::Folded(_)), "all iterations are alike");
/// # Ok::<(), flowcast_program::TraceError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ProgramShape {
    /// Communication pattern of each iteration.
    pub workload: Workload,
    /// Number of ranks, at least 1.
    pub ranks: u32,
    /// Number of repetitions of computation and messages; 0 gives empty ranks.
    pub iterations: u32,
    /// Size of each message, in bytes.
    pub size: Bytes,
    /// Computation before each iteration's messages.
    pub compute: Time,
    /// Largest variation of the computation, as a fraction of it. The variation is uniformly distributed. The result is
    /// rounded to whole nanoseconds.
    pub jitter: f64,
    /// Seed of the random numbers.
    pub seed: u64,
    /// Number of iterations after which the computations repeat. If it is 0, they never repeat.
    pub period: u32,
}

impl ProgramShape {
    /// Returns the trace in memory. Repeated iterations form a loop.
    ///
    /// # Errors
    /// [`TraceError::Limit`] for more messages than can be numbered.
    pub fn trace(self) -> Result<Trace, TraceError> {
        let period = if self.jitter == 0.0 { 1 } else { self.period };
        if period == 0 || period >= self.iterations {
            return self.program().map(Trace::Program);
        }
        let body = vec![FoldedPart::Once(
            ProgramShape {
                iterations: period,
                ..self
            }
            .program()?,
        )];
        let mut parts = vec![FoldedPart::Loop(u64::from(self.iterations / period), body)];
        let rest = self.iterations % period;
        if rest > 0 {
            parts.push(FoldedPart::Once(
                ProgramShape {
                    iterations: rest,
                    ..self
                }
                .program()?,
            ));
        }
        Folded::new(parts).map(Trace::Folded)
    }

    /// Checks that every reader accepts the result.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] for computations that vary beyond [`Time::LONGEST`].
    pub(super) fn check(self) -> io::Result<()> {
        // The backward pass of a layer takes twice as long as its forward pass.
        let factor = if self.workload == Workload::Training {
            2.0
        } else {
            1.0
        };
        let longest = self.compute * factor * (1.0 + self.jitter);
        if is_duration(longest.as_nanos()) {
            return Ok(());
        }
        let most = Time::LONGEST;
        Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("found computations of up to {longest}, expected at most {most}"),
        ))
    }

    fn program(self) -> Result<Program, TraceError> {
        link_generated(self.workload.name(), self.ranks, |rank| self.build(rank))
    }

    fn build(self, rank: Rank) -> Result<RankBuilder, RecordFault> {
        use StreamStep::*;
        let mut builder = RankBuilder::default();
        let (mut posted, mut sent) = (Vec::new(), Vec::new());
        for step in self.steps(rank) {
            match step {
                Compute(time) => builder.compute(time),
                Send(message) => {
                    let StepMessage { size, mode, .. } = message;
                    let class = MessageClass {
                        size,
                        tag: message.tag as i32,
                        communicator: COMMUNICATOR,
                        mode,
                    };
                    if mode.non_blocking {
                        sent.push(builder.sends());
                    }
                    builder.send(message.peer, class, Record::Begins)?;
                }
                Receive(message) => {
                    let channel = builder.channel(channel(&message));
                    builder.recv(channel, Record::Begins)?;
                }
                Post(message) => {
                    let channel = builder.channel(channel(&message));
                    posted.push(builder.irecv_waited_by_slot(channel)?);
                }
                AwaitAll => {
                    posted
                        .drain(..)
                        .for_each(|slot| builder.wait_slot(slot, Record::Begins));
                    sent.drain(..)
                        .try_for_each(|number| builder.wait_send(number, Record::Begins))?;
                }
                AwaitReceive(_) | AwaitSend(_) | Collective(..) | Meeting(..) => {
                    unreachable!("no workload has them")
                }
            }
        }
        builder.finish();
        Ok(builder)
    }

    /// Returns the steps of a rank.
    pub(crate) fn steps(self, rank: Rank) -> impl Iterator<Item = StreamStep> {
        let stream = u64::from(rank.0).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let start = Pcg64Mcg::seed_from_u64(self.seed ^ stream);
        let mut random = start.clone();
        let mut steps = Vec::new();
        (0..self.iterations).flat_map(move |iteration| {
            if self.period > 0 && iteration.is_multiple_of(self.period) {
                random = start.clone();
            }
            let factor = 1.0 + self.jitter * (2.0 * random.random::<f64>() - 1.0);
            let compute = Time::from_nanos((self.compute.as_nanos() * factor).round().max(0.0));
            self.iteration(rank, compute, &mut steps);
            std::mem::take(&mut steps)
        })
    }

    fn iteration(&self, rank: Rank, compute: Time, steps: &mut Vec<StreamStep>) {
        use Workload::*;
        match self.workload {
            Chain if rank > Rank(0) => return self.pass_on(rank, compute, steps),
            Training => return self.train(rank, compute, steps),
            _ => {}
        }
        steps.push(StreamStep::Compute(compute));
        match self.workload {
            Halo => self.exchange_halo(rank, steps),
            Shift if self.ranks > 1 => self.exchange(
                steps,
                &[(self.before(rank, 1), 0)],
                &[(self.after(rank, 1), 0)],
            ),
            Chain if self.ranks > 1 => {
                steps.extend([
                    self.send(self.after(rank, 1)),
                    self.receive(self.before(rank, 1)),
                ]);
            }
            Dissemination => {
                for (round, distance) in powers_below(self.ranks).enumerate() {
                    let tag = round as u32;
                    self.exchange(
                        steps,
                        &[(self.before(rank, distance), tag)],
                        &[(self.after(rank, distance), tag)],
                    );
                }
            }
            Alltoall => self.exchange_within(self.ranks, rank, steps),
            Rows => self.exchange_within(self.grid().1, rank, steps),
            BinomialBroadcast => self.broadcast(rank, steps),
            Shift | Chain | Training => {}
        }
    }

    /// Adds the steps of the schedule "1F1B" of PipeDream (Narayanan et al., SOSP 2019). A stage begins with as many
    /// microbatches as stages follow it, and then alternates between one forward and one backward. A backward pass takes
    /// twice as long. The ring of the all-reduce has `2 (replicas - 1)` steps (Patarasuk and Yuan, 2009).
    fn train(&self, Rank(rank): Rank, compute: Time, steps: &mut Vec<StreamStep>) {
        const RING: u32 = 2;
        let (stages, replicas) = self.grid();
        let (stage, replica) = (rank % stages, rank / stages);
        let before = (stage > 0).then(|| Rank(rank - 1));
        let after = (stage + 1 < stages).then(|| Rank(rank + 1));
        let mut pass = |from: Option<Rank>, to: Option<Rank>, tag: u32, time: Time| {
            steps.extend(from.map(|rank| StreamStep::Receive(self.message(0, rank, tag, EAGER))));
            steps.push(StreamStep::Compute(time));
            steps.extend(to.map(|rank| StreamStep::Send(self.message(0, rank, tag, EAGER))));
        };
        let ahead = stages - 1 - stage;
        for turn in 0..stages + ahead {
            if turn < stages {
                pass(before, after, 0, compute);
            }
            if turn >= ahead {
                pass(after, before, 1, compute * 2.0);
            }
        }
        let [left, right] = [replica + replicas - 1, replica + 1]
            .map(|replica| Rank(replica % replicas * stages + stage));
        for _ in 0..RING * (replicas - 1) {
            self.exchange(steps, &[(left, RING)], &[(right, RING)]);
        }
    }

    fn pass_on(&self, rank: Rank, compute: Time, steps: &mut Vec<StreamStep>) {
        steps.extend([
            self.receive(self.before(rank, 1)),
            StreamStep::Compute(compute),
            self.send(self.after(rank, 1)),
        ]);
    }

    fn after(&self, Rank(rank): Rank, distance: u32) -> Rank {
        Rank((rank + distance) % self.ranks)
    }

    fn before(&self, Rank(rank): Rank, distance: u32) -> Rank {
        Rank((rank + self.ranks - distance) % self.ranks)
    }

    /// Returns the shorter and the longer side of a grid of all ranks that is as square as their number allows.
    fn grid(&self) -> (u32, u32) {
        let shorter = (1..=self.ranks.isqrt())
            .rev()
            .find(|side| self.ranks.is_multiple_of(*side))
            .unwrap_or(1);
        (shorter, self.ranks / shorter)
    }

    /// Exchanges with every other rank of a group of `ranks` consecutive ranks.
    fn exchange_within(&self, ranks: u32, Rank(rank): Rank, steps: &mut Vec<StreamStep>) {
        let (first, own) = (rank - rank % ranks, rank % ranks);
        let (mut from, mut to) = (Vec::new(), Vec::new());
        for distance in 1..ranks {
            from.push((Rank(first + (own + ranks - distance) % ranks), 0));
            to.push((Rank(first + (own + distance) % ranks), 0));
        }
        self.exchange(steps, &from, &to);
    }

    /// Exchanges with the neighbours on the torus. In a dimension of length one, there are none.
    fn exchange_halo(&self, Rank(rank): Rank, steps: &mut Vec<StreamStep>) {
        let (height, width) = self.grid();
        let (x, y) = (rank % width, rank / width);
        let sides = [
            (x + 1, y),
            (x + width - 1, y),
            (x, y + 1),
            (x, y + height - 1),
        ];
        let sides = sides.map(|(x, y)| Rank(y % height * width + x % width));
        let mut from = Vec::with_capacity(4);
        let mut to = Vec::with_capacity(4);
        for (direction, side) in sides
            .into_iter()
            .enumerate()
            .filter(|(_, side)| side.0 != rank)
        {
            // A message from one side was sent in the opposite direction.
            from.push((side, direction as u32 ^ 1));
            to.push((side, direction as u32));
        }
        self.exchange(steps, &from, &to);
    }

    fn broadcast(&self, Rank(rank): Rank, steps: &mut Vec<StreamStep>) {
        let mut distance = if rank == 0 {
            self.ranks.next_power_of_two()
        } else {
            rank & rank.wrapping_neg()
        };
        if rank > 0 {
            steps.push(self.receive(Rank(rank - distance)));
        }
        while distance > 1 {
            distance /= 2;
            if rank + distance < self.ranks {
                steps.push(self.send(Rank(rank + distance)));
            }
        }
    }

    /// Receives from all ranks of one list while it sends to all ranks of another; each message has its own tag.
    fn exchange(&self, steps: &mut Vec<StreamStep>, from: &[(Rank, u32)], to: &[(Rank, u32)]) {
        let [posts, sends] = [from, to].map(|peers| {
            (0..)
                .zip(peers)
                .map(|(number, (peer, tag))| self.message(number, *peer, *tag, NON_BLOCKING))
        });
        steps.extend(posts.map(StreamStep::Post));
        steps.extend(sends.map(StreamStep::Send));
        steps.push(StreamStep::AwaitAll);
    }

    fn send(&self, to: Rank) -> StreamStep {
        StreamStep::Send(self.message(0, to, 0, EAGER))
    }

    fn receive(&self, from: Rank) -> StreamStep {
        StreamStep::Receive(self.message(0, from, 0, EAGER))
    }

    fn message(&self, number: u32, peer: Rank, tag: u32, mode: SendMode) -> StepMessage {
        StepMessage {
            number,
            peer,
            size: self.size,
            tag,
            mode,
        }
    }
}

fn channel(message: &StepMessage) -> Channel {
    Channel {
        peer: message.peer,
        tag: message.tag as i32,
        communicator: COMMUNICATOR,
    }
}

/// Communicator of all messages.
const COMMUNICATOR: i32 = 1;

fn powers_below(ranks: u32) -> impl Iterator<Item = u32> {
    (0..32)
        .map(|power| 1u32 << power)
        .take_while(move |distance| *distance < ranks)
}
