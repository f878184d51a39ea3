//! `flowcast compile`: from any trace to the compiled form.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use flowcast::trace::fold::fold;
use flowcast::trace::{Trace, compiled};
use serde::Serialize;

use crate::terminal::files::{Output, declare, write_whole};
use crate::terminal::output::{Counts, Format, Shown, println_out, show};
use crate::terminal::progress::Progress;
use crate::trace_args::{open_folded, trace_help};
use flowcast::report::answer::Grouped;

/// Compile a trace: matched, compact, ready to replay
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  flowcast compile cg.S.4.dim -o cg.fct && flowcast predict cg.fct --network gige-tcp"
)]
pub(crate) struct Compile {
    #[arg(help = trace_help())]
    input: PathBuf,
    /// File to write
    #[arg(short, long, help_heading = "Output")]
    output: PathBuf,
    #[command(flatten)]
    format: Format,
}

impl Compile {
    /// Writes the compiled trace.
    pub(crate) fn run(self) -> Result<()> {
        declare([self.input.as_path()], [Output::new("-o", &self.output)])?;
        let trace = match open_folded(&self.input)? {
            Trace::Program(program) => fold(program)?,
            other => other,
        };
        let progress = Progress::writing(&self.output);
        write_whole(&self.output, |out| {
            Ok(compiled::write(&trace, &mut progress.counting(out))?)
        })?;
        drop(progress);
        let bytes = std::fs::metadata(&self.output)?.len();
        let compiled = Compiled {
            output: self.output,
            ranks: trace.ranks(),
            messages: trace.messages(),
            collectives: trace.collectives(),
            bytes,
        };
        show(&compiled, self.format)
    }
}

/// The trace that was written.
#[derive(Serialize)]
struct Compiled {
    #[serde(skip)]
    output: PathBuf,
    ranks: usize,
    messages: u64,
    collectives: u64,
    bytes: u64,
}

impl Shown for Compiled {
    const SCHEMA: &'static str = "flowcast/compile/1";

    fn print(&self) {
        let Compiled {
            output,
            ranks,
            messages,
            collectives,
            bytes,
        } = self;
        let each = *bytes as f64 / (*messages).max(1) as f64;
        let counts = Counts {
            ranks: *ranks,
            messages: *messages,
            collectives: *collectives,
        };
        println_out!(
            "{}: {counts}, {} bytes ({each:.1} a message)",
            output.display(),
            Grouped(*bytes)
        );
    }
}
