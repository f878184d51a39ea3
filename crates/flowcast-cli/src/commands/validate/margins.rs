//! `flowcast validate margins`: whether intervals hold what was measured as often as they say.

use anyhow::{Result, bail};
use clap::Args;
use flowcast::{model::accuracy::CaseKind, table::result};
use serde_json::json;

use crate::{
    network_args,
    terminal::{
        output::{Format, println_out},
        tables::table,
    },
};

/// Say how often the intervals that an accuracy record gives hold what was measured
///
/// Each error in the accuracy record is held against the margin that the others give for its model, without those whose name has
/// the same first part: cg.S.4 is predicted without any run of cg. With --accuracy the margins come from the accuracy record of another
/// network. Margins of the network's parameters are not part of it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  flowcast validate margins cluster.toml\n  \
                        flowcast validate margins new.toml --accuracy old.toml --level 0.95")]
pub(crate) struct ValidateMargins {
    /// Network files with an accuracy record
    #[arg(required = true, value_name = "NET.toml")]
    networks: Vec<String>,
    /// Take the margins from the accuracy record of this network
    #[arg(long, value_name = "NET.toml")]
    accuracy: Option<String>,
    /// Probability with which the intervals are to contain what is measured
    #[arg(long, default_value = "0.90", value_name = "PROBABILITY", value_parser = crate::commands::predict::probability)]
    level: f64,
    #[command(flatten)]
    format: Format,
}

impl ValidateMargins {
    /// Counts and prints.
    pub(crate) fn run(self) -> Result<()> {
        let load = |name: &String| network_args::load(name, &[]);
        let by = self.accuracy.as_ref().map(load).transpose()?;
        let percent = |share: f64| format!("{:.1} %", share * 100.0);
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
        let mut margins = Vec::new();
        for name in &self.networks {
            let network = load(name)?;
            let known = by.as_ref().unwrap_or(&network).accuracy_record();
            let found = network.accuracy_record().coverage(known, self.level)?;
            if found.is_empty() {
                bail!(
                    "{name}: found no errors of single cases in its accuracy record, expected some (validate --accuracy {name})"
                );
            }
            for coverage in found {
                let (entry, (low, high)) = (coverage.entry, coverage.interval);
                let share = coverage.inside as f64 / coverage.all as f64;
                margins.push(json!({
                    "network": network.name,
                    "model": entry.model,
                    "validated_on": entry.validated_on,
                    "judged": entry.kind,
                    "mean_absolute_error": entry.mean,
                    "cases": coverage.all,
                    "inside": coverage.inside,
                    "share": share,
                    "share_interval": [low, high],
                    "median_width": coverage.width,
                    "level": coverage.level,
                }));
                let kind = entry.kind.map_or("cases", CaseKind::name);
                let lower = if coverage.level < self.level {
                    format!(" (margins of {:.0} %)", coverage.level * 100.0)
                } else {
                    String::new()
                };
                out.add_row([
                    network.name.clone(),
                    entry.model.clone(),
                    format!("{kind}: {}", entry.validated_on),
                    coverage.all.to_string(),
                    entry.mean.map_or("-".into(), percent),
                    format!("{}{lower}", percent(share)),
                    format!("{} to {}", percent(low), percent(high)),
                    percent(coverage.width),
                ]);
            }
        }
        if self.format.json {
            let fields = json!({"level": self.level, "margins": margins});
            println_out!("{}", result("margins", fields));
        } else {
            println_out!("{out}");
        }
        Ok(())
    }
}
