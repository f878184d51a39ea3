//! `flowcast validate margins`: checks that intervals contain measurements as often as their level states.

use anyhow::{Result, ensure};
use clap::Args;
use flowcast::{
    model::accuracy::{CaseKind, Coverage},
    table::{Document, json, or_dash, percent, rows, shown},
};

use flowcast_terminal::{network_args, output::Format};

/// Check how often intervals of an accuracy record contain measurements
///
/// Compares each error in the accuracy record with the margin that the other errors of its model give, without errors whose
/// name has the same first part: cg.S.4 is predicted without any run of cg. With --accuracy, the margins come from the
/// accuracy record of another network. Margins of the network's parameters are not included.
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
    /// Probability that the intervals contain the measured values
    #[arg(long, default_value = "0.90", value_name = "PROBABILITY", value_parser = flowcast_terminal::shares::probability)]
    level: f64,
    #[command(flatten)]
    format: Format,
}

impl ValidateMargins {
    /// Counts the measurements inside the intervals and prints the shares.
    pub(crate) fn run(self) -> Result<()> {
        let by = self
            .accuracy
            .as_ref()
            .map(|name| network_args::load(name, &[]))
            .transpose()?;
        let mut margins = Vec::new();
        let networks = self
            .networks
            .iter()
            .map(|name| network_args::load(name, &[]))
            .collect::<Result<Vec<_>>>()?;
        for (name, network) in self.networks.iter().zip(&networks) {
            let known = by.as_ref().unwrap_or(network).accuracy_record();
            let found = network.accuracy_record().coverage(known, self.level)?;
            ensure!(
                !found.is_empty(),
                "{name}: found no accuracy record with errors of cases, expected one of `flowcast validate app --accuracy {name}`"
            );
            margins.extend(found.into_iter().map(|of| (&network.name, of)));
        }
        let inside = format!("inside {:.0} %", self.level * 100.0);
        let table = rows(&margins)
            .column("network", "network", |(network, _)| *network)
            .column("model", "model", |(_, of)| &of.entry.model)
            .field("validated_on", |(_, of)| &of.entry.validated_on)
            .field("judged", |(_, of)| of.entry.judged.map(json))
            .cell("validated on", |(_, of)| {
                let kind = of.entry.judged.map_or("cases", CaseKind::name);
                format!("{kind}: {}", of.entry.validated_on)
            })
            .column("cases", "cases", |(_, of)| of.all)
            .column("mean_absolute_error", "mean error", |(_, of)| {
                or_dash(of.entry.mean.map(|mean| percent(mean, 1)))
            })
            .field("inside", |(_, of)| of.inside)
            .column("share", inside, |(_, of)| {
                let share = percent(share(of), 1);
                if of.level < self.level {
                    let text = format!("{share} (margins of {:.0} %)", of.level * 100.0);
                    return shown(share, text);
                }
                share
            })
            .column("share_interval", "95 % interval", |(_, of)| {
                let (low, high) = of.interval;
                let text = format!("{} to {}", percent(low, 1), percent(high, 1));
                shown((low, high), text)
            })
            .column("median_width", "median width", |(_, of)| {
                percent(of.width, 1)
            })
            .field("level", |(_, of)| of.level);
        self.format.print(
            &Document::new("margins")
                .field("level", self.level)
                .table("margins", table),
        )
    }
}

fn share(of: &Coverage<'_>) -> f64 {
    of.inside as f64 / of.all as f64
}
