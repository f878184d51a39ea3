//! `flowcast lab network`: network file that corresponds to a lab's rates and windows.

use anyhow::Result;
use clap::Args;
use flowcast_measure::lab::network_of;

use super::load;
use flowcast_terminal::print_out;

/// Print the network file for a lab's rates and windows
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  flowcast lab network asymmetric > asymmetric.toml\n  \
                        flowcast predict x.pattern --network asymmetric.toml --model packet"
)]
pub(crate) struct LabNetwork {
    /// Built-in profile (see `flowcast lab profiles`) or lab file (TOML)
    #[arg(value_name = "PROFILE|FILE")]
    lab: String,
    /// Replace a field of the lab, such as nic.bandwidth=100Mbit/s (repeatable)
    #[arg(long = "set", value_name = "KEY=VALUE")]
    overrides: Vec<String>,
}

impl LabNetwork {
    /// Prints the file.
    pub(crate) fn run(self) -> Result<()> {
        print_out!(
            "{}",
            network_of(&load(&self.lab, &self.overrides)?).to_toml()
        );
        Ok(())
    }
}
