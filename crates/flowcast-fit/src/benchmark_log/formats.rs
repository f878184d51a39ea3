//! How each benchmark writes its banners and its tables.
//!
//! | benchmark | banner | names of columns |
//! |---|---|---|
//! | OSU 3 to 7 | `# OSU MPI-CUDA Latency Test v7.3`, `# OMB Python MPI osu_latency Test` | `# Size  Latency (us)` |
//! | IMB | `# Benchmarking PingPong` | `#bytes #repetitions t[usec] ...` |
//! | perftest | `RDMA_Write Latency Test` | `#bytes #iterations t_min[usec] ...` |
//! | SKaMPI | `# begin result "Pingpong_Send_Recv"` | none |
//! | ReproMPI | none: rows name the call | `test nrep count runtime_sec` |
//! | nccl-tests from 2.17 | `# Collective test starting: sendrecv_perf` | `# size count type redop root time ...` |
//! | NetPIPE | `Now starting the main loop`, `Start testing with ...` | none |
//! | Netgauge | `## Netgauge v2.4 - mode mpi - 2 processes` | none |

use super::{
    Benchmark,
    LineMark::{self, Banner, Columns, End, Setting},
    LogSection, netpipe,
};

/// The benchmark that writes such a line, and what the line is.
pub(crate) fn mark<'a>(words: &[&'a str]) -> Option<(Benchmark, LineMark<'a>)> {
    let of = |benchmark| move |mark| (benchmark, mark);
    let found = osu(words).map(of(Benchmark::Osu));
    found
        .or_else(|| imb(words).map(of(Benchmark::Imb)))
        .or_else(|| perftest(words).map(of(Benchmark::Perftest)))
        .or_else(|| skampi(words).map(of(Benchmark::Skampi)))
        .or_else(|| reprompi(words).map(of(Benchmark::Reprompi)))
        .or_else(|| nccl_tests(words).map(of(Benchmark::NcclTests)))
        .or_else(|| netpipe::mark(words).map(of(Benchmark::Netpipe)))
        .or_else(|| netgauge(words).map(of(Benchmark::Netgauge)))
}

fn osu<'a>(words: &[&'a str]) -> Option<LineMark<'a>> {
    match words {
        ["#", "OSU" | "OMB", test @ ..] => {
            let is_version = |word: &&str| {
                word.starts_with("(Version")
                    || word
                        .strip_prefix(['v', 'V'])
                        .is_some_and(|rest| rest.starts_with(|sign: char| sign.is_ascii_digit()))
            };
            let end = test.iter().position(is_version).unwrap_or(test.len());
            Some(Banner(test[..end].join(" ")))
        }
        ["#", "Size", rest @ ..] => {
            let is_unit = |word: &&str| word.ends_with("(us)") || word.contains("MB/s");
            rest.iter().any(is_unit).then_some(Columns)
        }
        _ => None,
    }
}

fn imb<'a>(words: &[&'a str]) -> Option<LineMark<'a>> {
    match words {
        ["#", "Benchmarking", name, ..] => Some(Banner((*name).to_owned())),
        ["#", "#processes", "=", count, ..] => {
            Some(Setting("processes", count.trim_end_matches(';')))
        }
        _ if words.contains(&"#repetitions") => Some(Columns),
        _ => None,
    }
}

fn perftest<'a>(words: &[&'a str]) -> Option<LineMark<'a>> {
    const VERBS: [&str; 6] = [
        "Send",
        "Send_imm",
        "RDMA_Write",
        "RDMA_Write_imm",
        "RDMA_Read",
        "Atomic",
    ];
    match words {
        [verb, middle @ .., "Test"] if VERBS.contains(verb) => {
            let is_one = middle.contains(&"Latency") || middle.contains(&"BW");
            is_one.then(|| Banner(words.join(" ")))
        }
        ["#bytes", ..] if words.contains(&"#iterations") => Some(Columns),
        _ => None,
    }
}

fn skampi<'a>(words: &[&'a str]) -> Option<LineMark<'a>> {
    let words = words.strip_prefix(&["#"]).unwrap_or(words);
    match words {
        ["begin", "result", name, ..] => Some(Banner(name.trim_matches('"').to_owned())),
        ["end", "result", ..] => Some(End),
        _ => None,
    }
}

/// Columns of times in the tables of ReproMPI; of a summary the median counts, else the mean, the minimum or the maximum.
pub(crate) const REPROMPI_TIMES: [&str; 5] = [
    "runtime_sec",
    "median_sec",
    "mean_sec",
    "min_sec",
    "max_sec",
];

fn reprompi<'a>(words: &[&'a str]) -> Option<LineMark<'a>> {
    let has = |name: &str| words.contains(&name);
    if let Some(setting) = words.first()?.strip_prefix("#@") {
        let (name, value) = setting.split_once('=')?;
        let known = ["datatype_size_bytes", "pingpong_ranks"];
        let known = known.into_iter().find(|known| *known == name)?;
        return Some(Setting(known, value));
    }
    let has_time =
        REPROMPI_TIMES.into_iter().any(has) || has("loc_tstart_sec") && has("loc_tend_sec");
    (has("test") && (has("count") || has("msize_bytes")) && has_time).then_some(Columns)
}

/// The call of a row of ReproMPI.
pub(super) fn call_of_row<'w>(section: &LogSection<'_>, words: &[&'w str]) -> Option<&'w str> {
    let at = section
        .column("test")
        .filter(|_| section.benchmark == Benchmark::Reprompi)?;
    words.get(at).copied()
}

fn nccl_tests<'a>(words: &[&'a str]) -> Option<LineMark<'a>> {
    match words {
        ["#", "Collective", "test", "starting:", name, ..] => {
            Some(Banner(base_name(name).to_owned()))
        }
        ["#", "Collective", "test", "concluded:", ..]
        | ["#", "Out", "of", "bounds", "values", ..] => Some(End),
        ["#", "size", ..] if words.contains(&"algbw") => Some(Columns),
        _ => None,
    }
}

fn netgauge<'a>(words: &[&'a str]) -> Option<LineMark<'a>> {
    match words {
        ["##", "Netgauge", ..] => Some(Banner(ONE_ONE.to_owned())),
        _ => None,
    }
}

/// Netgauge's pattern of messages between two processes.
const ONE_ONE: &str = "one_one";

/// The benchmark and the test of a row that shows them by itself.
pub(super) fn lone_row(words: &[&str]) -> Option<(Benchmark, &'static str)> {
    match words {
        [size, "bytes", "->", _, "us", "==", ..] if is_whole(size) => {
            Some((Benchmark::Netgauge, ONE_ONE))
        }
        _ => netpipe::lone_row(words).map(|test| (Benchmark::Netpipe, test)),
    }
}

/// Whether a line is a row of the section's table: as many words as in the rows before, or a size and a number.
pub(super) fn is_row(section: &LogSection<'_>, words: &[&str]) -> bool {
    let Some(first) = words.first() else {
        return false;
    };
    let is_like_others = |row: &super::LogRow<'_>| row.words.len() == words.len();
    match section.benchmark {
        Benchmark::Skampi => {
            first.ends_with('=')
                || words.get(1).is_some_and(|word| word.ends_with('=')) && *first == "#"
        }
        Benchmark::Reprompi => {
            let call = call_of_row(section, words).unwrap_or_default();
            let is_call = !call.is_empty()
                && call
                    .chars()
                    .all(|sign| sign.is_ascii_alphanumeric() || sign == '_');
            is_call && words.len() > 2 && words.last().is_some_and(|word| is_number(word))
        }
        Benchmark::Netpipe => netpipe::row(words).is_some(),
        Benchmark::Netgauge => {
            is_whole(first) && matches!(words[1..], ["-", ..] | ["bytes", "->", _, "us", ..])
        }
        _ => {
            let is_first = || words.get(1).is_some_and(|word| is_number(word));
            is_whole(first) && section.rows.first().map_or_else(is_first, is_like_others)
        }
    }
}

fn is_whole(word: &str) -> bool {
    word.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_number(word: &str) -> bool {
    word.parse::<f64>().is_ok()
}

/// A program's name without the folder and what ends a command.
pub(super) fn base_name(word: &str) -> &str {
    let word = word.trim_matches([';', ':', ',', '"', '\'', '`']);
    word.rsplit('/').next().unwrap_or(word)
}

/// The benchmark that a program belongs to: `osu_latency`, `ib_send_lat`, `sendrecv_perf`.
pub(super) fn program_of(name: &str) -> Option<Benchmark> {
    let is_name = name
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    match name {
        _ if !is_name => None,
        _ if name.starts_with("osu_") => Some(Benchmark::Osu),
        _ if name.ends_with("_perf") => Some(Benchmark::NcclTests),
        _ if name.ends_with("_lat") || name.ends_with("_bw") => Some(Benchmark::Perftest),
        _ => None,
    }
}
