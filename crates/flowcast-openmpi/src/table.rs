//! The final report: sent and planned load of each rail, and lost time.
//!
//! The plan divides the bytes in proportion to the rails' bandwidths. The lost time is the time of the busiest rail minus
//! the time of an ideal split, with which all rails finish at the same time: `max_r t_r - 1/Σ_r 1/T_r`, where `t_r` is the
//! time of the data that rail r sent, and `T_r` the time of all data on rail r.

use std::{fmt::Write, fs, io, path::Path, sync::atomic::Ordering};

use flowcast_network::loggp::LogGp;
use flowcast_units::{Bytes, Rank, Time};

use crate::{counters::CounterValues, library, state::State};

/// Smallest share of requests for one rail at which the stock scheduler counts as using that rail only.
const ONE_RAIL_ONLY: f64 = 0.99;
const ENOUGH_TO_JUDGE: u64 = 10;

/// Row of the table for one rail.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RailRow {
    pub name: String,
    pub cost: LogGp,
    pub counts: CounterValues,
}

/// Prints the table if the user wants it, and writes the counts.
pub(crate) fn report(state: &State) {
    // SAFETY: this process, which the library keeps until it ends.
    let vpid = unsafe { (*(state.library.local_process)()).proc_name.vpid };
    let rank = Rank(vpid);
    let rows: Vec<RailRow> = (state.rails.iter().zip(state.scheduler.costs()))
        .map(|(rail, cost)| RailRow {
            name: rail.name.clone(),
            cost: *cost,
            counts: rail.counters.read(),
        })
        .collect();
    let source = state
        .source
        .lock()
        .map(|source| source.clone())
        .unwrap_or_default();
    if state.settings.verbose > 1 || (state.settings.verbose == 1 && vpid == 0) {
        let by_epoll = state
            .event_loop
            .as_ref()
            .map_or(0, |events| events.most.load(Ordering::Relaxed));
        let title = format!(
            "{}, parameters {source}, {by_epoll} sockets by epoll",
            state.settings.scheduler
        );
        library::say(&text(&rows, rank, &title));
    }
    if let Some(file) = &state.settings.counters
        && let Err(error) = write(
            file,
            rank,
            &json(&rows, rank, &state.settings.scheduler.to_string(), &source),
        )
    {
        library::say(&format!("bml flowcast: {}: {error}", file.display()));
    }
}

/// Writes `FILE.RANK.json` atomically: first to `FILE.RANK.json.partial`, which is then renamed.
fn write(file: &Path, rank: Rank, text: &str) -> io::Result<()> {
    let [partial, whole] = [".partial", ""].map(|ending| {
        let mut name = file.as_os_str().to_owned();
        name.push(format!(".{rank}.json{ending}"));
        name
    });
    fs::write(&partial, text)?;
    fs::rename(partial, whole)
}

pub(crate) fn text(rows: &[RailRow], rank: Rank, title: &str) -> String {
    let mut text = format!("bml flowcast: rank {rank}, {title}\n");
    text += "  network  g, G, o, L                          first       bytes   other       bytes planned    sent\n";
    for (row, (planned, sent)) in rows.iter().zip(shares(rows)) {
        let RailRow { name, cost, counts } = row;
        let cost = format!(
            "{:.2}us {:.3}ns/B {:.2}us {:.2}us",
            cost.gap.as_micros(),
            cost.gap_per_byte.as_nanos(),
            cost.overhead.as_micros(),
            cost.latency.as_micros()
        );
        writeln!(
            text,
            "  {name:<8} {cost:<32} {:>8} {:>11} {:>7} {:>11} {:>5.1} % {:>5.1} %",
            counts.eager_messages,
            counts.eager_bytes,
            counts.other_messages,
            counts.other_bytes,
            planned * 100.0,
            sent * 100.0
        )
        .expect("writing to a string does not fail");
    }
    writeln!(
        text,
        "  lost to the slowest network: {:.3} ms of its {:.3} ms",
        millis(lost(rows)),
        millis(busiest(rows))
    )
    .expect("writing to a string does not fail");
    if let Some(name) = single_stock_rail(rows) {
        writeln!(text, "  without flowcast, only {name} would have carried the first fragments:\n  ob1 advances twice through its networks for each send")
            .expect("writing to a string does not fail");
    }
    text.trim_end().to_owned()
}

pub(crate) fn json(rows: &[RailRow], rank: Rank, scheduler: &str, source: &str) -> String {
    let rails: Vec<String> = rows.iter().zip(shares(rows)).map(|(row, (planned, sent)): (&RailRow, (f64, f64))| {
        let CounterValues {
            asked,
            eager_messages,
            eager_bytes,
            other_messages,
            other_bytes,
        } = row.counts;
        format!(
            "{{\"name\":{:?},\"asked\":{asked},\"eager_messages\":{eager_messages},\"eager_bytes\":{eager_bytes},\
             \"other_messages\":{other_messages},\"other_bytes\":{other_bytes},\"planned\":{planned:.6},\"sent\":{sent:.6},\
             \"g_us\":{},\"G_us_per_B\":{},\"o_us\":{},\"L_us\":{}}}",
            row.name,
            row.cost.gap.as_micros(),
            row.cost.gap_per_byte.as_micros(),
            row.cost.overhead.as_micros(),
            row.cost.latency.as_micros()
        )
    }).collect();
    format!(
        "{{\"schema\":\"flowcast/openmpi-counters/1\",\"rank\":{rank},\"scheduler\":{scheduler:?},\"parameters\":{source:?},\
         \"lost_s\":{},\"rails\":[{}]}}\n",
        lost(rows).as_seconds(),
        rails.join(",")
    )
}

fn millis(time: Time) -> f64 {
    time.as_micros() / 1e3
}

/// Planned and sent shares of each rail.
fn shares(rows: &[RailRow]) -> Vec<(f64, f64)> {
    let (all, bytes) = (
        rows.iter().map(bandwidth).sum::<f64>(),
        rows.iter().map(|row| row.counts.bytes()).sum::<u64>(),
    );
    rows.iter()
        .map(|row| {
            (
                bandwidth(row) / all,
                row.counts.bytes() as f64 / bytes.max(1) as f64,
            )
        })
        .collect()
}

fn bandwidth(row: &RailRow) -> f64 {
    1.0 / row.cost.gap_per_byte.as_nanos().max(1e-9)
}

/// Time that a rail is busy: `n·g + (bytes - n)·G`.
fn busy(cost: &LogGp, messages: u64, bytes: u64) -> Time {
    cost.gap * messages as f64
        + cost
            .gap_per_byte
            .time_for(Bytes(bytes.saturating_sub(messages)))
}

fn busiest(rows: &[RailRow]) -> Time {
    rows.iter()
        .map(|row| busy(&row.cost, row.counts.messages(), row.counts.bytes()))
        .fold(Time::ZERO, Time::max)
}

fn lost(rows: &[RailRow]) -> Time {
    let messages = rows.iter().map(|row| row.counts.messages()).sum();
    let bytes = rows.iter().map(|row| row.counts.bytes()).sum();
    let together: f64 = rows
        .iter()
        .map(|row| 1.0 / busy(&row.cost, messages, bytes).as_nanos().max(1e-9))
        .sum();
    Time::from_nanos((busiest(rows).as_nanos() - 1.0 / together).max(0.0))
}

/// Returns the rail for which ob1 requested nearly all first fragments, if there is one.
fn single_stock_rail(rows: &[RailRow]) -> Option<&str> {
    let all: u64 = rows.iter().map(|row| row.counts.asked).sum();
    let most = rows.iter().max_by_key(|row| row.counts.asked)?;
    let alone = all >= ENOUGH_TO_JUDGE && most.counts.asked as f64 >= ONE_RAIL_ONLY * all as f64;
    alone.then_some(most.name.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use flowcast_units::TimePerByte;

    fn row(name: &str, per_byte: f64, counts: CounterValues) -> RailRow {
        let gap_per_byte = TimePerByte::from_nanos(per_byte);
        RailRow {
            name: name.into(),
            cost: LogGp {
                gap_per_byte,
                ..LogGp::default()
            },
            counts,
        }
    }

    fn eager(asked: u64, messages: u64, bytes: u64) -> CounterValues {
        CounterValues {
            asked,
            eager_messages: messages,
            eager_bytes: bytes,
            ..CounterValues::default()
        }
    }

    #[test]
    fn no_time_is_lost_if_all_rails_end_at_the_same_time() {
        // 1 ns and 3 ns for each byte beyond the first: 3 : 1.
        let even = [
            row("a", 1.0, eager(0, 100, 30_100)),
            row("b", 3.0, eager(0, 100, 10_100)),
        ];
        assert!(lost(&even).as_nanos() < 1e-6, "{}", lost(&even));
        assert_eq!(
            shares(&even)
                .iter()
                .map(|share| share.0)
                .collect::<Vec<_>>(),
            [0.75, 0.25]
        );
        // All data on the slow rail take 120,000 ns. On the fast one they would take 40,000 ns, on both together 30,000 ns.
        // Time lost: 120,000 - 30,000.
        let uneven = [
            row("a", 1.0, CounterValues::default()),
            row("b", 3.0, eager(0, 200, 40_200)),
        ];
        assert!(
            (lost(&uneven).as_nanos() - 90_000.0).abs() < 1e-6,
            "{}",
            lost(&uneven)
        );
    }

    #[test]
    fn a_rail_is_named_if_stock_scheduling_would_have_used_only_it() {
        let stepping_twice = [
            row("a", 1.0, eager(0, 50, 50)),
            row("b", 1.0, eager(100, 50, 50)),
        ];
        assert_eq!(single_stock_rail(&stepping_twice), Some("b"));
        assert!(text(&stepping_twice, Rank(0), "x").contains("without flowcast, only b would"));
        let in_turn = [
            row("a", 1.0, eager(50, 50, 50)),
            row("b", 1.0, eager(50, 50, 50)),
        ];
        assert_eq!(single_stock_rail(&in_turn), None);
        assert_eq!(
            single_stock_rail(&[row("a", 1.0, eager(3, 3, 3))]),
            None,
            "too few to tell"
        );
    }

    #[test]
    fn the_counts_are_written_for_machines() {
        let text = json(
            &[row("eth1", 8.0, eager(1, 2, 3))],
            Rank(5),
            "latency",
            "given",
        );
        assert!(
            text.starts_with("{\"schema\":\"flowcast/openmpi-counters/1\",\"rank\":5,"),
            "{text}"
        );
        assert!(
            text.contains("\"eager_bytes\":3") && text.contains("\"sent\":1.000000"),
            "{text}"
        );
    }
}
