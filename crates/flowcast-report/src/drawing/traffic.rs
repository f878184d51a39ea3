//! Messages of a replay: sums over all of them, and individual messages for display.

use std::cmp::Reverse;

use super::lanes::whole_nanos;
use flowcast_observers::distribution::TimeDistribution;
use flowcast_program::slot::Slot;
use flowcast_replay::{outcome::Outcome, timeline::MessageSpan};
use flowcast_units::Time;

/// Largest number of individual messages in a page, for one network. Beyond it those with the longest time in flight are
/// kept.
pub const MAX_MESSAGES: usize = 80_000;

/// Ranks along a side of the message matrix; beyond it neighbouring ranks share a cell.
const MATRIX_SIDE: usize = 128;

/// Points of the curve of messages over time.
const POINTS: usize = 512;

/// Number of messages, and their bytes.
pub(crate) type Count = (u64, u64);

/// A displayed message, one of those with the longest time in flight.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Shown {
    slot: Slot,
    pub span: MessageSpan,
    /// Call that sent the message, as an index into the names.
    pub call: usize,
}

/// All messages of a replay.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct DrawnTraffic {
    pub number: usize,
    /// Counts in classes of size, a class for each power of two of bytes; the first is for size 0.
    pub sizes: Vec<Count>,
    /// Times from sending to arrival.
    pub flights: TimeDistribution,
    /// Counts of each pair of cells: sources in rows, destinations in columns. A cell contains `ranks_per_cell` consecutive
    /// ranks.
    pub matrix: Vec<Count>,
    pub side: usize,
    pub ranks_per_cell: usize,
    /// Counts in intervals of the time of sending, of equal width.
    pub rate: Vec<Count>,
    /// Width of these intervals, in nanoseconds.
    pub rate_width: u64,
    /// Displayed messages, in the order of sending.
    pub shown: Vec<Shown>,
    /// Names of the calls that sent the displayed messages.
    pub call_names: Vec<String>,
    /// Messages with a shorter time in flight than this are not displayed.
    threshold: Time,
}

impl DrawnTraffic {
    /// Creates traffic without messages.
    pub(super) fn new(outcome: &Outcome) -> DrawnTraffic {
        let ranks = outcome.ranks.len();
        let ranks_per_cell = ranks.div_ceil(MATRIX_SIDE).max(1);
        let side = ranks.div_ceil(ranks_per_cell);
        DrawnTraffic {
            sizes: vec![(0, 0); 65],
            matrix: vec![(0, 0); side * side],
            side,
            ranks_per_cell,
            rate: vec![(0, 0); POINTS],
            rate_width: whole_nanos(outcome.makespan())
                .div_ceil(POINTS as u64)
                .max(1),
            ..DrawnTraffic::default()
        }
    }

    /// Counts a message, and lists it for display if its time in flight reaches the threshold.
    pub(super) fn add(&mut self, slot: Slot, span: MessageSpan) {
        let size = span.size.0;
        let count = |(messages, bytes): &mut Count| {
            (*messages, *bytes) = (*messages + 1, bytes.saturating_add(size))
        };
        self.number += 1;
        self.flights.add(span.arrived - span.sent);
        count(&mut self.sizes[size.checked_ilog2().map_or(0, |power| power as usize + 1)]);
        let (from, to) = (
            span.src.index() / self.ranks_per_cell,
            span.dst.index() / self.ranks_per_cell,
        );
        count(&mut self.matrix[from * self.side + to]);
        let point = whole_nanos(span.sent) / self.rate_width;
        count(&mut self.rate[(point as usize).min(POINTS - 1)]);
        if in_flight(&span) >= self.threshold {
            self.shown.push(Shown {
                slot,
                span,
                call: 0,
            });
            if self.shown.len() == 2 * MAX_MESSAGES {
                self.keep_longest();
            }
        }
    }

    /// Completes the traffic: there are no more messages.
    pub(super) fn finish(&mut self) {
        self.keep_longest();
        self.shown
            .sort_unstable_by_key(|shown| (shown.span.sent, shown.slot));
    }

    /// Sets the names of the calls that sent the messages.
    pub(crate) fn name_calls(&mut self, name: impl Fn(Slot) -> String) {
        for shown in &mut self.shown {
            let name = name(shown.slot);
            shown.call = self
                .call_names
                .iter()
                .position(|known| *known == name)
                .unwrap_or_else(|| {
                    self.call_names.push(name);
                    self.call_names.len() - 1
                });
        }
    }

    /// Number of messages that are not displayed.
    pub(crate) fn left_out(&self) -> usize {
        self.number - self.shown.len()
    }

    fn keep_longest(&mut self) {
        if self.shown.len() > MAX_MESSAGES {
            self.shown
                .select_nth_unstable_by_key(MAX_MESSAGES - 1, |shown: &Shown| {
                    (Reverse(in_flight(&shown.span)), shown.slot)
                });
            self.shown.truncate(MAX_MESSAGES);
            self.threshold = in_flight(&self.shown[MAX_MESSAGES - 1].span);
        }
    }
}

/// Time from the call of the send to the return of the receive.
fn in_flight(span: &MessageSpan) -> Time {
    span.received - span.sent
}

#[cfg(test)]
mod tests {
    use super::*;
    use flowcast_replay::outcome::RankOutcome;
    use flowcast_units::{Bytes, Rank};

    #[test]
    fn all_messages_count_and_the_longest_in_flight_are_shown_in_order() {
        let end = Time::from_nanos(1e6);
        let outcome = Outcome {
            ranks: vec![RankOutcome::new(end, end, Time::ZERO); 300],
            ..Outcome::default()
        };
        let mut traffic = DrawnTraffic::new(&outcome);
        let number = 2 * MAX_MESSAGES as u32 + 10;
        for slot in 0..number {
            let (sent, flight) = (f64::from(slot), f64::from(slot % 1000));
            let [sent, received] = [sent, sent + flight].map(Time::from_nanos);
            let (src, dst) = (Rank(slot % 300), Rank(299));
            traffic.add(
                Slot(slot),
                MessageSpan {
                    src,
                    dst,
                    size: Bytes(3000),
                    tag: 0,
                    sent,
                    arrived: received,
                    received,
                },
            );
        }
        traffic.finish();
        let total = |counts: &[Count]| {
            counts
                .iter()
                .fold((0, 0), |sum, count| (sum.0 + count.0, sum.1 + count.1))
        };
        let all = (u64::from(number), u64::from(number) * 3000);
        assert_eq!(
            [
                total(&traffic.sizes),
                total(&traffic.matrix),
                total(&traffic.rate)
            ],
            [all; 3]
        );
        assert_eq!(
            (traffic.sizes[12].0, traffic.side, traffic.ranks_per_cell),
            (all.0, 100, 3)
        );
        assert_eq!(
            (traffic.shown.len(), traffic.left_out()),
            (MAX_MESSAGES, MAX_MESSAGES + 10)
        );
        assert!(traffic.shown.is_sorted_by_key(|shown| shown.span.sent));
        assert!(traffic.shown.iter().all(|shown| shown.slot.0 % 1000 >= 499));
    }
}
