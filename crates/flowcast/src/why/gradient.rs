//! The slopes of the predicted time with respect to everything, and the changes that would help most.

use flowcast_graph::gradient::{Gradient, Slope};
use flowcast_model::network::Network;
use flowcast_report::answer::{Answer, AnswerTable};
use flowcast_trace::Trace;
use flowcast_units::{Rounded, Time};
use serde_json::{Value, json};

use super::changes::{Change, change_table, changes_by};
use super::{percent, ratio, recorded};
use crate::{Error, Options};

/// The slope of the predicted time with respect to every rank's computing, every pair's latency and time per byte, the
/// overheads and the collectives, all from one pass back over the events of a replay; and up to ten changes that would help,
/// each replayed.
///
/// # Errors
/// As [`predict`](crate::predict()); a schedule.
pub fn gradient(trace: &Trace, network: &Network, options: &Options) -> Result<Answer, Error> {
    let (told, gradient) = recorded(trace, network, options, |graph| Ok(graph.gradient()))?;
    let changes = changes_by(trace, network, options, Some(&gradient))?;
    let mut lines = vec![first_line(&changes, told.makespan)];
    lines.extend(told.lines.iter().cloned());
    lines.push(format!(
        "predicted time on {}: {}",
        network.name,
        Rounded(told.makespan)
    ));
    let costs = Costs::of(&gradient);
    let mut document = told.document(network);
    document["changes"] = changes
        .iter()
        .map(|change| change.document(told.makespan))
        .collect();
    document["slopes"] = costs.document();
    document["other_s"] = gradient.other.as_seconds().into();
    let heading = "changes that would help, each replayed".to_owned();
    let helpful = AnswerTable {
        heading,
        ..change_table(&changes, told.makespan)
    };
    Ok(Answer {
        schema: "flowcast/gradient/1",
        title: format!("{}: what would help", trace.name()),
        lines,
        tables: vec![helpful, costs.table(told.makespan)],
        document,
    })
}

fn first_line(changes: &[Change], makespan: Time) -> String {
    let Some(best) = changes.first() else {
        return "none of the changes that were tried helps".to_owned();
    };
    let told = |change: &Change| {
        format!(
            "{} ({})",
            change.sentence(),
            percent(change.difference(makespan))
        )
    };
    let further: Vec<String> = changes.iter().skip(1).take(2).map(told).collect();
    let further = if further.is_empty() {
        String::new()
    } else {
        format!("; then {}", further.join(", "))
    };
    format!(
        "most would help {}: {} less time{further}",
        best.sentence(),
        percent(-best.difference(makespan))
    )
}

/// The slopes of one kind of cost at one place.
struct Cost {
    what: &'static str,
    of: String,
    slope: Slope,
    unit: &'static str,
    /// What one more unit is in the table, in units of the slope.
    step: (f64, &'static str),
}

struct Costs(Vec<Cost>);

impl Costs {
    /// Those that the end depends on, the largest first.
    fn of(gradient: &Gradient) -> Costs {
        let mut costs = Vec::new();
        let mut add = |what, of: String, slope: Slope, unit, step| {
            if slope.per_unit != 0.0 {
                costs.push(Cost {
                    what,
                    of,
                    slope,
                    unit,
                    step,
                });
            }
        };
        let (of_time, of_factor) = ((1000.0, "1 us"), (0.01, "1 %"));
        let ranks = |slopes: &[Slope]| slopes.iter().copied().enumerate().collect::<Vec<_>>();
        for (rank, slope) in ranks(&gradient.compute) {
            add(
                "compute",
                format!("rank={rank}"),
                slope,
                "factor",
                of_factor,
            );
        }
        for (rank, slope) in ranks(&gradient.overhead) {
            add("overhead", format!("rank={rank}"), slope, "s", of_time);
        }
        for (rank, slope) in ranks(&gradient.gap) {
            add("gap", format!("rank={rank}"), slope, "s", of_time);
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
        Costs(costs)
    }

    fn table(&self, makespan: Time) -> AnswerTable {
        let columns = [
            "cost",
            "of",
            ">on the critical path",
            ">of the time",
            ">step",
            ">each step more",
        ];
        let row = |cost: &Cost| {
            let (step, text) = cost.step;
            vec![
                cost.what.to_owned(),
                cost.of.clone(),
                Rounded(cost.slope.now).to_string(),
                percent(ratio(cost.slope.now, makespan)),
                text.to_owned(),
                Rounded(Time::from_nanos(cost.slope.per_unit * step)).to_string(),
            ]
        };
        AnswerTable {
            rows: self.0.iter().map(row).collect(),
            ..AnswerTable::new(
                "what the time depends on (where chains of events tie, each has its share)",
                &columns,
            )
        }
    }

    /// Slopes in seconds for each unit.
    fn document(&self) -> Value {
        let one = |cost: &Cost| {
            // Seconds for a second, for a second per byte, for a factor larger by 1.
            let scale = if cost.unit == "factor" { 1e-9 } else { 1.0 };
            json!({
                "cost": cost.what,
                "of": cost.of,
                "unit": cost.unit,
                "slope": cost.slope.per_unit * scale,
                "now_s": cost.slope.now.as_seconds(),
            })
        };
        self.0.iter().map(one).collect()
    }
}
