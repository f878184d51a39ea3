//! The arguments for rails and messages that several commands share.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;
use flowcast::model::loggp::LogGp;
use flowcast::scheduler::schedule::{Message, Schedule};
use flowcast::scheduler::turns::Shares;
use flowcast::scheduler::{Rail, messages};
use flowcast::units::Time;
use serde::Serialize;

use crate::terminal::files::read_text;
use crate::terminal::output::Micros;
use crate::terminal::tables::{Most, USUAL_ROWS};

/// The rails.
#[derive(Debug, Args)]
pub(super) struct RailArgs {
    /// A network: name, then g, G per byte, o and L in microseconds (repeatable)
    #[arg(long = "rail", value_name = "NAME=g,G,o,Lus", required = true, value_parser = Rail::parse, help_heading = "Network")]
    pub rails: Vec<Rail>,
}

impl RailArgs {
    /// The parameters of the rails.
    pub(super) fn costs(&self) -> Vec<LogGp> {
        self.rails.iter().map(|rail| rail.cost).collect()
    }
}

/// The messages.
#[derive(Debug, Args)]
pub(super) struct MessageArgs {
    /// Messages in order of arrival: a CSV file with the columns arrival_us,size_B
    #[arg(long, value_name = "FILE.csv")]
    messages: PathBuf,
    /// Messages of which the table has a row, or all
    #[arg(long, value_name = "COUNT", default_value = USUAL_ROWS, help_heading = "Output")]
    pub show_messages: Most,
}

/// The option that shows all messages.
pub(super) const SHOW_MESSAGES: &str = "--show-messages";

impl MessageArgs {
    /// Reads the file.
    pub(super) fn read(&self) -> Result<Vec<Message>> {
        let text = read_text(&self.messages)?;
        messages::read(&text).with_context(|| self.messages.display().to_string())
    }
}

/// Shares as given, or in proportion to the bandwidths.
pub(super) fn shares(given: &[u32], rails: &[LogGp]) -> Result<Shares> {
    Ok(if given.is_empty() {
        Shares::by_bandwidth(rails)?
    } else {
        Shares::new(given)?
    })
}

/// Times for a result.
pub(super) fn micros(times: &[Time]) -> Vec<Micros> {
    times.iter().map(|time| Micros(*time)).collect()
}

/// The rails of a schedule as numbers.
pub(super) fn choices(schedule: &Schedule) -> Vec<u8> {
    schedule.choices.iter().map(|rail| rail.0).collect()
}

/// A rail's LogGP parameters, as results have them.
#[derive(Serialize)]
pub(super) struct RailParameters {
    name: String,
    g_us: Micros,
    #[serde(rename = "G_us_per_B")]
    gap_per_byte: f64,
    o_us: Micros,
    #[serde(rename = "L_us")]
    latency: Micros,
}

impl RailParameters {
    /// Of a rail with this name.
    pub(super) fn new(name: &str, cost: &LogGp) -> RailParameters {
        RailParameters {
            name: name.to_owned(),
            g_us: Micros(cost.gap),
            gap_per_byte: cost.gap_per_byte.as_micros(),
            o_us: Micros(cost.overhead),
            latency: Micros(cost.latency),
        }
    }
}
