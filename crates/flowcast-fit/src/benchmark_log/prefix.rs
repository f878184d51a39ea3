//! Prefixes that launchers and loggers put before each line: the rank or node that wrote it, the time, or both.
//!
//! | prefix | writer |
//! |---|---|
//! | `[0] ` | Hydra and Intel MPI (`-prepend-rank`, `-l`) |
//! | `[1,0]<stdout>:`, `[job@1,0]<stdout>: ` | Open MPI and PRRTE (`--tag-output`, `--output tag`) |
//! | `0: `, ` 10: ` | Slurm, Flux, jsrun (`--label`) |
//! | `node1: `, `node1 0: ` | pdsh, clush, PALS |
//! | `2024-05-01T10:00:00.5Z `, `[10:00:00] `, `May 01 10:00:00 `, `1714557600.12 ` | `ts`, Slurm, journals, containers, continuous integration |

use super::formats::is_whole;

/// The prefix of one line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct LinePrefix {
    /// Labels of rank and node as in the line. Empty without a label.
    pub label: String,
    /// `true` if a time precedes the line.
    pub has_time: bool,
}

impl LinePrefix {
    /// Splits a line into its prefix and the rest.
    pub(super) fn split(line: &str) -> (LinePrefix, &str) {
        let (mut prefix, mut rest) = (LinePrefix::default(), line);
        // There may be a time and a label in either order, and labels of two launchers.
        for _ in 0..4 {
            if let Some(after) = after_time(rest) {
                (prefix.has_time, rest) = (true, after);
            } else if let Some(after) = after_label(rest) {
                prefix.label += rest[..rest.len() - after.len()].trim();
                rest = after;
            } else {
                break;
            }
        }
        (prefix, rest)
    }
}

/// Formats of a time. `#` is a digit, `_` a digit or a space, `A` a letter, and `~` any number of digits, signs and a zone.
const TIMES: [&str; 11] = [
    "####-##-##T##:##:##~",
    "####-##-## ##:##:##~",
    "####/##/## ##:##:##~",
    "[####-##-##T##:##:##~]",
    "[####-##-## ##:##:##~]",
    "[##:##:##~]",
    "##:##:##~",
    "AAA _# ##:##:##~",
    "AAA AAA _# ##:##:## ####",
    "[AAA AAA _# ##:##:## ####]",
    "##########.#~",
];

fn after_time(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let rest = TIMES.iter().find_map(|form| after_form(line, form))?;
    let ends = rest.is_empty() || rest.starts_with([' ', '\t', '[', '<', ':']);
    let rest = rest.strip_prefix(':').unwrap_or(rest).trim_start();
    // Skips a container's stream, or the node and the program of a system log.
    let rest = rest
        .strip_prefix("stdout F ")
        .unwrap_or_else(|| after_program(rest));
    ends.then_some(rest)
}

fn after_form<'a>(line: &'a str, form: &str) -> Option<&'a str> {
    let mut rest = line;
    for sign in form.chars() {
        let next = rest.chars().next();
        let is_right = match sign {
            '~' => {
                rest = rest.trim_start_matches(|sign: char| {
                    sign.is_ascii_digit() || ".,+-:Z".contains(sign)
                });
                continue;
            }
            '#' => next.is_some_and(|sign| sign.is_ascii_digit()),
            '_' => next.is_some_and(|sign| sign == ' ' || sign.is_ascii_digit()),
            'A' => next.is_some_and(|sign| sign.is_ascii_alphabetic()),
            own => next == Some(own),
        };
        rest = is_right.then(|| rest.get(1..))??;
    }
    Some(rest)
}

/// Returns the rest after `NODE PROGRAM[PID]: `, or the whole line.
fn after_program(line: &str) -> &str {
    let mut parts = line.splitn(3, ' ');
    match (parts.next(), parts.next(), parts.next()) {
        (Some(node), Some(program), Some(rest))
            if is_name(node) && program.ends_with("]:") && program.contains('[') =>
        {
            rest
        }
        _ => line,
    }
}

fn after_label(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let rest = after_brackets(line).or_else(|| after_stream(line));
    rest.or_else(|| after_rank(line))
        .or_else(|| after_node(line))
}

/// Skips a prefix such as `[0] `, `[1,0]<stdout>:` or `[1,0][node:123]<stdout>: `.
fn after_brackets(line: &str) -> Option<&str> {
    let (mut rest, mut last) = (line, "");
    while let Some((inside, after)) = rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        if inside.is_empty()
            || !inside
                .chars()
                .all(|sign| sign.is_ascii_alphanumeric() || "@,.:_-".contains(sign))
        {
            return None;
        }
        (rest, last) = (after, inside);
    }
    let is_rank = !last.is_empty() && is_whole(last);
    let after_rank = rest.strip_prefix(' ').or(rest.is_empty().then_some(""));
    after_stream(rest).or(after_rank.filter(|_| is_rank))
}

/// Skips a prefix such as `<stdout>:`, and the space after it, if there is one.
fn after_stream(line: &str) -> Option<&str> {
    let rest = ["<stdout>:", "<stderr>:", "<stddiag>:"]
        .iter()
        .find_map(|stream| line.strip_prefix(stream))?;
    Some(rest.strip_prefix(' ').unwrap_or(rest))
}

/// Skips a prefix such as `0: `, or `0:` if no time of day follows.
fn after_rank(line: &str) -> Option<&str> {
    let (rank, rest) = line.split_once(':')?;
    let is_rank = !rank.is_empty() && is_whole(rank);
    let digits = rest.trim_start_matches(|sign: char| sign.is_ascii_digit());
    let first = rest.split_whitespace().next().unwrap_or_default();
    // NetPIPE numbers its own rows.
    let is_row_of_netpipe = rest.contains(" times -->") && !first.ends_with(':');
    let is_one = is_rank && !(digits.starts_with(':') || is_row_of_netpipe);
    is_one.then(|| rest.strip_prefix(' ').unwrap_or(rest))
}

/// Skips a prefix such as `node1: ` or `node1 0: `. The name of a node must contain a digit.
fn after_node(line: &str) -> Option<&str> {
    let (label, rest) = line.split_once(": ")?;
    let (node, rank) = label.split_once(' ').unwrap_or((label, ""));
    let has_digit = node.bytes().any(|byte| byte.is_ascii_digit());
    (is_name(node) && has_digit && is_whole(rank)).then_some(rest)
}

fn is_name(text: &str) -> bool {
    text.starts_with(|sign: char| sign.is_ascii_alphabetic())
        && text
            .chars()
            .all(|sign| sign.is_ascii_alphanumeric() || "._-".contains(sign))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_of_launchers_and_loggers_are_split_off() {
        for (line, label, rest) in [
            ("[0] 8 1.1", "[0]", "8 1.1"),
            ("[1,0]<stdout>:8 1.1", "[1,0]<stdout>:", "8 1.1"),
            (
                "[prterun-node1-77@1,0]<stdout>: # OSU",
                "[prterun-node1-77@1,0]<stdout>:",
                "# OSU",
            ),
            (
                "[1,0][node1:77]<stdout>: 8",
                "[1,0][node1:77]<stdout>:",
                "8",
            ),
            ("0: # OSU", "0:", "# OSU"),
            (" 10: 8 1.1", "10:", "8 1.1"),
            ("   0:8   1.1", "0:", "8   1.1"),
            ("node1: 8 1.1", "node1:", "8 1.1"),
            ("nid000001 0: 8 1.1", "nid000001 0:", "8 1.1"),
            ("2024-05-01T10:00:00.123+02:00 8 1.1", "", "8 1.1"),
            ("2024-05-01 10:00:00,123 8 1.1", "", "8 1.1"),
            ("[2024-05-01T10:00:00.123] 8 1.1", "", "8 1.1"),
            ("2024-05-01T10:00:00Z stdout F 8 1.1", "", "8 1.1"),
            ("[10:00:00] 8 1.1", "", "8 1.1"),
            ("00:00:01 8 1.1", "", "8 1.1"),
            ("May  1 10:00:00 8 1.1", "", "8 1.1"),
            ("May 01 10:00:00 node1 osu[77]: 8 1.1", "", "8 1.1"),
            ("1714557600.123456 8 1.1", "", "8 1.1"),
            (
                "Wed May 01 10:00:00 2024[1,0]<stdout>:8 1.1",
                "[1,0]<stdout>:",
                "8 1.1",
            ),
            ("Wed May 01 10:00:00 2024<stdout>:8", "<stdout>:", "8"),
            ("[0]", "[0]", ""),
            (
                "0:   0: 1 bytes 20 times --> 4.00 Mbps",
                "0:",
                "  0: 1 bytes 20 times --> 4.00 Mbps",
            ),
            ("[0] 2024-05-01 10:00:00 8 1.1", "[0]", "8 1.1"),
        ] {
            let (prefix, found) = LinePrefix::split(line);
            assert_eq!((prefix.label.as_str(), found), (label, rest), "{line}");
            let has_time = line.contains(":00") || line.starts_with("1714557600");
            assert_eq!(prefix.has_time, has_time, "{line}");
        }
    }

    #[test]
    fn lines_of_benchmarks_have_no_prefix() {
        for line in [
            "# OSU MPI Latency Test v5.8",
            "8                       1.10",
            "#bytes #repetitions t[usec]",
            "  0:       1 bytes   2000 times -->      4.00 Mbps in       1.91 usec",
            "nprocs: 4, min: 67 ms",
            "2 - 1.00 1.10 1.05 2.00 (0.10 3) - 4.00",
            "count= 1        4       6.0       0.0",
            "# [ pairs: 2 ] [ window size: 64 ]",
            "Proc 0 is on host node1",
        ] {
            assert_eq!(LinePrefix::split(line), (LinePrefix::default(), line));
        }
    }
}
