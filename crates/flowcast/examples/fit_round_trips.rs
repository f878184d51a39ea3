//! Fits a network file to measured round trips. The samples are computed from known parameters, which the fit recovers.
//!
//! `cargo run --release -p flowcast --example fit_round_trips`

use std::collections::BTreeMap;

use flowcast::{
    fit::{
        loggp::FitOptions,
        prtt::{PrttPoint, delay_for_overhead, prtt},
        samples::PrttSamples,
    },
    model::loggp::LogGp,
    units::{Bytes, Time, TimePerByte},
};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let truth = LogGp {
        latency: Time::from_micros(25.0),
        overhead: Time::from_micros(3.0),
        gap: Time::from_micros(5.0),
        gap_per_byte: TimePerByte::from_nanos(8.5),
    };
    let delay = delay_for_overhead(truth.gap, truth.gap_per_byte, Bytes(65536));
    let mut samples = PrttSamples::default();
    for size in [1, 1024, 4096, 16384, 65536].map(Bytes) {
        let points = [
            PrttPoint::round_trip(size),
            PrttPoint::new(16, Time::ZERO, size),
            PrttPoint::new(16, delay, size),
        ];
        for point in points {
            // Three repetitions within a thousandth of each other.
            for factor in [0.9995, 1.0, 1.0005] {
                samples.push(point, prtt(&truth, point) * factor);
            }
        }
    }
    let fit = flowcast::fit(&samples, &FitOptions::default())?;
    print!("{}", fit.to_network("made-up", BTreeMap::new()).to_toml());
    Ok(())
}
