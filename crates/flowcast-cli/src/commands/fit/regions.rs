//! `flowcast fit --regions`: Dimemas' parameters from recorded micro-benchmarks.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use flowcast::calibrate::dimemas::{DimemasFit, Exercise, MeasuredRegion, fit};
use flowcast::calibrate::recorded_regions::exercises;
use flowcast::model::ledger::{Accuracy, Judged};
use flowcast::model::network::Network;
use flowcast::model::quantity::Quantity;
use flowcast::model::stats::sample::median;
use flowcast::recording::decode::RankFile;
use flowcast::units::{Bytes, Rounded, Time};
use serde_json::json;

use super::write;
use crate::commands::fit_packets::{self, PacketFit};
use crate::recording::open_recording;
use crate::terminal::output::{println_out, say};
use crate::terminal::provenance;
use crate::terminal::tables::{Table, table};

/// What is fitted, and where it goes.
pub(in crate::commands) struct FitRegions<'a> {
    pub recordings: &'a [PathBuf],
    pub output: Option<&'a Path>,
    pub name: String,
    pub rendezvous_from: Option<Bytes>,
    /// What is known of the network beforehand: with wire rates the latency of packets is fitted as well.
    pub known: Option<Network>,
    pub json: bool,
}

impl FitRegions<'_> {
    /// Fits, writes the network file if asked, and prints what was found.
    pub(in crate::commands) fn run(&self) -> Result<()> {
        let recordings = self
            .recordings
            .iter()
            .map(|folder| open_recording(folder))
            .collect::<Result<Vec<_>>>()?;
        let fit = fit(&self.regions(&recordings)?)?;
        let mut network = fit.to_network(&self.name, self.rendezvous_from, self.provenance(&fit));
        let errors = fit.errors().map(|(region, error)| {
            (
                format!("{}/{} ranks", region.name, region.ranks),
                vec![error],
            )
        });
        network
            .accuracy
            .push(accuracy("limits/formula", errors.collect())?);
        let mut packets = None;
        if let Some(known) = &self.known {
            network.sharing = known.sharing.clone();
            network = network.with_wire_of(known);
            if network.nic.rate.given_wire().is_some() {
                let found = packets.insert(fit_packets::fit(&recordings, &network)?);
                network.sharing.packet.latency = Some(found.latency);
                network
                    .accuracy
                    .push(accuracy("packet/openmpi", found.errors())?);
            }
        }
        write(self.output, &network)?;
        match self.json {
            true => println_out!("{}", document(&fit, packets.as_ref())),
            false => print(&fit, packets.as_ref()),
        }
        Ok(())
    }

    /// Each region once, with the median of its times.
    fn regions(&self, recordings: &[Vec<RankFile>]) -> Result<Vec<MeasuredRegion>> {
        let mut all: BTreeMap<(u32, String), Vec<MeasuredRegion>> = BTreeMap::new();
        for (folder, files) in self.recordings.iter().zip(recordings) {
            let (understood, others) = exercises(files);
            if understood.is_empty() {
                let place = folder.display();
                bail!(
                    "{place}: found no region of a micro-benchmark, expected some, as MPI_Pcontrol(1, \"Bcast 1024\")"
                );
            }
            if !others.is_empty() {
                say!(
                    "flowcast: note: {} regions are left out: {}",
                    others.len(),
                    others.join(", ")
                );
            }
            for region in understood {
                all.entry((region.ranks, region.name.clone()))
                    .or_default()
                    .push(region);
            }
        }
        let middle = |regions: Vec<MeasuredRegion>| -> Result<MeasuredRegion> {
            let times: Vec<f64> = regions
                .iter()
                .map(|region| region.once.as_nanos())
                .collect();
            let first = regions
                .into_iter()
                .next()
                .context("every region was measured")?;
            Ok(MeasuredRegion {
                once: Time::from_nanos(median(&times)?),
                ..first
            })
        };
        all.into_values().map(middle).collect()
    }

    fn provenance(&self, fit: &DimemasFit) -> BTreeMap<String, String> {
        let mut all = provenance::of_this_run();
        all.insert("regions".into(), fit.regions.len().to_string());
        all
    }
}

/// On the regions that were fitted to, by their names.
fn accuracy(model: &str, errors: BTreeMap<String, Vec<f64>>) -> Result<Accuracy> {
    let entry = Accuracy::of_errors(model, Judged::Regions, "the regions fitted to", errors)?;
    Ok(Accuracy {
        is_fitted: true,
        ..entry
    })
}

fn mean_error(fit: &DimemasFit) -> f64 {
    fit.errors().map(|(_, error)| error.abs()).sum::<f64>() / fit.regions.len().max(1) as f64
}

fn document(fit: &DimemasFit, packets: Option<&PacketFit>) -> serde_json::Value {
    let regions: Vec<_> = fit
        .regions
        .iter()
        .map(|(region, predicted)| {
            json!({
                "region": region.name, "ranks": region.ranks, "measured_s": region.once.as_seconds(),
                "predicted_s": predicted.as_seconds(),
            })
        })
        .collect();
    let rows: BTreeMap<&str, String> = fit
        .rows
        .iter()
        .map(|(op, row)| (op.name(), row.to_string()))
        .collect();
    json!({
        "schema": "flowcast/dimemas-fit/1",
        "latency_s": fit.latency.as_seconds(),
        "bandwidth_Bps": fit.bandwidth.as_bytes_per_second(),
        "in_links": fit.links.incoming,
        "out_links": fit.links.outgoing,
        "buses": fit.buses,
        "collectives": rows,
        "within_10_percent": fit.share_within(0.1),
        "mean_absolute_error": mean_error(fit),
        "regions": regions,
        "packets": packets.map(PacketFit::document),
    })
}

fn print(fit: &DimemasFit, packets: Option<&PacketFit>) {
    let links = match (fit.links.incoming, fit.links.outgoing) {
        (0, 0) => "not limited".to_owned(),
        (links, 0) => format!("{links}, half duplex"),
        (incoming, outgoing) => format!("{incoming} in, {outgoing} out"),
    };
    let buses = if fit.buses == 0 {
        "not limited".to_owned()
    } else {
        fit.buses.to_string()
    };
    println_out!("latency    {}", Rounded(fit.latency));
    println_out!("bandwidth  {}", Quantity::Rate(fit.bandwidth).rounded());
    println_out!("links      {links}");
    println_out!("buses      {buses}");
    let mut out = table(&[
        "operation",
        "fan-in | fan-out",
        ">regions",
        ">mean error",
        ">worst",
    ]);
    for (op, row) in &fit.rows {
        let is_own = |region: &MeasuredRegion| matches!(region.exercise, Exercise::Collective(own, ..) if own == *op);
        add_row(&mut out, fit, (op.name(), &row.to_string()), is_own);
    }
    let is_message = |region: &MeasuredRegion| !matches!(region.exercise, Exercise::Collective(..));
    add_row(&mut out, fit, ("messages", ""), is_message);
    println_out!("{out}");
    println_out!(
        "{} of {} regions are within 10 %, on average {:.1} % off",
        fit.errors().filter(|(_, error)| error.abs() <= 0.1).count(),
        fit.regions.len(),
        mean_error(fit) * 100.0
    );
    if let Some(packets) = packets {
        println_out!("{packets}");
    }
}

fn add_row(
    out: &mut Table,
    fit: &DimemasFit,
    (name, row): (&str, &str),
    is_own: impl Fn(&MeasuredRegion) -> bool,
) {
    let errors: Vec<f64> = fit
        .errors()
        .filter(|(region, _)| is_own(region))
        .map(|(_, error)| error)
        .collect();
    let Some(worst) = errors
        .iter()
        .copied()
        .max_by(|a, b| a.abs().total_cmp(&b.abs()))
    else {
        return;
    };
    let mean = errors.iter().map(|error| error.abs()).sum::<f64>() / errors.len() as f64;
    out.add_row([
        name.to_owned(),
        row.to_owned(),
        errors.len().to_string(),
        format!("{:.1} %", mean * 100.0),
        format!("{:+.1} %", worst * 100.0),
    ]);
}
