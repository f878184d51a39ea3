//! `flowcast validate pattern`: patterns carried for real in a lab, and each predicted with each model.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Args;
use flowcast::model::network::Network;
use flowcast::model::sharing::model::Model;
use flowcast::report::validation::{ModelErrors, Validation};
use flowcast::stats::interval::StoppingRule;
use flowcast_lab::{Lab, LabSpec, Level, PatternOptions, network_of, run_pattern};

use super::journal::{self, Finished, Header, Journal};
use super::patterns::{Draw, Named, Set};
use super::results::{self, Predictors};
use super::tolerance::Tolerance;
use crate::commands::lab::{explained, load, self_tested};
use crate::exit::Finding;
use crate::network_args;
use crate::output::println_out;
use crate::provenance;

/// Carry patterns in a lab and compare every flow's time with what each model predicts
///
/// Set A: thirty flows of a chain of nodes in random directions, one starting after the other. Set B: random flows over
/// two racks, nine configurations. Or pattern files. Each finished pattern is kept in REPORT.journal at once, and
/// --resume goes on from there. The network comes from the lab's rates and windows, or from a network file fitted to
/// other measurements; nothing is fitted here.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  flowcast validate pattern --set A --instances 10 -o chain.html\n  \
                        flowcast validate pattern --set B --instances 40 --models packet,closed-loop -o racks.html\n  \
                        flowcast validate pattern --set mine.pattern --lab asymmetric --tolerance packet=2%,10% -o mine.html\n  \
                        flowcast validate pattern --no-run -o chain.html")]
pub struct ValidatePattern {
    /// A, B, or pattern files (repeatable)
    #[arg(long = "set", value_name = "A|B|FILE", num_args = 1.., default_value = "A")]
    sets: Vec<String>,
    /// The page; its figures go beside it with the ending .json
    #[arg(short, long, value_name = "REPORT.html")]
    output: PathBuf,
    /// Built-in profile or lab file [default: 31 nodes at 20 Mbit/s for A, two racks of 5 at 50 Mbit/s for B, windows of
    /// 32 KiB]
    #[arg(long, value_name = "PROFILE|FILE")]
    lab: Option<String>,
    /// Replace a field of the lab, such as tcp.window=128KiB (repeatable)
    #[arg(long, value_name = "KEY=VALUE")]
    lab_set: Vec<String>,
    /// Patterns of set A, or of each configuration of set B
    #[arg(long, default_value_t = 10, value_name = "COUNT")]
    instances: u32,
    /// Seed of the first pattern
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Flows of set A
    #[arg(long, default_value_t = 30, value_name = "COUNT")]
    flows: u32,
    /// Models, separated by commas
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "MODEL",
        default_value = "independent,fair,degree-fair,flow-cuts,asymmetric,alpha-fair,closed-loop,packet"
    )]
    models: Vec<String>,
    /// Network for the fluid models: a name or a file fitted to other measurements [default: that of the lab's rates]
    #[arg(short, long, value_name = "NET")]
    network: Option<String>,
    /// Network for `packet`, with wire rates [default: that of the lab's rates]
    #[arg(long, value_name = "NET")]
    packet_network: Option<String>,
    /// Most that a model may be off: mean absolute error and worst flow (repeatable); exceeding it ends with code 1
    #[arg(long, value_name = "MODEL=MEAN%[,WORST%]")]
    tolerance: Vec<String>,
    /// Repetitions that are not counted
    #[arg(long, default_value_t = 2, value_name = "COUNT")]
    warm_ups: usize,
    /// Fewest and most repetitions
    #[arg(long, num_args = 2, value_names = ["MIN", "MAX"], default_values_t = [3, 10])]
    repetitions: Vec<usize>,
    /// A repetition more until half the 95 % interval of each flow's mean is at most this share of it
    #[arg(long, default_value_t = 0.025, value_name = "SHARE")]
    precision: f64,
    /// Go on with the patterns of REPORT.journal
    #[arg(long)]
    resume: bool,
    /// Run nothing: predict the patterns of REPORT.journal again
    #[arg(long, conflicts_with = "resume")]
    no_run: bool,
    /// Run no new pattern after this many seconds; what is finished is reported
    #[arg(long, value_name = "SECONDS")]
    max_time: Option<f64>,
    /// Do not check that the lab delivers its rates
    #[arg(long)]
    no_self_test: bool,
    /// Machine-readable output
    #[arg(long)]
    json: bool,
}

impl ValidatePattern {
    /// Carries what is missing, predicts, reports.
    pub fn run(self) -> Result<()> {
        if self.output.extension().is_none_or(|ending| ending != "html") {
            bail!("-o: found {}, expected a file that ends in .html", self.output.display());
        }
        let tolerances = self.tolerance.iter().map(|text| Tolerance::parse(text)).collect::<Result<Vec<_>>>()?;
        let models = self.models.iter().map(|name| Ok(Model::named(name)?)).collect::<Result<Vec<_>>>()?;
        let set = Set::parse(&self.sets)?;
        let (spec, finished) = if self.no_run { self.known()? } else { self.carried(&set)? };
        let predictors = self.predictors(&models, &spec)?;
        let validation = Validation {
            title: set.title().to_owned(),
            models: models.iter().map(|model| model.name().to_owned()).collect(),
            cases: results::cases(&finished, &spec, &predictors)?,
            provenance: self.provenance(&spec, &predictors),
        };
        let errors = validation.errors()?;
        let document = results::write(&self.output, &validation, &errors, &finished)?;
        if self.json {
            println_out!("{document}");
        } else {
            results::print(&validation, &errors);
        }
        judge(&tolerances, &models, &errors)
    }

    fn known(&self) -> Result<(LabSpec, Vec<Finished>)> {
        let (header, finished, _) = journal::read(&self.journal_path())?;
        Ok((header.lab, finished))
    }

    /// The patterns of this run that are finished, those of an earlier run among them.
    fn carried(&self, set: &Set) -> Result<(LabSpec, Vec<Finished>)> {
        let spec = self.spec(set)?;
        let draw = Draw { instances: self.instances, seed: self.seed, flows: self.flows };
        let wanted = set.patterns(draw, &spec)?;
        let header = Header::of(&spec);
        let (mut journal, mut known) = if self.resume {
            Journal::resume(&self.journal_path(), &header)?
        } else {
            (Journal::start(&self.journal_path(), &header)?, Vec::new())
        };
        let missing: Vec<&Named> = wanted.iter().filter(|named| !known.iter().any(|known| known.is(named))).collect();
        if !missing.is_empty() {
            let new = self.carry(&spec, &missing, &mut journal)?;
            known.extend(new);
        }
        let finished = wanted.iter().filter_map(|named| known.iter().find(|known| known.is(named)).cloned());
        Ok((spec, finished.collect()))
    }

    fn carry(&self, spec: &LabSpec, missing: &[&Named], journal: &mut Journal) -> Result<Vec<Finished>> {
        let lab = Lab::up(spec).map_err(explained)?;
        if !self.no_self_test {
            self_tested(&lab)?;
        }
        let options = self.options()?;
        let began = Instant::now();
        let mut finished = Vec::new();
        for named in missing {
            if self.max_time.is_some_and(|most| began.elapsed().as_secs_f64() > most) {
                eprintln!("flowcast: {} patterns are left; --resume runs them", missing.len() - finished.len());
                break;
            }
            let start = Instant::now();
            let run = run_pattern(&lab, &named.pattern.flows, &options).map_err(explained)?;
            let one = Finished::new(named, &run);
            journal.append(&one)?;
            finished.push(one);
            eprintln!(
                "flowcast: {} of {}: {}: {} flows, {} repetitions{}, {:.1} s",
                finished.len(),
                missing.len(),
                named.name,
                named.pattern.flows.len(),
                run.repetitions.len(),
                if run.is_precise { "" } else { " (not as precise as asked)" },
                start.elapsed().as_secs_f64()
            );
        }
        Ok(finished)
    }

    fn spec(&self, set: &Set) -> Result<LabSpec> {
        let Some(lab) = &self.lab else {
            let (name, usual) = set.usual_lab();
            let usual = usual.iter().map(|(key, value)| format!("{key}={value}"));
            return load(name, &usual.chain(self.lab_set.iter().cloned()).collect::<Vec<_>>());
        };
        load(lab, &self.lab_set)
    }

    fn options(&self) -> Result<PatternOptions> {
        let (fewest, most) = (self.repetitions[0], self.repetitions[1]);
        if fewest == 0 || most < fewest {
            bail!("--repetitions: found {fewest} {most}, expected two numbers above 0, the second not below the first");
        }
        let rule = StoppingRule {
            relative_half_width: self.precision,
            min_repetitions: fewest,
            max_repetitions: most,
            ..StoppingRule::default()
        };
        let patience = Duration::from_secs(60);
        Ok(PatternOptions { warm_ups: self.warm_ups, rule, patience, ..PatternOptions::default() })
    }

    fn predictors(&self, models: &[Model], spec: &LabSpec) -> Result<Predictors> {
        let network = |model: &Model| -> Result<Network> {
            let (given, level) = if *model == Model::Packet {
                (&self.packet_network, Level::Wire)
            } else {
                (&self.network, Level::Goodput)
            };
            Ok(match given {
                Some(name) => network_args::load(name, &[])?.announced(),
                None => network_of(spec, level)?,
            })
        };
        models.iter().map(|model| Ok((*model, network(model)?))).collect()
    }

    fn provenance(&self, spec: &LabSpec, predictors: &Predictors) -> std::collections::BTreeMap<String, String> {
        let mut all = provenance::of_this_run();
        all.insert("lab".into(), spec.to_toml());
        all.insert("seed".into(), self.seed.to_string());
        for (model, network) in predictors {
            let name = if *model == Model::Packet { "network.packet" } else { "network" };
            all.insert(name.into(), network.to_toml());
        }
        all
    }

    fn journal_path(&self) -> PathBuf {
        let mut name = self.output.as_os_str().to_owned();
        name.push(".journal");
        Path::new(&name).to_owned()
    }
}

fn judge(tolerances: &[Tolerance], models: &[Model], errors: &[ModelErrors]) -> Result<()> {
    let mut exceeded = Vec::new();
    for tolerance in tolerances {
        let at = models.iter().position(|model| *model == tolerance.model);
        let at = at.with_context(|| format!("--tolerance {}: expected a model of --models", tolerance.model.name()))?;
        exceeded.extend(tolerance.exceeded_by(&errors[at]));
    }
    if exceeded.is_empty() { Ok(()) } else { Err(Finding(exceeded.join("; ")).into()) }
}
