//! The JSON form of Chrome's tracing, which Perfetto's page opens as well.
//!
//! A node is a process, a rank a thread, what it does a complete slice (`X`); a message is an arrow (`s` to `f`) from the
//! call that sends it to the end of the call that receives it. Times are microseconds with three decimals, so whole
//! nanoseconds are kept.

use std::{
    fmt,
    io::{self, Write},
};

use super::{Replayed, nanos, pid, slice_name, tid};
use flowcast_replay::journal::{MessageTimes, Slice};
use flowcast_units::{Node, Rank};

/// Writes the trace.
///
/// # Errors
/// Those of `out`, and of a replay of 2^61 nanoseconds or 2^63 bytes.
pub fn json(replayed: Replayed<'_>, out: &mut dyn Write) -> io::Result<()> {
    replayed.outcome.in_nanos()?;
    let name = serde_json::to_string(replayed.trace.name()).expect("a text becomes JSON");
    write!(
        out,
        "{{\"displayTimeUnit\":\"ns\",\"otherData\":{{\"schema\":\"flowcast/chrome/1\",\"program\":{name}}}"
    )?;
    write!(out, ",\"traceEvents\":[")?;
    let mut list = ChromeList {
        out,
        is_empty: true,
    };
    write_names(replayed, &mut list)?;
    for rank in replayed.ranks() {
        let thread = ChromeThread::new(replayed, rank);
        for slice in replayed.journal.slices(rank) {
            write_slice(thread, slice, &mut list)?;
        }
        for (number, times) in replayed.journal.sent(rank) {
            write_arrow(replayed, number, times, &mut list)?;
        }
    }
    writeln!(list.out, "\n]}}")
}

/// A JSON list, one item on each line.
struct ChromeList<'a> {
    out: &'a mut dyn Write,
    is_empty: bool,
}

impl ChromeList<'_> {
    fn item(&mut self, item: fmt::Arguments<'_>) -> io::Result<()> {
        self.out
            .write_all(if self.is_empty { b"\n" } else { b",\n" })?;
        self.is_empty = false;
        self.out.write_fmt(item)
    }
}

/// The process and thread of a rank.
#[derive(Clone, Copy)]
struct ChromeThread {
    node: Node,
    rank: Rank,
}

impl ChromeThread {
    fn new(replayed: Replayed<'_>, rank: Rank) -> ChromeThread {
        ChromeThread {
            node: replayed.placement.node(rank),
            rank,
        }
    }
}

impl fmt::Display for ChromeThread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"pid\":{},\"tid\":{}", pid(self.node), tid(self.rank))
    }
}

/// Nanoseconds as microseconds.
struct Micros(u64);

impl fmt::Display for Micros {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03}", self.0 / 1000, self.0 % 1000)
    }
}

fn write_names(replayed: Replayed<'_>, list: &mut ChromeList<'_>) -> io::Result<()> {
    for node in replayed.nodes() {
        list.item(format_args!(
            r#"{{"ph":"M","name":"process_name","pid":{},"tid":0,"args":{{"name":"node {node}"}}}}"#,
            pid(node)
        ))?;
    }
    for rank in replayed.ranks() {
        let thread = ChromeThread::new(replayed, rank);
        list.item(format_args!(
            r#"{{"ph":"M","name":"thread_name",{thread},"args":{{"name":"rank {rank}"}}}}"#
        ))?;
        list.item(format_args!(
            r#"{{"ph":"M","name":"thread_sort_index",{thread},"args":{{"sort_index":{rank}}}}}"#
        ))?;
    }
    Ok(())
}

fn write_slice(thread: ChromeThread, slice: Slice, list: &mut ChromeList<'_>) -> io::Result<()> {
    let (start, end) = (nanos(slice.segment.start), nanos(slice.segment.end));
    let name = slice_name(slice);
    list.item(format_args!(
        r#"{{"ph":"X","cat":"rank","name":"{name}",{thread},"ts":{},"dur":{}}}"#,
        Micros(start),
        Micros(end - start)
    ))
}

fn write_arrow(
    replayed: Replayed<'_>,
    number: u32,
    times: MessageTimes,
    list: &mut ChromeList<'_>,
) -> io::Result<()> {
    let span = times.span;
    let head = format!(r#""cat":"message","name":"message","id":{number}"#);
    let ends = [span.src, span.dst].map(|rank| ChromeThread::new(replayed, rank));
    let sent = nanos(span.sent);
    list.item(format_args!(
        r#"{{"ph":"s",{head},{},"ts":{},"args":{{"bytes":{},"tag":{}}}}}"#,
        ends[0],
        Micros(sent),
        span.size.0,
        span.tag
    ))?;
    // A slice ends before its last moment: one nanosecond earlier the arrow still ends in the call that receives.
    let received = nanos(span.received).saturating_sub(1).max(sent);
    list.item(format_args!(
        r#"{{"ph":"f","bp":"e",{head},{},"ts":{}}}"#,
        ends[1],
        Micros(received)
    ))
}
