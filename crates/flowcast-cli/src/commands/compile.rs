//! `flowcast compile`: converts any trace to the compiled form.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use flowcast::{
    statements::Counts,
    table::Grouped,
    trace::{Trace, compiled, fold::fold},
};

use flowcast_terminal::{
    files::{Output, declare, write_whole},
    output::Format,
    progress::Progress,
    trace_args::{open_folded, trace_help},
};

/// Compile a trace into a matched, compact form for replay
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  flowcast compile cg.S.4.dim -o cg.fct && flowcast predict cg.fct --network gige-tcp"
)]
pub(crate) struct Compile {
    #[arg(help = trace_help())]
    input: PathBuf,
    /// Output file of the compiled trace, such as lu.fct
    #[arg(short, long, value_name = "FILE")]
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
        let (output, counts) = (self.output.display(), Counts::from_trace(&trace));
        let each = bytes as f64 / counts.messages.max(1) as f64;
        let size = Grouped(bytes);
        self.format.print(
            &counts
                .document("compile")
                .field("bytes", bytes)
                .line(format!(
                    "{output}: {counts}, {size} bytes ({each:.1} per message)"
                )),
        )
    }
}
