//! `flowcast fit` for medians of calls: the time of MPI calls as a function of message size.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};
use clap::Args;
use flowcast::{
    fit::{
        calls::{
            CallFit, fit_calls,
            network::{CallNetworkOptions, to_network},
            table::{CallCases, CallName, CallTimes},
        },
        loggp::FitOptions,
    },
    model::{network::Network, quantity::Quantity},
    table::{self, Document, Value, figure, rows, shown},
    units::{SizeUnits, Time},
};

use super::{fit::inputs::FitInput, fit_conflicts::percent};
use flowcast_terminal::{
    files::{Batch, read_parsed},
    output::Format,
    say,
};

/// Level of the intervals of predicted medians.
const LEVEL: f64 = 0.9;
/// Default maximum number of lines for a call.
const PIECES: u8 = 8;

#[derive(Debug, Args)]
pub(super) struct CallArgs {
    /// Calls: rows to predict; -o FILE.csv contains them with predicted_ns,low_ns,high_ns (90 %) added
    #[arg(long, value_name = "FILE.csv")]
    pub predict: Option<PathBuf>,
    #[arg(
        long, value_name = "COUNT",
        help = format!("Maximum number of lines for a call, with fitted knees; at most 64 [default: {PIECES}]"),
        value_parser = clap::value_parser!(u8).range(1..=64)
    )]
    pub pieces: Option<u8>,
    /// Cluster to fit, if a file of calls has several
    #[arg(long, value_name = "NAME")]
    pub only: Option<String>,
}

/// Inputs, options and outputs of the fit.
pub(super) struct FitCalls<'a> {
    pub calls: &'a FitInput,
    pub args: &'a CallArgs,
    pub outputs: &'a [PathBuf],
    pub name: &'a dyn Fn(&Path) -> String,
    /// Network with further known values.
    pub known: Option<Network>,
    /// Options of the bootstrap.
    pub options: FitOptions,
    pub provenance: BTreeMap<String, String>,
    pub format: Format,
}

impl FitCalls<'_> {
    /// Fits, writes predictions and the network if requested, and prints the functions.
    pub(super) fn run(&self) -> Result<()> {
        let (predictions, network) = self.destinations()?;
        let fits = self.fits()?;
        let mut batch = Batch::new();
        if let (Some(cases), Some(to)) = (&self.args.predict, predictions) {
            batch.write_text(to, &predictions_of(cases, &fits)?)?;
        }
        let mut document = document(&fits);
        if let Some(to) = network {
            let network = self.network(&fits, to)?;
            batch.write_text(to, &network.to_toml())?;
            document = with_network(document, &network);
        }
        batch.commit()?;
        self.format.print(&document)
    }

    /// Output files of the predictions and of the network. With --predict, the network's file is the one that ends in .toml.
    fn destinations(&self) -> Result<(Option<&Path>, Option<&Path>)> {
        let (networks, predictions): (Vec<&PathBuf>, Vec<&PathBuf>) =
            self.outputs.iter().partition(|path: &&PathBuf| {
                self.args.predict.is_none()
                    || path.extension().is_some_and(|ending| ending == "toml")
            });
        ensure!(
            networks.len() <= 1 && predictions.len() <= 1,
            "-o: found {} files, expected one OUT.csv with --predict and one NET.toml",
            self.outputs.len()
        );
        ensure!(
            self.args.predict.is_none() || !predictions.is_empty(),
            "--predict: found no -o OUT.csv, expected a file for the predictions"
        );
        Ok((
            predictions.first().map(|path| path.as_path()),
            networks.first().map(|path| path.as_path()),
        ))
    }

    fn fits(&self) -> Result<BTreeMap<CallName, CallFit>> {
        let mut times = self.calls.parsed(CallTimes::from_csv)?;
        if let Some(cluster) = &self.args.only {
            times = times.of_cluster(cluster);
            ensure!(
                !times.calls.is_empty(),
                "--only: found no row of the cluster `{cluster}`, expected at least one"
            );
        }
        fit_calls(&times, self.pieces()).with_context(|| self.calls.place())
    }

    fn pieces(&self) -> usize {
        usize::from(self.args.pieces.unwrap_or(PIECES))
    }

    fn network(&self, fits: &BTreeMap<CallName, CallFit>, to: &Path) -> Result<Network> {
        let FitOptions {
            replicates,
            level,
            seed,
            ..
        } = self.options;
        let options = CallNetworkOptions {
            name: &(self.name)(to),
            known: self.known.as_ref(),
            pieces: self.pieces(),
            replicates,
            level,
            seed,
            provenance: self.provenance.clone(),
        };
        let network = to_network(fits, &options);
        network.with_context(|| format!("{} (--only NAME chooses one)", self.calls.place()))
    }
}

/// Rows of the cases with their predictions. Prints a note for each case that cannot be predicted.
fn predictions_of(path: &Path, fits: &BTreeMap<CallName, CallFit>) -> Result<String> {
    let cases = read_parsed(path, CallCases::from_csv)?;
    let predicted = cases
        .rows
        .iter()
        .map(|(line, name, size)| {
            let Some(fit) = fits.get(name) else {
                say!(
                    "flowcast: note: {}:{line}: not predicted: {name} was not fitted",
                    path.display()
                );
                return Ok(None);
            };
            Ok(Some(fit.predict(*size, LEVEL)?))
        })
        .collect::<Result<Vec<_>>>()?;
    if let Some(short) = predicted.iter().flatten().find(|time| time.level < LEVEL) {
        say!(
            "flowcast: note: too few sizes: some intervals contain only {} of the medians",
            percent(short.level)
        );
    }
    Ok(cases.with_predictions(&predicted))
}

fn document(fits: &BTreeMap<CallName, CallFit>) -> Document {
    let calls = rows(fits)
        .heading("Median errors at held-out sizes")
        .column("cluster", "cluster", |(name, _)| &name.cluster)
        .column("experiment", "experiment", |(name, _)| &name.experiment)
        .column("call", "call", |(name, _)| &name.call)
        .field("pieces", |(_, fit)| {
            rows(fit.curve.pieces())
                .field("from_B", |piece| piece.from)
                .field("fixed_ns", |piece| piece.line.intercept)
                .field("per_byte_ns", |piece| piece.line.slope)
        })
        .cell("pieces", |(_, fit)| fit.curve.pieces().len())
        .column("error", "error", |(_, fit)| {
            table::percent(fit.errors.pieces, 2)
        })
        .column("error_of_interpolation", "interpolated", |(_, fit)| {
            table::percent(fit.errors.neighbours, 2)
        })
        .column("error_of_one_line", "one line", |(_, fit)| {
            table::percent(fit.errors.one_line, 2)
        });
    let pieces = fits
        .iter()
        .flat_map(|(name, fit)| fit.curve.pieces().iter().map(move |piece| (name, piece)));
    let pieces = rows(pieces)
        .cell("cluster", |(name, _)| &name.cluster)
        .cell("experiment", |(name, _)| &name.experiment)
        .cell("call", |(name, _)| &name.call)
        .cell("from", |(_, piece)| {
            figure(format!("{:.0} B", piece.from.ceil()))
        })
        .cell("fixed", |(_, piece)| Time::from_nanos(piece.line.intercept))
        .cell("per byte", |(_, piece)| {
            figure(format!("{:.4} ns", piece.line.slope))
        });
    Document::new("call-fit")
        .shown(pieces)
        .table("calls", calls)
}

/// Adds the parameters of the written network to the document.
fn with_network(document: Document, network: &Network) -> Document {
    const FIELDS: [&str; 4] = [
        "nic.latency",
        "nic.gap_per_byte",
        "nic.overhead",
        "point_to_point.rendezvous_from",
    ];
    let fields = FIELDS.into_iter().filter_map(|field| {
        let (value, interval) = (network.quantity(field)?, network.intervals.get(field));
        let ends = interval.map(|interval| [interval.low, interval.high]);
        let units = Quantity::units(ends.into_iter().flatten().chain([value]));
        Some((field, value, interval, units))
    });
    let parameters = rows(fields)
        .heading("Network")
        .column("field", "field", |(field, ..)| field)
        .column("value", "value", |(_, value, _, units)| {
            number(value, units)
        })
        .column("low", "from", |(.., interval, units)| {
            interval.map(|interval| number(interval.low, units))
        })
        .column("high", "to", |(.., interval, units)| {
            interval.map(|interval| number(interval.high, units))
        });
    let misfit = network.fit.misfit.unwrap_or_default();
    document
        .table("network", parameters)
        .field("misfit", misfit)
        .field(
            "warnings",
            network.fit.warnings.iter().cloned().collect::<Value>(),
        )
        .line(format!(
            "The bandwidth is {}; the median error of round trips is {:.2} %.",
            Quantity::Rate(network.nic.rate()).rounded(),
            100.0 * misfit
        ))
        .noted(&network.fit.warnings)
}

fn number(quantity: Quantity, units: SizeUnits) -> Value {
    shown(quantity.number(), quantity.text(units))
}
