//! `--collectives`: whether collectives cost what a formula says or are carried out by messages, and by which.

use anyhow::Result;
use clap::Args;
use flowcast::Collectives;
use flowcast_io::read_collectives;

use crate::{terminal::output::say, trace_args::Maps};

/// How collective operations are replayed.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct CollectivesArgs {
    /// Collectives by formula (`formula`), or by messages: as `openmpi` or `mpich` does it, as the network file says
    /// (`algorithm`; Open MPI where it does not), or as a table says (`algorithm:FILE`). When absent, a recording's are
    /// carried out as its MPI library does it, others by formula
    #[arg(long, value_name = "HOW")]
    pub collectives: Option<String>,
}

impl CollectivesArgs {
    /// As the library takes them; reads the table that it names.
    pub(crate) fn read(&self) -> Result<Collectives> {
        self.collectives
            .as_deref()
            .map_or(Ok(Collectives::Automatic), named)
    }
}

/// Collectives that no algorithm carries out.
pub(crate) fn note_formulas(kept: u64) {
    if kept > 0 {
        say!(
            "flowcast: note: {kept} collectives keep their formula: their communicator names a rank twice"
        );
    }
}

/// How collectives are carried out, by name.
pub(crate) fn named(how: &str) -> Result<Collectives> {
    read_collectives(how, &mut Maps::default())
}
