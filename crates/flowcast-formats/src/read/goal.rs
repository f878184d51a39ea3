//! LogGOPSim's GOAL text: the operations of each rank and their requirements.

use std::borrow::Cow;

use super::{
    fault::Fault,
    scan::{ScanInput, lines, parsed, shown},
};
use flowcast_program::{
    TraceError,
    key_map::KeyMap,
    opcodes::is_duration,
    schedule::{After, Dependency, Graph, Operation, OperationNode, Schedule, graph, node},
};
use flowcast_units::{Bytes, Rank, Time};

/// Returns `true` if the text is a schedule: its first words after comments are `num_ranks N`.
pub(super) fn recognises(text: &[u8]) -> bool {
    let head = &text[..text.len().min(1 << 16)];
    without_comments(head)
        .trim_ascii_start()
        .starts_with(b"num_ranks")
}

/// Returns the text with comments blanked out. Line ends stay, so line numbers remain valid. A text without comments is not
/// copied.
fn without_comments(text: &[u8]) -> Cow<'_, [u8]> {
    let Some(mut at) =
        memchr::memchr_iter(b'/', text).find(|at| matches!(text.get(at + 1), Some(b'/' | b'*')))
    else {
        return Cow::Borrowed(text);
    };
    let mut plain = text.to_vec();
    while let Some(found) = memchr::memchr(b'/', &plain[at..]) {
        at += found;
        let end = match plain.get(at + 1) {
            Some(b'/') => {
                memchr::memchr(b'\n', &plain[at..]).map_or(plain.len(), |length| at + length)
            }
            Some(b'*') => memchr::memmem::find(&plain[at..], b"*/")
                .map_or(plain.len(), |length| at + length + 2),
            _ => {
                at += 1;
                continue;
            }
        };
        plain[at..end]
            .iter_mut()
            .filter(|byte| **byte != b'\n')
            .for_each(|byte| *byte = b' ');
        at = end;
    }
    Cow::Owned(plain)
}

/// Reads a schedule.
pub(super) fn read(name: &str, text: &[u8]) -> Result<Schedule, TraceError> {
    let plain = without_comments(text);
    let input = ScanInput { name, text: &plain };
    let mut reader = GoalReader {
        input,
        graphs: Vec::new(),
        rank: None,
        labels: 0,
    };
    let mut line = 0;
    let mut words = Vec::new();
    for range in lines(&plain, 0) {
        line += 1;
        split_words(&plain[range.clone()], &mut words);
        if !words.is_empty() {
            reader
                .read_line(&words, line)
                .map_err(|fault| input.refuse(range.start, fault))?;
        }
    }
    reader.finish(line)
}

/// Divides a line into words. Braces and the colons of labels are words of their own.
fn split_words<'a>(line: &'a [u8], words: &mut Vec<&'a [u8]>) {
    words.clear();
    let mut start = None;
    for (at, byte) in line.iter().enumerate() {
        let single = matches!(byte, b'{' | b'}' | b':' | b';');
        if (single || byte.is_ascii_whitespace())
            && let Some(from) = start.take()
        {
            words.push(&line[from..at]);
        }
        if single && *byte != b';' {
            words.push(&line[at..at + 1]);
        } else if !single && !byte.is_ascii_whitespace() && start.is_none() {
            start = Some(at);
        }
    }
    words.extend(start.map(|from| &line[from..]));
}

struct GoalReader<'a> {
    input: ScanInput<'a>,
    graphs: Vec<Option<Graph>>,
    rank: Option<RankText<'a>>,
    /// Number of labels of the last rank: the next one usually has as many.
    labels: usize,
}

/// Rank whose braces are open.
#[derive(Default)]
struct RankText<'a> {
    rank: usize,
    nodes: Vec<OperationNode>,
    /// Labels, defined or not, numbered in the order of their first occurrence.
    labels: KeyMap<&'a [u8]>,
    /// Operation that each label names.
    named: Vec<Option<u32>>,
    dependencies: Vec<PendingDependency>,
}

/// Dependency between the numbers of two labels, which may be defined later.
struct PendingDependency {
    later: u32,
    earlier: u32,
    after: After,
    line: u32,
}

impl<'a> GoalReader<'a> {
    fn read_line(&mut self, words: &[&'a [u8]], line: u32) -> Result<(), Fault> {
        match (words, &mut self.rank) {
            ([b"num_ranks", count], None) if self.graphs.is_empty() => {
                let count = parsed(count).filter(|count: &usize| (1..=1 << 24).contains(count));
                let count = count.ok_or(Fault::malformed("num_ranks N, N from 1 to 16,777,216"))?;
                let length = self.input.text.len();
                if count > length {
                    let found = format!("{count} ranks in a text of {length} bytes");
                    return Err(Fault::value(found, "no more ranks than the text describes"));
                }
                self.graphs.resize(count, None);
                Ok(())
            }
            ([b"rank", rank] | [b"rank", rank, b"{"], None) => self.open_rank(rank),
            ([b"{"], Some(_)) => Ok(()),
            ([b"}"], Some(_)) => self.close_rank(),
            (_, Some(open)) => open.read_statement(words, line, self.graphs.len()),
            _ => Err(Fault::malformed(
                "num_ranks N, then rank R { ... } for each rank",
            )),
        }
    }

    fn open_rank(&mut self, word: &[u8]) -> Result<(), Fault> {
        let rank = one_rank(word, self.graphs.len())?.index();
        if self.graphs[rank].is_some() {
            return Err(Fault::value(format!("rank {rank} again"), "each rank once"));
        }
        self.rank = Some(RankText {
            rank,
            labels: KeyMap::with_capacity(self.labels),
            ..RankText::default()
        });
        Ok(())
    }

    fn close_rank(&mut self) -> Result<(), Fault> {
        let open = self.rank.take().expect("only an open rank is closed");
        let rank = open.rank;
        self.labels = open.labels.len();
        let name = self.input.name;
        self.graphs[rank] = Some(open.into_graph(name)?);
        Ok(())
    }

    fn finish(self, line: u32) -> Result<Schedule, TraceError> {
        if let Some(open) = &self.rank {
            return Err(TraceError::At {
                place: format!("{}:{line}", self.input.name),
                found: format!("the end of the file inside rank {}", open.rank),
                expected: "a closing brace".to_owned(),
            });
        }
        let graphs = self
            .graphs
            .into_iter()
            .map(Option::unwrap_or_default)
            .collect();
        Ok(Schedule {
            name: self.input.name.to_owned(),
            graphs,
        })
    }
}

const STATEMENT: &str = "[label:] send SIZEb to RANK, recv SIZEb from RANK, calc NANOSECONDS [tag T] [cpu C] [nic N], or LABEL requires|irequires LABEL";

impl<'a> RankText<'a> {
    fn read_statement(&mut self, words: &[&'a [u8]], line: u32, ranks: usize) -> Result<(), Fault> {
        if let [later, word @ (b"requires" | b"irequires"), earlier] = words {
            let after = if *word == b"requires" {
                After::End
            } else {
                After::Start
            };
            let (later, earlier) = (self.label(later), self.label(earlier));
            self.dependencies.push(PendingDependency {
                later,
                earlier,
                after,
                line,
            });
            return Ok(());
        }
        let (label, words) = match words {
            [label, b":", rest @ ..] => (Some(*label), rest),
            _ => (None, words),
        };
        let node = read_operation(words, line, ranks)?;
        let index = self.nodes.len() as u32;
        self.nodes.push(node);
        if let Some(label) = label {
            let number = self.label(label) as usize;
            if self.named[number].replace(index).is_some() {
                let found = format!("label {} again", shown(label));
                return Err(Fault::value(found, "each label once in a rank"));
            }
        }
        Ok(())
    }

    fn label(&mut self, label: &'a [u8]) -> u32 {
        let number = self.labels.number(label);
        if number as usize == self.named.len() {
            self.named.push(None);
        }
        number
    }

    fn into_graph(self, name: &str) -> Result<Graph, Fault> {
        let dependencies: Vec<Dependency> = self
            .dependencies
            .iter()
            .map(|pending| {
                let PendingDependency {
                    later,
                    earlier,
                    after,
                    line,
                } = *pending;
                let [later, earlier] = [later, earlier].map(|label| {
                    self.named[label as usize].ok_or_else(|| {
                        let expected =
                            format!("a label of rank {} (used in {name}:{line})", self.rank);
                        Fault::value(format!("label {}", shown(self.labels.key(label))), expected)
                    })
                });
                Ok(Dependency {
                    later: later?,
                    earlier: earlier?,
                    after,
                })
            })
            .collect::<Result<_, Fault>>()?;
        Ok(graph(self.nodes, &dependencies))
    }
}

fn read_operation(words: &[&[u8]], line: u32, ranks: usize) -> Result<OperationNode, Fault> {
    let (operation, options) = match words {
        [b"calc", nanos, options @ ..] => {
            let nanos = parsed(nanos).filter(|nanos| is_duration(*nanos));
            let nanos = nanos.ok_or(Fault::malformed("calc NANOSECONDS, at least 0"))?;
            (Operation::Calc(Time::from_nanos(nanos)), options)
        }
        [b"send", size, b"to", peer, options @ ..] => {
            let to = rank(peer, ranks)?.ok_or(Fault::malformed("a send to one rank"))?;
            (
                Operation::Send {
                    to,
                    size: byte_size(size)?,
                    tag: Some(0),
                },
                options,
            )
        }
        [b"recv", size, b"from", peer, options @ ..] => (
            Operation::Recv {
                from: rank(peer, ranks)?,
                size: byte_size(size)?,
                tag: Some(0),
            },
            options,
        ),
        [
            operation @ (b"put" | b"get" | b"append" | b"tappend" | b"test"),
            ..,
        ] => {
            let found = format!(
                "{}, an operation of LogGOPSim 2",
                String::from_utf8_lossy(operation)
            );
            return Err(Fault::value(found, "send, recv or calc"));
        }
        _ => return Err(Fault::malformed(STATEMENT)),
    };
    let mut made = node(operation, line);
    for option in options.chunks(2) {
        read_option(&mut made, option)?;
    }
    Ok(made)
}

fn read_option(node: &mut OperationNode, option: &[&[u8]]) -> Result<(), Fault> {
    match (option, &mut node.operation) {
        ([b"tag", word], Operation::Send { tag, .. } | Operation::Recv { tag, .. }) => {
            *tag = match *word {
                b"-1" => None,
                word => Some(parsed(word).ok_or(Fault::malformed(
                    "a tag from 0 to 4,294,967,295, or -1 for any",
                ))?),
            };
        }
        ([b"cpu", word], _) => {
            node.cpu = parsed(word).ok_or(Fault::malformed("a cpu from 0 to 255"))?
        }
        ([b"nic", word], _) => {
            node.nic = parsed(word).ok_or(Fault::malformed("a nic from 0 to 255"))?
        }
        _ => return Err(Fault::malformed(STATEMENT)),
    }
    Ok(())
}

fn byte_size(word: &[u8]) -> Result<Bytes, Fault> {
    word.strip_suffix(b"b")
        .and_then(parsed)
        .map(Bytes)
        .ok_or_else(|| Fault::value(shown(word), "a size such as 1024b"))
}

/// Reads a rank; `None` means any rank (-1).
fn rank(word: &[u8], ranks: usize) -> Result<Option<Rank>, Fault> {
    if word == b"-1" {
        Ok(None)
    } else {
        one_rank(word, ranks).map(Some)
    }
}

fn one_rank(word: &[u8], ranks: usize) -> Result<Rank, Fault> {
    parsed(word)
        .map(Rank)
        .filter(|rank| rank.index() < ranks)
        .ok_or_else(|| {
            Fault::value(
                format!("rank {}", shown(word)),
                format!("a rank below {ranks}"),
            )
        })
}
