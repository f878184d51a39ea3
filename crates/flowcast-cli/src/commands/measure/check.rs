//! `flowcast measure check`: whether a network still is what its file says.

use std::collections::BTreeMap;

use anyhow::Result;
use clap::Args;
use flowcast::model::stats::still::Verdict;
use flowcast::units::{Bytes, Rounded, Time};
use flowcast_measure::check::{CheckError, CheckPlan, CheckedPoint, check};
use flowcast_measure::prtt::answer;
use flowcast_measure::tcp::{TcpTransport, Waiting, loopback_pair};
use serde::Serialize;

use super::token_for;
use crate::commands::doctor;
use crate::network_args::load;
use crate::round_trips::explained;
use crate::terminal::exit::Finding;
use crate::terminal::output::{Format, Micros, Shown, println_out, show};
use crate::terminal::tables::table;
use crate::token::TokenArgs;

/// Check in two seconds whether a network still is what its file says
///
/// Takes a few round trips against `flowcast measure p2p --listen` at the other end (or over loopback) and compares them with
/// those that the file predicts, by a sequential test. The exit code is 0 if the file holds, 1 if something has changed.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  flowcast measure check loopback.toml\n  \
                        node1$ flowcast measure p2p --listen 0.0.0.0:7070    # prints a token\n  \
                        node2$ flowcast measure check cluster --connect node1:7070 --token TOKEN")]
pub(crate) struct MeasureCheck {
    /// Network file, or the name of one that is kept (see `flowcast networks`)
    #[arg(value_name = "NET")]
    network: String,
    /// Against the answering end at this address; loopback without it
    #[arg(long, value_name = "ADDR", help_heading = "Where")]
    connect: Option<String>,
    #[command(flatten)]
    token: TokenArgs,
    /// Poll instead of sleeping while waiting, if the file was measured so
    #[arg(long, help_heading = "Where")]
    poll: bool,
    /// The large size of the messages; the small one is a byte
    #[arg(long, default_value = "64KiB", value_name = "SIZE")]
    size: Bytes,
    /// A difference of this share does not matter
    #[arg(long, value_name = "SHARE", default_value_t = CheckPlan::default().least)]
    least: f64,
    /// Probability of an alarm where the file holds
    #[arg(long, alias = "level", value_name = "PROBABILITY", default_value_t = CheckPlan::default().level)]
    false_alarms: f64,
    /// End after this time, whatever is known
    #[arg(long, value_name = "TIME", default_value = "1500ms", value_parser = Time::parse, help_heading = "Run")]
    max_time: Time,
    #[command(flatten)]
    format: Format,
}

impl MeasureCheck {
    /// Measures, compares and says what has changed.
    pub(crate) fn run(self) -> Result<()> {
        let network = load(&self.network, &[])?;
        let plan = CheckPlan {
            size: self.size,
            max_time: self.max_time,
            level: self.false_alarms,
            least: self.least,
            ..CheckPlan::default()
        };
        let points = match &self.connect {
            Some(address) => {
                let token = token_for(address, &self.token)?;
                let transport = TcpTransport::introduced(address, token.bytes(), self.waiting());
                check(
                    &mut transport.map_err(|error| explained(error.into()))?,
                    &network,
                    &plan,
                )
            }
            None => {
                let (mut client, mut server) =
                    loopback_pair(self.waiting()).map_err(|error| explained(error.into()))?;
                // It ends with the connection.
                std::thread::spawn(move || answer(&mut server));
                check(&mut client, &network, &plan)
            }
        };
        let points = points.map_err(|error| match error {
            CheckError::Measure(error) => explained(error),
            other => other.into(),
        })?;
        let checked = Checked::new(&network.name, &points);
        show(&checked, self.format)?;
        match checked.verdict {
            "changed" => Err(Finding(format!(
                "{} is not what its file says any more",
                network.name
            ))
            .into()),
            _ => Ok(()),
        }
    }

    fn waiting(&self) -> Waiting {
        if self.poll {
            Waiting::Poll
        } else {
            Waiting::Sleep
        }
    }
}

#[derive(Serialize)]
struct Checked {
    network: String,
    verdict: &'static str,
    points: Vec<Point>,
    provenance: BTreeMap<String, String>,
}

#[derive(Serialize)]
struct Point {
    n: u32,
    #[serde(rename = "size_B")]
    size: u64,
    predicted_us: Micros,
    interval_us: [Micros; 2],
    found_us: Micros,
    samples: u32,
    verdict: &'static str,
}

impl Checked {
    fn new(network: &str, points: &[CheckedPoint]) -> Checked {
        let any = |wanted: &[Verdict]| points.iter().any(|point| wanted.contains(&point.verdict));
        let verdict = match () {
            () if any(&[Verdict::Above, Verdict::Below]) => "changed",
            () if any(&[Verdict::Open]) => "open",
            () => "holds",
        };
        let point = |checked: &CheckedPoint| Point {
            n: checked.point.messages,
            size: checked.point.size.0,
            predicted_us: Micros(checked.predicted.0),
            interval_us: [Micros(checked.predicted.1), Micros(checked.predicted.2)],
            found_us: Micros(checked.found),
            samples: checked.count,
            verdict: match checked.verdict {
                Verdict::Above => "slower",
                Verdict::Below => "faster",
                Verdict::Between => "holds",
                Verdict::Open => "open",
            },
        };
        Checked {
            network: network.to_owned(),
            verdict,
            points: points.iter().map(point).collect(),
            provenance: doctor::provenance_of_measurement(),
        }
    }
}

impl Point {
    /// What a point shows first of all.
    fn shows(&self) -> &'static str {
        match (self.n, self.size) {
            (1, 1) => "latency",
            (1, _) => "latency and bandwidth",
            (_, 1) => "message rate",
            _ => "bandwidth",
        }
    }
}

impl Shown for Checked {
    const SCHEMA: &'static str = "flowcast/network-check/1";

    fn print(&self) {
        match self.verdict {
            "changed" => println_out!("{} has changed.", self.network),
            "open" => println_out!(
                "{} shows no change; not all of it could be confirmed in the time.",
                self.network
            ),
            _ => println_out!("{} holds.", self.network),
        }
        let mut rows = table(&[
            "shows",
            ">size",
            ">in a row",
            ">predicted",
            ">from",
            ">to",
            ">found",
            ">samples",
            "",
        ]);
        for point in &self.points {
            let [low, high] = point.interval_us;
            let mut cells = vec![
                point.shows().to_owned(),
                Bytes(point.size).to_string(),
                point.n.to_string(),
            ];
            cells.extend(
                [point.predicted_us.0, low.0, high.0, point.found_us.0]
                    .map(|time| Rounded(time).to_string()),
            );
            cells.extend([point.samples.to_string(), point.verdict.to_owned()]);
            rows.add_row(cells);
        }
        println_out!("{rows}");
    }
}
