//! Completed patterns, as lines of a journal.

use flowcast::{
    model::cluster::flow::Flow,
    units::{Bytes, Node, Time},
};
use flowcast_measure::lab::{LabSpec, PatternRun};
use serde::{Deserialize, Serialize};

use super::{journal, patterns::NamedPattern};
use flowcast_terminal::repeating::Over;

/// Lab and transport of the patterns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Header {
    /// Lab that carried the patterns. A run can only be resumed in the same lab.
    pub lab: LabSpec,
    /// Transport of the messages, if it is not TCP.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    over: String,
    /// Shard of the patterns and number of patterns of the whole run, such as `2/4 of 90`; empty for a whole run.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub shard: String,
}

impl Header {
    /// Header for patterns in a lab.
    pub(super) fn new(lab: &LabSpec, over: Over) -> Header {
        let over = if over == Over::Mpi { "mpi" } else { "" };
        Header {
            lab: lab.clone(),
            over: over.to_owned(),
            shard: String::new(),
        }
    }

    /// Transport of the messages.
    pub(super) fn over(&self) -> &str {
        if self.over.is_empty() {
            "tcp"
        } else {
            &self.over
        }
    }
}

impl journal::Header for Header {
    const KIND: &'static str = "validation";
    const LINES: &'static str = "patterns";
    const SAME: &'static str = "lab, transport or shard";
}

/// A completed pattern, stored as a line of the journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Finished {
    /// Name of the pattern, unique in its configuration.
    pub name: String,
    /// Configuration to which it belongs.
    pub configuration: String,
    /// `true` if all durations have the requested precision.
    pub is_precise: bool,
    /// Number of repetitions that were not counted, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warm_ups: Option<u32>,
    /// Disturbance of the machine, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disturbed_by: Option<String>,
    /// Flows with their durations.
    pub flows: Vec<FinishedFlow>,
}

/// A flow with its durations.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FinishedFlow {
    id: u32,
    src: u32,
    dst: u32,
    bytes: u64,
    start_s: f64,
    durations_s: Vec<f64>,
    /// Number of its step, counted from 0.
    #[serde(default, skip_serializing_if = "is_first")]
    step: u32,
}

fn is_first(step: &u32) -> bool {
    *step == 0
}

impl Finished {
    /// Completed pattern from its description and its run.
    pub(super) fn new(named: &NamedPattern, run: &PatternRun, warm_ups: usize) -> Finished {
        Finished {
            name: named.name.clone(),
            configuration: named.configuration.clone(),
            is_precise: run.is_precise,
            warm_ups: u32::try_from(warm_ups).ok(),
            disturbed_by: None,
            flows: named
                .pattern
                .flows
                .iter()
                .enumerate()
                .map(|(index, flow)| FinishedFlow {
                    id: flow.id,
                    src: flow.src.0,
                    dst: flow.dst.0,
                    bytes: flow.size.0,
                    start_s: flow.start.as_seconds(),
                    durations_s: run
                        .durations_of(index)
                        .iter()
                        .map(|time| time.as_seconds())
                        .collect(),
                    step: named.step_of[index],
                })
                .collect(),
        }
    }

    /// Flows without their durations.
    pub(super) fn pattern_flows(&self) -> Vec<Flow> {
        self.flows
            .iter()
            .map(|flow| Flow {
                id: flow.id,
                src: Node(flow.src),
                dst: Node(flow.dst),
                size: Bytes(flow.bytes),
                start: Time::from_seconds(flow.start_s),
            })
            .collect()
    }

    /// Number of counted repetitions.
    pub(super) fn repetitions(&self) -> u32 {
        self.flows
            .first()
            .map_or(1, |flow| flow.durations_s.len() as u32)
    }

    /// Number of the step, by flow.
    pub(super) fn steps(&self) -> Vec<u32> {
        self.flows.iter().map(|flow| flow.step).collect()
    }

    /// Durations, by flow and repetition.
    pub(super) fn durations(&self) -> Vec<Vec<Time>> {
        self.flows
            .iter()
            .map(|flow| {
                flow.durations_s
                    .iter()
                    .map(|seconds| Time::from_seconds(*seconds))
                    .collect()
            })
            .collect()
    }

    /// `true` if this is the given pattern.
    pub(super) fn is(&self, named: &NamedPattern) -> bool {
        self.name == named.name
            && self.steps() == named.step_of
            && self
                .flows
                .iter()
                .zip(&named.pattern.flows)
                .all(|(own, flow)| {
                    let start = (own.start_s - flow.start.as_seconds()).abs() < 1e-9;
                    (own.src, own.dst, own.bytes) == (flow.src.0, flow.dst.0, flow.size.0) && start
                })
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::journal::{Journal, read},
        *,
    };
    use flowcast::model::cluster::pattern::Pattern;
    use flowcast_measure::lab::{FlowTimes, profile};
    use flowcast_terminal::growing;
    use std::{fs::OpenOptions, io::Write};

    fn finished(name: &str) -> Finished {
        let pattern = Pattern::read("x", b"0 -> 1 4MB @ 50ms\n2 -> 1 1MB\n").unwrap();
        let named = NamedPattern {
            name: name.into(),
            configuration: "two".into(),
            pattern,
            step_of: vec![0, 1],
        };
        let carried = FlowTimes {
            start: Time::ZERO,
            end: Time::from_seconds(0.1 + 0.2),
        };
        let run = PatternRun {
            repetitions: vec![vec![carried; 2]; 3],
            is_precise: true,
        };
        let finished = Finished::new(&named, &run, 2);
        assert!(finished.is(&named));
        finished
    }

    #[test]
    fn a_killed_run_resumes_with_its_finished_patterns() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report.html.journal");
        let header = Header::new(&profile("fair", &[]).unwrap(), Over::Tcp);
        let mut journal = Journal::start(&path, &header).unwrap();
        journal.append(&finished("a")).unwrap();
        journal.append(&finished("b")).unwrap();
        // The run was killed in the middle of a line.
        drop(journal);
        OpenOptions::new()
            .append(true)
            .open(&path)
            .unwrap()
            .write_all(b"# part 80 01234567\n{\"name\":\"c")
            .unwrap();
        assert!(
            Journal::start(&path, &header)
                .unwrap_err()
                .to_string()
                .contains("--resume")
        );

        let (mut journal, known) = Journal::resume::<_, Finished>(&path, &header).unwrap();
        assert_eq!(known, [finished("a"), finished("b")]);
        journal.append(&finished("c")).unwrap();
        drop(journal);
        let all: Vec<Finished> = read::<Header, _>(&path).unwrap().lines;
        assert_eq!(
            all.iter()
                .map(|finished| finished.name.as_str())
                .collect::<Vec<_>>(),
            ["a", "b", "c"]
        );
        assert_eq!(all[2].durations()[1].len(), 3);
        assert_eq!(
            all[0].pattern_flows()[0].start,
            Time::parse("50ms").unwrap()
        );
    }

    #[test]
    fn a_journal_of_another_lab_or_with_a_garbled_line_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.journal");
        let header = |name: &str| Header::new(&profile(name, &[]).unwrap(), Over::Tcp);
        Journal::start(&path, &header("fair"))
            .unwrap()
            .append(&finished("a"))
            .unwrap();
        assert!(
            Journal::resume::<_, Finished>(&path, &header("bus"))
                .unwrap_err()
                .to_string()
                .contains("another lab")
        );
        std::fs::write(&path, growing::read(&path).unwrap() + "garbled\n").unwrap();
        assert!(
            format!("{:#}", read::<Header, Finished>(&path).err().unwrap())
                .contains("x.journal:3: ")
        );
        // The run was killed before the header was complete.
        std::fs::write(&path, "# par").unwrap();
        assert!(
            Journal::resume::<_, Finished>(&path, &header("bus"))
                .unwrap()
                .1
                .is_empty()
        );
    }
}
