//! Which rank should run where.

pub mod mapping_file;
