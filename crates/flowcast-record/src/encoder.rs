//! Encoder from calls to the bytes of a rank's file, without an allocation per call.

use flowcast_recording::{
    decode::scaled,
    fold::{self, FoldEntry, Run},
    format::{self, control, put_varint, time_code, time_of, zigzag},
};

use crate::dictionary::{self, Dictionary, SignatureState};

/// Times of a call, in ns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Times {
    /// Wall time since the previous call.
    pub burst: u64,
    /// Thread CPU time since the previous call.
    pub cpu: u64,
    /// Wall time from entry to return.
    pub call: u64,
}

/// Rounding remainder of each kind of time; each thread has its own.
#[derive(Debug, Clone, Copy, Default)]
pub struct Rest {
    pub(crate) burst: u64,
    pub(crate) call: u64,
    pub(crate) cpu: i64,
}

/// Number of calls that are collected for folding.
const WINDOW: usize = 1 << 14;

struct Folding {
    budget: u64,
    /// `true` once something did not fit into the budget.
    spent: bool,
    entries: Vec<FoldEntry>,
    next: Vec<u32>,
    seen: Vec<u32>,
    rest: Rest,
}

/// Encoder of the items of one rank.
pub struct Encoder {
    out: Vec<u8>,
    dictionary: Dictionary,
    /// Number of each function in the file, indexed by its number in the table.
    functions: Vec<u16>,
    named: u16,
    thread: u32,
    cpu_threshold: u64,
    folding: Option<Folding>,
    /// Number of bytes that have been drained.
    taken: u64,
}

const UNNAMED: u16 = u16::MAX;

impl Encoder {
    /// Creates an encoder for a table of `functions` functions, with a buffer of `buffer` bytes and optionally a budget for
    /// the total of bytes.
    pub fn new(
        functions: usize,
        cpu_threshold: u64,
        buffer: usize,
        budget: Option<u64>,
    ) -> Encoder {
        Encoder {
            out: Vec::with_capacity(buffer + buffer / 8),
            dictionary: Dictionary::default(),
            functions: vec![UNNAMED; functions],
            named: 0,
            thread: 0,
            cpu_threshold,
            folding: budget.map(|budget| Folding {
                budget,
                spent: false,
                entries: Vec::with_capacity(WINDOW),
                next: vec![0; WINDOW],
                seen: vec![0; dictionary::MOST + 1],
                rest: Rest::default(),
            }),
            taken: 0,
        }
    }

    /// Returns the number of a function in this file, and appends its name if it is new.
    #[inline]
    pub fn function(&mut self, number: u16, name: &str) -> i64 {
        let known = self.functions[number as usize];
        if known != UNNAMED {
            return i64::from(known);
        }
        self.text(control::FUNCTION, name.as_bytes());
        self.functions[number as usize] = self.named;
        self.named += 1;
        i64::from(self.named - 1)
    }

    /// Appends the name of a region; the caller numbers the names.
    pub fn name(&mut self, name: &[u8]) {
        self.text(control::NAME, name);
    }

    fn text(&mut self, kind: u8, text: &[u8]) {
        self.out.extend_from_slice(&[0, kind]);
        self.put(text.len() as u64);
        self.out.extend_from_slice(text);
    }

    #[inline]
    fn put(&mut self, value: u64) {
        let mut bytes = [0; 10];
        let length = put_varint(&mut bytes, value);
        self.out.extend_from_slice(&bytes[..length]);
    }

    /// Appends a call: its arguments, its thread and its times. Rounding takes the remainder of earlier times into account.
    #[inline]
    pub fn call(&mut self, signature: &[i64], thread: u32, times: Times, rest: &mut Rest) {
        if self.is_spent() {
            return;
        }
        let number = self.signature(signature);
        self.thread(thread);
        let Some(folding) = &mut self.folding else {
            self.put(u64::from(number) + 1);
            self.times(times, rest);
            return;
        };
        let Times { burst, cpu, call } = times;
        folding.entries.push(FoldEntry {
            signature: number,
            burst,
            cpu,
            call,
        });
        if folding.entries.len() == WINDOW {
            self.settle();
        }
    }

    /// Declares that the following calls belong to this thread.
    #[inline]
    pub fn thread(&mut self, thread: u32) {
        if thread != self.thread {
            self.switch(thread);
        }
    }

    #[cold]
    fn switch(&mut self, thread: u32) {
        self.control(control::THREAD, &[u64::from(thread)]);
        self.thread = thread;
    }

    #[inline]
    fn signature(&mut self, signature: &[i64]) -> u32 {
        match self.dictionary.number(signature) {
            SignatureState::Known(number) => number,
            SignatureState::New(number) => {
                self.out.extend_from_slice(&[0, control::SIGNATURE]);
                self.put(signature.len() as u64);
                signature.iter().for_each(|word| self.put(zigzag(*word)));
                number
            }
            SignatureState::Full => {
                self.control(control::RESET, &[]);
                self.dictionary.clear();
                self.signature(signature)
            }
        }
    }

    #[inline]
    fn times(&mut self, times: Times, rest: &mut Rest) {
        let burst = code(times.burst, &mut rest.burst);
        let mut bytes = [0; 5];
        bytes[..2].copy_from_slice(&burst.to_le_bytes());
        let burst = time_of(burst);
        let mut length = 2;
        if burst >= self.cpu_threshold {
            bytes[2] = share(times.cpu, burst, &mut rest.cpu);
            length = 3;
        }
        bytes[length..length + 2].copy_from_slice(&code(times.call, &mut rest.call).to_le_bytes());
        self.out.extend_from_slice(&bytes[..length + 2]);
    }

    /// Appends an item other than a call. Its position among the calls matters.
    pub fn control(&mut self, kind: u8, numbers: &[u64]) {
        self.settle();
        self.out.extend_from_slice(&[0, kind]);
        numbers.iter().for_each(|number| self.put(*number));
    }

    /// Appends a communicator; `remote` is the remote group of an intercommunicator.
    pub fn communicator(&mut self, own: &[i32], remote: Option<&[i32]>) {
        let flags = if remote.is_some() {
            format::COMMUNICATOR_BETWEEN_GROUPS
        } else {
            0
        };
        self.out.extend_from_slice(&[0, control::COMMUNICATOR]);
        self.put(flags);
        self.members(own);
        if let Some(remote) = remote {
            self.members(remote);
        }
    }

    fn members(&mut self, members: &[i32]) {
        let count = runs(members).count();
        self.put(count as u64);
        for (first, step, count) in runs(members) {
            self.put(first as u64);
            self.put(zigzag(step));
            self.put(count);
        }
    }

    /// Folds and writes the calls that have been collected. A call that does not fit into the budget is dropped, and so is
    /// everything after it.
    pub fn settle(&mut self) {
        let Some(mut folding) = self.folding.take() else {
            return;
        };
        let entries = std::mem::take(&mut folding.entries);
        fold::runs(
            &entries,
            &mut folding.next[..entries.len()],
            &mut folding.seen,
            |run| {
                let Run {
                    start,
                    period,
                    repeats,
                } = run;
                let calls = &entries[start..start + period * repeats];
                let left = folding
                    .budget
                    .saturating_sub(self.taken + self.out.len() as u64);
                folding.spent |= left < (period * 2 * MOST_PER_CALL + RESERVE) as u64;
                match (folding.spent, repeats) {
                    (true, _) => {}
                    (_, 1) => calls
                        .iter()
                        .for_each(|entry| self.plain(entry, &mut folding.rest)),
                    _ => self.fold(
                        calls,
                        period,
                        repeats,
                        stride(period, repeats, left),
                        &mut folding.rest,
                    ),
                }
            },
        );
        folding.entries = entries;
        folding.entries.clear();
        self.folding = Some(folding);
    }

    fn plain(&mut self, entry: &FoldEntry, rest: &mut Rest) {
        self.put(u64::from(entry.signature) + 1);
        self.times(times_of(entry), rest);
    }

    fn fold(
        &mut self,
        calls: &[FoldEntry],
        period: usize,
        repeats: usize,
        stride: usize,
        rest: &mut Rest,
    ) {
        self.out.extend_from_slice(&[0, control::FOLD]);
        [period, repeats, stride]
            .into_iter()
            .for_each(|number| self.put(number as u64));
        calls[..period]
            .iter()
            .for_each(|entry| self.put(u64::from(entry.signature) + 1));
        for repeat in (0..repeats).step_by(stride) {
            calls[repeat * period..][..period]
                .iter()
                .for_each(|entry| self.times(times_of(entry), rest));
        }
        for place in 0..if stride > 1 { period } else { 0 } {
            let between = (0..repeats)
                .filter(|repeat| repeat % stride != 0)
                .map(|repeat| &calls[repeat * period + place]);
            self.times(mean(between), &mut Rest::default());
        }
    }

    /// Returns `true` if the encoder folds calls.
    pub fn folds(&self) -> bool {
        self.folding.is_some()
    }

    /// Returns `true` if there is a budget and it is used up.
    pub(crate) fn is_spent(&self) -> bool {
        self.folding.as_ref().is_some_and(|folding| folding.spent)
    }

    /// Returns the number of bytes that can be drained.
    #[inline]
    pub fn waiting(&self) -> usize {
        self.out.len()
    }

    /// Passes the bytes so far to `take` and forgets them.
    pub fn drain(&mut self, take: impl FnOnce(&[u8])) {
        take(&self.out);
        self.taken += self.out.len() as u64;
        self.out.clear();
    }
}

fn times_of(entry: &FoldEntry) -> Times {
    Times {
        burst: entry.burst,
        cpu: entry.cpu,
        call: entry.call,
    }
}

/// Upper bound for the bytes of a call's signature and times.
const MOST_PER_CALL: usize = 8;
/// Bytes that are reserved for the end.
const RESERVE: usize = 32;

/// Returns the stride of a run: one of this number of consecutive repetitions is kept. It is chosen so that the run uses at
/// most a quarter of the remaining bytes.
fn stride(period: usize, repeats: usize, left: u64) -> usize {
    const PART: u64 = 4;
    let whole = (period * repeats * MOST_PER_CALL) as u64;
    (whole.div_ceil((left / PART).max(1)) as usize).clamp(1, repeats)
}

fn mean<'a>(entries: impl Iterator<Item = &'a FoldEntry>) -> Times {
    let (mut sum, mut count) = (Times::default(), 0);
    for entry in entries {
        sum.burst += entry.burst;
        sum.cpu += entry.cpu;
        sum.call += entry.call;
        count += 1;
    }
    let of = |sum: u64| sum / u64::max(count, 1);
    Times {
        burst: of(sum.burst),
        cpu: of(sum.cpu),
        call: of(sum.call),
    }
}

#[inline]
fn code(nanos: u64, rest: &mut u64) -> u16 {
    let whole = nanos.saturating_add(*rest);
    let code = time_code(whole);
    *rest = (whole - time_of(code)).min(1 << 40);
    code
}

/// Returns the share of a computation in which the thread had the processor, in 255ths.
#[inline]
fn share(cpu: u64, burst: u64, rest: &mut i64) -> u8 {
    let wanted = cpu.min(burst) as i64 + *rest;
    let share =
        (i128::from(wanted.max(0)) * 255 + i128::from(burst / 2)) / i128::from(burst.max(1));
    let share = share.min(255) as u8;
    *rest = (wanted - scaled(burst, share) as i64).clamp(-(burst as i64), burst as i64);
    share
}

/// Divides a list into runs of equal steps: first, step, count.
fn runs(members: &[i32]) -> impl Iterator<Item = (i32, i64, u64)> + '_ {
    let mut at = 0;
    std::iter::from_fn(move || {
        let first = *members.get(at)?;
        let step = members
            .get(at + 1)
            .map_or(0, |second| i64::from(*second) - i64::from(first));
        let steps = members[at..]
            .windows(2)
            .take_while(|pair| i64::from(pair[1]) - i64::from(pair[0]) == step);
        let count = steps.count() + 1;
        at += count;
        Some((first, step, count as u64))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use flowcast_recording::decode::{self, Item, RankFile, RecordedCall};
    use proptest::prelude::*;

    const THRESHOLD: u64 = 50_000;

    fn decoded(encoder: &mut Encoder) -> RankFile {
        encoder.settle();
        let header = format!(
            "{}\nrank 1\nranks 4\ncpu-threshold-ns {THRESHOLD}\noverhead-ns 0\n\n",
            format::MAGIC
        );
        let mut bytes = header.into_bytes();
        encoder.drain(|block| {
            bytes.extend_from_slice(&format::head(block));
            bytes.extend_from_slice(block);
        });
        decode::read("rank-00001", &bytes).unwrap()
    }

    fn calls(file: &RankFile) -> Vec<RecordedCall> {
        file.items
            .iter()
            .map(|item| match item {
                Item::Call(call) => *call,
                other => panic!("{other:?}"),
            })
            .collect()
    }

    type Given = (i64, u64, u64, u32);

    fn encode(given: &[Given], budget: Option<u64>) -> RankFile {
        let mut encoder = Encoder::new(8, THRESHOLD, 1 << 12, budget);
        let mut rest = Rest::default();
        let function = encoder.function(3, "Send");
        for (word, burst, call, thread) in given {
            let times = Times {
                burst: *burst,
                cpu: burst / 2,
                call: *call,
            };
            encoder.call(&[function, *word, -*word], *thread, times, &mut rest);
        }
        decoded(&mut encoder)
    }

    fn any_calls() -> impl Strategy<Value = Vec<Given>> {
        proptest::collection::vec((0i64..5, 0u64..1 << 30, 0u64..1 << 24, 0u32..3), 0..200)
    }

    proptest! {
        #[test]
        fn calls_are_read_back_with_their_arguments_and_nearly_their_times(given in any_calls(), fold in any::<bool>()) {
            let file = encode(&given, fold.then_some(1 << 24));
            let calls = calls(&file);
            prop_assert_eq!(calls.len(), given.len());
            let (mut expected, mut found) = (0u64, 0u64);
            for (call, (word, burst, time, thread)) in calls.iter().zip(&given) {
                prop_assert_eq!(&file.signatures[call.signature as usize], &vec![0, *word, -*word]);
                prop_assert_eq!(call.thread, *thread);
                prop_assert!(call.burst.abs_diff(*burst) <= burst / 500 + (1 << 21), "{} for {burst}", call.burst);
                expected += burst + time;
                found += call.burst + call.time;
                prop_assert!(call.cpu <= call.burst);
            }
            // Later times include what rounding held back: sums are exact to the error of one code.
            prop_assert!(expected - found <= 1 << 21, "{found} for {expected}");
        }

        #[test]
        fn the_recording_stays_within_its_budget(given in any_calls(), budget in 100u64..5000) {
            let file = encode(&given, Some(budget));
            // The signatures of the calls are written before them, even if the calls do not fit.
            prop_assert!(file.bytes <= budget + 400, "{} of {budget}", file.bytes);
        }
    }

    #[test]
    fn a_loop_is_folded_and_unfolds_to_all_its_calls() {
        let given: Vec<Given> = (0..3000)
            .map(|at| (at % 3, 1000 + at as u64 % 7, 500, 0))
            .collect();
        let file = encode(&given, Some(2000));
        assert!(file.bytes < 2000, "{}", file.bytes);
        let calls = calls(&file);
        let signatures: Vec<i64> = calls
            .iter()
            .map(|call| file.signatures[call.signature as usize][1])
            .collect();
        assert_eq!(
            signatures,
            given.iter().map(|call| call.0).collect::<Vec<_>>()
        );
        let sum = |times: &mut dyn Iterator<Item = u64>| times.sum::<u64>() as f64;
        let found = sum(&mut calls.iter().map(|call| call.burst));
        let expected = sum(&mut given.iter().map(|call| call.1));
        assert!(
            (found / expected - 1.0).abs() < 0.01,
            "{found} for {expected}"
        );
    }

    #[test]
    fn thread_cpu_time_is_a_share_of_a_long_computation_and_all_of_a_short_one() {
        let file = encode(&[(1, 1_000_000, 10, 0), (1, 1000, 10, 0)], None);
        let calls = calls(&file);
        assert!(
            calls[0].cpu.abs_diff(500_000) < 3000 && calls[1].cpu == calls[1].burst,
            "{calls:?}"
        );
    }

    #[test]
    fn members_in_any_order_are_read_back() {
        let mut encoder = Encoder::new(1, THRESHOLD, 1 << 12, None);
        encoder.communicator(&[0, 1, 2, 3], None);
        encoder.communicator(&[3, 1], Some(&[0, 2]));
        encoder.communicator(&[2], None);
        let own: Vec<Vec<u32>> = decoded(&mut encoder)
            .communicators
            .into_iter()
            .map(|group| group.own.clone())
            .collect();
        assert_eq!(own, [vec![0, 1, 2, 3], vec![3, 1], vec![2]]);
    }
}
