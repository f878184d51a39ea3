//! `flowcast explain`: what stands behind a prediction: which algorithm carries out which collectives of a trace, and what the
//! predicted time is spent on.

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::Args;
use flowcast::trace::expand::{Expanded, NonBlocking, expand};
use flowcast::trace::{ReadOptions, Trace};
use serde::Serialize;

use super::explain_events::{Gradient, Path, Slack};
use crate::collectives::{self, CollectivesArgs};
use crate::network_args::{load, parse_overrides};
use crate::terminal::output::{Format, Shown, println_out, show};
use crate::terminal::tables::{cells, table};
use crate::trace_args::{open_trace, program_help, threads};
use flowcast::report::answer::Grouped;

subcommands! {
    /// Say what stands behind a prediction
    #[command(after_help = "Examples:\n  flowcast explain collectives is.dim --collectives mpich\n  flowcast explain path lu.dim --network gige-tcp\n  flowcast explain gradient lu.dim --network gige-tcp --model independent\n  flowcast explain slack lu.dim --network gige-tcp --model independent")]
    Explain {
        Collectives(Collectives),
        Path(Path),
        Gradient(Gradient),
        Slack(Slack),
    }
}

/// Which algorithm carries out which collectives of a trace
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowcast explain collectives is.dim
  flowcast explain collectives is.dim --collectives algorithm:ours.toml --json")]
pub(crate) struct Collectives {
    #[arg(help = program_help())]
    input: PathBuf,
    /// Network whose file may hold a table of algorithms
    #[arg(short, long, value_name = "NET", help_heading = "Network")]
    network: Option<String>,
    /// Replace a field of the network, such as nic.latency=5us (repeatable)
    #[arg(
        long = "set",
        value_name = "KEY=VALUE",
        requires = "network",
        help_heading = "Network"
    )]
    overrides: Vec<String>,
    #[command(flatten)]
    how: CollectivesArgs,
    #[command(flatten)]
    format: Format,
}

impl Collectives {
    /// Without `--collectives` the network's table holds, and without that Open MPI's.
    fn run(self) -> Result<()> {
        let overrides = parse_overrides(&self.overrides)?;
        let network = self
            .network
            .as_deref()
            .map(|name| load(name, &overrides))
            .transpose()?;
        let trace = open_trace(&self.input)?;
        let Trace::Program(program) = &trace else {
            bail!(
                "{}: found a GOAL schedule, which has no collectives, expected a trace",
                self.input.display()
            );
        };
        let how = collectives::named(self.how.collectives.as_deref().unwrap_or("algorithm"))?;
        let Some(table) = how.table(program, network.as_ref()) else {
            bail!(
                "--collectives formula: found no algorithms to explain, expected openmpi, mpich or algorithm"
            );
        };
        let expanded = expand(
            program,
            &table,
            NonBlocking::Expanded,
            ReadOptions { threads: threads() },
        )?;
        show(&Explained::of(&expanded), self.format)
    }
}

/// Which algorithm carries out which collectives.
#[derive(Serialize)]
struct Explained {
    uses: Vec<Explanation>,
    kept_by_formula: u64,
}

/// All collectives of one kind and size.
#[derive(Serialize)]
struct Explanation {
    operation: &'static str,
    ranks: u32,
    bytes: u64,
    total_bytes: u64,
    algorithm: Option<String>,
    stages: Vec<(&'static str, String)>,
    count: u64,
    immediate: u64,
    messages: u64,
    message_bytes: u64,
}

impl Explained {
    fn of(expanded: &Expanded) -> Explained {
        let uses = expanded.uses.iter().map(|used| Explanation {
            operation: used.op.name(),
            ranks: used.extent.ranks,
            bytes: used.extent.bytes.0,
            total_bytes: used.extent.total.0,
            algorithm: used.choice.map(|choice| choice.to_string()),
            stages: used
                .stages
                .iter()
                .map(|(op, choice)| (op.name(), choice.to_string()))
                .collect(),
            count: used.count,
            immediate: used.non_blocking,
            messages: used.messages,
            message_bytes: used.bytes.0,
        });
        Explained {
            uses: uses.collect(),
            kept_by_formula: expanded.kept,
        }
    }
}

impl Shown for Explained {
    const SCHEMA: &'static str = "flowcast/collectives/1";

    fn print(&self) {
        let mut table = table(&[
            "operation",
            ">ranks",
            ">bytes",
            "algorithm",
            ">count",
            ">messages",
            ">their bytes",
        ]);
        for used in &self.uses {
            let Explanation {
                operation,
                ranks,
                bytes,
                count,
                messages,
                message_bytes,
                ..
            } = used;
            table.add_row(cells![
                operation,
                ranks,
                Grouped(*bytes),
                used.algorithm(),
                Grouped(*count),
                Grouped(*messages),
                Grouped(*message_bytes)
            ]);
        }
        println_out!("{table}");
        let immediate: u64 = self.uses.iter().map(|used| used.immediate).sum();
        if immediate > 0 {
            println_out!("immediate: {immediate}, whose messages move beside the program");
        }
        if self.kept_by_formula > 0 {
            println_out!(
                "{} keep their formula: their communicator names a rank twice",
                self.kept_by_formula
            );
        }
    }
}

impl Explanation {
    fn algorithm(&self) -> String {
        let Some(choice) = &self.algorithm else {
            return "nothing to send".to_owned();
        };
        if self.stages.is_empty() {
            return choice.clone();
        }
        let stages: Vec<String> = self
            .stages
            .iter()
            .map(|(op, choice)| format!("{op} {choice}"))
            .collect();
        format!("{choice} ({})", stages.join(", "))
    }
}
