//! Errors of labs: errors in the input and errors of the machine ([`LabError::is_environment`]).

use std::{fmt, io, path::PathBuf};

use flowcast_network::{network::NetworkError, sharing::SharingError};
use flowcast_statistics::StatsError;
use flowcast_units::{Node, Rate};
use thiserror::Error;

/// Error of a lab.
#[derive(Debug, Error)]
pub enum LabError {
    /// The text is not a valid lab file; the message names line, column and field.
    #[error(transparent)]
    Malformed(#[from] Box<toml::de::Error>),
    /// A field or an override has an invalid value.
    #[error("{field}: found `{found}`, expected {expected}")]
    Field {
        /// Dotted name, as in `--set`.
        field: String,
        /// Invalid value, as text.
        found: String,
        /// Range of valid values.
        expected: String,
    },
    /// An override does not match the file.
    #[error("--set {key}={value}: {problem}")]
    Override {
        /// Dotted name of the field.
        key: String,
        /// Value of the override, the text after `=` in `--set`.
        value: String,
        /// Description of the found and the expected value.
        problem: String,
    },
    /// No built-in profile has this name. The texts are the name with a suggestion, and the list of profiles.
    #[error("no lab profile is named {0}; built-in profiles: {1}")]
    UnknownProfile(String, String),
    /// No lab with this name is up.
    #[error("no lab named `{0}` is up; `flowcast lab list` lists the labs that are up")]
    NotUp(String),
    /// A lab with this name is already up.
    #[error(
        "a lab named `{0}` is already up; choose another --name or end it with `flowcast lab down {0}`"
    )]
    AlreadyUp(String),
    /// The lab does not have this node.
    #[error("found node {found}, expected one of the lab's {nodes} nodes, 0 to {}", nodes - 1)]
    NoSuchNode {
        /// Requested node; its number is not below `nodes`.
        found: Node,
        /// Number of nodes, which are counted from 0.
        nodes: u32,
    },
    /// The lab does not have this rail.
    #[error("found rail {found}, expected one of the lab's {rails} rails, counted from 0")]
    NoSuchRail {
        /// Requested rail, counted from 0; not below `rails`.
        found: usize,
        /// Number of rails of the lab.
        rails: usize,
    },
    /// The system does not let this user create namespaces.
    #[error(
        "this system does not let this user create user and network namespaces ({0}); the cause is the seccomp profile \
         in a container, and otherwise user.max_user_namespaces, kernel.unprivileged_userns_clone or \
         kernel.apparmor_restrict_unprivileged_userns"
    )]
    NamespacesForbidden(String),
    /// A program that a lab needs is missing.
    #[error("the program {program} is not installed (Debian package {package})")]
    ProgramMissing {
        /// Name of the program.
        program: &'static str,
        /// Package that contains the program.
        package: &'static str,
    },
    /// No program is available to run the link emulator.
    #[error(
        "a cable needs the program flowcast, but this is another program and PATH has no flowcast"
    )]
    NoCableCarrier,
    /// The namespaces or the devices could not be set up.
    #[error("the lab could not be built: {0}")]
    Build(String),
    /// The lab does not deliver the specified rates.
    #[error("machine too busy: {what} reached {} of the expected {}; free the machine, lower nic.bandwidth, or continue with --no-self-test", megabits(*.found), megabits(*.expected))]
    Busy {
        /// Name of the check.
        what: String,
        /// Measured rate: goodput of flows, or wire rate of a link emulator.
        found: Rate,
        /// Rate that the specification allows, of the same kind as `found`.
        expected: Rate,
    },
    /// A link emulator lost frames unintentionally.
    #[error(
        "machine too busy: {what} lost {astray} of {sent} frames unintentionally; free the machine, lower cable.rate, or continue with --no-self-test"
    )]
    FramesLost {
        /// Link emulator that lost them.
        what: String,
        /// Number of frames whose fate differs from their fate in virtual time.
        astray: u32,
        /// Number of frames sent.
        sent: u32,
    },
    /// The durations cannot be summarised, or the rule is invalid.
    #[error("repetitions: {0}")]
    Repetitions(#[from] StatsError),
    /// The rates of the lab do not form a network, so there is nothing to compare with.
    #[error("cannot predict the rates for the self-test: {0}")]
    Network(#[from] NetworkError),
    /// The packet model cannot predict the expected rates.
    #[error("cannot predict the rates for the self-test: {0}")]
    Prediction(#[from] SharingError),
    /// A file of the lab's state cannot be read or written.
    #[error("{path}: {source}")]
    File {
        /// Path of the file.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// A system call on a socket or a process failed.
    #[error("{what}: {source}")]
    System {
        /// Operation that failed, such as `connecting two nodes`.
        what: &'static str,
        /// Error of the system.
        source: io::Error,
    },
}

impl LabError {
    /// Returns `true` if the machine lacks something, `false` if the input is wrong.
    pub fn is_environment(&self) -> bool {
        !matches!(
            self,
            LabError::Malformed(_)
                | LabError::Field { .. }
                | LabError::Override { .. }
                | LabError::UnknownProfile(..)
                | LabError::NotUp(_)
                | LabError::AlreadyUp(_)
                | LabError::NoSuchNode { .. }
                | LabError::NoSuchRail { .. }
                | LabError::Repetitions(_)
        )
    }
}

/// Formats a rate in Mbit/s.
pub fn megabits(rate: Rate) -> String {
    format!("{:.2} Mbit/s", rate.as_bytes_per_second() * 8e-6)
}

/// Refuses a field of a lab file unless its condition holds.
pub(crate) fn require(
    holds: bool,
    field: &str,
    found: impl fmt::Display,
    expected: &str,
) -> Result<(), LabError> {
    if holds {
        return Ok(());
    }
    Err(LabError::Field {
        field: field.to_owned(),
        found: found.to_string(),
        expected: expected.to_owned(),
    })
}
