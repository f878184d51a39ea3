//! Network file from a fit.

use std::collections::{BTreeMap, BTreeSet};

use super::loggp::{LogGpFit, LogGpIntervals};
use flowcast_network::{
    loggp::LogGp,
    network::{FitQuality, MessageRule, Network, Nic, ParameterInterval, SingleFlowRate},
};
use flowcast_units::{Time, TimePerByte};

impl LogGpFit {
    /// The fitted network, with its intervals and `provenance`.
    pub fn to_network(&self, name: &str, provenance: BTreeMap<String, String>) -> Network {
        let LogGp {
            latency,
            overhead,
            gap,
            gap_per_byte,
        } = self.parameters;
        let nic = Nic {
            overhead: tidy_time(overhead),
            gap: tidy_time(gap),
            ..Nic::new(
                tidy_time(latency),
                SingleFlowRate::GapPerByte(tidy_per_byte(gap_per_byte)),
            )
        };
        Network {
            title: "Measured by parametrised round trips".to_owned(),
            source: format!("flowcast fit, {} samples", self.samples),
            intervals: self.parameter_intervals(),
            fit: FitQuality {
                misfit: Some(tidy(self.model_error.mean_absolute)),
                warnings: self.warnings.iter().map(ToString::to_string).collect(),
            },
            provenance,
            ..Network::new(name, MessageRule::Loggops, nic)
        }
    }

    /// Intervals of the parameters, with the correlations of parameters that vary together.
    fn parameter_intervals(&self) -> BTreeMap<String, ParameterInterval> {
        let LogGpIntervals {
            latency,
            overhead,
            gap,
            gap_per_byte,
            ..
        } = self.intervals;
        let level = self.options.level;
        let [latency, overhead, gap] = [
            (self.parameters.latency, latency),
            (self.parameters.overhead, overhead),
            (self.parameters.gap, gap),
        ]
        .map(|(value, (low, high))| {
            ParameterInterval::around(tidy_time(value), tidy_time(low), tidy_time(high), level)
        });
        let [per_byte, least, most] =
            [self.parameters.gap_per_byte, gap_per_byte.0, gap_per_byte.1].map(tidy_per_byte);
        let mut all = BTreeMap::from([
            ("nic.latency".to_owned(), latency),
            ("nic.overhead".to_owned(), overhead),
            ("nic.gap".to_owned(), gap),
            (
                "nic.gap_per_byte".to_owned(),
                ParameterInterval::around(per_byte, least, most, level),
            ),
        ]);
        for (field, other, found) in [
            (
                "nic.gap",
                "nic.gap_per_byte",
                self.intervals.gap_correlation,
            ),
            (
                "nic.latency",
                "nic.overhead",
                self.intervals.latency_correlation,
            ),
        ] {
            if let (Some(correlation), Some(interval)) = (found, all.get_mut(field)) {
                interval
                    .correlations
                    .insert(other.to_owned(), (correlation * 1e3).round() / 1e3);
            }
        }
        all.retain(|_, interval| interval.has_width());
        for (field, interval) in self.held() {
            all.entry(field.to_owned()).or_insert(interval);
        }
        let known: BTreeSet<String> = all.keys().cloned().collect();
        all.values_mut().for_each(|interval| {
            interval
                .correlations
                .retain(|other, _| known.contains(other))
        });
        all
    }

    /// Intervals of parameters that are held at 0. Their upper end is a part of the one-way time of the smallest message,
    /// `2o + L`: half for `L`, half for `g`, and a quarter for `o`.
    fn held(&self) -> Vec<(&'static str, ParameterInterval)> {
        let LogGp {
            latency,
            overhead,
            gap,
            ..
        } = self.parameters;
        let one_way = latency + overhead * 2.0;
        let all = [
            ("nic.latency", latency, 0.5),
            ("nic.overhead", overhead, 0.25),
            ("nic.gap", gap, 0.5),
        ];
        let held = all.into_iter().filter_map(|(field, time, part)| {
            let most = tidy_time(one_way * part);
            let interval =
                ParameterInterval::around(Time::ZERO, Time::ZERO, most, self.options.level);
            (time == Time::ZERO && most > Time::ZERO).then_some((field, interval))
        });
        held.collect()
    }
}

/// Rounds to ten significant digits: more than any measurement has, and short in a file.
pub(super) fn tidy(value: f64) -> f64 {
    format!("{value:.9e}")
        .parse()
        .expect("a printed number is a number")
}

pub(super) fn tidy_time(time: Time) -> Time {
    Time::from_nanos(tidy(time.as_nanos()))
}

pub(super) fn tidy_per_byte(time: TimePerByte) -> TimePerByte {
    TimePerByte::from_nanos(tidy(time.as_nanos()))
}
