//! The network file on disk, schema `flowcast/network/2`: a TOML document that describes a network and the parameters that
//! each model needs.
//!
//! # Design
//! - **One file for all models.** Properties of the network appear once ([`Network::nic`] and so on). Parameters of one
//!   model are in that model's section of `[sharing]`, and no other model reads them: `[sharing.flow_cuts]`,
//!   `[sharing.closed_loop]`, `[sharing.alpha_fair]`, `[sharing.asymmetric]`, `[sharing.ib_penalty]`, `[sharing.packet]`.
//!   There are two exceptions: the closed loop with transient queues uses the window and the segment of
//!   `[sharing.packet]`, and `alpha-fair` uses the `alpha` of `[sharing.closed_loop]` unless it has its own.
//! - **A rate states what it counts.** `bandwidth` is goodput, for fluid models; `wire_rate` is the rate of frames, for
//!   `packet`. The interface, the backbone, the bus and the cables of a topology have both fields. If only one is given, it
//!   stands for both. `latency` in `[sharing.packet]` replaces `nic.latency` for packets, because their time on the wire is
//!   counted separately. One network therefore serves both kinds of models through [`Network::seen_by`].
//! - **Units** are part of the text of each value, and an unknown field is an error.
//! - **Evidence** is stored next to the values: `[intervals]` and `[origins]` by dotted field name, `[[accuracy]]` by
//!   model, `[provenance]` for the whole file. All of it is checked: names are fields, and levels and shares lie between 0
//!   and 1.
//! - **Form and meaning are two types.** Sections with fields that depend on each other are read into the types of this
//!   module and converted into the types of [`crate::network`], in which enums replace these fields. Sections with
//!   independent fields (`machine`, `collectives`, `file_system`, the parameters of one sharing model) have one type.
//! - **Schema 1** is read by first moving its fields to their new names ([`upgrade`]). `--set` uses the same table of
//!   names, so the names of schema 1 keep working there. `--set nic.bandwidth=X` removes `nic.wire_rate`, so that every
//!   model uses X in its own unit; `--set nic.latency` removes the latency of packets in the same way.

pub mod field_names;
mod foreign;
pub mod intervals;
mod overrides;
#[cfg(test)]
#[path = "tests/page.rs"]
mod page;
mod sharing;
mod topology;
pub mod upgrade;

use std::collections::BTreeMap;

use serde::{Serialize, de::DeserializeOwned};
use toml_edit::DocumentMut;

use crate::{
    accuracy::{self, Accuracy},
    collective::Collectives,
    error::{NetworkError, field_error, refused},
    file_system::FileSystem,
    link_rate::{LinkRate, SingleFlowRate},
    linpack_costs::FittedLinpack,
    machine::Machine,
    name::check_name,
    network::{
        Bus, Duplex, FitQuality, Network, Nic, NicChoice, OverheadPiece, Overheads, PointToPoint,
    },
    origin::Origin,
    parameter_interval::ParameterInterval,
    sharing::fabric::check_planes,
    topology::Topology,
};
use flowcast_units::{Bytes, Rate, Time, TimePerByte};
use sharing::SharingFile;
use topology::TopologyFile;

/// The schema that this version writes.
pub const SCHEMA: &str = "flowcast/network/2";

section! {
    /// A network file of the current schema, section by section.
    pub(crate) struct NetworkFile {
        /// Schema of the file, `flowcast/network/2`; files of `flowcast/network/1` are [read as well](#schema-1).
        /// Default: required. Example: `"flowcast/network/2"`.
        schema: String,
        /// Short name, as given to `--network`.
        /// Default: required. Example: `"gige-lam"`.
        name: String,
        /// Description in one line.
        /// Default: empty. Example: `"Gigabit Ethernet, LAM/MPI"`.
        title: String [default],
        /// Source of the numbers.
        /// Default: empty. Example: `"RR-5910 (2006), Table 1"`.
        source: String [default],
        point_to_point: PointToPoint,
        nic: NicFile,
        backbone: Option<LinkFile>,
        bus: Option<BusFile>,
        topology: Option<TopologyFile>,
        overheads: Overheads | default,
        sharing: SharingFile | default,
        machine: Machine | default,
        collectives: Collectives | default,
        file_system: FileSystem | default,
        linpack: Option<Box<FittedLinpack>>,
        intervals: BTreeMap<String, ParameterInterval> | default,
        origins: BTreeMap<String, Origin> | default,
        accuracy: Vec<Accuracy> | default,
        fit: FitQuality | default,
        provenance: BTreeMap<String, String> | default,
    }

    /// The section `[nic]` on disk. At most one of `bandwidth` and `gap_per_byte` is given, and at least one of the three
    /// rates.
    pub(crate) struct NicFile + Copy {
        /// L: time from the sender's last instruction for a message to the receiver's first.
        /// Default: required. Example: `"4.7us"`.
        latency: Time,
        /// 1/G: goodput of a single flow; 0 is infinite.
        /// Default: one of the three is required. Example: `"112.2MB/s"`.
        bandwidth: Option<Rate>,
        /// G: inverse of the bandwidth, given instead of it.
        /// Default: one of the three is required. Example: `"8.49ns/B"`.
        gap_per_byte: Option<TimePerByte>,
        /// Wire rate, headers included, for `packet`; 0 is infinite.
        /// Default: one of the three is required. Example: `"1Gbit/s"`.
        wire_rate: Option<Rate>,
        /// o: processor time of each message, on each side.
        /// Default: 0. Example: `"6.1us"`.
        overhead: Time [default],
        /// g: shortest time between two messages at an interface.
        /// Default: 0. Example: `"0.897us"`.
        gap: Time [default],
        /// `full`: each direction has the rate; `half`: both directions share it.
        /// Default: `full`. Example: `"half"`.
        duplex: Duplex | default,
        /// Number of interfaces of a node, 1 to 64, each with its own rate and links.
        /// Default: 1. Example: `4`.
        count: Option<u32>,
        /// Interface of a message: `pair`, by a hash of source and destination, or `round-robin`, in turn for the messages
        /// between two nodes.
        /// Default: `pair`. Example: `"round-robin"`.
        choice: NicChoice | default,
    }

    /// The section `[backbone]` on disk. At least one of the two rates is given.
    pub(crate) struct LinkFile + Copy {
        /// Goodput; 0 is infinite.
        /// Default: one of the two is required. Example: `"9400Mbit/s"`.
        bandwidth: Option<Rate>,
        /// Wire rate, headers included, for `packet`; 0 is infinite.
        /// Default: one of the two is required. Example: `"10Gbit/s"`.
        wire_rate: Option<Rate>,
    }

    /// The section `[bus]` on disk. At least one of the two rates is given.
    pub(crate) struct BusFile + Copy {
        /// Number of nodes on each medium, at least 1: node `n` is on medium `n / nodes`.
        /// Default: all nodes on one medium. Example: `8`.
        nodes: Option<u32>,
        /// Goodput of each medium, shared by both directions; 0 is infinite.
        /// Default: one of the two is required. Example: `"112MB/s"`.
        bandwidth: Option<Rate>,
        /// Wire rate, headers included, for `packet`; 0 is infinite.
        /// Default: one of the two is required. Example: `"1Gbit/s"`.
        wire_rate: Option<Rate>,
    }
}

impl Network {
    /// Reads a network file and applies `overrides`, pairs of dotted field name and value (`--set KEY=VALUE`).
    ///
    /// # Errors
    /// The text is malformed TOML, a field is unknown, a value lacks its unit, or fields exclude each other.
    pub fn from_toml(text: &str, overrides: &[(String, String)]) -> Result<Network, NetworkError> {
        if overrides.is_empty() {
            return read::<NetworkFile>(text)?.try_into();
        }
        overrides::apply(read(text)?, overrides)
    }

    /// The network with some fields replaced.
    ///
    /// # Errors
    /// The same errors as [`Network::from_toml`].
    pub fn with_overrides(&self, overrides: &[(String, String)]) -> Result<Network, NetworkError> {
        if overrides.is_empty() {
            Ok(self.clone())
        } else {
            overrides::apply(self.to_table(), overrides)
        }
    }

    /// The text of a network file; [`Network::from_toml`] reads it back.
    pub fn to_toml(&self) -> String {
        toml::to_string(&NetworkFile::from(self))
            .expect("a network has only tables, texts and numbers")
    }

    /// Content of a network file as a table, in which overrides set fields.
    pub fn to_table(&self) -> toml::Table {
        table_of(&NetworkFile::from(self))
    }
}

/// Reads the text of a file of this or an earlier schema. As a table, its fields are not checked.
pub(crate) fn read<T: DeserializeOwned>(text: &str) -> Result<T, NetworkError> {
    foreign::refuse(text)?;
    let upgraded = upgrade::upgraded(text)?;
    let current = upgraded.as_deref().unwrap_or(text);
    toml::from_str(current).map_err(
        |error| match (foreign::missing(&error, current), &upgraded) {
            (Some(missing), _) => missing,
            (None, Some(upgraded)) => in_original(error, upgraded, text),
            (None, None) => Box::new(error).into(),
        },
    )
}

pub(crate) fn table_of(file: &NetworkFile) -> toml::Table {
    toml::Table::try_from(file).expect("a network has only tables, texts and numbers")
}

/// Text of a network file with another accuracy record; comments elsewhere are preserved.
///
/// # Errors
/// The text is not a network file.
pub fn with_ledger(text: &str, entries: &[Accuracy]) -> Result<String, NetworkError> {
    #[derive(Serialize)]
    struct Section<'a> {
        accuracy: &'a [Accuracy],
    }
    let text = upgrade::upgraded(text)?.unwrap_or_else(|| text.to_owned());
    let mut document: DocumentMut = text.parse().map_err(Box::new)?;
    document.remove("accuracy");
    let section = toml::to_string(&Section { accuracy: entries })
        .expect("an accuracy record has only texts, numbers and tables");
    Ok(format!("{}\n{section}", document.to_string().trim_end()))
}

/// The line of a text that contains an error, without the error's value.
fn line_at<'a>(error: &toml::de::Error, text: &'a str) -> &'a str {
    error
        .span()
        .and_then(|span| text.get(..span.start))
        .map_or("", |before| {
            let start = before.rfind('\n').map_or(0, |at| at + 1);
            text[start..].lines().next().unwrap_or("")
        })
}

/// Reports the line in the user's text instead of its upgraded form.
fn in_original(error: toml::de::Error, upgraded: &str, original: &str) -> NetworkError {
    let line = line_at(&error, upgraded);
    match original
        .lines()
        .position(|known| known.trim() == line.trim())
    {
        Some(at) if !line.is_empty() => field_error(
            &format!("line {}, `{}`", at + 1, line.trim()),
            error.message().into(),
        ),
        _ => NetworkError::Malformed(Box::new(error)),
    }
}

impl TryFrom<NetworkFile> for Network {
    type Error = NetworkError;

    fn try_from(file: NetworkFile) -> Result<Network, NetworkError> {
        if file.schema != SCHEMA {
            return Err(NetworkError::Schema {
                found: file.schema,
                newest: SCHEMA,
            });
        }
        check_name("name", &file.name)?;
        check_name("title", &file.title)?;
        check_name("source", &file.source)?;
        let table = table_of(&file);
        for (name, value) in &table {
            refuse_impossible_numbers(name, value)?;
        }
        if let Some(problem) = file
            .collectives
            .algorithms
            .as_ref()
            .and_then(|table| table.check().err())
        {
            return Err(NetworkError::Algorithms(problem));
        }
        check_overheads("overheads.send", &file.overheads.send)?;
        check_overheads("overheads.receive", &file.overheads.receive)?;
        check_overheads("overheads.latency", &file.overheads.latency)?;
        intervals::check(&table, &file.intervals)?;
        file.origins
            .keys()
            .try_for_each(|field| check_field("origins", field))?;
        file.accuracy
            .iter()
            .enumerate()
            .try_for_each(|(place, entry)| accuracy::check_entry(place, entry))?;
        let topology = file.topology.map(Topology::try_from).transpose();
        let network = Network {
            name: file.name,
            title: file.title,
            source: file.source,
            point_to_point: file.point_to_point,
            nic: file.nic.try_into()?,
            backbone: file.backbone.map(TryInto::try_into).transpose()?,
            bus: file.bus.map(TryInto::try_into).transpose()?,
            topology: topology.map_err(|error| NetworkError::Topology(error.to_string()))?,
            overheads: file.overheads,
            sharing: file.sharing.try_into()?,
            machine: file.machine,
            collectives: file.collectives,
            file_system: file.file_system,
            linpack: file.linpack,
            intervals: file.intervals,
            origins: file.origins,
            accuracy: file.accuracy,
            fit: file.fit,
            provenance: file.provenance,
        };
        check_planes(&network).map_err(|error| NetworkError::Topology(error.to_string()))?;
        Ok(network)
    }
}

impl From<&Network> for NetworkFile {
    fn from(network: &Network) -> NetworkFile {
        let network = network.clone();
        NetworkFile {
            schema: SCHEMA.to_owned(),
            name: network.name,
            title: network.title,
            source: network.source,
            point_to_point: network.point_to_point,
            nic: network.nic.into(),
            backbone: network.backbone.map(Into::into),
            bus: network.bus.map(Into::into),
            topology: network.topology.as_ref().map(Into::into),
            overheads: network.overheads,
            sharing: network.sharing.into(),
            machine: network.machine,
            collectives: network.collectives,
            file_system: network.file_system,
            linpack: network.linpack,
            intervals: network.intervals,
            origins: network.origins,
            accuracy: network.accuracy,
            fit: network.fit,
            provenance: network.provenance,
        }
    }
}

impl TryFrom<NicFile> for Nic {
    type Error = NetworkError;

    fn try_from(file: NicFile) -> Result<Nic, NetworkError> {
        const EXPECTED: &str = "one of nic.bandwidth and nic.gap_per_byte, with or without nic.wire_rate, or \
            nic.wire_rate alone";
        let goodput = match (file.bandwidth, file.gap_per_byte) {
            (Some(_), Some(_)) => {
                return Err(refused(
                    "nic.bandwidth",
                    "it together with nic.gap_per_byte",
                    EXPECTED,
                ));
            }
            (Some(rate), None) => Some(SingleFlowRate::Bandwidth(rate)),
            (None, gap) => gap.map(SingleFlowRate::GapPerByte),
        };
        let count = file.count.unwrap_or(1);
        if !(1..=64).contains(&count) {
            return Err(refused("nic.count", count, "1 to 64 interfaces of a node"));
        }
        Ok(Nic {
            latency: file.latency,
            rate: given_rate(goodput, file.wire_rate, "nic.bandwidth", EXPECTED)?,
            overhead: file.overhead,
            gap: file.gap,
            duplex: file.duplex,
            count,
            choice: file.choice,
        })
    }
}

impl From<Nic> for NicFile {
    fn from(nic: Nic) -> NicFile {
        let (bandwidth, gap_per_byte) = match nic.rate.given_goodput() {
            Some(SingleFlowRate::Bandwidth(rate)) => (Some(rate), None),
            Some(SingleFlowRate::GapPerByte(gap)) => (None, Some(gap)),
            None => (None, None),
        };
        NicFile {
            latency: nic.latency,
            bandwidth,
            gap_per_byte,
            wire_rate: nic.rate.given_wire(),
            overhead: nic.overhead,
            gap: nic.gap,
            duplex: nic.duplex,
            count: (nic.count != 1).then_some(nic.count),
            choice: nic.choice,
        }
    }
}

/// A rate of which at least one of the two forms is given.
fn given_rate<G: Copy + From<Rate> + Into<Rate>>(
    goodput: Option<G>,
    wire: Option<Rate>,
    field: &str,
    expected: &str,
) -> Result<LinkRate<G>, NetworkError> {
    LinkRate::given(goodput, wire).ok_or_else(|| refused(field, "nothing", expected))
}

impl TryFrom<LinkFile> for LinkRate {
    type Error = NetworkError;

    fn try_from(
        LinkFile {
            bandwidth,
            wire_rate,
        }: LinkFile,
    ) -> Result<LinkRate, NetworkError> {
        let expected = "backbone.bandwidth, backbone.wire_rate, or both";
        given_rate(bandwidth, wire_rate, "backbone.bandwidth", expected)
    }
}

impl From<LinkRate> for LinkFile {
    fn from(rate: LinkRate) -> LinkFile {
        LinkFile {
            bandwidth: rate.given_goodput(),
            wire_rate: rate.given_wire(),
        }
    }
}

impl TryFrom<BusFile> for Bus {
    type Error = NetworkError;

    fn try_from(file: BusFile) -> Result<Bus, NetworkError> {
        if file.nodes == Some(0) {
            return Err(refused("bus.nodes", 0, "at least 1"));
        }
        let expected = "bus.bandwidth, bus.wire_rate, or both";
        Ok(Bus {
            nodes: file.nodes,
            rate: given_rate(file.bandwidth, file.wire_rate, "bus.bandwidth", expected)?,
        })
    }
}

impl From<Bus> for BusFile {
    fn from(Bus { nodes, rate }: Bus) -> BusFile {
        BusFile {
            nodes,
            bandwidth: rate.given_goodput(),
            wire_rate: rate.given_wire(),
        }
    }
}

/// Rejects negative, infinite and NaN values in all sections. Correlations and errors are checked separately.
fn refuse_impossible_numbers(name: &str, value: &toml::Value) -> Result<(), NetworkError> {
    match value {
        toml::Value::Table(table) => table
            .iter()
            .filter(|(part, _)| !["correlations", "errors"].contains(&part.as_str()))
            .try_for_each(|(part, value)| {
                refuse_impossible_numbers(&format!("{name}.{part}"), value)
            }),
        toml::Value::Array(items) => items
            .iter()
            .enumerate()
            .try_for_each(|(at, value)| refuse_impossible_numbers(&format!("{name}.{at}"), value)),
        toml::Value::Float(number) if !number.is_finite() || *number < 0.0 => Err(refused(
            name,
            format!("`{number}`"),
            "a finite number of 0 or more",
        )),
        _ => Ok(()),
    }
}

/// Value at a dotted name.
pub(crate) fn value_at<'a>(table: &'a toml::Table, name: &str) -> Option<&'a toml::Value> {
    let mut parts = name.split('.');
    let first = table.get(parts.next()?)?;
    parts.try_fold(first, |value, part| match value {
        toml::Value::Array(items) => items.get(part.parse::<usize>().ok()?),
        section => section.get(part),
    })
}

/// Mutable value at a dotted name, as [`value_at`].
pub(crate) fn value_at_mut<'a>(
    table: &'a mut toml::Table,
    name: &str,
) -> Option<&'a mut toml::Value> {
    let mut parts = name.split('.');
    let first = table.get_mut(parts.next()?)?;
    parts.try_fold(first, |value, part| match value {
        toml::Value::Array(items) => items.get_mut(part.parse::<usize>().ok()?),
        section => section.get_mut(part),
    })
}

fn check_overheads(field: &str, pieces: &[OverheadPiece]) -> Result<(), NetworkError> {
    if let Some(first) = pieces.first().filter(|first| first.from != Bytes(0)) {
        return Err(refused(
            format!("{field}.0.from"),
            first.from,
            "0B, the start of the first piece",
        ));
    }
    match pieces
        .windows(2)
        .position(|pair| pair[0].from >= pair[1].from)
    {
        Some(at) => Err(refused(
            format!("{field}.{}.from", at + 1),
            pieces[at + 1].from,
            "more than in the previous piece",
        )),
        None => Ok(()),
    }
}

fn check_field(section: &str, field: &str) -> Result<(), NetworkError> {
    field_names::check(field).map_err(|problem| field_error(&format!("{section}.{field}"), problem))
}
