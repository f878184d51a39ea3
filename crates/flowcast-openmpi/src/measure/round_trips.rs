//! Rank 0's side: it invites a partner, times round trips on each rail and fits the parameters.

use std::{
    collections::BTreeMap,
    ops::Range,
    time::{Duration, Instant},
};

use flowcast_fit::{
    loggp::{FitOptions, LogGpFit, fit_loggp},
    prtt::PrttPoint,
    samples::PrttSamples,
};
use flowcast_network::loggp::LogGp;
use flowcast_scheduler::RailId;
use flowcast_units::{Bytes, Time, TimePerByte};

use super::{
    backoff::Backoff,
    plan::plan,
    stored_check::{StoredCheck, check_stored},
    wire::{self, HEADER, WireHeader, WireKind, WireRoute},
};
use crate::{bindings::ProcessName, peers::RailPeer, state::State};

/// Number of round trips before the plan; the first opens the connection.
const WARM_UP: u32 = 2;
const ROUGH_SIZE: u64 = 2048;
const ROUGH_TRAIN: u32 = 5;
/// Range of the gap per byte of a sound fit, relative to the gap per byte of the longest train. A traffic shaper passes the
/// train's first bytes without delay, as it does single messages.
const SOUND: Range<f64> = 0.93..1.3;

/// Measurement between rank 0 and its partner.
pub(super) struct Partner<'a> {
    state: &'a State,
    own: ProcessName,
    peer: &'a RailPeer,
    round: u32,
    deadline: Instant,
}

impl<'a> Partner<'a> {
    pub(super) fn new(
        state: &'a State,
        own: ProcessName,
        peer: &'a RailPeer,
        deadline: Instant,
    ) -> Partner<'a> {
        Partner {
            state,
            own,
            peer,
            round: 0,
            deadline,
        }
    }

    /// Invites the partner. Returns its host's name, or `None` if it does not answer in time.
    pub(super) fn invite(&mut self) -> Option<String> {
        let route = self.route(self.peer.usable().lowest()?)?;
        self.send(&route, WireKind::Invite, 1, HEADER)
            .then_some(())?;
        self.answer(WireKind::Ready)
            .map(|host| String::from_utf8_lossy(&host).into_owned())
    }

    pub(super) fn dismiss(&mut self) {
        if let Some(route) = self
            .peer
            .usable()
            .lowest()
            .and_then(|rail| self.route(rail))
        {
            self.send(&route, WireKind::Done, 1, HEADER);
        }
    }

    /// Measures a rail until `end` at the latest. Returns rough parameters and no fit if the time does not suffice for one.
    pub(super) fn measure(
        &mut self,
        rail: RailId,
        end: Instant,
    ) -> Option<(LogGp, Option<LogGpFit>)> {
        let route = self.route(rail)?;
        let rough = self.rough(&route)?;
        let plan = plan(&rough, end.saturating_duration_since(Instant::now()));
        let mut shortest: BTreeMap<PrttPoint, Time> = BTreeMap::new();
        for (repetition, point) in
            (0..plan.repetitions).flat_map(|r| plan.points.iter().map(move |point| (r, point)))
        {
            // The first repetition may use the next rail's time, because there is no result without it.
            if repetition > 0 && Instant::now() > end {
                break;
            }
            let Some(time) = self.round_trip(&route, *point) else {
                break;
            };
            shortest
                .entry(*point)
                .and_modify(|least| *least = Time::min(*least, time))
                .or_insert(time);
        }
        Some(conclude(&shortest, rough))
    }

    /// Returns parameters that suffice for planning. It uses trains, because a traffic shaper passes the first frames
    /// without delay.
    fn rough(&mut self, route: &WireRoute) -> Option<LogGp> {
        let mut shortest = |point: PrttPoint| {
            let times: Option<Vec<Time>> = (0..WARM_UP)
                .map(|_| self.round_trip(route, point))
                .collect();
            times?.into_iter().min()
        };
        let small = shortest(PrttPoint::round_trip(Bytes(HEADER as u64)))?;
        let one = shortest(PrttPoint::round_trip(Bytes(ROUGH_SIZE)))?;
        let train = shortest(PrttPoint::new(ROUGH_TRAIN, Time::ZERO, Bytes(ROUGH_SIZE)))?;
        let spacing = (train - one).max(Time::from_nanos(1.0)) * (1.0 / f64::from(ROUGH_TRAIN - 1));
        Some(LogGp {
            latency: small * 0.5,
            overhead: Time::ZERO,
            gap: Time::ZERO,
            gap_per_byte: TimePerByte::from_nanos(spacing.as_nanos() / ROUGH_SIZE as f64),
        })
    }

    /// Checks whether a rail still matches its stored parameters, within about `time`.
    pub(super) fn holds(&mut self, rail: RailId, stored: &LogGp, time: Duration) -> StoredCheck {
        match self.route(rail) {
            Some(route) => check_stored(stored, time, |train| self.round_trip(&route, train)),
            None => StoredCheck::Unknown,
        }
    }

    fn round_trip(&mut self, route: &WireRoute, point: PrttPoint) -> Option<Time> {
        self.round += 1;
        let pause = Duration::from_nanos(point.delay.as_nanos() as u64);
        let start = Instant::now();
        for message in 0..point.messages {
            if message > 0 && !pause.is_zero() {
                compute_for(pause);
            }
            self.send(route, WireKind::Ping, point.messages, point.size.0 as usize)
                .then_some(())?;
        }
        self.answer(WireKind::Pong)?;
        Some(Time::from_nanos(start.elapsed().as_nanos() as f64))
    }

    fn route(&self, rail: RailId) -> Option<WireRoute> {
        // SAFETY: a rail and the peer's endpoint on it.
        unsafe { WireRoute::new(self.state.rail(rail).module, self.peer.endpoint(rail)) }
    }

    fn send(&self, route: &WireRoute, kind: WireKind, of: u32, size: usize) -> bool {
        route.send(
            WireHeader {
                kind,
                from: self.own,
                round: self.round,
                of,
                body: 0,
            },
            &[],
            size,
        )
    }

    /// Returns the body of the answer to the current round.
    fn answer(&self, kind: WireKind) -> Option<Vec<u8>> {
        let backoff = Backoff::new();
        while Instant::now() < self.deadline {
            // SAFETY: a function of the library.
            unsafe { (self.state.library.progress)() };
            while let Some(received) = wire::take() {
                if received.header.kind == kind && received.header.round == self.round {
                    return Some(received.body);
                }
            }
            backoff.wait();
        }
        None
    }
}

/// Fits the shortest round trips. If the longest train contradicts the fit's gap per byte, that train's parameters replace
/// those of the fit. Without a train the result is `rough`.
///
/// With so few repetitions, on a machine that is just starting a job, medians would retain the disturbances. Disturbances
/// make round trips longer: a longer single message makes the fit's gap too short, a longer train makes it too long.
fn conclude(shortest: &BTreeMap<PrttPoint, Time>, rough: LogGp) -> (LogGp, Option<LogGpFit>) {
    let Some(longest) = from_longest_train(shortest) else {
        return (rough, None);
    };
    let mut samples = PrttSamples::default();
    shortest
        .iter()
        .for_each(|(point, time)| samples.push(*point, *time));
    // Confidence intervals would take more time than the measurement.
    let fit = fit_loggp(
        &samples,
        &FitOptions {
            replicates: 0,
            ..FitOptions::default()
        },
    )
    .ok();
    let ratio =
        |fit: &LogGpFit| fit.parameters.gap_per_byte.as_nanos() / longest.gap_per_byte.as_nanos();
    let fit = fit.map(|fit: LogGpFit| {
        let parameters = if SOUND.contains(&ratio(&fit)) {
            fit.parameters
        } else {
            longest
        };
        LogGpFit { parameters, ..fit }
    });
    (fit.as_ref().map_or(longest, |fit| fit.parameters), fit)
}

/// Computes parameters from `PRTT_n(s) = PRTT_1(1) + (n+1)·(s-1)·G`, which holds if `g` is short compared with the rest.
fn from_longest_train(shortest: &BTreeMap<PrttPoint, Time>) -> Option<LogGp> {
    let trains = shortest
        .iter()
        .filter(|(point, _)| point.messages > 1 && point.delay == Time::ZERO);
    let (train, time) = trains.max_by_key(|(point, _)| point.size)?;
    let least = *shortest.get(&PrttPoint::round_trip(Bytes(HEADER as u64)))?;
    let bytes = f64::from(train.messages + 1) * (train.size.0 as f64 - HEADER as f64);
    let gap_per_byte = TimePerByte::from_nanos((*time - least).as_nanos() / bytes);
    let found = LogGp {
        latency: least * 0.5,
        overhead: Time::ZERO,
        gap: Time::ZERO,
        gap_per_byte,
    };
    (*time > least).then_some(found)
}

/// Computes for `pause` without a call of the library: the definition of the parametrised round trip requires a pause of
/// pure computation.
fn compute_for(pause: Duration) {
    let start = Instant::now();
    while start.elapsed() < pause {
        std::hint::spin_loop();
    }
}

/// Provenance of a result, for the network file that stores it.
pub(super) fn provenance(
    from: &str,
    to: &str,
    interface: &str,
    version: &str,
) -> BTreeMap<String, String> {
    [
        ("hosts", format!("{from}, {to}")),
        ("interface", interface.to_owned()),
        ("library", format!("Open MPI {version}")),
        (
            "method",
            "parametrised round trips at the start of MPI, without intervals".to_owned(),
        ),
    ]
    .map(|(key, value)| (key.to_owned(), value))
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use flowcast_fit::prtt::prtt;

    fn truth() -> LogGp {
        LogGp {
            latency: Time::from_micros(20.0),
            overhead: Time::from_micros(1.0),
            gap: Time::from_micros(3.0),
            gap_per_byte: TimePerByte::from_nanos(85.0),
        }
    }

    fn round_trips() -> BTreeMap<PrttPoint, Time> {
        let points = plan(&truth(), Duration::from_millis(90)).points;
        points
            .into_iter()
            .map(|point| (point, prtt(&truth(), point)))
            .collect()
    }

    #[test]
    fn undisturbed_round_trips_become_a_fit() {
        let (cost, fit) = conclude(&round_trips(), LogGp::default());
        assert!((cost.gap_per_byte.as_nanos() / 85.0 - 1.0).abs() < 1e-6);
        assert!(fit.is_some());
    }

    #[test]
    fn a_time_slice_in_another_round_trip_leaves_the_longest_train_in_force() {
        let is_longest_train =
            |point: &PrttPoint| point.messages > 1 && point.size >= Bytes(16 * 1024);
        let others: Vec<PrttPoint> = round_trips()
            .into_keys()
            .filter(|point| !is_longest_train(point))
            .collect();
        for point in others
            .into_iter()
            .filter(|point| point.size > Bytes(HEADER as u64))
        {
            let mut disturbed = round_trips();
            *disturbed.get_mut(&point).unwrap() = disturbed[&point] + Time::from_micros(8000.0);
            let (cost, _) = conclude(&disturbed, LogGp::default());
            let ratio = cost.gap_per_byte.as_nanos() / 85.0;
            assert!((0.92..1.31).contains(&ratio), "{point:?} {cost:?}");
        }
    }

    #[test]
    fn without_a_train_the_rough_cost_remains() {
        assert_eq!(conclude(&BTreeMap::new(), truth()).0, truth());
    }
}
