//! Validation of a program as one document.

use std::collections::BTreeMap;

use flowcast::{
    RecordingPrediction,
    model::network::Network,
    report::validation::app::{AppValidation, MeasuredQuantity, PredictorAccuracy, QuantityRow},
    statements::{margin, of_runs},
    statistics::{StatsError, observation::Observations},
    table::{Document, Record, Rows, Value, figure, json, percent, relative_error, rows},
    units::{Rounded, Time},
};

/// Kind of the JSON.
pub(super) const KIND: &str = "app-validation";

/// Maximum number of rows of a table. Further rows are only in the page.
const ROWS: usize = 24;

/// Errors of each predictor, with a check that its interval contains the measurement.
pub(super) fn document(
    validation: &AppValidation,
    fared: &[PredictorAccuracy],
    predicted: &[RecordingPrediction],
    network: &Network,
) -> Result<Document, StatsError> {
    let all = validation.rows()?;
    let holds =
        |interval: &flowcast::Interval| (interval.low..=interval.high).contains(&all[0].measured);
    let names = &validation.predictors;
    let predictions = rows(names.iter().zip(fared).zip(predicted))
        .column("prediction", "prediction", |((name, _), _)| name)
        .column("total_error", "total", |((_, fared), _)| {
            relative_error(fared.total)
        })
        .column("communication_error", "communication", |((_, fared), _)| {
            relative_error(fared.communication)
        })
        .field("regions", |((_, fared), _)| {
            fared.regions.as_ref().map(regions)
        })
        .field("interval_s", |(_, of)| {
            of.interval.as_ref().map(|of| (of.low, of.high))
        })
        .field("interval_level", |(_, of)| {
            of.interval.as_ref().map(|of| of.level)
        })
        .field("interval_holds", |(_, of)| of.interval.as_ref().map(holds));
    let in_regions = names.iter().zip(fared);
    let in_regions = in_regions.filter_map(|(name, fared)| Some((name, fared.regions.as_ref()?)));
    let in_regions = rows(in_regions)
        .cell("prediction", |(name, _)| name)
        .cell("regions", |(_, of)| of.all().len())
        .cell("within 10 %", |(_, of)| percent(of.share_within(0.1), 1))
        .cell("median error", |(_, of)| percent(of.median_absolute(), 1))
        .cell("mean error", |(_, of)| percent(of.mean_absolute(), 1))
        .cell("worst", |(_, of)| relative_error(of.worst().error()))
        .cell("region", |(_, of)| &of.worst().of);
    let mut document = Document::new(KIND)
        .titled(&validation.title)
        .table("predictions", predictions)
        .shown(in_regions);
    for (quantity, heading) in [
        (MeasuredQuantity::Total, "the whole run"),
        (
            MeasuredQuantity::Region,
            "regions, each on the rank with the longest time",
        ),
        (
            MeasuredQuantity::Rank,
            "communication of each rank in the recorded run",
        ),
        (
            MeasuredQuantity::Call,
            "calls of the recorded run, sum over all ranks",
        ),
    ] {
        let part = all.iter().filter(|row| row.quantity == quantity);
        document = document.shown(quantities(names, part).heading(heading));
    }
    for (name, of) in names.iter().zip(predicted) {
        document = document.line(match &of.interval {
            None => format!("{name}: {}", margin([network], None, true)),
            Some(interval) => {
                let holds = if holds(interval) {
                    "contains"
                } else {
                    "does not contain"
                };
                format!(
                    "{name}: {interval}, which {holds} the median of the runs; {}",
                    interval.covers
                )
            }
        });
    }
    let cost = validation.recording_cost()?;
    let runs = validation.runs.iter();
    Ok(document
        .noted(of_runs(&validation.provenance))
        .noted(validation.processor_share.map(sharing))
        .noted(predicted.iter().flat_map(|of| &of.notes))
        .line(format!(
            "{} runs, {} ranks; {} of thread CPU time for computation in total; errors are (predicted - measured) / measured",
            validation.runs.len(),
            validation.worked.len(),
            Rounded(validation.worked.iter().copied().sum::<Time>())
        ))
        .line(format!(
            "the recorded run took {} {} than the median of the timed runs",
            percent(cost.abs(), 1),
            if cost < 0.0 { "less" } else { "longer" }
        ))
        .most(ROWS, "the page has")
        .field("program", &validation.title)
        .field("ranks", validation.worked.len())
        .field("rows", row_fields(names, &all))
        .field("runs", runs.map(|run| json(run.clone().map(Time::as_seconds))).collect::<Value>())
        .field("recording_cost", cost)
        .field("processor_share", validation.processor_share)
        .field("thread_cpu_s", &validation.worked)
        .field("provenance", &validation.provenance))
}

/// Sentence on ranks that take turns on processors, in which they compute for this fraction of the time.
pub(super) fn sharing(share: f64) -> String {
    format!(
        "ranks share processors, in which they compute for {} of the time",
        percent(share, 1)
    )
}

fn regions(of: &Observations<String>) -> Record {
    let worst = of.worst();
    Record::new()
        .field("count", of.all().len())
        .field("mean_absolute_error", of.mean_absolute())
        .field("median_absolute_error", of.median_absolute())
        .field("within_ten_percent", of.share_within(0.1))
        .field(
            "worst",
            Record::new()
                .field("region", &worst.of)
                .field("error", worst.error()),
        )
}

fn row_fields<'a>(names: &[String], all: &'a [QuantityRow]) -> Rows<&'a QuantityRow> {
    rows(all)
        .field("quantity", |row| row.quantity.name())
        .field("name", |row| &row.name)
        .field("measured_s", |row| row.measured)
        .field("interval_s", |row| row.interval)
        .field("predicted_s", |row| {
            by_name(names, row.predicted.iter().map(Some))
        })
        .field("predicted_range_s", |row| {
            by_name(names, row.ranges.iter().copied())
        })
        .field("errors", |row| {
            row.has_errors
                .then(|| by_name(names, (0..names.len()).map(|at| row.error(at))))
        })
}

/// Values by name. Absent ones are left out.
fn by_name<V: Into<Value>>(names: &[String], values: impl IntoIterator<Item = Option<V>>) -> Value {
    let known = names.iter().zip(values);
    known
        .filter_map(|(name, value)| Some((name, value?)))
        .collect::<BTreeMap<_, _>>()
        .into()
}

fn quantities<'a>(
    names: &[String],
    part: impl Iterator<Item = &'a QuantityRow>,
) -> Rows<&'a QuantityRow> {
    let mut table = rows(part)
        .cell("", |row| &row.name)
        .cell("measured", |row| row.measured)
        .cell("95 % interval", |row| row.interval.map(between));
    for (at, name) in names.iter().enumerate() {
        table = table.cell(name, |row| {
            let error = row.error(at);
            let error = error.map_or(String::new(), |of| format!(" ({})", relative_error(of)));
            let range =
                row.ranges[at].map_or(String::new(), |range| format!(", {}", between(range)));
            figure(format!("{}{error}{range}", Rounded(row.predicted[at])))
        });
    }
    table
}

fn between((low, high): (Time, Time)) -> Value {
    figure(format!("{} .. {}", Rounded(low), Rounded(high)))
}
