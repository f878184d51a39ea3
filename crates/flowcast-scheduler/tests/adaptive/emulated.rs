//! A rail whose speed changes, in virtual time, for tests of re-estimation and of the guard.

use flowcast_network::loggp::LogGp;
use flowcast_units::{Bytes, Time};

/// Change of speed: from `at` on, everything takes `slowdown` times as long on the wire.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct SpeedChange {
    /// Time of the change.
    pub at: Time,
    /// Factor relative to the measured time: 10 is a tenth of the speed.
    pub slowdown: f64,
}

/// A rail that sends one message after the other by rule E0, at a speed that changes.
#[derive(Debug, Clone)]
pub(crate) struct EmulatedRail {
    cost: LogGp,
    changes: Vec<SpeedChange>,
    free: Time,
}

/// Times of a message.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Transfer {
    /// Time at which its first byte left.
    pub started: Time,
    /// Time at which the rail was free again.
    pub left: Time,
    /// Time at which its receiver had all of it.
    pub delivered: Time,
}

impl EmulatedRail {
    /// Creates an idle rail; `changes` are in order of time.
    pub(crate) fn new(cost: LogGp, changes: Vec<SpeedChange>) -> EmulatedRail {
        EmulatedRail {
            cost,
            changes,
            free: Time::ZERO,
        }
    }

    /// Sends a message that is ready at `now`, after all earlier messages.
    pub(crate) fn send(&mut self, now: Time, size: Bytes) -> Transfer {
        let started = now.max(self.free);
        let left = self.after(started, self.cost.spacing(size));
        let last_byte = self.after(started, self.cost.transfer(size));
        self.free = left;
        Transfer {
            started,
            left,
            delivered: last_byte + self.cost.overhead * 2.0 + self.cost.latency,
        }
    }

    /// Returns the end of work that starts at `start` and takes `work` at slowdown 1.
    fn after(&self, start: Time, work: Time) -> Time {
        let (mut now, mut left) = (start, work.as_nanos());
        let mut slowdown = 1.0;
        for change in &self.changes {
            if change.at > now {
                let done = (change.at - now).as_nanos() / slowdown;
                if done >= left {
                    break;
                }
                left -= done;
                now = change.at;
            }
            slowdown = change.slowdown;
        }
        now + Time::from_nanos(left * slowdown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flowcast_units::TimePerByte;

    #[test]
    fn a_message_in_flight_is_affected_by_a_change() {
        let cost = LogGp {
            gap_per_byte: TimePerByte::from_nanos(10.0),
            ..LogGp::default()
        };
        let at = |at, slowdown| SpeedChange {
            at: Time::from_nanos(at),
            slowdown,
        };
        let mut rail = EmulatedRail::new(cost, vec![at(500.0, 10.0), at(3000.0, 1.0)]);
        // 500 ns at full speed, 2500 ns at a tenth do 250 ns of work, and the last 240 ns are at full speed.
        assert_eq!(
            rail.send(Time::ZERO, Bytes(100)).delivered,
            Time::from_nanos(3240.0)
        );
        assert_eq!(
            rail.send(Time::ZERO, Bytes(1)).started,
            Time::from_nanos(3240.0)
        );
        assert_eq!(
            rail.send(Time::from_nanos(4000.0), Bytes(11)).left,
            Time::from_nanos(4100.0)
        );
    }
}
