//! `flowcast place`: finds mappings of ranks to nodes.

mod nodes;
mod times;

use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

use anyhow::{Error, Result, anyhow};
use clap::Args;
use flowcast::{
    report::chart_page::{Picture, chart_page},
    statements::marked_name,
    trace::TraceError,
    units::{Node, Time},
};
use flowcast_io::{InputKind, PlacementRequest, is_matrix, is_pattern};
use flowcast_place::{
    input::PlaceInput,
    placed::{Placed, PlacementObjective},
    predictor::MappingPredictor,
    question::PlaceQuestion,
    reordered::{ProgramGrid, Reordering},
};

use self::{nodes::NodeArgs, times::TriedTimes};
use flowcast_terminal::{
    files::{Output, declare, write_text},
    mapping_format::{FileFormat, launch_sentence},
    network_args::NetworkArgs,
    output::Format,
    progress::Progress,
    provenance, say,
    trace_args::{first_file, open_trace, read_pattern, refuse_cut, threads},
};

/// Find the fastest mapping of ranks to nodes and report its gain
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowcast place prog.rec --network gige-tcp --nodes 4 --ranks-per-node 2
  flowcast place prog.rec --network leonardo --hosts 'lrdn[0001-0064]' --ranks-per-node 2x16 -o rankfile
  flowcast place halo.csv --network cluster.toml --nodes 256 --ranks-per-node 16 --objective hops --time-limit 10s
  flowcast place broadcast.steps --network gige-lam --nodes 4 --ranks-per-node 2 --inside 18.7ms

broadcast.steps, a binomial broadcast among eight ranks:
  0 -> 4 10MB
  step
  0 -> 2 10MB
  4 -> 6 10MB
  step
  0 -> 1 10MB
  2 -> 3 10MB
  4 -> 5 10MB
  6 -> 7 10MB")]
pub(crate) struct Place {
    /// Flows between ranks, with lines `step` between steps (docs/reference/place.md); a recording or another trace; a
    /// matrix of bytes between ranks, as CSV (from,to,bytes) or as a graph in METIS format; - for the standard input
    #[arg(value_name = "STEPS|TRACE|MATRIX")]
    input: PathBuf,
    #[command(flatten)]
    network: NetworkArgs,
    #[command(flatten)]
    nodes: NodeArgs,
    /// Quantity to minimize: the predicted time (for a matrix, of all messages sent at the same time), or bytes times links
    #[arg(long, value_name = "time|hops", default_value_t, value_parser = objective)]
    objective: PlacementObjective,
    #[command(flatten)]
    request: PlacementRequest,
    /// End the search after this time, such as 10s; --moves with the printed number of moves repeats the answer
    #[arg(long, value_name = "TIME")]
    time_limit: Option<Time>,
    /// Write the mapping for a launcher
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Format of the mapping [default: c or fortran if the output file ends in .c or .f90, otherwise openmpi]
    #[arg(long = "format", value_name = "FORMAT", requires = "output")]
    to: Option<FileFormat>,
    /// Continue an interrupted search, for which -o kept the times of mappings in FILE.partial
    #[arg(long, requires = "output")]
    resume: bool,
    /// Write a page with the matrix before and after
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,
    #[command(flatten)]
    format: Format,
}

/// Adds the inputs of this command to the formats of traces in an error.
fn with_own_formats(error: Error) -> Error {
    const MESSAGES: &str = "bytes between ranks (a table with the columns from,to,bytes, or a METIS graph), a pattern or steps between ranks";
    match error.downcast() {
        Ok(TraceError::Unknown {
            name,
            found,
            expected,
        }) => anyhow!("{name}: found {found}, expected {MESSAGES}, {expected}"),
        Ok(other) => other.into(),
        Err(other) => other,
    }
}

fn objective(text: &str) -> Result<PlacementObjective, String> {
    PlacementObjective::from_name(text)
        .ok_or_else(|| format!("found `{text}`, expected {}", PlacementObjective::names()))
}

impl Place {
    /// Searches and prints the result.
    pub(crate) fn run(self) -> Result<()> {
        let inputs = std::iter::once(self.input.as_path()).chain(self.nodes.files());
        declare(
            inputs,
            Output::each("-o", &self.output).chain(Output::each("--report", &self.report)),
        )?;
        let mut network = self.network.load()?;
        let input = self.read()?;
        let options = self.request.options(&input, &mut network)?;
        let predictor = MappingPredictor::new(&input, &network, options)?;
        let (model, notes) = (predictor.model()?, predictor.notes());
        let mut job = self.nodes.job(&network, predictor.ranks())?;
        let to = self
            .to
            .or_else(|| FileFormat::of_ending(self.output.as_deref()?))
            .unwrap_or(FileFormat::OpenMpi);
        if self.output.is_some() && job.hosts.is_empty() && to.needs_hosts() {
            say!("flowcast: note: hosts are called n0, n1 and so on; --hosts sets their names");
            job.hosts = (0..job.slots.len())
                .map(|node| format!("n{node}"))
                .collect();
        }
        let mut tried = TriedTimes::default();
        if let Some(path) = &self.output {
            let other = (model, &job.slots, &job.positions, self.request.seed);
            tried = TriedTimes::open(path, self.resume, &input.fingerprint(&network, &other))?;
        }
        let options = self.request.search(threads(), self.time_limit.is_some());
        let question = PlaceQuestion::new(predictor, &job, options)?;
        let placed = self.search(&question, &mut tried)?;
        let mut document = placed
            .document()
            .titled(format!("Placement on {}", marked_name(&network)))
            .field("network", &network.name)
            .field("model", model)
            .noted(notes);
        job.node_of_rank = placed.best.node_of_rank.clone();
        if job.domains > 1 {
            job.domain_of_rank = question.domains(&job.node_of_rank, job.domains)?;
            document = document.field("domain_of_rank", &job.domain_of_rank);
        }
        if let Some(path) = &self.report {
            let with_matrices = document
                .clone()
                .field("matrices", question.matrices(&placed));
            let page = chart_page(
                &with_matrices,
                Picture::Placement,
                &provenance::of_this_run(),
            )?;
            write_text(path, &page)?;
        }
        if let Some(path) = &self.output {
            let grid = placed.blocks.as_ref().map(|blocks| ProgramGrid {
                dims: blocks.dims.clone(),
                is_column_major: false,
            });
            let reordering = Reordering {
                job: &job,
                launched: None,
                grid: grid.as_ref(),
            };
            tried.finish(&to.write(&reordering)?)?;
            if let Some(hint) = to.hint(&job, &path.display().to_string()) {
                document = document.line(launch_sentence(&hint));
            }
        }
        self.format.print(&document)
    }

    fn read(&self) -> Result<PlaceInput> {
        let first = first_file(&self.input)?;
        if is_matrix(&first)? || matches!(is_pattern(&first)?, InputKind::Pattern) {
            let (name, content) = read_pattern(&self.input)?;
            return Ok(PlaceInput::read(&name, &content)?);
        }
        let trace = open_trace(&self.input).map_err(with_own_formats)?;
        refuse_cut(&trace)?;
        Ok(PlaceInput::Trace(Box::new(trace)))
    }

    fn search(&self, question: &PlaceQuestion<'_>, tried: &mut TriedTimes) -> Result<Placed> {
        let started = Instant::now();
        let limit = self
            .time_limit
            .map(|limit| Duration::from_secs_f64(limit.as_seconds()));
        let mut time = SearchTime {
            started,
            limit,
            round: Duration::ZERO,
        };
        let show = |progress: &Progress, moves| match limit {
            Some(_) => progress.at_seconds(started.elapsed().as_secs_f64()),
            None => progress.begin_at(moves),
        };
        if self.objective == PlacementObjective::Hops {
            let progress = self.begin("moves", question.hop_moves());
            return Ok(question.least_hops(&mut |done| {
                show(&progress, done.moves);
                time.suffices(Duration::ZERO, 0)
            })?);
        }
        let mut measured = Vec::new();
        if limit.is_some() {
            // These mappings show for how many others there is time.
            measured = time.measured(question, &question.baselines())?;
        }
        let mut before = started.elapsed();
        let mut search = question.time_search(&mut |starts| {
            let last_start = started.elapsed() - before;
            before += last_start;
            time.suffices(last_start, starts)
        })?;
        let moves = question.moves();
        let progress = self.begin("mappings", moves);
        if tried.left() > 0 {
            say!(
                "flowcast: {} mappings are known from the interrupted search",
                tried.left()
            );
        }
        while !search.batch().is_empty() {
            let mappings = search.batch().len();
            let known = tried.known(mappings);
            // Known times cost nothing.
            let is_over = known.is_none() && !time.suffices(Duration::ZERO, mappings);
            if search.moves() > 0 && (search.moves() >= moves || is_over) {
                break;
            }
            let times = match known {
                Some(times) => times,
                None => {
                    measured.extend(time.measured(question, &search.batch()[measured.len()..])?);
                    tried.append(&measured)?;
                    measured.clone()
                }
            };
            measured.clear();
            question.learn(&mut search, &times)?;
            show(&progress, search.moves());
        }
        drop(progress);
        Ok(question.found(&search)?)
    }

    fn begin(&self, units: &str, moves: u64) -> Progress {
        match self.time_limit {
            Some(limit) => Progress::for_seconds(format!("trying {units}"), limit.as_seconds()),
            None => Progress::counted("trying", units, moves),
        }
    }
}

/// Time of a search, which may have a limit.
struct SearchTime {
    started: Instant,
    limit: Option<Duration>,
    /// Longest measured time of a round of mappings, one on each thread.
    round: Duration,
}

impl SearchTime {
    /// Returns `true` if time is left for other work of this duration, then this number of mappings, and the replay that
    /// follows each batch.
    fn suffices(&self, other: Duration, mappings: usize) -> bool {
        let rounds = mappings.div_ceil(threads()) as u32 + 1;
        let end = self.started.elapsed() + other + self.round * rounds;
        self.limit.is_none_or(|limit| end < limit)
    }

    /// Returns the times of mappings, and notes how long a round took.
    fn measured(&mut self, question: &PlaceQuestion<'_>, all: &[Vec<Node>]) -> Result<Vec<Time>> {
        let begin = Instant::now();
        let times = question.times(all, threads())?;
        let rounds = all.len().div_ceil(threads()).max(1) as u32;
        self.round = self.round.max(begin.elapsed() / rounds);
        Ok(times)
    }
}
