//! `flowcast rails simulate --split-from`: large messages over several rails at once.

use anyhow::Result;
use flowcast::model::loggp::LogGp;
use flowcast::scheduler::clock::{ClockArithmetic, Ticks};
use flowcast::scheduler::schedule::Message;
use flowcast::scheduler::split::{Split, SplitRule, Splitter, pays_from};
use flowcast::scheduler::{Rail, RailSet};
use flowcast::units::{Bytes, Rounded, Time};
use serde::Serialize;

use super::inputs::SHOW_MESSAGES;
use crate::terminal::output::{Format, Micros, Shown, println_out, show};
use crate::terminal::tables::{Most, cells, table};
use flowcast::report::answer::Grouped;

/// Divides each message at its arrival and prints its pieces.
pub(super) fn run(
    rails: &[Rail],
    (messages, show_messages): (&[Message], Most),
    rule: SplitRule,
    format: Format,
) -> Result<()> {
    let costs: Vec<LogGp> = rails.iter().map(|rail| rail.cost).collect();
    let mut splitter = Splitter::new(&costs, rule)?;
    let mut divide = |message: &Message| {
        let split = splitter.split(
            Ticks::from_time(message.arrival, ()),
            message.size,
            RailSet::ALL,
        );
        split.expect("there is at least one rail, and all are usable")
    };
    let splits: Vec<Split> = messages.iter().map(&mut divide).collect();
    let complete = |split: &Split| split.complete().time(());
    let makespan = splits.iter().map(complete).fold(Time::ZERO, Time::max);
    let divided = Divided {
        arrived: messages,
        show: show_messages,
        pays_from: pays_from(&costs, rule)?,
        rails: rails.iter().map(|rail| rail.name.as_str()).collect(),
        messages: splits.iter().map(Pieces::of).collect(),
        makespan_us: Micros(makespan),
    };
    show(&divided, format)
}

/// How the messages were divided.
#[derive(Serialize)]
struct Divided<'a> {
    #[serde(skip)]
    arrived: &'a [Message],
    #[serde(skip)]
    show: Most,
    #[serde(skip)]
    pays_from: Option<Bytes>,
    rails: Vec<&'a str>,
    messages: Vec<Pieces>,
    makespan_us: Micros,
}

#[derive(Serialize)]
struct Pieces {
    pieces: Vec<Piece>,
    delivered_us: Micros,
}

#[derive(Serialize)]
struct Piece {
    rail: u8,
    #[serde(rename = "size_B")]
    size: u64,
}

impl Pieces {
    fn of(split: &Split) -> Pieces {
        let pieces = split.pieces().map(|(rail, bytes)| Piece {
            rail: rail.0,
            size: bytes.0,
        });
        Pieces {
            pieces: pieces.collect(),
            delivered_us: Micros(split.complete().time(())),
        }
    }
}

impl Shown for Divided<'_> {
    const SCHEMA: &'static str = "flowcast/rails-split/1";

    fn print(&self) {
        let mut table = table(&[">message", ">arrival", ">size", "pieces", ">complete"]);
        for (index, (message, split)) in self
            .show
            .of(self.arrived)
            .iter()
            .zip(&self.messages)
            .enumerate()
        {
            let piece = |piece: &Piece| {
                format!(
                    "{} {} B",
                    self.rails[usize::from(piece.rail)],
                    Grouped(piece.size)
                )
            };
            let pieces = split
                .pieces
                .iter()
                .map(piece)
                .collect::<Vec<_>>()
                .join(", ");
            table.add_row(cells![
                index,
                Rounded(message.arrival),
                message.size,
                pieces,
                split.delivered_us
            ]);
        }
        println_out!(
            "{}",
            self.show.shown(&table, self.arrived.len(), SHOW_MESSAGES)
        );
        println_out!(
            "earliest-delivery, split: last delivery {}",
            self.makespan_us
        );
        if let Some(size) = self.pays_from {
            println_out!("On idle rails splitting pays from {} B.", Grouped(size.0));
        }
    }
}
