//! `flowcast sensitivity`: how the predicted time depends on a field of the network, or on some of the costs.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;
use flowcast::{Parameter, answers::ROWS, report::chart_page::Picture, sensitivity};

use crate::{
    network_args::NetworkArgs,
    replay_args::ReplayArgs,
    terminal::{
        answers::write_page,
        files::{Output, declare},
        output::Format,
        progress::Progress,
        provenance,
        tables::Most,
    },
    trace_args::{open_trace, trace_help},
};

/// Plot the predicted time against one network field or cost
///
/// Prints the curve, its slopes, and the values at which the time grows by 1, 2, 5 and 10 %. The costs may be those of a rank,
/// pair, link or size. The curve is exact where messages do not disturb one another (--model independent).
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowcast sensitivity lu.dim --network gige-tcp --model independent --parameter nic.latency --range 0us..1ms
  flowcast sensitivity lu.dim --network gige-tcp --model independent --parameter nic.bandwidth --range 10MB/s..10GB/s --report lu.html
  flowcast sensitivity lu.dim --network gige-tcp --model independent --parameter 'compute[rank=2]' --range 0.5..2
  flowcast sensitivity lu.dim --network gige-tcp --model independent --parameter 'latency[pair=0-3,size>=1KiB]' --range 0us..1ms
  flowcast sensitivity lu.dim --network gige-tcp --parameter machine.nodes.*.speed --range 0.5..4 --json")]
pub(crate) struct Sensitivity {
    #[arg(help = trace_help())]
    input: PathBuf,
    #[command(flatten)]
    network: NetworkArgs,
    #[command(flatten)]
    replay: ReplayArgs,
    /// The field to vary, as for --set, or latency, bandwidth, overhead, gap. Of some costs alone: latency, bandwidth,
    /// gap_per_byte, overhead, gap, compute or collective (these two by factor), with conditions in brackets: rank=7, node=2,
    /// pair=0-3, link=inside|between|sites, size>=64KiB, size<64KiB, collective=alltoall, function=12
    #[arg(long, value_name = "FIELD")]
    parameter: String,
    /// Its values, each with its unit, such as 0us..1ms
    #[arg(long, value_name = "FROM..TO")]
    range: String,
    /// Walks over the program after which the search for further pieces ends
    #[arg(long, value_name = "COUNT", default_value_t = 10_000)]
    limit: usize,
    #[command(flatten)]
    rows: Most,
    /// Write a self-contained page with the curve, and the JSON beside it
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,
    #[command(flatten)]
    format: Format,
}

impl Sensitivity {
    /// Predicts over the range and prints.
    pub(crate) fn run(self) -> Result<()> {
        let inputs = [self.input.as_path(), self.network.network.as_ref()];
        let pages = self.report.iter().map(|path| Output {
            option: "--report",
            path,
            endings: &["html"],
        });
        declare(inputs, pages)?;
        let network = self.network.load()?;
        let parameter = Parameter::parse(&self.parameter, &self.range)?;
        let options = self.replay.options()?;
        let trace = open_trace(&self.input)?;
        let progress = Progress::without_end(format!("following {}", self.parameter));
        let found = sensitivity(&trace, &network, (parameter, self.limit), &options)
            .with_context(|| format!("--parameter {} --range {}", self.parameter, self.range))?;
        drop(progress);
        let answer = found.answer(trace.name(), &network, self.rows.rows());
        if let Some(path) = &self.report {
            let provenance = provenance::of_this_run();
            write_page(path, &answer, Picture::Sensitivity, &provenance)?;
        }
        self.format.print(&answer.most(self.rows.rows(), ROWS))
    }
}
