//! `flowcast validate margins`: whether intervals hold what was measured as often as they say.

use anyhow::{Result, bail};
use clap::Args;
use flowcast::model::ledger::{Coverage, Judged};
use flowcast::model::network::Network;
use serde::Serialize;

use crate::network_args;
use crate::terminal::output::{Format, Shown, println_out, show};
use crate::terminal::tables::table;

/// Say how often the intervals that a ledger gives hold what was measured
///
/// Each error in the ledger is held against the margin that the others give for its model, without those whose name has
/// the same first part: cg.S.4 is judged without any run of cg. With --by the margins come from the ledger of another
/// network. Margins of the network's parameters are not part of it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  flowcast validate margins cluster.toml\n  \
                        flowcast validate margins new.toml --by old.toml --level 0.95")]
pub(crate) struct ValidateMargins {
    /// Network files with a ledger
    #[arg(required = true, value_name = "NET.toml")]
    networks: Vec<String>,
    /// Take the margins from the ledger of this network
    #[arg(long, value_name = "NET.toml")]
    by: Option<String>,
    /// Probability with which the intervals are to contain what is measured
    #[arg(long, default_value = "0.90", value_name = "PROBABILITY", value_parser = crate::commands::predict::probability)]
    level: f64,
    #[command(flatten)]
    format: Format,
}

impl ValidateMargins {
    /// Counts and prints.
    pub(crate) fn run(self) -> Result<()> {
        let load =
            |name: &String| -> Result<Network> { Ok(network_args::load(name, &[])?.announced()) };
        let by = self.by.as_ref().map(load).transpose()?;
        let mut margins = Vec::new();
        for name in &self.networks {
            let network = load(name)?;
            let known = by.as_ref().unwrap_or(&network).ledger();
            let found = network.ledger().coverage(known, self.level)?;
            if found.is_empty() {
                bail!(
                    "{name}: found no errors of single cases in its ledger, expected some (validate --ledger {name})"
                );
            }
            margins.extend(
                found
                    .iter()
                    .map(|coverage| Entry::new(&network.name, coverage)),
            );
        }
        show(
            &Document {
                level: self.level,
                margins,
            },
            self.format,
        )
    }
}

#[derive(Serialize)]
struct Document {
    level: f64,
    margins: Vec<Entry>,
}

/// The margins of one model on one kind of thing.
#[derive(Serialize)]
struct Entry {
    network: String,
    model: String,
    validated_on: String,
    judged: Option<Judged>,
    mean_absolute_error: Option<f64>,
    cases: usize,
    inside: usize,
    share: f64,
    share_interval: [f64; 2],
    median_width: f64,
    level: f64,
}

impl Entry {
    fn new(network: &str, coverage: &Coverage<'_>) -> Entry {
        Entry {
            network: network.to_owned(),
            model: coverage.entry.model.clone(),
            validated_on: coverage.entry.validated_on.clone(),
            judged: coverage.entry.judged,
            mean_absolute_error: coverage.entry.mean,
            cases: coverage.all,
            inside: coverage.inside,
            share: coverage.inside as f64 / coverage.all as f64,
            share_interval: [coverage.interval.0, coverage.interval.1],
            median_width: coverage.width,
            level: coverage.level,
        }
    }
}

impl Shown for Document {
    const SCHEMA: &'static str = "flowcast/margins/1";

    fn print(&self) {
        let inside = format!(">inside {:.0} %", self.level * 100.0);
        let mut out = table(&[
            "network",
            "model",
            "judged on",
            ">cases",
            ">mean error",
            &inside,
            ">95 % interval",
            ">median width",
        ]);
        let percent = |share: f64| format!("{:.1} %", share * 100.0);
        for entry in &self.margins {
            let judged = entry.judged.map_or("cases", Judged::name);
            let lower = if entry.level < self.level {
                format!(" (margins of {:.0} %)", entry.level * 100.0)
            } else {
                String::new()
            };
            out.add_row([
                entry.network.clone(),
                entry.model.clone(),
                format!("{judged}: {}", entry.validated_on),
                entry.cases.to_string(),
                entry.mean_absolute_error.map_or("-".into(), percent),
                format!("{}{lower}", percent(entry.share)),
                format!(
                    "{} to {}",
                    percent(entry.share_interval[0]),
                    percent(entry.share_interval[1])
                ),
                percent(entry.median_width),
            ]);
        }
        println_out!("{out}");
    }
}
