//! `flowcast validate`: predictions against what really happened.

mod journal;
mod pattern;
mod patterns;
mod results;
mod tolerance;

pub(crate) use patterns::racks_of;

use anyhow::Result;
use clap::{Args, Subcommand};

/// Compare predictions with what really happens
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  flowcast validate pattern --set A --instances 10 -o chain.html")]
pub struct Validate {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    Pattern(Box<pattern::ValidatePattern>),
}

impl Validate {
    /// Runs the chosen comparison.
    pub fn run(self) -> Result<()> {
        match self.what {
            What::Pattern(command) => command.run(),
        }
    }
}
