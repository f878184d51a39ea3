//! Comparison of two versions of a program: slower calls, regions and ranks, and the certainty of the differences.

use std::collections::{BTreeMap, BTreeSet};

use flowcast_program::run_times::RunTimes;
use flowcast_statistics::{
    sample::median,
    two_sample::{DifferenceTest, TwoSamples},
};
use flowcast_table::{Document, rows};
use flowcast_units::{Rounded, Time};

use super::{change_words, relative_change};
use crate::Error;

/// Selects times of a run by name.
type NamedTimes = fn(&RunTimes) -> &BTreeMap<String, Time>;

/// Row of the comparison: times of the whole run, or of a call, region or rank.
struct RunRow {
    what: &'static str,
    of: String,
    before: Time,
    after: Time,
    times: TwoSamples,
    is_certain: bool,
}

impl RunRow {
    fn more(&self) -> Time {
        self.after - self.before
    }
}

/// Compares the runs after a change with the runs before it. The document lists the largest increase first; times of several
/// runs are medians. The second value is the relative change of the total time; `None` if the test does not make it certain.
///
/// # Errors
/// No runs, or runs of different numbers of ranks.
pub fn compare_runs(
    title: &str,
    before: &[RunTimes],
    after: &[RunTimes],
    test: DifferenceTest,
) -> Result<(Document, Option<f64>), Error> {
    let ranks = before.first().map_or(0, |run| run.communication.len());
    if let Some(other) = before
        .iter()
        .chain(after)
        .find(|run| run.communication.len() != ranks || ranks == 0)
    {
        let found = format!("runs of {ranks} and of {} ranks", other.communication.len());
        return Err(Error::option(
            "compare",
            found,
            "runs of one program with the same number of ranks",
        ));
    }
    let compared = compared(before, after, ranks, test)?;
    let whole = &compared[0];
    let change = relative_change(whole.before, whole.after);
    let mut others: Vec<&RunRow> = compared[1..].iter().collect();
    others.sort_by_key(|row| std::cmp::Reverse(row.more()));
    let table = rows(others.iter().copied())
        .column("what", "what", |row| row.what)
        .column("of", "of", |row| &row.of)
        .column("before_s", "before", |row| row.before)
        .column("after_s", "after", |row| row.after)
        .cell("more", |row| row.more())
        .column("is_certain", "certain", |row| row.is_certain);
    let document = Document::new("run-comparison")
        .titled(title)
        .lines(lines(
            whole,
            &others,
            test.describe(before.len(), after.len()),
        ))
        .table("rows", table)
        .field("before_s", whole.before)
        .field("after_s", whole.after)
        .field("change", change.is_finite().then_some(change))
        .field("is_certain", whole.is_certain)
        .field("repetitions", [before.len(), after.len()]);
    Ok((document, whole.is_certain.then_some(change)))
}

/// Rows of the comparison, with the whole run first.
fn compared(
    before: &[RunTimes],
    after: &[RunTimes],
    ranks: usize,
    test: DifferenceTest,
) -> Result<Vec<RunRow>, Error> {
    let row = |what, of: String, time: &dyn Fn(&RunTimes) -> Time| -> Result<RunRow, Error> {
        let [before, after] = [before, after].map(|runs| {
            runs.iter()
                .map(|run| time(run).as_nanos())
                .collect::<Vec<f64>>()
        });
        let times = TwoSamples { before, after };
        let [before, after] = [
            Time::from_nanos(median(&times.before)?),
            Time::from_nanos(median(&times.after)?),
        ];
        Ok(RunRow {
            what,
            of,
            before,
            after,
            times,
            is_certain: false,
        })
    };
    let mut rows = vec![row("run", "all".to_owned(), &|run| run.total)?];
    let named: [(&str, NamedTimes); 2] =
        [("call", |run| &run.calls), ("region", |run| &run.regions)];
    for (what, times) in named {
        let runs = before.iter().chain(after);
        let names: BTreeSet<&String> = runs.flat_map(|run| times(run).keys()).collect();
        for name in names {
            rows.push(row(what, name.clone(), &|run: &RunTimes| {
                times(run).get(name).copied().unwrap_or_default()
            })?);
        }
    }
    for rank in 0..ranks {
        rows.push(row("compute of rank", rank.to_string(), &|run| {
            run.computation[rank]
        })?);
        rows.push(row("MPI of rank", rank.to_string(), &|run| {
            run.communication[rank]
        })?);
    }
    let times: Vec<TwoSamples> = rows.iter().map(|row| row.times.clone()).collect();
    for (row, is_certain) in rows.iter_mut().zip(test.certain_differences(&times)?) {
        row.is_certain = is_certain;
    }
    Ok(rows)
}

fn lines(whole: &RunRow, others: &[&RunRow], certainty: String) -> Vec<String> {
    let change = relative_change(whole.before, whole.after);
    let words = change_words(change);
    let doubt = if whole.is_certain || change == 0.0 {
        ""
    } else {
        ", which is not certain"
    };
    let most = others
        .iter()
        .find(|row| row.more() > Time::ZERO && row.is_certain);
    let most = most.map_or(String::new(), |row| {
        format!(
            "; largest increase in {} {}, by {}",
            row.what,
            row.of,
            Rounded(row.more())
        )
    });
    let times = format!(
        "{} before, {} after",
        Rounded(whole.before),
        Rounded(whole.after)
    );
    vec![format!("{words}: {times}{doubt}{most}"), certainty]
}

#[cfg(test)]
mod tests {
    use super::*;
    use flowcast_statistics::two_sample::RunNoise;

    fn compare(
        title: &str,
        before: &[RunTimes],
        after: &[RunTimes],
    ) -> Result<(Document, Option<f64>), Error> {
        compare_runs(title, before, after, DifferenceTest::default())
    }

    fn certain(document: &Document) -> impl Iterator<Item = serde_json::Value> {
        let json = document.json().unwrap();
        json["rows"].as_array().unwrap().clone().into_iter()
    }

    fn first(document: &Document) -> &str {
        document.words().next().unwrap()
    }

    fn run(send_ms: f64) -> RunTimes {
        let mut run = RunTimes::of_ranks(2);
        run.total = Time::from_micros(100.0 + send_ms);
        run.communication = vec![Time::from_micros(send_ms), Time::from_micros(5.0)];
        run.add_call("sends", Time::from_micros(send_ms));
        run.add_region("solve", Time::from_micros(50.0));
        run
    }

    #[test]
    fn slower_parts_are_named_and_certain_only_if_repetitions_do_not_overlap() {
        let runs = |times: &[f64]| times.iter().map(|time| run(*time)).collect::<Vec<_>>();
        let (answer, change) = compare(
            "t",
            &runs(&[10.0, 10.1, 9.9, 10.0]),
            &runs(&[20.0, 20.1, 19.9, 20.0]),
        )
        .unwrap();
        assert!((change.unwrap() - 10.0 / 110.0).abs() < 1e-9);
        assert!(
            first(&answer).starts_with("9.1 % longer than before"),
            "{}",
            first(&answer)
        );
        assert!(
            first(&answer).contains("largest increase in call sends, by 10.00 us"),
            "{}",
            first(&answer)
        );
        let (answer, change) =
            compare("t", &runs(&[10.0, 30.0, 20.0]), &runs(&[15.0, 35.0, 22.0])).unwrap();
        assert_eq!(change, None);
        assert!(
            first(&answer).contains("is not certain"),
            "{}",
            first(&answer)
        );
        let mut other = run(1.0);
        other.communication.pop();
        assert!(compare("t", &[run(1.0)], &[other]).is_err());
    }

    #[test]
    fn no_row_is_certain_with_a_single_run_each() {
        let (answer, change) = compare("t", &[run(10.0)], &[run(20.0)]).unwrap();
        assert_eq!(change, None);
        assert!(
            certain(&answer).all(|row| row["is_certain"] == false),
            "{answer:?}"
        );
        assert_eq!(answer.json().unwrap()["is_certain"], false);
        let repeatable = DifferenceTest {
            noise: RunNoise::Repeatable,
            ..DifferenceTest::default()
        };
        let (answer, change) = compare_runs("t", &[run(10.0)], &[run(20.0)], repeatable).unwrap();
        assert!(
            change.is_some() && certain(&answer).next().unwrap()["is_certain"] == true,
            "{answer:?}"
        );
    }
}
