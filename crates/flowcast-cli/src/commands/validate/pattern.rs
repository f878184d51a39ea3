//! `flowcast validate pattern`: carries patterns in a lab, and predicts each of them with each model.

use std::{
    path::{Path, PathBuf},
    time::Instant,
};

use anyhow::{Context, Result, ensure};
use clap::Args;
use flowcast::{
    model::{network::Network, sharing::model::Model},
    report::{chart_page::Picture, validation::Validation},
    statements::{DISTURBED_BY, of_networks, of_runs},
};
use flowcast_measure::lab::{Lab, LabSpec, network_of};

use super::{
    accuracy::{self, AccuracyArgs, MARKED},
    finished::{Finished, Header},
    journal::{self, Journal, path_beside},
    patterns::{Draw, Ends, NamedPattern, Set},
    results,
    tolerance::{Tolerance, judge},
};
use crate::{
    carrying::Medium,
    commands::{
        doctor,
        lab::{explained, load, self_tested},
    },
};
use flowcast_terminal::{
    answers::write_page,
    network_args, provenance,
    repeating::{LimitArgs, Over, RepetitionArgs, RunProgress},
    say,
    shard::ShardArgs,
    shares::count,
};

/// Carry patterns in a lab and compare each flow with its predictions
///
/// Set A has thirty flows of a chain of nodes in random directions, which start one after the other. Set B has random flows
/// over two racks in nine configurations. Pattern files may be given instead. Each finished pattern is stored in
/// FILE.html.journal immediately, and --resume continues from there. The network has the lab's rates and windows, or comes
/// from a network file fitted to other measurements. Nothing is fitted here.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  flowcast validate pattern A --count 10 --report chain.html\n  \
                        flowcast validate pattern B --count 40 --model packet,closed-loop --report racks.html\n  \
                        flowcast validate pattern mine.pattern --lab asymmetric --threshold packet=2%,10% --report mine.html\n  \
                        flowcast validate pattern A --over mpi --report chain-mpi.html\n  \
                        flowcast validate pattern broadcast.steps --mapping 2-per-node --report broadcast.html\n  \
                        flowcast validate pattern --no-run --accuracy lab.toml --report chain.html\n  \
                        flowcast validate pattern B --count 40 --shard 2/8 --report racks.2.html"
)]
pub(crate) struct ValidatePattern {
    /// A, B, or pattern files
    #[arg(value_name = "A|B|FILE", default_value = "A")]
    sets: Vec<String>,
    /// Page to write, with its figures beside it in a file with the ending .json
    #[arg(long, value_name = "FILE.html")]
    report: PathBuf,
    #[arg(long, value_name = "PROFILE|FILE", help = lab_help())]
    lab: Option<String>,
    /// Replace a field of the lab, such as tcp.window=128KiB (repeatable)
    #[arg(long, value_name = "KEY=VALUE")]
    lab_set: Vec<String>,
    /// Number of patterns of set A, or of each configuration of set B; at most 100000
    #[arg(long, default_value_t = 10, value_name = "COUNT", value_parser = count::<u32>(..=100_000))]
    count: u32,
    /// Seed of the first pattern
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Number of flows of set A; at most 100000
    #[arg(long, default_value_t = 30, value_name = "COUNT", value_parser = count::<u32>(..=100_000))]
    flows: u32,
    /// Models, separated by commas
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "MODEL",
        default_value = "independent,fair,degree-fair,flow-cuts,asymmetric,alpha-fair,closed-loop,packet"
    )]
    model: Vec<String>,
    /// Network: a name, or a file fitted to other measurements; if it has no wire rate, `packet` uses the lab's [default:
    /// a network with the lab's rates]
    #[arg(short, long, value_name = "NET")]
    network: Option<String>,
    /// Model packet: simulate each pattern N times with random starts and host times, each run with as many repetitions as
    /// the measurement. Medians are compared, and the share of measured repetitions inside the 90 % intervals is printed; at
    /// most 100000
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    replicates: Option<u32>,
    /// Largest accepted error of a model: mean absolute error and worst flow (repeatable); a larger error gives exit code 1
    #[arg(long, value_name = "MODEL=MEAN%[,WORST%]", value_parser = Tolerance::parse)]
    threshold: Vec<Tolerance>,
    #[command(flatten)]
    accuracy: AccuracyArgs,
    #[command(flatten)]
    repeating: RepetitionArgs,
    /// Transport of the messages
    #[arg(long, value_enum, default_value_t = Over::Tcp)]
    over: Over,
    /// Mapping of pattern files between ranks: a rule (2-per-node) or a file that puts the ranks on nodes
    #[arg(long, value_name = "MAP")]
    mapping: Option<String>,
    /// Continue with the patterns of FILE.html.journal
    #[arg(long)]
    resume: bool,
    /// Run nothing, but predict the patterns of FILE.html.journal again
    #[arg(long, conflicts_with = "resume")]
    no_run: bool,
    #[command(flatten)]
    sharding: ShardArgs,
    #[command(flatten)]
    going: LimitArgs,
}

fn lab_help() -> String {
    let [chain, racks] = [Set::Chain, Set::TwoRacks].map(|set| {
        let (profile, fields) = set.usual_lab();
        format!("{profile} with {}", fields.join(" "))
    });
    format!("Built-in profile or lab file [default: {chain} for A, {racks} for B]")
}

impl ValidatePattern {
    /// Carries the missing patterns, predicts them and reports the errors.
    pub(crate) fn run(mut self) -> Result<()> {
        if let Some(shard) = self.sharding.shard {
            self.report = shard.file(&self.report);
        }
        let inputs = [&self.network, &self.mapping]
            .into_iter()
            .flatten()
            .chain(&self.sets)
            .chain(&self.lab)
            .map(Path::new);
        journal::declare_page(inputs, &self.report)?;
        self.accuracy.check()?;
        let models = self
            .model
            .iter()
            .map(|name| Ok(Model::named(name)?))
            .collect::<Result<Vec<_>>>()?;
        ensure!(
            self.replicates.is_none() || models.contains(&Model::Packet),
            "--replicates: found the models {}, expected packet among them",
            self.model.join(", ")
        );
        let set = Set::parse(&self.sets)?;
        let (header, finished) = if self.no_run {
            self.known()?
        } else {
            self.carried(&set)?
        };
        let spec = &header.lab;
        let given = self.given(spec)?;
        let network = with_wire(&given, &network_of(spec));
        let validation = Validation {
            title: set.title().to_owned(),
            models: models.iter().map(|model| model.name().to_owned()).collect(),
            cases: results::cases(&finished, spec, &models, &network, self.replicates)?,
            provenance: self.provenance(&header, &network, &finished),
        };
        let flows = validation.flows()?;
        let document = validation
            .document(&flows)?
            .noted(of_runs(&validation.provenance))
            .noted(of_networks([&given]));
        let provenance = &validation.provenance;
        write_page(&self.report, &document, Picture::Flows, provenance)?;
        self.going.format.print(&document)?;
        self.accuracy.keep(
            &given,
            &validation.provenance,
            accuracy::of_patterns(&validation, &flows, &network, header.over())?,
        )?;
        judge(&self.threshold, |tolerance| {
            let model = Model::named(&tolerance.name)?;
            let at = models.iter().position(|known| *known == model);
            let at = at.with_context(|| {
                format!(
                    "--threshold: found the model {}, expected a model of --model",
                    tolerance.name
                )
            })?;
            let found = [
                ("mean absolute error", flows[at].mean_absolute()),
                ("worst flow", flows[at].worst().error().abs()),
            ];
            Ok(tolerance.exceeded_by(found))
        })
    }

    fn known(&self) -> Result<(Header, Vec<Finished>)> {
        let content = journal::read::<Header, _>(&path_beside(&self.report))?;
        Ok((content.header, content.lines))
    }

    /// Completed patterns of this run, including those of an earlier run.
    fn carried(&self, set: &Set) -> Result<(Header, Vec<Finished>)> {
        let spec = self.spec(set)?;
        let draw = Draw {
            instances: self.count,
            seed: self.seed,
            flows: self.flows,
        };
        let ends = self.mapping.as_deref().map_or(Ends::Nodes, Ends::Ranks);
        let mut wanted = set.patterns(draw, ends, &spec)?;
        let mut header = Header::new(&spec, self.over);
        if let Some(shard) = self.sharding.shard {
            let all = wanted.len();
            ensure!(
                shard.of <= all,
                "--shard: found {} shards, expected at most {all}, the number of patterns",
                shard.of
            );
            header.shard = format!("{shard} of {all}");
            wanted = wanted.drain(shard.cases(all)).collect();
        }
        let path = path_beside(&self.report);
        if !self.resume {
            Journal::start(&path, &header)?;
        }
        let (mut journal, mut known) = Journal::resume::<_, Finished>(&path, &header)?;
        let missing: Vec<&NamedPattern> = wanted
            .iter()
            .filter(|named| !known.iter().any(|known| known.is(named)))
            .collect();
        if !missing.is_empty() {
            let new = self.carry(&spec, &missing, &mut journal)?;
            known.extend(new);
        }
        let finished = wanted
            .iter()
            .filter_map(|named| known.iter().find(|known| known.is(named)).cloned());
        Ok((header, finished.collect()))
    }

    fn carry(
        &self,
        spec: &LabSpec,
        missing: &[&NamedPattern],
        journal: &mut Journal,
    ) -> Result<Vec<Finished>> {
        let lab = Lab::up(spec).map_err(explained)?;
        if !self.going.no_self_test {
            self_tested(&lab)?;
        }
        let options = self.repeating.options()?;
        let disturbed = doctor::warn_of_other_programs(MARKED);
        let mut means = Medium::in_lab(&lab, self.over)?;
        let mut carrying = RunProgress::with_steps(missing.len());
        let mut finished = Vec::new();
        for named in missing {
            if self
                .going
                .time_limit
                .is_some_and(|most| carrying.seconds() > most.as_seconds())
            {
                say!(
                    "flowcast: {} patterns remain; --resume runs them",
                    missing.len() - finished.len()
                );
                break;
            }
            let start = Instant::now();
            let run = means.run(&named.steps(), &options)?;
            let one = Finished {
                disturbed_by: disturbed.clone(),
                ..Finished::new(named, &run, options.warm_ups)
            };
            journal.append(&one)?;
            finished.push(one);
            carrying.report(&named.name, &run, start);
        }
        Ok(finished)
    }

    fn spec(&self, set: &Set) -> Result<LabSpec> {
        let Some(lab) = &self.lab else {
            let (name, usual) = set.usual_lab();
            let usual: Vec<String> = usual.iter().map(ToString::to_string).collect();
            return load(name, &[usual, self.lab_set.clone()].concat());
        };
        load(lab, &self.lab_set)
    }

    /// Network of the command line; otherwise the lab's network.
    fn given(&self, spec: &LabSpec) -> Result<Network> {
        match &self.network {
            None => Ok(network_of(spec)),
            Some(name) => network_args::load(name, &[]),
        }
    }

    fn provenance(
        &self,
        header: &Header,
        network: &Network,
        finished: &[Finished],
    ) -> std::collections::BTreeMap<String, String> {
        let mut all = provenance::of_this_run();
        all.insert("lab".into(), header.lab.to_toml());
        all.insert("over".into(), header.over().to_owned());
        all.insert("seed".into(), self.seed.to_string());
        if let Some(seeds) = self.replicates {
            all.insert("seeds".into(), format!("1 to {seeds}, of the packet model"));
        }
        all.insert("network".into(), network.to_toml());
        let disturbed = finished.iter().find_map(|one| one.disturbed_by.clone());
        all.extend(disturbed.map(|found| (DISTURBED_BY.to_owned(), found)));
        all
    }
}

/// The network with the lab's wire rates and latency, if it has no wire rate.
fn with_wire(given: &Network, lab: &Network) -> Network {
    if given.nic.rate.given_wire().is_some() {
        return given.clone();
    }
    let mut network = given.clone().with_wire_of(lab);
    network.sharing.packet.latency = Some(lab.nic.latency);
    network
}
