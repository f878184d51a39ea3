//! Sources of the values of a network file: `[origins]`, by dotted field name.
//!
//! The key of an entry states the reliability of the value. Its text starts with a short citation, which ends at the first
//! `: `:
//!
//! ```toml
//! [origins."nic.latency"]
//! measured_by = "hpc-uk/archer-benchmarks: IMB PingPong of two nodes, 8 bytes, half of the round trip"
//! year = 2021
//! ```

use flowcast_units::named;
use serde::{Deserialize, Serialize};

/// Source of one value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "OriginFile", into = "OriginFile")]
pub struct Origin {
    /// Reliability of the value.
    pub kind: OriginKind,
    /// Citation; the text before the first `: ` is its short form.
    pub text: String,
    /// Year of measurement or publication.
    pub year: Option<u16>,
}

named! {
    /// Reliability of a value, from the most to the least reliable.
    pub enum OriginKind {
        /// From the output of a measurement (`measured_by`).
        Measured = "measured",
        /// From a publication that reports it as a result (`source`).
        Published = "published",
        /// From the vendor of the network or the authors of its software (`vendor`).
        Vendor = "vendor",
        /// Computed from other cited values (`derived_from`).
        Derived = "derived",
        /// A stand-in without a source; the text describes how to measure the value (`unknown`).
        Unknown = "unknown",
    }
}

section! {
    /// An entry on disk; exactly one of the texts is given.
    pub(crate) struct OriginFile: Default {
        /// The value was read from the output of a measurement.
        /// Example: `"hpc-uk/archer-benchmarks: IMB PingPong of two nodes"`.
        measured_by: Option<String>,
        /// The value appears in a publication.
        /// Example: `"RR-5910, Table 1: MPI latency"`.
        source: Option<String>,
        /// The vendor of the network or of its software states the value.
        /// Example: `"olcf/olcf-user-docs: 200 Gbps"`.
        vendor: Option<String>,
        /// The value was computed from other values.
        /// Example: `"wire rate and latency: twice their product"`.
        derived_from: Option<String>,
        /// The value is a stand-in without a source; the text says how to measure it.
        /// Example: `"no source found: flowcast measure p2p measures it"`.
        unknown: Option<String>,
        /// Year of the measurement or publication.
        /// Example: `2021`.
        year: Option<u16>,
    }
}

/// Sources of the latency and the bandwidth of a network's interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Evidence<'a> {
    /// Reliability of the less reliable value.
    pub kind: OriginKind,
    /// Year of the older source.
    pub year: Option<u16>,
    /// Short citation of the more reliable source.
    pub source: &'a str,
}

impl Origin {
    /// Text up to the first `: `.
    pub fn short(&self) -> &str {
        self.text
            .split_once(": ")
            .map_or(&self.text, |(short, _)| short)
    }
}

impl TryFrom<OriginFile> for Origin {
    type Error = String;

    fn try_from(file: OriginFile) -> Result<Origin, String> {
        const EXPECTED: &str =
            "expected one of measured_by, source, vendor, derived_from and unknown";
        let year = file.year;
        let texts = [
            (OriginKind::Measured, file.measured_by),
            (OriginKind::Published, file.source),
            (OriginKind::Vendor, file.vendor),
            (OriginKind::Derived, file.derived_from),
            (OriginKind::Unknown, file.unknown),
        ];
        let mut given = texts.into_iter().filter_map(|(kind, text)| {
            Some(Origin {
                kind,
                text: text?,
                year,
            })
        });
        match (given.next(), given.next()) {
            (Some(origin), None) => Ok(origin),
            (None, _) => Err(format!("found no text, {EXPECTED}")),
            (Some(_), Some(_)) => Err(format!("found several texts, {EXPECTED}")),
        }
    }
}

impl From<Origin> for OriginFile {
    fn from(origin: Origin) -> OriginFile {
        let mut file = OriginFile {
            year: origin.year,
            ..OriginFile::default()
        };
        let text = match origin.kind {
            OriginKind::Measured => &mut file.measured_by,
            OriginKind::Published => &mut file.source,
            OriginKind::Vendor => &mut file.vendor,
            OriginKind::Derived => &mut file.derived_from,
            OriginKind::Unknown => &mut file.unknown,
        };
        *text = Some(origin.text);
        file
    }
}
