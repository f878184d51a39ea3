//! `flowcast measure p2p --budget`: round trips chosen one after the other.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;

use anyhow::Result;
use flowcast::units::{Rounded, Time};
use flowcast_measure::budget::{Batch, BudgetPlan, Budgeted, measure_budgeted};
use flowcast_measure::loopback::with_loopback;
use flowcast_measure::prtt::Timed;
use flowcast_measure::tcp::Waiting;
use serde::Serialize;

use super::{Reached, stop_text};
use crate::commands::doctor;
use crate::commands::measure_samples::PartialSamples;
use crate::round_trips::explained;
use crate::terminal::output::{Format, Seconds, Shown, print_out, println_out, show};
use crate::terminal::progress::Progress;
use crate::terminal::tables::table;
use flowcast::report::answer::Grouped;

/// Measures, writes the samples and says what they cost and tell.
pub(super) fn run(
    other: Reached,
    waiting: Waiting,
    plan: &BudgetPlan,
    path: String,
    (output, resume): (Option<&Path>, bool),
    format: Format,
) -> Result<()> {
    let mut provenance = doctor::provenance_of_measurement();
    let seed = plan.seed.to_string();
    let precision = plan.precision.to_string();
    provenance.extend([
        ("path".into(), path),
        ("seed".into(), seed),
        ("precision".into(), precision),
    ]);
    let (mut partial, previous) = PartialSamples::open(output, resume, &provenance, true)?;
    let progress = Progress::for_seconds("measuring", plan.max_time.as_seconds());
    let mut failure = None;
    let mut observe = |batch: &Batch| {
        progress.at_seconds(batch.elapsed.as_seconds());
        progress.say(format!(", {} messages", batch.messages));
        let rows = batch
            .taken
            .iter()
            .map(|Timed { point, time, busy }| (*point, *time, Some(*busy)));
        match partial
            .as_mut()
            .map_or(Ok(()), |partial| partial.append(rows))
        {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                failure = Some(error);
                ControlFlow::Break(())
            }
        }
    };
    let measured = match other {
        Reached::Tcp(mut transport) => {
            measure_budgeted(&mut transport, plan, previous, &mut observe)
        }
        Reached::Shm(end) => end.pinned().and_then(|mut transport| {
            measure_budgeted(&mut transport, plan, previous, &mut observe)
        }),
        Reached::Loopback => with_loopback(waiting, |transport| {
            measure_budgeted(transport, plan, previous, &mut observe)
        }),
    };
    drop(progress);
    let mut measured = measured.map_err(explained)?;
    if let Some(failure) = failure {
        return Err(failure);
    }
    provenance.insert("stopped".into(), stop_text(measured.stop).into());
    measured.samples.provenance = provenance;
    let Some(partial) = partial else {
        print_out!("{}", measured.samples.to_csv());
        return Ok(());
    };
    partial.finish(&measured.samples)?;
    show(&Summary::of(measured, plan.level), format)
}

#[derive(Serialize)]
struct Summary {
    messages: u32,
    round_trips: usize,
    bytes: u64,
    most_in_flight_bytes: u64,
    elapsed_s: Seconds,
    stopped: &'static str,
    level: f64,
    outliers: usize,
    parameters: Vec<Parameter>,
    provenance: BTreeMap<String, String>,
}

#[derive(Serialize)]
struct Parameter {
    symbol: &'static str,
    unit: &'static str,
    value: f64,
    half_width: f64,
}

impl Summary {
    fn of(measured: Budgeted, level: f64) -> Summary {
        let fit = measured.fit;
        let symbols = [("L", "ns"), ("o", "ns"), ("g", "ns"), ("G", "ns/B")];
        let parameter = |fit: &flowcast::fit::bursts::BurstFit, at: usize| {
            let (symbol, unit) = symbols[at];
            Parameter {
                symbol,
                unit,
                value: fit.parameters.as_nanos()[at],
                half_width: fit.half_widths[at],
            }
        };
        Summary {
            messages: measured.messages,
            round_trips: measured.samples.len(),
            bytes: measured.bytes.0,
            most_in_flight_bytes: measured.most_in_flight.0,
            elapsed_s: Seconds(measured.elapsed),
            stopped: stop_text(measured.stop),
            level,
            outliers: fit.as_ref().map_or(0, |fit| fit.outliers),
            parameters: fit
                .iter()
                .flat_map(|fit| (0..4).map(|at| parameter(fit, at)))
                .collect(),
            provenance: measured.samples.provenance,
        }
    }
}

impl Shown for Summary {
    const SCHEMA: &'static str = "flowcast/budgeted-measurement/1";

    fn print(&self) {
        let messages = Grouped(self.messages.into());
        println_out!(
            "{messages} messages in {} tell L, o, g and G ({}).",
            self.elapsed_s,
            self.stopped
        );
        let half = format!(">± at {} %", self.level * 100.0);
        let mut table = table(&["parameter", ">value", &half, ">of it"]);
        for Parameter {
            symbol,
            unit,
            value,
            half_width,
        } in &self.parameters
        {
            let text = |value: f64| match *unit {
                "ns" => Rounded(Time::from_nanos(value)).to_string(),
                unit => format!("{value:.4} {unit}"),
            };
            table.add_row([
                *symbol,
                &text(*value),
                &text(*half_width),
                &format!("{:.2} %", half_width / value * 100.0),
            ]);
        }
        println_out!("{table}");
        let rate = self.bytes as f64 / self.elapsed_s.0.as_seconds() * 8e-6;
        let (bytes, burst) = (Grouped(self.bytes), Grouped(self.most_in_flight_bytes));
        println_out!(
            "{bytes} bytes, {rate:.2} Mbit/s on average, at most {burst} in a burst; {} outliers.",
            self.outliers
        );
    }
}
