//! Former spellings of flags: they work for one version, and a note names the spelling of today.

use std::{collections::BTreeSet, ffi::OsString};

use crate::terminal::output::say;

/// The command, the flag as it was, and as it is: the value follows what ends in `=`. A flag without one of today says what its
/// files say themselves: its values are inputs, and no note is printed. `-o*.html` is `-o` with a value that ends in `.html`.
/// Spellings that stay valid beside another one are aliases of their argument instead.
const FORMER: &str = "\
any: --confidence --level
any: --least --threshold
any: --ledger --accuracy
any: --max-time --time-limit
any: --members --replicates
any: --models --model
any: --plot --report
any: --poll --waiting poll
any: --seeds --replicates
any: --show-flows --rows
any: --show-messages --rows
any: --show-pieces --rows
any: --show-ranks --rows
any: --show-rows --rows
bench packet: --each-packet --unfold
bench sweep: --sets --count
bench: --runs --repetitions
collectives choose: --output --report
collectives choose: -o --report
compare: --assume-repeatable --spread 0%
compare: --noise --spread
compare: --run-noise --spread
convert: --to --format
demo: --output --report
demo: -o --report
doctor: --peer --connect
explain: --output --report
explain: -o --report
fit: --calls
fit: --cluster --only
fit: --import
fit: --patterns
fit: --prtt
fit: --regions
lab cable-check: --frames --count
mapping: --to --format
measure check: --level --false-alarms
measure clocks: --bursts --count
measure clocks: --exchanges --round-trips
measure clocks: --hold --delay
measure clocks: --messages --round-trips
measure conflicts: --kinds --only
measure conflicts: --most --flows
measure p2p: --budget --adaptive --time-limit
measure p2p: --messages --burst
measure p2p: --most-messages --limit
measure pairs: --again --show
measure pairs: --topology --write topology=
predict: --judged --holdout
predict: --messages --write messages=
predict: --noise-runs --replicates
predict: --pairs --write pairs=
predict: --paraver --write paraver=
predict: --perfetto --write perfetto=
predict: --ranks --write ranks=
rails advise: --messages --burst
rails bench: --count-size --size
rails bench: --csv --output
rails bench: --messages --burst
rails bench: --point-time --span
rails bench: --rail --connect
rails bench: --rounds --repetitions
rails bench: --runs --repetitions
rails bench: --schedulers --scheduler
rails compare: --largest --max-size
rails compare: --messages --messages-per-set
rails compare: --schedulers --scheduler
rails compare: --sets --count
rails compare: --window --span
record: --budget --max-file-size
record: --max-size --max-file-size
sensitivity: --most-walks --limit
sensitivity: --output --report
sensitivity: -o --report
sweep: --output*.html --report
sweep: -o*.html --report
validate app: --output --report
validate app: --record-runs --recordings
validate app: --runs --repetitions
validate app: -o --report
validate chart: --title --name
validate margins: --by --accuracy
validate pattern: --instances --count
validate pattern: --output --report
validate pattern: --set
validate pattern: -o --report";

/// The rows of the table for a command, whose words have a space behind: each flag as it was, and as it is.
fn former(command: &str) -> impl Iterator<Item = (&'static str, &'static str)> {
    let rows = FORMER.lines().filter_map(|row| row.split_once(": "));
    let own = rows.filter(move |(of, _)| *of == "any" || command.starts_with(&format!("{of} ")));
    own.map(|(_, flags)| flags.split_once(' ').unwrap_or((flags, "")))
}

/// The words of a command line with the spellings of today; a note names each former one that has another now, once.
pub(crate) fn in_spellings_of_today(words: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let words: Vec<OsString> = words.collect();
    let command = command_of(&words);
    let mut today = Vec::new();
    let mut noted = BTreeSet::new();
    let mut left = words.into_iter().peekable();
    while let Some(word) = left.next() {
        if word == "--" {
            today.push(word);
            break;
        }
        let (flag, value) = flag_and_value(word.to_str().unwrap_or_default());
        let next = left.peek().and_then(|next| next.to_str());
        let is_former = |was: &str| {
            let (was, ending) = was.split_once('*').unwrap_or((was, ""));
            was == flag && value.or(next).unwrap_or_default().ends_with(ending)
        };
        match former(&command).find(|(was, _)| is_former(was)) {
            None => today.push(word),
            Some((was, now)) => {
                // What a file says itself may still be said.
                if noted.insert(was) && !now.is_empty() {
                    say!("flowcast: note: {} is now {now}", was.replace('*', " FILE"));
                }
                let value = value.map(OsString::from);
                let value = value.or_else(|| now.ends_with('=').then(|| left.next()).flatten());
                today.extend(written(now, value));
            }
        }
    }
    today.extend(left);
    today
}

/// A flag, and the value in the same word: `--output=a`, `-oa`.
fn flag_and_value(word: &str) -> (&str, Option<&str>) {
    if word.starts_with("--") {
        return word
            .split_once('=')
            .map_or((word, None), |(flag, value)| (flag, Some(value)));
    }
    match word.split_at_checked(2) {
        Some((flag, value)) if flag.starts_with('-') && !value.is_empty() => {
            (flag, Some(value.strip_prefix('=').unwrap_or(value)))
        }
        _ => (word, None),
    }
}

/// A flag of today, with a value that stands in the same word.
fn written(now: &str, value: Option<OsString>) -> Vec<OsString> {
    let mut words: Vec<OsString> = now.split_whitespace().map(OsString::from).collect();
    match (words.last_mut(), value) {
        (None, value) => words.extend(value),
        (Some(_), None) => {}
        (Some(last), Some(value)) => {
            if !now.ends_with('=') {
                last.push("=");
            }
            last.push(value);
        }
    }
    words
}

/// The command and what is below it, each with a space behind.
fn command_of(words: &[OsString]) -> String {
    let mut command = String::new();
    let mut words = words.iter().skip(1);
    while let Some(word) = words.next() {
        if word == "--tables" {
            words.next();
        } else if !word.as_encoded_bytes().starts_with(b"-") {
            command += word.to_str().unwrap_or_default();
            command.push(' ');
        }
    }
    command
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use clap::CommandFactory;

    use super::*;
    use crate::commands::Cli;

    fn today(words: &str) -> String {
        let words = words.split(' ').map(OsString::from);
        let today = in_spellings_of_today(words);
        today.join(OsStr::new(" ")).into_string().unwrap()
    }

    #[test]
    fn former_spellings_become_those_of_today() {
        for (was, now) in [
            (
                "flowcast predict a --show-ranks 3",
                "flowcast predict a --rows 3",
            ),
            (
                "flowcast explain path a --show-rows=all",
                "flowcast explain path a --rows=all",
            ),
            (
                "flowcast --tables csv predict a --ranks r.csv",
                "flowcast --tables csv predict a --write ranks=r.csv",
            ),
            (
                "flowcast predict a --paraver=a.prv",
                "flowcast predict a --write paraver=a.prv",
            ),
            (
                "flowcast generate halo --ranks 4",
                "flowcast generate halo --ranks 4",
            ),
            (
                "flowcast fit --prtt=a.csv --json",
                "flowcast fit a.csv --json",
            ),
            ("flowcast fit --regions a b -o c", "flowcast fit a b -o c"),
            (
                "flowcast compare a b --assume-repeatable",
                "flowcast compare a b --spread 0%",
            ),
            ("flowcast demo -oa.html", "flowcast demo --report=a.html"),
            (
                "flowcast validate app -o a.html -- b -o c",
                "flowcast validate app --report a.html -- b -o c",
            ),
            (
                "flowcast sweep a -o b.html",
                "flowcast sweep a --report b.html",
            ),
            (
                "flowcast sweep a --output=b.csv",
                "flowcast sweep a --output=b.csv",
            ),
            ("flowcast fit a -o b.html", "flowcast fit a -o b.html"),
            (
                "flowcast measure p2p --budget=2s",
                "flowcast measure p2p --adaptive --time-limit=2s",
            ),
            (
                "flowcast record -o a -- run --budget 3",
                "flowcast record -o a -- run --budget 3",
            ),
        ] {
            assert_eq!(today(was), now);
        }
    }

    #[test]
    fn no_command_has_a_former_spelling_and_each_has_that_of_today() {
        for row in FORMER.lines() {
            let (of, flags) = row.split_once(": ").unwrap();
            let (was, now) = flags.split_once(' ').unwrap_or((flags, ""));
            let mut command = Cli::command();
            for name in of.split_whitespace().filter(|name| *name != "any") {
                let below = command.find_subcommand(name).cloned();
                command = below.unwrap_or_else(|| panic!("no command {of}"));
            }
            let commands = all(command);
            let has = |spelled: &str| {
                commands.iter().any(|command| {
                    command.get_arguments().any(|flag| {
                        let long = flag.get_long().map(|long| format!("--{long}"));
                        let short = flag.get_short().map(|short| format!("-{short}"));
                        [long, short].contains(&Some(spelled.to_owned()))
                    })
                })
            };
            assert!(!has(was), "{of} {was}");
            assert!(
                now.is_empty() || has(now.split(' ').next().unwrap()),
                "{of} {now}"
            );
        }
    }

    fn all(command: clap::Command) -> Vec<clap::Command> {
        let below: Vec<_> = command.get_subcommands().cloned().flat_map(all).collect();
        std::iter::once(command).chain(below).collect()
    }
}
