//! `flowcast doctor`: checks of this machine for problems of a measurement or a recording, with advice.

mod clock;
mod lab;
mod machine;
mod network;
mod program;

use std::ffi::OsString;

use anyhow::{Result, bail};
use clap::Args;
use flowcast::table::{Document, rows, shown};

use std::{collections::BTreeMap, time::Duration};

use flowcast_terminal::{exit::Finding, output::Format, provenance, say, token::TokenArgs};
use machine::Machine;

/// Check this machine before a measurement or a recording
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowcast doctor
  flowcast doctor -- mpirun -np 8 ./cg.S.x
  flowcast doctor --json
  node1$ flowcast measure p2p --listen 0.0.0.0:7070    # prints a token
  node2$ flowcast doctor --connect node1:7070 --token TOKEN")]
pub(crate) struct Doctor {
    /// Address at which `flowcast measure p2p --listen` answers; its clock is compared with this machine's
    #[arg(long, value_name = "ADDR")]
    connect: Option<String>,
    #[command(flatten)]
    token: TokenArgs,
    #[command(flatten)]
    format: Format,
    /// Command to be measured or recorded; its launcher and program are inspected, not run
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// Result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// No problem. The check has no advice.
    Good,
    /// Results would be wrong, or nothing would work.
    Bad,
    /// The state cannot be determined here.
    Unknown,
}

/// A check and its result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Check {
    /// Subject of the check.
    pub name: &'static str,
    /// Result, which shows if measurements may be affected.
    pub verdict: Verdict,
    /// Finding, as text with units.
    pub found: String,
    /// Advice, if something should be done.
    pub advice: Option<String>,
}

impl Check {
    /// A check without a problem.
    pub(super) fn good(name: &'static str, found: impl Into<String>) -> Check {
        Check {
            name,
            verdict: Verdict::Good,
            found: found.into(),
            advice: None,
        }
    }

    /// A check of something that cannot be determined.
    pub(super) fn unknown(name: &'static str, found: impl Into<String>) -> Check {
        Check {
            verdict: Verdict::Unknown,
            ..Check::good(name, found)
        }
    }

    /// A check with a problem, and advice.
    pub(super) fn bad(
        name: &'static str,
        found: impl Into<String>,
        advice: impl Into<String>,
    ) -> Check {
        Check {
            verdict: Verdict::Bad,
            advice: Some(advice.into()),
            ..Check::good(name, found)
        }
    }
}

impl Doctor {
    /// Runs the checks and prints the results. Fails with a [`Finding`] if a check found a problem.
    pub(crate) fn run(self) -> Result<()> {
        let mut machine = Machine::this();
        machine
            .variables
            .splice(0..0, network::settings_of(&self.command));
        let mut checks = program::checks(&machine, &self.command);
        checks.push(network::interfaces(&machine));
        checks.extend(machine::checks(
            &machine,
            program::extent(&machine, &self.command),
        ));
        checks.push(clock::resolution());
        checks.push(lab::check());
        if let Some(peer) = &self.connect {
            checks.push(clock::of_peer(peer, &self.token)?);
        }
        let table = rows(&checks)
            .column("name", "check", |check| check.name)
            .column("verdict", "", |check| match check.verdict {
                Verdict::Good => shown("good", "good"),
                Verdict::Bad => shown("bad", "BAD"),
                Verdict::Unknown => shown("unknown", "?"),
            })
            .column("found", "found", |check| &check.found)
            .field("advice", |check| check.advice.as_ref());
        let advice = checks.iter().filter_map(|check| {
            let advice = check.advice.as_ref()?;
            Some(format!("\n{}: {advice}", check.name))
        });
        let document = Document::new("doctor").table("checks", table);
        self.format.print(&document.lines(advice))?;
        match checks
            .iter()
            .filter(|check: &&Check| check.verdict == Verdict::Bad)
            .count()
        {
            0 => Ok(()),
            1 => bail!(Finding("1 problem".to_owned())),
            problems => bail!(Finding(format!("{problems} problems"))),
        }
    }
}

/// Provenance of a measurement that is about to start, with disturbances on this machine. Each problem is printed to
/// standard error.
pub(crate) fn provenance_of_measurement() -> BTreeMap<String, String> {
    let mut all = provenance::of_this_run();
    all.extend(disturbances().map(|found| ("disturbed_by".into(), found)));
    all
}

/// Load of other programs, observed for half a second before a measurement starts. The load average of the last minute
/// cannot be used, because it includes the previous runs. `None` if they use at most a tenth of the processors.
fn other_programs() -> Option<String> {
    const MOST: f64 = 0.1;
    let before = processor_time()?;
    std::thread::sleep(Duration::from_millis(500));
    let after = processor_time()?;
    let all = after.all.saturating_sub(before.all).max(1) as f64;
    let busy = 1.0 - after.idle.saturating_sub(before.idle) as f64 / all;
    (busy > MOST).then(|| {
        format!(
            "other programs take {:.0} % of the processors",
            busy * 100.0
        )
    })
}

/// Load of other programs, printed to standard error with its consequence for the measurement.
pub(crate) fn warn_of_other_programs(consequence: &str) -> Option<String> {
    let found = other_programs();
    if let Some(found) = &found {
        say!("flowcast: warning: {found} (flowcast doctor): {consequence}");
    }
    found
}

/// Ticks of all processors since the machine was started.
struct ProcessorTime {
    all: u64,
    idle: u64,
}

fn processor_time() -> Option<ProcessorTime> {
    let text = std::fs::read_to_string("/proc/stat").ok()?;
    let ticks: Vec<u64> = text
        .lines()
        .next()?
        .split_whitespace()
        .skip(1)
        .map_while(|tick| tick.parse().ok())
        .collect();
    Some(ProcessorTime {
        all: ticks.iter().sum(),
        idle: ticks.get(3)? + ticks.get(4)?,
    })
}

/// Disturbances of a measurement on this machine; `None` if there are none.
fn disturbances() -> Option<String> {
    let problems = machine::disturbances(&Machine::this());
    let texts: Vec<String> = problems
        .iter()
        .map(|problem| format!("{}: {}", problem.name, problem.found))
        .collect();
    for text in &texts {
        say!("flowcast: note: {text} (flowcast doctor)");
    }
    (!texts.is_empty()).then(|| texts.join("; "))
}
