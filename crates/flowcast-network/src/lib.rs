//! Networks: the cost of single messages, and how concurrent messages share links.
//!
//! A [`network::Network`] comes from a file ([`network_file`]), from Dimemas' configuration ([`dimemas_cfg`]) or from the
//! built-in networks ([`builtin`]). It contains the rule for single messages ([`single`], [`loggp`]), the sharing models
//! with their parameters ([`sharing`]), the machine with its nodes, links, buses and processors ([`machine`]), the topology,
//! and the algorithms of collectives ([`algorithm`]) or a formula for their time ([`collective`]). [`cluster`] has flows,
//! racks and patterns. The network also stores the intervals of its numbers ([`parameter_interval`]) and the accuracy of the
//! models that used them ([`accuracy`]).
//!
//! ```
//! use flowcast_network::builtin;
//! use flowcast_units::{Bytes, Time};
//!
//! let network = builtin::network("gige-tcp")?;
//! let faster = network.with_overrides(&[("nic.latency".into(), "5us".into())])?;
//! assert_eq!(faster.nic.latency, Time::from_micros(5.0));
//! assert!(network.nic.time_for(Bytes(1_000_000)) > Time::from_micros(8000.0));
//! # Ok::<(), flowcast_network::network::NetworkError>(())
//! ```

#[macro_use]
mod section;

pub mod accuracy;
pub mod algorithm;
pub mod builtin;
pub mod cluster;
pub mod collective;
pub mod collective_costs;
pub mod costs;
pub mod csv;
pub mod dimemas_cfg;
pub mod error;
pub mod file_system;
pub mod former_schemas;
pub mod link_rate;
pub mod linpack_costs;
pub mod loggp;
pub mod machine;
pub mod measured_collectives;
pub mod name;
pub mod near;
pub mod network;
pub mod network_file;
pub mod origin;
pub mod parameter_interval;
pub mod quantity;
pub mod sharing;
pub mod single;
pub mod topology;

pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
