//! Recordings from `flowcast record`. The file `recording` identifies the folder and is passed to this reader; the files of
//! the ranks lie beside it.
//!
//! Each rank's calls become actions (`actions`), and wildcards are replaced by the messages that they matched (`wildcards`).
//! Actions without a counterpart, left by a killed program or a truncated recording, are removed and counted (`prune`).
//! Calls of several threads are put in order (`threads`). The rest becomes the instructions of a program (`instructions`).
//!
//! Computations take their wall time, unless it includes time without computation ([`Clock::from_files`]).

pub(super) mod actions;
mod instructions;
mod prune;
mod streams;
mod threads;
mod wildcards;

use std::collections::{BTreeMap, BTreeSet};

use super::{ignored, parts::OpenPart, scan::bytes_of};
use actions::{CallSum, FILES, RankActions};
use flowcast_network::algorithm::Base;
use flowcast_program::{
    ReadOptions, TraceError,
    link::{ProgramParts, link},
    parallel::for_each_mut,
    program::{Communicator, IgnoredRecords, Program, SharedBytes},
    recorded_times::{has_threads, worked_by},
};
use flowcast_recording::{
    decode::{self, Members, RankFile},
    format, summary,
    time_axis::CLOCK,
};
use flowcast_units::{Rank, Rounded, Time};
use threads::ThreadOrder;

/// Kind of [`IgnoredRecords`] for ranks whose program, disk or machine failed before they finished.
pub const CUT: &str = "ends of ranks, which were not recorded,";
/// Kind for programs that failed. Their ranks may have ended because of the failure.
pub const FAILED: &str = "program that failed; what it did until then is replayed";
/// Kind for ranks that used up their budget.
const SPENT: &str =
    "ranks that used up their budget; they are replayed up to their last recorded call";

/// Kind for ranks whose threads share requests.
const ONE_SEQUENCE: &str = "ranks whose threads complete each other's requests; all their calls are replayed in one sequence";

/// Returns `true` if the text belongs to a recording.
pub(super) fn recognises(text: &[u8]) -> bool {
    text.starts_with(format::RECORDING_MAGIC.as_bytes())
}

/// Reads a recording. Computations are measured by the given clock, or by default according to [`Clock::from_files`].
///
/// # Errors
/// Missing or damaged files, or ranks that are inconsistent.
pub fn read(
    name: &str,
    text: &[u8],
    open: OpenPart<'_>,
    (options, asked): (ReadOptions, Option<Clock>),
) -> Result<Program, TraceError> {
    let files = files(name, text, &mut *open, options)?;
    let clock = asked.unwrap_or_else(|| Clock::from_files(&files));
    let mut program = program(name, &files, clock, options)?;
    let has_failed = String::from_utf8_lossy(text)
        .lines()
        .any(|line| line.starts_with(format::FAILED));
    program
        .ignored
        .extend(ignored([(FAILED, u64::from(has_failed))]));
    program.assumed.extend(clock_note(&files, clock, asked));
    let provenance = open(PROVENANCE).ok();
    let disturbed = provenance.and_then(|note| disturbed_by((*note).as_ref()));
    program
        .assumed
        .extend(disturbed.as_deref().map(disturbance));
    Ok(program)
}

/// File in a recording's folder that describes its provenance.
pub const PROVENANCE: &str = "provenance.json";

/// Returns the disturbance of a recording according to its provenance file, or `None` if there was none.
pub fn disturbed_by(provenance: &[u8]) -> Option<String> {
    let note: serde_json::Value = serde_json::from_slice(provenance).ok()?;
    Some(note["provenance"]["disturbed_by"].as_str()?.to_owned())
}

/// Returns the sentence about the disturbance of a recording.
pub fn disturbance(found: &str) -> String {
    format!("the recording was made on a busy machine ({found}): computation times may be too long")
}

/// Ratio of wall time to thread CPU time. Above this ratio, and with a difference of more than 1 ms, wall time includes more
/// than computation.
const MUCH: f64 = 1.25;
const LONGER: u64 = 1_000_000;

/// Returns a note that names the clock of computations and the option for the other one, if the difference matters.
fn clock_note(files: &[RankFile], clock: Clock, asked: Option<Clock>) -> Option<String> {
    let (wall, cpu) = files
        .iter()
        .map(summary::computation)
        .fold((0, 0), |(wall, cpu), (more, own)| (wall + more, cpu + own));
    let differ = wall as f64 > MUCH * cpu as f64 && wall > cpu + LONGER;
    let reason = WallFault::find(files).map(WallFault::words);
    let (takes, other) = match clock {
        Clock::Wall => ("wall time", "cpu"),
        Clock::ThreadCpu => ("thread CPU time", "wall"),
    };
    if asked.is_none() && clock == Clock::Wall && !differ {
        return None;
    }
    let why = match (asked, reason) {
        (Some(_), _) => " as requested".to_owned(),
        (None, Some(reason)) => format!(": {reason}"),
        (None, None) => String::new(),
    };
    let [wall, cpu] = [wall, cpu].map(|nanos| Rounded(Time::from_nanos(nanos as f64)));
    Some(format!(
        "computation is measured in {takes}{why}; sums over all ranks: {wall} wall, {cpu} thread CPU \
         (--compute {other} selects the other)"
    ))
}

/// Returns the program of a recording whose files have been read. Computations are measured by `clock`.
///
/// # Errors
/// Ranks that are inconsistent: calls that other ranks lack, or communicators with contradictory members.
pub fn program(
    name: &str,
    files: &[RankFile],
    clock: Clock,
    options: ReadOptions,
) -> Result<Program, TraceError> {
    let communicators = Communicators::new(files);
    let regions = Regions::new(files);
    let mut ranks = Vec::with_capacity(files.len());
    for ((file, ids), windows) in files
        .iter()
        .zip(&communicators.ids)
        .zip(&communicators.windows)
    {
        ranks.push(actions::actions(
            file,
            &actions::Context {
                ids,
                windows,
                regions: &regions,
                clock,
            },
        ));
    }
    let mut program = assemble(
        program_name(name, files),
        ranks,
        communicators.members,
        options,
    )?;
    let version = files
        .first()
        .and_then(|file| file.header.fields.get("library"));
    program.library = version.and_then(|version| library(version));
    let unknown = version.filter(|version| program.library.is_none() && !version.is_empty());
    program
        .assumed
        .extend(unknown.map(|version| unknown_library(version)));
    for (kind, stopped) in [(CUT, false), (SPENT, true)] {
        let cut = files
            .iter()
            .filter(|file| !file.ended && file.stopped == stopped);
        program
            .ignored
            .extend(ignored([(kind, cut.count() as u64)]));
    }
    Ok(program)
}

/// Matches the actions of all ranks, removes and counts those without a counterpart, and links the rest.
pub(super) fn assemble(
    name: String,
    mut ranks: Vec<RankActions>,
    communicators: Vec<Communicator>,
    options: ReadOptions,
) -> Result<Program, TraceError> {
    let left_out = left_out(&ranks);
    let guessed = wildcards::assign(&mut ranks);
    let pruned = prune::prune(&mut ranks, &communicators);
    let orders = threads::order(&mut ranks, &communicators);
    let rows = orders
        .iter()
        .filter(|order| **order == ThreadOrder::Row)
        .count() as u64;
    let streams = streams::divide(&mut ranks, &orders, communicators);
    let mut builders = Vec::with_capacity(streams.steps.len());
    for ((rank, actions), steps) in (0..).map(Rank).zip(&ranks).zip(&streams.steps) {
        for steps in steps {
            builders.push(instructions::instructions(rank, actions, steps)?);
        }
    }
    let parts = ProgramParts {
        name,
        ranks: builders,
        communicators: streams.communicators,
        ignored_kind: |_| "calls".to_owned(),
        source: None,
        threads: streams.threads,
    };
    let mut program = link(parts, options)?;
    program.ignored.extend(left_out);
    program.ignored.extend(guessed);
    program.ignored.extend(pruned);
    program.ignored.extend(ignored([(ONE_SEQUENCE, rows)]));
    Ok(program)
}

/// Returns the calls that are not replayed, by function, with their share of all bytes that calls send.
fn left_out(ranks: &[RankActions]) -> Vec<IgnoredRecords> {
    let all = ranks
        .iter()
        .map(RankActions::bytes_sent)
        .fold(0, u64::saturating_add);
    let mut sums: BTreeMap<(&str, &str), CallSum> = BTreeMap::new();
    for ((function, remark), one) in ranks.iter().flat_map(|rank| &rank.left_out) {
        let sum = sums.entry((function, remark)).or_default();
        sum.calls += one.calls;
        sum.bytes = sum.bytes.saturating_add(one.bytes);
    }
    sums.into_iter()
        .map(|((function, remark), sum)| {
            let bytes = match (sum.bytes, remark) {
                (0, _) => String::new(),
                (bytes, FILES) => format!(" ({bytes} bytes)"),
                (bytes, _) => {
                    let share = 100.0 * bytes as f64 / all as f64;
                    format!(" ({bytes} bytes, {share:.1} % of all sent)")
                }
            };
            IgnoredRecords {
                kind: format!("calls of MPI_{function}{bytes}{remark}"),
                count: sum.calls,
            }
        })
        .collect()
}

/// Returns the names of a recording's regions, ordered by their numbers, which start at 1 and are the values of the events
/// [`REGION`](flowcast_program::paraver_events::REGION).
pub fn region_names(files: &[RankFile]) -> Vec<String> {
    Regions::new(files).0.into_keys().collect()
}

/// Name of a file, its bytes, and the result of decoding them.
type Job = (
    String,
    Option<SharedBytes>,
    Option<Result<RankFile, TraceError>>,
);

/// Reads and decodes the file of each rank.
///
/// # Errors
/// A file is missing or damaged, or belongs to another recording.
pub fn files(
    name: &str,
    text: &[u8],
    open: OpenPart<'_>,
    options: ReadOptions,
) -> Result<Vec<RankFile>, TraceError> {
    let ranks = summary::ranks(name, text)?;
    let mut jobs: Vec<Job> = Vec::new();
    for rank in (0..ranks).map(Rank) {
        let file = summary::rank_file(rank);
        let bytes = open(&file).map_err(|error| TraceError::Part {
            place: name.to_owned(),
            file: file.clone(),
            error,
        })?;
        jobs.push((file, Some(bytes), None));
    }
    for_each_mut(&mut jobs, options.threads, |(file, bytes, read)| {
        *read = bytes
            .take()
            .map(|bytes| decode::read(file, bytes_of(&bytes)).map_err(TraceError::from));
    });
    let mut files = Vec::with_capacity(jobs.len());
    for (rank, (file, _, read)) in (0..ranks).map(Rank).zip(jobs) {
        let read = read.expect("every job is done")?;
        if (read.header.rank, read.header.ranks) != (rank, ranks) {
            return Err(TraceError::At {
                place: file,
                found: format!("rank {} of {}", read.header.rank, read.header.ranks),
                expected: format!("rank {rank} of {ranks}"),
            });
        }
        files.push(read);
    }
    Ok(files)
}

/// Returns the MPI library with this version text, if its algorithms are known.
fn library(version: &str) -> Option<Base> {
    [
        ("Open MPI", Base::OpenMpi),
        ("MPICH", Base::Mpich),
        ("MPI VERSION    : CRAY MPICH", Base::CrayMpich),
    ]
    .into_iter()
    .find_map(|(begin, base)| version.starts_with(begin).then_some(base))
}

/// Returns the sentence about a library whose algorithms are unknown.
fn unknown_library(version: &str) -> String {
    let name = version.lines().next().unwrap_or_default();
    let taken = Base::default().name();
    format!(
        "the recording names the library {name}, whose collective algorithms are unknown: collectives by messages use \
         those of {taken} (--collectives selects others)"
    )
}

fn program_name(name: &str, files: &[RankFile]) -> String {
    let recorded = files
        .first()
        .and_then(|file| file.header.fields.get("program"));
    recorded
        .filter(|program| !program.is_empty())
        .cloned()
        .unwrap_or_else(|| name.to_owned())
}

/// Clock that measures computations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clock {
    /// Elapsed time, also while the thread had no processor.
    Wall,
    /// Time for which the thread had a processor.
    ThreadCpu,
}

impl Clock {
    /// Selects the clock of a recording. It is thread CPU time if the wall time of computations includes other time: several
    /// threads of a rank call MPI, or ranks share processors. Otherwise it is wall time, which includes waiting for files,
    /// accelerators and threads that do not call MPI.
    pub fn from_files(files: &[RankFile]) -> Clock {
        WallFault::find(files).map_or(Clock::Wall, |_| Clock::ThreadCpu)
    }
}

/// Reason why wall time does not measure a recording's computations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WallFault {
    Threads,
    Turns,
    OneMachine,
}

impl WallFault {
    fn find(files: &[RankFile]) -> Option<WallFault> {
        if files.iter().any(has_threads) {
            return Some(WallFault::Threads);
        }
        let machines = machines(files);
        if machines.iter().any(RecordedMachine::takes_turns) {
            return Some(WallFault::Turns);
        }
        let is_lab = machines.iter().any(|machine| machine.hosts.len() > 1);
        is_lab.then_some(WallFault::OneMachine)
    }

    fn words(self) -> &'static str {
        match self {
            WallFault::Threads => {
                "several threads of a rank call MPI, and a sleeping thread does not compute"
            }
            WallFault::Turns => "a machine has more ranks than processors, so they take turns",
            WallFault::OneMachine => {
                "the recorded hosts are one machine, as in a lab, and share its processors"
            }
        }
    }
}

/// Machine on which ranks of a recording ran. The hosts of a lab are one machine.
struct RecordedMachine<'a> {
    hosts: BTreeSet<&'a str>,
    ranks: Vec<&'a RankFile>,
    /// The smallest number that one of its ranks has found.
    processors: u64,
}

impl RecordedMachine<'_> {
    fn takes_turns(&self) -> bool {
        self.ranks.len() as u64 > self.processors
    }
}

fn machines(files: &[RankFile]) -> Vec<RecordedMachine<'_>> {
    let mut machines: BTreeMap<&str, RecordedMachine<'_>> = BTreeMap::new();
    for file in files {
        let [clock, host, cores] = [CLOCK, "host", "cores"]
            .map(|key| file.header.fields.get(key).map_or("", String::as_str));
        let kernel = if clock.is_empty() { host } else { clock };
        let machine = machines.entry(kernel).or_insert_with(|| RecordedMachine {
            hosts: BTreeSet::new(),
            ranks: Vec::new(),
            processors: u64::MAX,
        });
        machine.hosts.insert(host);
        machine.ranks.push(file);
        machine.processors = machine.processors.min(cores.parse().unwrap_or(u64::MAX));
    }
    machines.into_values().collect()
}

/// Fraction of a machine's processor time, from which ranks that take turns are no longer like ranks with processors of their
/// own.
pub const SHARED_PROCESSORS: f64 = 0.05;

/// Fraction of the processors' time in which the ranks of a recording compute during a run of this duration, on the busiest
/// machine with more ranks than processors; `None` if there is no such machine.
pub fn shared_processors(files: &[RankFile], run: Time) -> Option<f64> {
    machines(files)
        .into_iter()
        .filter(RecordedMachine::takes_turns)
        .map(|machine| {
            let computed: Time = machine.ranks.iter().map(|file| worked_by(file)).sum();
            let offered = run.as_seconds() * machine.processors as f64;
            computed.as_seconds() / offered.max(f64::MIN_POSITIVE)
        })
        .max_by(f64::total_cmp)
}

/// Communicators of all ranks. Each rank numbers its own communicators. Two communicators with the same group are
/// distinguished by the order in which they were made. This order is the same on all their ranks, because making a
/// communicator is a collective call.
#[derive(Default)]
struct Communicators {
    members: Vec<Communicator>,
    /// Index of each communicator of each rank.
    ids: Vec<Vec<u32>>,
    /// Indexed by rank and window: communicator that only this window uses. `None` if the communicator that the window was
    /// made from is unknown.
    windows: Vec<Vec<Option<i32>>>,
}

impl Communicators {
    fn new(files: &[RankFile]) -> Communicators {
        let mut known: BTreeMap<(Members, u32), u32> = BTreeMap::new();
        let mut all = Communicators::default();
        for file in files {
            let mut times: BTreeMap<Members, u32> = BTreeMap::new();
            let mut ids = Vec::new();
            for communicator in &file.communicators {
                let group = one_view(communicator);
                let time = times.entry(group.clone()).or_default();
                *time += 1;
                let next = known.len() as u32;
                let id = *known.entry((group, *time)).or_insert(next);
                if id == next {
                    let members = communicator.own.iter().copied().map(Rank).collect();
                    all.members.push(Communicator {
                        id: id as i32,
                        members,
                    });
                }
                ids.push(id);
            }
            all.ids.push(ids);
        }
        all.define_windows(files);
        all
    }

    /// Defines the windows. They are distinguished like communicators: by the communicator that they were made from, and by
    /// their order.
    fn define_windows(&mut self, files: &[RankFile]) {
        let mut known: BTreeMap<(u32, u32), i32> = BTreeMap::new();
        for (file, ids) in files.iter().zip(&self.ids) {
            let mut times: BTreeMap<u32, u32> = BTreeMap::new();
            let mut windows = Vec::with_capacity(file.windows.len());
            for own in &file.windows {
                let of = usize::try_from(*own)
                    .ok()
                    .and_then(|own| ids.get(own))
                    .copied();
                windows.push(of.map(|of| {
                    let time = times.entry(of).or_default();
                    *time += 1;
                    let members = &mut self.members;
                    *known.entry((of, *time)).or_insert_with(|| {
                        let ranks = members[of as usize].members.clone();
                        streams::define(members, ranks)
                    })
                }));
            }
            self.windows.push(windows);
        }
    }
}

/// Returns an intercommunicator in a form that is the same for both of its groups.
fn one_view(members: &Members) -> Members {
    let Members { own, remote } = members.clone();
    if !remote.is_empty() && remote < own {
        Members {
            own: remote,
            remote: own,
        }
    } else {
        Members { own, remote }
    }
}

/// Regions with their numbers, from 1, in alphabetical order of their names.
pub(super) struct Regions(BTreeMap<String, i64>);

impl Regions {
    fn new(files: &[RankFile]) -> Regions {
        let mut names: Vec<String> = files.iter().flat_map(actions::region_names).collect();
        names.sort();
        names.dedup();
        Regions(names.into_iter().zip(1..).collect())
    }

    fn number(&self, name: &str) -> i64 {
        self.0.get(name).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_of_the_version_identifies_the_library() {
        for (version, expected) in [
            ("Open MPI v4.1.4, package: Debian", Some(Base::OpenMpi)),
            ("MPICH Version:\t4.0.2", Some(Base::Mpich)),
            (
                "MPI VERSION    : CRAY MPICH version 8.1.29.8 (ANL base 3.4a2)",
                Some(Base::CrayMpich),
            ),
            ("Intel(R) MPI Library 2021.9", None),
        ] {
            assert_eq!(library(version), expected, "{version}");
        }
    }
}
