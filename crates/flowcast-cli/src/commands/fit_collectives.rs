//! `flowcast fit --collectives`: fits the costs of the steps of collective operations to measurements on a machine.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use clap::Args;
use flowcast::{
    model::{csv::Table, network::Network},
    statistics::sample::quantile,
    table::{Document, Record, percent, rows},
};
use flowcast_tuning::{
    allocations::Allocations,
    cases::{MeasuredCase, measured_cases},
    fit::{CollectiveFit, Machine, fit_collectives},
    held_out::HeldOutError,
    network::{group_links, to_network},
};

use flowcast_terminal::{
    costs_table::costs_table,
    files::{read_parsed, write_text},
    output::Format,
    progress::Progress,
    provenance,
    trace_args::threads,
};

#[derive(Debug, Args)]
pub(super) struct CollectiveArgs {
    /// Medians of collective operations of machines, with the columns
    /// system,run,nodes,ranks_per_node,collective,library,version,algorithm, bytes,median_ns and any others
    #[arg(long, value_name = "FILE.csv", requires_all = ["allocations", "system"], conflicts_with = "inputs")]
    pub collectives: Option<PathBuf>,
    /// Collectives: places of the ranks, with the columns system,run,nodes,rank,node,group,switch
    #[arg(long, value_name = "FILE.csv")]
    pub allocations: Option<PathBuf>,
    /// Collectives: machine to fit; the other machines determine the residuals of algorithms
    #[arg(long, value_name = "NAME")]
    pub system: Option<String>,
}

/// Inputs and outputs of the fit.
pub(super) struct FitCollectives<'a> {
    pub measured: &'a Path,
    pub allocations: &'a Path,
    pub system: &'a str,
    pub known: Option<Network>,
    pub output: Option<&'a Path>,
    pub name: String,
    pub format: Format,
}

impl FitCollectives<'_> {
    /// Fits, writes the network file if requested, and prints the costs.
    pub(super) fn run(self) -> Result<()> {
        let measured = read_parsed(self.measured, |text| measured_cases(&Table::parse(text)?))?;
        let allocations = read_parsed(self.allocations, Allocations::from_csv)?;
        let machine = Machine {
            system: self.system,
            group_links: self.known.as_ref().map_or(Ok(f64::INFINITY), group_links)?,
        };
        let progress = Progress::without_end(format!("{} operations", measured.len()));
        let fit = fit_collectives(&measured, &allocations, &machine, threads())
            .with_context(|| self.measured.display().to_string())?;
        drop(progress);
        let own: Vec<&MeasuredCase> = measured
            .iter()
            .filter(|row| row.case.job.system == self.system)
            .collect();
        if let Some(output) = self.output {
            let mut stamp = provenance::of_this_run();
            stamp.insert(
                "collectives".to_owned(),
                self.measured.display().to_string(),
            );
            stamp.insert(
                "allocations".to_owned(),
                self.allocations.display().to_string(),
            );
            let network = to_network(
                fit.measured.clone(),
                &self.name,
                self.known.as_ref(),
                own[0].case.library,
                stamp,
            );
            write_text(output, &network.to_toml())?;
        }
        self.format.print(&document(&fit, &own))
    }
}

fn document(fit: &CollectiveFit, own: &[&MeasuredCase]) -> Document {
    let costs = costs_table("Costs of steps, with 90 % intervals", &fit.measured.costs);
    let mut by_operation: BTreeMap<&str, Vec<&HeldOutError>> = BTreeMap::new();
    for held_out in &fit.held_out {
        by_operation
            .entry(own[held_out.case].case.op.name())
            .or_default()
            .push(held_out);
    }
    let errors = rows(&by_operation)
        .heading("Errors of held-out runs")
        .column("operation", "operation", |(op, _)| *op)
        .column("cases", "cases", |(_, cases)| cases.len())
        .column("median_error", "median", |(_, cases)| {
            percent(error_quantile(cases, 0.5), 0)
        })
        .column("error_of_nine_in_ten", "90 % below", |(_, cases)| {
            percent(error_quantile(cases, 0.9), 0)
        });
    let spread = fit.measured.spread;
    let all: Vec<&HeldOutError> = fit.held_out.iter().collect();
    let line = match all.is_empty() {
        true => "only one run: no run could be held out, so the error for other runs of this machine is unknown"
            .to_owned(),
        false => format!(
            "median error of held-out runs: {:.0} %; intervals are {:.2} times as wide as those of the fit alone",
            100.0 * error_quantile(&all, 0.5),
            fit.measured.widening
        ),
    };
    let deviations = Record::new()
        .field("algorithm", spread.algorithm)
        .field("algorithm_here", spread.algorithm_here)
        .field("operation_here", spread.operation_here)
        .field("shared_node", spread.shared_node)
        .field("run", spread.run)
        .field("single", spread.single)
        .field("disturbance", spread.disturbance);
    Document::new("collective-fit")
        .field("system", fit.measured.system.clone())
        .field("cases", own.len())
        .field("widening", fit.measured.widening)
        .field("deviations", deviations)
        .table("costs", costs)
        .table("errors", errors)
        .line(line)
}

/// Quantile of `max(predicted / measured, measured / predicted) - 1`.
fn error_quantile(cases: &[&HeldOutError], share: f64) -> f64 {
    let errors: Vec<f64> = cases
        .iter()
        .map(|case| case.error.abs().exp() - 1.0)
        .collect();
    quantile(&errors, share).unwrap_or(f64::NAN)
}
