//! Page of measured round trips that states for every number its samples, distribution, interval, outliers and environment.

use flowcast_fit::{
    loggp::{LogGpFit, interval},
    quality::{Quality, qualities},
    samples::PrttSamples,
};
use flowcast_report::chart_page::{Picture, chart_page};
use flowcast_statistics::StatsError;
use flowcast_table::{Document, Table, figure, or_dash, rows, shown};
use flowcast_units::{Rounded, Time, TimePerByte};

/// Page of a fit: its document, and the samples of each point.
///
/// # Errors
/// A level of the fit outside (0, 1).
pub fn samples_page(
    document: Document,
    samples: &PrttSamples,
    fit: &LogGpFit,
) -> Result<String, StatsError> {
    let points = qualities(samples, fit.options.level)?;
    let document = document
        .lines(summary(&points, samples))
        .table("points", point_table(&points));
    let page = chart_page(&document, Picture::Samples, &samples.provenance);
    Ok(page.expect("measured times are finite"))
}

fn label(quality: &Quality) -> String {
    let point = quality.point;
    let delay = if point.delay == Time::ZERO {
        String::new()
    } else {
        format!(", {} apart", Rounded(point.delay))
    };
    format!("n = {}, {}{delay}", point.messages, Rounded(point.size))
}

fn summary(points: &[Quality], samples: &PrttSamples) -> Vec<String> {
    let warm_up = points.iter().filter(|point| point.warm_up > 0);
    let dependent = points.iter().filter(|point| point.dependence.is_some());
    let outliers: usize = points.iter().map(|point| point.outliers).sum();
    let order = match (
        samples.provenance.get("rounds"),
        samples.provenance.get("seed"),
    ) {
        (Some(rounds), _) => {
            format!("Each of {rounds} rounds measured every point once, in a new random order.")
        }
        (None, Some(_)) => "Points were measured in batches, each in a random order.".to_owned(),
        (None, None) => "The samples do not state the order of the measurements.".to_owned(),
    };
    let of = points.len();
    vec![
        format!(
            "{} round trips of {of} points; {outliers} of them lie outside Tukey's fences (1.5 interquartile \
             ranges). The table includes them.",
            samples.len()
        ),
        order,
        format!(
            "Points whose first samples look like a warm-up: {} of {of}. Points whose samples depend on earlier \
             samples: {}.",
            warm_up.count(),
            dependent.count()
        ),
    ]
}

/// Table of the four parameters with their intervals.
pub fn parameter_table(fit: &LogGpFit) -> Table {
    let (values, intervals) = (&fit.parameters, &fit.intervals);
    let all = [
        ("g, gap", time(values.gap), ends(intervals.gap, time)),
        (
            "o, overhead",
            time(values.overhead),
            ends(intervals.overhead, time),
        ),
        (
            "L, latency",
            time(values.latency),
            ends(intervals.latency, time),
        ),
        (
            "G, gap per byte",
            per_byte(values.gap_per_byte),
            ends(intervals.gap_per_byte, per_byte),
        ),
    ];
    rows(&all)
        .cell("parameter", |(name, ..)| *name)
        .cell("value", |(_, value, _)| figure(value))
        .cell(
            format!("{} % interval", fit.options.level * 100.0),
            |(.., ends)| figure(ends),
        )
        .into()
}

fn time(time: Time) -> String {
    Rounded(time).to_string()
}

fn per_byte(time: TimePerByte) -> String {
    format!("{:.4} ns/B", time.as_nanos())
}

fn ends<T: PartialEq>(found: (T, T), text: impl Fn(T) -> String) -> String {
    interval(found).map_or("-".to_owned(), |(low, high)| {
        format!("{} .. {}", text(low), text(high))
    })
}

fn point_table(points: &[Quality]) -> Table {
    const FIVE: [&str; 5] = [
        "minimum",
        "lower quartile",
        "median",
        "upper quartile",
        "maximum",
    ];
    let mut table = rows(points)
        .column("label", "point", label)
        .column("times_us", "samples", |point| {
            shown(&point.times, point.times.len())
        })
        .field("low_us", |point| point.interval.map(|(low, _)| low))
        .field("high_us", |point| point.interval.map(|(_, high)| high));
    for (at, name) in FIVE.into_iter().enumerate() {
        table = table.cell(name, |point| point.five[at]);
    }
    table
        .cell("mean", |point| point.mean)
        .cell("interval of the median", |point| match point.interval {
            Some((low, high)) => figure(format!("{} .. {}", Rounded(low), Rounded(high))),
            None => "too few samples".into(),
        })
        .cell("outliers", |point| point.outliers)
        .column("warm_up", "warm-up", |point| point.warm_up)
        .cell("dependence", |point| {
            or_dash(point.dependence.map(|found| figure(format!("{found:+.2}"))))
        })
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use flowcast_fit::{
        loggp::{FitOptions, fit_loggp},
        prtt::{PrttPoint, prtt},
    };
    use flowcast_network::loggp::LogGp;
    use flowcast_units::Bytes;

    #[test]
    fn a_page_states_samples_intervals_outliers_and_environment() {
        let [latency, overhead, gap] = [20.0, 3.0, 5.0].map(Time::from_micros);
        let network = LogGp {
            latency,
            overhead,
            gap,
            gap_per_byte: TimePerByte::from_nanos(8.0),
        };
        let mut samples = PrttSamples::default();
        samples.provenance.insert("host".into(), "node<1>".into());
        for point in [(1, 0.0), (16, 0.0), (16, 99.0)]
            .into_iter()
            .flat_map(|(n, delay)| {
                [1, 4096].map(|size| PrttPoint::new(n, Time::from_micros(delay), Bytes(size)))
            })
        {
            for at in 0..20 {
                let late = if at == 11 {
                    50.0
                } else {
                    f64::from(at % 5) * 0.1
                };
                samples.push(point, prtt(&network, point) + Time::from_micros(late));
            }
        }
        let fit = fit_loggp(
            &samples,
            &FitOptions {
                replicates: 20,
                ..FitOptions::default()
            },
        )
        .unwrap();
        let page = samples_page(Document::new("fit"), &samples, &fit).unwrap();
        for part in [
            "120 round trips of 6 points; 6 of them lie outside",
            "n = 16, 1 B, 99.00 us apart</td><td>20</td>",
            "node&lt;1&gt;",
        ] {
            assert!(
                page.contains(part),
                "{part}: {}",
                &page[page.find("<h1>").unwrap()..][..1500]
            );
        }
    }
}
