//! Lab: a virtual cluster on one machine, without root privileges.
//!
//! Each node is a set of Linux namespaces (user, network, mount, process, host name). Virtual Ethernet pairs and bridges
//! join the nodes into racks and rails, and token buckets limit their rates; link emulators in user space add delay, jitter
//! and loss. Nothing outside the lab changes. When the process that holds the lab ends, the kernel removes all of it.
//!
//! ```no_run
//! use flowcast_units::Node;
//! use flowcast_measure::lab::{Lab, profile};
//!
//! let spec = profile("two-racks", &[("cluster.nodes".into(), "4".into())])?;
//! let lab = Lab::up(&spec)?;
//! flowcast_measure::lab::self_test(&lab, flowcast_measure::lab::TOLERANCE)?;
//! let status = lab.command_in(Node(0), "ping")?.args(["-c", "1", "10.77.0.2"]).status();
//! let (mut sender, receiver) = lab.tcp_pair(Node(0), Node(3), 0, None)?;
//! # Ok::<(), flowcast_measure::lab::LabError>(())
//! ```

mod as_network;
mod cable;
mod clocks;
mod error;
mod flows;
mod launch;
mod names;
pub mod nominal;
mod profiles;
mod registry;
mod requirements;
mod running;
mod script;
mod self_test;
#[expect(unsafe_code, reason = "enters namespaces between fork and exec")]
mod sockets;
mod spec;
mod supervisor;
mod timed;

pub use as_network::network_of;
pub use cable::{
    CableCheck, CableChecker, CableSpec, DirectionSpec, Distribution, Fate, Lateness, PerDirection,
    VirtualQueue, serve_cables,
};
pub use clocks::{ClockRun, Deviation, set_clocks, synchronise_clocks};
pub use error::{LabError, megabits};
pub use flows::{ByteFlow, FlowWatch, steady_goodput};
pub use names::{host, interface};
pub use profiles::{PROFILES, of_file, profile, text as profile_text};
pub use requirements::check as check_machine;
pub use running::Lab;
pub use self_test::{TOLERANCE, WireCheck, self_test};
pub use spec::{
    BackboneSpec, BusOrder, ClusterSpec, CongestionControl, Duplex, LabSpec, NicSpec, QueueSpec,
    RailRates, SCHEMA, TcpSpec, Window,
};
pub use timed::{
    Carrier, FlowConnections, FlowTimes, Hosts, Introduction, NodeOf, PatternOptions, PatternRun,
    TcpCarrier, orders, repeat, run_pattern, serve_host,
};
