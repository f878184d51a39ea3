//! BBR version 1 (draft-cardwell-iccrg-bbr-congestion-control-00): sends at the rate at which packets were delivered.
//!
//! The bottleneck's rate is the largest delivery rate in ten round trips (draft-cheng-iccrg-delivery-rate-estimation:
//! packets delivered between a packet's sending and its acknowledgement, divided by the longer of the times of sending and
//! of acknowledging them). The round trip is the least in ten seconds. Packets are paced at `gain * rate`, and at most `gain
//! * rate * round trip` plus three bursts are in flight:
//!
//! | state | pacing gain | window gain | until |
//! |---|---|---|---|
//! | start-up | 2/ln 2 | 2/ln 2 | three rounds in which the rate has not grown by a quarter |
//! | drain | ln 2/2 | 2/ln 2 | at most a window for the gain 1 is in flight |
//! | bandwidth | 5/4, 3/4, 1, 1, 1, 1, 1, 1 in turn | 2 | ten seconds without a new least round trip |
//! | round trip | 1 | 4 packets | 200 ms and a round |
//!
//! Not modelled: the detection of policers and the allowance for aggregated acknowledgements, which Linux adds.

use super::{
    super::picos::Picos, Acknowledgement, CongestionWindow, LARGEST_BURST, Repair,
    filter::LargestOf,
};

const HIGH_GAIN: f64 = 2.885;
const CYCLE: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
const RATE_ROUNDS: u32 = 10;
const ROUND_TRIP_HOLDS: Picos = Picos::from_millis(10_000);
const PROBE: Picos = Picos::from_millis(200);
const LEAST_WINDOW: u32 = 4;
/// Fraction of the estimated rate at which the sender transmits, so that no queue grows.
const MARGIN: f64 = 0.99;
/// Pace before the first round trip, in packets per second: the gain times ten packets per millisecond.
const FIRST_PACE: f64 = HIGH_GAIN * 1e4;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BbrState {
    StartUp,
    Drain,
    Bandwidth,
    RoundTrip,
}

/// State of one connection.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Bbr {
    /// Payload of a packet.
    segment: u32,
    state: BbrState,
    rate: LargestOf,
    round: u32,
    round_ends: u32,
    least_round_trip: Picos,
    least_seen: Picos,
    pace: f64,
    has_pace: bool,
    full_rate: f64,
    rounds_without_growth: u32,
    phase: usize,
    phase_begun: Picos,
    probe_ends: Option<Picos>,
    saved_window: u32,
    repair: Repair,
    conserve_until: Option<u32>,
}

impl Bbr {
    pub(super) fn new(segment: u32, seed: u32) -> Bbr {
        Bbr {
            segment,
            state: BbrState::StartUp,
            rate: LargestOf::default(),
            round: 0,
            round_ends: 0,
            least_round_trip: Picos::NEVER,
            least_seen: Picos::ZERO,
            pace: FIRST_PACE,
            has_pace: false,
            full_rate: 0.0,
            rounds_without_growth: 0,
            // Any phase except the one that drains.
            phase: [0, 2, 3, 4, 5, 6, 7][seed as usize % 7],
            phase_begun: Picos::ZERO,
            probe_ends: None,
            saved_window: 0,
            repair: Repair::None,
            conserve_until: None,
        }
    }

    /// Pace, in packets per second.
    pub(super) fn pace(&self) -> f64 {
        self.pace
    }

    /// Processes an ACK, and sets the pace and the window.
    pub(in super::super) fn ack(&mut self, window: &mut CongestionWindow, heard: &Acknowledgement) {
        let is_new_round = self.sample(heard);
        if is_new_round {
            self.check_full();
        }
        self.change_state(heard);
        self.probe_round_trip(window, heard, is_new_round);
        self.set_pace(window, heard);
        self.set_window(window, heard);
    }

    /// Handles a time-out. The current window is saved, and restored when the losses are repaired.
    pub(super) fn time_out(&mut self, window: &CongestionWindow) {
        self.save(window);
        self.repair = Repair::Timeout;
        self.full_rate = 0.0;
    }

    /// Samples the delivery rate. Returns `true` if a round has ended.
    fn sample(&mut self, heard: &Acknowledgement) -> bool {
        let Some(newest) = heard.newest else {
            return false;
        };
        let is_new_round = newest.delivered >= self.round_ends;
        if is_new_round {
            self.round_ends = heard.delivered;
            self.round += 1;
            self.conserve_until = self.conserve_until.filter(|end| newest.delivered < *end);
        }
        let elapsed = newest
            .sent
            .since(newest.first_sent)
            .max(heard.now.since(newest.delivered_at));
        if elapsed == Picos::ZERO || elapsed < self.least_round_trip {
            return is_new_round;
        }
        let rate = f64::from(heard.delivered - newest.delivered) / elapsed.as_seconds();
        if rate >= self.rate.value() || !newest.is_starved {
            self.rate.add(rate, self.round, RATE_ROUNDS);
        }
        is_new_round
    }

    fn check_full(&mut self) {
        if self.is_full() {
            return;
        }
        if self.rate.value() >= self.full_rate * 1.25 {
            (self.full_rate, self.rounds_without_growth) = (self.rate.value(), 0);
        } else {
            self.rounds_without_growth += 1;
        }
    }

    fn is_full(&self) -> bool {
        self.rounds_without_growth >= 3
    }

    fn change_state(&mut self, heard: &Acknowledgement) {
        match self.state {
            BbrState::StartUp if self.is_full() => self.state = BbrState::Drain,
            BbrState::Bandwidth if self.is_phase_over(heard) => {
                self.phase = (self.phase + 1) % CYCLE.len();
                self.phase_begun = heard.now;
            }
            _ => {}
        }
        if self.state == BbrState::Drain && heard.in_flight <= self.in_flight_for(1.0) {
            self.state = BbrState::Bandwidth;
            self.phase_begun = heard.now;
        }
    }

    fn is_phase_over(&self, heard: &Acknowledgement) -> bool {
        let gain = CYCLE[self.phase];
        let is_long = heard.now.since(self.phase_begun) > self.least_round_trip;
        if gain > 1.0 {
            return is_long && (heard.lost > 0 || heard.was_in_flight >= self.in_flight_for(gain));
        }
        is_long || (gain < 1.0 && heard.was_in_flight <= self.in_flight_for(1.0))
    }

    fn probe_round_trip(
        &mut self,
        window: &mut CongestionWindow,
        heard: &Acknowledgement,
        is_new_round: bool,
    ) {
        let is_stale = heard.now > self.least_seen + ROUND_TRIP_HOLDS;
        if let Some(round_trip) = heard
            .round_trip
            .filter(|found| *found <= self.least_round_trip || is_stale)
        {
            (self.least_round_trip, self.least_seen) = (round_trip, heard.now);
        }
        if is_stale && self.state != BbrState::RoundTrip {
            self.state = BbrState::RoundTrip;
            self.save(window);
            self.probe_ends = None;
        }
        if self.state != BbrState::RoundTrip {
            return;
        }
        match self.probe_ends {
            None if heard.in_flight <= LEAST_WINDOW => self.probe_ends = Some(heard.now + PROBE),
            Some(end) if heard.now > end && is_new_round => {
                self.least_seen = heard.now;
                window.packets = window.packets.max(self.saved_window);
                self.state = if self.is_full() {
                    BbrState::Bandwidth
                } else {
                    BbrState::StartUp
                };
                self.phase_begun = heard.now;
            }
            _ => {}
        }
    }

    fn set_pace(&mut self, window: &CongestionWindow, heard: &Acknowledgement) {
        if let Some(round_trip) = heard
            .round_trip
            .filter(|found| !self.has_pace && *found > Picos::ZERO)
        {
            self.has_pace = true;
            self.pace = HIGH_GAIN * f64::from(window.packets) / round_trip.as_seconds();
        }
        let gain = match self.state {
            BbrState::StartUp => HIGH_GAIN,
            BbrState::Drain => 1.0 / HIGH_GAIN,
            BbrState::Bandwidth => CYCLE[self.phase],
            BbrState::RoundTrip => 1.0,
        };
        let pace = gain * self.rate.value() * MARGIN;
        if pace > 0.0 && (self.is_full() || pace > self.pace) {
            self.pace = pace;
        }
    }

    fn set_window(&mut self, window: &mut CongestionWindow, heard: &Acknowledgement) {
        if self.recover(window, heard) {
            return self.bound(window);
        }
        let gain = if self.state == BbrState::Bandwidth {
            2.0
        } else {
            HIGH_GAIN
        };
        let mut target = self.in_flight_for(gain);
        if self.state == BbrState::Bandwidth && self.phase == 0 {
            target += 2;
        }
        if self.is_full() {
            window.packets = (window.packets + heard.packets).min(target);
        } else if window.packets < target || heard.delivered < 10 {
            window.packets += heard.packets;
        }
        window.packets = window.packets.max(LEAST_WINDOW);
        self.bound(window);
    }

    fn bound(&self, window: &mut CongestionWindow) {
        if self.state == BbrState::RoundTrip {
            window.packets = window.packets.min(LEAST_WINDOW);
        }
    }

    /// Sets the window during recovery. In the first round, as many packets are sent as arrive. At the end, the saved window
    /// is restored. Returns `true` in the first round.
    fn recover(&mut self, window: &mut CongestionWindow, heard: &Acknowledgement) -> bool {
        window.packets = window.packets.saturating_sub(heard.lost).max(1);
        if heard.repair == Repair::Recovery && self.repair == Repair::None {
            self.save(window);
            self.conserve_until = Some(heard.delivered);
            window.packets = heard.in_flight + heard.packets.max(1);
        } else if heard.repair == Repair::None && self.repair != Repair::None {
            window.packets = window.packets.max(self.saved_window);
            self.conserve_until = None;
        }
        self.repair = heard.repair;
        if self.conserve_until.is_some() {
            window.packets = window.packets.max(heard.in_flight + heard.packets);
        }
        self.conserve_until.is_some()
    }

    fn save(&mut self, window: &CongestionWindow) {
        let is_undisturbed = self.repair == Repair::None && self.state != BbrState::RoundTrip;
        self.saved_window = if is_undisturbed {
            window.packets
        } else {
            self.saved_window.max(window.packets)
        };
    }

    /// Number of packets for `gain` times the bandwidth-delay product plus three bursts, rounded up to an even number.
    fn in_flight_for(&self, gain: f64) -> u32 {
        if self.least_round_trip == Picos::NEVER {
            return 10;
        }
        let product = gain * self.rate.value() * self.least_round_trip.as_seconds();
        (product.ceil() as u32)
            .saturating_add(3 * burst(self.pace, self.segment))
            .next_multiple_of(2)
    }
}

/// Number of packets in a burst: the packets of a millisecond, at least two and at most 64 KiB.
pub(in super::super) fn burst(pace: f64, segment: u32) -> u32 {
    ((pace / 1024.0) as u32).min(LARGEST_BURST / segment).max(2)
}
