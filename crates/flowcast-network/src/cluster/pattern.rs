//! Pattern files: flows between nodes, and the racks of the nodes.
//!
//! ```text
//! 0 -> 1        4MB            # one flow, starts at 0
//! 0 <- 1 -> 2 -> 3  4MB @ 3ms  # a chain: three flows, numbered left to right, same size and start
//! node 0..14 rack A            # placement; once a node has a rack, every node needs one
//! ```

use std::io::{self, ErrorKind, Write};

use thiserror::Error;

use super::{flow::Flow, racks::Racks};
use flowcast_units::{Bytes, Node, Time, plain_text};

/// A line that is not part of a pattern.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{name}:{line}: found {found}, expected {expected}")]
pub struct PatternError {
    /// Name of the file for messages, as given by the caller.
    pub name: String,
    /// Line in the file, counted from 1.
    pub line: usize,
    /// The text at fault, or a description of the fault.
    pub found: String,
    /// Description of the expected content.
    pub expected: String,
}

/// Content of a pattern file.
///
/// ```
/// use flowcast_network::cluster::pattern::Pattern;
///
/// let pattern = Pattern::read("two.pattern", b"0 <- 1 -> 2  4MB @ 3ms\n").unwrap();
/// assert_eq!(pattern.flows.len(), 2);
/// let error = Pattern::read("two.pattern", b"0 -> 1 4\n").unwrap_err();
/// assert!(error.to_string().starts_with("two.pattern:1: found"));
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Pattern {
    /// Flows in file order; flow `i` has the number `i + 1`.
    pub flows: Vec<Flow>,
    /// Racks of the nodes.
    pub racks: Racks,
}

/// A pattern in steps: the flows of a step start when the flows of the previous step have ended.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Steps {
    /// Flows by step. Their starts are relative to the start of the step.
    pub steps: Vec<Vec<Flow>>,
    /// Racks of the nodes.
    pub racks: Racks,
}

impl Pattern {
    /// Reads a pattern file; `name` is its name in errors.
    ///
    /// # Errors
    /// The first faulty line, with what was found and what was expected.
    pub fn read(name: &str, text: &[u8]) -> Result<Pattern, PatternError> {
        let mut reader = PatternReader::new(name);
        reader.read_lines(text)?;
        if reader.steps > 0 {
            return Err(reader.first_step_error());
        }
        reader.check_racks()?;
        if reader.pattern.flows.is_empty() {
            return Err(reader.error("no flow", "at least one line such as `0 -> 1 4MB`"));
        }
        Ok(reader.pattern)
    }

    /// `true` if a file looks like a pattern: its first line of content starts with a flow, a chain or a placement.
    pub fn is_pattern(text: &[u8]) -> bool {
        let text = plain_text(text);
        let mut lines = text
            .split(|byte| *byte == b'\n')
            .filter_map(|line| std::str::from_utf8(line).ok());
        let Some(line) = lines.find_map(|line| Some(content(line)).filter(|line| !line.is_empty()))
        else {
            return false;
        };
        let mut words = line.split_whitespace();
        let is_placement = words.next() == Some("node") && words.nth(1) == Some("rack");
        let after_node = line.trim_start_matches(|c: char| c.is_ascii_digit());
        let is_flow = after_node.len() < line.len() && arrow(after_node.trim_start()).is_some();
        is_placement || is_flow || line == "step"
    }
}

impl Steps {
    /// Reads a pattern whose steps are separated by lines with `step`.
    ///
    /// # Errors
    /// The same errors as [`Pattern::read`], except that `step` lines are allowed.
    pub fn read(name: &str, text: &[u8]) -> Result<Steps, PatternError> {
        let mut reader = PatternReader::new(name);
        reader.read_lines(text)?;
        reader.check_racks()?;
        let mut steps: Vec<Vec<Flow>> = Vec::new();
        let mut last = None;
        for (flow, step) in reader.pattern.flows.iter().zip(&reader.step_of_flow) {
            if last != Some(step) {
                steps.push(Vec::new());
            }
            last = Some(step);
            steps.last_mut().expect("a step was just begun").push(*flow);
        }
        if steps.is_empty() {
            return Err(reader.error("no flow", "at least one line such as `0 -> 1 4MB`"));
        }
        Ok(Steps {
            steps,
            racks: reader.pattern.racks,
        })
    }
}

/// Writes flows as a pattern file, one flow per line.
///
/// # Errors
/// Errors of the writer; [`ErrorKind::InvalidInput`] if a start is later than the format allows.
pub fn write(flows: &[Flow], out: &mut dyn Write) -> io::Result<()> {
    if let Some(late) = flows.iter().find(|flow| flow.start > Time::LONGEST) {
        let (id, start) = (late.id, late.start);
        let text = format!(
            "found flow {id}, which starts after {start}, expected at most {}: look for a load or a rate that is too small",
            Time::LONGEST
        );
        return Err(io::Error::new(ErrorKind::InvalidInput, text));
    }
    for flow in flows {
        writeln!(
            out,
            "{} -> {} {}B @ {}",
            flow.src, flow.dst, flow.size.0, flow.start
        )?;
    }
    out.flush()
}

struct PatternReader<'a> {
    name: &'a str,
    line: usize,
    pattern: Pattern,
    line_of_flow: Vec<usize>,
    step_of_flow: Vec<usize>,
    steps: usize,
    first_step_line: usize,
}

impl<'a> PatternReader<'a> {
    fn new(name: &'a str) -> PatternReader<'a> {
        PatternReader {
            name,
            line: 0,
            pattern: Pattern::default(),
            line_of_flow: Vec::new(),
            step_of_flow: Vec::new(),
            steps: 0,
            first_step_line: 0,
        }
    }

    fn read_lines(&mut self, text: &[u8]) -> Result<(), PatternError> {
        for bytes in plain_text(text).split(|byte| *byte == b'\n') {
            self.line += 1;
            let line = std::str::from_utf8(bytes)
                .map_err(|_| self.error("bytes that are not UTF-8", "text"))?;
            let line = content(line);
            match line.split_whitespace().next() {
                None => {}
                Some("node") => self.read_placement(line)?,
                Some("step") if line == "step" => self.begin_step(),
                Some(_) => self.read_chain(line)?,
            }
        }
        Ok(())
    }

    fn begin_step(&mut self) {
        if self.steps == 0 {
            self.first_step_line = self.line;
        }
        self.steps += 1;
    }

    fn read_placement(&mut self, line: &str) -> Result<(), PatternError> {
        const EXPECTED: &str = "a placement such as `node 0..14 rack A`";
        let words: Vec<&str> = line.split_whitespace().collect();
        let ["node", range, "rack", rack] = words[..] else {
            return Err(self.error(&quoted(line), EXPECTED));
        };
        let (first, last) = range.split_once("..").unwrap_or((range, range));
        let (Some(first), Some(last)) = (node(first), node(last)) else {
            return Err(self.error(&quoted(range), "a node or a range of nodes such as `0..14`"));
        };
        match self.pattern.racks.place(first, last, rack) {
            Ok(_) => Ok(()),
            Err(twice) => {
                Err(self.error(&quoted(line), &format!("each node in one rack ({twice})")))
            }
        }
    }

    fn read_chain(&mut self, line: &str) -> Result<(), PatternError> {
        let (mut left, mut rest) = self.read_node(line)?;
        let first = self.pattern.flows.len();
        while let Some((points_right, after)) = arrow(rest) {
            let (right, after) = self.read_node(after.trim_start())?;
            if left == right {
                return Err(self.error(
                    &format!("a flow from node {left} to itself"),
                    "two different nodes",
                ));
            }
            let (src, dst) = if points_right {
                (left, right)
            } else {
                (right, left)
            };
            self.push_flow(src, dst)?;
            (left, rest) = (right, after);
        }
        if self.pattern.flows.len() == first {
            return Err(self.error(&quoted(rest), "`->` or `<-` after the node"));
        }
        let (size, start) = self.read_size_and_start(rest)?;
        for flow in &mut self.pattern.flows[first..] {
            (flow.size, flow.start) = (size, start);
        }
        Ok(())
    }

    fn push_flow(&mut self, src: Node, dst: Node) -> Result<(), PatternError> {
        let id = u32::try_from(self.pattern.flows.len() + 1)
            .map_err(|_| self.error("another flow", "fewer than 4294967295 flows"))?;
        self.pattern.flows.push(Flow {
            id,
            src,
            dst,
            size: Bytes(0),
            start: Time::ZERO,
        });
        self.line_of_flow.push(self.line);
        self.step_of_flow.push(self.steps);
        Ok(())
    }

    /// Reads the node at the start of `text`; also returns the rest without leading blanks.
    fn read_node<'t>(&self, text: &'t str) -> Result<(Node, &'t str), PatternError> {
        let end = text
            .find(|c: char| c.is_whitespace() || c == '-' || c == '<')
            .unwrap_or(text.len());
        let (number, rest) = text.split_at(end);
        let found = if number.is_empty() { text } else { number };
        let node =
            node(number).ok_or_else(|| self.error(&quoted(found), "a node number such as 3"))?;
        Ok((node, rest.trim_start()))
    }

    fn read_size_and_start(&self, text: &str) -> Result<(Bytes, Time), PatternError> {
        let (size, start) = text
            .split_once('@')
            .map_or((text, None), |(size, start)| (size, Some(start)));
        let size = Bytes::parse(size.trim())
            .map_err(|error| self.error(&quoted(&error.found), error.expected))?;
        let Some(start) = start.map(str::trim) else {
            return Ok((size, Time::ZERO));
        };
        if start.starts_with('-') {
            return Err(self.error(&quoted(start), "a start that is not negative, such as 3ms"));
        }
        let start = Time::parse(start)
            .map_err(|error| self.error(&quoted(&error.found), error.expected))?;
        Ok((size, start))
    }

    fn check_racks(&mut self) -> Result<(), PatternError> {
        if self.pattern.racks.is_empty() {
            return Ok(());
        }
        for (flow, line) in self.pattern.flows.iter().zip(&self.line_of_flow) {
            let unplaced = [flow.src, flow.dst]
                .into_iter()
                .find(|node| self.pattern.racks.rack_of(*node).is_none());
            if let Some(node) = unplaced {
                self.line = *line;
                return Err(self.error(
                    &format!("node {node}, which is in no rack"),
                    "a node with a rack from a `node` line",
                ));
            }
        }
        Ok(())
    }

    fn first_step_error(&mut self) -> PatternError {
        self.line = self.first_step_line;
        self.error(
            "`step`",
            "a flow, a chain or a placement: only patterns of one step are read here",
        )
    }

    fn error(&self, found: &str, expected: &str) -> PatternError {
        let name = self.name.to_owned();
        PatternError {
            name,
            line: self.line,
            found: found.to_owned(),
            expected: expected.to_owned(),
        }
    }
}

/// The line without its comment.
fn content(line: &str) -> &str {
    line.split('#').next().unwrap_or("").trim()
}

fn node(text: &str) -> Option<Node> {
    // `parse` alone would accept `+3`.
    text.bytes()
        .all(|byte| byte.is_ascii_digit())
        .then(|| text.parse().ok().map(Node))
        .flatten()
}

/// `true` if the arrow at the start points right, and the text after it.
fn arrow(text: &str) -> Option<(bool, &str)> {
    let right = text.strip_prefix("->").map(|rest| (true, rest));
    right.or_else(|| text.strip_prefix("<-").map(|rest| (false, rest)))
}

/// Quotes at most forty characters, so that a garbled file does not flood the terminal.
fn quoted(text: &str) -> String {
    match text {
        "" => "the end of the line".to_owned(),
        text if text.chars().count() > 40 => {
            format!("`{}..`", text.chars().take(40).collect::<String>())
        }
        text => format!("`{text}`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str) -> Result<Pattern, PatternError> {
        Pattern::read("x.pattern", text.as_bytes())
    }

    fn message(text: &str) -> String {
        read(text).unwrap_err().to_string()
    }

    #[test]
    fn a_chain_is_numbered_from_left_to_right() {
        let pattern = read("0 <- 1 -> 2 ->3 4MB @ 3ms # a chain\n\n5->4 1000000B\r\n").unwrap();
        let seen: Vec<_> = pattern
            .flows
            .iter()
            .map(|flow| (flow.id, flow.src.0, flow.dst.0, flow.size.0))
            .collect();
        assert_eq!(
            seen,
            [
                (1, 1, 0, 4_000_000),
                (2, 1, 2, 4_000_000),
                (3, 2, 3, 4_000_000),
                (4, 5, 4, 1_000_000)
            ]
        );
        assert_eq!(pattern.flows[2].start, Time::parse("3ms").unwrap());
        assert_eq!(pattern.flows[3].start, Time::ZERO);
    }

    #[test]
    fn a_written_pattern_reads_back() {
        let flows = read("0 <- 1 -> 2 4MB @ 3ms\n7 -> 3 1234567B @ 1234567ns")
            .unwrap()
            .flows;
        let mut text = Vec::new();
        write(&flows, &mut text).unwrap();
        assert_eq!(Pattern::read("x", &text).unwrap().flows, flows);
    }

    #[test]
    fn racks_may_follow_the_flows() {
        let pattern = read("0 -> 15 4MB\nnode 0..14 rack A\nnode 15 rack B").unwrap();
        assert_eq!(pattern.racks.count(), 2);
        assert_ne!(
            pattern.racks.rack_of(Node(0)),
            pattern.racks.rack_of(Node(15))
        );
    }

    #[test]
    fn a_wrong_line_is_named_with_what_was_found_and_expected() {
        assert_eq!(
            message("0 -> 1 4MB\n3 -> 3 4MB"),
            "x.pattern:2: found a flow from node 3 to itself, expected two different nodes"
        );
        for (text, part) in [
            ("0 -> 1 4000000", "a size with its unit"),
            ("0 -> 1", "found the end of the line"),
            ("0 -> 1 4MB @ -1ms", "not negative"),
            ("0 -> 1 4MB @ 3", "a time with its unit"),
            ("0 -> 14MB", "`14MB`"),
            ("0 4MB", "`->` or `<-`"),
            ("0 -> x 4MB", "a node number"),
            ("0 -> 1 -> 4MB", "a node number"),
            ("zero -> 1 4MB", "a node number"),
            ("0 -> 4294967296 4MB", "a node number"),
            ("# nothing", "no flow"),
            (
                "node 0..3 rack A\nnode 3..4 rack B\n0 -> 1 1B",
                "node 3 is already in rack A",
            ),
            ("node 0..3 rack A\n0 -> 9 1B", "x.pattern:2: found node 9"),
            ("node 0..3 rak A\n0 -> 1 1B", "`node 0..14 rack A`"),
            ("0 -> 1 1B\nstep\n1 -> 0 1B", "x.pattern:2: found `step`"),
        ] {
            let message = message(text);
            assert!(message.contains(part), "{text}: {message}");
        }
        let not_text = Pattern::read("x.pattern", b"0 -> 1 4MB\n\xff\xfe")
            .unwrap_err()
            .to_string();
        assert!(not_text.contains("x.pattern:2: found bytes"), "{not_text}");
    }

    #[test]
    fn an_error_in_the_last_of_a_million_lines_is_found() {
        let text = "0 -> 1 1B\n".repeat(1_000_000) + "0 -> 1 1\n";
        assert!(message(&text).starts_with("x.pattern:1000001: found `1`"));
    }

    #[test]
    fn a_pattern_is_known_by_its_first_line_of_content() {
        for text in [
            "# c\n\n0->1 4MB",
            " 0 <- 1 4MB",
            "node 0..3 rack A",
            "step\n0 -> 1 1B",
        ] {
            assert!(Pattern::is_pattern(text.as_bytes()), "{text}");
        }
        for text in [
            "",
            "# 0 -> 1 4MB",
            "num_ranks 2",
            "0 init",
            "#DIMEMAS:\"a\"",
            "1:0:0",
            "node x",
        ] {
            assert!(!Pattern::is_pattern(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn step_lines_separate_the_steps() {
        let steps = Steps::read("x", b"0 -> 4 10MB\nstep\nstep\n0 -> 2 10MB\n4 -> 6 10MB\n")
            .unwrap()
            .steps;
        assert_eq!(steps.iter().map(Vec::len).collect::<Vec<_>>(), [1, 2]);
        assert!(Steps::read("x", b"step\n").is_err());
    }

    #[test]
    fn steps_have_racks_and_a_node_outside_them_is_named_with_its_line() {
        let steps = Steps::read(
            "x",
            b"node 0..1 rack A\nnode 2 rack B\n0 -> 1 1B\nstep\n1 -> 2 1B\n",
        )
        .unwrap();
        assert_eq!(steps.racks.count(), 2);
        let outside = Steps::read("x", b"node 0..1 rack A\n0 -> 1 1B\nstep\n1 -> 2 1B\n")
            .unwrap_err()
            .to_string();
        assert!(
            outside.starts_with("x:4: found node 2, which is in no rack"),
            "{outside}"
        );
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = (Pattern::read("x", &bytes), Steps::read("x", &bytes), Pattern::is_pattern(&bytes));
        }

        #[test]
        fn arbitrary_near_patterns_never_panic(text in "([0-9<>@#. \n-]|->|node |rack |step\n|MB|ms|é){0,60}") {
            let bytes = text.as_bytes();
            let _ = (Pattern::read("x", bytes), Steps::read("x", bytes), Pattern::is_pattern(bytes));
        }
    }
}
