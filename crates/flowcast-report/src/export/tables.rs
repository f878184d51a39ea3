//! Tables as CSV: messages, ranks, pairs of ranks. `# key: value` lines above the columns contain schema and provenance.
//! Times are in seconds.

use std::{
    collections::BTreeMap,
    io::{self, Write},
};

use super::{Replayed, text::ExportText};
use flowcast_network::name::is_hidden;
use flowcast_replay::timeline::{Activity, MessageSpan};
use flowcast_units::{Rank, Time};

/// Provenance of a table, as keys and values of one line each.
pub type Provenance = BTreeMap<String, String>;

/// Name and version of the table of messages.
pub const MESSAGES: &str = "flowcast/messages/1";

/// Writes one line for each message, ordered by sender and then by the sequence of its sends.
///
/// # Errors
/// Errors of `out`, and messages of 2^63 bytes or more.
pub fn messages(
    replayed: Replayed<'_>,
    provenance: &Provenance,
    out: &mut dyn Write,
) -> io::Result<()> {
    replayed.outcome.in_bytes()?;
    write_head(MESSAGES, provenance, out)?;
    writeln!(out, "src,dst,bytes,tag,sent_s,arrived_s,received_s")?;
    let mut text = ExportText::new(out);
    for MessageSpan {
        src,
        dst,
        size,
        tag,
        sent,
        arrived,
        received,
    } in replayed.messages()
    {
        text.number(u64::from(src.0))
            .sign(b',')
            .number(u64::from(dst.0))
            .sign(b',')
            .number(size.0);
        text.sign(b',').signed(i64::from(tag));
        for time in [sent, arrived, received] {
            text.sign(b',').decimal(time.as_seconds());
        }
        text.end_line()?;
    }
    text.finish()
}

/// Writes one line for each rank: its end, its time by activity, and its sent and received messages.
///
/// # Errors
/// Errors of `out`, and messages of 2^63 bytes or more.
pub fn ranks(
    replayed: Replayed<'_>,
    provenance: &Provenance,
    out: &mut dyn Write,
) -> io::Result<()> {
    replayed.outcome.in_bytes()?;
    write_head("flowcast/ranks/1", provenance, out)?;
    write!(out, "rank,node,end_s,blocked_s")?;
    for activity in Activity::ALL {
        write!(out, ",{}_s", activity.name().replace(' ', "_"))?;
    }
    writeln!(
        out,
        ",sent_messages,sent_bytes,received_messages,received_bytes"
    )?;
    for rank in replayed.ranks() {
        let outcome = &replayed.outcome.ranks[rank];
        let (node, end, blocked) = (replayed.placement.node(rank), outcome.end, outcome.blocked);
        write!(
            out,
            "{rank},{node},{},{}",
            end.as_seconds(),
            blocked.as_seconds()
        )?;
        let [_, _, waits @ ..] = replayed.journal.times(rank);
        for time in [outcome.compute, outcome.overhead].into_iter().chain(waits) {
            write!(out, ",{}", time.as_seconds())?;
        }
        let (sent, received) = (
            replayed.journal.traffic_sent(rank),
            replayed.journal.traffic_received(rank),
        );
        writeln!(
            out,
            ",{},{},{},{}",
            sent.messages, sent.bytes.0, received.messages, received.bytes.0
        )?;
    }
    Ok(())
}

/// Writes one line for each sender and receiver: messages, bytes, and the sum and maximum of the time from send to arrival.
///
/// # Errors
/// Errors of `out`, and messages of 2^63 bytes or more.
pub fn pairs(
    replayed: Replayed<'_>,
    provenance: &Provenance,
    out: &mut dyn Write,
) -> io::Result<()> {
    replayed.outcome.in_bytes()?;
    write_head("flowcast/pairs/1", provenance, out)?;
    writeln!(
        out,
        "src,dst,messages,bytes,flight_s,longest_s,first_sent_s,last_arrived_s"
    )?;
    for rank in replayed.ranks() {
        let mut pairs: BTreeMap<Rank, PairRow> = BTreeMap::new();
        for (_, times) in replayed.journal.sent(rank) {
            pairs.entry(times.span.dst).or_default().add(&times.span);
        }
        for (
            dst,
            PairRow {
                messages,
                bytes,
                flight,
                longest,
                first_sent,
                last_arrived,
            },
        ) in pairs
        {
            let first_sent = first_sent.unwrap_or_default();
            let times = [flight, longest, first_sent, last_arrived].map(Time::as_seconds);
            let [flight, longest, first_sent, last_arrived] = times;
            writeln!(
                out,
                "{rank},{dst},{messages},{bytes},{flight},{longest},{first_sent},{last_arrived}"
            )?;
        }
    }
    Ok(())
}

#[derive(Default)]
struct PairRow {
    messages: u64,
    bytes: u64,
    flight: Time,
    longest: Time,
    first_sent: Option<Time>,
    last_arrived: Time,
}

impl PairRow {
    fn add(&mut self, span: &MessageSpan) {
        let flight = span.arrived - span.sent;
        self.messages += 1;
        self.bytes = self.bytes.saturating_add(span.size.0);
        self.flight += flight;
        self.longest = self.longest.max(flight);
        self.first_sent.get_or_insert(span.sent);
        self.last_arrived = self.last_arrived.max(span.arrived);
    }
}

fn write_head(schema: &str, provenance: &Provenance, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "# schema: {schema}")?;
    for (key, value) in provenance {
        // A line break inside a value would start a row.
        writeln!(out, "# {key}: {}", value.replace(is_hidden, " "))?;
    }
    Ok(())
}
