//! Causes of a predicted time along the critical path.

use flowcast_graph::critical_path::CriticalPath;
use flowcast_network::network::Network;
use flowcast_program::Trace;
use flowcast_table::{self as table, Document, Grouped, rows};
use flowcast_units::Rounded;

use super::{
    changes::{Change, change_table, changes},
    program_of,
};
use crate::{
    Error, ModelChoice, Options, PreparedProgram, schedule::PreparedSchedule,
    statements::marked_name,
};

/// Predicted time along the critical path, by cause and by rank; and up to ten changes that would help, each replayed.
///
/// # Errors
/// Errors of [`predict`](crate::predict()); a schedule whose ranks have several processors.
pub fn path(trace: &Trace, network: &Network, options: &Options) -> Result<Document, Error> {
    let (model, path, notes) = match trace {
        Trace::Schedule(schedule) => {
            let prepared = PreparedSchedule::new(schedule, Some(network), options)?;
            let (_, path) = prepared.critical_path()?.ok_or_else(|| {
                let found = "a GOAL schedule whose ranks have several processors";
                Error::option("TRACE", found, "one processor for each rank")
            })?;
            (prepared.model().clone(), path, prepared.notes())
        }
        _ => {
            let prepared = PreparedProgram::prepare(program_of(trace)?, Some(network), options)?;
            let path = prepared.critical_path()?.1;
            (prepared.model().clone(), path, prepared.notes())
        }
    };
    let makespan = path.makespan;
    let changes = changes(trace, network, options)?;
    let (shares, ranks) = (path.shares(), path.ranks());
    let counts = &path.counts;
    let shares = rows(&shares)
        .column("limit", "spent on", |share| share.limit.name())
        .column("time_s", "time", |share| share.time)
        .column("fraction", "share", |share| {
            table::percent(share.fraction, 1)
        })
        .bars(|share| share.fraction);
    let ranks = rows(&ranks)
        .column("rank", "rank", |(rank, _)| rank)
        .column("time_s", "time on the path", |(_, time)| time)
        .column("fraction", "share", |(_, time)| {
            table::percent(time.share_of(makespan), 1)
        });
    Ok(Document::new("critical-path")
        .titled(format!("{}: critical path", trace.name()))
        .field("network", &network.name)
        .field("model", model.name())
        .field("makespan_s", makespan)
        .field("messages", counts.messages)
        .field("bytes", counts.bytes)
        .field("overheads", counts.overheads)
        .field("gaps", counts.gaps)
        .field("collectives", counts.collectives)
        .lines(lines(&path, &changes, &model, network))
        .noted(notes)
        .table("shares", shares)
        .table("ranks", ranks)
        .table("changes", change_table(&changes, makespan)))
}

/// The answer in words, the model, the use of the time, and the contents of the path.
fn lines(
    path: &CriticalPath,
    changes: &[Change],
    model: &ModelChoice,
    network: &Network,
) -> Vec<String> {
    let best = changes
        .first()
        .map_or("none of the tried changes helps".to_owned(), |best| {
            let part = 100.0 * (1.0 - best.makespan.as_nanos() / path.makespan.as_nanos());
            format!("best change: {}, {part:.1} % less time", best.sentence())
        });
    let counts = &path.counts;
    vec![
        format!("{}; {best}", path.reason()),
        model.to_string(),
        format!(
            "predicted time on {}: {} ({})",
            marked_name(network),
            Rounded(path.makespan),
            path.sentence()
        ),
        format!(
            "on the path: {} messages with {} bytes in total, {} collectives",
            Grouped(counts.messages),
            Grouped(counts.bytes.0),
            Grouped(counts.collectives)
        ),
    ]
}
