//! Errors of testbeds: those of the input, and those of the machine ([`LabError::is_environment`]).

use std::{fmt, io, path::PathBuf};

use flowcast_network::{network::NetworkError, sharing::SharingError};
use flowcast_statistics::StatsError;
use flowcast_units::{Node, Rate};
use thiserror::Error;

/// Why a lab could not be had or used.
#[derive(Debug, Error)]
pub enum LabError {
    /// The text is no lab file; the message names line, column and field.
    #[error(transparent)]
    Malformed(#[from] Box<toml::de::Error>),
    /// A field or an override with an impossible value.
    #[error("{field}: found `{found}`, expected {expected}")]
    Field {
        /// Dotted name, as in `--set`.
        field: String,
        /// The value as given.
        found: String,
        /// What would have been right.
        expected: String,
    },
    /// An override that does not fit.
    #[error("--set {key}={value}: {problem}")]
    Override {
        /// Dotted name of the field.
        key: String,
        /// The value as given.
        value: String,
        /// What was found and what was expected.
        problem: String,
    },
    /// No built-in profile of that name: the name, with the one that may be meant, and those there are.
    #[error("no lab profile is named {0}; built in are: {1}")]
    UnknownProfile(String, String),
    /// No lab of that name is up.
    #[error("no lab named `{0}` is up; `flowcast lab list` shows those that are")]
    NotUp(String),
    /// A lab of that name is up already.
    #[error(
        "a lab named `{0}` is up already; choose another --name or end it with `flowcast lab down {0}`"
    )]
    AlreadyUp(String),
    /// A node that the lab does not have.
    #[error("found node {found}, expected one of the lab's {nodes} nodes, 0 to {}", nodes - 1)]
    NoSuchNode {
        /// The node asked for.
        found: Node,
        /// How many there are.
        nodes: u32,
    },
    /// A rail that the lab does not have.
    #[error("found rail {found}, expected one of the lab's {rails} rails, counted from 0")]
    NoSuchRail {
        /// The rail asked for.
        found: usize,
        /// How many there are.
        rails: usize,
    },
    /// The system does not let this user make namespaces.
    #[error(
        "this system does not let this user make user and network namespaces ({0}); in a container its seccomp profile, \
         else user.max_user_namespaces, kernel.unprivileged_userns_clone or \
         kernel.apparmor_restrict_unprivileged_userns is the reason"
    )]
    NamespacesForbidden(String),
    /// A program that a lab needs.
    #[error("the program {program} is not installed (Debian package {package})")]
    ProgramMissing {
        /// Its name.
        program: &'static str,
        /// Where it comes from.
        package: &'static str,
    },
    /// No program to run the link emulator.
    #[error("a cable needs the program flowcast, which is neither this program nor on the path")]
    NoCableCarrier,
    /// The namespaces or the devices could not be set up.
    #[error("the lab could not be built: {0}")]
    Build(String),
    /// The lab does not deliver what it says.
    #[error("machine too busy: {what} got {} of the expected {}; free the machine, lower nic.bandwidth, or go on with --no-self-test", megabits(*.found), megabits(*.expected))]
    Busy {
        /// Which check.
        what: String,
        /// Goodput that came through.
        found: Rate,
        /// Goodput that the rates allow.
        expected: Rate,
    },
    /// A link emulator lost frames that it was not asked to lose.
    #[error(
        "machine too busy: {astray} of {sent} frames through {what} were lost without being asked for; free the machine, lower cable.rate, or go on with --no-self-test"
    )]
    FramesLost {
        /// The link emulator that lost them.
        what: String,
        /// Frames whose fate was not the one of virtual time.
        astray: u32,
        /// Frames sent.
        sent: u32,
    },
    /// Durations that cannot be summed up, or a rule that makes no sense.
    #[error("repetitions: {0}")]
    Repetitions(#[from] StatsError),
    /// The rates of the lab give no network to expect anything of.
    #[error("what the self-test expects: {0}")]
    Network(#[from] NetworkError),
    /// The packet model does not say what to expect.
    #[error("what the self-test expects: {0}")]
    Prediction(#[from] SharingError),
    /// A file of the lab's state.
    #[error("{path}: {source}")]
    File {
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A system call on a socket or a process.
    #[error("{what}: {source}")]
    System {
        /// What was tried.
        what: &'static str,
        /// What the system said.
        source: io::Error,
    },
}

impl LabError {
    /// Whether the machine lacks something, as opposed to a wrong input.
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

/// A rate as network people say it.
pub fn megabits(rate: Rate) -> String {
    format!("{:.2} Mbit/s", rate.as_bytes_per_second() * 8e-6)
}

pub(crate) fn refused<T>(
    field: &str,
    found: impl fmt::Display,
    expected: &str,
) -> Result<T, LabError> {
    Err(LabError::Field {
        field: field.to_owned(),
        found: found.to_string(),
        expected: expected.to_owned(),
    })
}
