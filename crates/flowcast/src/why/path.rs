//! What a predicted time is spent on along the chain of events that ends last.

use flowcast_model::network::Network;
use flowcast_replay::critical_path::{CriticalPath, Share};
use flowcast_report::answer::{Answer, AnswerTable, Grouped};
use flowcast_trace::Trace;
use flowcast_units::{Rank, Rounded, Time};
use serde_json::{Value, json};

use super::changes::{Change, change_table, changes};
use super::{percent, program_of, ratio};
use crate::{Error, ModelChoice, Options, PreparedProgram};

/// What the predicted time is spent on along the chain of events that ends last, by cause and by rank; and up to ten changes
/// that would help, each replayed.
///
/// # Errors
/// As [`predict`](crate::predict()); a schedule.
pub fn path(trace: &Trace, network: &Network, options: &Options) -> Result<Answer, Error> {
    let prepared = PreparedProgram::of(program_of(trace)?, Some(network), options)?;
    let (outcome, path) = prepared.critical_path()?;
    let makespan = outcome.makespan();
    let changes = changes(trace, network, options)?;
    let (shares, ranks) = (path.shares(), path.ranks());
    Ok(Answer {
        schema: "flowcast/critical-path/1",
        title: format!("{}: what the time is spent on", trace.name()),
        lines: lines(&path, &changes, prepared.model()),
        document: json!({
            "network": network.name,
            "model": prepared.model().name(),
            "makespan_s": makespan.as_seconds(),
            "messages": path.counts.messages,
            "bytes": path.counts.bytes.0,
            "overheads": path.counts.overheads,
            "gaps": path.counts.gaps,
            "collectives": path.counts.collectives,
            "shares": shares.iter().map(share_document).collect::<Vec<Value>>(),
            "ranks": ranks.iter().map(|rank| rank_document(*rank, makespan)).collect::<Vec<Value>>(),
            "changes": changes.iter().map(|change| change.document(makespan)).collect::<Vec<Value>>(),
        }),
        tables: vec![
            share_table(&shares),
            rank_table(&ranks, makespan),
            change_table(&changes, makespan),
        ],
    })
}

/// The answer in words, the model, where the time goes, and what there is on the path.
fn lines(path: &CriticalPath, changes: &[Change], model: &ModelChoice) -> Vec<String> {
    let best = changes
        .first()
        .map_or("no change of a field helps".to_owned(), |best| {
            let part = 100.0 * (1.0 - best.makespan.as_nanos() / path.makespan.as_nanos());
            format!("most would help {}: {part:.1} % less time", best.sentence())
        });
    let counts = &path.counts;
    vec![
        format!("{}; {best}", path.reason()),
        model.to_string(),
        format!(
            "predicted time: {}, of it {}",
            Rounded(path.makespan),
            path.sentence()
        ),
        format!(
            "on the path: {} messages of {} bytes, {} collectives",
            Grouped(counts.messages),
            Grouped(counts.bytes.0),
            Grouped(counts.collectives)
        ),
    ]
}

fn share_table(shares: &[Share]) -> AnswerTable {
    let row = |share: &Share| {
        vec![
            share.limit.name().to_owned(),
            Rounded(share.time).to_string(),
            percent(share.fraction),
        ]
    };
    AnswerTable {
        rows: shares.iter().map(row).collect(),
        bars: shares.iter().map(|share| share.fraction).collect(),
        ..AnswerTable::new("", &["spent on", ">time", ">of it"])
    }
}

fn rank_table(ranks: &[(Rank, Time)], makespan: Time) -> AnswerTable {
    let row = |(rank, time): &(Rank, Time)| {
        vec![
            rank.to_string(),
            Rounded(*time).to_string(),
            percent(ratio(*time, makespan)),
        ]
    };
    AnswerTable {
        rows: ranks.iter().map(row).collect(),
        ..AnswerTable::new("", &[">rank", ">time on the path", ">of it"])
    }
}

fn share_document(share: &Share) -> Value {
    json!({"limit": share.limit.name(), "time_s": share.time.as_seconds(), "fraction": share.fraction})
}

fn rank_document((rank, time): (Rank, Time), makespan: Time) -> Value {
    json!({"rank": rank.0, "time_s": time.as_seconds(), "fraction": ratio(time, makespan)})
}
