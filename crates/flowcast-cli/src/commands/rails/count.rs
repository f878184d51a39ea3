//! `flowcast rails bench --count`: sends numbered messages, which the other end checks, while rails fail and recover.

use std::time::Instant;

use anyhow::{Context, Result, ensure};
use clap::Args;
use flowcast::{
    model::loggp::LogGp,
    scheduler::RailId,
    table::{Document, Grouped, Value, rows},
    units::{Bytes, Rounded},
};
use flowcast_rails::{
    exchange::{self, RailChoices},
    link::RailLink,
};

use super::{live::LiveRail, serve::exchange_error};
use flowcast_terminal::{exit::Finding, output::Format, provenance};

/// Options of the counting test.
#[derive(Debug, Args)]
pub(super) struct CountArgs {
    /// Send this number of messages with the first scheduler instead of measuring; the other end checks their order
    #[arg(long, value_name = "MESSAGES")]
    count: Option<u64>,
    /// Size of each message of --count
    #[arg(long, default_value = "64B", value_name = "SIZE", requires = "count")]
    size: Bytes,
    /// Remove this rail after half of the messages
    #[arg(long, value_name = "NAME", requires = "count")]
    withdraw: Option<String>,
}

/// Plan of the counting test.
pub(super) struct CountPlan {
    messages: u64,
    size: Bytes,
    withdraw: Option<RailId>,
}

/// Division of the bytes over the rails up to a time.
struct RailShare {
    at_s: f64,
    given: Vec<u64>,
    slowdown: Vec<f64>,
}

/// Interval at which shares are recorded, in seconds.
const EVERY_SECONDS: f64 = 0.025;

impl CountArgs {
    /// `true` if the counting test is requested.
    pub(super) fn is_requested(&self) -> bool {
        self.count.is_some()
    }

    /// Plan of the requested test.
    pub(super) fn plan(&self, rails: &[LiveRail]) -> Result<CountPlan> {
        let withdraw = self.withdraw.as_ref().map(|name| {
            let found = rails.iter().position(|rail| rail.name == *name);
            found
                .with_context(|| format!("--withdraw: found `{name}`, expected the name of a rail"))
        });
        Ok(CountPlan {
            messages: self.count.unwrap_or(0),
            size: self.size,
            withdraw: withdraw.transpose()?.map(|index| RailId(index as u8)),
        })
    }
}

/// Runs the test and prints the results. A lost, corrupted or out-of-order message is a finding.
pub(super) fn run(
    link: &mut RailLink,
    rails: &[LiveRail],
    course: RailChoices,
    plan: CountPlan,
    format: Format,
) -> Result<()> {
    let start = Instant::now();
    let mut shares: Vec<RailShare> = Vec::new();
    let count = rails.len() as u8;
    let audit = exchange::count(
        link,
        course,
        plan.messages,
        plan.size,
        &mut |link: &mut RailLink, number: u64| {
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
                shares.push(RailShare {
                    at_s: at,
                    given: ids(count)
                        .map(|rail| link.session().bytes_assigned(rail).0)
                        .collect(),
                    slowdown: ids(count)
                        .map(|rail| link.session().slowdown(rail).0)
                        .collect(),
                });
            }
        },
    )
    .map_err(exchange_error)?;
    let seconds = start.elapsed().as_secs_f64();
    let (counts, session) = (link.counts(), link.session());
    let given: Vec<Bytes> = ids(count)
        .map(|rail| session.bytes_assigned(rail))
        .collect();
    let changed = (0..).zip(rails);
    let changed =
        changed.filter_map(|(id, rail)| Some((&rail.name, session.remeasured(RailId(id))?)));
    let changed: Vec<(&String, LogGp)> = changed.collect();
    let names = rails.iter().map(|rail| &rail.name);
    let words = names.clone().zip(&given);
    let words = words.map(|(name, bytes)| format!("{name} {}", Rounded(*bytes)));
    let document = Document::new("rails-count")
        .field("rails", names.collect::<Value>())
        .field("scheduler", course.scheduler.to_string())
        .field("adapts", course.adapts)
        .field("messages", plan.messages)
        .field("size_B", plan.size)
        .field("seconds", seconds)
        .field("received", audit.received)
        .field("out_of_order", audit.out_of_order)
        .field("spoilt", audit.spoilt)
        .field("received_twice_by_the_transport", audit.repeated)
        .field("divided", counts.divided)
        .field("sent_again", counts.sent_again)
        .field("rails_lost", counts.rails_lost)
        .field("given_B", &given)
        .field(
            "changes",
            ids(count)
                .map(|rail| session.slowdown(rail).1)
                .collect::<Value>(),
        )
        .field(
            "remeasured",
            rows(&changed)
                .field("rail", |(rail, _)| rail)
                .field("g_us", |(_, now)| now.gap)
                .field("G_us_per_B", |(_, now)| now.gap_per_byte.as_micros()),
        )
        .field(
            "given_over_time",
            rows(&shares)
                .field("at_s", |share| share.at_s)
                .field("given_B", |share| &share.given)
                .field("slowdown", |share| &share.slowdown),
        )
        .field("provenance", provenance::of_this_run())
        .line(format!(
            "{} of {} messages received in {seconds:.2} s",
            Grouped(audit.received),
            Grouped(plan.messages)
        ))
        .line(format!(
            "out of order: {}, corrupted: {}",
            audit.out_of_order, audit.spoilt
        ))
        .line(format!(
            "rails lost: {}, sent again: {}",
            counts.rails_lost, counts.sent_again
        ))
        .line(format!(
            "bytes given to each rail: {}",
            words.collect::<Vec<_>>().join(", ")
        ))
        .lines(changed.iter().map(|(rail, now)| {
            let (gap, per_byte) = (now.gap.as_micros(), now.gap_per_byte.as_micros() * 1e3);
            format!(
                "{rail} has changed since its measurement: now g {gap:.3} us, G {per_byte:.4} ns/B"
            )
        }));
    format.print(&document)?;
    ensure!(
        audit.received == plan.messages && audit.out_of_order == 0 && audit.spoilt == 0,
        Finding("messages are missing, corrupted or out of order".into())
    );
    Ok(())
}

fn ids(count: u8) -> impl Iterator<Item = RailId> {
    (0..count).map(RailId)
}
