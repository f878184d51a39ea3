//! Terminal interface that all commands share.
//!
//! - [`output`]: results as a table for people or as JSON, on a standard output that may be closed early; [`tables`],
//!   [`width`] and [`answers`] format them.
//! - [`files`]: inputs, and outputs that are written as a whole or not at all. [`growing`] files survive a kill, and
//!   [`input_maps`] maps large inputs.
//! - [`progress`], [`interrupt`], [`exit`] and `usage`: progress of long runs, interruption, exit codes, and wrong options.
//! - [`provenance`]: origin of a result.
//! - The other modules contain arguments that several commands share, and their evaluation.

#![allow(missing_docs, reason = "the help of arguments documents them")]
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

pub mod answers;
pub mod collectives;
pub mod costs_table;
pub mod exit;
pub mod files;
pub mod growing;
pub mod host_args;
pub mod input_maps;
pub mod interrupt;
pub mod launcher;
pub mod mapping_format;
pub mod network_args;
pub mod option_checks;
pub mod output;
pub mod predictors;
pub mod progress;
pub mod provenance;
pub mod rank_files;
pub mod repeating;
pub mod replay_files;
pub mod shard;
pub mod shares;
pub mod tables;
pub mod token;
pub mod trace_args;
mod usage;
pub mod width;
