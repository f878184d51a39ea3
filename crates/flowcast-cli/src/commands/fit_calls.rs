//! `flowcast fit --calls`: what calls of MPI take by the size of their message.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Args;
use flowcast::fit::calls::table::{CallCases, CallName, CallTimes};
use flowcast::fit::calls::{CallFit, CallTime, fit_calls, network::to_network};
use flowcast::model::network::Network;
use flowcast::units::{Bytes, Rounded, Time};
use serde::Serialize;

use super::fit_conflicts::percent;
use crate::terminal::files::{Batch, Output, declare, read_text};
use crate::terminal::output::{Format, Shown, println_out, say, show};
use crate::terminal::provenance;
use crate::terminal::tables::{cells, table};

/// Level of the intervals of predicted medians.
const LEVEL: f64 = 0.9;

#[derive(Debug, Args)]
pub(super) struct CallArgs {
    /// Medians of MPI calls by size, a CSV with the columns cluster,experiment,call,bytes,median_ns and any others: each
    /// call as lines between knees, which are found
    #[arg(long, value_name = "TRAIN.csv", conflicts_with_all = ["samples", "prtt", "regions"])]
    pub calls: Option<PathBuf>,
    /// With --calls: rows whose times are predicted; -o OUT.csv repeats them with predicted_ns,low_ns,high_ns (90 %)
    #[arg(long, value_name = "TEST.csv", requires = "calls")]
    predict: Option<PathBuf>,
    /// With --calls: most lines for a call
    #[arg(long, value_name = "N", requires = "calls", default_value = "8", value_parser = clap::value_parser!(u8).range(1..=64))]
    pieces: u8,
    /// With --calls: the cluster that is fitted, of several
    #[arg(long, value_name = "NAME", requires = "calls")]
    cluster: Option<String>,
}

/// What is fitted, and where it goes.
pub(super) struct FitCalls<'a> {
    pub calls: &'a Path,
    pub args: &'a CallArgs,
    pub outputs: &'a [PathBuf],
    pub name: &'a dyn Fn(&Path) -> String,
    pub format: Format,
}

impl FitCalls<'_> {
    /// Fits, writes predictions and the network if asked, and prints the functions.
    pub(super) fn run(&self) -> Result<()> {
        let (predictions, network) = self.destinations()?;
        let outputs = [predictions, network]
            .into_iter()
            .flatten()
            .map(|path| Output::new("-o", path));
        declare(
            [Some(self.calls), self.args.predict.as_deref()]
                .into_iter()
                .flatten(),
            outputs,
        )?;
        let fits = self.fits()?;
        let mut batch = Batch::new();
        if let (Some(cases), Some(to)) = (&self.args.predict, predictions) {
            let text = predictions_of(cases, &fits)?;
            batch.write(to, |out| Ok(out.write_all(text.as_bytes())?))?;
        }
        if let Some(to) = network {
            let network = self.network(&fits, to)?;
            batch.write(to, |out| Ok(out.write_all(network.to_toml().as_bytes())?))?;
        }
        batch.commit()?;
        show(&Report::new(&fits), self.format)
    }

    /// Where predictions and where the network go: with --predict a name that ends in .toml is the network's.
    fn destinations(&self) -> Result<(Option<&Path>, Option<&Path>)> {
        let is_network = |path: &&PathBuf| {
            self.args.predict.is_none() || path.extension().is_some_and(|ending| ending == "toml")
        };
        let (networks, predictions): (Vec<&PathBuf>, Vec<&PathBuf>) =
            self.outputs.iter().partition(is_network);
        if networks.len() > 1 || predictions.len() > 1 {
            bail!(
                "-o: found {} files, expected one OUT.csv with --predict and one NET.toml",
                self.outputs.len()
            );
        }
        if self.args.predict.is_some() && predictions.is_empty() {
            bail!("--predict: found no -o OUT.csv, expected a file for the predictions");
        }
        Ok((
            predictions.first().map(|path| path.as_path()),
            networks.first().map(|path| path.as_path()),
        ))
    }

    fn fits(&self) -> Result<BTreeMap<CallName, CallFit>> {
        let place = || self.calls.display().to_string();
        let mut times = CallTimes::from_csv(&read_text(self.calls)?).with_context(place)?;
        if let Some(cluster) = &self.args.cluster {
            times = times.of_cluster(cluster);
            if times.calls.is_empty() {
                bail!("--cluster: found no row of `{cluster}`, expected some");
            }
        }
        fit_calls(&times, usize::from(self.args.pieces)).with_context(place)
    }

    fn network(&self, fits: &BTreeMap<CallName, CallFit>, to: &Path) -> Result<Network> {
        let network = to_network(fits, &(self.name)(to), provenance::of_this_run());
        network.with_context(|| format!("{} (--cluster NAME chooses one)", self.calls.display()))
    }
}

/// The rows of TEST with what is predicted; those that cannot be are told.
fn predictions_of(path: &Path, fits: &BTreeMap<CallName, CallFit>) -> Result<String> {
    let cases =
        CallCases::from_csv(&read_text(path)?).with_context(|| path.display().to_string())?;
    let predict = |(line, name, size): &(usize, CallName, Bytes)| -> Result<Option<CallTime>> {
        let Some(fit) = fits.get(name) else {
            say!(
                "flowcast: note: {}: line {line}: {name} was not fitted, so nothing is predicted",
                path.display()
            );
            return Ok(None);
        };
        Ok(Some(fit.predict(*size, LEVEL)?))
    };
    let predicted = cases.rows.iter().map(predict).collect::<Result<Vec<_>>>()?;
    if let Some(short) = predicted.iter().flatten().find(|time| time.level < LEVEL) {
        say!(
            "flowcast: note: with so few sizes some intervals hold {} of the medians",
            percent(short.level)
        );
    }
    Ok(cases.with_predictions(&predicted))
}

#[derive(Serialize)]
struct Report {
    calls: Vec<CallReport>,
}

#[derive(Serialize)]
struct CallReport {
    cluster: String,
    experiment: String,
    call: String,
    pieces: Vec<PieceReport>,
    error: f64,
    error_of_interpolation: f64,
    error_of_one_line: f64,
}

#[allow(non_snake_case, reason = "the names end in the unit")]
#[derive(Serialize)]
struct PieceReport {
    from_B: f64,
    fixed_ns: f64,
    per_byte_ns: f64,
}

impl Report {
    fn new(fits: &BTreeMap<CallName, CallFit>) -> Report {
        let call = |(name, fit): (&CallName, &CallFit)| CallReport {
            cluster: name.cluster.clone(),
            experiment: name.experiment.clone(),
            call: name.call.clone(),
            pieces: fit.curve.pieces().iter().map(PieceReport::new).collect(),
            error: fit.errors.pieces,
            error_of_interpolation: fit.errors.neighbours,
            error_of_one_line: fit.errors.one_line,
        };
        Report {
            calls: fits.iter().map(call).collect(),
        }
    }
}

impl PieceReport {
    fn new(piece: &flowcast::model::stats::piecewise::Piece) -> PieceReport {
        PieceReport {
            from_B: piece.from,
            fixed_ns: piece.line.intercept,
            per_byte_ns: piece.line.slope,
        }
    }
}

impl Shown for Report {
    const SCHEMA: &'static str = "flowcast/call-fit/1";

    fn print(&self) {
        let mut pieces = table(&[
            "cluster",
            "experiment",
            "call",
            ">from",
            ">fixed",
            ">per byte",
        ]);
        for call in &self.calls {
            for piece in &call.pieces {
                let fixed = Rounded(Time::from_nanos(piece.fixed_ns));
                let [from, per_byte] = [
                    format!("{:.0} B", piece.from_B.ceil()),
                    format!("{:.4} ns", piece.per_byte_ns),
                ];
                pieces.add_row(cells![
                    call.cluster,
                    call.experiment,
                    call.call,
                    from,
                    fixed,
                    per_byte
                ]);
            }
        }
        println_out!("{pieces}");
        println_out!("Median errors on sizes that were left out:");
        let columns = [
            "cluster",
            "experiment",
            "call",
            ">pieces",
            ">error",
            ">interpolated",
            ">one line",
        ];
        let mut errors = table(&columns);
        for call in &self.calls {
            let [own, interpolated, one_line] = [
                call.error,
                call.error_of_interpolation,
                call.error_of_one_line,
            ]
            .map(percent);
            let count = call.pieces.len();
            errors.add_row(cells![
                call.cluster,
                call.experiment,
                call.call,
                count,
                own,
                interpolated,
                one_line
            ]);
        }
        println_out!("{errors}");
    }
}
