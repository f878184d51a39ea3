//! `flowcast rails bench --count`: numbered messages, checked at the other end, while rails come and go.

use std::time::Instant;

use anyhow::{Result, ensure};
use clap::Args;
use flowcast::model::loggp::LogGp;
use flowcast::scheduler::RailId;
use flowcast::units::Bytes;
use flowcast_rails::exchange::{self, Course};
use flowcast_rails::link::Link;
use serde_json::{Value, json};

use super::live::LiveRail;
use super::serve::unexpected;
use crate::exit::Finding;
use crate::output::println_out;
use crate::provenance;

/// The counting test.
#[derive(Debug, Args)]
pub struct CountArgs {
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
pub struct CountPlan {
    messages: u64,
    size: Bytes,
    withdraw: Option<RailId>,
}

/// How the bytes were divided by some moment.
struct Share {
    at: f64,
    bytes: Vec<u64>,
    slowdown: Vec<f64>,
}

/// Shares are noted as often.
const EVERY_SECONDS: f64 = 0.025;

impl CountArgs {
    /// Whether messages are to be counted.
    pub fn is_asked(&self) -> bool {
        self.count.is_some()
    }

    /// What was asked for.
    pub fn plan(&self, rails: &[LiveRail]) -> Result<CountPlan> {
        let named = |name: &String| rails.iter().position(|rail| rail.name == *name);
        let withdraw = match &self.withdraw {
            None => None,
            Some(name) => {
                let found = named(name);
                ensure!(found.is_some(), "--withdraw: found `{name}`, expected the name of a rail");
                found.map(|index| RailId(index as u8))
            }
        };
        Ok(CountPlan { messages: self.count.unwrap_or(0), size: self.count_size, withdraw })
    }
}

/// Counts and prints; a message lost, spoilt or out of order is a finding.
pub fn run(link: &mut Link, rails: &[LiveRail], course: Course, plan: CountPlan, json: bool) -> Result<()> {
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
        if shares.last().is_none_or(|last| at - last.at >= EVERY_SECONDS) {
            let rails = || (0..count).map(RailId);
            shares.push(Share {
                at,
                bytes: rails().map(|rail| link.session().given(rail).0).collect(),
                slowdown: rails().map(|rail| link.session().slowdown(rail).0).collect(),
            });
        }
    };
    let audit = exchange::count(link, course, plan.messages, plan.size, &mut observe).map_err(unexpected)?;
    let seconds = start.elapsed().as_secs_f64();
    let counts = link.counts();
    let names: Vec<&str> = rails.iter().map(|rail| rail.name.as_str()).collect();
    let given: Vec<u64> = (0..count).map(|rail| link.session().given(RailId(rail)).0).collect();
    if json {
        let one = |share: &Share| json!({ "at_s": share.at, "given_B": share.bytes, "slowdown": share.slowdown });
        let document = json!({
            "schema": "flowcast/rails-count/1",
            "rails": names,
            "scheduler": course.scheduler.to_string(),
            "adapts": course.adapts,
            "messages": plan.messages,
            "size_B": plan.size.0,
            "seconds": seconds,
            "received": audit.received,
            "out_of_order": audit.out_of_order,
            "spoilt": audit.spoilt,
            "received_twice_by_the_transport": audit.repeated,
            "divided": counts.divided,
            "sent_again": counts.sent_again,
            "rails_lost": counts.rails_lost,
            "given_B": given,
            "changes": (0..count).map(|rail| link.session().slowdown(RailId(rail)).1).collect::<Vec<_>>(),
            "given_over_time": shares.iter().map(one).collect::<Vec<_>>(),
            "provenance": provenance::of_this_run(),
        });
        println_out!("{document}");
    } else {
        println_out!("{} messages received of {} in {seconds:.2} s", audit.received, plan.messages);
        println_out!("out of order: {}, spoilt: {}", audit.out_of_order, audit.spoilt);
        println_out!("rails lost: {}, sent again: {}", counts.rails_lost, counts.sent_again);
        println_out!(
            "bytes given to each rail: {}",
            names.iter().zip(given).map(|(name, bytes)| format!("{name} {bytes}")).collect::<Vec<_>>().join(", ")
        );
    }
    let faultless = audit.received == plan.messages && audit.out_of_order == 0 && audit.spoilt == 0;
    if faultless { Ok(()) } else { Err(Finding("messages are missing, spoilt or out of order".into()).into()) }
}

/// A rail's parameters.
pub fn rail_json(name: &str, cost: &LogGp) -> Value {
    json!({
        "name": name,
        "g_us": cost.gap.as_micros(),
        "G_us_per_B": cost.gap_per_byte.as_micros(),
        "o_us": cost.overhead.as_micros(),
        "L_us": cost.latency.as_micros(),
    })
}
