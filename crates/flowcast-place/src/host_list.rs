//! Lists of hosts in the formats of schedulers and launchers, and lists of positions in a topology.
//!
//! Commas, blanks or line ends separate hosts. `#` starts a comment.
//!
//! | form | meaning | written by |
//! |---|---|---|
//! | `n[001-032,040]r[1-2]` | all combinations, the last brackets varying fastest, with leading zeros | Slurm |
//! | `n[1-3]x4`, `n1*4` | four slots on each | Slurm |
//! | `n1:4` | four slots | MPICH, Open MPI's `--host` |
//! | `n1 slots=4 max_slots=8` | four slots, for all preceding hosts on the line without a number of their own | Open MPI |
//! | `n1`, a host on each line, some repeatedly | one slot for each line | PBS' node file |

use std::collections::{BTreeMap, BTreeSet};

use flowcast_units::Node;
use thiserror::Error;

use super::{job::Job, matrix_file::is_number, rule};

/// Maximum number of hosts in a list, and in one entry.
const MOST_HOSTS: usize = 1 << 16;

/// Maximum number of positions in a list.
const MOST_POSITIONS: usize = 1 << 20;

/// Maximum number of digits of a number in brackets.
const MOST_DIGITS: usize = 18;

/// Maximum number of slots of a host.
const MOST_SLOTS: u32 = 1 << 24;

const ENTRY: &str = "a host such as n1, n[001-032,040], n1:4 or n1 slots=4, not only digits";

/// Options of launchers that have no effect on the mapping.
const OPTIONS: [&str; 5] = ["user", "username", "port", "ifname", "binding"];

/// Error for a rejected list of hosts or positions, or a rejected mapping.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{place}: found {found}, expected {expected}")]
pub struct HostListError {
    /// Place of the error: the file or option of the text, then the line and, for a single word, the column in characters.
    /// Lines and columns count from 1 (`hosts.txt:3:5`).
    pub place: String,
    /// The rejected text in backquotes, or the missing part, such as `no host`.
    pub found: String,
    /// Description of the accepted text, with an example.
    pub expected: String,
}

impl HostListError {
    /// Creates an error for a text as a whole.
    pub(super) fn whole(list: &str, found: impl ToString, expected: impl ToString) -> Self {
        HostListError {
            place: list.to_owned(),
            found: found.to_string(),
            expected: expected.to_string(),
        }
    }
}

/// Reads a job on the hosts of a list, in list order, each once. `list` is the file or option of the list, for messages.
/// Either all hosts have slots or none.
///
/// # Errors
/// The first invalid part of the list, a host that is named twice outside of a PBS node file, and a list without a host.
pub fn hosts(list: &str, text: &str) -> Result<Job, HostListError> {
    let is_node_file = is_node_file(text);
    let mut job = Job::default();
    let mut numbers: BTreeMap<String, usize> = BTreeMap::new();
    for entry in entries(list, text)? {
        for name in entry.names()? {
            let number = *numbers.entry(name.clone()).or_insert(job.hosts.len());
            if number == job.hosts.len() {
                if number == MOST_HOSTS {
                    return Err(entry.wrong(format!("at most {MOST_HOSTS} hosts")));
                }
                job.hosts.push(name);
                job.slots.extend(entry.slots.or(is_node_file.then_some(1)));
            } else if is_node_file {
                job.slots[number] += 1;
            } else {
                return Err(entry.wrong(format!("each host once, but `{name}` is listed before")));
            }
        }
        if entry.slots == Some(0) {
            return Err(entry.wrong("at least 1 slot"));
        }
        if ![0, job.hosts.len()].contains(&job.slots.len()) {
            return Err(entry.wrong("slots for all hosts or for none"));
        }
    }
    if is_node_file && job.slots.iter().all(|slots| *slots == 1) {
        job.slots.clear();
    }
    if job.hosts.is_empty() {
        return Err(HostListError::whole(list, "no host", ENTRY));
    }
    Ok(job)
}

/// Reads the positions of a list such as `0-15,32`, in list order. `list` is the file or option of the list, for messages.
///
/// # Errors
/// The first part that is not a range of positions or repeats a position, and a list without a position.
pub fn positions(list: &str, text: &str) -> Result<Vec<Node>, HostListError> {
    const EXPECTED: &str = "positions in the topology such as 0-15,32,40-47, each once";
    let (mut positions, mut known) = (Vec::new(), BTreeSet::new());
    for line in lines(list, text) {
        for word in line.words() {
            let room = (MOST_POSITIONS - positions.len()) as u64;
            let numbers = ends(word.text).filter(|[first, last]| {
                first <= last && last - first < room && *last <= u64::from(u32::MAX)
            });
            let [first, last] = numbers.ok_or_else(|| word.wrong(EXPECTED))?;
            for number in first as u32..=last as u32 {
                if !known.insert(number) {
                    return Err(word.wrong(EXPECTED));
                }
                positions.push(Node(number));
            }
        }
    }
    match positions.is_empty() {
        true => Err(HostListError::whole(list, "no position", EXPECTED)),
        false => Ok(positions),
    }
}

/// Returns `true` if a name is valid for a host and no format interprets it as something else.
pub(super) fn is_host(name: &str) -> bool {
    name.bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
        && !is_number(name)
        && name != "rank"
        && rule(name).is_none()
}

/// Returns `true` if a text has several lines and each is one plain word.
fn is_node_file(text: &str) -> bool {
    lines("", text).count() > 1 && lines("", text).all(|line| is_host(line.text))
}

/// Returns the non-empty lines of a text, without comments and surrounding blanks.
pub(super) fn lines<'a>(list: &'a str, text: &'a str) -> impl Iterator<Item = TextPart<'a>> {
    let numbered = text.lines().zip(1..);
    let parts = numbered.map(move |(line, number)| TextPart {
        list,
        line: number,
        start: None,
        text: line.split('#').next().unwrap_or_default().trim(),
        whole: line,
    });
    parts.filter(|part| !part.text.is_empty())
}

/// Hosts of a list that share one entry.
#[derive(Debug)]
pub(super) struct HostEntry<'a> {
    place: TextPart<'a>,
    /// Names of the hosts, with brackets.
    pattern: &'a str,
    /// Number of slots of each host, if given.
    pub(super) slots: Option<u32>,
}

/// A line of a text or a word of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct TextPart<'a> {
    list: &'a str,
    line: usize,
    /// The whole line; `start` is the offset of the word in it, in bytes.
    whole: &'a str,
    start: Option<usize>,
    pub(super) text: &'a str,
}

impl<'a> TextPart<'a> {
    /// Creates an error that names this part.
    pub(super) fn wrong(&self, expected: impl ToString) -> HostListError {
        let TextPart { list, line, .. } = self;
        let column = self
            .start
            .map(|start| self.whole[..start].chars().count() + 1);
        let column = column.map_or(String::new(), |column| format!(":{column}"));
        let place = format!("{list}:{line}{column}");
        HostListError::whole(&place, format!("`{}`", self.text), expected)
    }

    /// Returns the words of the line. Commas and blanks outside of brackets separate them.
    fn words(self) -> impl Iterator<Item = TextPart<'a>> {
        let mut is_inside = false;
        let words = self
            .text
            .split(move |letter: char| {
                is_inside = match letter {
                    '[' => true,
                    ']' => false,
                    _ => is_inside,
                };
                !is_inside && (letter == ',' || letter.is_whitespace())
            })
            .filter(|word| !word.is_empty());
        words.map(move |text| TextPart {
            start: Some(text.as_ptr() as usize - self.whole.as_ptr() as usize),
            text,
            ..self
        })
    }
}

/// Reads the entries of a list.
///
/// # Errors
/// The first word that is neither a host nor an option of a host.
pub(super) fn entries<'a>(
    list: &'a str,
    text: &'a str,
) -> Result<Vec<HostEntry<'a>>, HostListError> {
    let mut entries: Vec<HostEntry> = Vec::new();
    for line in lines(list, text) {
        let first = entries.len();
        // First host of the line without a number of slots.
        let mut open = first;
        for word in line.words() {
            match word.text.split_once('=') {
                None => entries.push(HostEntry::read(word)?),
                Some(_) if entries.len() == first => return Err(word.wrong(ENTRY)),
                Some((option, value)) => {
                    apply(word, [option, value], &mut entries[open..])?;
                    if option == "slots" {
                        open = entries.len();
                    }
                }
            }
        }
    }
    Ok(entries)
}

/// Applies an option such as `slots=4` to the hosts before it.
fn apply(
    place: TextPart<'_>,
    [option, value]: [&str; 2],
    before: &mut [HostEntry<'_>],
) -> Result<(), HostListError> {
    match option {
        "slots" | "max_slots" | "max-slots" => {
            let number = slots(value).ok_or_else(|| place.wrong(slots_expected()))?;
            if option == "slots" {
                let open = before.iter_mut().filter(|entry| entry.slots.is_none());
                if open.map(|entry| entry.slots = Some(number)).count() == 0 {
                    return Err(place.wrong("one number of slots for a host"));
                }
            }
            Ok(())
        }
        _ if OPTIONS.contains(&option) => Ok(()),
        _ => Err(place.wrong("an option such as slots=4 or max_slots=8")),
    }
}

fn slots(text: &str) -> Option<u32> {
    text.parse().ok().filter(|slots| *slots <= MOST_SLOTS)
}

fn slots_expected() -> String {
    format!("a number of slots up to {MOST_SLOTS}, such as n1:4 or slots=4")
}

impl<'a> HostEntry<'a> {
    /// Reads `n[1-3]:4`.
    fn read(place: TextPart<'a>) -> Result<HostEntry<'a>, HostListError> {
        let (pattern, count) = match place.text.split_once([':', '*']) {
            Some((pattern, count)) => (pattern, Some(count)),
            None => match place.text.rsplit_once("]x") {
                Some((pattern, count)) if is_number(count) && !count.is_empty() => {
                    (&place.text[..=pattern.len()], Some(count))
                }
                _ => (place.text, None),
            },
        };
        let number = count.map(|count| slots(count).ok_or_else(|| place.wrong(slots_expected())));
        Ok(HostEntry {
            place,
            pattern,
            slots: number.transpose()?,
        })
    }

    /// Creates an error that names this entry.
    pub(super) fn wrong(&self, expected: impl ToString) -> HostListError {
        self.place.wrong(expected)
    }

    /// Returns all names of the entry, the last brackets varying fastest.
    ///
    /// # Errors
    /// Brackets without valid ranges of numbers, names that are invalid for hosts, and more than [`MOST_HOSTS`] names.
    pub(super) fn names(&self) -> Result<Vec<String>, HostListError> {
        let mut names = vec![String::new()];
        let mut rest = self.pattern;
        while let Some((plain, behind)) = rest.split_once('[') {
            let (ranges, behind) = behind
                .split_once(']')
                .ok_or_else(|| self.wrong("`]` after `[`"))?;
            let numbers = self.numbers(ranges)?;
            if names.len() * numbers.len() > MOST_HOSTS {
                return Err(self.wrong(format!("at most {MOST_HOSTS} hosts")));
            }
            names = names
                .iter()
                .flat_map(|name| -> Vec<String> {
                    numbers
                        .iter()
                        .map(|number| format!("{name}{plain}{number}"))
                        .collect()
                })
                .collect();
            rest = behind;
        }
        names.iter_mut().for_each(|name| name.push_str(rest));
        match names.iter().all(|name| is_host(name)) {
            true => Ok(names),
            false => Err(self.wrong(ENTRY)),
        }
    }

    /// Returns the numbers of a list of ranges such as `001-032,040`.
    fn numbers(&self, ranges: &str) -> Result<Vec<String>, HostListError> {
        let mut numbers = Vec::new();
        for range in ranges.split(',') {
            let [first, last] = ends(range).ok_or_else(|| {
                self.wrong(format!("numbers of at most {MOST_DIGITS} digits and ranges in brackets, such as [001-032,040]"))
            })?;
            if first > last {
                return Err(self.wrong(format!("an ascending range instead of {range}")));
            }
            if last - first >= (MOST_HOSTS - numbers.len()) as u64 {
                return Err(self.wrong(format!("at most {MOST_HOSTS} hosts")));
            }
            let width = range.find('-').unwrap_or(range.len());
            numbers.extend((first..=last).map(|number| format!("{number:0width$}")));
        }
        Ok(numbers)
    }
}

/// Returns both ends of a range such as `001-032`. For `7`, both ends are that number.
fn ends(range: &str) -> Option<[u64; 2]> {
    let (first, last) = range.split_once('-').unwrap_or((range, range));
    Some([number(first)?, number(last)?])
}

fn number(text: &str) -> Option<u64> {
    let number = text.parse().ok();
    number.filter(|_| text.len() <= MOST_DIGITS && is_number(text))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shown(text: &str) -> String {
        match hosts("h", text) {
            Ok(job) if job.slots.is_empty() => job.hosts.join(" "),
            Ok(job) => {
                let all = job.hosts.iter().zip(&job.slots);
                let all = all.map(|(host, slots)| format!("{host}:{slots}"));
                all.collect::<Vec<_>>().join(" ")
            }
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn lists_of_schedulers_and_launchers_are_read_as_hosts() {
        for (text, expected) in [
            (
                "lrdn[0009-0011,0007]",
                "lrdn0009 lrdn0010 lrdn0011 lrdn0007",
            ),
            ("a[9-11],b", "a9 a10 a11 b"),
            ("n[1-2]r[03-04]x", "n1r03x n1r04x n2r03x n2r04x"),
            ("nid00[1000-1001],lrdn0001", "nid001000 nid001001 lrdn0001"),
            ("b04-[09-10]", "b04-09 b04-10"),
            (
                "one.site.eu\ntwo-2\n\nthree_3\n",
                "one.site.eu two-2 three_3",
            ),
            ("n[1-3]x4", "n1:4 n2:4 n3:4"),
            ("n[1-2]:4,m*2 # MPICH", "n1:4 n2:4 m:2"),
            ("a slots=4\nb slots=2 max_slots=8\r\n", "a:4 b:2"),
            ("a,b slots=4 c slots=2", "a:4 b:4 c:2"),
            ("a:2 ifname=ib0 binding=user:0\nb:1", "a:2 b:1"),
            ("a\nb\na\na\n", "a:3 b:1"),
        ] {
            assert_eq!(shown(text), expected, "{text}");
        }
    }

    #[test]
    fn a_wrong_part_is_named_with_its_line_and_column() {
        for (text, expected) in [
            ("a,b[1-2", "h:1:3: found `b[1-2`, expected `]` after `[`"),
            (
                "a\nb  c1-2]",
                "h:2:4: found `c1-2]`, expected a host such as",
            ),
            (
                "a[2-1]",
                "h:1:1: found `a[2-1]`, expected an ascending range instead of 2-1",
            ),
            (
                "a[x]",
                "h:1:1: found `a[x]`, expected numbers of at most 18 digits",
            ),
            ("a[]", "h:1:1: found `a[]`, expected numbers"),
            (
                "a[1-2/2]",
                "h:1:1: found `a[1-2/2]`, expected numbers of at most 18 digits",
            ),
            (
                "b,a/b",
                "h:1:3: found `a/b`, expected a host such as n1, n[001-032,040], n1:4",
            ),
            ("a[1-99999999999999999999]", "h:1:1: found `a[1-9"),
            (
                "a[1-99999999]",
                "h:1:1: found `a[1-99999999]`, expected at most 65536 hosts",
            ),
            (
                "a[000-255][000-255],b",
                "h:1:21: found `b`, expected at most 65536 hosts",
            ),
            ("a[1-2],a2", "h:1:8: found `a2`, expected each host once"),
            (
                "a[1-2,2]",
                "h:1:1: found `a[1-2,2]`, expected each host once",
            ),
            (
                "a:1,b",
                "h:1:5: found `b`, expected slots for all hosts or for none",
            ),
            ("a:0", "h:1:1: found `a:0`, expected at least 1 slot"),
            ("a:x", "h:1:1: found `a:x`, expected a number of slots"),
            (
                "a:2 slots=3",
                "h:1:5: found `slots=3`, expected one number of slots for a host",
            ),
            (
                "a slots=2 slots=3",
                "h:1:11: found `slots=3`, expected one number of slots for a host",
            ),
            (
                "a slots=99999999999",
                "h:1:3: found `slots=99999999999`, expected a number of slots up to 16777216",
            ),
            ("slots=4", "h:1:1: found `slots=4`, expected a host"),
            (
                "a size=4",
                "h:1:3: found `size=4`, expected an option such as slots=4",
            ),
            ("12,fill", "h:1:1: found `12`, expected a host such as"),
            (" \n", "h: found no host, expected a host such as"),
        ] {
            let found = shown(text);
            assert!(
                found.starts_with(expected),
                "{text}\nfound    {found}\nexpected {expected}"
            );
        }
    }

    #[test]
    fn positions_are_numbers_and_ranges_each_once() {
        let list = positions("p", "0-2,7 # a switch\n5").unwrap();
        assert_eq!(list, [0, 1, 2, 7, 5].map(Node));
        for (text, found) in [
            ("", "p: found no position"),
            ("1-x", "p:1:1: found `1-x`"),
            ("0 3-1", "p:1:3: found `3-1`"),
            ("1-3,2", "p:1:5: found `2`"),
            ("0-4294967295", "p:1:1: found `0-4294967295`"),
            ("4294967296", "p:1:1: found `4294967296`"),
        ] {
            let error = positions("p", text).unwrap_err().to_string();
            assert!(error.starts_with(found), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn valid_host_names_are_read_unchanged(
            names in prop::collection::hash_set("[a-c][0-9a-c.x-]{0,4}[0-9]{0,3}[a-c]?", 1..30),
        ) {
            let names: Vec<String> = names.into_iter().filter(|name| is_host(name)).collect();
            prop_assume!(!names.is_empty());
            prop_assert_eq!(hosts("h", &names.join(",")).unwrap().hosts, names);
        }

        #[test]
        fn no_text_panics(text in "([a-c]|[0-9]|\\[|\\]|-|,|:|x|\\*|slots=|\n| |#|\\PC){0,40}") {
            let _ = hosts("h", &text);
        }
    }
}
