//! `flowcast compare`: finds the parts that became slower between two saved predictions, recordings or traces of one
//! program.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use flowcast::{
    PreparedProgram,
    answers::ROWS,
    formats::read::disturbance,
    recording::format::RECORDING,
    statements::by_name,
    statistics::{
        sample::median,
        two_sample::{DifferenceTest, RunNoise, TwoSamples},
    },
    table::{Document, DocumentPart, Table, rows},
    trace::{Trace, recorded_times::measured, run_times::RunTimes},
    units::{Rounded, Time},
    why::{change_words, compare_runs, relative_change},
};
use serde::Deserialize;

use super::compare_work::{Work, with_work};
use flowcast_io::ReplayRequest;

use crate::recording::{disturbed_by, open_recording};
use flowcast_terminal::{
    exit::Finding,
    files::{declare, read_text},
    network_args::{load, parse_overrides},
    output::Format,
    say,
    shares::{probability, share},
    tables::RowLimit,
    trace_args::{Maps, open_trace},
};

/// Compare two predictions, recordings or traces of a program
///
/// Lists the calls, regions and ranks that became slower. The exit code is 1 if the program became slower than a threshold
/// allows.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowcast predict lu.dim --network gige-tcp --json > before.json
  flowcast compare before.json after.json --spread 0% --threshold 5%
  flowcast compare before/ after/ --threshold 5% --tables markdown > comparison.md
  flowcast compare recorded-before/ recorded-after/ --threshold 5%
  flowcast compare before.dim after.dim --network gige-tcp --threshold 5%")]
pub(crate) struct Compare {
    /// Output of `flowcast predict --json`, or a folder with several, such as of different seeds; a recording, or a folder
    /// with recordings of several runs; with --network any trace. A saved prediction and a recording are compared by the
    /// times of ranks
    before: PathBuf,
    /// Input of the same kinds after a change of the program, network or mapping
    after: PathBuf,
    /// Compare the predictions of both traces on this network
    #[arg(short, long, value_name = "NET")]
    network: Option<String>,
    /// Replace a field of the network, such as nic.latency=5us (repeatable)
    #[arg(long = "set", value_name = "KEY=VALUE", requires = "network")]
    overrides: Vec<String>,
    #[command(flatten)]
    replay: ReplayRequest,
    /// Largest accepted slowdown, such as 5%; the exit code is 1 if the certain slowdown is larger
    #[arg(long, value_name = "SHARE", value_parser = threshold)]
    threshold: Option<f64>,
    /// Probability that no difference in any row is wrongly called certain
    #[arg(long, default_value = "0.95", value_name = "PROBABILITY", value_parser = probability)]
    level: f64,
    /// Standard deviation of equal runs, such as 3%, if there are no repetitions; 0% for runs that repeat exactly: every
    /// difference is certain, as between two predictions without this option
    #[arg(long, value_name = "SHARE", value_parser = share)]
    spread: Option<f64>,
    #[command(flatten)]
    rows: RowLimit,
    #[command(flatten)]
    format: Format,
}

/// Part of `flowcast/replay/1` that is compared.
#[derive(Debug, Deserialize)]
struct Saved {
    schema: String,
    makespan_s: f64,
    #[serde(default)]
    messages: u64,
    #[serde(default)]
    bytes: u64,
    ranks: Vec<SavedRank>,
    #[serde(default)]
    notes: Vec<String>,
}

/// One side of a comparison.
#[derive(Default)]
struct Side {
    runs: Vec<RunTimes>,
    /// Work of the first run.
    work: Work,
    is_predicted: bool,
    /// Notes on the origin of the times.
    notes: Vec<String>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
struct SavedRank {
    end_s: f64,
    compute_s: f64,
    blocked_s: f64,
    overhead_s: f64,
}

impl Saved {
    fn work(&self) -> Work {
        Work::predicted(self.messages, self.bytes)
    }

    fn run_times(&self) -> RunTimes {
        let seconds = Time::from_seconds;
        RunTimes {
            total: seconds(self.makespan_s),
            communication: self
                .ranks
                .iter()
                .map(|rank| seconds(rank.blocked_s + rank.overhead_s))
                .collect(),
            computation: self
                .ranks
                .iter()
                .map(|rank| seconds(rank.compute_s))
                .collect(),
            ..RunTimes::default()
        }
    }

    /// Checks that the times can belong to one prediction: no part exceeds the whole.
    fn check(&self) -> Result<()> {
        ensure!(
            self.makespan_s >= 0.0 && self.makespan_s.is_finite(),
            "makespan_s: found {}, expected a finite number of seconds, at least 0",
            self.makespan_s
        );
        for (number, rank) in self.ranks.iter().enumerate() {
            let SavedRank {
                end_s,
                compute_s,
                blocked_s,
                overhead_s,
            } = *rank;
            ensure!(
                within(end_s, self.makespan_s),
                "rank {number}: found end_s {end_s}, expected 0 to {}, the makespan",
                self.makespan_s
            );
            for (field, part) in [
                ("compute_s", compute_s),
                ("blocked_s", blocked_s),
                ("overhead_s", overhead_s),
            ] {
                ensure!(
                    within(part, end_s),
                    "rank {number}: found {field} {part}, expected 0 to {end_s}, the end of the rank"
                );
            }
        }
        Ok(())
    }
}

/// `true` if a part is within its whole, up to rounding errors of sums.
fn within(part: f64, whole: f64) -> bool {
    part >= 0.0 && part <= whole * (1.0 + 1e-9) + 1e-12
}

impl Compare {
    /// Compares, prints, and fails if the change exceeds the threshold.
    pub(crate) fn run(self) -> Result<()> {
        declare([self.before.as_path(), self.after.as_path()], [])?;
        if self.network.is_some()
            || !holds_predictions(&self.before)?
            || !holds_predictions(&self.after)?
        {
            return self.compare_runs();
        }
        let (before, after) = (read(&self.before)?, read(&self.after)?);
        let [expected, found] = [&before, &after].map(|side| side[0].ranks.len());
        ensure!(
            found == expected,
            "{}: found {found} ranks, expected {expected}, as in the prediction before",
            self.after.display()
        );
        let test = self.test(before.len() == 1 && after.len() == 1);
        let (document, change) = compared(&before, &after, test)?;
        let document = with_work(document, &before[0].work(), &after[0].work())
            .noted(notes(&saved_notes(&before), &saved_notes(&after)));
        self.format.print(&document.most(self.rows.rows(), ROWS))?;
        self.judge(change)
    }

    fn test(&self, are_single_predictions: bool) -> DifferenceTest {
        let noise = match self.spread {
            Some(0.0) => RunNoise::Repeatable,
            Some(noise) => RunNoise::Stated(noise),
            None if are_single_predictions => RunNoise::Predictions,
            None => RunNoise::Repetitions,
        };
        DifferenceTest {
            level: self.level,
            noise,
        }
    }

    /// Fails if the certain relative change exceeds the threshold.
    fn judge(&self, change: Option<f64>) -> Result<()> {
        match (self.threshold, change) {
            (Some(threshold), Some(change)) if change > threshold => bail!(Finding(format!(
                "{}, more than the threshold of {} %",
                change_words(change),
                threshold * 100.0
            ))),
            _ => Ok(()),
        }
    }

    fn compare_runs(&self) -> Result<()> {
        let (mut before, mut after) = (self.side(&self.before)?, self.side(&self.after)?);
        let is_mixed = before.is_predicted != after.is_predicted;
        if is_mixed {
            // A saved prediction has times of ranks, but none of calls and regions.
            for run in before.runs.iter_mut().chain(&mut after.runs) {
                run.calls.clear();
                run.regions.clear();
            }
        }
        let paths = [self.before.display(), self.after.display()];
        let title = format!("{} to {}", paths[0], paths[1]);
        let test = self.test(before.is_single_prediction() && after.is_single_prediction());
        let (mut answer, change) = compare_runs(&title, &before.runs, &after.runs, test)?;
        if is_mixed {
            let [predicted, recorded] = match before.is_predicted {
                true => ["before", "after"],
                false => ["after", "before"],
            };
            let line = format!(
                "prediction ({predicted}) against recording ({recorded}): the difference includes the prediction error"
            );
            answer.parts.insert(0, DocumentPart::Line(line));
        } else {
            answer = with_work(answer, &before.work, &after.work);
        }
        let answer = answer.noted(notes(&before.notes, &after.notes));
        self.format.print(&answer.most(self.rows.rows(), ROWS))?;
        self.judge(change)
    }

    /// Times of one side: of the runs of a recording, of a prediction for a trace, or of saved predictions.
    fn side(&self, path: &Path) -> Result<Side> {
        if let Some(name) = &self.network {
            return self.predicted(path, name);
        }
        if holds_predictions(path)? {
            let saved = read(path)?;
            return Ok(Side {
                runs: saved.iter().map(Saved::run_times).collect(),
                work: saved[0].work(),
                is_predicted: true,
                notes: saved_notes(&saved),
            });
        }
        let mut folders = vec![path.to_owned()];
        if path.is_dir() && !is_recording(path) {
            folders = entries(path)?;
        }
        folders.retain(|folder| is_recording(folder));
        ensure!(
            !folders.is_empty(),
            "{}: found no times of a run, expected a recording, a folder with recordings, predictions, or --network NET for a trace",
            path.display()
        );
        let mut side = Side::default();
        for folder in &folders {
            let files = open_recording(folder)?;
            if side.runs.is_empty() {
                side.work = Work::recorded(&files);
            }
            side.runs.push(measured(&files));
            side.notes
                .extend(disturbed_by(folder).as_deref().map(disturbance));
        }
        Ok(side)
    }

    fn predicted(&self, path: &Path, network: &str) -> Result<Side> {
        let network = load(network, &parse_overrides(&self.overrides)?)?;
        let trace = open_trace(path)?;
        let Trace::Program(program) = &trace else {
            bail!(
                "{}: found a GOAL schedule, expected a trace",
                path.display()
            );
        };
        let prepared = PreparedProgram::new(
            program,
            &network,
            &self.replay.options(&mut Maps::default())?,
        )?;
        Ok(Side {
            runs: prepared.run_times(&[], 0)?,
            work: Work::of_program(program),
            is_predicted: true,
            notes: prepared.notes(),
        })
    }
}

impl Side {
    fn is_single_prediction(&self) -> bool {
        self.is_predicted && self.runs.len() == 1
    }
}

fn saved_notes(saved: &[Saved]) -> Vec<String> {
    saved.iter().flat_map(|one| one.notes.clone()).collect()
}

/// Notes of both sides. A note of one side names its side.
fn notes(before: &[String], after: &[String]) -> Vec<String> {
    let sides = [("before", before), ("after", after)].into_iter();
    let named =
        sides.flat_map(|(side, notes)| notes.iter().map(|note| (side.to_owned(), note.clone())));
    by_name(&named.collect::<Vec<_>>())
}

/// Parses the share of `--threshold`. It was a number of per cent in earlier versions, so numbers below 1 without a unit are
/// ambiguous.
fn threshold(text: &str) -> Result<f64, String> {
    let number = share(text)?;
    if number < 0.0 {
        return Err("expected a share of at least 0, such as 5%".to_owned());
    }
    if number == 0.0 || text.ends_with('%') {
        return Ok(number);
    }
    if number < 1.0 {
        return Err(format!(
            "expected a percentage, such as {text}% or {}%",
            number * 100.0
        ));
    }
    say!("flowcast: note: --threshold {text} is read as --threshold {text}%");
    Ok(number / 100.0)
}

/// Entries of a folder, sorted by name.
fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let found = std::fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    let mut found: Vec<PathBuf> = found
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<_>>()?;
    found.sort();
    Ok(found)
}

/// `true` if a path is a saved prediction or a folder that contains one.
fn holds_predictions(path: &Path) -> Result<bool> {
    Ok(match path.is_dir() {
        true => !is_recording(path) && entries(path)?.iter().any(|file| is_json(file)),
        false => is_json(path),
    })
}

fn is_recording(folder: &Path) -> bool {
    folder.join(RECORDING).exists()
}

fn is_json(file: &Path) -> bool {
    file.extension().is_some_and(|ending| ending == "json")
}

/// Reads the prediction of a file, or the predictions of all files of a folder, sorted by name. There is at least one.
fn read(path: &Path) -> Result<Vec<Saved>> {
    let mut files = vec![path.to_owned()];
    if path.is_dir() {
        files = entries(path)?;
        files.retain(|file| is_json(file));
    }
    let mut all: Vec<Saved> = Vec::new();
    for file in &files {
        let expected =
            "expected the output of `flowcast predict --json` for a trace (flowcast/replay/1)";
        let name = file.display();
        let saved: Saved = serde_json::from_str(&read_text(file)?)
            .with_context(|| format!("{name}: found no prediction, {expected}"))?;
        ensure!(
            saved.schema == "flowcast/replay/1",
            "{name}: found the schema `{}`, {expected}",
            saved.schema
        );
        saved.check().with_context(|| name.to_string())?;
        all.push(saved);
    }
    let name = path.display();
    ensure!(
        !all.is_empty(),
        "{name}: found no .json file, expected predictions"
    );
    ensure!(
        all.iter()
            .all(|saved| saved.ranks.len() == all[0].ranks.len()),
        "{name}: found predictions with different numbers of ranks, expected predictions of one program"
    );
    Ok(all)
}

/// Comparison of both sides, and the relative change of the time if it is certain. Times of several predictions are medians.
fn compared(
    before: &[Saved],
    after: &[Saved],
    test: DifferenceTest,
) -> Result<(Document, Option<f64>)> {
    let (old, new) = (makespans(before), makespans(after));
    let [before_s, after_s] = [median(&old)?, median(&new)?].map(seconds);
    let change = relative_change(before_s, after_s);
    let repetitions = [old.len(), new.len()];
    let both = TwoSamples {
        before: old,
        after: new,
    };
    let is_certain = test.certain_differences(&[both])?[0];
    let words = change_words(change);
    let doubt = if is_certain || change == 0.0 {
        ""
    } else {
        ", which is not certain"
    };
    let document = Document::new("prediction-comparison")
        .field("before_s", before_s)
        .field("after_s", after_s)
        .field("change", change.is_finite().then_some(change))
        .field("repetitions", repetitions)
        .field("is_certain", is_certain)
        .line(format!(
            "{words}: {} before, {} after{doubt}",
            Rounded(before_s),
            Rounded(after_s)
        ))
        .line(test.describe(repetitions[0], repetitions[1]))
        .table("ranks", rank_table(before, after)?);
    Ok((document, is_certain.then_some(change)))
}

fn makespans(all: &[Saved]) -> Vec<f64> {
    all.iter().map(|saved| saved.makespan_s).collect()
}

/// End of each rank and its additional time by activity. Ranks with the largest loss come first.
fn rank_table(before: &[Saved], after: &[Saved]) -> Result<Table> {
    let mut all = (0..before[0].ranks.len())
        .map(|rank| Ok((rank, medians(before, rank)?, medians(after, rank)?)))
        .collect::<Result<Vec<_>>>()?;
    all.sort_by_key(|(rank, old, new)| {
        (std::cmp::Reverse(seconds(new[0]) - seconds(old[0])), *rank)
    });
    let mut table = rows(&all)
        .column("rank", "rank", |(rank, ..)| *rank)
        .column("before_s", "end before", |(_, old, _)| seconds(old[0]))
        .column("after_s", "end after", |(_, _, new)| seconds(new[0]));
    for (part, name, heading) in [
        (1, "compute_s", "compute change"),
        (2, "blocked_s", "blocked change"),
        (3, "overhead_s", "overhead change"),
    ] {
        table = table.column(name, heading, |(_, old, new)| {
            seconds(new[part] - old[part])
        });
    }
    Ok(table.into())
}

fn medians(all: &[Saved], rank: usize) -> Result<[f64; 4]> {
    Ok([
        median_of(all, rank, |rank| rank.end_s)?,
        median_of(all, rank, |rank| rank.compute_s)?,
        median_of(all, rank, |rank| rank.blocked_s)?,
        median_of(all, rank, |rank| rank.overhead_s)?,
    ])
}

fn median_of(all: &[Saved], rank: usize, part: fn(&SavedRank) -> f64) -> Result<f64> {
    let parts: Vec<f64> = all.iter().map(|saved| part(&saved.ranks[rank])).collect();
    Ok(median(&parts)?)
}

fn seconds(value: f64) -> Time {
    Time::from_nanos(value * 1e9)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn saved(makespan_s: f64) -> Saved {
        let rank = SavedRank {
            end_s: makespan_s,
            compute_s: 0.5,
            blocked_s: makespan_s - 0.5,
            overhead_s: 0.0,
        };
        Saved {
            schema: String::new(),
            makespan_s,
            messages: 0,
            bytes: 0,
            ranks: vec![rank],
            notes: Vec::new(),
        }
    }

    #[test]
    fn overlapping_predictions_give_no_certain_difference() {
        let compared = |old: &[f64], new: &[f64]| {
            let all = |times: &[f64]| times.iter().map(|time| saved(*time)).collect::<Vec<_>>();
            super::compared(&all(old), &all(new), DifferenceTest::default()).unwrap()
        };
        let (_, apart) = compared(&[1.0, 1.01, 0.99], &[1.2, 1.21, 1.19]);
        assert!((apart.unwrap() - 0.2).abs() < 1e-9);
        assert_eq!(compared(&[1.0, 1.5, 0.8], &[1.2, 0.9, 1.6]).1, None);
        let (single, change) = compared(&[1.0], &[1.5]);
        let ranks = &single.json().unwrap()["ranks"];
        assert!(change.is_none() && ranks[0]["blocked_s"] == 0.5);
    }

    #[test]
    fn parts_of_a_prediction_are_no_larger_than_the_whole() {
        let saved = |end_s, compute_s, blocked_s| Saved {
            schema: String::new(),
            makespan_s: 2.0,
            messages: 0,
            bytes: 0,
            ranks: vec![SavedRank {
                end_s,
                compute_s,
                blocked_s,
                overhead_s: 0.0,
            }],
            notes: Vec::new(),
        };
        assert!(saved(2.0, 1.5, 0.5).check().is_ok());
        for (wrong, field) in [
            (saved(2.1, 1.0, 1.0), "end_s"),
            (saved(-1.0, 0.0, 0.0), "end_s"),
            (saved(2.0, 2.5, 0.0), "compute_s"),
            (saved(2.0, 1.0, -0.1), "blocked_s"),
            (saved(2.0, f64::NAN, 0.0), "compute_s"),
        ] {
            assert!(wrong.check().unwrap_err().to_string().contains(field));
        }
    }
}
