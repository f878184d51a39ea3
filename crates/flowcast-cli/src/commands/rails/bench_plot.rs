//! The thesis' Figures 5.8.3.1 to 5.8.6.5 for one pair of rails: rate over size, a panel for each N.

use std::fmt::Write;

use flowcast::report::chart_svg::{Axis, Chart, Panel};

use super::bench_results::Point;

/// A panel for each N. The last `alone` names are rails alone.
pub(super) fn rates(names: &[&str], alone: usize, points: &[Point]) -> Chart {
    let panels = points.chunk_by(|one, other| one.messages == other.messages);
    Chart {
        title: "Rate one way in Mbit/s over the size of a message".to_owned(),
        names: names.iter().map(ToString::to_string).collect(),
        references: alone,
        has_curves: true,
        panels: panels.map(|points| panel(names.len(), points)).collect(),
    }
}

fn panel(subjects: usize, points: &[Point]) -> Panel {
    let series: Vec<Vec<[f64; 2]>> = (0..subjects)
        .map(|subject: usize| {
            let places = points
                .iter()
                .map(|point| [place(point), point.rate(subject)]);
            places.filter(|[_, rate]| rate.is_finite()).collect()
        })
        .collect();
    let rates = series.iter().flatten().map(|[_, rate]| *rate);
    let ticks = points
        .iter()
        .filter(|point| points.len() < 8 || point.size.0.ilog2().is_multiple_of(4));
    Panel {
        title: format!("N = {}", points[0].messages),
        x: Axis {
            title: "size of a message".to_owned(),
            range: [
                points.iter().map(place).fold(f64::INFINITY, f64::min),
                points.iter().map(place).fold(0.0, f64::max),
            ],
            ticks: ticks
                .map(|point| (place(point), point.size.to_string()))
                .collect(),
        },
        y: Axis::new(
            "rate one way (Mbit/s)",
            [0.0, rates.fold(1e-9, f64::max) * 1.05],
            |rate| ((rate * 1e4).round() / 1e4).to_string(),
        ),
        series,
    }
}

fn place(point: &Point) -> f64 {
    (point.size.0.max(1) as f64).log2()
}

/// The columns of the rates.
pub(super) fn table(names: &[&str], points: &[Point]) -> String {
    let mut csv =
        "# {\"schema\":\"flowcast/rails-rates/1\"}\nnumber,messages,size_bytes,scheduler,rate\n"
            .to_owned();
    // Rails are named by the user.
    let names: Vec<String> = names
        .iter()
        .map(|name| name.replace([',', '"'], " "))
        .collect();
    let all = points
        .iter()
        .flat_map(|point| names.iter().enumerate().map(move |named| (point, named)));
    for (number, (point, (subject, name))) in all.enumerate() {
        let _ = writeln!(
            csv,
            "{number},{},{},{name},{}",
            point.messages,
            point.size.0,
            point.rate(subject)
        );
    }
    csv
}

#[cfg(test)]
mod tests {
    use super::*;
    use flowcast::units::{Bytes, Time};

    #[test]
    fn each_subject_has_a_curve_in_each_panel() {
        let point = |messages, size| Point {
            messages,
            size: Bytes(size),
            one_way: vec![vec![Time::from_micros(10.0)], vec![Time::from_micros(20.0)]],
        };
        let points = [point(1, 1), point(1, 4096), point(8, 1), point(8, 4096)];
        let svg = rates(&["earliest-delivery", "a<b alone"], 1, &points).to_svg();
        // Two in each panel, and in the key.
        assert_eq!(svg.matches("<polyline").count(), 6);
        assert!(svg.contains("N = 8") && svg.contains("a&lt;b alone"));
    }
}
