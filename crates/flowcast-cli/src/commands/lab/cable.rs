//! `flowcast lab cable-check`: how precise a link emulator is. `flowcast lab serve-cables`: the process that a
//! testbed starts to carry the frames.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::Args;
use flowcast::units::Node;
use flowcast_measure::lab::{
    CableCheck, CableChecker, Lab, LabSpec, Lateness, TOLERANCE, serve_cables,
};
use serde::Serialize;

use super::{explained, load};
use crate::terminal::exit::Finding;
use crate::terminal::files::read_text;
use crate::terminal::output::{Format, Micros, Shown, println_out, show};
use crate::terminal::provenance;
use crate::terminal::tables::{cells, table};

/// Check the precision of a link emulator: its lateness, its rate, its losses
///
/// Builds the lab, sends numbered frames through each direction, and compares when each arrives with when it should.
/// The median lateness is a constant that may be subtracted from what is measured over the link.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  flowcast lab cable-check\n  \
                        flowcast lab cable-check --set cable.delay=200us --set cable.loss=0.01 --frames 5000")]
pub(crate) struct CableCheckCommand {
    /// Built-in profile (see `flowcast lab profiles`) or lab file (TOML)
    #[arg(value_name = "PROFILE|FILE", default_value = "cable")]
    lab: String,
    /// Replace a field of the lab, such as cable.delay=200us (repeatable)
    #[arg(long = "set", value_name = "KEY=VALUE")]
    overrides: Vec<String>,
    /// Frames sent on their own through each direction
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(20..=100_000))]
    frames: u32,
    #[command(flatten)]
    format: Format,
}

impl CableCheckCommand {
    /// Builds the lab, checks it and says what was seen.
    pub(crate) fn run(self) -> Result<()> {
        let spec = load(&self.lab, &self.overrides)?;
        if spec.cable.is_none() {
            bail!(
                "{}: found no section [cable], expected a lab with a cable",
                self.lab
            );
        }
        let lab = Lab::up(&spec).map_err(explained)?;
        let checks = CableChecker::new(&lab)
            .check(self.frames)
            .map_err(explained)?;
        let directions = checks.iter().map(Direction::of).collect();
        show(
            &Checked {
                spec,
                directions,
                provenance: provenance::of_this_run(),
            },
            self.format,
        )?;
        match checks.iter().find(|check| !check.passes(TOLERANCE)) {
            Some(check) => Err(Finding(complaint(check)).into()),
            None => Ok(()),
        }
    }
}

/// Carry the frames of a testbed's link emulators
#[derive(Debug, Args)]
pub(crate) struct ServeCables {
    /// The lab file
    file: PathBuf,
}

impl ServeCables {
    /// Carries frames until it is killed.
    pub(crate) fn run(self) -> Result<()> {
        let spec = LabSpec::from_toml(&read_text(&self.file)?, &[])
            .context("the lab file of the cable")?;
        match serve_cables(&spec, || println_out!("ready")).map_err(explained)? {}
    }
}

fn complaint(check: &CableCheck) -> String {
    format!(
        "the link emulator of rail {} from node {}: rate off by {:+.2} %, {} of {} frames astray; expected at most {} % and 0.5 %",
        check.rail,
        check.from,
        check.rate_error() * 100.0,
        check.unexplained,
        check.sent,
        TOLERANCE * 100.0
    )
}

/// What the link emulator did, by rail and direction.
#[derive(Serialize)]
struct Checked {
    spec: LabSpec,
    directions: Vec<Direction>,
    provenance: BTreeMap<String, String>,
}

/// Frames in one direction.
#[derive(Serialize)]
struct Direction {
    rail: usize,
    from: u32,
    lateness_us: Option<LatenessQuantiles>,
    #[serde(rename = "rate_Bps")]
    rate: f64,
    #[serde(rename = "nominal_Bps")]
    nominal: f64,
    rate_error: f64,
    frames: u32,
    lost: u32,
    asked_loss: f64,
    lost_by_seed: u32,
    astray: u32,
}

impl Direction {
    fn of(check: &CableCheck) -> Direction {
        Direction {
            rail: check.rail,
            from: check.from.0,
            lateness_us: check.lateness.as_ref().map(LatenessQuantiles::of),
            rate: check.rate.as_bytes_per_second(),
            nominal: check.nominal.as_bytes_per_second(),
            rate_error: check.rate_error(),
            frames: check.sent,
            lost: check.lost,
            asked_loss: check.asked_loss,
            lost_by_seed: check.expected_lost,
            astray: check.unexplained,
        }
    }
}

/// How late frames were delivered.
#[derive(Serialize)]
pub(super) struct LatenessQuantiles {
    median: Micros,
    p5: Micros,
    p95: Micros,
}

impl LatenessQuantiles {
    /// Of what was measured.
    pub(super) fn of(lateness: &Lateness) -> LatenessQuantiles {
        let Lateness { median, p5, p95 } = *lateness;
        LatenessQuantiles {
            median: Micros(median),
            p5: Micros(p5),
            p95: Micros(p95),
        }
    }
}

impl Shown for Checked {
    const SCHEMA: &'static str = "flowcast/cable-check/1";

    fn print(&self) {
        let mut table = table(&[
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
        ]);
        for direction in &self.directions {
            let late = |pick: fn(&LatenessQuantiles) -> Micros| {
                let late = direction.lateness_us.as_ref();
                late.map_or("-".into(), |late| {
                    format!("{:.1} us", pick(late).0.as_micros())
                })
            };
            let megabits = |rate: f64| format!("{:.3}", rate * 8e-6);
            table.add_row(cells![
                direction.rail,
                flowcast_measure::lab::host(Node(direction.from)),
                late(|late| late.median),
                late(|late| late.p5),
                late(|late| late.p95),
                megabits(direction.rate),
                megabits(direction.nominal),
                format!("{:+.3} %", direction.rate_error * 100.0),
                direction.frames,
                direction.lost,
                direction.lost_by_seed,
                direction.astray
            ]);
        }
        println_out!("{table}");
    }
}
