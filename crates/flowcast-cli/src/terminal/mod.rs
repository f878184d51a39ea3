//! What every command does at the terminal, whatever it computes.
//!
//! - [`output`]: results as a table for people or as JSON, on a standard output that may be closed early; [`tables`],
//!   [`width`] and [`answers`] say how they look.
//! - [`files`]: which inputs are read and which outputs are written, whole or not at all; [`growing`] files survive a kill,
//!   [`input_maps`] are large inputs as maps.
//! - [`progress`], [`interrupt`], [`exit`] and `usage`: what a long run says, how it ends, its exit code, and wrong options.
//! - [`provenance`]: where a result comes from.

pub(crate) mod answers;
pub(crate) mod exit;
pub(crate) mod files;
pub(crate) mod goes_with;
pub(crate) mod growing;
pub(crate) mod input_maps;
pub(crate) mod interrupt;
pub(crate) mod output;
pub(crate) mod progress;
pub(crate) mod provenance;
pub(crate) mod tables;
mod usage;
pub(crate) mod width;
