//! `flowcast rails simulate --split-from`: divides large messages over several rails.

use anyhow::Result;
use flowcast::{
    answers::ROWS,
    model::loggp::LogGp,
    scheduler::{
        Rail, RailSet,
        clock::{ClockArithmetic, Ticks},
        schedule::RailMessage,
        split::{Split, SplitRule, Splitter, pays_from},
    },
    table::{Document, Value, rows, shown},
    units::{Bytes, Rounded, Time, UnitError},
};

use flowcast_terminal::{output::Format, tables::RowLimit};

/// Parses `64KiB` or `64KiB,8KiB`; the second size is the smallest size of a piece.
pub(super) fn rule(text: &str) -> Result<SplitRule, UnitError> {
    let (from, piece) = text.split_once(',').unwrap_or((text, "8KiB"));
    Ok(SplitRule {
        from: from.parse()?,
        minimal_piece: piece.parse()?,
        ..SplitRule::default()
    })
}

/// Divides each message at its arrival and prints its pieces.
pub(super) fn run(
    rails: &[Rail],
    messages: &[RailMessage],
    most: RowLimit,
    rule: SplitRule,
    format: Format,
) -> Result<()> {
    let costs: Vec<LogGp> = rails.iter().map(|rail| rail.cost).collect();
    let mut splitter = Splitter::new(&costs, rule)?;
    let splits: Vec<Split> = messages
        .iter()
        .map(|message| {
            let split = splitter.split(
                Ticks::from_time(message.arrival, ()),
                message.size,
                RailSet::ALL,
            );
            split.expect("there is at least one rail, and all are usable")
        })
        .collect();
    let complete = splits.iter().map(|split| split.complete().time(()));
    let complete: Vec<Time> = complete.collect();
    let makespan = complete.iter().copied().fold(Time::ZERO, Time::max);
    let table = rows(0..splits.len())
        .cell("message", |index| index)
        .cell("arrival", |index| messages[index].arrival)
        .cell("size", |index| messages[index].size)
        .column("pieces", "pieces", |index: usize| {
            let each = splits[index].pieces().map(|(rail, size)| (rail.0, size));
            let each: Vec<(u8, Bytes)> = each.collect();
            let words: Vec<String> = each
                .iter()
                .map(|(rail, size)| {
                    format!("{} {}", rails[usize::from(*rail)].name, Rounded(*size))
                })
                .collect();
            let pieces = rows(each)
                .field("rail", |(rail, _)| rail)
                .field("size_B", |(_, size)| size);
            shown(pieces, words.join(", "))
        })
        .column("delivered_us", "complete", |index| complete[index])
        .most(most.rows(), ROWS);
    let pays_from = pays_from(&costs, rule)?;
    format.print(
        &Document::new("rails-split")
            .field(
                "rails",
                rails.iter().map(|rail| &rail.name).collect::<Value>(),
            )
            .table("messages", table)
            .field("makespan_us", makespan)
            .line(format!(
                "earliest-delivery, split: last delivery {}",
                Rounded(makespan)
            ))
            .lines(
                pays_from
                    .map(|size| format!("On idle rails, splitting pays from {}.", Rounded(size))),
            ),
    )
}
