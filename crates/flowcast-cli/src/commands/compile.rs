//! `flowcast compile`: from any trace to the compiled form.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use flowcast::trace::compiled;
use serde_json::json;

use crate::files::write_whole;
use crate::output::println_out;
use crate::trace_args::open_trace;

/// Compile a trace: matched, compact, ready to replay
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  flowcast compile cg.S.4.dim -o cg.fct && flowcast predict cg.fct --network gige-tcp"
)]
pub struct Compile {
    /// Trace of any format that `predict` reads
    input: PathBuf,
    /// File to write
    #[arg(short, long)]
    output: PathBuf,
    /// Machine-readable output
    #[arg(long)]
    json: bool,
}

impl Compile {
    /// Writes the compiled trace.
    pub fn run(self) -> Result<()> {
        let trace = open_trace(&self.input)?;
        write_whole(&self.output, |out| Ok(compiled::write(&trace, out)?))?;
        let bytes = std::fs::metadata(&self.output)?.len();
        let (ranks, messages) = (trace.ranks(), trace.messages());
        if self.json {
            let summary =
                json!({ "schema": "flowcast/compile/1", "ranks": ranks, "messages": messages, "bytes": bytes });
            println_out!("{summary}");
        } else {
            let each = bytes as f64 / messages.max(1) as f64;
            println_out!(
                "{}: {} ranks, {messages} messages, {bytes} bytes ({each:.1} a message)",
                self.output.display(),
                trace.ranks()
            );
        }
        Ok(())
    }
}
