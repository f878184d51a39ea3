//! `flowcast predict`: a pattern of concurrent communications, or a program's trace; its content says which.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Args;
use flowcast::model::cluster::pattern::Pattern;
use flowcast::model::sharing::model::Model;

use super::predict_applications;
use super::predict_pattern::{self, PatternArgs};
use super::predict_trace::{self, TraceArgs};
use crate::files::read_bytes;
use crate::network_args::{LoadedNetwork, load, parse_overrides, tell_rate_kind};
use crate::trace_args::first_file;

/// Predict how long communications, or a program's communication, take
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowcast predict cg.S.4.dim --network gige-tcp
  flowcast predict cg.S.4.dim mg.S.4.dim --network cluster.cfg --mapping fill --mapping round-robin
  flowcast predict cg.S.4.dim --network gige-tcp --paraver cg.prv --perfetto cg.json --messages cg.csv
  flowcast predict halo.goal --goal-params 2000,500,700,1,65536 --json
  flowcast predict cg.S.4.dim --network gige-tcp --collectives openmpi --model fair --explain
  flowcast predict chain.pattern --network gige-lam --explain --plot chain.svg
  flowcast predict racks.pattern --network ethernet-1g-10g --model closed-loop --set sharing.kappa=0.5 --json
  flowcast predict chain.pattern --network gige-lam --model packet --set sharing.congestion=cubic --set sharing.queue=100kB --seeds 21")]
pub(crate) struct Predict {
    /// Pattern of concurrent communications, or trace: Dimemas .dim, Paraver .prv, GOAL, SimGrid time-independent list, or
    /// compiled .fct, plain, gzip or zstd; or the folder of a recording. Several traces run on the machine at once
    #[arg(required = true)]
    inputs: Vec<PathBuf>,
    /// Built-in network (see `flowcast networks`), network file (TOML) or Dimemas .cfg
    #[arg(short, long, value_name = "NET")]
    network: Option<String>,
    /// Replace a field of the network, such as nic.latency=5us (repeatable)
    #[arg(long = "set", value_name = "KEY=VALUE")]
    overrides: Vec<String>,
    /// Start of the random numbers, where the network varies at random (as --set machine.random.seed=N)
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Machine-readable output
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    trace: TraceArgs,
    #[command(flatten)]
    pattern: PatternArgs,
}

impl Predict {
    /// Predicts and prints.
    pub(crate) fn run(self) -> Result<()> {
        let mut overrides = parse_overrides(&self.overrides)?;
        overrides.extend(self.seed.map(|seed| ("machine.random.seed".to_owned(), seed.to_string())));
        let network =
            self.network.as_deref().map(|name| load(name, &overrides)).transpose()?.map(LoadedNetwork::announced);
        let asked: Vec<String> = overrides.iter().map(|(key, _)| key.clone()).collect();
        if let [_, _, ..] = self.inputs[..] {
            let explains = self.pattern.explain || self.trace.collectives.collectives.is_some();
            if self.pattern.is_for_patterns_only() || self.pattern.model.is_some() || explains {
                bail!(
                    "found several traces, expected one input for --model, --collectives, --explain, --plot and --strict"
                );
            }
            let network = network.ok_or(flowcast::Error::NoNetwork)?;
            return predict_applications::run(&self.inputs, &network, &asked, &self.trace, self.json);
        }
        let input = &self.inputs[0];
        if is_pattern(input)? {
            let pattern = Pattern::read(&input.display().to_string(), &read_bytes(input)?)?;
            let network = network.ok_or(flowcast::Error::NoNetwork)?;
            if self.trace.is_given() {
                bail!(
                    "found a pattern, expected a trace for --mapping, --rendezvous-from, --collectives, --goal-params and files to write"
                );
            }
            tell_rate_kind(&asked, self.pattern.model.as_deref().unwrap_or(Model::of(&network).name()));
            return predict_pattern::run(&pattern, &network, &self.pattern, self.json);
        }
        if self.pattern.is_for_patterns_only() {
            bail!("found a trace, expected a pattern for --plot and --strict");
        }
        tell_rate_kind(&asked, self.pattern.model.as_deref().unwrap_or("limits"));
        let options = self.trace.with_pattern_args(self.pattern);
        predict_trace::run(input, network.as_ref(), &asked, &options, self.json)
    }
}

/// By content; a garbled pattern by its ending, so that its first line is what the error is about.
fn is_pattern(path: &Path) -> Result<bool> {
    const ENOUGH: u64 = 1 << 16;
    let path = &first_file(path)?;
    let mut beginning = Vec::new();
    let file = File::open(path).and_then(|file| file.take(ENOUGH).read_to_end(&mut beginning));
    file.with_context(|| format!("cannot read {}", path.display()))?;
    Ok(Pattern::is_pattern(&beginning) || path.extension().is_some_and(|ending| ending == "pattern"))
}
