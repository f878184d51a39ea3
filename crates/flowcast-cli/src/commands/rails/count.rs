//! `flowcast rails bench --count`: numbered messages, checked at the other end, while rails come and go.

use std::collections::BTreeMap;
use std::time::Instant;

use anyhow::{Context, Result};
use clap::Args;
use flowcast::scheduler::RailId;
use flowcast::units::Bytes;
use flowcast_rails::exchange::{self, Course};
use flowcast_rails::link::Link;
use flowcast_rails::session::Session;
use serde::Serialize;

use super::live::LiveRail;
use super::serve::unexpected;
use crate::terminal::exit::Finding;
use crate::terminal::output::{Format, Shown, println_out, show};
use crate::terminal::provenance;
use flowcast::report::answer::Grouped;

/// The counting test.
#[derive(Debug, Args)]
pub(super) struct CountArgs {
    /// Instead of measuring, send so many numbered messages with the first scheduler and let the other end check them
    #[arg(long, value_name = "MESSAGES")]
    count: Option<u64>,
    /// Bytes of a numbered message
    #[arg(long, default_value = "64B", value_name = "SIZE", requires = "count")]
    count_size: Bytes,
    /// Take a rail out of service in the middle
    #[arg(long, value_name = "NAME", requires = "count")]
    withdraw: Option<String>,
}

/// What is to be counted.
pub(super) struct CountPlan {
    messages: u64,
    size: Bytes,
    withdraw: Option<RailId>,
}

/// What became of the messages.
#[derive(Serialize)]
struct Counted<'a> {
    rails: Vec<&'a str>,
    scheduler: String,
    adapts: bool,
    messages: u64,
    #[serde(rename = "size_B")]
    size: u64,
    seconds: f64,
    received: u64,
    out_of_order: u64,
    spoilt: u64,
    received_twice_by_the_transport: u64,
    divided: u64,
    sent_again: u64,
    rails_lost: u64,
    #[serde(rename = "given_B")]
    given: Vec<u64>,
    changes: Vec<u64>,
    remeasured: Vec<Remeasured<'a>>,
    given_over_time: Vec<Share>,
    provenance: BTreeMap<String, String>,
}

/// A rail that no longer is what was measured, with what it is.
#[allow(
    non_snake_case,
    reason = "the field names are LogGP's symbols with their units"
)]
#[derive(Serialize)]
struct Remeasured<'a> {
    rail: &'a str,
    g_us: f64,
    G_us_per_B: f64,
}

/// How the bytes were divided by some instant.
#[derive(Serialize)]
struct Share {
    at_s: f64,
    #[serde(rename = "given_B")]
    given: Vec<u64>,
    slowdown: Vec<f64>,
}

/// Shares are noted as often.
const EVERY_SECONDS: f64 = 0.025;

impl CountArgs {
    /// Whether messages are to be counted.
    pub(super) fn is_asked(&self) -> bool {
        self.count.is_some()
    }

    /// What was asked for.
    pub(super) fn plan(&self, rails: &[LiveRail]) -> Result<CountPlan> {
        let named = |name: &String| {
            let found = rails
                .iter()
                .position(|rail| rail.name == *name)
                .map(|index| RailId(index as u8));
            found
                .with_context(|| format!("--withdraw: found `{name}`, expected the name of a rail"))
        };
        let withdraw = self.withdraw.as_ref().map(named).transpose()?;
        Ok(CountPlan {
            messages: self.count.unwrap_or(0),
            size: self.count_size,
            withdraw,
        })
    }
}

/// Counts and prints; a message lost, spoilt or out of order is a finding.
pub(super) fn run(
    link: &mut Link,
    rails: &[LiveRail],
    course: Course,
    plan: CountPlan,
    format: Format,
) -> Result<()> {
    let start = Instant::now();
    let mut shares: Vec<Share> = Vec::new();
    let count = rails.len() as u8;
    let mut observe = |link: &mut Link, number: u64| {
        if number == plan.messages / 2
            && let Some(rail) = plan.withdraw
        {
            link.withdraw(rail);
        }
        let at = start.elapsed().as_secs_f64();
        if shares
            .last()
            .is_none_or(|last| at - last.at_s >= EVERY_SECONDS)
        {
            let rails = || (0..count).map(RailId);
            shares.push(Share {
                at_s: at,
                given: rails().map(|rail| link.session().given(rail).0).collect(),
                slowdown: rails()
                    .map(|rail| link.session().slowdown(rail).0)
                    .collect(),
            });
        }
    };
    let audit = exchange::count(link, course, plan.messages, plan.size, &mut observe)
        .map_err(unexpected)?;
    let seconds = start.elapsed().as_secs_f64();
    let counts = link.counts();
    let session = link.session();
    let counted = Counted {
        rails: rails.iter().map(|rail| rail.name.as_str()).collect(),
        scheduler: course.scheduler.to_string(),
        adapts: course.adapts,
        messages: plan.messages,
        size: plan.size.0,
        seconds,
        received: audit.received,
        out_of_order: audit.out_of_order,
        spoilt: audit.spoilt,
        received_twice_by_the_transport: audit.repeated,
        divided: counts.divided,
        sent_again: counts.sent_again,
        rails_lost: counts.rails_lost,
        given: (0..count)
            .map(|rail| session.given(RailId(rail)).0)
            .collect(),
        changes: (0..count)
            .map(|rail| session.slowdown(RailId(rail)).1)
            .collect(),
        remeasured: remeasured(session, rails),
        given_over_time: shares,
        provenance: provenance::of_this_run(),
    };
    show(&counted, format)?;
    let faultless = audit.received == plan.messages && audit.out_of_order == 0 && audit.spoilt == 0;
    if faultless {
        Ok(())
    } else {
        Err(Finding("messages are missing, spoilt or out of order".into()).into())
    }
}

/// The rails that no longer are what was measured.
fn remeasured<'a>(session: &Session, rails: &'a [LiveRail]) -> Vec<Remeasured<'a>> {
    let of = |(id, rail): (u8, &'a LiveRail)| {
        let now = session.remeasured(RailId(id))?;
        Some(Remeasured {
            rail: &rail.name,
            g_us: now.gap.as_micros(),
            G_us_per_B: now.gap_per_byte.as_micros(),
        })
    };
    (0..).zip(rails).filter_map(of).collect()
}

impl Shown for Counted<'_> {
    const SCHEMA: &'static str = "flowcast/rails-count/1";

    fn print(&self) {
        let [received, messages] = [self.received, self.messages].map(Grouped);
        println_out!(
            "{received} messages received of {messages} in {:.2} s",
            self.seconds
        );
        println_out!(
            "out of order: {}, spoilt: {}",
            self.out_of_order,
            self.spoilt
        );
        println_out!(
            "rails lost: {}, sent again: {}",
            self.rails_lost,
            self.sent_again
        );
        let given = self
            .rails
            .iter()
            .zip(&self.given)
            .map(|(name, bytes)| format!("{name} {}", Grouped(*bytes)));
        println_out!(
            "bytes given to each rail: {}",
            given.collect::<Vec<_>>().join(", ")
        );
        for Remeasured {
            rail,
            g_us,
            G_us_per_B,
        } in &self.remeasured
        {
            println_out!(
                "{rail} no longer is what was measured: g {g_us:.3} us, G {:.4} ns/B now",
                G_us_per_B * 1e3
            );
        }
    }
}
