//! `flowcast measure conflicts`: measures the elementary conflicts of a network.

mod summary;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    time::Instant,
};

use anyhow::{Result, bail, ensure};
use clap::Args;
use flowcast::{
    calibrate::{
        conflict_samples::{ConflictSamples, MeasuredConflict, csv_header, push_rows},
        conflicts::PROCESSORS,
    },
    model::cluster::{
        conflicts::{Conflict, ConflictKind, ConflictPlan},
        racks::Racks,
    },
    units::{Bytes, Node, Time},
};
use flowcast_measure::lab::{Lab, LabSpec, PatternOptions, network_of};

use self::summary::document;
use crate::{
    carrying::{Medium, WhereArgs},
    commands::{
        doctor,
        lab::{explained, self_tested},
        samples_file::SamplesFile,
        validate::racks_of,
    },
};
use flowcast_terminal::{
    exit::Finding,
    files::{Output, declare},
    growing::GrowingFile,
    output::Format,
    repeating::{LimitArgs, Over, RepetitionArgs, RunProgress},
    shares::count,
};

/// Measure how concurrent messages slow each other down
///
/// Measures the elementary conflicts between the nodes of a lab or the hosts of a launcher, over TCP or by MPI, and random
/// patterns, which no fit uses. `flowcast fit` turns the file into a network and reports the sharing model that explains it
/// best. Finished conflicts are kept in FILE.csv.partial until all are finished.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  flowcast measure conflicts --lab asymmetric -o conflicts.csv\n  \
                        flowcast measure conflicts --lab asymmetric --over mpi -o conflicts.csv\n  \
                        flowcast measure conflicts --launcher 'mpirun -np 8 --hostfile hosts' --racks 2 -o conflicts.csv\n  \
                        flowcast measure conflicts --launcher 'srun -n 8' --over tcp -o conflicts.csv\n  \
                        flowcast fit conflicts.csv -o network.toml"
)]
pub(crate) struct MeasureConflicts {
    /// Output file of the durations
    #[arg(short, long, value_name = "FILE.csv")]
    output: PathBuf,
    #[command(flatten)]
    place: WhereArgs,
    /// With --launcher: number of racks, to which the hosts are assigned in blocks; at most 65536
    #[arg(long, default_value_t = 1, value_name = "COUNT", requires = "launcher", value_parser = count::<u32>(..=65_536))]
    racks: u32,
    /// Size of each message; use at least 30 windows, so that the start of a message does not matter
    #[arg(long, default_value = "4MB", value_name = "SIZE")]
    size: Bytes,
    /// Approximate window of a flow, used as the size of short conflicts; sizes of their random patterns range from 1 kB to
    /// four times this; 0B disables them
    #[arg(long, default_value = "128KiB", value_name = "SIZE")]
    window: Bytes,
    /// Largest number of flows in one direction of a node; at most 1000
    #[arg(long, default_value_t = 4, value_name = "COUNT", value_parser = count::<u32>(..=1_000))]
    flows: u32,
    /// Kinds of conflicts to measure, separated by commas; single flows and the random patterns of --holdout are always
    /// measured
    #[arg(long, value_name = "KINDS", value_delimiter = ',', value_parser = kind)]
    only: Vec<ConflictKind>,
    /// Number of random patterns for validation; at most 100000
    #[arg(long, default_value_t = 6, value_name = "COUNT", value_parser = count::<u32>(..=100_000))]
    holdout: u32,
    /// Seed of the first random pattern
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    repeating: RepetitionArgs,
    /// Continue an interrupted measurement from FILE.csv.partial
    #[arg(long)]
    resume: bool,
    #[command(flatten)]
    going: LimitArgs,
}

fn kind(text: &str) -> Result<ConflictKind, String> {
    ConflictKind::from_name(text)
        .ok_or_else(|| format!("expected one of {}", ConflictKind::names()))
}

impl MeasureConflicts {
    /// Measures the missing conflicts and writes the file.
    pub(crate) fn run(self) -> Result<()> {
        let options = self.repeating.options()?;
        declare(
            [Path::new(&self.place.lab)],
            [Output::new("-o", &self.output)],
        )?;
        ensure!(
            self.size != Bytes(0) && self.flows != 0,
            "--size, --flows: found 0, expected a number above 0"
        );
        match &self.place.launcher {
            Some(words) => self.with_launcher(words, &options),
            None => self.in_lab(&options),
        }
    }

    fn in_lab(&self, options: &PatternOptions) -> Result<()> {
        let spec = self.place.spec()?;
        let plan = self.plan(spec.nodes().collect(), racks_of(&spec))?;
        let mut provenance = self.provenance(&format!(
            "{} between nodes of the lab {}",
            self.name(),
            spec.name
        ));
        provenance.insert("lab".into(), serde_json::to_string(&spec)?);
        provenance.insert(
            PROCESSORS.into(),
            network_of(&spec).machine.processors.to_string(),
        );
        let mut run = self.open(plan, provenance)?;
        if !run.missing().is_empty() {
            self.carry_in_lab(&spec, &mut run, options)?;
        }
        run.deliver(self.going.format)
    }

    fn carry_in_lab(&self, spec: &LabSpec, run: &mut Run, options: &PatternOptions) -> Result<()> {
        let lab = Lab::up(spec).map_err(explained)?;
        if !self.going.no_self_test {
            self_tested(&lab)?;
        }
        run.carry(
            &mut Medium::in_lab(&lab, self.place.over())?,
            options,
            self.going.time_limit,
        )
    }

    fn with_launcher(&self, words: &str, options: &PatternOptions) -> Result<()> {
        let (mut means, hosts) = self.place.between_hosts(words)?;
        let (nodes, racks) = (hosts.len() as u32, self.racks.max(1));
        let mut places = Racks::default();
        for node in (0..nodes).filter(|_| racks > 1) {
            let rack = node * racks / nodes;
            places.place(Node(node), Node(node), &rack.to_string())?;
        }
        let plan = self.plan((0..nodes).map(Node).collect(), places)?;
        let mut provenance = self.provenance(&format!("{}, {}", self.name(), words));
        provenance.insert("hosts".into(), hosts.join(" "));
        provenance.insert("racks".into(), racks.to_string());
        let mut run = self.open(plan, provenance)?;
        run.carry(&mut means, options, self.going.time_limit)?;
        run.deliver(self.going.format)
    }

    fn name(&self) -> &'static str {
        if self.place.over() == Over::Mpi {
            "mpi"
        } else {
            "tcp"
        }
    }

    fn plan(&self, nodes: Vec<Node>, racks: Racks) -> Result<ConflictPlan> {
        if nodes.len() < 2 {
            let several = if self.place.launcher.is_some() {
                "hosts, or --node-per-rank"
            } else {
                "nodes"
            };
            bail!(
                "found {} node, expected at least two {several}",
                nodes.len()
            );
        }
        Ok(ConflictPlan {
            nodes,
            racks,
            size: self.size,
            short: self.window,
            most: self.flows,
        })
    }

    fn provenance(&self, path: &str) -> BTreeMap<String, String> {
        let mut all = doctor::provenance_of_measurement();
        all.insert("path".into(), path.to_owned());
        all.insert("seed".into(), self.seed.to_string());
        all.insert("repetitions".into(), self.repeating.describe());
        all
    }

    fn open(&self, plan: ConflictPlan, provenance: BTreeMap<String, String>) -> Result<Run> {
        let conflicts = plan
            .conflicts()
            .into_iter()
            .filter(|conflict| self.chooses(conflict));
        let random = plan.random_patterns(self.holdout, self.seed).into_iter();
        let short = plan
            .short_patterns(self.holdout, self.seed)
            .into_iter()
            .filter(|conflict| self.chooses(conflict));
        let wanted: Vec<Conflict> = conflicts.chain(random).chain(short).collect();
        let file = SamplesFile {
            target: &self.output,
            resume: self.resume,
            head: csv_header(&provenance, &plan.racks),
            same: &["path", "lab", "racks"],
        };
        let (file, known) = file.open(ConflictSamples::from_csv)?;
        let known = known.measured;
        if let Some(foreign) = known.iter().find(|known| !wanted.contains(&known.conflict)) {
            bail!(
                "--resume: found conflict `{}`, which is not in the plan of this measurement; expected the same --size, \
                 --flows, --only, --holdout and --seed as before",
                foreign.conflict.name
            );
        }
        Ok(Run {
            wanted,
            racks: plan.racks,
            provenance,
            file,
            known,
        })
    }

    fn chooses(&self, conflict: &Conflict) -> bool {
        conflict.kind == ConflictKind::Alone
            || self.only.is_empty()
            || self.only.contains(&conflict.kind)
    }
}

/// A measurement in progress.
struct Run {
    wanted: Vec<Conflict>,
    racks: Racks,
    provenance: BTreeMap<String, String>,
    file: GrowingFile,
    known: Vec<MeasuredConflict>,
}

impl Run {
    fn missing(&self) -> Vec<Conflict> {
        let known: BTreeSet<&str> = self
            .known
            .iter()
            .map(|known| known.conflict.name.as_str())
            .collect();
        self.wanted
            .iter()
            .filter(|conflict| !known.contains(conflict.name.as_str()))
            .cloned()
            .collect()
    }

    fn carry(
        &mut self,
        means: &mut Medium<'_>,
        options: &PatternOptions,
        most: Option<Time>,
    ) -> Result<()> {
        if let Some(version) = means.mpi_version() {
            self.provenance.insert("mpi".into(), version.to_owned());
        }
        let missing = self.missing();
        let mut carrying = RunProgress::with_steps(missing.len());
        for (at, conflict) in missing.iter().enumerate() {
            if most.is_some_and(|most| carrying.seconds() > most.as_seconds()) {
                let (left, path) = (missing.len() - at, self.file.path().display());
                bail!(Finding(format!(
                    "{left} conflicts remain; --resume continues from {path}"
                )));
            }
            let start = Instant::now();
            let run = means.run(std::slice::from_ref(&conflict.flows), options)?;
            let durations = (0..conflict.flows.len())
                .map(|flow| run.durations_of(flow))
                .collect();
            let measured = MeasuredConflict {
                conflict: conflict.clone(),
                durations,
            };
            let mut rows = String::new();
            push_rows(&mut rows, &measured, &self.racks);
            self.file.append(&rows)?;
            self.known.push(measured);
            carrying.report(&conflict.name, &run, start);
        }
        Ok(())
    }

    fn deliver(self, format: Format) -> Result<()> {
        let mut measured = self.known;
        measured.sort_by_key(|measured: &MeasuredConflict| {
            self.wanted
                .iter()
                .position(|conflict| *conflict == measured.conflict)
        });
        let samples = ConflictSamples {
            provenance: self.provenance,
            racks: self.racks,
            measured,
        };
        self.file.finish_text(&samples.to_csv())?;
        format.print(&document(&samples))
    }
}
