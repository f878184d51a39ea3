//! Metadata and nodes.

use super::{
    super::fault::Fault,
    ChakraNotes,
    wire::{self, Value},
};
use flowcast_units::{CollectiveOp, Rank};

/// Work of a node.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum NodeWork {
    /// Computation for a time in ns.
    Compute(u64),
    /// Send to a rank.
    Send(ChakraMessage),
    /// Receive from a rank.
    Recv(ChakraMessage),
    /// Part in a collective.
    Collective(ChakraCollective),
}

/// Message, as seen from either end.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ChakraMessage {
    /// World rank of the other end.
    pub peer: Rank,
    /// Tag, which is the same at the send and at the receive.
    pub tag: i32,
    /// Name of the group; empty if the node names none.
    pub group: String,
    /// Size, if the node has one.
    pub bytes: Option<u64>,
}

/// Collective as one rank calls it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ChakraCollective {
    /// Operation of the collective.
    pub op: CollectiveOp,
    /// Bytes that the rank contributes.
    pub bytes: u64,
    /// Name of the group, with the tag if there is one; empty if the node names none.
    pub group: String,
    /// Number of ranks in the group, if the node has it.
    pub group_size: Option<usize>,
    /// World rank of the root, if the node names one.
    pub root: Option<Rank>,
}

/// Node of a rank's graph.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ChakraNode {
    /// Number of the node, to which other nodes refer.
    pub id: u64,
    /// Nodes whose data it requires.
    pub after: Vec<u64>,
    /// Control dependencies: nodes that precede it, or nodes that called it.
    pub control: Vec<u64>,
    /// Computation, message or collective of the node.
    pub work: NodeWork,
}

/// Returns `true` if a message can be the global metadata: a version and attributes, and nothing else.
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

/// Returns `true` if the metadata comes from PyTorch's converter, which keeps the schema of PyTorch's own trace.
pub(super) fn is_pytorch(metadata: &[u8]) -> bool {
    let mut at = 0;
    std::iter::from_fn(|| wire::field(metadata, &mut at))
        .filter_map(|(_, value)| Attribute::read(value.bytes()?))
        .any(|attribute| attribute.name == "schema")
}

struct Attribute<'a> {
    name: &'a str,
    value: AttributeValue<'a>,
}

enum AttributeValue<'a> {
    Number(i64),
    Text(&'a str),
    /// Whole numbers, or 0 for `false` and 1 for `true`.
    List(Vec<u64>),
    Other,
}

impl<'a> Attribute<'a> {
    fn read(message: &'a [u8]) -> Option<Attribute<'a>> {
        let mut attribute = Attribute {
            name: "",
            value: AttributeValue::Number(0),
        };
        let mut at = 0;
        while at < message.len() {
            let (field, value) = wire::field(message, &mut at)?;
            match field {
                1 => attribute.name = std::str::from_utf8(value.bytes()?).ok()?,
                2 => {}
                _ => attribute.value = AttributeValue::read(field, value)?,
            }
        }
        (!attribute.name.is_empty()).then_some(attribute)
    }

    fn number(&self) -> Result<i64, Fault> {
        match self.value {
            AttributeValue::Number(number) => Ok(number),
            _ => Err(self.fault("a whole number")),
        }
    }

    /// Returns the number if it is in the range of a type.
    fn number_as<T: TryFrom<i64>>(&self, expected: &'static str) -> Result<T, Fault> {
        let number = self.number()?;
        T::try_from(number)
            .map_err(|_| Fault::value(format!("with {} {number}", self.name), expected))
    }

    fn rank(&self) -> Result<Option<Rank>, Fault> {
        let rank = self.number_as("a rank of at least 0")?;
        Ok(Some(Rank(rank)))
    }

    /// Returns the name of a group, which is a text, a number, or the list of its ranks.
    fn group(&self) -> Result<String, Fault> {
        match &self.value {
            AttributeValue::Number(number) => Ok(number.to_string()),
            AttributeValue::Text(text) => Ok((*text).to_owned()),
            AttributeValue::List(list) => Ok(format!("{list:?}")),
            AttributeValue::Other => Err(self.fault("a text or a whole number")),
        }
    }

    fn fault(&self, expected: &'static str) -> Fault {
        let name = self.name;
        Fault::value(format!("with a value of another type as {name}"), expected)
    }
}

/// Returns `true` if an attribute without a known meaning may select the participants of a communication.
fn may_choose_ranks(name: &str) -> bool {
    const PARTS: [&str; 7] = ["comm_", "pg_", "group", "involve", "root", "rank", "peer"];
    !["comm_priority", "pg_desc", "pg_description"].contains(&name)
        && PARTS.iter().any(|part| name.contains(part))
}

impl<'a> AttributeValue<'a> {
    /// Returns the value in the field with this number of the schema.
    fn read(field: u32, value: Value<'a>) -> Option<AttributeValue<'a>> {
        Some(match field {
            7 | 9 | 11 | 13 | 19 | 21 | 25 | 27 => AttributeValue::Number(value.whole()? as i64),
            23 => AttributeValue::Number(i64::from(value.whole()? as i32)),
            15 | 17 => {
                let coded = value.whole()?;
                AttributeValue::Number((coded >> 1) as i64 ^ -((coded & 1) as i64))
            }
            8 | 10 | 12 | 14 | 28 => AttributeValue::List(wire::list(value.bytes()?)?),
            29 => AttributeValue::Text(std::str::from_utf8(value.bytes()?).ok()?),
            _ => AttributeValue::Other,
        })
    }
}

#[derive(Default)]
struct NodeFields<'a> {
    id: u64,
    kind: u64,
    after: Vec<u64>,
    control: Vec<u64>,
    micros: Option<u64>,
    attributes: Vec<Attribute<'a>>,
}

impl<'a> NodeFields<'a> {
    fn read(message: &'a [u8]) -> Option<NodeFields<'a>> {
        let mut fields = NodeFields::default();
        let mut at = 0;
        while at < message.len() {
            let (field, value) = wire::field(message, &mut at)?;
            match field {
                1 => fields.id = value.whole()?,
                3 => fields.kind = value.whole()?,
                4 => value.numbers(&mut fields.control)?,
                5 => value.numbers(&mut fields.after)?,
                7 => fields.micros = Some(value.whole()?),
                10 => fields.attributes.push(Attribute::read(value.bytes()?)?),
                _ => {}
            }
        }
        Some(fields)
    }

    /// Returns a computation with the duration of the node.
    fn compute(&self) -> Result<NodeWork, Fault> {
        let micros = self.micros.unwrap_or(0);
        let nanos = micros.saturating_mul(1000);
        if nanos > 1 << 62 {
            return Err(Fault::value(
                format!("with a duration of {micros} us"),
                "less than 146 years",
            ));
        }
        Ok(NodeWork::Compute(nanos))
    }
}

/// Attributes of a node that describe a communication and its participants.
#[derive(Default)]
struct Communication {
    bytes: Option<u64>,
    op: Option<i64>,
    source: Option<Rank>,
    destination: Option<Rank>,
    root: Option<Rank>,
    tag: i32,
    /// Values of `pg_name`, `comm_group` and the list of the ranks.
    group: [String; 3],
    group_size: Option<usize>,
    /// Names of unused attributes that may select the participants.
    unread: Vec<String>,
    is_partial: bool,
}

impl Communication {
    fn read(attributes: &[Attribute<'_>]) -> Result<Communication, Fault> {
        let mut read = Communication::default();
        for attribute in attributes {
            read.attribute(attribute)?;
        }
        Ok(read)
    }

    fn attribute(&mut self, attribute: &Attribute<'_>) -> Result<(), Fault> {
        // PyTorch's profiler writes `Process Group Name`.
        let name = attribute.name.to_ascii_lowercase().replace(' ', "_");
        match &name.replace("process_group_", "pg_")[..] {
            "comm_size" => self.bytes = Some(attribute.number_as("a size of at least 0 bytes")?),
            "comm_type" => self.op = Some(attribute.number()?),
            "comm_src" => self.source = attribute.rank()?,
            "comm_dst" => self.destination = attribute.rank()?,
            "root" | "comm_root" | "root_rank" => self.root = attribute.rank()?,
            "comm_tag" => self.tag = attribute.number_as("a 32-bit number")?,
            "pg_name" => self.group[0] = attribute.group()?,
            "comm_group" => self.group[1] = attribute.group()?,
            "pg_ranks" => {
                let ranks = attribute.group()?;
                // The list of a group that contains all ranks may be empty.
                if ranks.contains(|sign: char| sign.is_ascii_digit()) {
                    self.group_size = Some(ranks.split(',').count());
                    self.group[2] = ranks;
                }
            }
            "pg_size" | "group_size" => {
                self.group_size = Some(attribute.number_as("a number of ranks")?)
            }
            "involved_dim" | "involved_dims" | "involve_dims" => {
                let AttributeValue::List(involved) = &attribute.value else {
                    return Err(attribute.fault("a list of booleans"));
                };
                self.is_partial = involved.contains(&0);
            }
            name if may_choose_ranks(name) => self.unread.push(attribute.name.to_owned()),
            _ => {}
        }
        Ok(())
    }

    /// Returns all names that the node gives its group, separated by commas.
    fn group_name(&self) -> String {
        let names = self.group.iter().map(String::as_str);
        let known: Vec<&str> = names.filter(|name| !name.is_empty()).collect();
        known.join(", ")
    }

    /// Returns a message between this rank and a peer. The first attribute must name this rank if it is present. The second
    /// names the peer.
    fn message(
        &self,
        rank: Rank,
        (own, own_name): (Option<Rank>, &str),
        (peer, peer_name): (Option<Rank>, &str),
    ) -> Result<ChakraMessage, Fault> {
        if own.is_some_and(|own| own != rank) {
            let found = format!("with {own_name} {}", own.map_or(0, |own| own.0));
            return Err(Fault::value(
                found,
                format!("rank {rank}, the rank of this file"),
            ));
        }
        let peer = peer.ok_or_else(|| {
            Fault::value(format!("without {peer_name}"), format!("its {peer_name}"))
        })?;
        Ok(ChakraMessage {
            peer,
            tag: self.tag,
            group: self.group_name(),
            bytes: self.bytes,
        })
    }

    fn collective(&mut self, op: CollectiveOp) -> Result<ChakraCollective, Fault> {
        let group = self.group_name();
        if self.is_partial && group.is_empty() {
            return Err(Fault::value(
                "with an involved_dim that omits dimensions of the network",
                "a collective of all dimensions, or one that names its group (pg_name): the number of ranks in a \
                 dimension is not in the trace",
            ));
        }
        let from = match op {
            CollectiveOp::Bcast | CollectiveOp::Scatter => self.source.take(),
            CollectiveOp::Reduce | CollectiveOp::Gather => self.destination.take(),
            _ => None,
        };
        let others = [(self.source, "comm_src"), (self.destination, "comm_dst")];
        let others = others.into_iter().filter(|(rank, _)| rank.is_some());
        self.unread.extend(others.map(|(_, name)| name.to_owned()));
        Ok(ChakraCollective {
            op,
            bytes: self.bytes.unwrap_or(0),
            group: match self.tag {
                0 => group,
                tag => format!("{group}, tag {tag}"),
            },
            group_size: self.group_size,
            root: self.root.or(from),
        })
    }
}

/// Reads a node of a rank.
///
/// # Errors
/// A description of the found and the expected value.
pub(super) fn read(
    message: &[u8],
    rank: Rank,
    notes: &mut ChakraNotes,
) -> Result<ChakraNode, Fault> {
    let fields = NodeFields::read(message).ok_or_else(|| {
        Fault::value(
            format!("{} bytes", message.len()),
            "a node of a Chakra trace",
        )
    })?;
    notes.is_pytorch |= fields
        .attributes
        .iter()
        .any(|attribute| matches!(attribute.name, "rf_id" | "fw_parent" | "op_schema"));
    let work =
        work(&fields, rank, notes).map_err(|fault| fault.within(&format!("node {}", fields.id)))?;
    let NodeFields {
        id, after, control, ..
    } = fields;
    Ok(ChakraNode {
        id,
        after,
        control,
        work,
    })
}

fn work(fields: &NodeFields<'_>, rank: Rank, notes: &mut ChakraNotes) -> Result<NodeWork, Fault> {
    let is_communication = (5..=7).contains(&fields.kind);
    let mut communication = if is_communication {
        Communication::read(&fields.attributes)?
    } else {
        Communication::default()
    };
    let source = (communication.source, "comm_src");
    let destination = (communication.destination, "comm_dst");
    let work = match fields.kind {
        1 => NodeWork::Compute(0),
        2 | 3 => {
            notes.leave_out(
                "memory operations; they run one after the other for their durations",
                1,
            );
            fields.compute()?
        }
        4 => {
            let accelerator = fields.attributes.iter().any(|attribute| {
                attribute.name == "is_cpu_op" && attribute.number().is_ok_and(|number| number == 0)
            });
            if fields.micros.is_none() {
                notes.leave_out("computations without a duration; they take no time", 1);
            } else if accelerator {
                let kind = "computations of accelerators; they run in sequence with those of the processor";
                notes.leave_out(kind, 1);
            }
            fields.compute()?
        }
        5 => NodeWork::Send(communication.message(rank, source, destination)?),
        6 => NodeWork::Recv(communication.message(rank, destination, source)?),
        7 => match communication.op.and_then(operation) {
            None => {
                notes.leave_out(
                    "communications of unknown kind; they only take their durations",
                    1,
                );
                return fields.compute();
            }
            Some(op) => NodeWork::Collective(communication.collective(op)?),
        },
        other => {
            return Err(Fault::value(
                format!("of type {other}"),
                "a type from 1 to 7",
            ));
        }
    };
    let has_size = communication.bytes.is_some() || communication.op == Some(BARRIER);
    if is_communication && fields.kind != 6 && !has_size {
        notes.leave_out("communications without a size; they carry no bytes", 1);
    }
    for name in communication.unread {
        let kind = format!("attributes `{name}` of communications, which may select participants,");
        notes.leave_out(kind, 1);
    }
    Ok(work)
}

const BARRIER: i64 = 9;

fn operation(number: i64) -> Option<CollectiveOp> {
    use CollectiveOp::*;
    Some(match number {
        0 => Allreduce,
        1 => Reduce,
        2 => Allgather,
        3 => Gather,
        4 => Scatter,
        5 => Bcast,
        6 => Alltoall,
        7 | 8 => ReduceScatterBlock,
        BARRIER => Barrier,
        _ => return None,
    })
}
