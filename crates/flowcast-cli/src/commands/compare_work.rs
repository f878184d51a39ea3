//! Amount of communication of two compared runs: more time for more work does not mean a slower program.

use std::collections::{BTreeMap, BTreeSet};

use flowcast::{
    recording::{decode::RankFile, summary},
    table::{Document, DocumentPart, Grouped, Record},
    trace::Program,
};

/// Maximum number of functions that a difference names.
const MOST_FUNCTIONS: usize = 3;

/// Work of a run: counts by name, such as `messages` or `calls of MPI_Send`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Work(BTreeMap<String, u64>);

impl Work {
    /// Work of a saved prediction.
    pub(super) fn predicted(messages: u64, bytes: u64) -> Work {
        Work::counted([("messages", messages), ("bytes", bytes)])
    }

    /// Work of a trace whose collective operations have not been expanded into messages.
    pub(super) fn of_program(program: &Program) -> Work {
        Work::counted([
            ("messages", program.messages().into()),
            ("bytes", program.bytes().0),
            ("collectives", program.collectives()),
        ])
    }

    /// Work of a recording. Tests and probes are left out because their number depends on timing.
    pub(super) fn recorded(files: &[RankFile]) -> Work {
        let mut sum = summary::Summary::default();
        files
            .iter()
            .for_each(|file| sum.add(&summary::summarize(file)));
        let work = sum.functions.iter().filter(|(name, _)| !is_poll(name));
        let work: Vec<_> = work.collect();
        let total =
            |count: fn(&summary::Calls) -> u64| work.iter().map(|(_, calls)| count(calls)).sum();
        let mut counts = Work::counted([
            ("calls", total(|calls| calls.calls)),
            ("bytes", total(|calls| calls.bytes)),
        ]);
        let each = work
            .iter()
            .map(|(name, calls)| (format!("calls of {name}"), calls.calls));
        counts.0.extend(each);
        counts
    }

    fn counted<const N: usize>(counts: [(&str, u64); N]) -> Work {
        Work(counts.map(|(what, count)| (what.to_owned(), count)).into())
    }

    fn record(&self) -> Record {
        let counts = self.0.iter();
        counts.fold(Record::new(), |record, (what, count)| {
            record.field(what.clone(), *count)
        })
    }

    fn count(&self, what: &str) -> u64 {
        self.0.get(what).copied().unwrap_or(0)
    }
}

fn is_poll(function: &str) -> bool {
    function.starts_with("MPI_Test") || function.to_ascii_lowercase().ends_with("probe")
}

/// Adds the work of both sides to the comparison as fields, and a line that lists the differences.
pub(super) fn with_work(document: Document, before: &Work, after: &Work) -> Document {
    let mut document = document
        .field("work_before", before.record())
        .field("work_after", after.record());
    if let Some(line) = difference(before, after) {
        document.parts.insert(1, DocumentPart::Line(line));
    }
    document
}

fn difference(before: &Work, after: &Work) -> Option<String> {
    let all: BTreeSet<&String> = before.0.keys().chain(after.0.keys()).collect();
    let all = all
        .into_iter()
        .filter(|what| before.count(what) != after.count(what));
    let (mut functions, counts): (Vec<&String>, Vec<&String>) =
        all.partition(|what| what.starts_with("calls of "));
    if functions.is_empty() && counts.is_empty() {
        return None;
    }
    functions.sort_by_key(|what| std::cmp::Reverse(before.count(what).abs_diff(after.count(what))));
    let more = match functions.len().saturating_sub(MOST_FUNCTIONS) {
        0 => String::new(),
        more => format!("; calls of {more} more functions"),
    };
    let named = counts
        .into_iter()
        .chain(functions.into_iter().take(MOST_FUNCTIONS));
    let named = named.map(|what| {
        let [before, after] = [before, after].map(|work| Grouped(work.count(what)));
        format!("{what} {before} before, {after} after")
    });
    let named: Vec<String> = named.collect();
    Some(format!("different work: {}{more}", named.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_lists_counts_before_functions_and_the_largest_first() {
        assert_eq!(
            difference(&Work::predicted(3, 9), &Work::predicted(3, 9)),
            None
        );
        assert_eq!(
            difference(&Work::predicted(4_520, 9), &Work::predicted(5_876, 9)).unwrap(),
            "different work: messages 4,520 before, 5,876 after"
        );
        let work = |calls: u64, sends: u64, others: u64| {
            let functions = ["A", "B", "C"].map(|name| (format!("calls of MPI_{name}"), others));
            let sends = [
                ("calls".to_owned(), calls),
                ("calls of MPI_Send".to_owned(), sends),
            ];
            Work(functions.into_iter().chain(sends).collect())
        };
        assert_eq!(
            difference(&work(13, 10, 1), &work(26, 20, 2)).unwrap(),
            "different work: calls 13 before, 26 after; calls of MPI_Send 10 before, 20 after; \
             calls of MPI_A 1 before, 2 after; calls of MPI_B 1 before, 2 after; calls of 1 more functions"
        );
    }
}
