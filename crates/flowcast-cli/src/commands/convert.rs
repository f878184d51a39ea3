//! `flowcast convert`: converts any trace to the format of another tool.

use std::{
    borrow::Cow,
    collections::BTreeMap,
    io::Write,
    path::{Path, PathBuf},
};

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use flowcast::{
    Conversion, ConversionError, Options, Outputs, Prepared, PreparedProgram, TraceForm,
    convert::{self, Losses, WriterTables},
    model::network::Network,
    statements::Counts,
    trace::{Program, Trace, program::IgnoredRecords},
};

use flowcast_terminal::{
    collectives,
    files::{Batch, Output, declare, write_whole},
    network_args::{load, parse_overrides},
    output::{Format, print_notes},
    progress::Progress,
    rank_files::write_list,
    replay_files::OutputArgs,
    say,
    trace_args::{open_trace, threads, trace_help},
};

/// Convert a trace to the format of another tool
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  flowcast convert run.rec -o run.dim\n  flowcast convert run.rec -o run.goal --collectives mpich\n  flowcast convert run.goal -o run.bin --format goal-bin\n  flowcast convert run.rec -o run.list --format ti    # and the folder run.ti\n  flowcast convert run.rec -o run.prv --network gige-tcp"
)]
pub(crate) struct Convert {
    #[arg(help = trace_help())]
    input: PathBuf,
    /// Output file; prv and ti write further files beside it
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Format: dim (Dimemas), prv (Paraver, as replayed on --network), goal (LogGOPSim, as text), goal-bin (LogGOPSim and
    /// ATLAHS, as `txt2bin` writes it), ti (SimGrid: a list, and a folder with one file for each rank) [default: by the
    /// ending .dim, .prv or .goal]
    #[arg(long = "format", value_enum, value_name = "FORMAT")]
    to: Option<TargetForm>,
    /// dim: omit records that only Flowcast reads
    #[arg(long)]
    strict: bool,
    #[arg(long, value_name = "HOW", help = flowcast_io::collectives_help(Conversion::WITHOUT_COLLECTIVES))]
    collectives: Option<String>,
    /// prv: network for the replay; also the network of `--collectives algorithm`
    #[arg(short, long, value_name = "NET")]
    network: Option<String>,
    /// Replace a field of the network, such as nic.latency=5us (repeatable)
    #[arg(long = "set", value_name = "KEY=VALUE")]
    overrides: Vec<String>,
    #[command(flatten)]
    format: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum TargetForm {
    Dim,
    Prv,
    Goal,
    GoalBin,
    Ti,
}

impl TargetForm {
    /// Form of a file, if its ending belongs to only one.
    fn of_ending(path: &Path) -> Result<TargetForm> {
        match path.extension().and_then(|ending| ending.to_str()) {
            Some("dim") => Ok(TargetForm::Dim),
            Some("prv") => Ok(TargetForm::Prv),
            Some("goal") => Ok(TargetForm::Goal),
            Some("fct") => bail!(
                "-o: found {}, expected a format of another tool; `flowcast compile` writes compiled traces",
                path.display()
            ),
            _ => bail!(
                "-o: found {}, expected a name that ends in .dim, .prv or .goal, or --format dim, prv, goal, goal-bin or ti",
                path.display()
            ),
        }
    }
}

impl Convert {
    /// Writes the trace.
    pub(crate) fn run(self) -> Result<()> {
        let to = self
            .to
            .map_or_else(|| TargetForm::of_ending(&self.output), Ok)?;
        self.declare(to)?;
        let conversion = self.conversion(to)?;
        let program = match open_trace(&self.input)? {
            Trace::Program(program) => program,
            Trace::Schedule(_) if !matches!(to, TargetForm::Goal | TargetForm::GoalBin) => {
                return Err(ConversionError::Schedule.into());
            }
            schedule => {
                let losses = self.written(|out| Ok(conversion.write(&schedule, out)?))?;
                return self.report(Counts::from_trace(&schedule), &[], &losses);
            }
        };
        print_notes(program.ignored());
        let ignored = program.ignored().to_vec();
        let network = self.network()?;
        let (program, lost) =
            conversion.prepared(Cow::Owned(program), network.as_ref(), threads())?;
        let losses = match to {
            TargetForm::Ti => self.write_ti(&program)?,
            TargetForm::Prv => self.write_prv(&program, network.as_ref())?,
            TargetForm::Dim | TargetForm::Goal | TargetForm::GoalBin => {
                self.written(|out| Ok(conversion.write_prepared(&program, out)?))?
            }
        };
        self.report(Counts::from_program(&program), &ignored, &lost.and(losses))
    }

    fn conversion(&self, to: TargetForm) -> Result<Conversion> {
        let form = match to {
            TargetForm::Dim => TraceForm::Dim,
            TargetForm::Prv => TraceForm::Paraver,
            TargetForm::Goal => TraceForm::Goal,
            TargetForm::GoalBin => TraceForm::GoalBinary,
            TargetForm::Ti => TraceForm::TimeIndependent,
        };
        let collectives = self
            .collectives
            .as_deref()
            .map(collectives::named)
            .transpose()?;
        Ok(Conversion {
            form,
            strict: self.strict,
            collectives,
        })
    }

    fn declare(&self, to: TargetForm) -> Result<()> {
        let files = self.as_paraver();
        let (endings, beside) = match to {
            TargetForm::Prv => (&["prv"][..], files.beside_paraver()),
            _ => (&[][..], Vec::new()),
        };
        let output = Output {
            option: "-o",
            path: &self.output,
            endings,
        };
        let network = self.network.iter().map(Path::new);
        declare(
            [self.input.as_path()].into_iter().chain(network),
            [output].into_iter().chain(Output::each("-o", &beside)),
        )
    }

    fn as_paraver(&self) -> OutputArgs {
        OutputArgs::paraver(&self.output)
    }

    fn network(&self) -> Result<Option<Network>> {
        let overrides = parse_overrides(&self.overrides)?;
        let network = self.network.as_deref();
        network.map(|name| load(name, &overrides)).transpose()
    }

    fn written(&self, write: impl FnOnce(&mut dyn Write) -> Result<Losses>) -> Result<Losses> {
        let mut losses = Losses::default();
        let progress = Progress::writing(&self.output);
        write_whole(&self.output, |out| {
            losses = write(&mut progress.counting(out))?;
            Ok(())
        })?;
        Ok(losses)
    }

    fn write_ti(&self, program: &Program) -> Result<Losses> {
        let (tables, mut losses) = (WriterTables::new(program), Losses::default());
        let ranks = program.ranks() as u32;
        let progress = Progress::counted("writing", "ranks", u64::from(ranks));
        write_list(&self.output, ranks, |rank, out| {
            progress.add(1);
            convert::ti_rank(&tables, rank, &mut losses, out)
        })?;
        Ok(losses)
    }

    fn write_prv(&self, program: &Program, network: Option<&Network>) -> Result<Losses> {
        let Some(network) = network else {
            bail!(
                "--format prv: found no network, expected --network NET (a Paraver trace contains times)"
            );
        };
        let prepared =
            Prepared::Program(PreparedProgram::new(program, network, &Options::default())?);
        let files = self.as_paraver();
        let outputs = Outputs {
            journal: Some(files.keeps()),
            ..Outputs::default()
        };
        let mut batch = Batch::new();
        prepared.predict_and_export(outputs, &[], |replayed| {
            files.write(replayed, &[], &mut batch)
        })?;
        batch.commit()?;
        Ok(Losses::default())
    }

    /// Reports the losses. The records that the reader left out (`ignored`) have already been printed.
    fn report(&self, counts: Counts, ignored: &[IgnoredRecords], losses: &Losses) -> Result<()> {
        for (kind, count) in losses.kinds() {
            let left_out = if kind.contains(';') { "" } else { " left out" };
            say!("flowcast: note: {count} {kind}{left_out}");
        }
        let ignored = ignored.iter();
        let mut all: BTreeMap<&str, u64> = ignored
            .map(|records| (&*records.kind, records.count))
            .collect();
        for (kind, count) in losses.kinds() {
            all.insert(kind, count);
        }
        let line = format!("{}: {counts}", self.output.display());
        self.format
            .print(&counts.document("convert").field("losses", all).line(line))
    }
}
