//! What every command does at the terminal, whatever it computes.
//!
//! - [`output`]: results as a table for people or as JSON, on a standard output that may be closed early; [`tables`]
//!   and [`answers`] say how they look.
//! - [`files`]: which inputs are read and which outputs are written, whole or not at all; [`growing`] files survive a kill,
//!   [`input_maps`] are large inputs as maps.
//! - [`progress`], [`interrupt`] and [`exit`]: what a long run says, how it ends, and its exit code.
//! - [`provenance`]: where a result comes from.

#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

pub mod answers;
pub mod exit;
pub mod files;
pub mod growing;
pub mod input_maps;
pub mod interrupt;
pub mod output;
pub mod progress;
pub mod provenance;
pub mod tables;
