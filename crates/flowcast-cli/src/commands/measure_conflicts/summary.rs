//! Measured conflicts as a table and as JSON.

use flowcast::{
    calibrate::conflict_samples::{ConflictSamples, MeasuredConflict},
    model::cluster::{conflicts::ConflictKind, flow::Flow},
    statistics::interval::mean_interval,
    table::{Document, Value, rows},
    units::Time,
};

/// Document with every flow, its median, the interval of its mean, and its repetitions. The table for people has the
/// slowdown of each conflict's flows.
pub(super) fn document(samples: &ConflictSamples) -> Document {
    let alone = alone(&samples.measured);
    let table = rows(&samples.measured)
        .column("conflict", "conflict", |measured| &measured.conflict.name)
        .field("kind", |measured| measured.conflict.kind.to_string())
        .field("flows", flows)
        .cell("flows", |measured| {
            let flows = &measured.conflict.flows;
            match few(measured) {
                true => listed(
                    flows
                        .iter()
                        .map(|flow| format!("{}>{}", flow.src, flow.dst)),
                ),
                false => format!("{} flows", flows.len()),
            }
        })
        .cell("repetitions", |measured| measured.repetitions())
        .cell("longest", |measured| {
            measured.medians().into_iter().max().unwrap_or(Time::ZERO)
        })
        .cell("slowdown", |measured| {
            let medians = if few(measured) {
                measured.medians()
            } else {
                Vec::new()
            };
            let times = medians.iter().map(|median| median.as_seconds() / alone);
            listed(times.map(|times| format!("{times:.2}")))
        });
    Document::new("conflict-measurement")
        .table("conflicts", table)
        .field("provenance", &samples.provenance)
}

fn few(measured: &MeasuredConflict) -> bool {
    !matches!(
        measured.conflict.kind,
        ConflictKind::Random | ConflictKind::Short
    )
}

fn listed(items: impl Iterator<Item = String>) -> String {
    items.collect::<Vec<_>>().join("  ")
}

fn flows(measured: &MeasuredConflict) -> Value {
    let medians = measured.medians();
    let flows = measured.conflict.flows.iter();
    let flows = flows.zip(&measured.durations).zip(&medians);
    rows(flows.map(|((flow, times), median)| (flow, times, median)))
        .field("id", |(flow, ..)| flow.id)
        .field("src", |(flow, ..)| flow.src)
        .field("dst", |(flow, ..)| flow.dst)
        .field("bytes", |(flow, ..)| flow.size)
        .field("start_s", |(flow, ..): (&Flow, _, _)| flow.start)
        .field("median_s", |(.., median)| median)
        .field("relative_half_width", |(_, times, _)| {
            let seconds: Vec<f64> = times.iter().map(|time| time.as_seconds()).collect();
            let interval = mean_interval(&seconds, 0.95).ok();
            interval.map(|interval| interval.relative_half_width())
        })
        .field("repetitions_s", |(_, times, _)| times)
        .into()
}

/// Median time of a single message of full size, in seconds.
fn alone(all: &[MeasuredConflict]) -> f64 {
    let first = all
        .iter()
        .find(|measured| measured.conflict.kind == ConflictKind::Alone);
    let median = first.and_then(|measured| measured.medians().first().copied());
    median.map_or(f64::NAN, Time::as_seconds)
}
