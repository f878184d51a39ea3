//! `flowcast rails advise`: whether a second network helps, for which messages, and what to set elsewhere.

use anyhow::{Result, ensure};
use clap::Args;
use flowcast::model::loggp::LogGp;
use flowcast::model::network::{Interval, Network};
use flowcast::scheduler::advise::{Advice, KnownRail, Question, SizeAdvice};
use flowcast::units::{Bytes, Rounded, Time, TimePerByte};
use serde_json::{Value, json};

use super::live::loggp;
use super::settings;
use crate::network_args;
use crate::output::println_out;
use crate::tables::table;

/// Say from which size on a second network helps, what each size should use, and what to set in MPI libraries
///
/// Compares N messages sent at once over all networks (earliest delivery) with the same over the best one alone. The
/// interval of the gain comes from the intervals that `flowcast fit` wrote into the network files.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  flowcast rails advise --network a.toml --network b.toml --interface eth1 --interface eth2"
)]
pub struct Advise {
    /// A network: built-in (see `flowcast networks`) or file (repeatable)
    #[arg(short, long = "network", value_name = "NET", required = true)]
    networks: Vec<String>,
    /// The interfaces of the networks, in their order [default: the networks' names]
    #[arg(long = "interface", value_name = "NAME")]
    interfaces: Vec<String>,
    /// Messages that are sent at once
    #[arg(long, default_value_t = 16, value_name = "N")]
    messages: usize,
    /// Machine-readable output
    #[arg(long)]
    json: bool,
}

impl Advise {
    /// Prints the advice.
    pub fn run(self) -> Result<()> {
        ensure!(self.messages > 0, "--messages: found 0, expected 1 or more");
        let load = |name: &String| Ok(network_args::load(name, &[])?.announced());
        let networks: Vec<Network> = self.networks.iter().map(load).collect::<Result<_>>()?;
        let interfaces = self.interfaces(&networks)?;
        let rails: Vec<KnownRail> = networks.iter().map(known_rail).collect::<Result<_>>()?;
        let advice = Question::about(self.messages).answer(&rails)?;
        let costs: Vec<LogGp> = rails.iter().map(|rail| rail.cost).collect();
        let settings = settings::nearest(&interfaces, &costs, &advice);
        if self.json {
            let document = json!({
                "schema": "flowcast/rails-advice/1",
                "rails": interfaces,
                "messages": self.messages,
                "together_from_B": advice.together_from.map(|size| size.0),
                "split_from_B": advice.split_from.map(|size| size.0),
                "sizes": advice.sizes.iter().map(size_json).collect::<Vec<_>>(),
                "settings": settings.iter().map(|set| (set.of.to_owned(), json!(set.lines))).collect::<serde_json::Map<_, _>>(),
            });
            println_out!("{document}");
            return Ok(());
        }
        self.print_words(&interfaces, &advice);
        print_table(&interfaces, &advice);
        for set in settings {
            println_out!("\n{}\n{}", set.of, set.lines.join("\n"));
            println_out!("  {}", set.remark);
        }
        Ok(())
    }

    fn interfaces(&self, networks: &[Network]) -> Result<Vec<String>> {
        let (found, expected) = (self.interfaces.len(), networks.len());
        ensure!(
            found == 0 || found == expected,
            "--interface: found {found}, expected one for each of the {expected} networks"
        );
        Ok(if found == 0 {
            networks.iter().map(|network| network.name.clone()).collect()
        } else {
            self.interfaces.clone()
        })
    }

    fn print_words(&self, names: &[String], advice: &Advice) {
        let count = self.messages;
        match advice.together_from {
            Some(size) => println_out!("{count} messages at once gain from more than one rail from {size} on."),
            None => println_out!("{count} messages at once gain nothing certain from more than one rail."),
        }
        match advice.split_from {
            Some(size) => {
                println_out!("A single message is delivered earlier in pieces over several rails from {} B on.", size.0)
            }
            None => println_out!("A single message is never delivered earlier in pieces."),
        }
        if let Some(small) = advice.sizes.first() {
            println_out!("The best rail alone for the smallest messages is {}.\n", names[small.alone.index()]);
        }
    }
}

fn print_table(names: &[String], advice: &Advice) {
    let columns: Vec<String> = names.iter().map(|name| format!(">on {name}")).collect();
    let mut header = vec![">size", "best alone", ">alone", ">together"];
    header.extend(columns.iter().map(String::as_str));
    header.extend([">gain", ">interval", "use"]);
    let mut table = table(&header);
    for at in &advice.sizes {
        let mut row = vec![
            at.size.to_string(),
            names[at.alone.index()].clone(),
            Rounded(at.alone_takes).to_string(),
            Rounded(at.together_takes).to_string(),
        ];
        row.extend(at.taken.iter().map(ToString::to_string));
        row.extend([format!("{:.3}", at.gain), format!("{:.3} to {:.3}", at.interval.0, at.interval.1)]);
        row.push(uses(at, advice).map_or_else(|| names[at.alone.index()].clone(), |()| "all".to_owned()));
        table.add_row(row);
    }
    println_out!("{table}");
}

/// Whether this size should use all rails.
fn uses(at: &SizeAdvice, advice: &Advice) -> Option<()> {
    advice.together_from.filter(|from| at.size >= *from).map(drop)
}

fn size_json(at: &SizeAdvice) -> Value {
    json!({
        "size_B": at.size.0,
        "best_alone": at.alone.0,
        "alone_us": at.alone_takes.as_micros(),
        "together_us": at.together_takes.as_micros(),
        "messages_on": at.taken,
        "gain": at.gain,
        "gain_interval": [at.interval.0, at.interval.1],
    })
}

/// The parameters with their standard errors, a quarter of the width of a 95 % interval.
fn known_rail(network: &Network) -> Result<KnownRail> {
    let time = |field: &str| -> Result<Time> {
        let Some(Interval { low, high, level }) = network.intervals.get(field) else { return Ok(Time::ZERO) };
        Ok((Time::parse(high)? - Time::parse(low)?) * (1.0 / widths(*level)))
    };
    let per_byte = match network.intervals.get("nic.gap_per_byte") {
        Some(Interval { low, high, level }) => {
            (TimePerByte::parse(high)?.as_nanos() - TimePerByte::parse(low)?.as_nanos()) / widths(*level)
        }
        None => 0.0,
    };
    let error = LogGp {
        latency: time("nic.latency")?,
        overhead: time("nic.overhead")?,
        gap: time("nic.gap")?,
        gap_per_byte: TimePerByte::from_nanos(per_byte),
    };
    Ok(KnownRail { cost: loggp(network), error })
}

/// How many standard errors wide the central interval of a normal distribution is.
fn widths(level: f64) -> f64 {
    // Twice the quantiles at 90, 95 and 99 %; intervals of other levels are not written by `flowcast fit`'s default.
    match level {
        level if level <= 0.9 => 3.29,
        level if level <= 0.95 => 3.92,
        _ => 5.15,
    }
}

/// For the settings: a size that divides small from large messages.
pub fn threshold(advice: &Advice) -> Option<Bytes> {
    advice.split_from.or(advice.together_from)
}
