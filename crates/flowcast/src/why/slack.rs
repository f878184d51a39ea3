//! Slack of ranks, messages and computations: the delay that does not postpone the end.

use flowcast_graph::{
    selector::MessageRoute,
    slack::{LinkSlack, RankSlack, Slacks},
};
use flowcast_network::network::Network;
use flowcast_program::Trace;
use flowcast_table::{self as table, Document, Grouped, Rows, Table, figure, rows};
use flowcast_units::Time;

use super::{percent, recorded};
use crate::{Error, Options};

/// Upper ends of the classes of a histogram, in nanoseconds, with their names; the last class has no end.
const CLASSES: [(f64, &str); 7] = [
    (1.0, "none"),
    (1e3, "up to 1 us"),
    (1e4, "up to 10 us"),
    (1e5, "up to 100 us"),
    (1e6, "up to 1 ms"),
    (1e7, "up to 10 ms"),
    (f64::INFINITY, "more than 10 ms"),
];

/// Number of cases in each class: messages by total and by free slack, then computations by total and by free slack.
type SlackHistogram = [[u64; CLASSES.len()]; 4];

/// Results from the graph of events.
struct SlackResult {
    ranks: Vec<RankSlack>,
    links: [LinkSlack; MessageRoute::ALL.len()],
    histogram: SlackHistogram,
}

/// Longest delay of each rank, message and computation that does not postpone the end, the ranks that could run slower, and
/// the number of messages that could use a slower network.
///
/// # Errors
/// Errors of [`predict`](crate::predict()); a schedule.
pub fn slack(trace: &Trace, network: &Network, options: &Options) -> Result<Document, Error> {
    let (told, found) = recorded(trace, network, options, |graph| {
        let slacks = graph.slacks();
        Ok(SlackResult {
            ranks: slacks.ranks(),
            links: slacks.links(),
            histogram: histogram(&slacks),
        })
    })?;
    let answer = format!("{}; {}", of_ranks(&found.ranks), of_messages(&found.links));
    let mut ranks: Vec<&RankSlack> = found.ranks.iter().collect();
    let in_order = rank_table(&ranks);
    ranks.sort_by(|a, b| b.slower.total_cmp(&a.slower).then(a.rank.cmp(&b.rank)));
    let links = MessageRoute::ALL.into_iter().zip(&found.links);
    let used = links.clone().filter(|(_, of)| of.messages > 0);
    Ok(told
        .document("slack", network, answer)
        .titled(format!("{}: slack of ranks and messages", trace.name()))
        .field("ranks", in_order)
        .shown(rank_table(&ranks))
        .field("links", link_table(links))
        .shown(link_table(used))
        .table("histogram", histogram_table(&found.histogram)))
}

fn of_ranks(ranks: &[RankSlack]) -> String {
    let count = ranks.iter().filter(slower).count();
    let most = ranks
        .iter()
        .filter(slower)
        .max_by(|a, b| a.slower.total_cmp(&b.slower));
    let Some(most) = most else {
        return format!(
            "none of {} ranks could compute slower without delaying the end",
            ranks.len()
        );
    };
    let by = if most.slower.is_finite() {
        percent(most.slower)
    } else {
        "any factor".to_owned()
    };
    format!(
        "{count} of {} ranks could each compute slower without delaying the end, rank {} by {by}",
        ranks.len(),
        most.rank
    )
}

fn slower(rank: &&RankSlack) -> bool {
    rank.slower > 0.0
}

fn of_messages(links: &[LinkSlack]) -> String {
    let messages: u64 = links.iter().map(|link| link.messages).sum();
    let twice: u64 = links.iter().map(|link| link.twice).sum();
    if messages == 0 {
        return "there are no messages".to_owned();
    }
    let part = percent(twice as f64 / messages as f64);
    format!("{part} of {messages} messages could all take twice as long without delaying a rank")
}

fn class_of(time: Time) -> usize {
    CLASSES
        .iter()
        .position(|(below, _)| time.as_nanos() < *below)
        .unwrap_or(CLASSES.len() - 1)
}

fn histogram(slacks: &Slacks<'_>) -> SlackHistogram {
    let mut counts = [[0; CLASSES.len()]; 4];
    for message in slacks.messages() {
        counts[0][class_of(message.slack.total)] += 1;
        counts[1][class_of(message.slack.free)] += 1;
    }
    for (_, _, slack) in slacks.computations() {
        counts[2][class_of(slack.total)] += 1;
        counts[3][class_of(slack.free)] += 1;
    }
    counts
}

fn rank_table<'a>(ranks: &[&'a RankSlack]) -> Rows<&'a RankSlack> {
    rows(ranks.iter().copied())
        .heading("slack of ranks, one at a time")
        .column("rank", "rank", |rank| rank.rank)
        .column("end_slack_s", "ends before the last", |rank| rank.end)
        .column("compute_s", "computes", |rank| rank.compute)
        .column("least_slack_s", "least slack", |rank| rank.least)
        .column("slower", "may compute slower by", |rank| {
            match rank.slower {
                slower if slower.is_finite() => table::percent(slower, 1),
                _ => figure("any"),
            }
        })
        .bars(|rank| rank.slower)
}

fn link_table<'a>(links: impl Iterator<Item = (MessageRoute, &'a LinkSlack)>) -> Table {
    rows(links)
        .heading("messages that can all be slower at the same time")
        .field("link", |(link, _)| link.name())
        .cell("messages", |(link, _)| name_of(link))
        .column("messages", "count", |(_, of)| Grouped(of.messages))
        .column("bytes", "bytes", |(_, of)| Grouped(of.bytes.0))
        .column("twice", "may take twice as long", |(_, of)| {
            Grouped(of.twice)
        })
        .column("twice_bytes", "bytes of these", |(_, of)| {
            Grouped(of.twice_bytes.0)
        })
        .column("tenfold", "ten times as long", |(_, of)| {
            Grouped(of.tenfold)
        })
        .into()
}

fn name_of(link: MessageRoute) -> &'static str {
    match link {
        MessageRoute::Inside => "inside nodes",
        MessageRoute::Between => "between nodes",
        MessageRoute::Sites => "between sites",
    }
}

fn histogram_table(
    [messages, free, computations, free_computations]: &SlackHistogram,
) -> Rows<usize> {
    rows(0..CLASSES.len())
        .heading("number of messages and computations by slack (total: one of them is late; free: all are late)")
        .cell("slack", |class| CLASSES[class].1)
        .field("below_s", |class| {
            Some(CLASSES[class].0 / 1e9).filter(|end| end.is_finite())
        })
        .column("messages_total", "messages, total", |class| messages[class])
        .column("messages_free", "messages, free", |class| free[class])
        .column("computations_total", "computations, total", |class| {
            computations[class]
        })
        .column("computations_free", "computations, free", |class| {
            free_computations[class]
        })
        .bars(|class| messages[class] as f64)
}
