//! `flowcast predict`: a pattern of concurrent communications, or a program's trace; its content says which.

pub(in crate::commands) mod comparison;
pub(in crate::commands) mod pattern;
pub(in crate::commands) mod stand_ins;
pub(in crate::commands) mod trace;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Args;
use flowcast::{
    Contention, IntervalOptions,
    model::network::Network,
    report::{NetworkView, Page},
};
use flowcast_io::{Holding, is_pattern};

use crate::{
    network_args::{load_all, parse_overrides},
    terminal::{
        files::{Output, declare},
        output::Format,
        provenance,
    },
    trace_args::{first_file, trace_help},
};
use pattern::PatternArgs;
use stand_ins::stand_in_sentences;
use trace::TraceArgs;

/// Predict how long communications, or a program's communication, take
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowcast predict cg.S.4.dim --network gige-tcp
  flowcast predict cg.S.4.dim --network gige-tcp --network infiniband-2006 --model fair --model packet --report cg.html
  flowcast predict cg.S.4.dim --network 'mine/*.toml' --mapping fill --mapping round-robin
  flowcast predict cg.S.4.dim mg.S.4.dim --network cluster.cfg --mapping fill --mapping round-robin
  flowcast predict cg.S.4.dim --network gige-tcp --paraver cg.prv --perfetto cg.json --messages cg.csv
  flowcast predict cg.S.4.dim --network gige-tcp --model independent --noise exponential:5us --seed 7
  flowcast predict cg.S.4.dim --network gige-tcp --model independent --scenarios what-if.toml
  flowcast predict halo.goal --goal-params 2000,500,700,1,65536 --json
  flowcast predict cg.S.4.dim --network gige-tcp --collectives openmpi --explain
  flowcast predict chain.pattern --network gige-lam --explain --plot chain.svg
  flowcast predict racks.pattern --network ethernet-1g-10g --model closed-loop --set sharing.kappa=0.5 --json
  flowcast predict chain.pattern --network gige-lam --model packet --set sharing.congestion=cubic --set sharing.queue=100kB --seeds 21")]
pub(crate) struct Predict {
    #[arg(required = true, help = input_help())]
    inputs: Vec<PathBuf>,
    /// Built-in network (see `flowcast networks`), network file (TOML), Dimemas .cfg, or a pattern of names such as
    /// 'gige-*' or 'mine/*.toml'; several to compare them (repeatable)
    #[arg(short, long, value_name = "NET", help_heading = "Network")]
    network: Vec<String>,
    /// Replace a field of every network, such as nic.latency=5us (repeatable)
    #[arg(long = "set", value_name = "KEY=VALUE", help_heading = "Network")]
    overrides: Vec<String>,
    /// Start of the random numbers, where the network varies at random (as --set machine.random.seed=N), and of --noise
    #[arg(long, value_name = "N", help_heading = "Network")]
    seed: Option<u64>,
    /// What concurrent messages do to each other: independent, fair, degree-fair, flow-cuts, asymmetric, closed-loop,
    /// alpha-fair, packet, ib-penalty; traces: limits (Dimemas' links, buses, processors), loggops (GOAL); several to
    /// compare them. When absent, the network decides, and the first line of the result says how (repeatable)
    #[arg(long, value_name = "MODEL", help_heading = "Network")]
    model: Vec<String>,
    /// Patterns: say for each interval what cut the flow, and by how much. Traces: what communication cost each rank and
    /// each place in the program: overhead, latency, bandwidth, conflicts, late senders and receivers
    #[arg(long, help_heading = "Output")]
    explain: bool,
    /// Probability with which the interval of a prediction is to contain what is measured
    #[arg(long, value_name = "PROBABILITY", default_value = "0.90", value_parser = probability, help_heading = "Output")]
    level: f64,
    /// Name of this validation case in the network's accuracy record: its own errors are left out of the interval
    #[arg(long, value_name = "NAME", help_heading = "Output")]
    judged: Option<String>,
    #[command(flatten)]
    format: Format,
    #[command(flatten)]
    trace: TraceArgs,
    #[command(flatten)]
    pattern: PatternArgs,
}

/// What is asked for, read.
pub(super) struct Asked<'a> {
    /// As it was typed.
    pub args: &'a Predict,
    /// The fields of the network that are set, with their values.
    pub overrides: Vec<(String, String)>,
    /// The networks, in the order given.
    pub networks: Vec<Network>,
    /// The models, in the order given.
    pub models: Vec<Contention>,
}

impl Asked<'_> {
    /// The fields of the network that are set.
    pub(super) fn fields(&self) -> Vec<String> {
        self.overrides.iter().map(|(key, _)| key.clone()).collect()
    }

    /// How intervals are made.
    pub(super) fn interval(&self) -> IntervalOptions<'_> {
        IntervalOptions {
            level: self.args.level,
            held_out: self.args.judged.as_deref(),
            ..IntervalOptions::default()
        }
    }

    /// The one model, if one was given.
    ///
    /// # Errors
    /// There are several.
    pub(super) fn model(&self) -> Result<Contention> {
        match self.models[..] {
            [] => Ok(Contention::Automatic),
            [model] => Ok(model),
            _ => bail!(
                "--model: found {} of them, expected one beside several traces",
                self.models.len()
            ),
        }
    }

    /// The page of `--report`.
    pub(super) fn page(
        &self,
        title: String,
        subtitle: String,
        notes: &[String],
        views: Vec<NetworkView>,
    ) -> String {
        let page = Page {
            title,
            subtitle,
            notes: [notes, &stand_in_sentences(&self.networks)].concat(),
            networks: views,
            provenance: provenance::of_this_run(),
        };
        page.to_html()
    }

    /// Predicts what the input holds and prints.
    fn predict(&self) -> Result<()> {
        let Predict {
            inputs,
            trace,
            pattern,
            ..
        } = self.args;
        if let Some(file) = &trace.scenarios {
            return trace::run_scenarios(self, file);
        }
        if let [input] = &inputs[..]
            && is_pattern(&first_file(input)?)? == Holding::Pattern
        {
            return pattern::run(self, input);
        }
        if pattern.is_given() {
            bail!("found a trace, expected a pattern for --plot, --strict and --seeds");
        }
        let combinations =
            self.networks.len().max(1) * self.models.len().max(1) * trace.mapping.len().max(1);
        if inputs.len() == 1 && combinations > 1 {
            return comparison::of_trace(self);
        }
        trace::run(self)
    }
}

impl Predict {
    /// Predicts and prints.
    pub(crate) fn run(self) -> Result<()> {
        self.declare()?;
        let mut overrides = parse_overrides(&self.overrides)?;
        overrides.extend(
            self.seed
                .map(|seed| ("machine.random.seed".to_owned(), seed.to_string())),
        );
        let model =
            |name: &String| Contention::named(name).with_context(|| format!("--model {name}"));
        let asked = Asked {
            models: self.model.iter().map(model).collect::<Result<_>>()?,
            networks: load_all(&self.network, &overrides)?,
            overrides,
            args: &self,
        };
        asked.predict()
    }

    /// Refuses files to write that are among those to read, or cannot be written.
    fn declare(&self) -> Result<()> {
        let named = self
            .network
            .iter()
            .chain(&self.trace.mapping)
            .map(Path::new);
        let beside = self.trace.outputs.beside_paraver();
        let mut outputs = self.trace.outputs.declared(&beside);
        outputs.extend(
            self.trace
                .report
                .as_deref()
                .map(|path| Output::new("--report", path)),
        );
        let plot = self.pattern.plot.as_deref();
        outputs.extend(plot.map(|path| Output {
            option: "--plot",
            path,
            endings: &["svg", "html"],
        }));
        declare(
            self.inputs.iter().map(PathBuf::as_path).chain(named),
            outputs,
        )
    }
}

/// A probability of `--level`.
pub(crate) fn probability(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(level) if level > 0.0 && level < 1.0 => Ok(level),
        Ok(percent) if (1.0..100.0).contains(&percent) => Err(format!(
            "expected a probability: {} for {percent} %",
            percent / 100.0
        )),
        _ => Err("expected a probability above 0 and below 1, such as 0.90".to_owned()),
    }
}

fn input_help() -> String {
    format!(
        "Pattern of concurrent communications, or a trace. {}. Several traces run on the machine at once",
        trace_help()
    )
}
