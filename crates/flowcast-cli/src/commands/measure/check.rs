//! `flowcast measure check`: checks that a network still agrees with its file.

use anyhow::{Result, ensure};
use clap::Args;
use flowcast::{
    statistics::stability::StabilityVerdict,
    table::{Document, rows},
    units::{Bytes, Time},
};
use flowcast_measure::{
    check::{CheckError, CheckPlan, CheckedPoint, check},
    prtt::answer,
    tcp::loopback_pair,
};

use super::{connected_to, share};
use crate::{
    commands::{doctor, rails::live::WaitingKind},
    round_trips::explained,
};
use flowcast_terminal::{
    exit::Finding, network_args::load, output::Format, shares::probability, token::TokenArgs,
};

/// Check in two seconds whether a network agrees with its file
///
/// Measures a few round trips against `flowcast measure p2p --listen` at the other end, or over loopback, and compares them
/// with the predictions of the file by a sequential test. The exit code is 0 if no change is found, and 1 if something has
/// changed.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  flowcast measure check loopback.toml\n  \
                        node1$ flowcast measure p2p --listen 0.0.0.0:7070    # prints a token\n  \
                        node2$ flowcast measure check cluster --connect node1:7070 --token TOKEN")]
pub(crate) struct MeasureCheck {
    /// Network file, or name of a saved network (see `flowcast networks`)
    #[arg(value_name = "NET")]
    network: String,
    /// Address of the answering end; loopback if absent
    #[arg(long, value_name = "ADDR")]
    connect: Option<String>,
    #[command(flatten)]
    token: TokenArgs,
    /// Behaviour of this end while it waits for a message; use the value with which the file was measured
    #[arg(long, value_enum, default_value_t = WaitingKind::Sleep)]
    waiting: WaitingKind,
    /// Size of the large messages; the small ones have 1 byte
    #[arg(long, default_value = "64KiB", value_name = "SIZE")]
    size: Bytes,
    /// Largest difference that is ignored, as a share of the predicted time
    #[arg(long, value_name = "SHARE", value_parser = share, default_value = "10%")]
    threshold: f64,
    /// Probability of a false alarm if the file holds
    #[arg(long, value_name = "PROBABILITY", default_value = "0.01", value_parser = probability)]
    false_alarms: f64,
    /// Time limit; the check then ends even if the result is uncertain
    #[arg(long, value_name = "TIME", default_value = "1500ms", value_parser = Time::parse)]
    time_limit: Time,
    #[command(flatten)]
    format: Format,
}

impl MeasureCheck {
    /// Measures, compares and prints the changes.
    pub(crate) fn run(self) -> Result<()> {
        let network = load(&self.network, &[])?;
        let plan = CheckPlan {
            size: self.size,
            max_time: self.time_limit,
            level: self.false_alarms,
            least: self.threshold,
            ..CheckPlan::default()
        };
        let points = match &self.connect {
            Some(address) => {
                let mut transport = connected_to(address, &self.token, self.waiting.into())?;
                check(&mut transport, &network, &plan)
            }
            None => {
                let (mut client, mut server) =
                    loopback_pair(self.waiting.into()).map_err(explained)?;
                // The thread ends with the connection.
                std::thread::spawn(move || answer(&mut server));
                check(&mut client, &network, &plan)
            }
        };
        let points = points.map_err(|error| match error {
            CheckError::Measure(error) => explained(error),
            other => other.into(),
        })?;
        let verdict = verdict(&points);
        self.format
            .print(&document(&network.name, verdict, &points))?;
        ensure!(
            verdict != "changed",
            Finding(format!("{} no longer agrees with its file", network.name))
        );
        Ok(())
    }
}

fn verdict(points: &[CheckedPoint]) -> &'static str {
    match () {
        () if any(points, &[StabilityVerdict::Above, StabilityVerdict::Below]) => "changed",
        () if any(points, &[StabilityVerdict::Open]) => "open",
        () => "holds",
    }
}

fn any(points: &[CheckedPoint], wanted: &[StabilityVerdict]) -> bool {
    points.iter().any(|point| wanted.contains(&point.verdict))
}

fn document(network: &str, verdict: &str, points: &[CheckedPoint]) -> Document {
    let words = match verdict {
        "changed" => "has changed",
        "open" => "shows no change, but not every value could be confirmed within the time limit",
        _ => "agrees with its file",
    };
    let table = rows(points)
        .cell("parameter", |checked| {
            match (checked.point.messages, checked.point.size.0) {
                (1, 1) => "latency",
                (1, _) => "latency and bandwidth",
                (_, 1) => "message rate",
                _ => "bandwidth",
            }
        })
        .column("size_B", "size", |checked| checked.point.size)
        .column("n", "in a row", |checked| checked.point.messages)
        .column("predicted_us", "predicted", |checked| checked.predicted.0)
        .field("interval_us", |checked| {
            [checked.predicted.1, checked.predicted.2]
        })
        .cell("from", |checked| checked.predicted.1)
        .cell("to", |checked| checked.predicted.2)
        .column("found_us", "measured", |checked| checked.found)
        .column("samples", "samples", |checked| checked.count)
        .column("verdict", "", |checked| match checked.verdict {
            StabilityVerdict::Above => "slower",
            StabilityVerdict::Below => "faster",
            StabilityVerdict::Between => "holds",
            StabilityVerdict::Open => "open",
        });
    Document::new("network-check")
        .field("network", network)
        .field("verdict", verdict)
        .line(format!("{network} {words}."))
        .table("points", table)
        .field("provenance", doctor::provenance_of_measurement())
}
