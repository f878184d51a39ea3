//! `flowcast validate app`: runs a program, records it, and compares it with predictions.

mod chart;
mod document;
mod runs;

use std::{
    collections::BTreeMap,
    ffi::OsString,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use flowcast::{
    IntervalOptions, RecordingPrediction,
    formats::read::{Clock, SHARED_PROCESSORS, shared_processors},
    model::{machine::NodeGroup, network::Network, sharing::model::Model},
    report::{chart_page::Picture, validation::app::AppValidation},
    statements::DISTURBED_BY,
    trace::{
        recorded_times::{measured as times_of, worked},
        run_times::RunTimes,
    },
    units::Bytes,
};
use flowcast_measure::lab::{LabSpec, network_of};

use self::{
    document::{document, sharing},
    runs::MeasuredRuns,
};
use super::{
    accuracy::{self, AccuracyArgs},
    journal::{self, path_beside},
    tolerance::{Tolerance, judge},
};
use crate::{
    commands::lab::load,
    recording::{disturbed_by, open_recording},
};
use flowcast_terminal::{
    answers::write_page,
    network_args::{self, parse_overrides},
    predictors::{self, Predictor, Setting},
    provenance,
    repeating::LimitArgs,
    shares::{count, probability},
    trace_args::{Compute, parse_mapping},
};

pub(super) use chart::ValidateChart;

/// Run and record an MPI program and compare it with predictions
///
/// The program runs several times, here or in a lab, and is only timed: in total and by region (MPI_Pcontrol). One more run
/// is recorded, with the times of ranks and calls, and predicted with each model and each evaluation of collectives. The
/// output says how much longer it took. Computation takes its wall time, or its thread CPU time if ranks share processors,
/// as in a lab. Each finished run is stored in FILE.html.journal immediately.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  flowcast validate app --network fitted.toml --repetitions 6 --report cg.html -- mpirun -np 4 ./cg.S.x\n  \
                        flowcast validate app --lab asymmetric --lab-set cluster.nodes=4 --network fitted.toml --report cg.html -- mpirun -np 4 ./cg.S.x\n  \
                        flowcast validate app --no-run --network other.toml --model limits --report cg.html\n  \
                        flowcast validate chart cg.json lu.json -o chart.svg"
)]
pub(crate) struct ValidateApp {
    /// Page to write, with its figures beside it in a file with the ending .json, and the recording with the ending .rec
    #[arg(long, value_name = "FILE.html")]
    report: PathBuf,
    /// Run in a lab: name of a running lab, built-in profile or lab file
    #[arg(long, value_name = "NAME|PROFILE|FILE")]
    lab: Option<String>,
    /// Replace a field of the lab, such as nic.bandwidth=20Mbit/s (repeatable)
    #[arg(long, value_name = "KEY=VALUE", requires = "lab")]
    lab_set: Vec<String>,
    /// Network of the predictions: built-in name, network file or Dimemas configuration, not fitted to these runs; without a
    /// wire rate, `packet` uses the lab's [default: a network with the lab's rates]
    #[arg(short, long, value_name = "NET")]
    network: Option<String>,
    /// Replace a field of the network (repeatable)
    #[arg(long = "set", value_name = "KEY=VALUE")]
    overrides: Vec<String>,
    /// Models of concurrent messages, separated by commas: `limits` (Dimemas' links and buses) or a sharing model [default:
    /// what `predict` takes]
    #[arg(long, value_delimiter = ',', value_name = "MODEL")]
    model: Vec<String>,
    /// Evaluations of collectives, separated by commas, as for `predict`; each is combined with each model [default: what
    /// `predict` takes]
    #[arg(long, value_delimiter = ',', value_name = "HOW")]
    collectives: Vec<String>,
    /// Probability that the interval of a prediction contains the measured time
    #[arg(long, value_name = "PROBABILITY", default_value = "0.90", value_parser = probability)]
    level: f64,
    /// Mapping of ranks to nodes, as for `predict` [default: on the hosts of the recording]
    #[arg(long, value_name = "MAP")]
    mapping: Option<String>,
    /// Smallest message that waits for its receiver, such as 64KiB
    #[arg(long, value_name = "SIZE")]
    rendezvous_from: Option<Bytes>,
    /// Number of packet simulations with other random host times: the prediction is their median, and its range contains
    /// nine of ten totals; at most 10000
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    replicates: Option<u32>,
    /// Clock for computations [default: as for `predict`, thread CPU time where wall time includes other work]
    #[arg(long, value_enum)]
    compute: Option<Compute>,
    /// Factor for all computation
    #[arg(long, default_value_t = 1.0, value_name = "FACTOR")]
    compute_scale: f64,
    /// Number of timed runs of the program; at most 100000
    #[arg(long, default_value_t = 6, value_name = "COUNT", value_parser = count::<usize>(..=100_000))]
    repetitions: usize,
    /// Number of recorded runs, each of which is predicted; the median of the predictions counts; at most 100000
    #[arg(long, default_value_t = 1, value_name = "COUNT", value_parser = count::<usize>(..=100_000))]
    count: usize,
    /// Largest accepted error of a prediction's total, and of its worst region (repeatable); a larger error gives exit code
    /// 1
    #[arg(long, value_name = "MODEL/COLLECTIVES=TOTAL%[,REGION%]", value_parser = Tolerance::parse)]
    threshold: Vec<Tolerance>,
    #[command(flatten)]
    accuracy: AccuracyArgs,
    /// Continue with the runs of FILE.html.journal
    #[arg(long)]
    resume: bool,
    /// Run nothing, but predict the recording of FILE.html.journal again
    #[arg(long, conflicts_with_all = ["resume", "command", "lab"])]
    no_run: bool,
    /// Recorder library to load into the program instead of flowcast's own
    #[arg(long, value_name = "FILE.so")]
    recorder: Option<PathBuf>,
    #[command(flatten)]
    going: LimitArgs,
    /// Command to run: the launcher with its options, and the program with its own
    #[arg(
        last = true,
        value_name = "COMMAND",
        required_unless_present = "no_run"
    )]
    command: Vec<OsString>,
}

impl ValidateApp {
    /// Executes the missing runs, predicts them and reports the errors.
    pub(crate) fn run(self) -> Result<()> {
        let inputs = [&self.network, &self.mapping, &self.lab]
            .into_iter()
            .flatten()
            .map(Path::new);
        journal::declare_page(inputs, &self.report)?;
        self.accuracy.check()?;
        let mut predictors = predictors::combinations(&self.model, &self.collectives)?;
        self.check_counts()?;
        let spec = self.lab.as_deref().map(|lab| self.spec(lab)).transpose()?;
        // Runs that cannot be predicted are not started. The lab of a journal is only known after it has been read.
        if self.replicates.is_some()
            && !self.model.is_empty()
            && !self.model.iter().any(|model| model == Model::Packet.name())
        {
            bail!(
                "--replicates: found the models {}, expected packet among them",
                self.model.join(", ")
            );
        }
        let (measured, (given, network)) = if self.no_run {
            let measured = MeasuredRuns::read(&path_beside(&self.report))?;
            let networks = self.networks(measured.header.lab.as_ref(), &predictors)?;
            (measured, networks)
        } else {
            let networks = self.networks(spec.as_ref(), &predictors)?;
            (self.measured(&spec)?, networks)
        };
        let (validation, predicted) = self.validation(&measured, &mut predictors, &network)?;
        let fared = validation.fared()?;
        let document = document(&validation, &fared, &predicted, &network)?;
        let provenance = &validation.provenance;
        write_page(&self.report, &document, Picture::Program, provenance)?;
        self.going.format.print(&document)?;
        let name = journal::name_of(&self.report);
        self.accuracy.keep(
            &given,
            &validation.provenance,
            accuracy::of_program(&validation, &name)?,
        )?;
        let names = &validation.predictors;
        judge(&self.threshold, |tolerance| {
            let at = names.iter().position(|name| *name == tolerance.name);
            let at = at.with_context(|| {
                format!(
                    "--threshold: found `{}`, expected one of {}",
                    tolerance.name,
                    names.join(", ")
                )
            })?;
            let regions = fared[at].regions.as_ref();
            let worst = regions.map_or(0.0, |regions| regions.worst().error().abs());
            Ok(tolerance.exceeded_by([
                ("total error", fared[at].total.abs()),
                ("worst region", worst),
            ]))
        })
    }

    fn check_counts(&self) -> Result<()> {
        ensure!(
            self.repetitions != 0 && self.count != 0,
            "--repetitions, --count: found 0, expected at least 1"
        );
        ensure!(
            self.compute_scale.is_finite() && self.compute_scale > 0.0,
            "--compute-scale: found {}, expected a number above 0",
            self.compute_scale
        );
        Ok(())
    }

    fn spec(&self, lab: &str) -> Result<LabSpec> {
        match flowcast_measure::lab::Lab::open(lab) {
            Ok(lab) if self.lab_set.is_empty() => Ok(lab.spec().clone()),
            Ok(_) => {
                bail!("--lab-set: found fields for the lab `{lab}`, which is up, expected none")
            }
            Err(_) => load(lab, &self.lab_set),
        }
    }

    /// The given network, or a network with the lab's rates; and the network of the predictions. The latter has scaled
    /// computation and, if the given one has no wire rate, the wire rates of the lab.
    fn networks(
        &self,
        spec: Option<&LabSpec>,
        predictors: &[Predictor],
    ) -> Result<(Network, Network)> {
        let overrides = parse_overrides(&self.overrides)?;
        let given = match (&self.network, spec) {
            (Some(name), _) => network_args::load(name, &overrides)?,
            (None, Some(spec)) => network_of(spec).with_overrides(&overrides)?,
            (None, None) => bail!("found neither --network nor --lab, expected --network NET"),
        };
        let mut network = given.clone();
        if self.compute_scale != 1.0 {
            if network.machine.nodes.is_empty() {
                network.machine.nodes.push(NodeGroup {
                    count: 0,
                    ..NodeGroup::default()
                });
            }
            network
                .machine
                .nodes
                .iter_mut()
                .for_each(|group| group.speed /= self.compute_scale);
        }
        if network.nic.rate.given_wire().is_some() {
            return Ok((given, network));
        }
        match spec {
            Some(spec) => Ok((given, network.with_wire_of(&network_of(spec)))),
            None if predictors.iter().any(Predictor::counts_frames) => {
                bail!(
                    "--model packet: found a network without nic.wire_rate, expected one that has it, or --lab"
                )
            }
            None => Ok((given, network)),
        }
    }

    fn validation(
        &self,
        measured: &MeasuredRuns,
        predictors: &mut [Predictor],
        network: &Network,
    ) -> Result<(AppValidation, Vec<RecordingPrediction>)> {
        let recordings: Vec<_> = measured
            .recordings
            .iter()
            .map(|folder| open_recording(folder))
            .collect::<Result<_>>()?;
        let clock = match self.compute {
            Some(compute) => compute.into(),
            None => recordings
                .first()
                .map_or(Clock::Wall, |files| Clock::from_files(files)),
        };
        let setting = Setting {
            network,
            mapping: self.mapping.as_deref().map(parse_mapping).transpose()?,
            rendezvous_from: self.rendezvous_from,
            seeds: self.replicates,
            clock,
        };
        let first = recordings
            .first()
            .context("found no recorded run, expected one (--resume records it)")?;
        ensure!(
            !measured.runs.is_empty(),
            "found no timed run, expected one (--resume runs it)"
        );
        let name = journal::name_of(&self.report);
        let asked = IntervalOptions {
            level: self.level,
            held_out: Some(&name),
            ..IntervalOptions::default()
        };
        let predicted = predictors::settle(predictors, first, &setting, &asked)?;
        let recorded: Vec<RunTimes> = recordings.iter().map(|files| times_of(files)).collect();
        let processor_share = shared_processors(first, recorded[0].total);
        let mut provenance = self.provenance(measured, network, clock);
        if let Some(share) = processor_share.filter(|share| *share >= SHARED_PROCESSORS) {
            let place = provenance.entry(DISTURBED_BY.to_owned());
            place.or_insert_with(|| sharing(share));
        }
        let validation = AppValidation {
            title: measured.header.title(),
            predictors: predictors
                .iter()
                .map(|predictor| predictor.name.clone())
                .collect(),
            runs: measured.runs.clone(),
            recorded,
            predicted: predictors::predict(&recordings, predictors, &setting)?,
            worked: worked(first),
            processor_share,
            provenance,
        };
        Ok((validation, predicted))
    }

    fn provenance(
        &self,
        measured: &MeasuredRuns,
        network: &Network,
        clock: Clock,
    ) -> BTreeMap<String, String> {
        let mut all = provenance::of_this_run();
        all.insert("program".into(), measured.header.title());
        let disturbed = measured.disturbed_by.iter().cloned();
        let recorded = measured
            .recordings
            .iter()
            .filter_map(|folder| disturbed_by(folder));
        let found = disturbed.chain(recorded).next();
        all.extend(found.map(|found| (DISTURBED_BY.to_owned(), found)));
        if let Some(lab) = &measured.header.lab {
            all.insert("lab".into(), lab.to_toml());
        }
        all.insert("network".into(), network.to_toml());
        if let Some(seeds) = self.replicates {
            all.insert("seeds".into(), format!("1 to {seeds}, of the packet model"));
        }
        let time = if clock == Clock::ThreadCpu {
            "cpu"
        } else {
            "wall"
        };
        all.insert(
            "compute".into(),
            format!("{time} times {}", self.compute_scale),
        );
        all
    }
}
