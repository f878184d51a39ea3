//! Outputs of other benchmarks as round trips: OSU, IMB, perftest, SKaMPI, ReproMPI, Netgauge and nccl-tests.
//!
//! | benchmark | what is read | what it is |
//! |---|---|---|
//! | OSU | `osu_latency`, `osu_bw` | half a round trip; a window of messages and a short answer |
//! | IMB | PingPong | half a round trip |
//! | perftest | `ib_send_lat`, `ib_write_lat` | half a round trip, the median; with `-D` the mean |
//! | SKaMPI 5 | `Pingpong_*` but for `Sendrecv` | a round trip |
//! | ReproMPI | `Send_Recv` | a round trip; several of each size |
//! | Netgauge | `one_one` | half a round trip, the median, or on the terminal the minimum |
//! | nccl-tests | `sendrecv_perf` | a message each way at once, out of place |
//!
//! All but ReproMPI give one time for a size, so there are no intervals. `osu_bw` sends 64 messages in a row (its default window) for one
//! answer of four bytes: with `osu_latency` beside it, what an answer of the messages' size takes longer is added, which
//! makes it the round trip `PRTT_{64,0}(s)`.

mod reprompi;

use flowcast_model::csv::CsvError;
use flowcast_units::{Bytes, Time};
use thiserror::Error;

use crate::{prtt::PrttPoint, samples::PrttSamples};

/// Messages in a row of `osu_bw`.
const WINDOW: u32 = 64;

/// Why an output was refused.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum ImportError {
    /// No benchmark that is known.
    #[error(
        "found no samples and no output of a known benchmark, expected columns of samples (`flowcast fit --help`) or one of {0}"
    )]
    Unknown(String),
    /// A line that does not fit.
    #[error(transparent)]
    Line(#[from] CsvError),
    /// The output has no time of a message between two processes.
    #[error("{benchmark}: found no time of a message, expected {expected}")]
    NoMessages {
        /// Name of the benchmark.
        benchmark: &'static str,
        /// Which of its tests would do.
        expected: &'static str,
    },
    /// A size has a bandwidth and no latency, so that its round trip is not known.
    #[error("osu_bw: found no osu_latency of {size}, expected it beside the bandwidths")]
    NoLatency {
        /// A size of which there is only a bandwidth.
        size: Bytes,
    },
}

/// What was read of one output.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Imported {
    /// Sizes and halves of round trips.
    one_way: Vec<(Bytes, Time)>,
    /// Sizes and times of a window of messages with a short answer.
    windows: Vec<(Bytes, Time)>,
}

impl Imported {
    /// Adds half a round trip in microseconds from its row, which begins with the size.
    fn push_micros(
        &mut self,
        line: usize,
        row: &[&str],
        micros: Option<&&str>,
        what: &str,
    ) -> Result<(), CsvError> {
        let time = Time::from_micros(positive(line, micros, what)?);
        self.one_way.push((size(line, row[0])?, time));
        Ok(())
    }
}

struct Benchmark {
    name: &'static str,
    recognises: fn(&str) -> bool,
    read: fn(&str) -> Result<Imported, CsvError>,
    expected: &'static str,
}

const BENCHMARKS: [Benchmark; 7] = [
    Benchmark {
        name: "OSU",
        recognises: |text| text.contains("# OSU"),
        read: osu,
        expected: "osu_latency or osu_bw",
    },
    Benchmark {
        name: "IMB",
        recognises: |text| text.contains("# Benchmarking") && text.contains("#repetitions"),
        read: imb,
        expected: "PingPong",
    },
    Benchmark {
        name: "perftest",
        recognises: |text| {
            text.contains("#bytes")
                && (text.contains("t_avg[usec]") || text.contains("BW average["))
        },
        read: perftest,
        expected: "ib_send_lat or ib_write_lat",
    },
    Benchmark {
        name: "SKaMPI",
        recognises: |text| text.contains("begin result \""),
        read: skampi,
        expected: "a Pingpong without Sendrecv",
    },
    Benchmark {
        name: "ReproMPI",
        recognises: reprompi::is_one,
        read: reprompi::read,
        expected: "the call Send_Recv",
    },
    Benchmark {
        name: "nccl-tests",
        recognises: |text| text.contains("algbw"),
        read: nccl_tests,
        expected: "sendrecv_perf",
    },
    Benchmark {
        name: "Netgauge",
        recognises: |text| {
            text.contains("Netgauge")
                || text
                    .lines()
                    .any(|line| line.contains(" bytes ") && line.contains("->"))
        },
        read: netgauge,
        expected: "the pattern one_one",
    },
];

/// Reads the output of whichever benchmark it is.
///
/// # Errors
/// No known benchmark, none of its tests of messages, or a number that is none, with its line.
pub fn read(text: &str) -> Result<Imported, ImportError> {
    let found = BENCHMARKS
        .iter()
        .find(|benchmark| (benchmark.recognises)(text));
    let Some(Benchmark {
        name,
        read,
        expected,
        ..
    }) = found
    else {
        return Err(ImportError::Unknown(
            BENCHMARKS.map(|benchmark| benchmark.name).join(", "),
        ));
    };
    let imported = read(text)?;
    if imported.one_way.is_empty() && imported.windows.is_empty() {
        return Err(ImportError::NoMessages {
            benchmark: name,
            expected,
        });
    }
    Ok(imported)
}

/// What was read of several outputs as the round trips of one network.
///
/// # Errors
/// Windows of messages of a size of which no single message was measured.
pub fn samples(all: &[Imported]) -> Result<PrttSamples, ImportError> {
    let one_way = || all.iter().flat_map(|imported| &imported.one_way).copied();
    let mut samples = PrttSamples::default();
    one_way().for_each(|(size, time)| samples.push(PrttPoint::round_trip(size), time * 2.0));
    let shortest = one_way().min_by_key(|(size, _)| *size);
    for (size, time) in all.iter().flat_map(|imported| &imported.windows).copied() {
        let same = one_way().find(|(other, _)| *other == size);
        let (Some((_, own)), Some((_, shortest))) = (same, shortest) else {
            return Err(ImportError::NoLatency { size });
        };
        let longer = Time::from_nanos((own.as_nanos() - shortest.as_nanos()).max(0.0));
        samples.push(PrttPoint::new(WINDOW, Time::ZERO, size), time + longer);
    }
    Ok(samples)
}

/// The lines with their numbers and words.
fn lines(text: &str) -> impl Iterator<Item = (usize, Vec<&str>)> {
    (1..).zip(text.lines().map(|line| line.split_whitespace().collect()))
}

fn size(line: usize, word: &str) -> Result<Bytes, CsvError> {
    let whole = word.parse().map(Bytes);
    whole.map_err(|_| CsvError::at(line, format!("size `{word}`"), "a whole number of bytes"))
}

fn positive(line: usize, word: Option<&&str>, what: &str) -> Result<f64, CsvError> {
    let word = word.copied().unwrap_or_default();
    let number = word
        .parse()
        .ok()
        .filter(|number: &f64| *number > 0.0 && number.is_finite());
    number.ok_or_else(|| CsvError::at(line, format!("{what} `{word}`"), "a number above 0"))
}

fn is_row(words: &[&str]) -> bool {
    words
        .first()
        .is_some_and(|word| word.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Rows under a line that names the test; other tests are left alone.
fn osu(text: &str) -> Result<Imported, CsvError> {
    let (mut imported, mut test) = (Imported::default(), "");
    for (line, words) in lines(text) {
        let joined = words.join(" ");
        if joined.starts_with("# OSU") {
            let has = |name: &str| joined.contains(name);
            let several = has("Bi-Directional") || has("Multi") || has("Multiple");
            test = match () {
                () if several => "",
                () if has("Latency Test") => "latency",
                () if has("Bandwidth Test") => "bandwidth",
                () => "",
            };
        } else if is_row(&words) && test == "latency" {
            imported.push_micros(line, &words, words.get(1), "latency")?;
        } else if is_row(&words) && test == "bandwidth" {
            let (size, rate) = (
                size(line, words[0])?,
                positive(line, words.get(1), "bandwidth")?,
            );
            // Megabytes of a million bytes in a second are bytes in a microsecond.
            imported.windows.push((
                size,
                Time::from_micros(f64::from(WINDOW) * size.0 as f64 / rate),
            ));
        }
    }
    Ok(imported)
}

fn imb(text: &str) -> Result<Imported, CsvError> {
    let (mut imported, mut is_ping_pong) = (Imported::default(), false);
    for (line, words) in lines(text) {
        match &words[..] {
            ["#", "Benchmarking", name, ..] => is_ping_pong = *name == "PingPong",
            _ if is_ping_pong && is_row(&words) => {
                imported.push_micros(line, &words, words.get(2), "t[usec]")?;
            }
            _ => {}
        }
    }
    Ok(imported)
}

/// Rows under a header that names the columns. Reads and atomic operations take a whole round trip and are no messages.
fn perftest(text: &str) -> Result<Imported, CsvError> {
    let (mut imported, mut is_message, mut column) = (Imported::default(), true, None);
    for (line, words) in lines(text) {
        if words.ends_with(&["Latency", "Test"]) || words.ends_with(&["BW", "Test"]) {
            is_message = words[..words.len() - 2]
                .iter()
                .any(|word| matches!(*word, "Send" | "RDMA_Write"));
            column = None;
        } else if words.first() == Some(&"#bytes") {
            let place = |name: &str| words.iter().position(|word| *word == name);
            column = place("t_typical[usec]").or_else(|| place("t_avg[usec]"));
        } else if let (true, Some(column), true) = (is_message, column, is_row(&words)) {
            imported.push_micros(line, &words, words.get(column), "latency")?;
        }
    }
    Ok(imported)
}

/// Rows are pairs of `variable= value`, then size, microseconds, standard deviation, and more.
fn skampi(text: &str) -> Result<Imported, CsvError> {
    let (mut imported, mut is_inside) = (Imported::default(), false);
    for (line, words) in lines(text) {
        let plain: Vec<&str> = words.iter().copied().filter(|word| *word != "#").collect();
        match &plain[..] {
            ["begin", "result", name, ..] => {
                is_inside = name.contains("Pingpong") && !name.contains("Sendrecv")
            }
            ["end", "result", ..] => is_inside = false,
            [first, ..] if is_inside && first.ends_with('=') => {
                let pairs = plain
                    .chunks(2)
                    .take_while(|pair| pair[0].ends_with('='))
                    .count();
                let row = &plain[(2 * pairs).min(plain.len())..];
                let own = size(line, row.first().copied().unwrap_or_default())?;
                let time = Time::from_micros(positive(line, row.get(1), "time")? / 2.0);
                imported.one_way.push((own, time));
            }
            _ => {}
        }
    }
    Ok(imported)
}

/// The column `time` is found by the header; the first one is out of place.
fn nccl_tests(text: &str) -> Result<Imported, CsvError> {
    let (mut imported, mut column) = (Imported::default(), None);
    if !text.contains("sendrecv") {
        return Ok(imported);
    }
    for (line, words) in lines(text) {
        if words.first() == Some(&"#") && words.contains(&"size") {
            column = words
                .iter()
                .position(|word| *word == "time")
                .map(|at| at - 1);
        } else if let (Some(column), true) = (column, is_row(&words)) {
            imported.push_micros(line, &words, words.get(column), "time")?;
        }
    }
    Ok(imported)
}

/// `SIZE bytes -> HALF us == RATE Mbit/s`, or `SIZE - blocking - half round trip - throughput` with minimum, mean and median.
fn netgauge(text: &str) -> Result<Imported, CsvError> {
    let mut imported = Imported::default();
    for (line, words) in lines(text) {
        let half = match &words[..] {
            [_, "bytes", "->", half, "us", ..] => Some(half),
            [_, "-", ..] if is_row(&words) => words
                .split(|word| *word == "-")
                .nth(2)
                .and_then(|half| half.get(2)),
            _ => continue,
        };
        imported.push_micros(line, &words, half, "RTT/2")?;
    }
    Ok(imported)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Vec<(u32, u64, f64)> {
        let samples = samples(&[read(text).unwrap()]).unwrap();
        samples
            .points()
            .map(|(point, times)| (point.messages, point.size.0, times[0].as_micros()))
            .collect()
    }

    fn refused(text: &str) -> String {
        read(text).unwrap_err().to_string()
    }

    #[test]
    fn each_benchmark_gives_round_trips() {
        let osu = "# OSU MPI Latency Test v5.6.3\n# Size          Latency (us)\n0                       1.02\n8    1.10\n";
        assert_eq!(of(osu), [(1, 0, 2.04), (1, 8, 2.2)]);
        let imb = "# Benchmarking PingPong\n# #processes = 2\n       #bytes #repetitions      t[usec]   Mbytes/sec\n            0         \
                   1000         2.50         0.00\n           64         1000         3.00        21.33\n# Benchmarking PingPing\n \
                   #bytes #repetitions t[usec] Mbytes/sec\n  0 1000 9.0 0.0\n";
        assert_eq!(of(imb), [(1, 0, 5.0), (1, 64, 6.0)]);
        let skampi = "# begin result \"Pingpong_Send_Recv\"\ncount= 1        4       6.0       0.0      160       5.7       5.7\n\
                      # end result \"Pingpong_Send_Recv\"\n# begin result \"MPI_Bcast\"\ncount= 1 8 7.0 0.1 8\n";
        assert_eq!(of(skampi), [(1, 4, 6.0)]);
        let netgauge = "1 bytes \t -> 4.50 us \t == 1.78 Mbit/s\n";
        assert_eq!(of(netgauge), [(1, 1, 9.0)]);
        let long = "## Netgauge v2.4 - mode mpi - 2 processes\n2 - 1.00 1.10 1.05 2.00 (0.10 3) - 4.00 4.60 4.50 9.00 (0.2 4) - 1 2 3 4\n";
        assert_eq!(of(long), [(1, 2, 9.0)]);
        let nccl = "# nccl-tests sendrecv_perf\n#       size         count      type   redop    root     time   algbw   busbw #wrong     time\n\
                    #        (B)    (elements)\n        1024           256     float    none      -1    12.50    0.08    0.08      0    12.4\n";
        assert_eq!(of(nccl), [(1, 1024, 25.0)]);
    }

    #[test]
    fn perftests_latencies_are_medians_of_half_a_round_trip() {
        let title = "-----\n                    Send Latency Test\n Dual-port       : OFF\t\tDevice         : mlx5_0\n";
        let head = " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   99% \
                    percentile[usec]   99.9% percentile[usec] \n";
        let rows = " 2       1000          0.78           3.53         0.80     \t       0.81        \t0.05   \t\t0.87    \t\t3.53\n \
                    4096    1000          1.90           5.10         2.00     \t       2.05        \t0.08   \t\t2.20    \t\t5.10\n";
        assert_eq!(
            of(&[title, head, rows].concat()),
            [(1, 2, 1.6), (1, 4096, 4.0)]
        );
        let for_seconds = "  RDMA_Write Latency Test\n #bytes        #iterations       t_avg[usec]    tps average\n 8 3000 1.25 400000.1\n";
        assert_eq!(of(for_seconds), [(1, 8, 2.5)]);
        let expected = "perftest: found no time of a message, expected ib_send_lat or ib_write_lat";
        assert_eq!(
            refused(&[title, head, rows].concat().replace("Send", "RDMA_Read")),
            expected
        );
        let rate = "  Send BW Test\n #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]\n 65536 1000 11.0 11.0 0.1\n";
        assert_eq!(refused(rate), expected);
    }

    #[test]
    fn a_window_of_messages_needs_the_latency_of_its_size() {
        let bandwidth =
            read("# OSU MPI Bandwidth Test v7\n# Size Bandwidth (MB/s)\n1000 800\n").unwrap();
        let message = samples(std::slice::from_ref(&bandwidth))
            .unwrap_err()
            .to_string();
        assert_eq!(
            message,
            "osu_bw: found no osu_latency of 1kB, expected it beside the bandwidths"
        );
        let latency = read("# OSU MPI Latency Test\n1 2.0\n1000 3.5\n").unwrap();
        let all = samples(&[bandwidth, latency]).unwrap();
        // 64 messages of 1000 bytes at 800 bytes in a microsecond, and an answer that takes 1.5 us longer than the shortest.
        assert_eq!(
            all.at(PrttPoint::new(64, Time::ZERO, Bytes(1000))),
            [Time::from_micros(81.5)]
        );
    }

    #[test]
    fn what_is_no_benchmark_of_messages_is_refused() {
        assert!(
            refused("hello")
                .starts_with("found no samples and no output of a known benchmark, expected columns of samples (`flowcast fit --help`) or one of OSU, IMB")
        );
        assert_eq!(
            refused("# OSU MPI Allreduce Latency\n8 1.0\n"),
            "OSU: found no time of a message, expected osu_latency or osu_bw"
        );
        assert_eq!(
            refused("# OSU MPI Latency Test\n8 fast\n"),
            "line 2: found latency `fast`, expected a number above 0"
        );
        assert!(
            refused("# size time algbw\n8 1.0\n")
                .starts_with("nccl-tests: found no time of a message")
        );
    }
}
