//! Measured conflicts: rows of the table of samples, one for each flow of each repetition.
//!
//! ```csv
//! # schema: flowcast/samples/2
//! what,kind,repetition,step,from,to,size_B,d_us,time_us
//! out-2,out,1,1,0,1,4000000,0,1359871.2
//! out-2,out,1,2,0,2,4000000,0,1360204.9
//! ```
//!
//! `what` is the conflict, `step` the flow in it. The rows of a conflict are ordered by repetition, then by flow. If there
//! are racks, `from_rack` and `to_rack` name them.

use std::collections::BTreeMap;

use flowcast_fit::{
    sample_table::{self, Sample, SampleForm},
    zoo::pattern::{PatternSamples, ZooPattern},
};
use flowcast_network::{
    cluster::{
        conflicts::{Conflict, ConflictKind},
        flow::Flow,
        racks::Racks,
    },
    csv::CsvError,
};
use flowcast_statistics::sample::median;
use flowcast_units::{Bytes, Node, Time};

const COLUMNS: [&str; 11] = [
    "what",
    "kind",
    "repetition",
    "step",
    "from",
    "to",
    "size_B",
    "d_us",
    "time_us",
    "from_rack",
    "to_rack",
];

const FORM: SampleForm = SampleForm {
    required: COLUMNS.first_chunk::<9>().expect("there are eleven"),
    optional: &["from_rack", "to_rack"],
};

/// A conflict that was measured several times.
#[derive(Debug, Clone, PartialEq)]
pub struct MeasuredConflict {
    /// The conflict with the flows that were sent.
    pub conflict: Conflict,
    /// Durations by flow, then by repetition; at least one each, above 0.
    pub durations: Vec<Vec<Time>>,
}

impl MeasuredConflict {
    /// Number of repetitions, the same for all flows; 0 if there are no flows.
    pub fn repetitions(&self) -> usize {
        self.durations.first().map_or(0, Vec::len)
    }

    fn add(
        &mut self,
        line: usize,
        kind: ConflictKind,
        flow: Flow,
        sample: &Sample<'_>,
    ) -> Result<(), CsvError> {
        let MeasuredConflict {
            conflict,
            durations,
        } = self;
        let (place, repetition) = (flow.id as usize - 1, sample.repetition as usize);
        let expected = durations.get(place).map_or(1, |known| known.len() + 1);
        if place > durations.len() || repetition != expected {
            let found = format!("repetition {repetition} of flow {}", flow.id);
            let expected = "repetitions in order, each with its flows numbered from 1";
            return Err(CsvError::at(line, found, expected));
        }
        if place == durations.len() {
            conflict.flows.push(flow);
            durations.push(Vec::new());
        } else if conflict.flows[place] != flow || conflict.kind != kind {
            let found = format!("a different flow {}", flow.id);
            return Err(CsvError::at(
                line,
                found,
                "the flow of the previous repetition",
            ));
        }
        durations[place].push(sample.time);
        Ok(())
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
        let times = (0..self.repetitions())
            .filter_map(|repetition| self.durations.iter().map(|times| times[repetition]).max())
            .collect();
        let pattern = ZooPattern {
            name: name.clone(),
            size: first.size,
            messages,
        };
        Some(PatternSamples { pattern, times })
    }

    /// Median duration of each flow.
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
    /// Origin: the header's `key: value` pairs except the schema.
    pub provenance: BTreeMap<String, String>,
    /// Racks of the nodes.
    pub racks: Racks,
    /// Conflicts in the order in which they were measured.
    pub measured: Vec<MeasuredConflict>,
}

impl ConflictSamples {
    /// `true` if a text is a table of samples with the column `kind`.
    pub fn is_one(text: &str) -> bool {
        sample_table::has(text, "kind")
    }

    /// Reads the file.
    ///
    /// # Errors
    /// Another schema, other columns, a row that does not follow from the previous one, or a number out of range, with its
    /// line.
    pub fn from_csv(text: &str) -> Result<ConflictSamples, CsvError> {
        let mut samples = ConflictSamples::default();
        samples.provenance =
            sample_table::read(text, &FORM, |line, sample| samples.read_row(line, sample))?;
        samples.check(text.lines().count())
    }

    /// Patterns for models of messages, from conflicts whose messages have one size and start together. The time of a
    /// repetition is the longest duration of its messages. Other conflicts are left out.
    pub fn patterns(&self) -> Vec<PatternSamples> {
        self.measured
            .iter()
            .filter_map(MeasuredConflict::pattern)
            .collect()
    }

    /// The samples as a CSV file: their provenance, the names of the columns, a row for each flow of each repetition.
    pub fn to_csv(&self) -> String {
        let mut text = csv_header(&self.provenance, &self.racks);
        self.measured
            .iter()
            .for_each(|measured| push_rows(&mut text, measured, &self.racks));
        text
    }

    fn read_row(&mut self, line: usize, sample: &Sample<'_>) -> Result<(), CsvError> {
        let [src, dst] = sample.message(line)?;
        if sample.size == Bytes(0) {
            return Err(CsvError::field(line, "size_B", "0", "a size above 0"));
        }
        self.place(line, src, sample.racks[0])?;
        self.place(line, dst, sample.racks[1])?;
        let kind = ConflictKind::from_name(sample.kind)
            .ok_or_else(|| CsvError::field(line, "kind", sample.kind, one_of_kinds()))?;
        let flow = Flow {
            id: sample.step,
            src,
            dst,
            size: sample.size,
            start: sample.delay,
        };
        let mut known = self.measured.iter();
        let at = match known.position(|known| known.conflict.name == sample.what) {
            Some(at) => at,
            None => {
                let conflict = Conflict {
                    name: sample.what.to_owned(),
                    kind,
                    flows: Vec::new(),
                };
                let durations = Vec::new();
                self.measured.push(MeasuredConflict {
                    conflict,
                    durations,
                });
                self.measured.len() - 1
            }
        };
        self.measured[at].add(line, kind, flow, sample)
    }

    fn place(&mut self, line: usize, node: Node, rack: &str) -> Result<(), CsvError> {
        let racks = &mut self.racks;
        match racks.rack_of(node).map(|rack| racks.name(rack)) {
            Some(known) if known == rack => Ok(()),
            None if rack.is_empty() => Ok(()),
            _ => racks.place(node, node, rack).map(drop).map_err(|twice| {
                let found = format!("node {node} in rack `{rack}`");
                CsvError::at(line, found, format!("rack `{}`", twice.rack))
            }),
        }
    }

    /// Checks that all flows of a conflict have the same number of repetitions.
    fn check(self, line: usize) -> Result<ConflictSamples, CsvError> {
        for measured in &self.measured {
            let repetitions = measured.repetitions();
            let mut durations = measured.durations.iter();
            if let Some(flow) = durations.position(|times| times.len() != repetitions) {
                let found = format!("the end of conflict `{}`", measured.conflict.name);
                let expected = format!("repetition {repetitions} of its flow {}", flow + 1);
                return Err(CsvError::at(line, found, expected));
            }
        }
        Ok(self)
    }
}

fn one_of_kinds() -> String {
    format!("one of {}", ConflictKind::names())
}

/// Header lines and column names, including those of racks if there are any.
pub fn csv_header(provenance: &BTreeMap<String, String>, racks: &Racks) -> String {
    sample_table::head(provenance, columns(racks))
}

fn columns(racks: &Racks) -> &'static [&'static str] {
    if racks.count() > 0 {
        &COLUMNS
    } else {
        FORM.required
    }
}

/// Appends the rows of a conflict.
pub fn push_rows(text: &mut String, measured: &MeasuredConflict, racks: &Racks) {
    let Conflict { name, kind, flows } = &measured.conflict;
    for repetition in 0..measured.repetitions() {
        for (flow, durations) in flows.iter().zip(&measured.durations) {
            let sample = Sample {
                what: name,
                kind: kind.name(),
                repetition: repetition as u32 + 1,
                step: flow.id,
                ends: [flow.src, flow.dst],
                racks: [flow.src, flow.dst]
                    .map(|node| racks.rack_of(node).map_or("", |rack| racks.name(rack))),
                size: flow.size,
                delay: flow.start,
                time: durations[repetition],
                ..Sample::default()
            };
            sample.push(columns(racks), text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flowcast_network::cluster::conflicts::ConflictPlan;
    use proptest::prelude::*;

    /// The columns of `flowcast/conflict-samples/1`.
    const FORMER: &str =
        "conflict,kind,repetition,flow,src,dst,src_rack,dst_rack,size_B,start_us,duration_us";

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
                    MeasuredConflict {
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
        ConflictSamples::from_csv(&format!("{}\n{rows}", FORMER))
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
            let _ = ConflictSamples::from_csv(&format!("{}\n{text}", FORMER));
        }
    }

    #[test]
    fn conflicts_of_one_size_and_start_are_patterns_that_take_as_long_as_their_last_message() {
        let rows = "in-2,in,1,1,1,0,,,8,0,5\nin-2,in,1,2,2,0,,,8,0,9\nin-2,in,2,1,1,0,,,8,0,7\nin-2,in,2,2,2,0,,,8,0,6\n\
                    odd,random,1,1,1,0,,,8,0,5\nodd,random,1,2,2,0,,,9,0,5\n";
        let read = ConflictSamples::from_csv(&format!("{}\n{rows}", FORMER)).unwrap();
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
    fn a_file_of_the_old_schema_is_written_in_the_new_one() {
        let rows = "out-2,out,1,1,0,1,A,B,8,0,5\nout-2,out,1,2,0,2,A,B,8,2.5,6\n";
        let read = ConflictSamples::from_csv(&format!("{FORMER}\n{rows}")).unwrap();
        assert_eq!(
            read.to_csv(),
            "# schema: flowcast/samples/2\nwhat,kind,repetition,step,from,to,size_B,d_us,time_us,from_rack,to_rack\n\
             out-2,out,1,1,0,1,8,0,5,A,B\nout-2,out,1,2,0,2,8,2.5,6,A,B\n"
        );
    }

    #[test]
    fn errors_in_rows_name_the_expected_value() {
        let good = "out-2,out,1,1,0,1,,,4000000,0,5.5\n";
        assert_eq!(
            error(&format!("{good}out-2,out,1,3,0,2,,,4000000,0,5.5\n")),
            "line 3: found repetition 1 of flow 3, expected repetitions in order, each with its flows numbered from 1"
        );
        assert!(
            error("out-2,outs,1,1,0,1,,,4000000,0,5.5\n")
                .contains("kind = `outs`, expected one of alone, out, in")
        );
        assert!(error("out-2,out,1,1,0,0,,,4000000,0,5.5\n").contains("from node 0 to itself"));
        assert!(error("out-2,out,1,1,0,1,,,4000000,0,0\n").contains("expected a time above 0"));
        assert!(error("out-2,out,1,1,0,1,,,4000000,0\n").contains("found 10 fields, expected 11"));
        assert!(
            error("out-2,out,1,1,x,1,,,4000000,0,1\n")
                .contains("src = `x`, expected the number of a node")
        );
        assert!(error("out-2,out,2,1,0,1,,,4000000,0,1\n").contains("repetition 2 of flow 1"));
        assert!(
            error(&format!("{good}out-2,out,2,1,0,2,,,4000000,0,5.5\n"))
                .contains("a different flow 1")
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
            .contains("repetition 1 of flow 1")
        );
        assert!(error("").contains("found no row"));
        assert!(
            ConflictSamples::from_csv("n,d_us\n")
                .unwrap_err()
                .to_string()
                .starts_with("line 1: found column `n`, expected the columns what,kind")
        );
        assert!(
            ConflictSamples::from_csv("# schema: other/1\n")
                .unwrap_err()
                .to_string()
                .contains("schema `other/1`")
        );
    }
}
