//! LogGP: a message's bytes follow each other G apart (Alexandrov and others, 1995; Lichei, sections 2.2.7 and 3.2). The published
//! fit is the thesis' with its knee, [`mod@crate::loggp`].

use flowcast_model::loggp::LogGp;
use flowcast_units::{Bytes, Time};

use super::{Form, Instance, Medians, MessageCost, Model, alone};
use crate::{
    loggp::{FitOptions, fit_loggp},
    samples::PrttSamples,
};

/// Latency L, overhead o, gap g and gap per byte G.
pub const MODEL: Model = Model {
    name: "loggp",
    source: "Alexandrov and others 1995; Lichei, sections 2.2.7 and 3.2",
    instances: |_| vec![instance()],
    procedure: Some(procedure),
};

/// LogGP's equations; its parameters are L, o, g and G.
pub(super) struct LogGpCost;

impl MessageCost for LogGpCost {
    fn one_way(&self, size: Bytes) -> Form {
        Form::new([1.0, 2.0, 0.0, beyond_first(size)])
    }

    fn spacing(&self, size: Bytes, delay: Time) -> Vec<Form> {
        vec![
            Form::new([0.0, 1.0, 0.0, 0.0]).and(delay),
            Form::new([0.0, 0.0, 1.0, beyond_first(size)]),
        ]
    }

    fn arrival_spacing(&self, size: Bytes) -> Option<Vec<Form>> {
        Some(self.spacing(size, Time::ZERO))
    }
}

fn beyond_first(size: Bytes) -> f64 {
    size.0.saturating_sub(1) as f64
}

fn instance() -> Instance {
    alone(&["L", "o", "g", "G/B"], LogGpCost)
}

fn procedure(medians: Medians<'_>) -> Option<(Instance, Vec<f64>)> {
    let mut samples = PrttSamples::default();
    medians
        .points
        .iter()
        .zip(medians.times)
        .for_each(|(point, time)| samples.push(*point, Time::from_nanos(*time)));
    let options = FitOptions {
        replicates: 0,
        ..FitOptions::default()
    };
    let LogGp {
        latency,
        overhead,
        gap,
        gap_per_byte,
    } = fit_loggp(&samples, &options).ok()?.parameters;
    let times = [latency, overhead, gap].map(Time::as_nanos);
    Some((
        instance(),
        times.into_iter().chain([gap_per_byte.as_nanos()]).collect(),
    ))
}
