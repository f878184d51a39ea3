//! `flowcast predict`: a pattern of concurrent communications, or a program's trace; its content says which.

pub(in crate::commands) mod applications;
pub(in crate::commands) mod comparison;
pub(in crate::commands) mod pattern;
pub(in crate::commands) mod stand_ins;
pub(in crate::commands) mod trace;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Args;
use flowcast::model::cluster::pattern::Steps;
use flowcast::model::network::Network;
use flowcast::model::sharing::model::Model;
use flowcast::{Contention, IntervalOptions, PatternOptions};
use flowcast_io::{Holding, is_pattern};

use crate::network_args::{LoadedNetwork, load_all, parse_overrides, tell_rate_kind};
use crate::terminal::files::{Output, declare};
use crate::trace_args::{first_file, read_pattern, trace_help};
use pattern::PatternArgs;
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
    /// Machine-readable output
    #[arg(long, help_heading = "Output")]
    json: bool,
    #[command(flatten)]
    trace: TraceArgs,
    #[command(flatten)]
    pattern: PatternArgs,
}

/// What all predictions of a command have in common.
pub(super) struct Asked {
    /// The fields of the network that were set on the command line.
    pub fields: Vec<String>,
    /// These fields with their values.
    pub overrides: Vec<(String, String)>,
    /// Start of the random numbers.
    pub seed: u64,
    /// The models, in the order given.
    pub models: Vec<Contention>,
    /// Whether to say what communication cost.
    pub explain: bool,
    /// Machine-readable output.
    pub json: bool,
    /// Probability with which intervals hold what is measured, above 0 and below 1.
    pub level: f64,
    /// What is judged, by its name in the ledger.
    pub judged: Option<String>,
}

impl Asked {
    /// How intervals are made.
    pub(super) fn interval(&self) -> IntervalOptions<'_> {
        IntervalOptions {
            level: self.level,
            judged: self.judged.as_deref(),
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
        let asked = Asked {
            models: self.models()?,
            fields: overrides.iter().map(|(key, _)| key.clone()).collect(),
            overrides: overrides.clone(),
            seed: self.seed.unwrap_or(1),
            explain: self.explain,
            json: self.json,
            level: self.level,
            judged: self.judged.clone(),
        };
        if let Some(file) = &self.trace.scenarios {
            let [input] = &self.inputs[..] else {
                bail!("--scenarios: found several inputs, expected one trace")
            };
            return trace::run_scenarios(input, file, &self.network, &asked, &self.trace);
        }
        let networks: Vec<Network> = load_all(&self.network, &overrides)?
            .into_iter()
            .map(LoadedNetwork::announced)
            .collect();
        if let [_, _, ..] = self.inputs[..] {
            let [network] = &networks[..] else {
                return Err(one_network(&networks));
            };
            if self.pattern.is_given() {
                bail!(
                    "found several inputs, expected one pattern for --plot, --strict and --seeds"
                );
            }
            if self.trace.noise.is_some() {
                bail!("--noise: found several traces, expected one");
            }
            return applications::run(&self.inputs, network, &asked, &self.trace);
        }
        let input = &self.inputs[0];
        if is_pattern(&first_file(input)?)? == Holding::Pattern {
            return self.predict_pattern(input, &networks, &asked);
        }
        if self.pattern.is_given() {
            bail!("found a trace, expected a pattern for --plot, --strict and --seeds");
        }
        let combinations =
            networks.len().max(1) * asked.models.len().max(1) * self.trace.mapping.len().max(1);
        if combinations > 1 {
            return comparison::of_trace(input, &networks, &asked, &self.trace);
        }
        trace::run(input, networks.first(), &asked, &self.trace)
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

    fn models(&self) -> Result<Vec<Contention>> {
        self.model
            .iter()
            .map(|name| Contention::named(name).with_context(|| format!("--model {name}")))
            .collect()
    }

    fn predict_pattern(&self, input: &Path, networks: &[Network], asked: &Asked) -> Result<()> {
        let (name, content) = read_pattern(input)?;
        let steps = Steps::read(&name, &content)?;
        if self.trace.is_given() {
            bail!(
                "found a pattern, expected a trace for --mapping, --rendezvous-from, --collectives, --goal-params and files to write"
            );
        }
        let Some(first) = networks.first() else {
            return Err(flowcast::Error::NoNetwork.into());
        };
        tell_rate_kind(
            &asked.fields,
            self.model
                .first()
                .map_or(Model::of(first).name(), String::as_str),
        );
        let mut models = Vec::new();
        for (name, model) in self.model.iter().zip(&asked.models) {
            let Some(model) = model.model() else {
                bail!("--model {name}: found a pattern, expected a trace");
            };
            models.push(Some(model));
        }
        if models.is_empty() {
            models.push(None);
        }
        let options = |model| PatternOptions {
            model,
            is_strict: self.pattern.strict,
            seeds: self.pattern.seeds,
        };
        match (networks, &models[..]) {
            ([network], [model]) => {
                pattern::run(&steps, network, (&self.pattern, &options(*model)), asked)
            }
            _ if self.pattern.plot.is_some() || asked.explain => {
                bail!("--plot, --explain: found several networks or models, expected one")
            }
            _ => {
                let options: Vec<PatternOptions> = models.into_iter().map(options).collect();
                comparison::of_pattern(&steps, networks, &options, asked)
            }
        }
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

fn one_network(networks: &[Network]) -> anyhow::Error {
    match networks.len() {
        0 => flowcast::Error::NoNetwork.into(),
        found => {
            anyhow::anyhow!("--network: found {found} of them, expected one beside several traces")
        }
    }
}

fn input_help() -> String {
    format!(
        "Pattern of concurrent communications, or a trace. {}. Several traces run on the machine at once",
        trace_help()
    )
}
