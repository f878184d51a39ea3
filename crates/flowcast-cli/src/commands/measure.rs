//! `flowcast measure`: samples from a real network.

mod budget;
mod check;

use std::{
    collections::BTreeMap,
    net::{SocketAddr, ToSocketAddrs},
    ops::ControlFlow,
    path::PathBuf,
};

use anyhow::{Result, bail, ensure};
use clap::{Args, ValueEnum};
use flowcast::{
    fit::{
        prtt::PrttPoint,
        samples::{PrttSamples, csv_header, csv_rows},
    },
    statistics::{interval::median_interval, sample::median},
    table::{Document, Grouped, rows},
    units::{Bytes, Rank, Rounded, Time},
};
use flowcast_measure::{
    budget::BudgetPlan,
    loopback::with_loopback,
    prtt::{
        MAX_MESSAGES, MeasuredRoundTrips, PrttPlan, Round, Stop, answer, measure, stepped_sizes,
    },
    shm::Cores,
    tcp::{TcpEntry, TcpTransport, Waiting},
};
use flowcast_rails::token::{TOKEN, Token};

use super::{
    measure_clocks::MeasureClocks, measure_conflicts::MeasureConflicts,
    measure_pairs::MeasurePairs, samples_file::SamplesFile,
};
use crate::{
    commands::{doctor, rails::live::WaitingKind},
    round_trips::explained,
    shm_ends,
};
use check::MeasureCheck;
use flowcast_terminal::{
    exit::EnvironmentLacks,
    files::{Output, declare},
    growing::GrowingFile,
    launcher,
    output::Format,
    print_out,
    progress::Progress,
    say,
    shares::{count, share},
    token::{self, TokenArgs},
};

subcommands! {
    /// Measure a network
    #[command(
        after_help = "Examples:\n  flowcast measure p2p -o samples.csv\n  flowcast measure conflicts -o conflicts.csv\n  \
                        flowcast measure pairs -o pairs.csv\n  \
                        flowcast measure clocks --launcher 'mpirun -np 8'\n  \
                        flowcast measure check cluster --connect node1:7070 --token TOKEN"
    )]
    Measure {
        P2p(Box<P2p>),
        Conflicts(Box<MeasureConflicts>),
        Pairs(Box<MeasurePairs>),
        Clocks(Box<MeasureClocks>),
        Check(MeasureCheck),
    }
}

/// Measure parametrised round trips over TCP or shared memory
///
/// Without options, both ends run in this process and the messages go over loopback. With --over shm, the ends are processes
/// on two cores of this machine. Between two machines, start the command with --listen on one and with --connect on the
/// other. Under mpirun, ranks 0 and 1 find each other through the file of --rendezvous. `flowcast fit` turns the samples
/// into a network.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  flowcast measure p2p -o samples.csv\n  \
                        flowcast measure p2p --adaptive --time-limit 2s --precision 2% -o samples.csv\n  \
                        flowcast measure p2p --over shm --cores 0,1 -o samples.csv\n  \
                        node1$ flowcast measure p2p --listen 0.0.0.0:7070    # prints a token\n  \
                        node2$ flowcast measure p2p --connect node1:7070 --token TOKEN -o samples.csv\n  \
                        mpirun -n 2 flowcast measure p2p --rendezvous ~/meet -o samples.csv")]
pub(crate) struct P2p {
    /// Answer one measurement at this address
    #[arg(long, value_name = "ADDR", conflicts_with_all = ["connect", "rendezvous", "output", "json", "resume"])]
    listen: Option<String>,
    /// Measure against the answering end at this address
    #[arg(long, value_name = "ADDR", conflicts_with = "rendezvous")]
    connect: Option<String>,
    /// Transport of the messages
    #[arg(long, value_enum, default_value_t = MeasuredOver::Tcp)]
    over: MeasuredOver,
    /// With --over shm: cores of the measuring and the answering process [default: the first two usable cores, on
    /// different physical cores if possible]
    #[arg(long, value_name = "A,B", value_parser = shm_ends::cores)]
    cores: Option<Cores>,
    /// With --over shm: run the answering process, in memory that the measuring process has created
    #[arg(long, value_name = "PATH", hide = true)]
    answer_in: Option<PathBuf>,
    #[command(flatten)]
    token: TokenArgs,
    /// Under mpirun: file through which the two ranks find each other; both must have access to it
    #[arg(long, value_name = "FILE")]
    rendezvous: Option<PathBuf>,
    /// Output file of the samples; standard output if absent
    #[arg(short, long, value_name = "FILE.csv")]
    output: Option<PathBuf>,
    /// Continue an interrupted measurement from FILE.csv.partial
    #[arg(long, requires = "output")]
    resume: bool,
    /// Time limit, exceeded by at most a tenth; on a slow network, sizes are left out to meet it
    #[arg(long, default_value = "10s", value_name = "TIME")]
    time_limit: Time,
    /// Sizes to measure, ascending, such as 1B,2KiB,64KiB
    #[arg(long, value_delimiter = ',', value_name = "SIZES", conflicts_with_all = ["size", "step"])]
    sizes: Option<Vec<Bytes>>,
    /// Largest message size; the smallest is 1B
    #[arg(long, default_value = "64KiB", value_name = "SIZE")]
    size: Bytes,
    /// Difference between consecutive sizes, which start at 1B
    #[arg(long, default_value = "2KiB", value_name = "SIZE")]
    step: Bytes,
    #[arg(
        long,
        default_value_t = 16,
        value_name = "COUNT",
        value_parser = count::<u32>(..=MAX_MESSAGES.into()),
        help = format!("Number of messages before an answer; must not saturate the network; at most {MAX_MESSAGES}"),
    )]
    burst: u32,
    /// Computation between two messages while the overhead is measured [default: the gap of half the largest size, or four
    /// times the gap of the smallest]
    #[arg(long, value_name = "TIME")]
    delay: Option<Time>,
    #[arg(long, value_name = "SHARE", value_parser = share, help = precision_help())]
    precision: Option<f64>,
    /// Choose the round trips that narrow L, o, g and G most; stop at --precision, --time-limit or --limit
    #[arg(long, conflicts_with_all = ["sizes", "step", "burst", "delay"])]
    adaptive: bool,
    /// With --adaptive: largest number of messages in both directions; at most 100000000
    #[arg(
        value_parser = count::<u32>(..=100_000_000),
        long,
        value_name = "COUNT",
        default_value_t = 2000,
        requires = "adaptive"
    )]
    limit: u32,
    /// Behaviour of this end while it waits for a message; use the same at both ends; MPI libraries poll
    #[arg(long, value_enum, default_value_t = WaitingKind::Sleep)]
    waiting: WaitingKind,
    /// Seed of the order of the measured points
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Print a machine-readable summary to the standard output
    #[arg(long, requires = "output")]
    json: bool,
}

/// Transport of the messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum MeasuredOver {
    /// TCP
    Tcp,
    /// Shared memory between two processes of this machine, each on its own core
    Shm,
}

/// Connection of the measuring end to the answering end.
enum AnswererLink {
    Loopback,
    Tcp(TcpTransport),
    Shm(shm_ends::MeasuringEnd),
}

/// Role of this process, with its connection.
enum Role {
    /// Measuring end, with a description of the path.
    Measure(AnswererLink, String),
    Answer(TcpTransport),
    Bystander,
}

impl From<WaitingKind> for Waiting {
    fn from(waiting: WaitingKind) -> Waiting {
        match waiting {
            WaitingKind::Sleep => Waiting::Sleep,
            WaitingKind::Poll => Waiting::Poll,
        }
    }
}

/// `true` if strangers can reach the address: it is neither on loopback nor inside a lab.
fn needs_token(address: SocketAddr) -> bool {
    !address.ip().is_loopback() && std::env::var_os("FLOWCAST_LAB").is_none()
}

/// Token of ends without a given token. It only protects against accidental connections.
const DEFAULT_TOKEN: Token = Token::new([0; TOKEN]);

/// Connection to the answering end at an address.
pub(crate) fn connected_to(
    address: &str,
    token: &TokenArgs,
    waiting: Waiting,
) -> Result<TcpTransport> {
    let token = token.given()?;
    if token.is_none()
        && address
            .to_socket_addrs()
            .is_ok_and(|mut all| all.all(needs_token))
    {
        bail!("found no token, expected --token TOKEN, printed by the listening end");
    }
    let token = token.unwrap_or(DEFAULT_TOKEN);
    launcher::connected(|| TcpTransport::introduced(address, token.bytes(), waiting))
        .map_err(explained)
}

fn precision_help() -> String {
    format!(
        "Stop at this precision: half the 95 % interval of every median (with --adaptive: of every parameter), as a share \
         of it, such as 2% or 0.02 [default: {}, with --adaptive {}]",
        PrttPlan::default().relative_half_width,
        BudgetPlan::default().precision
    )
}

impl P2p {
    fn run(self) -> Result<()> {
        declare([], Output::each("-o", &self.output))?;
        if self.over == MeasuredOver::Shm {
            return self.over_shm();
        }
        ensure!(
            self.cores.is_none() && self.answer_in.is_none(),
            "--cores: found a measurement over TCP, expected --over shm"
        );
        match self.role()? {
            Role::Bystander => Ok(()),
            Role::Answer(mut transport) => answer(&mut transport).map_err(explained),
            Role::Measure(other, path) => self.take(other, path),
        }
    }

    fn over_shm(self) -> Result<()> {
        ensure!(
            self.listen.is_none()
                && self.connect.is_none()
                && self.rendezvous.is_none()
                && self.waiting != WaitingKind::Poll,
            "--over shm: found --listen, --connect, --rendezvous or --waiting poll, expected none: both ends run on this machine and poll"
        );
        if let Some(memory) = &self.answer_in {
            return shm_ends::answer_in(memory, self.cores);
        }
        let (transport, answering, path) = shm_ends::connect(self.cores)?;
        let taken = self.take(AnswererLink::Shm(transport), path);
        drop(answering);
        taken
    }

    fn role(&self) -> Result<Role> {
        if let Some(address) = &self.listen {
            let door = TcpEntry::open(address).map_err(explained)?;
            let address = door.address()?;
            say!("listening at {address}");
            let token = match self.token.given()? {
                None if needs_token(address) => {
                    let token = token::new()?;
                    say!("token {token}");
                    token
                }
                given => given.unwrap_or(DEFAULT_TOKEN),
            };
            return Ok(Role::Answer(
                door.admit(token.bytes(), self.waiting.into())?,
            ));
        }
        if let Some(address) = &self.connect {
            let transport = connected_to(address, &self.token, self.waiting.into())?;
            let path = format!("tcp to {address}");
            return Ok(Role::Measure(AnswererLink::Tcp(transport), path));
        }
        let Some(place) = launcher::place().filter(|place| place.size > 1) else {
            let path = "tcp over loopback, two threads".into();
            return Ok(Role::Measure(AnswererLink::Loopback, path));
        };
        let Some(file) = &self.rendezvous else {
            bail!(EnvironmentLacks(format!(
                "found rank {} of {} of an MPI launcher without --rendezvous, expected --rendezvous FILE: a file through \
                 which the ranks find each other",
                place.rank, place.size
            )));
        };
        match place.rank {
            Rank(0) => {
                let transport = launcher::meet_at(file, self.waiting.into())?;
                Ok(Role::Measure(
                    AnswererLink::Tcp(transport),
                    "tcp to rank 1".into(),
                ))
            }
            Rank(1) => Ok(Role::Answer(launcher::wait_at(file, self.waiting.into())?)),
            _ => Ok(Role::Bystander),
        }
    }

    fn take(self, other: AnswererLink, path: String) -> Result<()> {
        if self.adaptive {
            return budget::run(&self, other, path);
        }
        self.measure(other, path)
    }

    fn measure(self, other: AnswererLink, path: String) -> Result<()> {
        let mut plan = self.plan();
        let mut provenance = provenance_of(&plan, path);
        let polls = self.waiting == WaitingKind::Poll || matches!(other, AnswererLink::Shm(_));
        provenance.insert(
            "waiting".into(),
            if polls { "poll" } else { "sleep" }.into(),
        );
        let head = csv_header(&provenance, false);
        let (mut kept, previous) = KeptSamples::open(&self, head)?;
        plan.delay = agreed_delay(&plan, &previous)?.or(plan.delay);
        let progress = Progress::for_seconds("measuring", plan.max_time.as_seconds());
        let mut observe = |round: &Round| {
            advance(&progress, round);
            let rows = round.samples.iter();
            kept.keep(rows.map(|(point, time)| (*point, *time, None)))
        };
        let measured = match other {
            AnswererLink::Tcp(mut transport) => {
                measure(&mut transport, &plan, previous, &mut observe)
            }
            AnswererLink::Shm(end) => end
                .pinned()
                .and_then(|mut transport| measure(&mut transport, &plan, previous, &mut observe)),
            AnswererLink::Loopback => with_loopback(self.waiting.into(), |transport| {
                measure(transport, &plan, previous, &mut observe)
            }),
        };
        drop(progress);
        self.deliver(measured.map_err(explained)?, kept, provenance)
    }

    fn plan(&self) -> PrttPlan {
        PrttPlan {
            messages: self.burst,
            sizes: self
                .sizes
                .clone()
                .unwrap_or_else(|| stepped_sizes(self.size, self.step)),
            delay: self.delay,
            max_time: self.time_limit,
            relative_half_width: self
                .precision
                .unwrap_or(PrttPlan::default().relative_half_width),
            seed: self.seed,
            ..PrttPlan::default()
        }
    }

    fn deliver(
        self,
        mut measured: MeasuredRoundTrips,
        kept: KeptSamples,
        mut provenance: BTreeMap<String, String>,
    ) -> Result<()> {
        provenance.insert("rounds".into(), measured.rounds.to_string());
        provenance.insert("stopped".into(), stop_text(measured.stop).into());
        if measured.sizes_left_out > 0 {
            let all = self.plan().sizes.len();
            provenance.insert("sizes_left_out".into(), measured.sizes_left_out.to_string());
            say!(
                "flowcast: note: {} of {all} sizes were left out so that rounds fit into --time-limit {}",
                measured.sizes_left_out,
                self.time_limit
            );
        }
        if measured.rounds == 1 {
            say!(
                "flowcast: note: only one round was measured, which gives no intervals; use a longer --time-limit"
            );
        }
        measured.samples.provenance = provenance;
        let document = document(&measured, self.burst)?;
        kept.deliver(&measured.samples, &document, Format { json: self.json })
    }
}

/// Samples so far. They are in a file if the measurement has one.
#[derive(Default)]
struct KeptSamples {
    file: Option<GrowingFile>,
    /// Error that prevented their storage.
    failure: Option<anyhow::Error>,
}

impl KeptSamples {
    /// Opens the samples file, if there is one. Returns it with the samples of the run that it resumes.
    fn open(asked: &P2p, head: String) -> Result<(KeptSamples, PrttSamples)> {
        let mut kept = KeptSamples::default();
        let Some(target) = &asked.output else {
            return Ok((kept, PrttSamples::default()));
        };
        let file = SamplesFile {
            target,
            resume: asked.resume,
            head,
            same: &["path"],
        };
        let (file, samples) = file.open(PrttSamples::from_csv)?;
        kept.file = Some(file);
        Ok((kept, samples))
    }

    /// Stores samples. Ends the measurement if they cannot be stored.
    fn keep(
        &mut self,
        times: impl IntoIterator<Item = (PrttPoint, Time, Option<Time>)>,
    ) -> ControlFlow<()> {
        let Some(file) = &mut self.file else {
            return ControlFlow::Continue(());
        };
        self.failure = file.append(&csv_rows(times)).err();
        match self.failure {
            Some(_) => ControlFlow::Break(()),
            None => ControlFlow::Continue(()),
        }
    }

    /// Writes the complete file and prints its summary. Without a file, the samples are written to the standard output.
    fn deliver(self, samples: &PrttSamples, document: &Document, format: Format) -> Result<()> {
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        let Some(file) = self.file else {
            print_out!("{}", samples.to_csv());
            return Ok(());
        };
        file.finish_text(&samples.to_csv())?;
        format.print(document)
    }
}

/// Delay of resumed samples. Fails if they were taken by another plan.
fn agreed_delay(plan: &PrttPlan, previous: &PrttSamples) -> Result<Option<Time>> {
    let foreign = previous.points().find(|(point, _)| {
        let messages = point.messages == 1 || point.messages == plan.messages;
        let delay =
            point.delay == Time::ZERO || plan.delay.is_none_or(|delay| delay == point.delay);
        !(messages && delay && plan.sizes.contains(&point.size))
    });
    if let Some((point, _)) = foreign {
        bail!(
            "--resume: found samples of n = {}, d = {}, {} B, which are not in the plan of this measurement; expected the \
             same --burst, --delay and sizes as before",
            point.messages,
            point.delay,
            point.size.0
        );
    }
    Ok(previous
        .points()
        .map(|(point, _)| point.delay)
        .find(|delay| *delay > Time::ZERO))
}

fn provenance_of(plan: &PrttPlan, path: String) -> BTreeMap<String, String> {
    let mut all = doctor::provenance_of_measurement();
    let (first, last) = (plan.sizes.first(), plan.sizes.last());
    let sizes = format!(
        "{} sizes from {} to {}",
        plan.sizes.len(),
        bytes(first),
        bytes(last)
    );
    all.extend([
        ("path".into(), path),
        ("sizes".into(), sizes),
        ("seed".into(), plan.seed.to_string()),
        ("precision".into(), plan.relative_half_width.to_string()),
    ]);
    all
}

fn bytes(size: Option<&Bytes>) -> String {
    Rounded(size.copied().unwrap_or_default()).to_string()
}

fn advance(progress: &Progress, round: &Round) {
    progress.at_seconds(round.elapsed.as_seconds());
    let known = round.widest.filter(|width| width.is_finite());
    let precision = known.map_or(String::new(), |width| {
        format!(", medians within {:.1} %", width * 100.0)
    });
    progress.say(format!(", round {}{precision}", round.number));
}

fn stop_text(stop: Stop) -> &'static str {
    match stop {
        Stop::Precise => "precise",
        Stop::TimeOver => "time over",
        Stop::BudgetSpent => "messages spent",
        Stop::Asked => "asked",
    }
}

/// Samples of one n, d and size, in microseconds.
struct MeasurePoint {
    point: PrttPoint,
    samples: usize,
    median: f64,
    interval: Option<[f64; 2]>,
}

impl MeasurePoint {
    fn from_times(point: PrttPoint, times: &[Time]) -> Result<MeasurePoint> {
        let micros: Vec<f64> = times.iter().map(|time| time.as_micros()).collect();
        let interval = median_interval(&micros, LEVEL)?;
        Ok(MeasurePoint {
            point,
            samples: times.len(),
            median: median(&micros)?,
            interval: interval.map(|interval| [interval.low, interval.high]),
        })
    }
}

/// Confidence level of the intervals.
const LEVEL: f64 = 0.95;

/// Results of the measurement, as medians.
fn document(measured: &MeasuredRoundTrips, messages: u32) -> Result<Document> {
    let points = measured
        .samples
        .points()
        .map(|(point, times)| MeasurePoint::from_times(point, times))
        .collect::<Result<Vec<_>>>()?;
    let all = rows(&points)
        .field("n", |at| at.point.messages)
        .field("d_us", |at| at.point.delay)
        .field("size_B", |at| at.point.size)
        .field("samples", |at| at.samples)
        .field("median_us", |at| at.median)
        .field("median_us_interval", |at| at.interval);
    let in_both = points
        .iter()
        .filter(|at| at.point.messages == 1)
        .filter_map(|at| {
            let size = at.point.size;
            Some((
                size,
                median_of(&points, 1, size)?,
                median_of(&points, messages, size)?,
            ))
        });
    let table = rows(in_both)
        .cell("size", |(size, ..)| size)
        .cell("round trip", |(_, one, _)| one)
        .cell(format!("{messages} in a row"), |(.., many)| many)
        .cell("time between messages", |(_, one, many)| {
            (many - one) * (1.0 / f64::from(messages - 1))
        });
    let (samples, stopped) = (measured.samples.len(), stop_text(measured.stop));
    let width = Some(measured.widest).filter(|width| width.is_finite());
    let precision = width.map_or(String::new(), |width| {
        format!(
            " The widest 95 % interval of a median is ± {:.1} %.",
            width * 100.0
        )
    });
    Ok(Document::new("measurement")
        .field("rounds", measured.rounds)
        .field("samples", samples)
        .field("elapsed_s", measured.elapsed)
        .field("delay_us", measured.delay)
        .field("stopped", stopped)
        .field("relative_half_width", width)
        .field("level", LEVEL)
        .field("points", all)
        .field("provenance", &measured.samples.provenance)
        .shown(table)
        .line(format!(
            "{} samples in {} rounds and {} ({stopped}).{precision}",
            Grouped(samples as u64),
            measured.rounds,
            Rounded(measured.elapsed)
        )))
}

fn median_of(points: &[MeasurePoint], messages: u32, size: Bytes) -> Option<Time> {
    let wanted = PrttPoint::new(messages, Time::ZERO, size);
    let found = points.iter().find(|at| at.point == wanted);
    found.map(|at| Time::from_micros(at.median))
}
