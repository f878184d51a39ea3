//! Slopes of the predicted time with respect to all costs, and the changes that would help most.

use flowcast_graph::gradient::{EventGradient, Slope};
use flowcast_network::network::Network;
use flowcast_program::Trace;
use flowcast_table::{self as table, Document, Rows, figure, rows};
use flowcast_units::Time;

use super::{
    changes::{Change, change_table, changes_by},
    percent, recorded,
};
use crate::{Error, Options};

/// Slopes of the predicted time with respect to every rank's computing, every pair's latency and time per byte, the
/// overheads and the collectives, all from one backward pass over the events of a replay; and up to ten changes that would
/// help, each replayed.
///
/// # Errors
/// Errors of [`predict`](crate::predict()); a schedule.
pub fn gradient(trace: &Trace, network: &Network, options: &Options) -> Result<Document, Error> {
    let (told, gradient) = recorded(trace, network, options, |graph| Ok(graph.gradient()))?;
    let changes = changes_by(trace, network, options, Some(&gradient))?;
    let helpful = change_table(&changes, told.makespan);
    Ok(told
        .document("gradient", network, first_line(&changes, told.makespan))
        .titled(format!("{}: changes that help", trace.name()))
        .table(
            "changes",
            helpful.heading("changes that help most, each replayed"),
        )
        .table("slopes", cost_table(&costs(&gradient), told.makespan))
        .field("other_s", gradient.other))
}

fn first_line(changes: &[Change], makespan: Time) -> String {
    let Some(best) = changes.first() else {
        return "none of the tried changes helps".to_owned();
    };
    let further: Vec<String> = changes
        .iter()
        .skip(1)
        .take(2)
        .map(|change: &Change| {
            format!(
                "{} ({})",
                change.sentence(),
                percent(change.difference(makespan))
            )
        })
        .collect();
    let further = if further.is_empty() {
        String::new()
    } else {
        format!("; then {}", further.join(", "))
    };
    format!(
        "best change: {}, {} less time{further}",
        best.sentence(),
        percent(-best.difference(makespan))
    )
}

/// Slope of one kind of cost at one place.
struct CostSlope {
    what: &'static str,
    of: String,
    slope: Slope,
    unit: &'static str,
    /// Step of the table, in units of the slope, and its text.
    step: (f64, &'static str),
}

/// Costs that the end depends on, the largest first.
fn costs(gradient: &EventGradient) -> Vec<CostSlope> {
    let mut costs = Vec::new();
    let mut add = |what, of: String, slope: Slope, unit, step| {
        if slope.per_unit != 0.0 {
            costs.push(CostSlope {
                what,
                of,
                slope,
                unit,
                step,
            });
        }
    };
    let (of_time, of_factor) = ((1000.0, "1 us"), (0.01, "1 %"));
    for (what, slopes, unit, step) in [
        ("compute", &gradient.compute, "factor", of_factor),
        ("overhead", &gradient.overhead, "s", of_time),
        ("gap", &gradient.gap, "s", of_time),
    ] {
        for (rank, slope) in slopes.iter().enumerate() {
            add(what, format!("rank={rank}"), *slope, unit, step);
        }
    }
    for ((from, to), slopes) in &gradient.pairs {
        add(
            "latency",
            format!("{from} to {to}"),
            slopes.latency,
            "s",
            of_time,
        );
        add(
            "gap_per_byte",
            format!("{from} to {to}"),
            slopes.per_byte,
            "s/B",
            (1.0, "1 ns/B"),
        );
    }
    for (op, slope) in &gradient.collectives {
        add(
            "collective",
            op.name().to_owned(),
            *slope,
            "factor",
            of_factor,
        );
    }
    costs.sort_by_key(|cost| std::cmp::Reverse(cost.slope.now));
    costs
}

fn cost_table(costs: &[CostSlope], makespan: Time) -> Rows<&CostSlope> {
    rows(costs)
        .heading("costs that the time depends on (chains of events of equal length share them)")
        .column("cost", "cost", |cost| cost.what)
        .column("of", "of", |cost| &cost.of)
        .field("unit", |cost| cost.unit)
        .field("slope", |cost| {
            // Seconds for each second, for each second per byte, or for a factor larger by 1.
            cost.slope.per_unit * if cost.unit == "factor" { 1e-9 } else { 1.0 }
        })
        .column("now_s", "on the critical path", |cost| cost.slope.now)
        .cell("of the time", |cost| {
            table::percent(cost.slope.now.share_of(makespan), 1)
        })
        .cell("step", |cost| figure(cost.step.1))
        .cell("per step", |cost| {
            Time::from_nanos(cost.slope.per_unit * cost.step.0)
        })
}
