//! `flowcast lab cable-check`: what a cable in user space really does. `flowcast lab serve-cables`: the process that a
//! lab starts to carry the frames.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::Args;
use flowcast_lab::{CableCheck, CableChecker, Lab, LabSpec, Lateness, TOLERANCE, serve_cables};
use serde_json::{Value, json};

use super::lab::{explained, load};
use crate::exit::Finding;
use crate::files::read_text;
use crate::output::println_out;
use crate::tables::table;

/// Check the precision of a lab's cable: how late it delivers, its rate, its losses
///
/// Builds the lab, sends numbered frames through each direction, and compares when each arrives with when it should.
/// The median lateness is a constant that may be subtracted from what is measured over the cable.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  flowcast lab cable-check\n  \
                        flowcast lab cable-check --set cable.delay=200us --set cable.loss=0.01 --frames 5000")]
pub struct CableCheckCommand {
    /// Built-in profile (see `flowcast lab profiles`) or lab file (TOML)
    #[arg(value_name = "PROFILE|FILE", default_value = "cable")]
    lab: String,
    /// Replace a field of the lab, such as cable.delay=200us (repeatable)
    #[arg(long = "set", value_name = "KEY=VALUE")]
    overrides: Vec<String>,
    /// Frames sent on their own through each direction
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(20..=100_000))]
    frames: u32,
    /// Machine-readable output
    #[arg(long)]
    json: bool,
}

impl CableCheckCommand {
    /// Builds the lab, checks it and says what was seen.
    pub fn run(self) -> Result<()> {
        let spec = load(&self.lab, &self.overrides)?;
        if spec.cable.is_none() {
            bail!("{}: found no section [cable], expected a lab with a cable", self.lab);
        }
        let lab = Lab::up(&spec).map_err(explained)?;
        let checks = CableChecker::new(&lab).check(self.frames).map_err(explained)?;
        if self.json {
            println_out!("{}", described(&spec, &checks)?);
        } else {
            print_table(&checks);
        }
        match checks.iter().find(|check| !check.passes(TOLERANCE)) {
            Some(check) => Err(Finding(complaint(check)).into()),
            None => Ok(()),
        }
    }
}

/// Carry the frames of a lab's cables
#[derive(Debug, Args)]
pub struct ServeCables {
    /// The lab file
    file: PathBuf,
}

impl ServeCables {
    /// Carries frames until it is killed.
    pub fn run(self) -> Result<()> {
        let spec = LabSpec::from_toml(&read_text(&self.file)?, &[]).context("the lab file of the cable")?;
        match serve_cables(&spec, || println_out!("ready")).map_err(explained)? {}
    }
}

fn complaint(check: &CableCheck) -> String {
    format!(
        "the cable of rail {} from node {}: rate off by {:+.2} %, {} of {} frames astray; expected at most {} % and 0.5 %",
        check.rail,
        check.from,
        check.rate_error() * 100.0,
        check.unexplained,
        check.sent,
        TOLERANCE * 100.0
    )
}

fn print_table(checks: &[CableCheck]) {
    let columns = [
        ">rail",
        "from",
        ">late, median",
        ">5 %",
        ">95 %",
        ">Mbit/s",
        ">nominal",
        ">off by",
        ">frames",
        ">lost",
        ">of the seed",
        ">astray",
    ];
    let mut table = table(&columns);
    for check in checks {
        let late = |pick: fn(&Lateness) -> f64| {
            check.lateness.as_ref().map_or("-".into(), |late| format!("{:.1} us", pick(late)))
        };
        let megabits = |rate: flowcast::units::Rate| format!("{:.3}", rate.as_bytes_per_second() * 8e-6);
        table.add_row([
            check.rail.to_string(),
            flowcast_lab::host(check.from),
            late(|late| late.median.as_micros()),
            late(|late| late.p5.as_micros()),
            late(|late| late.p95.as_micros()),
            megabits(check.rate),
            megabits(check.nominal),
            format!("{:+.3} %", check.rate_error() * 100.0),
            check.sent.to_string(),
            check.lost.to_string(),
            check.expected_lost.to_string(),
            check.unexplained.to_string(),
        ]);
    }
    println_out!("{table}");
}

fn described(spec: &LabSpec, checks: &[CableCheck]) -> Result<Value> {
    let check = |check: &CableCheck| {
        json!({
            "rail": check.rail, "from": check.from.0, "lateness_us": check.lateness.as_ref().map(lateness),
            "rate_Bps": check.rate.as_bytes_per_second(), "nominal_Bps": check.nominal.as_bytes_per_second(),
            "rate_error": check.rate_error(), "frames": check.sent, "lost": check.lost, "asked_loss": check.asked_loss,
            "lost_by_seed": check.expected_lost, "astray": check.unexplained,
        })
    };
    Ok(json!({
        "schema": "flowcast/cable-check/1", "spec": spec, "directions": checks.iter().map(check).collect::<Vec<_>>(),
        "provenance": crate::provenance::of_this_run(),
    }))
}

/// In microseconds.
pub fn lateness(lateness: &Lateness) -> Value {
    json!({
        "median": lateness.median.as_micros(), "p5": lateness.p5.as_micros(), "p95": lateness.p95.as_micros(),
    })
}
