//! `--accuracy NET.toml`: stores the errors of a validation in the accuracy record of the network file.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use flowcast::{
    model::{
        accuracy::{Accuracy, CaseKind, record},
        network::{FitQuality, Network},
        network_file::with_ledger,
        sharing::{model::Model, rates::transient_windows},
    },
    report::validation::{
        FlowPlace, Validation,
        app::{AppValidation, MeasuredQuantity, observations},
    },
    statements::DISTURBED_BY,
    statistics::observation::Observations,
};

use flowcast_terminal::{
    exit::Finding,
    files::{read_text, rewrite_text},
    provenance,
};

/// Consequence for runs on a busy machine.
pub(super) const MARKED: &str = "measurements are marked and not stored in an accuracy record";

/// File that stores errors.
#[derive(Debug, Clone, Args)]
pub(super) struct AccuracyArgs {
    /// Store the errors in the accuracy record of this network file, from which `predict` takes its intervals. It must
    /// contain the network of the predictions; a missing file is created with that network
    #[arg(long = "accuracy", value_name = "NET.toml")]
    file: Option<PathBuf>,
}

impl AccuracyArgs {
    /// Adds the entries to the file, if one is given. `network` is the network of the predictions, as it was read. Refuses
    /// measurements that were disturbed.
    pub(super) fn keep(
        &self,
        network: &Network,
        provenance: &BTreeMap<String, String>,
        entries: Vec<Accuracy>,
    ) -> Result<()> {
        let Some(path) = &self.file else {
            return Ok(());
        };
        if let Some(found) = provenance.get(DISTURBED_BY) {
            bail!(Finding(format!(
                "--accuracy: found runs on a busy machine ({found}), expected undisturbed runs; nothing was stored"
            )));
        }
        let text = if path.is_file() {
            read_text(path)?
        } else {
            network.to_toml()
        };
        let place = path.display().to_string();
        let mut known = Network::from_toml(&text, &[]).with_context(|| place.clone())?;
        ensure!(
            numbers(&known) == numbers(network),
            "--accuracy: found another network in {place}, expected the network of the predictions"
        );
        for entry in entries {
            record(&mut known.accuracy, entry)?;
        }
        rewrite_text(path, &with_ledger(&text, &known.accuracy).context(place)?)
    }

    /// Checks the name of the file before anything is measured.
    pub(super) fn check(&self) -> Result<()> {
        match self.file.as_deref().and_then(Path::extension) {
            Some(ending) if ending != "toml" => {
                bail!(
                    "--accuracy: found a file that ends in .{}, expected .toml",
                    ending.display()
                )
            }
            _ => Ok(()),
        }
    }
}

/// The network without the origin of its values.
fn numbers(network: &Network) -> Network {
    let mut network = network.clone();
    network.accuracy.clear();
    network.fit = FitQuality::default();
    network.intervals.clear();
    network.origins.clear();
    network.provenance.clear();
    Network {
        name: String::new(),
        title: String::new(),
        source: String::new(),
        ..network
    }
}

/// Accuracy of each model on the flows of all patterns, and on the patterns as a whole. `network` is the network of the
/// models, `over` the transport of the messages.
pub(super) fn of_patterns(
    validation: &Validation,
    flows: &[Observations<FlowPlace>],
    network: &Network,
    over: &str,
) -> Result<Vec<Accuracy>> {
    let on = format!("{}, over {over}", validation.title);
    let patterns = validation.patterns()?;
    let mut entries = Vec::new();
    for (place, model) in validation.models.iter().enumerate() {
        let transient = transient_windows(Model::named(model)?, network)?.is_some();
        let model = if transient {
            format!("{model}/transient")
        } else {
            model.clone()
        };
        let of_flows = flows[place].errors_by(|of| validation.cases[of.case].name.clone());
        let of_patterns = patterns[place].errors_by(|name| (*name).to_owned());
        for (kind, errors) in [
            (CaseKind::Flows, of_flows),
            (CaseKind::Patterns, of_patterns),
        ] {
            let entry = Accuracy::of_errors(&model, kind, &on, errors)?;
            entries.push(dated(entry));
        }
    }
    Ok(entries)
}

/// Accuracy of each predictor on a program as a whole, and on its regions. `name` is the program's name in the accuracy
/// record.
pub(super) fn of_program(validation: &AppValidation, name: &str) -> Result<Vec<Accuracy>> {
    let rows = validation.rows()?;
    let mut entries = Vec::new();
    for (place, predictor) in validation.predictors.iter().enumerate() {
        for (quantity, kind, on) in [
            (MeasuredQuantity::Total, CaseKind::Programs, "MPI programs"),
            (
                MeasuredQuantity::Region,
                CaseKind::Regions,
                "regions of MPI programs",
            ),
        ] {
            let Some(observed) = observations(&rows, quantity, place)? else {
                continue;
            };
            let errors = observed.errors_by(|row| match quantity {
                MeasuredQuantity::Total => name.to_owned(),
                _ => format!("{name}/{row}"),
            });
            let entry = Accuracy::of_errors(predictor, kind, on, errors)?;
            entries.push(dated(entry));
        }
    }
    Ok(entries)
}

/// Adds the machine and date of the measurement.
fn dated(entry: Accuracy) -> Accuracy {
    let run = provenance::of_this_run();
    let [host, kernel, date] =
        ["host", "kernel", "date"].map(|key| run.get(key).cloned().unwrap_or_default());
    Accuracy {
        machine: format!("{host}, {kernel}"),
        date,
        ..entry
    }
}
