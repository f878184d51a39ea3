//! `--collectives`: evaluation of collectives by a formula or as messages, and the choice of the algorithm.

use anyhow::Result;
use flowcast::Collectives;
use flowcast_io::read_collectives;

use crate::{say, trace_args::Maps};

/// Notes that some collectives keep their formula because no algorithm can execute them.
pub fn note_formulas(kept: u64) {
    if kept > 0 {
        say!(
            "flowcast: note: {kept} collectives are evaluated by a formula: their communicator contains a rank twice"
        );
    }
}

/// Reads the value of `--collectives` by name.
pub fn named(how: &str) -> Result<Collectives> {
    read_collectives(how, &mut Maps::default())
}
