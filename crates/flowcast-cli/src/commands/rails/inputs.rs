//! Arguments for rails and messages that several commands share.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use flowcast::{
    answers::ROWS,
    model::loggp::LogGp,
    scheduler::{
        Rail, messages,
        schedule::{RailMessage, RailSchedule},
        turns::Shares,
    },
    table::{Document, Rows, Value, rows},
};

use flowcast_terminal::{files::read_parsed, network_args::rail, tables::RowLimit};

/// Rails of a schedule.
#[derive(Debug, Args)]
pub(super) struct RailArgs {
    /// Network: a name, a file, or NAME=g,G,o,Lus in microseconds (G per byte), such as eth0=0.9,0.00849,6.1,65.4us
    /// (repeatable)
    #[arg(long = "rail", value_name = "RAIL", required = true, value_parser = rail)]
    pub rails: Vec<Rail>,
}

impl RailArgs {
    /// Parameters of the rails.
    pub(super) fn costs(&self) -> Vec<LogGp> {
        self.rails.iter().map(|rail| rail.cost).collect()
    }
}

/// Messages of a schedule.
#[derive(Debug, Args)]
pub(super) struct MessageArgs {
    /// CSV file of messages in order of arrival, with the columns arrival_us,size_B
    #[arg(long, value_name = "FILE.csv")]
    messages: PathBuf,
    #[command(flatten)]
    pub rows: RowLimit,
}

impl MessageArgs {
    /// Reads the file of messages.
    pub(super) fn read(&self) -> Result<Vec<RailMessage>> {
        read_parsed(&self.messages, messages::read)
    }

    /// Table with the rail and the delivery time of each message.
    pub(super) fn table<'a>(
        &self,
        messages: &'a [RailMessage],
        rails: &'a [Rail],
        schedule: &'a RailSchedule,
    ) -> Rows<usize> {
        rows(0..messages.len())
            .cell("message", |index| index)
            .cell("arrival", |index| messages[index].arrival)
            .cell("size", |index| messages[index].size)
            .cell("rail", |index| &rails[schedule.choices[index].index()].name)
            .cell("delivered", |index| schedule.delivered[index])
            .most(self.rows.rows(), ROWS)
    }
}

/// Given shares, or shares in proportion to the bandwidths.
pub(super) fn shares(given: &[u32], rails: &[LogGp]) -> Result<Shares> {
    Ok(if given.is_empty() {
        Shares::by_bandwidth(rails)?
    } else {
        Shares::new(given)?
    })
}

/// Document of a schedule.
pub(super) fn scheduled(schema: &'static str, schedule: &RailSchedule) -> Document {
    Document::new(schema)
        .field(
            "choices",
            schedule
                .choices
                .iter()
                .map(|rail| rail.0)
                .collect::<Value>(),
        )
        .field("delivered_us", &schedule.delivered)
        .field("makespan_us", schedule.makespan)
        .field("mean_us", schedule.mean)
}

/// LogGP parameters of rails, in the format of results.
pub(super) fn rail_parameters<'a>(rails: impl Iterator<Item = (&'a str, &'a LogGp)>) -> Value {
    rows(rails)
        .field("name", |(name, _)| name)
        .field("g_us", |(_, cost)| cost.gap)
        .field("G_us_per_B", |(_, cost)| cost.gap_per_byte.as_micros())
        .field("o_us", |(_, cost)| cost.overhead)
        .field("L_us", |(_, cost)| cost.latency)
        .into()
}
