//! `flowcast measure p2p --adaptive`: measurement that chooses its round trips one after the other.

use anyhow::Result;
use flowcast::{
    fit::{bursts::BurstFit, samples::csv_header},
    table::{Document, Grouped, or_dash, percent, rows, shown},
    units::{Rounded, Time},
};
use flowcast_measure::{
    budget::{BudgetBatch, BudgetPlan, BudgetedRun, measure_budgeted},
    loopback::with_loopback,
    prtt::Timed,
};

use super::{AnswererLink, KeptSamples, P2p, stop_text};
use crate::{commands::doctor, round_trips::explained};
use flowcast_terminal::{output::Format, progress::Progress};

/// Measures, writes the samples, and prints their cost and the parameters.
pub(super) fn run(asked: &P2p, other: AnswererLink, path: String) -> Result<()> {
    let plan = &BudgetPlan {
        largest: asked.size,
        messages: asked.limit,
        max_time: asked.time_limit,
        precision: asked.precision.unwrap_or(BudgetPlan::default().precision),
        seed: asked.seed,
        ..BudgetPlan::default()
    };
    let mut provenance = doctor::provenance_of_measurement();
    provenance.extend([
        ("path".into(), path),
        ("seed".into(), plan.seed.to_string()),
        ("precision".into(), plan.precision.to_string()),
    ]);
    let (mut kept, previous) = KeptSamples::open(asked, csv_header(&provenance, true))?;
    let progress = Progress::for_seconds("measuring", plan.max_time.as_seconds());
    let mut observe = |batch: &BudgetBatch| {
        progress.at_seconds(batch.elapsed.as_seconds());
        progress.say(format!(", {} messages", batch.messages));
        let rows = batch.taken.iter();
        kept.keep(rows.map(|Timed { point, time, busy }| (*point, *time, Some(*busy))))
    };
    let measured = match other {
        AnswererLink::Tcp(mut transport) => {
            measure_budgeted(&mut transport, plan, previous, &mut observe)
        }
        AnswererLink::Shm(end) => end.pinned().and_then(|mut transport| {
            measure_budgeted(&mut transport, plan, previous, &mut observe)
        }),
        AnswererLink::Loopback => with_loopback(asked.waiting.into(), |transport| {
            measure_budgeted(transport, plan, previous, &mut observe)
        }),
    };
    drop(progress);
    let mut measured = measured.map_err(explained)?;
    provenance.insert("stopped".into(), stop_text(measured.stop).into());
    measured.samples.provenance = provenance;
    let document = document(&measured, plan.level);
    kept.deliver(&measured.samples, &document, Format { json: asked.json })
}

fn document(measured: &BudgetedRun, level: f64) -> Document {
    const SYMBOLS: [(&str, &str); 4] = [("L", "ns"), ("o", "ns"), ("g", "ns"), ("G", "ns/B")];
    let parameters = rows(measured.fit.iter().flat_map(|fit: &BurstFit| {
        let widths = fit.parameters.as_nanos().into_iter().zip(fit.half_widths);
        SYMBOLS.into_iter().zip(widths).collect::<Vec<_>>()
    }))
    .column("symbol", "parameter", |((symbol, _), _)| symbol)
    .field("unit", |((_, unit), _)| unit)
    .column("value", "value", |((_, unit), (value, _))| {
        shown(value, text(unit, value))
    })
    .column(
        "half_width",
        format!("± at {} %", level * 100.0),
        |((_, unit), (_, half))| shown(half, text(unit, half)),
    )
    .cell("relative", |(_, (value, half))| {
        let part = half / value;
        or_dash(part.is_finite().then(|| percent(part, 2)))
    });
    let outliers = measured.fit.as_ref().map_or(0, |fit| fit.outliers);
    let (stopped, bytes) = (stop_text(measured.stop), measured.bytes.0);
    let rate = bytes as f64 / measured.elapsed.as_seconds() * 8e-6;
    Document::new("budgeted-measurement")
        .field("messages", measured.messages)
        .field("round_trips", measured.samples.len())
        .field("bytes", bytes)
        .field("most_in_flight_bytes", measured.most_in_flight)
        .field("elapsed_s", measured.elapsed)
        .field("stopped", stopped)
        .field("level", level)
        .field("outliers", outliers)
        .field("provenance", &measured.samples.provenance)
        .line(format!(
            "Estimated L, o, g and G from {} messages in {} ({stopped}).",
            Grouped(measured.messages.into()),
            Rounded(measured.elapsed)
        ))
        .table("parameters", parameters)
        .line(format!(
            "{} bytes, {rate:.2} Mbit/s on average, at most {} bytes in a burst; {outliers} outliers.",
            Grouped(bytes),
            Grouped(measured.most_in_flight.0)
        ))
}

fn text(unit: &str, value: f64) -> String {
    match unit {
        "ns" => Rounded(Time::from_nanos(value)).to_string(),
        unit => format!("{value:.4} {unit}"),
    }
}
