//! `flowcast rails advise`: whether a second network helps, for which messages, and what to set elsewhere.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use clap::Args;
use flowcast::model::loggp::LogGp;
use flowcast::model::network::{Interval, Network};
use flowcast::scheduler::advise::{KnownRail, Question, SizeAdvice};
use flowcast::units::{Bytes, Time, TimePerByte};
use serde::Serialize;

use super::settings::{self, Settings};
use crate::network_args;
use crate::terminal::output::{Format, Micros, Shown, println_out, show};
use crate::terminal::tables::table;

/// Say from which size on a second network helps, what each size should use, and what to set in MPI libraries
///
/// Compares N messages sent at once over all networks (earliest delivery) with the same over the best one alone. The
/// interval of the gain comes from the intervals that `flowcast fit` wrote into the network files.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  flowcast rails advise --network a.toml --network b.toml --interface eth1 --interface eth2"
)]
pub(crate) struct Advise {
    /// A network: built-in (see `flowcast networks`) or file (repeatable)
    #[arg(
        short,
        long = "network",
        value_name = "NET",
        required = true,
        help_heading = "Network"
    )]
    networks: Vec<String>,
    /// The interfaces of the networks, in their order [default: the networks' names]
    #[arg(long = "interface", value_name = "NAME", help_heading = "Network")]
    interfaces: Vec<String>,
    /// Messages that are sent at once
    #[arg(long, default_value_t = 16, value_name = "N")]
    messages: usize,
    #[command(flatten)]
    format: Format,
}

impl Advise {
    /// Prints the advice.
    pub(crate) fn run(self) -> Result<()> {
        ensure!(self.messages > 0, "--messages: found 0, expected 1 or more");
        let load = |name: &String| Ok(network_args::load(name, &[])?.announced());
        let networks: Vec<Network> = self.networks.iter().map(load).collect::<Result<_>>()?;
        let interfaces = self.interfaces(&networks)?;
        let rails: Vec<KnownRail> = networks.iter().map(known_rail).collect();
        let advice = Question::about(self.messages).answer(&rails)?;
        let costs: Vec<LogGp> = rails.iter().map(|rail| rail.cost).collect();
        let settings = settings::nearest(&interfaces, &costs, &advice);
        let advised = Advised {
            rails: interfaces,
            messages: self.messages,
            together_from: advice.together_from.map(|size| size.0),
            split_from: advice.split_from.map(|size| size.0),
            sizes: advice.sizes.iter().map(Size::of).collect(),
            lines: settings
                .iter()
                .map(|set| (set.of, set.lines.clone()))
                .collect(),
            settings,
        };
        show(&advised, self.format)
    }

    fn interfaces(&self, networks: &[Network]) -> Result<Vec<String>> {
        let (found, expected) = (self.interfaces.len(), networks.len());
        ensure!(
            found == 0 || found == expected,
            "--interface: found {found}, expected one for each of the {expected} networks"
        );
        Ok(if found == 0 {
            networks
                .iter()
                .map(|network| network.name.clone())
                .collect()
        } else {
            self.interfaces.clone()
        })
    }
}

/// The advice, by rails.
#[derive(Serialize)]
struct Advised {
    rails: Vec<String>,
    messages: usize,
    #[serde(rename = "together_from_B")]
    together_from: Option<u64>,
    #[serde(rename = "split_from_B")]
    split_from: Option<u64>,
    sizes: Vec<Size>,
    #[serde(rename = "settings")]
    lines: BTreeMap<&'static str, Vec<String>>,
    #[serde(skip)]
    settings: [Settings; 3],
}

/// What messages of one size gain.
#[derive(Serialize)]
struct Size {
    #[serde(rename = "size_B")]
    size: u64,
    best_alone: u8,
    alone_us: Micros,
    together_us: Micros,
    messages_on: Vec<usize>,
    gain: f64,
    gain_interval: (f64, f64),
}

impl Size {
    fn of(at: &SizeAdvice) -> Size {
        Size {
            size: at.size.0,
            best_alone: at.alone.0,
            alone_us: Micros(at.alone_takes),
            together_us: Micros(at.together_takes),
            messages_on: at.taken.clone(),
            gain: at.gain,
            gain_interval: at.interval,
        }
    }
}

impl Shown for Advised {
    const SCHEMA: &'static str = "flowcast/rails-advice/1";

    fn print(&self) {
        self.print_words();
        self.print_table();
        for set in &self.settings {
            println_out!("\n{}\n{}", set.of, set.lines.join("\n"));
            println_out!("  {}", set.remark);
        }
    }
}

impl Advised {
    fn name(&self, rail: u8) -> &str {
        &self.rails[usize::from(rail)]
    }

    fn print_words(&self) {
        let count = self.messages;
        match self.together_from.map(Bytes) {
            Some(size) => println_out!(
                "{count} messages at once gain from more than one rail from {size} on."
            ),
            None => println_out!(
                "{count} messages at once gain nothing certain from more than one rail."
            ),
        }
        match self.split_from {
            Some(size) => {
                println_out!(
                    "A single message is delivered earlier in pieces over several rails from {size} B on."
                )
            }
            None => println_out!("A single message is never delivered earlier in pieces."),
        }
        if let Some(small) = self.sizes.first() {
            println_out!(
                "The best rail alone for the smallest messages is {}.\n",
                self.name(small.best_alone)
            );
        }
    }

    fn print_table(&self) {
        let mut header = [">size", "best alone", ">alone", ">together"]
            .map(str::to_owned)
            .to_vec();
        header.extend(self.rails.iter().map(|name| format!(">on {name}")));
        header.extend([">gain", ">interval", "use"].map(str::to_owned));
        let mut table = table(&header);
        for at in &self.sizes {
            let alone = self.name(at.best_alone).to_owned();
            let mut row = vec![
                Bytes(at.size).to_string(),
                alone.clone(),
                at.alone_us.to_string(),
                at.together_us.to_string(),
            ];
            row.extend(at.messages_on.iter().map(ToString::to_string));
            row.extend([
                format!("{:.3}", at.gain),
                format!("{:.3} to {:.3}", at.gain_interval.0, at.gain_interval.1),
            ]);
            let gains = self.together_from.is_some_and(|from| at.size >= from);
            row.push(if gains { "all".to_owned() } else { alone });
            table.add_row(row);
        }
        println_out!("{table}");
    }
}

/// The parameters with their standard errors.
fn known_rail(network: &Network) -> KnownRail {
    let nanos = |field: &str| {
        network
            .intervals
            .get(field)
            .map_or(0.0, Interval::standard_error)
    };
    let [latency, overhead, gap] =
        ["nic.latency", "nic.overhead", "nic.gap"].map(|field| Time::from_nanos(nanos(field)));
    let gap_per_byte = TimePerByte::from_nanos(nanos("nic.gap_per_byte"));
    KnownRail {
        cost: LogGp::from(&network.nic),
        error: LogGp {
            latency,
            overhead,
            gap,
            gap_per_byte,
        },
    }
}
