//! `flowcast lab cable-check`: measures the precision of a link emulator. `flowcast lab serve-cables`: process of a lab that
//! carries the frames.

use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use flowcast::{
    table::{Document, Record, Table, Value, json, rows, shown},
    units::{Rate, Time},
};
use flowcast_measure::lab::{
    CableCheck, CableChecker, Lab, LabSpec, Lateness, TOLERANCE, host, serve_cables,
};

use super::{explained, load};
use flowcast_terminal::{exit::Finding, files::read_text, output::Format, println_out, provenance};

/// Check the lateness, rate and losses of a link emulator
///
/// Builds the lab, sends numbered frames in each direction, and compares their times of arrival with the expected ones. The
/// median lateness is constant and may be subtracted from times measured over the link.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  flowcast lab cable-check\n  \
                        flowcast lab cable-check --set cable.delay=200us --set cable.loss=0.01 --count 5000")]
pub(crate) struct CableCheckCommand {
    /// Built-in profile (see `flowcast lab profiles`) or lab file (TOML)
    #[arg(value_name = "PROFILE|FILE", default_value = "cable")]
    lab: String,
    /// Replace a field of the lab, such as cable.delay=200us (repeatable)
    #[arg(long = "set", value_name = "KEY=VALUE")]
    overrides: Vec<String>,
    /// Number of single frames in each direction; 20 to 100000
    #[arg(long, value_name = "COUNT", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(20..=100_000))]
    count: u32,
    #[command(flatten)]
    format: Format,
}

impl CableCheckCommand {
    /// Builds the lab, checks its link emulators and prints the results.
    pub(crate) fn run(self) -> Result<()> {
        let spec = load(&self.lab, &self.overrides)?;
        ensure!(
            spec.cable.is_some(),
            "{}: found no section [cable], expected a lab with a cable",
            self.lab
        );
        let lab = Lab::up(&spec).map_err(explained)?;
        let checks = CableChecker::new(&lab)
            .check(self.count)
            .map_err(explained)?;
        self.format.print(
            &Document::new("cable-check")
                .field("spec", json(&spec))
                .table("directions", directions(&checks))
                .field("provenance", provenance::of_this_run()),
        )?;
        match checks.iter().find(|check| !check.passes(TOLERANCE)) {
            Some(check) => bail!(Finding(complaint(check))),
            None => Ok(()),
        }
    }
}

/// Carry the frames of a lab's link emulators
#[derive(Debug, Args)]
pub(crate) struct ServeCables {
    /// Lab file with link emulators
    file: PathBuf,
}

impl ServeCables {
    /// Carries frames until the process is killed.
    pub(crate) fn run(self) -> Result<()> {
        let spec = LabSpec::from_toml(&read_text(&self.file)?, &[])
            .context("the lab file of the cable")?;
        match serve_cables(&spec, || println_out!("ready")).map_err(explained)? {}
    }
}

fn complaint(check: &CableCheck) -> String {
    format!(
        "the link emulator of rail {} from node {}: rate error {:+.2} %, {} of {} frames lost or delivered against the seed; expected at most {} % and 0.5 %",
        check.rail,
        check.from,
        check.rate_error() * 100.0,
        check.unexplained,
        check.sent,
        TOLERANCE * 100.0
    )
}

/// Measurements of the link emulator, by rail and direction.
fn directions(checks: &[CableCheck]) -> Table {
    rows(checks)
        .column("rail", "rail", |check| check.rail)
        .column("from", "from", |check| shown(check.from, host(check.from)))
        .field("lateness_us", |check| {
            check.lateness.as_ref().map(quantiles)
        })
        .cell("late (median)", |check| late(check, |late| late.median))
        .cell("5 %", |check| late(check, |late| late.p5))
        .cell("95 %", |check| late(check, |late| late.p95))
        .column("rate_Bps", "Mbit/s", |check| megabits(check.rate))
        .column("nominal_Bps", "nominal", |check| megabits(check.nominal))
        .column("rate_error", "rate error", |check| {
            let error = check.rate_error();
            shown(error, format!("{:+.3} %", error * 100.0))
        })
        .column("frames", "frames", |check| check.sent)
        .column("lost", "lost", |check| check.lost)
        .field("asked_loss", |check| check.specified_loss)
        .column("lost_by_seed", "by seed", |check| check.expected_lost)
        .column("astray", "astray", |check| check.unexplained)
        .into()
}

fn late(check: &CableCheck, pick: fn(&Lateness) -> Time) -> Value {
    let late = check.lateness.as_ref();
    late.map_or("-".into(), |late| {
        let micros = pick(late).as_micros();
        shown(micros, format!("{micros:.1} us"))
    })
}

fn megabits(rate: Rate) -> Value {
    shown(rate, format!("{:.3}", rate.as_bytes_per_second() * 8e-6))
}

/// Quantiles of the lateness of frames, in microseconds.
pub(super) fn quantiles(late: &Lateness) -> Record {
    Record::new()
        .field("median", late.median.as_micros())
        .field("p5", late.p5.as_micros())
        .field("p95", late.p95.as_micros())
}
