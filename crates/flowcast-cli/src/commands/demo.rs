//! `flowcast demo`: the whole way, from a measured network to a report, with nothing but this program.

use std::{ops::ControlFlow, path::PathBuf};

use anyhow::{Context, Result};
use clap::Args;
use flowcast::{
    Interval, IntervalOptions, Options, Outputs, Prepared,
    model::{builtin, network::Network},
    report::Page,
    units::Time,
};
use flowcast_measure::loopback::measure_and_fit_loopback;
use serde_json::json;

use super::predict::{
    stand_ins::{print_stand_ins, stand_in_sentences},
    trace::add_interval,
};
use crate::{
    replay_view::print_comparison,
    terminal::{
        exit::EnvironmentLacks,
        files::{Output, declare, write_text},
        output::{println_out, say},
        progress::Progress,
        provenance,
    },
};
use flowcast::table::{Grouped, result};

/// NAS LU, class S, four ranks; its origin and licence stand beside it.
const TRACE: &[u8] = include_bytes!("../../../flowcast/examples/data/lu.S.4.dim.gz");

/// Built-in networks to compare loopback with: of 2006, and of today.
const OTHERS: [&str; 4] = [
    "gige-tcp",
    "infiniband-2006",
    "ethernet-10g-tcp",
    "infiniband-ndr200",
];

const MEASURING_SECONDS: f64 = 5.0;

/// Measure loopback, replay a real program on it and on networks of 2006 and of today, write a report
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  flowcast demo && xdg-open flowcast-demo.html")]
pub(crate) struct Demo {
    /// The report to write
    #[arg(
        short,
        long,
        value_name = "FILE.html",
        default_value = "flowcast-demo.html"
    )]
    output: PathBuf,
    /// Machine-readable output
    #[arg(long)]
    json: bool,
}

impl Demo {
    /// Runs the demonstration.
    pub(crate) fn run(self) -> Result<()> {
        declare([], [Output::new("-o", &self.output)])?;
        let trace = flowcast::read_text("lu.S.4.dim.gz", TRACE)?;
        let outputs = Outputs {
            view: true,
            ..Outputs::default()
        };
        let mut networks = vec![measure_network()?];
        for name in OTHERS {
            networks.push(builtin::network(name)?);
        }
        let progress = Progress::of("replaying", "networks", networks.len() as u64);
        let (mut views, mut intervals) = (Vec::new(), Vec::new());
        for network in &networks {
            let prepared = Prepared::new(&trace, Some(network), &Options::default())?;
            let prediction = prepared.predict(outputs, &[])?;
            intervals.push(prepared.interval(&prediction.outcome, &IntervalOptions::default())?);
            views.extend(prediction.view);
            progress.add(1);
        }
        drop(progress);
        let page = Page {
            title: "NAS LU, class S, 4 ranks".to_owned(),
            subtitle: "One recorded program on this machine's loopback, on two networks of 2006 and on two of today"
                .to_owned(),
            networks: views,
            provenance: provenance::of_this_run(),
            notes: stand_in_sentences(&networks),
        };
        write_text(&self.output, &page.to_html())?;
        if self.json {
            println_out!("{}", summary(&page, &intervals, &self.output));
        } else {
            println_out!("{}: {} messages\n", page.title, Grouped(trace.messages()));
            print_comparison(&page.networks, &intervals);
            print_stand_ins(&networks);
            println_out!("\nreport: {}", self.output.display());
        }
        Ok(())
    }
}

fn measure_network() -> Result<Network> {
    let progress = Progress::for_seconds("measuring loopback TCP", MEASURING_SECONDS);
    let time = Time::from_seconds(MEASURING_SECONDS);
    let (measured, fit) = measure_and_fit_loopback(time, &mut |batch| {
        progress.at_seconds(batch.elapsed.as_seconds());
        ControlFlow::Continue(())
    })
    .map_err(|error| EnvironmentLacks(format!("loopback cannot be measured: {error}")))
    .context("the demonstration needs TCP over loopback")?;
    drop(progress);
    for warning in &fit.warnings {
        say!("flowcast: note: {warning}");
    }
    let mut network = fit.to_network("loopback", provenance::of_this_run());
    network.title = format!(
        "TCP over loopback, {} samples taken just now",
        measured.samples.len()
    );
    Ok(network)
}

fn summary(
    page: &Page,
    intervals: &[Option<Interval>],
    report: &std::path::Path,
) -> serde_json::Value {
    let networks = page.networks.iter().zip(intervals).map(|(view, interval)| {
        let mut network = json!({
            "network": view.name,
            "makespan_s": view.outcome.makespan().as_seconds(),
            "communication_share": view.communication_share(),
            "slowest_rank": view.slowest_rank().map(|rank| rank.0),
            "limited_by": view.limits.sentence,
        });
        add_interval(&mut network, interval.as_ref());
        network
    });
    let fields = json!({
        "networks": networks.collect::<Vec<_>>(),
        "report": report.display().to_string(),
        "provenance": page.provenance,
    });
    result("demo", fields)
}
