//! `flowcast fit` of recordings: Dimemas' parameters from recorded micro-benchmarks.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use flowcast::{
    calibrate::{
        dimemas::{DimemasFit, Exercise, MeasuredRegion, fit},
        recorded_regions::exercises,
    },
    model::{
        accuracy::{Accuracy, CaseKind},
        quantity::Quantity,
    },
    recording::decode::RankFile,
    statements::{DISTURBED_BY, of_networks},
    statistics::sample::median,
    table::{self, Document, rows},
    units::{Rounded, Time},
};

use super::{Fit, write};
use crate::{
    commands::fit_packets::{self, PacketFit},
    recording::{disturbed_by, open_recording},
};
use flowcast_terminal::{provenance, say};

impl Fit {
    /// Fits the parameters of recordings, writes the network file if requested, and prints the results. If the known network
    /// has wire rates, the latency of packets is fitted too.
    pub(super) fn fit_regions(&self) -> Result<()> {
        let known = self.known()?;
        let recordings = self.inputs.iter().map(|folder| open_recording(folder));
        let recordings = recordings.collect::<Result<Vec<_>>>()?;
        let fit = fit(&self.measured_regions(&recordings)?)?;
        let provenance = self.provenance_of_regions(&fit);
        let mut network = fit.to_network(&self.network_name(), self.rendezvous_from, provenance);
        let errors = fit
            .regions
            .errors_by(|region| format!("{}/{} ranks", region.name, region.ranks));
        network.accuracy.push(accuracy("limits/formula", errors)?);
        let mut packets = None;
        if let Some(known) = &known {
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
        write(self.output(), &network)?;
        let document = document(&fit, packets.as_ref());
        self.format.print(&document.noted(of_networks([&network])))
    }

    /// Each region once, with the median of its times.
    fn measured_regions(&self, recordings: &[Vec<RankFile>]) -> Result<Vec<MeasuredRegion>> {
        let mut all: BTreeMap<(u32, String), Vec<MeasuredRegion>> = BTreeMap::new();
        for (folder, files) in self.inputs.iter().zip(recordings) {
            let (understood, others) = exercises(files);
            ensure!(
                !understood.is_empty(),
                "{}: found no region of a micro-benchmark, expected regions such as MPI_Pcontrol(1, \"Bcast 1024\")",
                folder.display()
            );
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
        all.into_values()
            .map(|regions| {
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
            })
            .collect()
    }

    fn provenance_of_regions(&self, fit: &DimemasFit) -> BTreeMap<String, String> {
        let mut all = provenance::of_this_run();
        all.insert("regions".into(), fit.regions.all().len().to_string());
        let disturbed = self.inputs.iter().find_map(|folder| disturbed_by(folder));
        all.extend(disturbed.map(|found| (DISTURBED_BY.to_owned(), found)));
        all
    }
}

/// Accuracy of a model on the fitted regions, by their names.
fn accuracy(model: &str, errors: BTreeMap<String, Vec<f64>>) -> Result<Accuracy> {
    let entry = Accuracy::of_errors(model, CaseKind::Regions, "the regions fitted to", errors)?;
    Ok(Accuracy {
        fitted: true,
        ..entry
    })
}

fn document(fit: &DimemasFit, packets: Option<&PacketFit>) -> Document {
    let links = match (fit.links.incoming, fit.links.outgoing) {
        (0, 0) => "unlimited".to_owned(),
        (links, 0) => format!("{links}, half duplex"),
        (incoming, outgoing) => format!("{incoming} in, {outgoing} out"),
    };
    let buses = match fit.buses {
        0 => "unlimited".to_owned(),
        buses => buses.to_string(),
    };
    let observed = &fit.regions;
    let regions = rows(observed.all())
        .field("region", |one| &one.of.name)
        .field("ranks", |one| one.of.ranks)
        .field("measured_s", |one| one.measured)
        .field("predicted_s", |one| one.predicted);
    let names = fit
        .rows
        .iter()
        .map(|(op, row)| (op.name(), row.to_string()));
    let kinds = names.clone().chain([("messages", String::new())]);
    let groups = observed.grouped(|region| name(region).to_owned());
    let kinds: Vec<_> = kinds
        .filter_map(|kind| {
            let (_, own) = groups.iter().find(|(name, _)| name == kind.0)?;
            Some((kind, own))
        })
        .collect();
    let table = rows(&kinds)
        .cell("operation", |((name, _), _)| *name)
        .cell("fan-in | fan-out", |((_, row), _)| row)
        .cell("regions", |(_, own)| own.all().len())
        .cell("mean error", |(_, own)| {
            table::percent(own.mean_absolute(), 1)
        })
        .cell("worst", |(_, own)| {
            table::relative_error(own.worst().error())
        });
    Document::new("dimemas-fit")
        .field("latency_s", fit.latency)
        .field("bandwidth_Bps", fit.bandwidth)
        .field("in_links", fit.links.incoming)
        .field("out_links", fit.links.outgoing)
        .field("buses", fit.buses)
        .field("collectives", names.collect::<BTreeMap<_, _>>())
        .field("within_10_percent", observed.share_within(0.1))
        .field("mean_absolute_error", observed.mean_absolute())
        .field("regions", regions)
        .field("packets", packets.map(PacketFit::record))
        .line(format!("latency    {}", Rounded(fit.latency)))
        .line(format!(
            "bandwidth  {}",
            Quantity::Rate(fit.bandwidth).rounded()
        ))
        .line(format!("links      {links}"))
        .line(format!("buses      {buses}"))
        .shown(table)
        .line(format!(
            "{} of {} regions are predicted within 10 %; mean error {:.1} %",
            observed.count_within(0.1),
            observed.all().len(),
            observed.mean_absolute() * 100.0
        ))
        .lines(packets)
}

/// Name of a collective operation; `messages` for all other regions.
fn name(region: &MeasuredRegion) -> &str {
    match region.exercise {
        Exercise::Collective(op, ..) => op.name(),
        _ => "messages",
    }
}
