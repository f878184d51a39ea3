//! Repeated sequences of calls, folded: what an iterative program does again and again is written once.
//!
//! Behind the control byte stand: calls in the sequence, repetitions, a stride, the sequence's signatures; then the
//! times of each call of repetitions 0, `stride`, `2 stride` and so on; then, with a stride above 1, for each call of
//! the sequence the mean times of the repetitions between. With stride 1 nothing is lost.

/// A call without its arguments' meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FoldEntry {
    /// Number of its signature.
    pub signature: u32,
    /// Computation before it, in ns.
    pub burst: u64,
    /// Thread CPU time of that, in ns.
    pub cpu: u64,
    /// Time in it, in ns.
    pub call: u64,
}

/// A run of calls: `period` calls that come `repeats` times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// Index of its first call.
    pub start: usize,
    /// Calls in one repetition.
    pub period: usize,
    /// How often it comes.
    pub repeats: usize,
}

/// The longest sequence that is looked for.
pub const LONGEST: usize = 1024;

/// Cuts calls into runs, from the front: at each place the period that saves most.
///
/// `next` is filled with the next place of the same signature for each place: only those distances can be periods. It
/// is the caller's, so that nothing is allocated here; it must be as long as `entries`, `seen` longer than the highest
/// signature.
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

/// How many next places of a signature are tried as periods.
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
    fn a_loop_is_one_run_with_what_comes_before_and_after_it() {
        assert_eq!(cut(&[9, 1, 2, 1, 2, 1, 2, 8]), [(1, 1), (2, 3), (1, 1)]);
        assert_eq!(cut(&[1, 1, 1, 1]), [(1, 4)]);
        assert_eq!(cut(&[1, 1, 2, 1, 1, 2, 1, 1, 2]), [(3, 3)]);
        assert_eq!(cut(&[]), []);
    }

    proptest! {
        #[test]
        fn runs_unroll_to_what_was_cut(signatures in proptest::collection::vec(0u32..4, 0..200)) {
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
