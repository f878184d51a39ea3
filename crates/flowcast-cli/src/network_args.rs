//! `--network` and `--set`, the same for every command that needs a network.

use std::path::Path;

use anyhow::{Context, Result, anyhow};
use clap::Args;
use flowcast::model::{builtin, network::Network};

use crate::files::read_text;

/// Which network.
#[derive(Debug, Clone, Args)]
pub struct NetworkArgs {
    /// Built-in network (see `flowcast networks`) or network file (TOML)
    #[arg(short, long, value_name = "NET")]
    pub network: String,
    /// Replace a field of the network, such as nic.latency=5us (repeatable)
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub overrides: Vec<String>,
}

impl NetworkArgs {
    /// Reads the network.
    pub fn load(&self) -> Result<Network> {
        load(&self.network, &parse_overrides(&self.overrides)?)
    }
}

/// Splits `KEY=VALUE` texts.
pub fn parse_overrides(texts: &[String]) -> Result<Vec<(String, String)>> {
    let split = |text: &String| {
        let (key, value) = text
            .split_once('=')
            .ok_or_else(|| anyhow!("--set: found `{text}`, expected KEY=VALUE such as nic.latency=5us"))?;
        Ok((key.trim().to_owned(), value.trim().to_owned()))
    };
    texts.iter().map(split).collect()
}

/// A file if there is one of that name, else a built-in network.
pub fn load(name: &str, overrides: &[(String, String)]) -> Result<Network> {
    let path = Path::new(name);
    if path.is_file() {
        let text = read_text(path)?;
        Network::from_toml(&text, overrides).with_context(|| path.display().to_string())
    } else if name.contains(['/', '.']) {
        Err(anyhow!("cannot read the network file {name}: no such file"))
    } else {
        Ok(builtin::network(name)?.with_overrides(overrides)?)
    }
}
