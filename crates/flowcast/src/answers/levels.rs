//! Loads of links by class on a network with a topology, and their cost to the messages of a program.

use flowcast_network::sharing::link_loads::ClassLoad;
use flowcast_program::program::Program;
use flowcast_replay::outcome::{DelayedMessage, LevelDelay, Outcome};
use flowcast_table::{Document, Rows, Table, fixed, rows};
use flowcast_units::Bytes;

use super::ROWS;

/// Table with a row for each class, and a column for the step if `has_steps` is `true`.
pub(super) fn level_table(
    loads: &[(usize, ClassLoad)],
    has_steps: bool,
) -> Rows<&(usize, ClassLoad)> {
    let mut table = rows(loads);
    if has_steps {
        table = table.column("step", "step", |(step, _)| *step);
    }
    table
        .column("class", "level", |(_, load)| &load.class)
        .column("links", "links in use", |(_, load)| load.links)
        .column("mean", "mean load", |(_, load)| fixed(load.mean, 3))
        .column("highest", "highest", |(_, load)| fixed(load.highest, 3))
        .column("busiest", "busiest", |(_, load)| &load.busiest)
        .heading("load of the links of each level")
}

/// Adds two tables: the time that messages lost to contention on each class of links, and the messages that lost most.
pub(super) fn with_delays(
    document: Document,
    program: &Program,
    outcome: &Outcome,
    most_rows: usize,
) -> Document {
    if outcome.delays.is_empty() {
        return document;
    }
    document
        .table("delays", delay_table(&outcome.delays))
        .table(
            "delayed",
            message_table(program, &outcome.delayed, most_rows),
        )
}

fn delay_table(delays: &[LevelDelay]) -> Rows<&LevelDelay> {
    rows(delays)
        .column("class", "level", |delay| &delay.class)
        .column("messages", "messages", |delay| delay.messages)
        .column("lost_s", "total", |delay| delay.lost)
        .column("worst", "worst link", |delay| &delay.worst)
        .column("lost_there_s", "there", |delay| delay.lost_there)
        .heading("time that messages lost by sharing the links of each level")
}

fn message_table(program: &Program, delayed: &[DelayedMessage], most_rows: usize) -> Table {
    let sources = program.sources();
    let mut messages = Vec::with_capacity(delayed.len());
    for message in delayed {
        // One-sided transfers have no send.
        let source = sources.get(message.slot.index());
        let sent = source.map(|(from, class)| Sent {
            from: program.owner(*from).0,
            to: program.owner(program.receiver(message.slot)).0,
            size: program.class(*class).size,
        });
        messages.push((message, sent));
    }
    rows(&messages)
        .column("from", "from", |(_, sent)| sent.map(|sent| sent.from))
        .column("to", "to", |(_, sent)| sent.map(|sent| sent.to))
        .column("bytes", "size", |(_, sent)| sent.map(|sent| sent.size))
        .column("lost_s", "lost", |(message, _)| message.lost)
        .column("link", "worst link", |(message, _)| &message.link)
        .heading("messages that lost the most time")
        .most(most_rows, ROWS)
        .into()
}

/// Sender, receiver and size of a message.
#[derive(Clone, Copy)]
struct Sent {
    from: u32,
    to: u32,
    size: Bytes,
}
