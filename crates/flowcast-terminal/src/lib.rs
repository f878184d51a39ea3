//! What every command does at the terminal, whatever it computes.
//!
//! - [`output`]: results as a table for people or as JSON, on a standard output that may be closed early; [`tables`],
//!   [`width`] and [`answers`] say how they look.
//! - [`files`]: which inputs are read and which outputs are written, whole or not at all; [`growing`] files survive a kill,
//!   [`input_maps`] are large inputs as maps.
//! - [`progress`], [`interrupt`], [`exit`] and `usage`: what a long run says, how it ends, its exit code, and wrong options.
//! - [`provenance`]: where a result comes from.
//! - The rest are arguments that several commands have, and what they do with them.

#![allow(missing_docs, reason = "the help of arguments documents them")]
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

pub mod answers;
pub mod collectives;
pub mod costs_table;
pub mod exit;
pub mod files;
pub mod goes_with;
pub mod growing;
pub mod host_args;
pub mod input_maps;
pub mod interrupt;
pub mod launcher;
pub mod mapping_format;
pub mod network_args;
pub mod output;
pub mod predictors;
pub mod progress;
pub mod provenance;
pub mod rank_files;
pub mod repeating;
pub mod replay_files;
pub mod shares;
pub mod tables;
pub mod token;
pub mod trace_args;
mod usage;
pub mod width;
