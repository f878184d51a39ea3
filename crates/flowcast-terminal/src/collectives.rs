//! `--collectives`: whether collectives cost what a formula says or are carried out by messages, and by which.

use anyhow::Result;
use flowcast::Collectives;
use flowcast_io::read_collectives;

use crate::{say, trace_args::Maps};

/// Collectives that no algorithm carries out.
pub fn note_formulas(kept: u64) {
    if kept > 0 {
        say!(
            "flowcast: note: {kept} collectives keep their formula: their communicator names a rank twice"
        );
    }
}

/// How collectives are carried out, by name.
pub fn named(how: &str) -> Result<Collectives> {
    read_collectives(how, &mut Maps::default())
}
