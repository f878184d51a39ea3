//! The page's data as JSON (`flowcast/report/2`), small enough to embed.
//!
//! Times are whole nanoseconds. A replay with few intervals has a string of activity codes for each rank, one digit for each
//! interval, and the list of the intervals' durations. A replay with many intervals has shares ([`shares_data`]). Messages
//! are four columns: an index into `kinds` (source, destination, bytes, tag, call), the time of sending as the difference to
//! the previous message, the time from sending to arrival, and the time from arrival to the return of the receiver's call.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use super::{
    NetworkView, Page,
    drawing::{Drawing, DrawnTraffic, LaneInterval, LaneShares, whole_nanos},
    varint::push_varint,
};
use flowcast_graph::critical_path::PathStep;
use flowcast_observers::{distribution::TimeDistribution, journal::call_tallies::CallTally};
use flowcast_replay::{time_part::TimePart, timeline::Activity};

/// Largest number of steps of a drawn critical path for one network. Longer paths are omitted.
pub const MAX_STEPS: usize = 150_000;

const ACTIVITIES: usize = Activity::ALL.len();

/// Source, destination, bytes, tag, call.
type DataKind = (u32, u32, u64, i32, usize);

/// Data block of a page; safe inside a `<script>` element.
pub(crate) fn json(page: &Page) -> String {
    let data = PageData {
        schema: "flowcast/report/2",
        title: &page.title,
        activities: Activity::ALL.map(Activity::name),
        limits: TimePart::LIMITS.map(TimePart::name),
        networks: page.networks.iter().map(network_data).collect(),
        provenance: &page.provenance,
    };
    // `<` occurs only inside JSON strings, where its escape is equivalent. Without it no `</script>` or `<!--` can end the
    // element early.
    serde_json::to_string(&data)
        .expect("the data has only texts, numbers and lists")
        .replace('<', "\\u003c")
}

#[derive(Serialize)]
struct PageData<'a> {
    schema: &'static str,
    title: &'a str,
    activities: [&'static str; Activity::ALL.len()],
    limits: [&'static str; TimePart::LIMITS.len()],
    networks: Vec<NetworkData<'a>>,
    provenance: &'a BTreeMap<String, String>,
}

#[derive(Serialize)]
struct NetworkData<'a> {
    name: &'a str,
    title: &'a str,
    parameters: &'a str,
    makespan_ns: u64,
    /// End time of each rank, in nanoseconds.
    ends: Vec<u64>,
    nodes: Vec<u32>,
    /// Time in each activity, indexed by rank, in nanoseconds.
    times: Vec<[u64; Activity::ALL.len()]>,
    intervals: usize,
    ranks: Option<Vec<RankData>>,
    shares: Option<SharesData>,
    calls: Vec<CallData<'a>>,
    call_names: &'a [String],
    kinds: Vec<DataKind>,
    messages: MessageData,
    messages_left_out: usize,
    path: PathData,
    steps_left_out: usize,
    matrix: MatrixData,
    sizes: Vec<SizeData>,
    flights: TimesData,
    rate: RateData,
}

#[derive(Serialize)]
struct RankData {
    codes: String,
    nanos: Vec<u64>,
}

#[derive(Serialize)]
struct SharesData {
    bucket_ns: u64,
    buckets: usize,
    ranks_per_lane: usize,
    cells: String,
}

#[derive(Serialize)]
struct CallData<'a> {
    name: &'a str,
    bytes: u64,
    #[serde(flatten)]
    times: TimesData,
}

/// Distribution of durations: `[from, number]` in classes of doubling width, and sums.
#[derive(Serialize)]
struct TimesData {
    number: u64,
    total_ns: u64,
    median_ns: u64,
    longest_ns: u64,
    classes: Vec<(u64, u64)>,
}

#[derive(Serialize, Default)]
struct MessageData {
    kind: Vec<usize>,
    sent: Vec<u64>,
    flight: Vec<u64>,
    wait: Vec<u64>,
}

/// Critical path from time 0 on: a digit for the limit of each step, its rank, its duration.
#[derive(Serialize, Default)]
struct PathData {
    limits: String,
    ranks: Vec<u32>,
    nanos: Vec<u64>,
}

/// Messages and bytes, indexed by source and destination. A cell covers `ranks_per_cell` ranks in each direction.
#[derive(Serialize)]
struct MatrixData {
    ranks_per_cell: usize,
    side: usize,
    cells: Vec<(usize, usize, u64, u64)>,
}

/// Messages with `from <= size < 2 from` (or size 0).
#[derive(Serialize)]
struct SizeData {
    from: u64,
    messages: u64,
    bytes: u64,
}

/// Messages and bytes in intervals of the time of sending, each `width_ns` wide.
#[derive(Serialize)]
struct RateData {
    width_ns: u64,
    messages: Vec<u64>,
    bytes: Vec<u64>,
}

fn network_data(network: &NetworkView) -> NetworkData<'_> {
    let Drawing {
        nodes,
        times,
        lanes,
        traffic,
        calls,
    } = &network.drawn;
    let (kinds, messages) = message_data(traffic);
    let steps = network.limits.path.as_slice();
    let drawn = if steps.len() > MAX_STEPS { &[] } else { steps };
    NetworkData {
        name: &network.name,
        title: &network.title,
        parameters: &network.parameters,
        makespan_ns: whole_nanos(network.outcome.makespan()),
        ends: network
            .outcome
            .ranks
            .iter()
            .map(|rank| whole_nanos(rank.end))
            .collect(),
        nodes: nodes.iter().map(|node| node.0).collect(),
        times: times.iter().map(|times| times.map(whole_nanos)).collect(),
        intervals: lanes.intervals,
        ranks: lanes
            .are_exact()
            .then(|| lanes.exact.iter().map(|rank| rank_data(rank)).collect()),
        shares: (!lanes.are_exact()).then(|| shares_data(&lanes.shares)),
        calls: calls.iter().map(call_data).collect(),
        call_names: &traffic.call_names,
        kinds,
        messages,
        messages_left_out: traffic.left_out(),
        path: path_data(drawn),
        steps_left_out: steps.len() - drawn.len(),
        matrix: matrix_data(traffic),
        sizes: size_data(traffic),
        flights: times_data(&traffic.flights),
        rate: RateData {
            width_ns: traffic.rate_width,
            messages: traffic.rate.iter().map(|count| count.0).collect(),
            bytes: traffic.rate.iter().map(|count| count.1).collect(),
        },
    }
}

fn rank_data(intervals: &[LaneInterval]) -> RankData {
    RankData {
        codes: intervals
            .iter()
            .map(|interval| char::from(b'0' + interval.code))
            .collect(),
        nanos: intervals.iter().map(|interval| interval.nanos).collect(),
    }
}

/// Shares of each lane and bucket: a number whose bits mark the activities that occur, followed by their nanoseconds.
/// Numbers have seven bits in each byte, the lowest first, and the eighth bit is set if more bytes follow. The bytes are
/// encoded as base 64. Rounding applies to the time since the start, so that the times of any number of buckets add up to
/// the nanosecond.
fn shares_data(shares: &LaneShares) -> SharesData {
    let LaneShares {
        width,
        buckets,
        ranks_per_lane,
        cells,
        ..
    } = shares;
    let mut bytes = Vec::with_capacity(cells.len() * 8);
    for lane in cells.chunks((*buckets).max(1)) {
        let (mut reached, mut told) = ([0.0; ACTIVITIES], [0u64; ACTIVITIES]);
        for cell in lane {
            let mut nanos = [0; ACTIVITIES];
            for code in 0..ACTIVITIES {
                reached[code] += cell[code];
                nanos[code] = (reached[code].round() as u64).saturating_sub(told[code]);
                told[code] += nanos[code];
            }
            let occurs = (0..ACTIVITIES).filter(|code| nanos[*code] > 0);
            push_varint(&mut bytes, occurs.map(|code| 1 << code).sum());
            nanos
                .iter()
                .filter(|nanos| **nanos > 0)
                .for_each(|nanos| push_varint(&mut bytes, *nanos));
        }
    }
    SharesData {
        bucket_ns: *width,
        buckets: *buckets,
        ranks_per_lane: *ranks_per_lane,
        cells: base64(&bytes),
    }
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let [first, second, third] =
            [0, 1, 2].map(|index| u32::from(chunk.get(index).copied().unwrap_or(0)));
        let word = first << 16 | second << 8 | third;
        for index in 0..4 {
            let letter = LETTERS[(word >> (18 - 6 * index) & 63) as usize];
            text.push(if index > chunk.len() {
                '='
            } else {
                char::from(letter)
            });
        }
    }
    text
}

fn call_data((name, tally): &(String, CallTally)) -> CallData<'_> {
    CallData {
        name,
        bytes: tally.bytes.0,
        times: times_data(&tally.times),
    }
}

fn times_data(times: &TimeDistribution) -> TimesData {
    TimesData {
        number: times.number(),
        total_ns: whole_nanos(times.total()),
        median_ns: whole_nanos(times.median()),
        longest_ns: whole_nanos(times.longest()),
        classes: times
            .doublings()
            .into_iter()
            .map(|(from, number)| (whole_nanos(from), number))
            .collect(),
    }
}

fn message_data(traffic: &DrawnTraffic) -> (Vec<DataKind>, MessageData) {
    let (mut kinds, mut known) = (Vec::new(), HashMap::new());
    let mut columns = MessageData::default();
    let mut before = 0;
    for shown in &traffic.shown {
        let span = &shown.span;
        let kind = (span.src.0, span.dst.0, span.size.0, span.tag, shown.call);
        let index = *known.entry(kind).or_insert_with(|| {
            kinds.push(kind);
            kinds.len() - 1
        });
        let [sent, arrived, received] = [span.sent, span.arrived, span.received].map(whole_nanos);
        columns.kind.push(index);
        columns.sent.push(sent.saturating_sub(before));
        columns.flight.push(arrived.saturating_sub(sent));
        columns.wait.push(received.saturating_sub(arrived));
        before = sent;
    }
    (kinds, columns)
}

fn path_data(steps: &[PathStep]) -> PathData {
    let mut path = PathData::default();
    let mut reached = 0;
    for step in steps {
        let end = whole_nanos(step.end);
        path.limits.push(char::from(b'0' + step.limit as u8));
        path.ranks.push(step.rank.0);
        path.nanos.push(end.saturating_sub(reached));
        reached = reached.max(end);
    }
    path
}

fn matrix_data(traffic: &DrawnTraffic) -> MatrixData {
    let DrawnTraffic {
        matrix,
        side,
        ranks_per_cell,
        ..
    } = traffic;
    let cells = matrix
        .iter()
        .enumerate()
        .filter(|(_, (messages, _))| *messages > 0);
    let cells = cells
        .map(|(cell, (messages, bytes))| (cell / side, cell % side, *messages, *bytes))
        .collect();
    MatrixData {
        ranks_per_cell: *ranks_per_cell,
        side: *side,
        cells,
    }
}

fn size_data(traffic: &DrawnTraffic) -> Vec<SizeData> {
    let sizes = traffic
        .sizes
        .iter()
        .enumerate()
        .filter(|(_, (messages, _))| *messages > 0);
    sizes
        .map(|(class, (messages, bytes))| SizeData {
            from: class.checked_sub(1).map_or(0, |power| 1 << power),
            messages: *messages,
            bytes: *bytes,
        })
        .collect()
}

/// Time in whole nanoseconds, rounded.
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_become_the_text_of_the_standard() {
        let expected = [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
        ];
        for (bytes, text) in expected {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
    }

    #[test]
    fn a_cell_names_its_activities_before_their_times() {
        let mut cells = vec![[0.0; ACTIVITIES]; 2];
        (cells[0][0], cells[0][8], cells[1][8]) = (299.6, 4.7, 0.7);
        let shares = LaneShares {
            cells,
            buckets: 2,
            ..LaneShares::default()
        };
        // 257 = 0x81 0x02, 300 = 0xac 0x02, 4.7 + 0.7 is nearly 5.
        assert_eq!(
            shares_data(&shares).cells,
            base64(&[0x81, 0x02, 0xac, 0x02, 0x05, 0x00])
        );
    }
}
