//! Samples of `flowcast rails bench`, in a file beside the result until all rounds are complete.

use std::{collections::BTreeMap, path::Path};

use anyhow::Result;
use flowcast::{
    fit::sample_table::{self, Sample, SampleForm, head},
    statistics::sample::median,
    units::{Bytes, Time},
};

use crate::commands::samples_file::SamplesFile;
use flowcast_terminal::growing::GrowingFile;

/// Results of one N and size: the one-way times of all rounds for each subject.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Point {
    /// Number of messages of a round that are in flight together, at least 1.
    pub messages: u32,
    /// Size of each message.
    pub size: Bytes,
    /// One-way times, by subject and round.
    pub one_way: Vec<Vec<Time>>,
}

impl Point {
    /// Median rate of a subject, in Mbit/s.
    pub(super) fn rate(&self, subject: usize) -> f64 {
        let micros: Vec<f64> = self.one_way[subject]
            .iter()
            .map(|time| time.as_micros())
            .collect();
        megabits(
            self.messages,
            self.size,
            Time::from_micros(median(&micros).unwrap_or(f64::INFINITY)),
        )
    }

    /// Ratio of a subject's rate to the best rate of the last `alone` subjects.
    pub(super) fn over_best_alone(&self, subject: usize, alone: usize) -> f64 {
        let rails = self.one_way.len() - alone..self.one_way.len();
        self.rate(subject) / rails.map(|rail| self.rate(rail)).fold(0.0, f64::max)
    }
}

/// Plan of the measurement. The header of the file contains it, and a run is only resumed with rows of the same plan.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Plan {
    /// Rails, sizes and further settings: the header lines of the file.
    pub settings: BTreeMap<String, String>,
    /// Names of the schedulers and single rails, which are the column headings of the table.
    pub names: Vec<String>,
    /// N and sizes, in the order of a round.
    pub points: Vec<(u32, Bytes)>,
}

impl Plan {
    /// Rows of the visit with this number. Visits go through all points, round by round.
    fn rows(&self, visit: usize, one_way: &[Time]) -> String {
        let (messages, size) = self.points[visit % self.points.len()];
        let round = visit / self.points.len() + 1;
        let mut text = String::new();
        for (what, time) in self.names.iter().zip(one_way) {
            let sample = Sample {
                what,
                messages,
                size,
                repetition: round as u32,
                time: *time,
                ..Sample::default()
            };
            sample.push(FORM.required, &mut text);
        }
        text
    }
}

fn megabits(messages: u32, size: Bytes, one_way: Time) -> f64 {
    f64::from(messages) * size.0 as f64 * 8.0 / one_way.as_micros()
}

/// Visits so far, each with one time per subject. With a file, a killed run loses at most its current visit.
#[derive(Debug)]
pub(super) struct Results {
    plan: Plan,
    visits: Vec<Vec<Time>>,
    kept: Option<GrowingFile>,
}

const FORM: SampleForm = SampleForm {
    required: &["what", "n", "size_B", "repetition", "time_us"],
    optional: &[],
};

impl Results {
    /// Results in memory only.
    pub(super) fn unkept(plan: Plan) -> Results {
        Results {
            plan,
            visits: Vec::new(),
            kept: None,
        }
    }

    /// Results in a file. With `resume`, it continues with the samples of an interrupted run, if there are any.
    pub(super) fn open(target: &Path, resume: bool, plan: Plan) -> Result<Results> {
        let same: Vec<&str> = plan.settings.keys().map(String::as_str).collect();
        let file = SamplesFile {
            target,
            resume,
            head: head(&plan.settings, FORM.required),
            same: &same,
        };
        let (kept, times) = file.open(|text| {
            let mut times = Vec::new();
            sample_table::read(text, &FORM, |_, sample| {
                times.push(sample.time);
                Ok(())
            })?;
            Ok(times)
        })?;
        let visits = times.chunks(plan.names.len()).map(<[Time]>::to_vec);
        Ok(Results {
            visits: visits.collect(),
            plan,
            kept: Some(kept),
        })
    }

    /// Number of completed visits.
    pub(super) fn visits(&self) -> usize {
        self.visits.len()
    }

    /// All rounds of each point.
    pub(super) fn points(&self) -> Vec<Point> {
        let count = self.plan.points.len();
        self.plan
            .points
            .iter()
            .enumerate()
            .map(|(index, (messages, size))| Point {
                messages: *messages,
                size: *size,
                one_way: (0..self.plan.names.len())
                    .map(|subject| {
                        let rounds = self.visits.iter().skip(index).step_by(count);
                        rounds.map(|visit| visit[subject]).collect()
                    })
                    .collect(),
            })
            .collect()
    }

    /// Adds a visit and writes it to the file.
    pub(super) fn append(&mut self, one_way: Vec<Time>) -> Result<()> {
        if let Some(kept) = &mut self.kept {
            kept.append(&self.plan.rows(self.visits.len(), &one_way))?;
        }
        self.visits.push(one_way);
        Ok(())
    }

    /// Writes the complete file and removes the partial one.
    pub(super) fn finish(&self) -> Result<()> {
        let Some(kept) = &self.kept else {
            return Ok(());
        };
        let visits = self.visits.iter().enumerate();
        let rows: String = visits
            .map(|(visit, one_way)| self.plan.rows(visit, one_way))
            .collect();
        kept.finish_text(&(head(&self.plan.settings, FORM.required) + &rows))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use flowcast_terminal::growing::partial;

    fn plan() -> Plan {
        let points = vec![(1, Bytes(64)), (8, Bytes(64))];
        Plan {
            settings: BTreeMap::from([("rounds".into(), "2".into())]),
            names: vec!["x".into(), "a alone".into()],
            points,
        }
    }

    fn times(visit: usize) -> Vec<Time> {
        vec![
            Time::from_micros(10.0 + visit as f64),
            Time::from_micros(20.5),
        ]
    }

    #[test]
    fn a_run_killed_while_it_writes_can_be_resumed() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("bench.csv");
        let mut whole = Results::open(&target, false, plan()).unwrap();
        (0..4).for_each(|visit| whole.append(times(visit)).unwrap());
        let text = fs::read(partial(&target)).unwrap();
        whole.finish().unwrap();
        let expected = fs::read(&target).unwrap();
        for killed_at in 0..=text.len() {
            fs::write(partial(&target), &text[..killed_at]).unwrap();
            let mut results = Results::open(&target, true, plan()).unwrap();
            let done = results.visits();
            assert_eq!(done == 4, killed_at == text.len());
            (done..4).for_each(|visit| results.append(times(visit)).unwrap());
            results.finish().unwrap();
            assert_eq!(
                fs::read(&target).unwrap(),
                expected,
                "killed at {killed_at}"
            );
            assert!(!partial(&target).exists());
        }
    }

    #[test]
    fn rounds_visit_all_points_and_medians_cover_all_rounds() {
        let mut results = Results::unkept(plan());
        (0..4).for_each(|visit| results.append(times(visit)).unwrap());
        let points = results.points();
        assert_eq!((points[1].messages, points[1].size), (8, Bytes(64)));
        assert_eq!(points[1].one_way[0], [times(1)[0], times(3)[0]]);
        assert!((points[0].rate(0) - 64.0 * 8.0 / 11.0).abs() < 1e-9);
        assert!((points[0].over_best_alone(0, 1) - 20.5 / 11.0).abs() < 1e-9);
    }

    #[test]
    fn samples_of_another_bench_are_not_resumed() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("bench.csv");
        Results::open(&target, false, plan())
            .unwrap()
            .append(times(0))
            .unwrap();
        let message = format!("{:#}", Results::open(&target, false, plan()).unwrap_err());
        assert!(message.contains("--resume"), "{message}");
        let other = Plan {
            settings: BTreeMap::from([("rounds".into(), "3".into())]),
            ..plan()
        };
        let message = format!("{:#}", Results::open(&target, true, other).unwrap_err());
        assert!(
            message.contains("found rounds 2, expected 3 as in this run"),
            "{message}"
        );
    }
}
