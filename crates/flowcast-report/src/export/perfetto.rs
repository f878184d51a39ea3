//! Perfetto's own format: a sequence of protobuf messages, written field by field. Declaring the seven messages for a
//! protobuf crate would take as many lines as writing them.
//!
//! ```text
//! Trace           1: TracePacket, repeated
//! TracePacket     8: time in ns   10: sequence   11: TrackEvent   60: TrackDescriptor
//! TrackDescriptor 1: uuid   2: name   3: { 1: pid  6: name }   4: { 1: pid  2: tid  5: name }   5: parent
//! TrackEvent      9: 1 begin, 2 end, 3 instant   11: track   22: category   23: name
//!                 47: flow, 48: flow that ends (fixed64)   4: { 10: name  3: unsigned  4: signed }
//! ```
//!
//! A node is a process, and a rank is a thread of it. A message is a flow from an instant in the call that sends it to an
//! instant at the end of the call that receives it.

use std::io::{self, Write};

use super::{Replayed, nanos, pid, slice_name, tid};
use crate::varint::push_varint;
use flowcast_observers::journal::MessageTimes;
use flowcast_units::{Node, Rank, Time};

/// Writes the trace.
///
/// # Errors
/// Errors of `out`, and a replay of 2^61 nanoseconds or 2^63 bytes.
pub fn pftrace(replayed: Replayed<'_>, out: &mut dyn Write) -> io::Result<()> {
    replayed.outcome.in_nanos()?;
    for node in replayed.nodes() {
        write_packet(out, |packet| {
            packet.message(60, |track| describe_node(track, node))
        })?;
    }
    for rank in replayed.ranks() {
        let node = replayed.placement.node(rank);
        write_packet(out, |packet| {
            packet.message(60, |track| describe_rank(track, rank, node))
        })?;
    }
    replayed
        .ranks()
        .try_for_each(|rank| write_rank(replayed, rank, out))
}

fn describe_node(track: &mut PerfettoMessage, node: Node) {
    track.varint(1, node_track(node));
    track.message(3, |process| {
        process.varint(1, pid(node));
        process.text(6, &format!("node {node}"));
    });
}

fn describe_rank(track: &mut PerfettoMessage, rank: Rank, node: Node) {
    track.varint(1, rank_track(rank));
    track.varint(5, node_track(node));
    track.message(4, |thread| {
        thread.varint(1, pid(node));
        thread.varint(2, tid(rank));
        thread.text(5, &format!("rank {rank}"));
    });
}

fn write_rank(replayed: Replayed<'_>, rank: Rank, out: &mut dyn Write) -> io::Result<()> {
    for slice in replayed.journal.slices(rank) {
        let (start, end) = (slice.segment.start, slice.segment.end);
        write_event(out, rank, start, BEGIN, |event| {
            event.text(22, "rank");
            event.text(23, slice_name(slice));
        })?;
        write_event(out, rank, end, END, |_| ())?;
    }
    for (number, MessageTimes { span, .. }) in replayed.journal.sent(rank) {
        write_event(out, rank, span.sent, INSTANT, |event| {
            event.text(22, "message");
            event.text(23, "send");
            event.annotation("to", UNSIGNED, u64::from(span.dst.0));
            event.annotation("bytes", UNSIGNED, span.size.0);
            event.annotation("tag", SIGNED, i64::from(span.tag) as u64);
            event.fixed64(47, flow(number));
        })?;
    }
    for (number, MessageTimes { span, .. }) in replayed.journal.received(rank) {
        write_event(out, rank, span.received, INSTANT, |event| {
            event.text(22, "message");
            event.text(23, "receive");
            event.annotation("from", UNSIGNED, u64::from(span.src.0));
            event.fixed64(48, flow(number));
        })?;
    }
    Ok(())
}

const BEGIN: u64 = 1;
const END: u64 = 2;
const INSTANT: u64 = 3;

const UNSIGNED: u32 = 3;
const SIGNED: u32 = 4;

fn write_event(
    out: &mut dyn Write,
    rank: Rank,
    time: Time,
    kind: u64,
    fill: impl FnOnce(&mut PerfettoMessage),
) -> io::Result<()> {
    write_packet(out, |packet| {
        packet.varint(8, nanos(time));
        packet.message(11, |event| {
            event.varint(9, kind);
            event.varint(11, rank_track(rank));
            fill(event);
        });
    })
}

fn write_packet(out: &mut dyn Write, fill: impl FnOnce(&mut PerfettoMessage)) -> io::Result<()> {
    let mut trace = PerfettoMessage::default();
    trace.message(1, |packet| {
        packet.varint(10, 1);
        fill(packet);
    });
    out.write_all(&trace.bytes)
}

fn node_track(node: Node) -> u64 {
    1 << 32 | u64::from(node.0)
}

fn rank_track(rank: Rank) -> u64 {
    2 << 32 | u64::from(rank.0)
}

fn flow(number: u32) -> u64 {
    u64::from(number) + 1
}

/// A protobuf message under construction.
#[derive(Default)]
struct PerfettoMessage {
    bytes: Vec<u8>,
}

impl PerfettoMessage {
    fn varint(&mut self, field: u32, value: u64) {
        self.raw(u64::from(field) << 3);
        self.raw(value);
    }

    fn fixed64(&mut self, field: u32, value: u64) {
        self.raw(u64::from(field) << 3 | 1);
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    fn text(&mut self, field: u32, text: &str) {
        self.block(field, text.as_bytes());
    }

    fn message(&mut self, field: u32, fill: impl FnOnce(&mut PerfettoMessage)) {
        let mut inner = PerfettoMessage::default();
        fill(&mut inner);
        self.block(field, &inner.bytes);
    }

    /// Adds a named number; its `kind` is the field that holds it.
    fn annotation(&mut self, name: &str, kind: u32, value: u64) {
        self.message(4, |annotation| {
            annotation.text(10, name);
            annotation.varint(kind, value);
        });
    }

    fn block(&mut self, field: u32, bytes: &[u8]) {
        self.raw(u64::from(field) << 3 | 2);
        self.raw(bytes.len() as u64);
        self.bytes.extend_from_slice(bytes);
    }

    fn raw(&mut self, value: u64) {
        push_varint(&mut self.bytes, value);
    }
}
