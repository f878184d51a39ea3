//! Metadata and nodes.

use super::{
    super::fault::Fault,
    wire::{self, Value},
};
use flowcast_units::{CollectiveOp, Rank};

/// What a node does.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Work {
    /// Computes for so many ns.
    Compute(u64),
    /// Sends to a rank.
    Send { to: Rank, tag: i32, bytes: u64 },
    /// Receives from a rank.
    Recv { from: Rank, tag: i32 },
    /// Takes part in a collective of a group, which its name tells apart.
    Collective {
        op: CollectiveOp,
        bytes: u64,
        group: String,
    },
}

/// A node of a rank's graph.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Node {
    /// Number by which other nodes name it.
    pub id: u64,
    /// The nodes that come before it.
    pub after: Vec<u64>,
    /// The computation, message or collective that it stands for.
    pub work: Work,
}

/// What is not modelled in full.
#[derive(Debug, Default)]
pub(super) struct NodeCounts {
    pub without_duration: u64,
    pub accelerator: u64,
    pub memory: u64,
    pub unmodelled: u64,
    pub with_caller: u64,
}

/// Whether a message can be the global metadata: a version and attributes, and nothing else.
pub(super) fn is_metadata(message: &[u8]) -> bool {
    let mut at = 0;
    while at < message.len() {
        match wire::field(message, &mut at) {
            Some((1, Value::Bytes(version))) if is_text(version) => {}
            Some((2, Value::Bytes(attribute))) if Attribute::read(attribute).is_some() => {}
            _ => return false,
        }
    }
    !message.is_empty()
}

fn is_text(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_ok_and(|text| text.len() < 256)
}

struct Attribute<'a> {
    name: &'a str,
    number: Option<i64>,
    text: Option<&'a str>,
}

impl<'a> Attribute<'a> {
    fn read(message: &'a [u8]) -> Option<Attribute<'a>> {
        let mut attribute = Attribute {
            name: "",
            number: None,
            text: None,
        };
        let mut at = 0;
        while at < message.len() {
            let (field, value) = wire::field(message, &mut at)?;
            match field {
                1 => attribute.name = std::str::from_utf8(value.bytes()?).ok()?,
                7 | 9 | 11 | 13 | 19 | 21 | 23 | 25 | 27 => {
                    attribute.number = Some(value.whole()? as i64)
                }
                15 | 17 => {
                    let coded = value.whole()?;
                    attribute.number = Some((coded >> 1) as i64 ^ -((coded & 1) as i64));
                }
                29 => attribute.text = std::str::from_utf8(value.bytes()?).ok(),
                _ => {}
            }
        }
        (!attribute.name.is_empty()).then_some(attribute)
    }
}

#[derive(Default)]
struct NodeFields {
    id: u64,
    kind: u64,
    after: Vec<u64>,
    /// It names the nodes that called it (control dependencies); they end after it.
    has_caller: bool,
    micros: Option<u64>,
    on_accelerator: bool,
    size: i64,
    op: Option<i64>,
    source: Option<i64>,
    destination: Option<i64>,
    tag: i64,
    group: String,
}

impl NodeFields {
    fn read(message: &[u8]) -> Option<NodeFields> {
        let mut fields = NodeFields::default();
        let mut at = 0;
        while at < message.len() {
            let (field, value) = wire::field(message, &mut at)?;
            match field {
                1 => fields.id = value.whole()?,
                3 => fields.kind = value.whole()?,
                4 => fields.has_caller = true,
                5 => value.numbers(&mut fields.after)?,
                7 => fields.micros = Some(value.whole()?),
                10 => fields.attribute(&Attribute::read(value.bytes()?)?),
                _ => {}
            }
        }
        fields.after.sort_unstable();
        fields.after.dedup();
        Some(fields)
    }

    fn attribute(&mut self, attribute: &Attribute<'_>) {
        let number = attribute.number.unwrap_or(0);
        match attribute.name {
            "is_cpu_op" => self.on_accelerator = number == 0,
            "comm_size" => self.size = number,
            "comm_type" => self.op = Some(number),
            "comm_src" => self.source = Some(number),
            "comm_dst" => self.destination = Some(number),
            "comm_tag" => self.tag = number,
            "pg_name" => self.group = attribute.text.unwrap_or("").to_owned(),
            _ => {}
        }
    }
}

/// Reads a node.
///
/// # Errors
/// What was found, and what was expected.
pub(super) fn read(message: &[u8], counts: &mut NodeCounts) -> Result<Node, Fault> {
    let wrong = || {
        Fault::value(
            format!("{} bytes", message.len()),
            "a node of a Chakra trace",
        )
    };
    let fields = NodeFields::read(message).ok_or_else(wrong)?;
    let peer = |rank: Option<i64>, name: &str| {
        let rank = rank.ok_or_else(|| {
            Fault::value(
                format!("node {} without {name}", fields.id),
                format!("its {name}"),
            )
        })?;
        let wrong = || {
            Fault::value(
                format!("{name} {rank} in node {}", fields.id),
                "a rank of at least 0",
            )
        };
        u32::try_from(rank).map(Rank).map_err(|_| wrong())
    };
    let tag = i32::try_from(fields.tag)
        .map_err(|_| Fault::value(format!("tag {}", fields.tag), "a number of 32 bits"))?;
    let bytes = u64::try_from(fields.size).map_err(|_| {
        Fault::value(
            format!("size {}", fields.size),
            "a size of at least 0 bytes",
        )
    })?;
    let nanos = fields.micros.unwrap_or(0).saturating_mul(1000);
    if nanos > 1 << 62 {
        return Err(Fault::value(
            format!("a duration of {} us", fields.micros.unwrap_or(0)),
            "less than 146 years",
        ));
    }
    counts.with_caller += u64::from(fields.has_caller);
    let work = match fields.kind {
        1 => Work::Compute(0),
        2 | 3 => {
            counts.memory += 1;
            Work::Compute(nanos)
        }
        4 => {
            counts.without_duration += u64::from(fields.micros.is_none());
            counts.accelerator += u64::from(fields.on_accelerator && fields.micros.is_some());
            Work::Compute(nanos)
        }
        5 => Work::Send {
            to: peer(fields.destination, "comm_dst")?,
            tag,
            bytes,
        },
        6 => Work::Recv {
            from: peer(fields.source, "comm_src")?,
            tag,
        },
        7 => match fields.op.and_then(operation) {
            Some(op) => Work::Collective {
                op,
                bytes,
                group: fields.group,
            },
            None => {
                counts.unmodelled += 1;
                Work::Compute(nanos)
            }
        },
        other => {
            return Err(Fault::value(
                format!("node {} of type {other}", fields.id),
                "a type from 1 to 7",
            ));
        }
    };
    Ok(Node {
        id: fields.id,
        after: fields.after,
        work,
    })
}

fn operation(number: i64) -> Option<CollectiveOp> {
    Some(match number {
        0 => CollectiveOp::Allreduce,
        1 => CollectiveOp::Reduce,
        2 => CollectiveOp::Allgather,
        3 => CollectiveOp::Gather,
        4 => CollectiveOp::Scatter,
        5 => CollectiveOp::Bcast,
        6 => CollectiveOp::Alltoall,
        7 | 8 => CollectiveOp::ReduceScatterBlock,
        9 => CollectiveOp::Barrier,
        _ => return None,
    })
}
