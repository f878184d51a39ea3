//! `flowcast sweep`: replays many what-ifs of one trace, or a shard of them, and joins the rows of shards.

pub(super) mod output;
mod remote;

use std::{
    borrow::Cow,
    ops::Range,
    path::{Path, PathBuf},
};

use anyhow::{Result, ensure};
use clap::Args;
use flowcast::{
    Collectives, Options,
    report::sweep_page,
    statements::once,
    study::{
        Lines, Names, Study, StudyError,
        grid::ParameterGrid,
        rows::{Form, ResultsPart},
    },
    trace::Trace,
    units::Bytes,
};

use flowcast_io::{ReplayRequest, collectives_help};

use self::{output::Output, remote::Executor};
use flowcast_terminal::{
    collectives::note_formulas,
    files::{declare, read_own_text},
    network_args::{load_all, parse_overrides},
    output::print_notes,
    progress::Progress,
    say,
    shard::ShardArgs,
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
  srun -n 512 flowcast sweep lu.dim --network gige-tcp --grid latency=1us..1ms:9999 --shard auto -o lu.csv --resume
  flowcast sweep lu.dim --network gige-tcp --grid overhead=1us,5us -o lu.csv --executor dask:tcp://node1:8786")]
pub(crate) struct Sweep {
    #[arg(help = program_help())]
    input: PathBuf,
    /// Built-in network (see `flowcast networks`), network file (TOML), Dimemas configuration (.cfg), or a pattern of names
    /// such as 'gige-*' (repeatable)
    #[arg(short, long, value_name = "NET", required = true)]
    network: Vec<String>,
    /// Replace a field of the network in all sets, such as nic.latency=5us (repeatable)
    #[arg(long = "set", value_name = "KEY=VALUE")]
    overrides: Vec<String>,
    /// Model of concurrent messages, as for `flowcast predict`; a model in which they share the network needs a separate
    /// replay for each set (independent: one replay for up to 32 sets) [default: the network decides]
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// Mapping of ranks to nodes: fill, round-robin, N-per-node, or a file (repeatable)
    #[arg(long, value_name = "MAP")]
    mapping: Vec<String>,
    /// Smallest rendezvous message, such as 64KiB; replaces the trace's marks
    #[arg(long, value_name = "SIZE")]
    rendezvous_from: Option<Bytes>,
    #[arg(long, value_name = "HOW", help = collectives_help(&Collectives::automatic_help()))]
    collectives: Option<String>,
    /// Vary a field: KEY=FROM..TO:COUNT, KEY=FROM..TO:COUNT:log or KEY=v1,v2,v3 (repeatable); KEY as for --set, or
    /// latency, bandwidth, overhead, gap
    #[arg(long, value_name = "KEY=VALUES")]
    grid: Vec<String>,
    /// Add the interval that contains the measured time with this probability, such as 0.90, as `flowcast predict` does;
    /// each set needs up to 64 more replays
    #[arg(long, value_name = "PROBABILITY", value_parser = probability)]
    level: Option<f64>,
    /// Output file of rows; finished sets are kept in FILE.partial until all are finished [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Write a page with curves and a heat map; without -o, the page stores the sets
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,
    /// Continue an interrupted run
    #[arg(long)]
    resume: bool,
    #[command(flatten)]
    sharding: ShardArgs,
    /// Number of threads [default: number of processors]
    #[arg(long)]
    threads: Option<usize>,
    /// Replay on the workers of a Dask cluster, dask:ADDRESS, through the Python package; the result is identical to the
    /// byte
    #[arg(long, value_name = "EXECUTOR", conflicts_with = "threads")]
    executor: Option<Executor>,
    /// Write one line of JSON for each set instead of CSV
    #[arg(long)]
    json: bool,
}

impl Sweep {
    /// Replays and writes the results.
    pub(crate) fn run(mut self) -> Result<()> {
        if let Some(shard) = self.sharding.shard {
            for file in [&mut self.output, &mut self.report].into_iter().flatten() {
                *file = shard.file(file);
            }
        }
        let named = self.network.iter().chain(&self.mapping).map(Path::new);
        let inputs = std::iter::once(self.input.as_path()).chain(named);
        declare(inputs, output::declared(&self.output, &self.report))?;
        ensure!(
            !self.resume || self.target().is_some(),
            "--resume: found no file to continue, expected -o FILE or --report FILE.html"
        );
        ensure!(
            !self.json || self.report.is_none(),
            "--json: found --report, expected -o FILE or the standard output"
        );
        if let Some(executor) = &self.executor {
            executor.look_for_package()?;
        }
        let trace = open_trace(&self.input)?;
        let study = self.study(&trace)?;
        note_formulas(study.collectives_by_formula());
        Self::say(&study);
        self.work(&study, &trace)?;
        output::draw(&self.output, &self.report)
    }

    /// File that keeps the sets.
    fn target(&self) -> Option<&Path> {
        self.output.as_deref().or(self.report.as_deref())
    }

    fn study(&self, trace: &Trace) -> Result<Study> {
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
            return Err(StudyError::Schedule(self.input.display().to_string()).into());
        }
        let name = file_name(&self.input);
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

    fn work(&self, study: &Study, trace: &Trace) -> Result<()> {
        let form = if self.json {
            Form::JsonLines
        } else {
            Form::Csv
        };
        let (all, header) = (study.grid().len(), study.header(form));
        let shard = self.sharding.shard.map_or(0..all, |shard| shard.cases(all));
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
                let name = file_name(&self.input).unwrap_or_default();
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
