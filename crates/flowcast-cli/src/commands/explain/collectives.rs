//! `flowcast explain collectives`: which algorithm carries out which collectives of a trace.

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::Args;
use flowcast::trace::Trace;
use flowcast::trace::expand::{Expanded, Use};
use serde_json::json;

use crate::collectives::CollectivesArgs;
use crate::network_args::{LoadedNetwork, load, parse_overrides};
use crate::output::println_out;
use crate::tables::table;
use crate::trace_args::open_trace;

/// Which algorithm carries out which collectives of a trace
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowcast explain collectives is.dim
  flowcast explain collectives is.dim --collectives algorithm:ours.toml --json")]
pub struct Collectives {
    /// Trace of any format that `predict` reads
    input: PathBuf,
    /// Network whose file may hold a table of algorithms
    #[arg(short, long, value_name = "NET")]
    network: Option<String>,
    /// Replace a field of the network, such as nic.latency=5us (repeatable)
    #[arg(long = "set", value_name = "KEY=VALUE", requires = "network")]
    overrides: Vec<String>,
    #[command(flatten)]
    how: CollectivesArgs,
    /// Machine-readable output
    #[arg(long)]
    json: bool,
}

impl Collectives {
    /// Explains and prints. Without `--collectives` the network's table holds, and without that Open MPI's.
    pub fn run(self) -> Result<()> {
        let overrides = parse_overrides(&self.overrides)?;
        let network = self.network.as_deref().map(|name| load(name, &overrides)).transpose()?;
        let network = network.map(LoadedNetwork::announced);
        let trace = open_trace(&self.input)?;
        let Trace::Program(program) = &trace else {
            bail!("{}: found a GOAL schedule, which has no collectives, expected a trace", self.input.display());
        };
        let how = CollectivesArgs { collectives: Some(self.how.collectives.unwrap_or_else(|| "algorithm".into())) };
        let Some(expanded) = how.expand(program, network.as_ref())? else {
            bail!("--collectives formula: found no algorithms to explain, expected openmpi, mpich or algorithm");
        };
        if self.json {
            println_out!("{}", document(&expanded));
        } else {
            print_table(&expanded);
        }
        Ok(())
    }
}

fn document(expanded: &Expanded) -> serde_json::Value {
    let uses = expanded.uses.iter().map(|used| {
        let stages = used.stages.iter().map(|(op, choice)| json!([op.name(), choice.to_string()]));
        json!({
            "operation": used.op.name(),
            "ranks": used.extent.ranks,
            "bytes": used.extent.bytes.0,
            "total_bytes": used.extent.total.0,
            "algorithm": used.choice.map(|choice| choice.to_string()),
            "stages": stages.collect::<Vec<_>>(),
            "count": used.count,
            "immediate": used.immediate,
            "messages": used.messages,
            "message_bytes": used.bytes.0,
        })
    });
    json!({
        "schema": "flowcast/collectives/1",
        "uses": uses.collect::<Vec<_>>(),
        "kept_by_formula": expanded.kept,
    })
}

fn print_table(expanded: &Expanded) {
    let mut table = table(&["operation", ">ranks", ">bytes", "algorithm", ">count", ">messages", ">their bytes"]);
    for used in &expanded.uses {
        table.add_row([
            used.op.name().to_owned(),
            used.extent.ranks.to_string(),
            used.extent.bytes.0.to_string(),
            algorithm(used),
            used.count.to_string(),
            used.messages.to_string(),
            used.bytes.0.to_string(),
        ]);
    }
    println_out!("{table}");
    let immediate: u64 = expanded.uses.iter().map(|used| used.immediate).sum();
    if immediate > 0 {
        println_out!("immediate: {immediate}, whose messages move beside the program");
    }
    if expanded.kept > 0 {
        println_out!("{} keep their formula: their communicator names a rank twice", expanded.kept);
    }
}

fn algorithm(used: &Use) -> String {
    let Some(choice) = used.choice else { return "nothing to send".to_owned() };
    if used.stages.is_empty() {
        return choice.to_string();
    }
    let stages: Vec<String> = used.stages.iter().map(|(op, choice)| format!("{} {choice}", op.name())).collect();
    format!("{choice} ({})", stages.join(", "))
}
