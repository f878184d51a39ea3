//! Measured round trips as a page that states for every number its samples, distribution, interval, outliers and environment.

use flowcast_fit::loggp::{LogGpFit, interval};
use flowcast_fit::quality::{Quality, qualities};
use flowcast_fit::samples::PrttSamples;
use flowcast_model::stats::StatsError;
use flowcast_report::chart_page::{ChartPage, Picture};
use flowcast_units::{Rounded, Time};
use serde_json::{Value, json};

/// The page; `title` names the measurement.
///
/// # Errors
/// A level of the fit outside (0, 1).
pub fn samples_page(
    title: &str,
    samples: &PrttSamples,
    fit: &LogGpFit,
) -> Result<String, StatsError> {
    let points = qualities(samples, fit.options.level)?;
    let document =
        json!({ "points": points.iter().map(drawn).collect::<Vec<Value>>() }).to_string();
    let environment: Vec<Vec<String>> = samples
        .provenance
        .iter()
        .map(|(key, value)| vec![key.clone(), value.clone()])
        .collect();
    let environment = [
        vec![vec!["environment".to_owned(), String::new()]],
        environment,
    ]
    .concat();
    let page = ChartPage {
        title,
        summary: &summary(&points, samples, fit),
        tables: &[&parameters(fit), &table(&points), &environment],
        document: &document,
        picture: Picture::Samples,
    };
    Ok(page.to_html())
}

/// What is drawn of a point.
fn drawn(quality: &Quality) -> Value {
    json!({
        "label": label(quality),
        "times_us": quality.times.iter().map(|time| time.as_micros()).collect::<Vec<f64>>(),
        "low_us": quality.interval.map(|(low, _)| low.as_micros()),
        "high_us": quality.interval.map(|(_, high)| high.as_micros()),
        "warm_up": quality.warm_up,
    })
}

fn label(quality: &Quality) -> String {
    let point = quality.point;
    let delay = if point.delay == Time::ZERO {
        String::new()
    } else {
        format!(", {} apart", point.delay)
    };
    format!("n = {}, {}{delay}", point.messages, point.size)
}

fn summary(points: &[Quality], samples: &PrttSamples, fit: &LogGpFit) -> Vec<String> {
    let count = |of: &dyn Fn(&Quality) -> bool| points.iter().filter(|point| of(point)).count();
    let outliers: usize = points.iter().map(|point| point.outliers).sum();
    let order = match (
        samples.provenance.get("rounds"),
        samples.provenance.get("seed"),
    ) {
        (Some(rounds), _) => {
            format!("Each of {rounds} rounds took every point once, in a new random order.")
        }
        (None, Some(_)) => "Points were taken in batches, each in a random order.".to_owned(),
        (None, None) => "The samples do not say in which order points were taken.".to_owned(),
    };
    let of = points.len();
    let mut lines = vec![
        format!(
            "{} round trips of {of} points; {outliers} of them lie outside Tukey's fences (1.5 interquartile ranges). None is left out of the table.",
            samples.len()
        ),
        order,
        format!(
            "In {} of {of} points the first samples differ from the others as in a warm-up, in {} samples depend on the ones before.",
            count(&|point| point.warm_up > 0),
            count(&|point| point.dependence.is_some())
        ),
    ];
    lines.extend(
        fit.warnings
            .iter()
            .map(|warning| format!("Warning: {warning}.")),
    );
    lines
}

fn parameters(fit: &LogGpFit) -> Vec<Vec<String>> {
    let percent = format!("{} % interval", fit.options.level * 100.0);
    let times = |ends: (Time, Time)| {
        interval(ends).map_or("-".to_owned(), |(low, high)| {
            format!("{} .. {}", Rounded(low), Rounded(high))
        })
    };
    let row = |name: &str, value: Time, ends| {
        vec![name.to_owned(), Rounded(value).to_string(), times(ends)]
    };
    let (parameters, intervals) = (&fit.parameters, &fit.intervals);
    let per_byte = |value: f64| format!("{value:.4} ns/B");
    let ends = interval(intervals.gap_per_byte);
    vec![
        vec!["parameter".to_owned(), "value".to_owned(), percent],
        row("g, gap", parameters.gap, intervals.gap),
        row("o, overhead", parameters.overhead, intervals.overhead),
        row("L, latency", parameters.latency, intervals.latency),
        vec![
            "G, gap per byte".to_owned(),
            per_byte(parameters.gap_per_byte.as_nanos()),
            ends.map_or("-".to_owned(), |(low, high)| {
                format!(
                    "{} .. {}",
                    per_byte(low.as_nanos()),
                    per_byte(high.as_nanos())
                )
            }),
        ],
    ]
}

fn table(points: &[Quality]) -> Vec<Vec<String>> {
    let header = [
        "point",
        "samples",
        "minimum",
        "lower quartile",
        "median",
        "upper quartile",
        "maximum",
        "mean",
        "interval of the median",
        "outliers",
        "warm-up",
        "dependence",
    ];
    let row = |quality: &Quality| {
        let ends = quality
            .interval
            .map(|(low, high)| format!("{} .. {}", Rounded(low), Rounded(high)));
        let mut cells = vec![label(quality), quality.times.len().to_string()];
        cells.extend(quality.five.iter().map(|time| Rounded(*time).to_string()));
        cells.extend([
            Rounded(quality.mean).to_string(),
            ends.unwrap_or("too few samples".to_owned()),
            quality.outliers.to_string(),
            quality.warm_up.to_string(),
            quality
                .dependence
                .map_or("-".to_owned(), |found| format!("{found:+.2}")),
        ]);
        cells
    };
    [
        vec![header.map(str::to_owned).to_vec()],
        points.iter().map(row).collect(),
    ]
    .concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use flowcast_fit::loggp::{FitOptions, fit_loggp};
    use flowcast_fit::prtt::{PrttPoint, prtt};
    use flowcast_model::loggp::LogGp;
    use flowcast_units::{Bytes, TimePerByte};

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
        let page = samples_page("round trips", &samples, &fit).unwrap();
        for part in [
            "120 round trips of 6 points; 6 of them lie outside",
            "<td>n = 16, 1B, 99us apart</td><td>20</td>",
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
