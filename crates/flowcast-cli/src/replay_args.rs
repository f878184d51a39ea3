//! How a trace is replayed, the same for commands that ask one thing of one replay.

use anyhow::Result;
use clap::Args;
use flowcast::{Contention, Options, units::Bytes};

use crate::{collectives::CollectivesArgs, commands::parse_mapping, trace_args::threads};

/// Model, mapping, rendezvous and collectives.
#[derive(Debug, Clone, Args)]
pub(crate) struct ReplayArgs {
    /// What concurrent messages do to each other, as for `flowcast predict`; without it the network decides
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// Where ranks run: fill, round-robin, N-per-node, or a file
    #[arg(long, value_name = "MAP")]
    mapping: Option<String>,
    /// Messages of at least this size wait for their receiver, whatever the trace says, such as 64KiB
    #[arg(long, value_name = "SIZE")]
    rendezvous_from: Option<Bytes>,
    #[command(flatten)]
    collectives: CollectivesArgs,
}

impl ReplayArgs {
    /// As the library takes them; reads the files that they name.
    pub(crate) fn options(&self) -> Result<Options> {
        Ok(Options {
            contention: self
                .model
                .as_deref()
                .map(Contention::named)
                .transpose()?
                .unwrap_or_default(),
            mapping: self.mapping.as_deref().map(parse_mapping).transpose()?,
            rendezvous_from: self.rendezvous_from,
            collectives: self.collectives.read()?,
            threads: threads(),
            ..Options::default()
        })
    }
}
