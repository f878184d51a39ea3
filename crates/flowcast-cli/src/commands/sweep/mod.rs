//! `flowcast sweep`: replays many what-ifs of one trace, optionally in parts, and merges the parts.

mod output;
mod remote;

use std::{
    borrow::Cow,
    ops::Range,
    path::{Path, PathBuf},
    str::FromStr,
};

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use flowcast::{
    Collectives, Options,
    report::sweep_page,
    statements::once,
    study::{
        Lines, Names, Study, StudyError,
        grid::ParameterGrid,
        rows::{self, Form, ResultsPart, Rows},
    },
    trace::Trace,
    units::Bytes,
};

use flowcast_io::{ReplayRequest, collectives_help};

use self::{output::Output, remote::Executor};
use flowcast_terminal::{
    collectives::note_formulas,
    files::{self, declare, read_own_text, read_text, write_text, write_whole},
    network_args::{load_all, parse_overrides},
    output::print_notes,
    progress::Progress,
    say,
    shares::probability,
    trace_args::{Maps, open_trace, parse_mapping, program_help, threads},
};

/// Predict all combinations of networks, mappings and values
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowcast sweep lu.dim --network gige-tcp --grid latency=1us..100us:20 --grid bandwidth=10MB/s..1GB/s:8:log -o lu.csv
  flowcast sweep lu.dim --network gige-tcp --grid latency=1us..100us:20 --grid overhead=0us..9us:4 --report lu.html
  flowcast sweep lu.dim --network 'gige-*' --mapping fill --mapping round-robin --level 0.90 --report lu.html
  flowcast sweep lu.dim --network gige-tcp --grid overhead=1us,5us --shard 2/4 -o lu.2.csv --resume
  flowcast sweep lu.dim --network gige-tcp --grid overhead=1us,5us -o lu.csv --executor dask:tcp://node1:8786
  flowcast sweep --merge lu.1.csv lu.2.csv lu.3.csv lu.4.csv -o lu.csv")]
pub(crate) struct Sweep {
    #[arg(required_unless_present = "merge", conflicts_with = "merge", help = program_help())]
    input: Option<PathBuf>,
    /// Built-in network (see `flowcast networks`), network file (TOML), Dimemas configuration (.cfg), or a pattern of names
    /// such as 'gige-*' (repeatable)
    #[arg(
        short,
        long,
        value_name = "NET",
        required_unless_present = "merge",
        conflicts_with = "merge"
    )]
    network: Vec<String>,
    /// Replace a field of the network in all sets, such as nic.latency=5us (repeatable)
    #[arg(long = "set", value_name = "KEY=VALUE", conflicts_with = "merge")]
    overrides: Vec<String>,
    /// Model of concurrent messages, as for `flowcast predict`; a model in which they share the network needs a separate
    /// replay for each set (independent: one replay for up to 32 sets) [default: the network decides]
    #[arg(long, value_name = "MODEL", conflicts_with = "merge")]
    model: Option<String>,
    /// Mapping of ranks to nodes: fill, round-robin, N-per-node, or a file (repeatable)
    #[arg(long, value_name = "MAP", conflicts_with = "merge")]
    mapping: Vec<String>,
    /// Smallest rendezvous message, such as 64KiB; replaces the trace's marks
    #[arg(long, value_name = "SIZE", conflicts_with = "merge")]
    rendezvous_from: Option<Bytes>,
    #[arg(long, value_name = "HOW", help = collectives_help(&Collectives::automatic_help()))]
    collectives: Option<String>,
    /// Vary a field: KEY=FROM..TO:COUNT, KEY=FROM..TO:COUNT:log or KEY=v1,v2,v3 (repeatable); KEY as for --set, or
    /// latency, bandwidth, overhead, gap
    #[arg(long, value_name = "KEY=VALUES", conflicts_with = "merge")]
    grid: Vec<String>,
    /// Add the interval that contains the measured time with this probability, such as 0.90, as `flowcast predict` does;
    /// each set needs up to 64 more replays
    #[arg(long, value_name = "PROBABILITY", value_parser = probability, conflicts_with = "merge")]
    level: Option<f64>,
    /// Output file of rows; finished sets are kept in FILE.partial until all are finished [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Write a page with curves and a heat map; without -o, the page stores the sets
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,
    /// Continue an interrupted run
    #[arg(long, conflicts_with = "merge")]
    resume: bool,
    /// Predict only part i of N, such as 2/8
    #[arg(long, value_name = "i/N", conflicts_with = "merge")]
    shard: Option<Shard>,
    /// Number of threads [default: number of processors]
    #[arg(long, conflicts_with = "merge")]
    threads: Option<usize>,
    /// Replay on the workers of a Dask cluster, dask:ADDRESS, through the Python package; the result is identical to the
    /// byte
    #[arg(long, value_name = "EXECUTOR", conflicts_with_all = ["merge", "threads"])]
    executor: Option<Executor>,
    /// Write one line of JSON for each set instead of CSV
    #[arg(long, conflicts_with = "merge")]
    json: bool,
    /// Merge the results of all parts instead of predicting
    #[arg(long, value_name = "FILE", num_args = 1..)]
    merge: Vec<PathBuf>,
}

/// One of several parts of the sets.
#[derive(Debug, Clone, Copy)]
struct Shard {
    number: usize,
    of: usize,
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Shard, String> {
        let numbers = text
            .split_once('/')
            .and_then(|(number, of)| Some((number.parse().ok()?, of.parse().ok()?)));
        match numbers {
            Some((number, of)) if (1..=of).contains(&number) => Ok(Shard { number, of }),
            _ => Err("expected i/N with i from 1 to N, such as 2/8".into()),
        }
    }
}

impl Shard {
    /// Consecutive sets of the part. The sizes of the parts differ by at most one set.
    fn sets(self, all: usize) -> Range<usize> {
        let [from, to] = [self.number - 1, self.number]
            .map(|number| (number as u128 * all as u128 / self.of as u128) as usize);
        from..to
    }
}

impl Sweep {
    /// Replays or merges, and writes the results.
    pub(crate) fn run(self) -> Result<()> {
        let named = self.network.iter().chain(&self.mapping).map(Path::new);
        let inputs = self
            .input
            .iter()
            .chain(&self.merge)
            .map(PathBuf::as_path)
            .chain(named);
        let outputs = files::Output::each("-o", &self.output);
        let pages = self.report.iter().map(|path| files::Output {
            option: "--report",
            path,
            endings: &["html"],
        });
        declare(inputs, outputs.chain(pages))?;
        ensure!(
            !self.resume || self.target().is_some(),
            "--resume: found no file to continue, expected -o FILE or --report FILE.html"
        );
        let Some(input) = &self.input else {
            let expected =
                "--merge: found no file to write, expected -o FILE or --report FILE.html";
            merge(&self.merge, self.target().context(expected)?)?;
            return self.draw();
        };
        ensure!(
            !self.json || self.report.is_none(),
            "--json: found --report, expected -o FILE or the standard output"
        );
        if let Some(executor) = &self.executor {
            executor.look_for_package()?;
        }
        let trace = open_trace(input)?;
        let study = self.study(input, &trace)?;
        note_formulas(study.collectives_by_formula());
        Self::say(&study);
        self.work(
            &study,
            &trace,
            input,
            if self.json {
                Form::JsonLines
            } else {
                Form::Csv
            },
        )?;
        self.draw()
    }

    /// File that keeps the sets.
    fn target(&self) -> Option<&Path> {
        self.output.as_deref().or(self.report.as_deref())
    }

    /// Draws the rows of the output if a page is requested too.
    fn draw(&self) -> Result<()> {
        let (Some(output), Some(report)) = (&self.output, &self.report) else {
            return Ok(());
        };
        write_text(report, &output::page(report, &read_own_text(output)?))
    }

    fn study(&self, input: &Path, trace: &Trace) -> Result<Study> {
        let networks = load_all(&self.network, &parse_overrides(&self.overrides)?)?;
        let grid = ParameterGrid::new(&networks, &self.mapping, &self.grid)?;
        let request = ReplayRequest {
            model: self.model.clone(),
            rendezvous_from: self.rendezvous_from,
            collectives: self.collectives.clone(),
            ..ReplayRequest::default()
        };
        let options = request.options(&mut Maps::default())?;
        let mut all = self
            .mapping
            .iter()
            .map(|text| {
                Ok(Options {
                    mapping: Some(parse_mapping(text)?),
                    ..options.clone()
                })
            })
            .collect::<Result<Vec<_>>>()?;
        if all.is_empty() {
            all.push(options);
        }
        if let Trace::Schedule(_) = trace {
            return Err(StudyError::Schedule(input.display().to_string()).into());
        }
        let name = file_name(input);
        let names = Names {
            trace: name.as_deref(),
            mappings: &self.mapping,
        };
        let study = Study::new(trace, networks, grid, all, names)?;
        Ok(match self.level {
            Some(level) => study.with_intervals(level),
            None => study,
        })
    }

    /// Prints the notes, and each model once.
    fn say(study: &Study) {
        print_notes(study.notes());
        let models = study.models().iter().map(ToString::to_string);
        for line in once(models) {
            say!("flowcast: {line}");
        }
    }

    fn work(&self, study: &Study, trace: &Trace, input: &Path, form: Form) -> Result<()> {
        let (all, header) = (study.grid().len(), study.header(form));
        let shard = self.shard.map_or(0..all, |shard| shard.sets(all));
        if self.resume
            && self
                .target()
                .is_some_and(|path| is_done(path, &header, shard.clone()))
        {
            say!(
                "flowcast: nothing to do, all {} sets are complete",
                shard.len()
            );
            return Ok(());
        }
        if !self.resume
            && let Some(path) = self.target()
        {
            Output::refuse_earlier(path)?;
        }
        let mut output = Output::open(self.target(), header)?;
        let sets: Vec<usize> = shard
            .clone()
            .filter(|set| !output.rows().contains(*set))
            .collect();
        if self.resume {
            say!(
                "flowcast: sets: {} resumed, {} to replay",
                shard.len() - sets.len(),
                sets.len()
            );
        }
        let progress = Progress::counted("replaying", "sets", shard.len() as u64);
        progress.begin_at((shard.len() - sets.len()) as u64);
        let done = |lines: Lines| {
            progress.add(lines.len() as u64);
            output.append(lines)
        };
        match &self.executor {
            Some(executor) => {
                let name = file_name(input).unwrap_or_default();
                executor.run(trace, &sets, remote::job(self, &name, study)?, done)?;
            }
            None => study.run(
                &sets,
                form,
                self.threads.unwrap_or_else(threads).max(1),
                done,
            )?,
        }
        drop(progress);
        output.finish()?;
        for field in output.rows().without_influence(form, study.grid()) {
            say!(
                "flowcast: note: {field} had no influence: the predicted time is the same for all its values"
            );
        }
        let (done, of) = (sets.len(), shard.len());
        say!(
            "flowcast: sets: {done} replayed, {} resumed, {all} in the whole sweep",
            of - done
        );
        Ok(())
    }
}

/// Name of a file without its folders.
fn file_name(path: &Path) -> Option<Cow<'_, str>> {
    path.file_name().map(|name| name.to_string_lossy())
}

/// `true` if an earlier run has completed all sets.
fn is_done(target: &Path, header: &str, mut sets: Range<usize>) -> bool {
    let part = read_own_text(target).and_then(|text| {
        let text = if output::is_page(target) {
            sweep_page::csv_of(&text).unwrap_or_default()
        } else {
            text
        };
        Ok(ResultsPart::read(&target.display().to_string(), &text)?)
    });
    part.is_ok_and(|part| part.header == header && sets.all(|set| part.rows.contains(set)))
}

fn merge(parts: &[PathBuf], output: &Path) -> Result<()> {
    let mut header: Option<String> = None;
    let mut rows = Rows::default();
    for path in parts {
        let name = path.display().to_string();
        let text = read_text(path)?;
        let part = ResultsPart::read(&name, &text)?;
        ensure!(
            part.whole >= text.len() && !part.header.is_empty(),
            "{name}: found a file that ends in the middle of a line, expected a complete file"
        );
        let first = header.get_or_insert_with(|| part.header.clone());
        ensure!(
            *first == part.header,
            "{name}: found a part of a different sweep than {}, expected the same sweep",
            parts[0].display()
        );
        rows.merge(part.rows).with_context(|| name.clone())?;
    }
    let header = header.unwrap_or_default();
    let sets = rows::sets_of(&header).context("found no description of a sweep")?;
    if let Some(missing) = (0..sets).find(|set| !rows.contains(*set)) {
        bail!(
            "found {} of {sets} sets, expected all; the first missing set is {missing}",
            rows.len()
        );
    }
    write_whole(output, |out| output::write_as(output, out, &header, &rows))?;
    say!("flowcast: {}: {sets} sets", output.display());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_contain_every_set_once_and_have_equal_sizes() {
        for (all, of) in [(0, 3), (1, 3), (10, 3), (160, 7), (5, 8)] {
            let parts: Vec<Range<usize>> = (1..=of)
                .map(|number| Shard { number, of }.sets(all))
                .collect();
            let sets: Vec<usize> = parts.iter().cloned().flatten().collect();
            assert_eq!(sets, (0..all).collect::<Vec<_>>());
            assert!(
                parts
                    .iter()
                    .all(|part| (all / of..=all / of + 1).contains(&part.len())),
                "{parts:?}"
            );
        }
    }

    #[test]
    fn shards_that_do_not_exist_are_refused() {
        for text in ["0/4", "5/4", "1", "a/b", "1/0", ""] {
            assert!(text.parse::<Shard>().is_err(), "{text}");
        }
    }
}
