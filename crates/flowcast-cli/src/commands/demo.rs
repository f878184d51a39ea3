//! `flowcast demo`: the whole procedure from the measurement of a network to a report, with only this program.

use std::{ops::ControlFlow, path::PathBuf};

use anyhow::{Context, Result};
use clap::Args;
use flowcast::{
    Interval, IntervalOptions, Options, Outputs, Prepared,
    model::{builtin, network::Network},
    report::{NetworkView, Page, standing::verdict},
    statements::{by_name, margin, of_predictions, shown_time},
    table::{Document, Grouped, Rows, percent, rows, shown},
    units::Time,
};
use flowcast_measure::loopback::measure_and_fit_loopback;

use super::doctor::provenance_of_measurement;
use flowcast_terminal::{
    exit::EnvironmentLacks,
    files::{Output, declare, write_text},
    output::Format,
    progress::Progress,
    provenance,
};

/// NAS LU, class S, four ranks. Its origin and licence are described beside the file.
const TRACE: &[u8] = include_bytes!("../../../flowcast/examples/data/lu.S.4.dim.gz");

/// Built-in networks that are compared with loopback: old ones, from 2006, and modern ones.
const OTHERS: [&str; 4] = [
    "gige-tcp",
    "infiniband-2006",
    "ethernet-10g-tcp",
    "infiniband-ndr200",
];

const MEASURING_SECONDS: f64 = 5.0;

/// Measure this machine, predict a program on it and write a report
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  flowcast demo && xdg-open flowcast-demo.html")]
pub(crate) struct Demo {
    /// Output file of the report
    #[arg(long, value_name = "FILE.html", default_value = "flowcast-demo.html")]
    report: PathBuf,
    #[command(flatten)]
    format: Format,
}

impl Demo {
    /// Runs the demonstration.
    pub(crate) fn run(self) -> Result<()> {
        declare([], [Output::new("--report", &self.report)])?;
        let trace = flowcast::read_text("lu.S.4.dim.gz", TRACE)?;
        let outputs = Outputs {
            view: true,
            ..Outputs::default()
        };
        let mut networks = vec![measure_network()?];
        for name in OTHERS {
            networks.push(builtin::network(name)?);
        }
        let progress = Progress::counted("replaying", "networks", networks.len() as u64);
        let (mut views, mut intervals) = (Vec::new(), Vec::new());
        let mut said = Vec::new();
        for network in &networks {
            let prepared = Prepared::new(&trace, Some(network), &Options::default())?;
            let mut prediction = prepared.predict(outputs, &[])?;
            let interval = prepared.interval(&prediction.outcome, &IntervalOptions::default())?;
            prediction.with_interval(interval.as_ref());
            intervals.push(interval);
            views.extend(prediction.view);
            said.push((network, prediction.notes));
            progress.add(1);
        }
        drop(progress);
        let replayed = views.first().map_or(0, |view| view.outcome.messages);
        let margins = networks.iter().zip(&intervals).map(|(network, interval)| {
            let margin = margin([network], interval.as_ref(), true);
            (network.name.clone(), margin)
        });
        let provenance = provenance::of_this_run();
        let document = Document::new("demo")
            .titled("One program on five networks")
            .field("report", self.report.display().to_string())
            .field("provenance", &provenance)
            .line(format!(
                "NAS LU, class S, 4 ranks: {} messages on loopback and on networks of 2006 and today",
                Grouped(replayed)
            ))
            .lines(fastest(&views))
            .table("networks", comparison(&views, &intervals))
            .lines(by_name(&margins.collect::<Vec<_>>()))
            .noted(of_predictions(
                said.iter().map(|(of, notes)| (Some(*of), &notes[..])),
            ));
        write_text(
            &self.report,
            &Page::about(&document, views, provenance).to_html()?,
        )?;
        let document = document.line(format!("\nreport: {}", self.report.display()));
        self.format.print(&document)
    }
}

fn measure_network() -> Result<Network> {
    let provenance = provenance_of_measurement();
    let progress = Progress::for_seconds("measuring loopback TCP", MEASURING_SECONDS);
    let time = Time::from_seconds(MEASURING_SECONDS);
    let (measured, fit) = measure_and_fit_loopback(time, &mut |batch| {
        progress.at_seconds(batch.elapsed.as_seconds());
        ControlFlow::Continue(())
    })
    .map_err(|error| EnvironmentLacks(format!("cannot measure loopback: {error}")))
    .context("the demonstration needs TCP over loopback")?;
    drop(progress);
    let mut network = fit.to_network("loopback", provenance);
    network.title = format!(
        "TCP over loopback, {} samples taken just now",
        measured.samples.len()
    );
    Ok(network)
}

/// Sentence that names the fastest network.
fn fastest(views: &[NetworkView]) -> Option<String> {
    let names: Vec<String> = views.iter().map(|view| view.name.clone()).collect();
    let times = views
        .iter()
        .map(|view| (view.outcome.makespan(), view.interval.as_ref()));
    verdict(&names, &times.collect::<Vec<_>>())
}

/// One row for each network: predicted time, time in communication, slowest rank, and the limiting factor.
fn comparison<'a>(
    views: &'a [NetworkView],
    intervals: &'a [Option<Interval>],
) -> Rows<(&'a NetworkView, &'a Option<Interval>)> {
    rows(views.iter().zip(intervals))
        .column("network", "network", |(view, _)| {
            shown(&view.name, view.marked_name())
        })
        .column("makespan_s", "predicted time", |(view, interval)| {
            let makespan = view.outcome.makespan();
            shown(makespan, shown_time(makespan, interval.as_ref()))
        })
        .column("communication_share", "in communication", |(view, _)| {
            percent(view.communication_share(), 1)
        })
        .column("slowest_rank", "slowest rank", |(view, _)| {
            view.slowest_rank()
        })
        .column("limited_by", "what limits it", |(view, _)| {
            &view.limits.sentence
        })
        .field("interval_s", |(_, of)| {
            of.as_ref().map(|of| (of.low, of.high))
        })
        .field("interval_level", |(_, of)| of.as_ref().map(|of| of.level))
        .field("interval_covers", |(_, of)| {
            of.as_ref().map(|of| &of.covers)
        })
}
