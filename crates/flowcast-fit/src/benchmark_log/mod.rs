//! Logs of benchmarks: the tables of all tests in a text, each with the full name of its test. Other text between them is
//! ignored.
//!
//! A section starts with a test's banner or, without a banner, with the names of a table's columns. It ends at the start of
//! the next section. `lines` removes prefixes of launchers and loggers. `formats` knows the banners and tables of each
//! benchmark.

pub(crate) mod formats;
pub(crate) mod lines;
pub(crate) mod netpipe;
pub(crate) mod prefix;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use lines::LogLine;
use prefix::LinePrefix;

/// Benchmarks whose logs can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Benchmark {
    /// OSU micro-benchmarks.
    Osu,
    /// Intel MPI Benchmarks.
    Imb,
    /// perftest, of linux-rdma.
    Perftest,
    /// SKaMPI 5.
    Skampi,
    /// ReproMPI.
    Reprompi,
    /// nccl-tests and rccl-tests.
    NcclTests,
    /// NetPIPE.
    Netpipe,
    /// Netgauge.
    Netgauge,
}

use Benchmark::*;

impl Benchmark {
    /// All benchmarks with their names.
    pub const NAMES: [(Benchmark, &str); 8] = [
        (Osu, "OSU"),
        (Imb, "IMB"),
        (Perftest, "perftest"),
        (Skampi, "SKaMPI"),
        (Reprompi, "ReproMPI"),
        (NcclTests, "nccl-tests"),
        (Netpipe, "NetPIPE"),
        (Netgauge, "Netgauge"),
    ];
}

impl fmt::Display for Benchmark {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut names = Benchmark::NAMES.iter();
        let found = names.find(|(benchmark, _)| benchmark == self);
        out.pad(found.expect("each has a name").1)
    }
}

/// Name in messages of a test without a name.
pub(crate) const WITHOUT_NAME: &str = "test without a name";

/// The table of one test.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LogSection<'a> {
    pub benchmark: Benchmark,
    /// Full name of the test, from its banner or its command line. `None` if neither contains it.
    pub test: Option<String>,
    /// Number of the first line.
    pub line: usize,
    /// Words of the line with the names of the columns.
    pub columns: Vec<&'a str>,
    /// Settings around the table, such as the number of processes.
    pub settings: BTreeMap<&'static str, &'a str>,
    pub rows: Vec<LogRow<'a>>,
    /// Lines inside the table that are not rows of it.
    pub strays: Vec<&'a LogLine>,
    is_complete: bool,
}

/// One row of a table.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LogRow<'a> {
    pub line: usize,
    pub prefix: &'a LinePrefix,
    pub words: Vec<&'a str>,
}

impl LogSection<'_> {
    /// Index of a column in the line with the names of the columns.
    pub(crate) fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| *column == name)
    }

    /// Returns the word of a row under the name of a column. Columns before it may be empty, but not those after it.
    pub(crate) fn word<'w>(&self, words: &[&'w str], column: &str) -> Option<&'w str> {
        let from_end = self.columns.len() - self.column(column)?;
        words.get(words.len().checked_sub(from_end)?).copied()
    }

    /// Number of processes that take part, if the log contains it.
    pub(crate) fn processes(&self) -> Option<u64> {
        let [processes, groups, last] = ["processes", "groups", "last rank"]
            .map(|name| self.settings.get(name)?.parse::<u64>().ok());
        processes
            .or(groups.map(|groups| groups * 2))
            .or(last.map(|rank| rank + 1))
    }

    /// Name of the benchmark and the test in messages.
    pub(crate) fn name(&self) -> String {
        let mode = self.settings.get("mode").copied();
        let test = mode.or(self.test.as_deref()).unwrap_or(WITHOUT_NAME);
        let others = self.processes().filter(|count| *count != 2);
        let among = others.map(|count| match count {
            1 => " of one process".to_owned(),
            _ => format!(" among {count} processes"),
        });
        format!("{} {test}{}", self.benchmark, among.unwrap_or_default())
    }
}

/// A line that is not a row.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum LineMark<'a> {
    /// A banner with the full name of the test.
    Banner(String),
    /// The names of a table's columns.
    Columns,
    /// A setting of the test with its value.
    Setting(&'static str, &'a str),
    /// The end of a table.
    End,
}

/// Returns all sections of a log in their order.
pub(crate) fn sections(lines: &[LogLine]) -> Vec<LogSection<'_>> {
    let mut reader = SectionReader::default();
    lines.iter().for_each(|line| reader.read_line(line));
    reader.sections
}

#[derive(Default)]
struct SectionReader<'a> {
    sections: Vec<LogSection<'a>>,
    /// Settings before the first line of the next section.
    settings: Vec<(Benchmark, &'static str, &'a str)>,
    /// Programs that command lines have named since the start of the last section.
    programs: BTreeSet<&'a str>,
    /// Numbers that distinguish the rows of the last section, with their prefixes.
    sizes: BTreeSet<(&'a str, u64)>,
    /// Lines that are not rows since the last row.
    strays: Vec<&'a LogLine>,
    /// `true` if there is other text between the last row and this line.
    is_interrupted: bool,
}

impl<'a> SectionReader<'a> {
    fn read_line(&mut self, line: &'a LogLine) {
        let words: Vec<&str> = line.text.split_whitespace().collect();
        if let Some((benchmark, mark)) = formats::mark(&words) {
            self.take_mark(line.number, benchmark, mark, words);
        } else if self.continues_table(&words) {
            self.take_row(line, words);
        } else if let Some((benchmark, test)) = formats::lone_row(&words) {
            self.open(benchmark, Some(test.to_owned()), line.number);
            self.take_row(line, words);
        } else {
            self.take_other(line, &words);
        }
    }

    fn take_mark(
        &mut self,
        number: usize,
        benchmark: Benchmark,
        mark: LineMark<'a>,
        words: Vec<&'a str>,
    ) {
        match mark {
            LineMark::Banner(test) => self.open(benchmark, Some(test), number),
            LineMark::Columns => {
                self.open_table(number, benchmark);
                self.sections.last_mut().expect("one was opened").columns = words;
            }
            LineMark::Setting(name, value) => match self.sections.last_mut() {
                Some(last) if last.benchmark == benchmark && last.rows.is_empty() => {
                    last.settings.insert(name, value);
                }
                _ => self.settings.push((benchmark, name, value)),
            },
            LineMark::End => {
                if let Some(last) = self.sections.last_mut() {
                    last.is_complete = true;
                }
            }
        }
    }

    fn open(&mut self, benchmark: Benchmark, test: Option<String>, number: usize) {
        let settings = self.settings.extract_if(.., |(of, name, _)| {
            *of == benchmark && formats::is_setting_of(name, test.as_deref())
        });
        let settings = settings.map(|(_, name, value)| (name, value)).collect();
        self.sections.push(LogSection {
            benchmark,
            test,
            line: number,
            columns: Vec::new(),
            settings,
            rows: Vec::new(),
            strays: Vec::new(),
            is_complete: false,
        });
        self.programs.clear();
        self.sizes.clear();
        self.strays.clear();
    }

    /// Opens a table. The names of columns belong to the preceding banner. Without a banner, a command line may name the
    /// test.
    fn open_table(&mut self, number: usize, benchmark: Benchmark) {
        let last = self
            .sections
            .last()
            .filter(|last| last.benchmark == benchmark);
        let test = match last {
            Some(last) if last.rows.is_empty() && !last.is_complete => return,
            // OSU prints the names of columns before the table of each data type.
            Some(last) if benchmark == Osu => last.test.clone(),
            _ => {
                let mut own = self
                    .programs
                    .iter()
                    .filter(|name| formats::program_of(name) == Some(benchmark));
                let test = own.next().map(|name| (*name).to_owned());
                test.filter(|_| own.next().is_none())
            }
        };
        self.open(benchmark, test, number);
    }

    /// Returns `true` if a line continues the table of the last section. After an interruption, its size must be larger
    /// than the last.
    fn continues_table(&self, words: &[&str]) -> bool {
        let Some(last) = self.sections.last().filter(|last| !last.is_complete) else {
            return false;
        };
        formats::is_row(last, words)
            && (!self.is_interrupted
                || last.rows.last().is_none_or(|row| {
                    match (row.words[0].parse::<u64>(), words[0].parse::<u64>()) {
                        (Ok(before), Ok(own)) => before < own,
                        _ => true,
                    }
                }))
    }

    fn take_row(&mut self, line: &'a LogLine, words: Vec<&'a str>) {
        self.take_call(&words);
        if let Some(size) = formats::number_of_row(&words)
            && !self.sizes.insert((&line.prefix.label, size))
        {
            self.begin_again(size, line);
        }
        let last = self.sections.last_mut().expect("one is open");
        last.strays.append(&mut self.strays);
        last.rows.push(LogRow {
            line: line.number,
            prefix: &line.prefix,
            words,
        });
        self.is_interrupted = false;
    }

    /// Starts a new section for another run, because a size has occurred again. The smaller sizes just before it belong to
    /// the new run as well.
    fn begin_again(&mut self, size: u64, line: &'a LogLine) {
        let last = self.sections.last_mut().expect("one is open");
        let kept = last
            .rows
            .iter()
            .rposition(|row| formats::number_of_row(&row.words) >= Some(size));
        let rows = last.rows.split_off(kept.map_or(0, |at| at + 1));
        let numbers = rows.iter().map(|row| formats::number_of_row(&row.words));
        self.sizes = numbers
            .chain([Some(size)])
            .filter_map(|number| Some((line.prefix.label.as_str(), number?)))
            .collect();
        let next = LogSection {
            line: rows.first().map_or(line.number, |row| row.line),
            rows,
            strays: Vec::new(),
            test: last.test.clone(),
            columns: last.columns.clone(),
            settings: last.settings.clone(),
            ..*last
        };
        self.sections.push(next);
    }

    /// Sorts a row of ReproMPI, which names its test, into the section of this test.
    fn take_call(&mut self, words: &[&str]) {
        let last = self.sections.last_mut().expect("one is open");
        let Some(call) = formats::call_of_row(last, words) else {
            return;
        };
        let test = last.test.get_or_insert_with(|| call.to_owned());
        if test == call {
            return;
        }
        let line = last.line;
        let section = match self
            .sections
            .iter()
            .rposition(|section| section.line == line && section.test.as_deref() == Some(call))
        {
            Some(at) => self.sections.remove(at),
            None => LogSection {
                test: Some(call.to_owned()),
                rows: Vec::new(),
                ..self.sections.last().expect("one is open").clone()
            },
        };
        self.sections.push(section);
    }

    /// Remembers the programs that a line names, and the lines inside a table that are not rows of it.
    fn take_other(&mut self, line: &'a LogLine, words: &[&'a str]) {
        self.is_interrupted = true;
        let names = words.iter().map(|word| formats::base_name(word));
        let programs = names.filter(|name| formats::program_of(name).is_some());
        self.programs.extend(programs);
        let window = formats::window_of_command(words);
        let setting = window.map(|window| (Osu, formats::WINDOW, window));
        self.settings.extend(setting);
        let (Some(first), Some(last)) = (words.first(), self.sections.last_mut()) else {
            return;
        };
        if first.starts_with(|sign: char| sign.is_ascii_digit()) {
            // A size without a time, or the row of another table.
            last.is_complete |= formats::is_row(last, words);
            last.strays.append(&mut self.strays);
            last.strays.push(line);
        } else if !last.rows.is_empty() && !first.starts_with('#') && !first.starts_with("--") {
            self.strays.push(line);
        }
    }
}
