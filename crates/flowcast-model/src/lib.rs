//! What one message costs, and what several at once leave each other.

pub mod algorithm;
pub mod builtin;
pub mod cluster;
pub mod collective;
pub mod dimemas_cfg;
mod field_names;
pub mod file_system;
pub mod loggp;
pub mod machine;
pub mod network;
pub mod network_file;
pub mod sharing;
pub mod single;
pub mod stats;
pub mod topology;
