//! One-way messages between two cores, each timed from the sender's first byte to the receiver's last.
//!
//! Both processes read the system's monotonic clock, which all cores of a machine share, so each direction can be timed
//! separately. The measuring end orders a message by its size and direction. Before it sends a message itself, it waits
//! until the other end is ready. Before the other end sends, it waits for `HEAD_START`, in which the measuring end begins to
//! poll. A repetition is the median of `IN_A_REPETITION` messages, because a single message takes hardly longer than reading
//! the clock.

use std::{hint, time::Duration};

use flowcast_units::{Bytes, Time};
use rustix::time::{ClockId, clock_gettime};

use super::ShmTransport;
use crate::{
    script::MAX_SIZE,
    transport::{Transport, TransportError},
};

/// Number of messages in a repetition, an odd number.
const IN_A_REPETITION: usize = 15;
/// Time between the order and the answering end's message.
const HEAD_START: Duration = Duration::from_micros(2);
/// Bytes of an order: direction and size.
const ORDER: usize = 9;

/// Direction of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From the measuring end.
    Away = 0,
    /// From the answering end.
    Back = 1,
}

/// Returns the time of a message of this size, from 1 byte to 64 MiB: the median of 15.
///
/// # Errors
/// The size is out of range, or the other end is gone.
pub fn one_way(
    end: &mut ShmTransport,
    direction: Direction,
    size: Bytes,
) -> Result<Time, TransportError> {
    let length = length(size.0)?;
    let mut message = vec![0; length];
    let mut times = [0.0; IN_A_REPETITION];
    for time in &mut times {
        *time = once(end, direction, &mut message)?;
    }
    times.sort_unstable_by(f64::total_cmp);
    Ok(Time::from_nanos(times[IN_A_REPETITION / 2]))
}

/// Sends one message and returns its time, in nanoseconds.
fn once(
    end: &mut ShmTransport,
    direction: Direction,
    message: &mut [u8],
) -> Result<f64, TransportError> {
    let mut order = [direction as u8; ORDER];
    order[1..].copy_from_slice(&(message.len() as u64).to_le_bytes());
    end.send(&order)?;
    let (start, finish);
    match direction {
        Direction::Away => {
            end.receive(&mut [0])?;
            start = now();
            end.send(message)?;
            finish = receive_time(end)?;
        }
        Direction::Back => {
            end.receive(message)?;
            finish = now();
            start = receive_time(end)?;
        }
    }
    // The clocks of two packages may differ, but only by less than the time that a message needs to cross.
    Ok(finish.saturating_sub(start).max(1) as f64)
}

/// Runs the answering end: follows orders until the measuring end is gone.
///
/// # Errors
/// An invalid order, or another end that is silent for 30 s.
pub fn answer_one_way(end: &mut ShmTransport) -> Result<(), TransportError> {
    let (mut order, mut message) = ([0; ORDER], Vec::new());
    loop {
        match end.receive(&mut order) {
            Err(TransportError::Closed) => return Ok(()),
            other => other?,
        }
        let [direction, size @ ..] = order;
        message.resize(length(u64::from_le_bytes(size))?, 0);
        let at = if direction == Direction::Away as u8 {
            end.send(&[0])?;
            end.receive(&mut message)?;
            now()
        } else {
            let asked = now();
            while now() - asked < HEAD_START.as_nanos() as u64 {
                hint::spin_loop();
            }
            let start = now();
            end.send(&message)?;
            start
        };
        end.send(&at.to_le_bytes())?;
    }
}

fn receive_time(end: &mut ShmTransport) -> Result<u64, TransportError> {
    let mut at = [0; 8];
    end.receive(&mut at)?;
    Ok(u64::from_le_bytes(at))
}

fn length(size: u64) -> Result<usize, TransportError> {
    let known = (1..=MAX_SIZE.0).contains(&size).then_some(size as usize);
    known.ok_or_else(|| {
        let problem = format!("found a size of {size} bytes, expected 1 byte to {MAX_SIZE}");
        super::failed("send a message", std::io::Error::other(problem))
    })
}

/// Returns the time of the clock that all processes of this machine share, in nanoseconds.
fn now() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shm::SharedMemory;
    use std::{path::Path, thread};

    #[test]
    fn messages_of_both_directions_have_times_and_larger_ones_take_longer() {
        let memory = SharedMemory::new().unwrap();
        let mut end = memory.measuring_end().unwrap();
        let path = memory.path();
        thread::scope(|scope| {
            let answering = scope.spawn(move || {
                answer_one_way(&mut ShmTransport::answering_end(Path::new(&path)).unwrap())
            });
            for direction in [Direction::Away, Direction::Back] {
                // The minimum of several times is used, because other threads may delay a message.
                let mut least = |size| {
                    (0..9)
                        .map(|_| one_way(&mut end, direction, Bytes(size)).unwrap())
                        .min()
                };
                let [Some(small), Some(large)] = [1, 1 << 24].map(&mut least) else {
                    panic!("no time")
                };
                assert!(
                    Time::ZERO < small && small < large,
                    "{direction:?}: {small} {large}"
                );
            }
            let refused = one_way(&mut end, Direction::Away, Bytes(0))
                .unwrap_err()
                .to_string();
            assert!(refused.contains("found a size of 0 bytes"), "{refused}");
            drop(end);
            answering.join().unwrap().unwrap();
        });
    }
}
