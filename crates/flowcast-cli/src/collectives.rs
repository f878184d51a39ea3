//! `--collectives`: whether collectives cost what a formula says or are carried out by messages, and by which.

use anyhow::Result;
use clap::Args;
use flowcast::Collectives;
use flowcast_io::read_collectives;

use crate::{terminal::output::say, trace_args::Maps};

/// How collective operations are replayed.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct CollectivesArgs {
    #[arg(long, value_name = "HOW", help = help(&Collectives::automatic_help()))]
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

/// The help of an option that names a way, with what holds without it.
pub(crate) fn help(without: &str) -> String {
    let ways = Collectives::named().map(|way| format!("{} ({})", way.name, way.help));
    format!(
        "How collective operations are carried out: {}, or algorithm:FILE (those of a table); {without}",
        ways.join(", ")
    )
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
