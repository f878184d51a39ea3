//! Banners and tables of each benchmark.

use super::{
    Benchmark::{self, *},
    LineMark::{self, Banner, Columns, End, Setting},
    LogSection, netpipe,
};

/// NetPIPE's default test: the receiver answers each message.
const PING_PONG: &str = "ping-pong";

/// Netgauge's pattern of messages between two processes.
const ONE_ONE: &str = "one_one";

/// Operations of perftest. The titles of its tests start with them.
const VERBS: [&str; 6] = [
    "Send",
    "Send_imm",
    "RDMA_Write",
    "RDMA_Write_imm",
    "RDMA_Read",
    "Atomic",
];

/// Returns the benchmark that writes such a line, and the kind of the line.
pub(crate) fn mark<'a>(words: &[&'a str]) -> Option<(Benchmark, LineMark<'a>)> {
    const BOTH: LineMark<'_> = Setting("mode", "both directions at the same time");
    Some(match words {
        ["#", "OSU" | "OMB", test @ ..] => (Osu, Banner(without_version(test))),
        ["#", "Window" | "window", "size:" | "Size:", window]
        | [
            "#",
            "[",
            "pairs:",
            _,
            "]",
            "[",
            "window",
            "size:",
            window,
            "]",
        ] => (Osu, Setting(WINDOW, window)),
        ["#", "Size", rest @ ..] if rest.iter().any(|word| is_unit_of_osu(word)) => (Osu, Columns),
        ["#", "Benchmarking", name, ..] => (Imb, Banner((*name).to_owned())),
        ["#", "#processes", "=", count, ..] => {
            (Imb, Setting("processes", count.trim_end_matches(';')))
        }
        ["#", "(", count, "groups", "of", ..] => (Imb, Setting("groups", count)),
        _ if words.contains(&"#repetitions") => (Imb, Columns),
        [verb, middle @ .., "Test"] if VERBS.contains(verb) => {
            let is_one = middle.contains(&"Latency") || middle.contains(&"BW");
            (Perftest, is_one.then(|| Banner(words.join(" ")))?)
        }
        ["#bytes", ..] if words.contains(&"#iterations") => (Perftest, Columns),
        ["begin", "result", name, ..] | ["#", "begin", "result", name, ..] => {
            (Skampi, Banner(name.trim_matches('"').to_owned()))
        }
        ["end", "result", ..] | ["#", "end", "result", ..] => (Skampi, End),
        ["#", "Collective", "test", "starting:", name, ..] => {
            (NcclTests, Banner(base_name(name).to_owned()))
        }
        ["#", "Rank", rank, "Group" | "Pid", ..] => (NcclTests, Setting("last rank", rank)),
        ["#", "Collective", "test", "concluded:", ..]
        | ["#", "Out", "of", "bounds", "values", ..] => (NcclTests, End),
        ["#", "size", ..] if words.contains(&"algbw") => (NcclTests, Columns),
        ["Now", "starting", "the", "main", "loop"] | ["Start", "testing", "with", ..] => {
            (Netpipe, Banner(PING_PONG.to_owned()))
        }
        ["Streaming", ..] => (Netpipe, Setting("mode", "streaming")),
        ["Bidirectional" | "Bi-directional", ..]
        | ["Passing", "data", "in", "both", "directions", ..] => (Netpipe, BOTH),
        ["##", "Netgauge", ..] => (Netgauge, Banner(ONE_ONE.to_owned())),
        _ => (Reprompi, reprompi(words)?),
    })
}

/// Name of the setting for the window: the number of messages in a row in OSU's bandwidth tests.
pub(crate) const WINDOW: &str = "window";

/// Returns `true` if a setting before a test applies to it. Windows only apply to bandwidth tests.
pub(super) fn is_setting_of(setting: &str, test: Option<&str>) -> bool {
    let test = test.unwrap_or_default();
    setting != WINDOW || test.contains("Bandwidth") || test.contains("bw")
}

/// Returns the window that a command of `osu_bw` requests.
pub(super) fn window_of_command<'w>(words: &[&'w str]) -> Option<&'w str> {
    let program = words.iter().position(|word| base_name(word) == "osu_bw")?;
    let mut options = words[program..].iter();
    options.find(|word| matches!(**word, "-W" | "--window-size"))?;
    options.next().copied()
}

/// Returns the number that distinguishes the rows of a table: the first number, after SKaMPI's pairs `variable= value` if
/// there are any.
pub(super) fn number_of_row(words: &[&str]) -> Option<u64> {
    match words {
        ["#", rest @ ..] => number_of_row(rest),
        [name, _, rest @ ..] if name.ends_with('=') => number_of_row(rest),
        [first, ..] => first.trim_end_matches(':').parse().ok(),
        [] => None,
    }
}

/// Returns the words of a test's name before the version, such as `(Version 2.0)` or `v7.3`.
fn without_version(test: &[&str]) -> String {
    let end = test
        .iter()
        .position(|word| {
            let number = word.strip_prefix(['v', 'V']);
            let is_number =
                number.is_some_and(|rest| rest.starts_with(|sign: char| sign.is_ascii_digit()));
            is_number || word.starts_with("(Version")
        })
        .unwrap_or(test.len());
    test[..end].join(" ")
}

fn is_unit_of_osu(word: &str) -> bool {
    word.ends_with("(us)") || word.contains("MB/s")
}

/// Columns with times in the tables of ReproMPI. In a summary, the median takes precedence over the mean, the minimum and
/// the maximum.
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

/// Returns `true` if the benchmark itself reports wrong data in the messages of a row.
pub(crate) fn is_void(section: &LogSection<'_>, words: &[&str]) -> bool {
    let counted: &[&str] = match section.benchmark {
        Osu => return words.contains(&"Fail"),
        Imb => &["defects"],
        NcclTests => &["#wrong", "error"],
        _ => &[],
    };
    let mut counts = counted
        .iter()
        .filter_map(|name| section.word(words, name)?.parse().ok());
    counts.any(|errors: f64| errors > 0.0)
}

/// Returns the call that a row of ReproMPI measures.
pub(super) fn call_of_row<'w>(section: &LogSection<'_>, words: &[&'w str]) -> Option<&'w str> {
    let at = section
        .column("test")
        .filter(|_| section.benchmark == Reprompi)?;
    words.get(at).copied()
}

/// Returns the benchmark and the test of a row that identifies them without a banner.
pub(super) fn lone_row(words: &[&str]) -> Option<(Benchmark, &'static str)> {
    match words {
        [size, "bytes", "->", _, "us", "==", ..] if is_whole(size) => Some((Netgauge, ONE_ONE)),
        _ => netpipe::row(words).map(|_| (Netpipe, PING_PONG)),
    }
}

/// Returns `true` if a line is a row of the section's table: it has the same number of words as earlier rows, or a size and
/// a number.
pub(super) fn is_row(section: &LogSection<'_>, words: &[&str]) -> bool {
    let Some(first) = words.first() else {
        return false;
    };
    match section.benchmark {
        Skampi => {
            first.ends_with('=')
                || words.get(1).is_some_and(|word| word.ends_with('=')) && *first == "#"
        }
        Reprompi => {
            let call = call_of_row(section, words).unwrap_or_default();
            let is_call = !call.is_empty()
                && call
                    .chars()
                    .all(|sign| sign.is_ascii_alphanumeric() || sign == '_');
            is_call && words.len() > 2 && words.last().is_some_and(|word| is_number(word))
        }
        Netpipe => netpipe::row(words).is_some(),
        Netgauge => {
            is_whole(first) && matches!(words[1..], ["-", ..] | ["bytes", "->", _, "us", ..])
        }
        _ => {
            is_whole(first)
                && section.rows.first().map_or_else(
                    || words.get(1).is_some_and(|word| is_number(word)),
                    |row: &super::LogRow<'_>| row.words.len() == words.len(),
                )
        }
    }
}

pub(super) fn is_whole(word: &str) -> bool {
    word.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_number(word: &str) -> bool {
    word.parse::<f64>().is_ok()
}

/// Returns a program's name without the folder and the signs at the end of a command.
pub(super) fn base_name(word: &str) -> &str {
    let word = word.trim_matches([';', ':', ',', '"', '\'', '`']);
    word.rsplit('/').next().unwrap_or(word)
}

/// Returns the benchmark of a program such as `osu_latency`, `ib_send_lat` or `sendrecv_perf`.
pub(super) fn program_of(name: &str) -> Option<Benchmark> {
    let is_name = name
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    match name {
        _ if !is_name => None,
        _ if name.starts_with("osu_") => Some(Osu),
        _ if name.ends_with("_perf") => Some(NcclTests),
        _ if name.ends_with("_lat") || name.ends_with("_bw") => Some(Perftest),
        _ => None,
    }
}
