//! The page's data as JSON (`flowcast/report/1`), small enough to embed.
//!
//! Times are whole nanoseconds. A rank is a string of activity codes, one digit for each interval, beside the list of
//! the intervals' durations; digit 7 is idle. Messages are four columns: an index into `kinds` (source, destination,
//! bytes, tag), the time of sending as the difference to the message before, the time from sending to arrival, and
//! the time from arrival to the return of the receiver's call.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use super::thin::{self, Interval, MAX_MESSAGES, MAX_SEGMENTS, MAX_STEPS};
use super::{NetworkView, Page};
use flowcast_replay::critical_path::{Limit, Step};
use flowcast_replay::timeline::{Activity, MessageSpan, Timeline};

/// Ranks along a side of the message matrix; beyond it neighbouring ranks share a cell.
const MATRIX_SIDE: u32 = 128;

/// The data block of a page; safe inside a `<script>` element.
pub(crate) fn json(page: &Page) -> String {
    let data = PageData {
        schema: "flowcast/report/1",
        title: &page.title,
        activities: Activity::ALL.map(Activity::name),
        limits: Limit::ALL.map(Limit::name),
        networks: page.networks.iter().map(network_data).collect(),
        provenance: &page.provenance,
    };
    // `<` stands only inside JSON strings, where its escape means the same, and without it no `</script>` or `<!--`
    // can end the element early.
    serde_json::to_string(&data).expect("the data has only texts, numbers and lists").replace('<', "\\u003c")
}

#[derive(Serialize)]
struct PageData<'a> {
    schema: &'static str,
    title: &'a str,
    activities: [&'static str; Activity::ALL.len()],
    limits: [&'static str; Limit::ALL.len()],
    networks: Vec<NetworkData<'a>>,
    provenance: &'a BTreeMap<String, String>,
}

#[derive(Serialize)]
struct NetworkData<'a> {
    name: &'a str,
    title: &'a str,
    parameters: &'a str,
    makespan_ns: u64,
    ranks: Vec<RankData>,
    kinds: Vec<(u32, u32, u64, i32)>,
    messages: MessageData,
    path: PathData,
    matrix: MatrixData,
    sizes: Vec<SizeData>,
    left_out: LeftOut,
}

#[derive(Serialize)]
struct RankData {
    codes: String,
    nanos: Vec<u64>,
}

#[derive(Serialize, Default)]
struct MessageData {
    kind: Vec<usize>,
    sent: Vec<u64>,
    flight: Vec<u64>,
    wait: Vec<u64>,
}

/// The critical path from time 0 on: a digit for the limit of each step, its rank, its duration.
#[derive(Serialize, Default)]
struct PathData {
    limits: String,
    ranks: Vec<u32>,
    nanos: Vec<u64>,
}

/// Bytes by source and destination; a cell stands for `ranks_per_cell` ranks each way.
#[derive(Serialize)]
struct MatrixData {
    ranks_per_cell: u32,
    side: u32,
    cells: Vec<(u32, u32, u64, u64)>,
}

/// Messages with `from <= size < 2 from` (or size 0).
#[derive(Serialize)]
struct SizeData {
    from: u64,
    messages: u64,
    bytes: u64,
}

/// What [`thin`] did.
#[derive(Serialize)]
struct LeftOut {
    segments_before: usize,
    segments: usize,
    joined_below_ns: Option<u64>,
    messages: usize,
    steps: usize,
}

fn network_data(network: &NetworkView) -> NetworkData<'_> {
    let timeline = &network.timeline;
    let all: Vec<_> = timeline.ranks.iter().map(|rank| thin::intervals(rank)).collect();
    let (ranks, joined_below_ns) = thin::join_short(&all, MAX_SEGMENTS);
    let kept = thin::longest_messages(timeline, MAX_MESSAGES);
    let (kinds, messages) = message_data(&kept);
    let steps = network.limits.path.as_slice();
    let drawn = if steps.len() > MAX_STEPS { &[] } else { steps };
    let count = |ranks: &[Vec<Interval>]| ranks.iter().map(Vec::len).sum();
    NetworkData {
        name: &network.name,
        title: &network.title,
        parameters: &network.parameters,
        makespan_ns: thin::whole_nanos(network.outcome.makespan().as_nanos()),
        kinds,
        messages,
        path: path_data(drawn),
        matrix: matrix_data(timeline),
        sizes: size_data(&timeline.messages),
        left_out: LeftOut {
            segments_before: count(&all),
            segments: count(&ranks),
            joined_below_ns,
            messages: timeline.messages.len() - kept.len(),
            steps: steps.len() - drawn.len(),
        },
        ranks: ranks.iter().map(|rank| rank_data(rank)).collect(),
    }
}

fn rank_data(intervals: &[Interval]) -> RankData {
    RankData {
        codes: intervals.iter().map(|interval| char::from(b'0' + interval.code)).collect(),
        nanos: intervals.iter().map(|interval| interval.nanos).collect(),
    }
}

fn message_data(messages: &[MessageSpan]) -> (Vec<(u32, u32, u64, i32)>, MessageData) {
    let (mut kinds, mut known) = (Vec::new(), HashMap::new());
    let mut columns = MessageData::default();
    let mut before = 0;
    for message in messages {
        let kind = (message.src.0, message.dst.0, message.size.0, message.tag);
        let index = *known.entry(kind).or_insert_with(|| {
            kinds.push(kind);
            kinds.len() - 1
        });
        let [sent, arrived, received] =
            [message.sent, message.arrived, message.received].map(|time| thin::whole_nanos(time.as_nanos()));
        columns.kind.push(index);
        columns.sent.push(sent.saturating_sub(before));
        columns.flight.push(arrived.saturating_sub(sent));
        columns.wait.push(received.saturating_sub(arrived));
        before = sent;
    }
    (kinds, columns)
}

fn path_data(steps: &[Step]) -> PathData {
    let mut path = PathData::default();
    let mut reached = 0;
    for step in steps {
        let end = thin::whole_nanos(step.end.as_nanos());
        path.limits.push(char::from(b'0' + step.limit as u8));
        path.ranks.push(step.rank.0);
        path.nanos.push(end.saturating_sub(reached));
        reached = reached.max(end);
    }
    path
}

fn matrix_data(timeline: &Timeline) -> MatrixData {
    let ranks = u32::try_from(timeline.ranks.len()).unwrap_or(u32::MAX);
    let ranks_per_cell = ranks.div_ceil(MATRIX_SIDE).max(1);
    let mut cells: BTreeMap<(u32, u32), (u64, u64)> = BTreeMap::new();
    for message in &timeline.messages {
        let cell = cells.entry((message.src.0 / ranks_per_cell, message.dst.0 / ranks_per_cell)).or_default();
        cell.0 += 1;
        cell.1 += message.size.0;
    }
    let cells = cells.into_iter().map(|((src, dst), (messages, bytes))| (src, dst, messages, bytes)).collect();
    MatrixData { ranks_per_cell, side: ranks.div_ceil(ranks_per_cell), cells }
}

fn size_data(messages: &[MessageSpan]) -> Vec<SizeData> {
    let mut sizes: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    for message in messages {
        let from = if message.size.0 == 0 { 0 } else { 1 << message.size.0.ilog2() };
        let size = sizes.entry(from).or_default();
        size.0 += 1;
        size.1 += message.size.0;
    }
    sizes.into_iter().map(|(from, (messages, bytes))| SizeData { from, messages, bytes }).collect()
}
