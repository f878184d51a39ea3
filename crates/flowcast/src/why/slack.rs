//! How late ranks, messages and computations may be without moving the end.

use flowcast_graph::selector::Link;
use flowcast_graph::slack::{LinkSlack, RankSlack, Slacks};
use flowcast_model::network::Network;
use flowcast_report::answer::{Answer, AnswerTable};
use flowcast_trace::Trace;
use flowcast_units::{Rounded, Time};
use serde_json::{Value, json};

use super::{percent, recorded};
use crate::{Error, Options};

/// The upper ends of the classes of a histogram, in nanoseconds; the last one has none.
const CLASSES: [(f64, &str); 7] = [
    (1.0, "none"),
    (1e3, "up to 1 us"),
    (1e4, "up to 10 us"),
    (1e5, "up to 100 us"),
    (1e6, "up to 1 ms"),
    (1e7, "up to 10 ms"),
    (f64::INFINITY, "more than 10 ms"),
];

/// How many lie in each class: of messages by total and by free slack, of computations the same.
type Histogram = [[u64; CLASSES.len()]; 4];

/// What the graph of events says.
struct Found {
    ranks: Vec<RankSlack>,
    links: [LinkSlack; Link::ALL.len()],
    histogram: Histogram,
}

/// How much each rank, message and computation may be late without moving the end, and from that which ranks could run
/// slower and how many messages could go over a slower network.
///
/// # Errors
/// As [`predict`](crate::predict()); a schedule.
pub fn slack(trace: &Trace, network: &Network, options: &Options) -> Result<Answer, Error> {
    let (told, found) = recorded(trace, network, options, |graph| {
        let slacks = graph.slacks();
        Ok(Found {
            ranks: slacks.ranks(),
            links: slacks.links(),
            histogram: histogram(&slacks),
        })
    })?;
    let mut lines = vec![format!(
        "{}; {}",
        of_ranks(&found.ranks),
        of_messages(&found.links)
    )];
    lines.extend(told.lines.iter().cloned());
    lines.push(format!(
        "predicted time on {}: {}",
        network.name,
        Rounded(told.makespan)
    ));
    let mut document = told.document(network);
    document["ranks"] = found.ranks.iter().map(rank_document).collect();
    document["links"] = Link::ALL
        .into_iter()
        .zip(&found.links)
        .map(link_document)
        .collect();
    document["histogram"] = histogram_document(&found.histogram);
    Ok(Answer {
        schema: "flowcast/slack/1",
        title: format!("{}: how late what may be", trace.name()),
        lines,
        tables: vec![
            rank_table(&found.ranks),
            link_table(&found.links),
            histogram_table(&found.histogram),
        ],
        document,
    })
}

fn of_ranks(ranks: &[RankSlack]) -> String {
    let slower = |rank: &&RankSlack| rank.slower > 0.0;
    let count = ranks.iter().filter(slower).count();
    let most = ranks
        .iter()
        .filter(slower)
        .max_by(|a, b| a.slower.total_cmp(&b.slower));
    let Some(most) = most else {
        return format!("none of {} ranks could compute slower", ranks.len());
    };
    let by = if most.slower.is_finite() {
        percent(most.slower)
    } else {
        "any factor".to_owned()
    };
    format!(
        "{count} of {} ranks could each compute slower without moving the end, rank {} by {by}",
        ranks.len(),
        most.rank
    )
}

fn of_messages(links: &[LinkSlack]) -> String {
    let sum = |of: fn(&LinkSlack) -> u64| links.iter().map(of).sum::<u64>();
    let (messages, twice) = (sum(|link| link.messages), sum(|link| link.twice));
    if messages == 0 {
        return "there are no messages".to_owned();
    }
    let part = percent(twice as f64 / messages as f64);
    format!("{part} of {messages} messages could all take twice as long without anybody waiting")
}

fn class_of(time: Time) -> usize {
    CLASSES
        .iter()
        .position(|(below, _)| time.as_nanos() < *below)
        .unwrap_or(CLASSES.len() - 1)
}

fn histogram(slacks: &Slacks<'_>) -> Histogram {
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

fn rank_table(ranks: &[RankSlack]) -> AnswerTable {
    let columns = [
        ">rank",
        ">ends before the last",
        ">computes",
        ">least slack",
        ">may compute slower by",
    ];
    let mut ranks: Vec<&RankSlack> = ranks.iter().collect();
    ranks.sort_by(|a, b| b.slower.total_cmp(&a.slower).then(a.rank.cmp(&b.rank)));
    let row = |rank: &&RankSlack| {
        let slower = if rank.slower.is_finite() {
            percent(rank.slower)
        } else {
            "any".to_owned()
        };
        let [end, compute, least] =
            [rank.end, rank.compute, rank.least].map(|time| Rounded(time).to_string());
        vec![rank.rank.to_string(), end, compute, least, slower]
    };
    AnswerTable {
        rows: ranks.iter().map(row).collect(),
        bars: ranks.iter().map(|rank| rank.slower).collect(),
        ..AnswerTable::new("ranks, each alone", &columns)
    }
}

fn link_table(links: &[LinkSlack]) -> AnswerTable {
    let columns = [
        "messages",
        ">count",
        ">bytes",
        ">may take twice as long",
        ">their bytes",
        ">ten times as long",
    ];
    let used = Link::ALL
        .into_iter()
        .zip(links)
        .filter(|(_, of)| of.messages > 0);
    let row = |(link, of): (Link, &LinkSlack)| {
        let counts = [
            of.messages,
            of.bytes.0,
            of.twice,
            of.twice_bytes.0,
            of.tenfold,
        ];
        std::iter::once(name_of(link).to_owned())
            .chain(counts.map(|count| count.to_string()))
            .collect()
    };
    AnswerTable {
        rows: used.map(row).collect(),
        ..AnswerTable::new("messages, all at the same time", &columns)
    }
}

fn name_of(link: Link) -> &'static str {
    match link {
        Link::Inside => "inside nodes",
        Link::Between => "between nodes",
        Link::Sites => "between sites",
    }
}

fn histogram_table(histogram: &Histogram) -> AnswerTable {
    let columns = [
        "slack",
        ">messages, total",
        ">messages, free",
        ">computations, total",
        ">computations, free",
    ];
    let row = |(class, (_, name)): (usize, &(f64, &str))| {
        std::iter::once((*name).to_owned())
            .chain(histogram.iter().map(|counts| counts[class].to_string()))
            .collect()
    };
    AnswerTable {
        rows: CLASSES.iter().enumerate().map(row).collect(),
        bars: histogram[0].iter().map(|count| *count as f64).collect(),
        ..AnswerTable::new(
            "how many may be late by how much: alone (total), all at the same time (free)",
            &columns,
        )
    }
}

fn rank_document(rank: &RankSlack) -> Value {
    json!({
        "rank": rank.rank.0,
        "end_slack_s": rank.end.as_seconds(),
        "compute_s": rank.compute.as_seconds(),
        "least_slack_s": rank.least.as_seconds(),
        "slower": rank.slower.is_finite().then_some(rank.slower),
    })
}

fn link_document((link, of): (Link, &LinkSlack)) -> Value {
    json!({
        "link": link.name(),
        "messages": of.messages,
        "bytes": of.bytes.0,
        "twice": of.twice,
        "twice_bytes": of.twice_bytes.0,
        "tenfold": of.tenfold,
    })
}

fn histogram_document(histogram: &Histogram) -> Value {
    let class = |(class, (below, _)): (usize, &(f64, &str))| {
        json!({
            "below_s": below.is_finite().then_some(below / 1e9),
            "messages_total": histogram[0][class],
            "messages_free": histogram[1][class],
            "computations_total": histogram[2][class],
            "computations_free": histogram[3][class],
        })
    };
    CLASSES.iter().enumerate().map(class).collect()
}
