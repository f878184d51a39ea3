//! A fit as a network file.

use std::collections::BTreeMap;

use super::loggp::LogGpFit;
use flowcast_model::loggp::LogGp;
use flowcast_model::network::{Interval, LoneFlow, Network, Nic, Rule};
use flowcast_units::{Time, TimePerByte};

impl LogGpFit {
    /// The fitted network, with its intervals and `provenance`.
    pub fn to_network(&self, name: &str, provenance: BTreeMap<String, String>) -> Network {
        let LogGp { latency, overhead, gap, gap_per_byte } = self.parameters;
        let nic = Nic {
            overhead: tidy_time(overhead),
            gap: tidy_time(gap),
            ..Nic::new(tidy_time(latency), LoneFlow::GapPerByte(tidy_per_byte(gap_per_byte)))
        };
        Network {
            title: "Measured by parametrised round trips".to_owned(),
            source: format!("flowcast fit, {} samples", self.samples),
            intervals: self.interval_texts(),
            provenance,
            ..Network::new(name, Rule::Loggops, nic)
        }
    }

    fn interval_texts(&self) -> BTreeMap<String, Interval> {
        let level = self.options.level;
        let of_time = |(low, high): (Time, Time)| Interval {
            low: tidy_time(low).to_string(),
            high: tidy_time(high).to_string(),
            level,
        };
        let (low, high) = self.intervals.gap_per_byte;
        let per_byte = Interval { low: tidy_per_byte(low).to_string(), high: tidy_per_byte(high).to_string(), level };
        BTreeMap::from([
            ("nic.latency".to_owned(), of_time(self.intervals.latency)),
            ("nic.overhead".to_owned(), of_time(self.intervals.overhead)),
            ("nic.gap".to_owned(), of_time(self.intervals.gap)),
            ("nic.gap_per_byte".to_owned(), per_byte),
        ])
    }
}

/// Ten significant digits: more than any measurement has, and short in a file.
fn tidy(value: f64) -> f64 {
    format!("{value:.9e}").parse().expect("a printed number is a number")
}

fn tidy_time(time: Time) -> Time {
    Time::from_nanos(tidy(time.as_nanos()))
}

fn tidy_per_byte(time: TimePerByte) -> TimePerByte {
    TimePerByte::from_nanos(tidy(time.as_nanos()))
}
