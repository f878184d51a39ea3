//! Readers of mapping files, one for each format.

use std::collections::BTreeMap;

use flowcast_network::machine::Mapping;
use flowcast_units::MOST_RANKS;

use super::super::{
    host_list::{self, HostListError, TextPart, is_host},
    matrix_file::is_number,
    rule,
};

/// Reads a mapping in any format. `file` is the name of the file in messages. `hosts` contains the names of the nodes, if
/// they are known. An empty list is filled with the hosts of the file.
///
/// # Errors
/// The first line that does not fit its format, a host that is not in a list of `hosts`, and a missing rank.
pub fn read(file: &str, text: &str, hosts: &mut Vec<String>) -> Result<Mapping, HostListError> {
    let lines: Vec<TextPart> = host_list::lines(file, text).collect();
    if let [only] = &lines[..]
        && let Some(mapping) = rule(only.text)
    {
        return Ok(mapping);
    }
    let mut hosts = HostNumbers::new(hosts);
    let nodes = match lines.first() {
        Some(first) if first.text.split_whitespace().next() == Some("rank") => {
            read_rankfile(file, &lines, &mut hosts)?
        }
        Some(first) if is_number(first.text) => read_nodes(&lines)?,
        _ => read_hosts(file, text, &mut hosts)?,
    };
    if nodes.is_empty() {
        const EXPECTED: &str = "a line for each rank, or fill, round-robin or N-per-node";
        return Err(HostListError::whole(file, "no rank", EXPECTED));
    }
    Ok(Mapping::List(nodes))
}

fn read_nodes(lines: &[TextPart]) -> Result<Vec<u32>, HostListError> {
    lines
        .iter()
        .map(|line| {
            let node = line.text.parse::<u32>().ok();
            node.filter(|node| *node < MOST_RANKS)
                .ok_or_else(|| line.wrong("a node number, one on each line"))
        })
        .collect()
}

fn read_rankfile(
    file: &str,
    lines: &[TextPart],
    hosts: &mut HostNumbers,
) -> Result<Vec<u32>, HostListError> {
    const FORM: &str =
        "a line such as `rank 0=host slot=0`, `rank 1=host slot=1:0-3` or `rank 2=+n1 slot=0,1`";
    let mut nodes = BTreeMap::new();
    for line in lines {
        let (rank, place, slot) = rank_line(line.text).ok_or_else(|| line.wrong(FORM))?;
        if !slot
            .bytes()
            .all(|byte| byte.is_ascii_digit() || b",-:*".contains(&byte))
            || slot.is_empty()
        {
            return Err(line.wrong("slots such as slot=0, slot=0-3 or slot=1:0,2"));
        }
        let node = match place.strip_prefix("+n") {
            Some(number) => hosts.numbered(line, number)?,
            None => hosts.named(line, place)?,
        };
        if nodes.insert(rank, node).is_some() {
            return Err(line.wrong(format!("only one line for rank {rank}")));
        }
    }
    let ranks = nodes
        .last_key_value()
        .map_or(0, |(rank, _)| u64::from(*rank) + 1);
    match nodes
        .keys()
        .zip(0u32..)
        .find(|(rank, expected)| *rank != expected)
    {
        Some((_, missing)) => Err(HostListError::whole(
            file,
            format!("no line for rank {missing}"),
            format!("one for each rank below {ranks}"),
        )),
        None => Ok(nodes.into_values().collect()),
    }
}

/// Parses a line such as `rank 0=host slot=0` into rank, place and slots.
fn rank_line(text: &str) -> Option<(u32, &str, &str)> {
    let (rank, rest) = text.strip_prefix("rank")?.split_once('=')?;
    let (place, slot) = rest.trim().split_once(char::is_whitespace)?;
    let slot = slot
        .trim_start()
        .strip_prefix("slot")?
        .trim_start_matches('s')
        .trim_start()
        .strip_prefix('=')?;
    Some((rank.trim().parse().ok()?, place, slot.trim()))
}

/// Reads the ranks of a list of hosts: one for each name, or one for each of its slots.
fn read_hosts(file: &str, text: &str, hosts: &mut HostNumbers) -> Result<Vec<u32>, HostListError> {
    let mut nodes = Vec::new();
    for entry in host_list::entries(file, text)? {
        let count = entry.slots.unwrap_or(1) as usize;
        for name in entry.names()? {
            if (nodes.len() + count) as u64 > u64::from(MOST_RANKS) {
                return Err(entry.wrong(format!("at most {MOST_RANKS} ranks in total")));
            }
            let node = hosts
                .node(&name)
                .map_err(|expected| entry.wrong(expected))?;
            nodes.resize(nodes.len() + count, node);
        }
    }
    Ok(nodes)
}

/// Host names and their nodes.
struct HostNumbers<'a> {
    names: &'a mut Vec<String>,
    nodes: BTreeMap<String, u32>,
    are_given: bool,
    any_numbered: bool,
}

impl HostNumbers<'_> {
    fn new(names: &mut Vec<String>) -> HostNumbers<'_> {
        HostNumbers {
            nodes: names.iter().cloned().zip(0..).collect(),
            are_given: !names.is_empty(),
            any_numbered: false,
            names,
        }
    }

    fn named(&mut self, line: &TextPart, name: &str) -> Result<u32, HostListError> {
        self.node(name).map_err(|expected| line.wrong(expected))
    }

    /// Returns the node of a name. The error describes the names that were expected.
    fn node(&mut self, name: &str) -> Result<u32, String> {
        if let Some(node) = self.nodes.get(name) {
            return Ok(*node);
        }
        if self.are_given {
            return Err(match &self.names[..] {
                [first, .., last] => format!(
                    "one of the {} hosts of the list (first {first}, last {last})",
                    self.names.len()
                ),
                names => format!("{}, the only host of the list", names.concat()),
            });
        }
        if !is_host(name) {
            return Err("a host name: letters, digits, `-`, `_` and `.`".to_owned());
        }
        if self.any_numbered {
            return Err(
                "a node number such as +n0, as on earlier lines, or a list of all hosts".to_owned(),
            );
        }
        let node = u32::try_from(self.names.len()).map_err(|_| "fewer hosts".to_owned())?;
        self.names.push(name.to_owned());
        self.nodes.insert(name.to_owned(), node);
        Ok(node)
    }

    /// Returns the node of `+n3`.
    fn numbered(&mut self, line: &TextPart, number: &str) -> Result<u32, HostListError> {
        if !self.are_given && !self.names.is_empty() {
            return Err(line.wrong("a host name, as on earlier lines, or a list of all hosts"));
        }
        self.any_numbered = true;
        let node = number
            .parse::<u32>()
            .ok()
            .filter(|node| match self.are_given {
                true => (*node as usize) < self.names.len(),
                false => *node < MOST_RANKS,
            });
        node.ok_or_else(|| match self.names.len() {
            0 => line.wrong("a node number after +n"),
            hosts => line.wrong(format!("a node number after +n, from 0 to {}", hosts - 1)),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn list(text: &str) -> (Vec<u32>, Vec<String>) {
        let mut hosts = Vec::new();
        match read("m", text, &mut hosts).unwrap() {
            Mapping::List(nodes) => (nodes, hosts),
            mapping => panic!("{mapping:?}"),
        }
    }

    fn message(text: &str, hosts: &[&str]) -> String {
        let error = read("m", text, &mut names(hosts)).unwrap_err();
        error.to_string()
    }

    #[test]
    fn a_node_number_on_each_line_is_the_node_of_a_rank() {
        assert_eq!(
            list("# four ranks\n0\n\n0 # again\n2\r\n1\n"),
            (vec![0, 0, 2, 1], vec![])
        );
        assert_eq!(
            message("0\na\n", &[]),
            "m:2: found `a`, expected a node number, one on each line"
        );
        assert_eq!(
            message("0\n-1\n", &[]),
            "m:2: found `-1`, expected a node number, one on each line"
        );
        assert!(message("99999999999\n", &[]).starts_with("m:1: found `99999999999`"));
    }

    #[test]
    fn a_rule_is_the_only_line_of_its_file() {
        for (text, rule) in [
            ("fill", Mapping::Fill),
            ("round-robin\n", Mapping::RoundRobin),
            ("4-per-node", Mapping::PerNode(4)),
        ] {
            let mut hosts = Vec::new();
            assert_eq!(read("m", text, &mut hosts).unwrap(), rule);
            assert!(hosts.is_empty());
        }
        assert_eq!(rule("0-per-node"), None);
        assert!(
            message("fill\nfill\n", &[])
                .starts_with("m:1:1: found `fill`, expected a host such as")
        );
        for nothing in ["", "\n# nothing\n", "a:0"] {
            assert!(message(nothing, &[]).starts_with("m: found no rank"));
        }
    }

    #[test]
    fn a_rankfile_may_have_its_ranks_in_any_order() {
        let text = "rank 1=b slot=0:0-3\nrank 0 = a slot=1\nrank 2=a slots=0,1\n";
        assert_eq!(list(text), (vec![1, 0, 1], names(&["b", "a"])));
        assert_eq!(
            list("rank 0=+n3 slot=0\nrank 1=+n0 slot=1:*\n"),
            (vec![3, 0], vec![])
        );
        let known = read(
            "m",
            "rank 0=b slot=0\nrank 1=+n0 slot=0",
            &mut names(&["a", "b"]),
        );
        assert_eq!(known, Ok(Mapping::List(vec![1, 0])));
    }

    #[test]
    fn a_wrong_line_of_a_rankfile_is_named() {
        for (text, expected) in [
            (
                "rank 0=a slot=0\nrank 0=b slot=0",
                "m:2: found `rank 0=b slot=0`, expected only one line for rank 0",
            ),
            (
                "rank 0=a slot=0\nrank 2=b slot=0",
                "m: found no line for rank 1, expected one for each rank below 3",
            ),
            (
                "rank 4294967295=a slot=0",
                "m: found no line for rank 0, expected one for each rank below 4294967296",
            ),
            (
                "rank 0=a slot=0\nrank b",
                "m:2: found `rank b`, expected a line such as `rank 0=host slot=0`",
            ),
            (
                "rank 0=a slot=x",
                "m:1: found `rank 0=a slot=x`, expected slots such as slot=0",
            ),
            (
                "rank 0=a slot=",
                "m:1: found `rank 0=a slot=`, expected slots",
            ),
            ("rank 0=a", "m:1: found `rank 0=a`, expected a line"),
            (
                "rank 0=+n1 slot=0\nrank 1=a slot=0",
                "m:2: found `rank 1=a slot=0`, expected a node number such as +n0",
            ),
            (
                "rank 0=a slot=0\nrank 1=+n1 slot=0",
                "m:2: found `rank 1=+n1 slot=0`, expected a host name",
            ),
            (
                "rank 0=+nx slot=0",
                "m:1: found `rank 0=+nx slot=0`, expected a node number after +n",
            ),
        ] {
            let found = message(text, &[]);
            assert!(
                found.starts_with(expected),
                "found    {found}\nexpected {expected}"
            );
        }
        assert!(message("rank 0=+n2 slot=0", &["a", "b"]).ends_with("after +n, from 0 to 1"));
    }

    #[test]
    fn a_host_with_a_count_gets_that_many_ranks() {
        assert_eq!(
            list("a:2\nb\na:1 binding=user:0\n"),
            (vec![0, 0, 1, 0], names(&["a", "b"]))
        );
        for (text, expected) in [
            (
                "a:2\nb:x\n",
                "m:2:1: found `b:x`, expected a number of slots up to 16777216, such as n1:4",
            ),
            ("a:2 3\n", "m:1:5: found `3`, expected a host such as"),
            (
                "a:4294967295\n",
                "m:1:1: found `a:4294967295`, expected a number of slots up to 16777216",
            ),
            (
                "a:9999999\nb:9999999\n",
                "m:2:1: found `b:9999999`, expected at most 16777216 ranks in total",
            ),
            (":2\n", "m:1:1: found `:2`, expected a host such as"),
        ] {
            let found = message(text, &[]);
            assert!(
                found.starts_with(expected),
                "found    {found}\nexpected {expected}"
            );
        }
    }

    #[test]
    fn a_host_list_has_the_host_of_each_rank() {
        assert_eq!(list("n1\nn0\nn1\n"), (vec![0, 1, 0], names(&["n1", "n0"])));
        assert_eq!(list("n1,n0, n1").0, [0, 1, 0]);
        let brackets = (vec![0, 1, 0, 0], names(&["b04-09", "b04-10"]));
        assert_eq!(list("b04-[09-10]\nb04-09 slots=2"), brackets);
        let known = read("m", "n1\nn0\n", &mut names(&["n0", "n1"]));
        assert_eq!(known, Ok(Mapping::List(vec![1, 0])));
        assert_eq!(
            message("n1\nn7\n", &["n0", "n1"]),
            "m:2:1: found `n7`, expected one of the 2 hosts of the list (first n0, last n1)"
        );
        assert_eq!(
            message("n7\n", &["n0"]),
            "m:1:1: found `n7`, expected n0, the only host of the list"
        );
    }

    fn is_rule_of_lists(error: &host_list::HostListError) -> bool {
        let rules = [
            "expected each host once",
            "expected slots for all",
            "expected at least 1 slot",
        ];
        rules.iter().any(|rule| error.to_string().contains(rule))
    }

    proptest! {
        #[test]
        fn lists_of_hosts_and_mapping_files_have_the_same_hosts(
            words in prop::collection::vec(
                "[a-c][0-9]{1,2}|n\\[0?[1-4]-0?[1-9](,1[0-3])?\\]|[a-c]:[0-9]|n\\[1-2\\]x[1-3]|a/b|c\\[1|a slots=[0-9x]|7",
                1..5,
            ),
            separator in prop::sample::select(vec![",", " ", "\n"]),
        ) {
            let text = words.join(separator);
            // A leading number is read as a node. A plain host that occurs again has one more rank in both.
            prop_assume!(!text.starts_with('7'));
            let listed = host_list::hosts("m", &text);
            let mut hosts = Vec::new();
            match (listed, read("m", &text, &mut hosts)) {
                (Ok(listed), Ok(Mapping::List(nodes))) => {
                    let ranks: Vec<u32> = (0..hosts.len() as u32).map(|node| nodes.iter().filter(|one| **one == node).count() as u32).collect();
                    let slots = match listed.slots.is_empty() {
                        true => vec![1; listed.hosts.len()],
                        false => listed.slots,
                    };
                    prop_assert_eq!((hosts, ranks), (listed.hosts, slots));
                }
                (Err(listed), Err(read)) if !is_rule_of_lists(&listed) => {
                    prop_assert_eq!(listed.to_string(), read.to_string());
                }
                // Unlike a list of hosts, a mapping may name a host twice, and may give slots for only some hosts.
                (Err(listed), _) => prop_assert!(is_rule_of_lists(&listed), "{}: {}", text, listed),
                (listed, read) => prop_assert!(false, "{}: {:?} {:?}", text, listed, read),
            }
        }

        #[test]
        fn no_text_panics(text in "(rank |[0-9]|=|slot=|\\+n|[a-c]|:|,|-per-node|\n| |#|\\PC){0,40}") {
            let _ = read("m", &text, &mut Vec::new());
            let _ = read("m", &text, &mut names(&["a"]));
        }
    }
}
