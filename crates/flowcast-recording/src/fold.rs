//! Folding of repeated sequences of calls: the loop of an iterative program is written once.
//!
//! The control byte is followed by the number of calls in the sequence, the number of repetitions, a stride, the sequence's
//! signatures, and the times of each call of repetitions 0, `stride`, `2 stride` and so on. With a stride above 1, the mean
//! times of the repetitions between follow for each call of the sequence. With stride 1 the folding is lossless.

/// Call without the meaning of its arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FoldEntry {
    /// Number of the call's signature.
    pub signature: u32,
    /// Computation before the call, in ns.
    pub burst: u64,
    /// Thread CPU time of this computation, in ns.
    pub cpu: u64,
    /// Time in the call, in ns.
    pub call: u64,
}

/// Run of calls: a sequence of `period` calls, repeated `repeats` times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// Index of the first call.
    pub start: usize,
    /// Number of calls in one repetition.
    pub period: usize,
    /// Number of repetitions; 1 if the sequence occurs only once.
    pub repeats: usize,
}

/// Longest sequence that the search considers, in calls.
pub const LONGEST: usize = 1024;

/// Divides calls into runs, from front to back. Each run has the period that saves most at its position.
///
/// Fills `next` with the next position of the same signature for each position: only these distances can be periods. The
/// caller provides `next` and `seen` to avoid allocations here. `next` must be as long as `entries`, and `seen` must be
/// longer than the highest signature.
pub fn runs(entries: &[FoldEntry], next: &mut [u32], seen: &mut [u32], mut take: impl FnMut(Run)) {
    seen.fill(u32::MAX);
    for at in (0..entries.len()).rev() {
        next[at] = std::mem::replace(&mut seen[entries[at].signature as usize], at as u32);
    }
    let mut at = 0;
    while at < entries.len() {
        let run = best_run(entries, next, at);
        take(run);
        at += run.period * run.repeats;
    }
}

/// Number of later positions of a signature that are tried as periods.
const TRIES: usize = 24;

fn best_run(entries: &[FoldEntry], next: &[u32], start: usize) -> Run {
    let mut best = Run {
        start,
        period: 1,
        repeats: 1,
    };
    let mut candidate = next[start];
    for _ in 0..TRIES {
        if candidate == u32::MAX || candidate as usize - start > LONGEST {
            break;
        }
        let period = candidate as usize - start;
        let repeats = repeats(entries, start, period);
        if repeats >= 2 && saved(period, repeats) > saved(best.period, best.repeats) {
            best = Run {
                start,
                period,
                repeats,
            };
        }
        candidate = next[candidate as usize];
    }
    best
}

fn saved(period: usize, repeats: usize) -> usize {
    period * (repeats - 1)
}

fn repeats(entries: &[FoldEntry], start: usize, period: usize) -> usize {
    1 + (start + period..entries.len())
        .take_while(|at| entries[*at].signature == entries[*at - period].signature)
        .count()
        / period
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn entries(signatures: &[u32]) -> Vec<FoldEntry> {
        signatures
            .iter()
            .map(|signature| FoldEntry {
                signature: *signature,
                ..FoldEntry::default()
            })
            .collect()
    }

    fn cut(signatures: &[u32]) -> Vec<(usize, usize)> {
        let entries = entries(signatures);
        let mut found = Vec::new();
        runs(&entries, &mut vec![0; entries.len()], &mut [0; 16], |run| {
            found.push((run.period, run.repeats))
        });
        found
    }

    #[test]
    fn a_loop_is_one_run_and_calls_before_and_after_it_remain() {
        assert_eq!(cut(&[9, 1, 2, 1, 2, 1, 2, 8]), [(1, 1), (2, 3), (1, 1)]);
        assert_eq!(cut(&[1, 1, 1, 1]), [(1, 4)]);
        assert_eq!(cut(&[1, 1, 2, 1, 1, 2, 1, 1, 2]), [(3, 3)]);
        assert_eq!(cut(&[]), []);
    }

    proptest! {
        #[test]
        fn runs_unroll_to_the_folded_calls(signatures in proptest::collection::vec(0u32..4, 0..200)) {
            let entries = entries(&signatures);
            let mut back = Vec::new();
            runs(&entries, &mut vec![0; entries.len()], &mut [0; 16], |run| {
                for _ in 0..run.repeats {
                    back.extend(entries[run.start..run.start + run.period].iter().map(|entry| entry.signature));
                }
            });
            prop_assert_eq!(back, signatures);
        }
    }
}
