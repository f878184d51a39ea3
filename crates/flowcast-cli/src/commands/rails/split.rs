//! `flowcast rails simulate --split-from`: large messages over several rails at once.

use anyhow::Result;
use flowcast::model::loggp::LogGp;
use flowcast::scheduler::moment::{Moment, Ticks};
use flowcast::scheduler::schedule::Message;
use flowcast::scheduler::split::{Split, SplitRule, Splitter, pays_from};
use flowcast::scheduler::{Rail, RailSet};
use flowcast::units::{Rounded, Time};
use serde_json::{Value, json};

use crate::output::println_out;
use crate::tables::table;

/// Divides each message at its arrival and prints its pieces.
pub fn run(rails: &[Rail], messages: &[Message], rule: SplitRule, json: bool) -> Result<()> {
    let costs: Vec<LogGp> = rails.iter().map(|rail| rail.cost).collect();
    let mut splitter = Splitter::new(&costs, rule)?;
    let mut divide = |message: &Message| {
        let split = splitter.split(Ticks::of(message.arrival, ()), message.size, RailSet::ALL);
        split.expect("there is at least one rail, and all are usable")
    };
    let splits: Vec<Split> = messages.iter().map(&mut divide).collect();
    let complete = |split: &Split| split.complete().time(());
    let makespan = splits.iter().map(complete).fold(Time::ZERO, Time::max);
    if json {
        print_json(rails, &splits, makespan)
    } else {
        print_table(rails, messages, &splits, makespan)
    }
    if !json && let Some(size) = pays_from(&costs, rule)? {
        println_out!("On idle rails splitting pays from {} B.", size.0);
    }
    Ok(())
}

fn print_table(rails: &[Rail], messages: &[Message], splits: &[Split], makespan: Time) {
    let mut table = table(&[">message", ">arrival", ">size", "pieces", ">complete"]);
    for (index, (message, split)) in messages.iter().zip(splits).enumerate() {
        let piece = |(rail, bytes): (flowcast::scheduler::RailId, flowcast::units::Bytes)| {
            format!("{} {} B", rails[rail.index()].name, bytes.0)
        };
        table.add_row([
            index.to_string(),
            Rounded(message.arrival).to_string(),
            message.size.to_string(),
            split.pieces().map(piece).collect::<Vec<_>>().join(", "),
            Rounded(split.complete().time(())).to_string(),
        ]);
    }
    println_out!("{table}");
    println_out!("earliest-delivery, split: last delivery {}", Rounded(makespan));
}

fn print_json(rails: &[Rail], splits: &[Split], makespan: Time) {
    let one = |split: &Split| {
        let pieces: Vec<Value> =
            split.pieces().map(|(rail, bytes)| json!({ "rail": rail.0, "size_B": bytes.0 })).collect();
        json!({ "pieces": pieces, "delivered_us": split.complete().time(()).as_micros() })
    };
    let document = json!({
        "schema": "flowcast/rails-split/1",
        "rails": rails.iter().map(|rail| rail.name.as_str()).collect::<Vec<_>>(),
        "messages": splits.iter().map(one).collect::<Vec<_>>(),
        "makespan_us": makespan.as_micros(),
    });
    println_out!("{document}");
}
