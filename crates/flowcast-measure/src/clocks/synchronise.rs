//! Transfer of the time from a guide to a learner, over a [`Transport`].

use std::time::{SystemTime, UNIX_EPOCH};

use flowcast_units::{ClockLine, Time};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::line::{BurstReading, LearnedClock};
use crate::transport::{Transport, TransportError};

/// First message of a rank that requests the time.
pub(crate) const GREETING: [u8; 16] = *b"flowcast-clock/1";

const ASK: [u8; 1] = [1];
const DONE: [u8; 1] = [0];

/// Error of a synchronisation.
#[derive(Debug, Error)]
pub enum ClockError {
    /// The connection to the other rank failed.
    #[error(transparent)]
    Transport(#[from] TransportError),
    /// The other end's answer is not a time.
    #[error("found {0} ns as the time of the other end, expected a finite number")]
    Answer(f64),
    /// The other end sent something other than a question for the time.
    #[error("found the request {0}, expected 1 (send the time) or 0 (done)")]
    Question(u8),
    /// A plan with too few bursts or exchanges.
    #[error(
        "found {bursts} bursts of {exchanges} exchanges, expected at least 2 bursts of at least 1 exchange"
    )]
    Plan {
        /// Number of bursts in the plan.
        bursts: u32,
        /// Number of exchanges in each burst.
        exchanges: u32,
    },
}

/// Plan of a synchronisation.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ClockPlan {
    /// Number of points of the line; at least 2.
    pub bursts: u32,
    /// Number of exchanges for each point. Only the one with the shortest round trip is used.
    pub exchanges: u32,
    /// Time spanned by the bursts. A longer time gives a more precise drift.
    #[serde(with = "crate::wire")]
    pub span: Time,
}

impl Default for ClockPlan {
    /// 20 bursts of 50 exchanges within a second.
    fn default() -> ClockPlan {
        ClockPlan {
            bursts: 20,
            exchanges: 50,
            span: Time::from_seconds(1.0),
        }
    }
}

/// Greets an answering end of round trips ([`crate::prtt::answer`]), so that it accepts questions for the time.
///
/// # Errors
/// The connection fails.
pub fn greet_clock(transport: &mut impl Transport) -> Result<(), ClockError> {
    Ok(transport.send(&GREETING)?)
}

/// Answers questions for the time until the other end is done. `line` leads from the transport's clock to rank 0's clock.
///
/// # Errors
/// The connection fails, or the other end sends something else.
pub fn guide(transport: &mut impl Transport, line: &ClockLine) -> Result<(), ClockError> {
    let mut question = [0];
    loop {
        transport.receive(&mut question)?;
        match question {
            ASK => transport.send(&line.read(transport.now()).as_nanos().to_le_bytes())?,
            DONE => return Ok(()),
            [other] => return Err(ClockError::Question(other)),
        }
    }
}

/// Learns the guide's time.
///
/// # Errors
/// The plan has too few bursts or exchanges, the connection fails, or an answer is not a time.
pub fn learn(transport: &mut impl Transport, plan: &ClockPlan) -> Result<LearnedClock, ClockError> {
    if plan.bursts < 2 || plan.exchanges == 0 {
        return Err(ClockError::Plan {
            bursts: plan.bursts,
            exchanges: plan.exchanges,
        });
    }
    let rest = plan.span / f64::from(plan.bursts - 1);
    let mut glances = vec![glance(transport, plan.exchanges)?];
    for _ in 1..plan.bursts {
        transport.rest(rest);
        glances.push(glance(transport, plan.exchanges)?);
    }
    transport.send(&DONE)?;
    Ok(LearnedClock::from_glances(&glances).expect("there are two glances at least"))
}

/// Reads the guide's time once, to check how well it was learned.
///
/// # Errors
/// The connection fails, or an answer is not a time.
pub fn look(transport: &mut impl Transport, exchanges: u32) -> Result<BurstReading, ClockError> {
    let seen = glance(transport, exchanges)?;
    transport.send(&DONE)?;
    Ok(seen)
}

/// Returns the exchange with the shortest round trip.
fn glance(transport: &mut impl Transport, exchanges: u32) -> Result<BurstReading, ClockError> {
    let mut best = exchange(transport)?;
    for _ in 1..exchanges {
        let next = exchange(transport)?;
        if next.round_trip < best.round_trip {
            best = next;
        }
    }
    Ok(best)
}

fn exchange(transport: &mut impl Transport) -> Result<BurstReading, ClockError> {
    let mut answer = [0; 8];
    let asked = transport.now();
    transport.send(&ASK)?;
    transport.receive(&mut answer)?;
    let round_trip = transport.now() - asked;
    let read = f64::from_le_bytes(answer);
    if !read.is_finite() {
        return Err(ClockError::Answer(read));
    }
    let own = asked + round_trip * 0.5;
    Ok(BurstReading {
        own,
        ahead: Time::from_nanos(read) - own,
        round_trip,
    })
}

/// Returns the [`ClockLine`] that converts times of a transport's clock, which shows `now`, to wall-clock time (UTC, since
/// midnight). Two such lines give the difference between two wall clocks, except for whole days.
pub fn wall_clock(now: Time) -> ClockLine {
    const DAY: u128 = 86_400_000_000_000;
    let today = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |time| time.as_nanos() % DAY);
    ClockLine {
        at: now,
        offset: Time::from_nanos(today as f64) - now,
        drift: 0.0,
    }
}

/// Transport with an artificial clock: the process's clock with an offset and a drift.
#[derive(Debug)]
pub struct Clocked<T> {
    inner: T,
    origin: std::time::Instant,
    line: ClockLine,
}

impl<T> Clocked<T> {
    /// Creates a transport whose clock showed `line`'s offset at `origin`.
    pub fn new(inner: T, origin: std::time::Instant, line: ClockLine) -> Clocked<T> {
        Clocked {
            inner,
            origin,
            line,
        }
    }
}

impl<T: Transport> Transport for Clocked<T> {
    fn now(&self) -> Time {
        self.line
            .read(Time::from_nanos(self.origin.elapsed().as_nanos() as f64))
    }

    fn send(&mut self, message: &[u8]) -> Result<(), TransportError> {
        self.inner.send(message)
    }

    fn receive(&mut self, message: &mut [u8]) -> Result<(), TransportError> {
        self.inner.receive(message)
    }
}
