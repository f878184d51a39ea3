//! The file of measured conflicts: a CSV with one row for each flow of each repetition, under a header of
//! `# key: value` lines.
//!
//! ```csv
//! # schema: flowcast/conflict-samples/1
//! conflict,kind,repetition,flow,src,dst,src_rack,dst_rack,size_B,start_us,duration_us
//! out-2,out,1,1,0,1,,,4000000,0,1359871.2
//! out-2,out,1,2,0,2,,,4000000,0,1360204.9
//! ```
//!
//! The rows of a conflict stand together, repetition after repetition, flow after flow. Racks are empty where there are
//! none.

use std::{collections::BTreeMap, fmt::Write};

use flowcast_fit::{
    samples::{header, micros, provenance, whole},
    zoo::pattern::{Pattern, PatternSamples},
};
use flowcast_model::{
    cluster::{
        conflicts::{Conflict, Kind},
        flow::Flow,
        racks::Racks,
    },
    csv::{self, CsvError},
    stats::sample::median,
};
use flowcast_units::{Bytes, Node, Time};

/// The schema that this version reads and writes.
pub const SCHEMA: &str = "flowcast/conflict-samples/1";

const COLUMNS: [&str; 11] = [
    "conflict",
    "kind",
    "repetition",
    "flow",
    "src",
    "dst",
    "src_rack",
    "dst_rack",
    "size_B",
    "start_us",
    "duration_us",
];

/// A conflict that was carried several times.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// The conflict with the flows that were carried.
    pub conflict: Conflict,
    /// Durations by flow, then by repetition; at least one each.
    pub durations: Vec<Vec<Time>>,
}

impl Measured {
    /// How often it was carried.
    pub fn repetitions(&self) -> usize {
        self.durations.first().map_or(0, Vec::len)
    }

    fn pattern(&self) -> Option<PatternSamples> {
        let Conflict { name, flows, .. } = &self.conflict;
        let first = flows.first()?;
        if flows
            .iter()
            .any(|flow| (flow.size, flow.start) != (first.size, first.start))
        {
            return None;
        }
        let messages = flows.iter().map(|flow| (flow.src, flow.dst)).collect();
        let times: Vec<Time> = (0..self.repetitions())
            .filter_map(|repetition| self.durations.iter().map(|times| times[repetition]).max())
            .collect();
        let is_usable = !times.is_empty() && times.iter().all(|time| *time > Time::ZERO);
        let pattern = Pattern {
            name: name.clone(),
            size: first.size,
            messages,
        };
        is_usable.then_some(PatternSamples { pattern, times })
    }

    /// The median duration of each flow.
    pub fn medians(&self) -> Vec<Time> {
        self.durations
            .iter()
            .map(|times: &Vec<Time>| {
                let seconds: Vec<f64> = times.iter().map(|time| time.as_seconds()).collect();
                Time::from_seconds(
                    median(&seconds).expect("each flow was carried, and times are finite"),
                )
            })
            .collect()
    }
}

/// All conflicts of a measurement.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ConflictSamples {
    /// Where they come from: the header's `key: value` pairs apart from the schema.
    pub provenance: BTreeMap<String, String>,
    /// Where the nodes stand.
    pub racks: Racks,
    /// In the order in which they were carried.
    pub measured: Vec<Measured>,
}

impl ConflictSamples {
    /// Whether a file is meant as one.
    pub fn is_one(text: &str) -> bool {
        text.lines().any(|line| {
            line.strip_prefix("# schema:")
                .is_some_and(|name| name.trim() == SCHEMA)
        }) || csv::has_columns(text, COLUMNS)
    }

    /// Reads the file.
    ///
    /// # Errors
    /// Another schema, other columns, a row that does not follow from the one before, or a number out of range, with its
    /// line.
    pub fn from_csv(text: &str) -> Result<ConflictSamples, CsvError> {
        let mut reader = ConflictSamplesReader::default();
        reader.samples.provenance = provenance(text, SCHEMA)?;
        csv::read(text, COLUMNS, |line, fields| reader.read_row(line, fields))?;
        reader.finish(text.lines().count())
    }

    /// The conflicts whose messages have one size and start together, as patterns for models of messages: each repetition
    /// takes as long as its last message. The others have no such form and are left out.
    pub fn patterns(&self) -> Vec<PatternSamples> {
        self.measured.iter().filter_map(Measured::pattern).collect()
    }

    /// The samples as a CSV file: their provenance, the names of the columns, a row for each flow of each repetition.
    pub fn to_csv(&self) -> String {
        let mut text = csv_header(&self.provenance);
        self.measured
            .iter()
            .for_each(|measured| push_rows(&mut text, measured, &self.racks));
        text
    }
}

/// Header lines and column names.
pub fn csv_header(provenance: &BTreeMap<String, String>) -> String {
    header(SCHEMA, provenance, &COLUMNS.join(","))
}

/// Appends the rows of a conflict.
pub fn push_rows(text: &mut String, measured: &Measured, racks: &Racks) {
    let Conflict { name, kind, flows } = &measured.conflict;
    let rack = |node| racks.rack_of(node).map_or("", |rack| racks.name(rack));
    for repetition in 0..measured.repetitions() {
        for (flow, durations) in flows.iter().zip(&measured.durations) {
            let Flow {
                id,
                src,
                dst,
                size,
                start,
            } = flow;
            let (start, duration) = (start.as_micros(), durations[repetition].as_micros());
            let (from, to) = (rack(*src), rack(*dst));
            let repetition = repetition + 1;
            writeln!(
                text,
                "{name},{kind},{repetition},{id},{src},{dst},{from},{to},{},{start},{duration:.3}",
                size.0
            )
            .expect("text grows");
        }
    }
}

#[derive(Default)]
struct ConflictSamplesReader {
    samples: ConflictSamples,
}

/// A row as it stands.
struct ConflictRow<'a> {
    conflict: &'a str,
    kind: Kind,
    repetition: usize,
    flow: Flow,
    racks: [&'a str; 2],
    duration: Time,
}

impl ConflictSamplesReader {
    fn read_row(&mut self, line: usize, fields: [&str; COLUMNS.len()]) -> Result<(), CsvError> {
        let row = parse(line, fields)?;
        for (node, rack) in [row.flow.src, row.flow.dst].into_iter().zip(row.racks) {
            self.place(line, node, rack)?;
        }
        let last = self
            .samples
            .measured
            .last()
            .filter(|last| last.conflict.name == row.conflict);
        if last.is_none() {
            self.begin(line, &row)?;
        }
        let last = self.samples.measured.last_mut().expect("one was begun");
        add(line, last, &row)
    }

    fn place(&mut self, line: usize, node: Node, rack: &str) -> Result<(), CsvError> {
        let racks = &mut self.samples.racks;
        let known = racks.rack_of(node).map(|rack| racks.name(rack));
        match known {
            Some(known) if known == rack => Ok(()),
            Some(known) => Err(CsvError::at(
                line,
                format!("node {node} in rack `{rack}`"),
                format!("rack `{known}`"),
            )),
            None if rack.is_empty() => Ok(()),
            None => racks
                .place(node, node, rack)
                .map(drop)
                .map_err(|twice| CsvError::at(line, twice.to_string(), "each node in one rack")),
        }
    }

    fn begin(&mut self, line: usize, row: &ConflictRow<'_>) -> Result<(), CsvError> {
        self.check_last(line)?;
        if self
            .samples
            .measured
            .iter()
            .any(|measured| measured.conflict.name == row.conflict)
        {
            let found = format!("conflict `{}` again", row.conflict);
            return Err(CsvError::at(line, found, "the rows of a conflict together"));
        }
        let conflict = Conflict {
            name: row.conflict.to_owned(),
            kind: row.kind,
            flows: Vec::new(),
        };
        self.samples.measured.push(Measured {
            conflict,
            durations: Vec::new(),
        });
        Ok(())
    }

    /// The conflict before has as many repetitions of each flow.
    fn check_last(&self, line: usize) -> Result<(), CsvError> {
        let Some(last) = self.samples.measured.last() else {
            return Ok(());
        };
        let repetitions = last.repetitions();
        match last
            .durations
            .iter()
            .position(|durations| durations.len() != repetitions)
        {
            None => Ok(()),
            Some(flow) => {
                let found = format!("the end of conflict `{}`", last.conflict.name);
                Err(CsvError::at(
                    line,
                    found,
                    format!("repetition {repetitions} of its flow {}", flow + 1),
                ))
            }
        }
    }

    fn finish(self, lines: usize) -> Result<ConflictSamples, CsvError> {
        self.check_last(lines)?;
        if self.samples.measured.is_empty() {
            return Err(CsvError::no_row(&COLUMNS));
        }
        Ok(self.samples)
    }
}

fn add(line: usize, measured: &mut Measured, row: &ConflictRow<'_>) -> Result<(), CsvError> {
    let Measured {
        conflict,
        durations,
    } = measured;
    let place = row.flow.id as usize - 1;
    let expected = durations.get(place).map_or(1, |known| known.len() + 1);
    if place > durations.len()
        || row.repetition != expected
        || (place > 0 && durations[0].len() != row.repetition)
    {
        let found = format!("repetition {} of flow {}", row.repetition, row.flow.id);
        return Err(CsvError::at(
            line,
            found,
            "repetition after repetition, the flows of each from 1 on",
        ));
    }
    if row.repetition == 1 {
        conflict.flows.push(row.flow);
        durations.push(Vec::new());
    } else if conflict.flows[place] != row.flow || conflict.kind != row.kind {
        return Err(CsvError::at(
            line,
            format!("another flow {}", row.flow.id),
            "that of the repetition before",
        ));
    }
    durations[place].push(row.duration);
    Ok(())
}

fn parse<'a>(line: usize, fields: [&'a str; COLUMNS.len()]) -> Result<ConflictRow<'a>, CsvError> {
    let [
        conflict,
        kind,
        repetition,
        flow,
        src,
        dst,
        from,
        to,
        size,
        start,
        duration,
    ] = fields;
    let node = |column: &str, field: &str| {
        let number = field.parse().map(Node);
        number.map_err(|_| CsvError::field(line, column, field, "the number of a node"))
    };
    let flow = Flow {
        id: whole(line, "flow", flow, 1_000_000)? as u32,
        src: node("src", src)?,
        dst: node("dst", dst)?,
        size: Bytes(whole(line, "size_B", size, 1 << 50)?),
        start: micros(line, "start_us", start)?,
    };
    if flow.src == flow.dst {
        return Err(CsvError::at(
            line,
            format!("a flow from node {src} to itself"),
            "two different nodes",
        ));
    }
    let duration_time = micros(line, "duration_us", duration)?;
    if duration_time == Time::ZERO {
        return Err(CsvError::at(
            line,
            format!("duration_us = `{duration}`"),
            "a number above 0",
        ));
    }
    Ok(ConflictRow {
        conflict,
        kind: Kind::from_name(kind).ok_or_else(|| {
            CsvError::at(
                line,
                format!("kind `{kind}`"),
                format!("one of {}", Kind::names()),
            )
        })?,
        repetition: whole(line, "repetition", repetition, 1_000_000)? as usize,
        flow,
        racks: [from, to],
        duration: duration_time,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use flowcast_model::cluster::conflicts::ConflictPlan;
    use proptest::prelude::*;

    fn samples(nodes: u32, repetitions: usize, racks: bool) -> ConflictSamples {
        let mut places = Racks::default();
        for node in (0..nodes).filter(|_| racks) {
            places
                .place(
                    Node(node),
                    Node(node),
                    if node < nodes / 2 { "A" } else { "B" },
                )
                .unwrap();
        }
        let plan = ConflictPlan {
            nodes: (0..nodes).map(Node).collect(),
            racks: places.clone(),
            size: Bytes(4_000_001),
            short: Bytes(0),
            most: 3,
        };
        let all = plan
            .conflicts()
            .into_iter()
            .chain(plan.random_patterns(2, 1));
        let provenance = BTreeMap::from([("host".to_owned(), "a: b".to_owned())]);
        ConflictSamples {
            provenance,
            racks: places,
            measured: all
                .map(|conflict: Conflict| {
                    let time = |flow: u32, repetition: usize| {
                        Time::from_nanos(f64::from(flow) * 1e9 + repetition as f64 * 1e4)
                    };
                    Measured {
                        durations: conflict
                            .flows
                            .iter()
                            .map(|flow: &Flow| {
                                (0..repetitions)
                                    .map(|repetition| time(flow.id, repetition))
                                    .collect()
                            })
                            .collect(),
                        conflict,
                    }
                })
                .collect(),
        }
    }

    fn error(rows: &str) -> String {
        ConflictSamples::from_csv(&format!("{}\n{rows}", COLUMNS.join(",")))
            .unwrap_err()
            .to_string()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn a_written_file_reads_back_equal(nodes in 2u32..9, repetitions in 1usize..4, racks: bool) {
            let samples = samples(nodes, repetitions, racks);
            let read = ConflictSamples::from_csv(&samples.to_csv()).unwrap();
            prop_assert_eq!(&read.provenance, &samples.provenance);
            prop_assert_eq!(&read.measured, &samples.measured);
            for node in samples.measured.iter().flat_map(|measured| &measured.conflict.flows).map(|flow| flow.src) {
                prop_assert_eq!(read.racks.rack_of(node), samples.racks.rack_of(node));
            }
            prop_assert!(ConflictSamples::is_one(&samples.to_csv()));
        }

        #[test]
        fn no_text_makes_the_reader_panic(text in "[-a-z0-9.,#:\n ]{0,120}") {
            let _ = ConflictSamples::from_csv(&format!("{}\n{text}", COLUMNS.join(",")));
        }
    }

    #[test]
    fn conflicts_of_one_size_and_start_are_patterns_that_take_as_long_as_their_last_message() {
        let rows = "in-2,in,1,1,1,0,,,8,0,5\nin-2,in,1,2,2,0,,,8,0,9\nin-2,in,2,1,1,0,,,8,0,7\nin-2,in,2,2,2,0,,,8,0,6\n\
                    odd,random,1,1,1,0,,,8,0,5\nodd,random,1,2,2,0,,,9,0,5\n";
        let read = ConflictSamples::from_csv(&format!("{}\n{rows}", COLUMNS.join(","))).unwrap();
        let patterns = read.patterns();
        assert_eq!(patterns.len(), 1);
        assert_eq!(
            patterns[0].pattern.messages,
            [(Node(1), Node(0)), (Node(2), Node(0))]
        );
        assert_eq!(
            patterns[0].times,
            [Time::from_micros(9.0), Time::from_micros(7.0)]
        );
    }

    #[test]
    fn bad_rows_are_named_with_what_was_expected() {
        let good = "out-2,out,1,1,0,1,,,4000000,0,5.5\n";
        assert_eq!(
            error(&format!("{good}out-2,out,1,3,0,2,,,4000000,0,5.5\n")),
            "line 3: found repetition 1 of flow 3, expected repetition after repetition, the flows of each from 1 on"
        );
        assert!(
            error("out-2,outs,1,1,0,1,,,4000000,0,5.5\n")
                .contains("kind `outs`, expected one of alone, out, in")
        );
        assert!(
            error("out-2,out,1,1,0,0,,,4000000,0,5.5\n").contains("a flow from node 0 to itself")
        );
        assert!(error("out-2,out,1,1,0,1,,,4000000,0,0\n").contains("expected a number above 0"));
        assert!(error("out-2,out,1,1,0,1,,,4000000,0\n").contains("found 10 fields, expected 11"));
        assert!(
            error("out-2,out,1,1,x,1,,,4000000,0,1\n")
                .contains("src = `x`, expected the number of a node")
        );
        assert!(error("out-2,out,2,1,0,1,,,4000000,0,1\n").contains("repetition 2 of flow 1"));
        assert!(
            error(&format!("{good}out-2,out,2,1,0,2,,,4000000,0,5.5\n")).contains("another flow 1")
        );
        assert!(
            error("a,out,1,1,0,1,A,B,1,0,1\nb,out,1,1,0,1,B,B,1,0,1\n")
                .contains("node 0 in rack `B`")
        );
        let two = "a,out,1,1,0,1,,,1,0,1\na,out,1,2,0,2,,,1,0,1\n";
        assert!(
            error(&format!("{two}a,out,2,1,0,1,,,1,0,1\n"))
                .contains("expected repetition 2 of its flow 2")
        );
        assert!(
            error(&format!(
                "{two}b,out,1,1,0,1,,,1,0,1\na,out,1,1,0,1,,,1,0,1\n"
            ))
            .contains("`a` again")
        );
        assert!(error("").contains("found no row"));
        assert!(
            ConflictSamples::from_csv("n,d_us\n")
                .unwrap_err()
                .to_string()
                .starts_with("line 1: found column `n`")
        );
        assert!(
            ConflictSamples::from_csv("# schema: other/1\n")
                .unwrap_err()
                .to_string()
                .contains("schema `other/1`")
        );
    }
}
