//! `flowcast fit --import`: outputs of other benchmarks as samples.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use flowcast::fit::hockney::{HockneyFit, fit_hockney};
use flowcast::fit::import::{read, samples};
use flowcast::fit::samples::PrttSamples;
use flowcast::model::quantity::Quantity;
use flowcast::units::{Rounded, Time, TimePerByte};
use serde::Serialize;

use super::write;
use crate::commands::fit_conflicts::percent;
use crate::terminal::files::read_text;
use crate::terminal::output::{Format, Shown, println_out, show};
use crate::terminal::provenance;

/// The round trips of all files together.
pub(in crate::commands) fn imported(files: &[PathBuf]) -> Result<PrttSamples> {
    let of_file =
        |path: &PathBuf| read(&read_text(path)?).with_context(|| path.display().to_string());
    let all = files.iter().map(of_file).collect::<Result<Vec<_>>>()?;
    Ok(samples(&all)?)
}

/// Fits latency and bandwidth, writes the network if asked, and prints them.
pub(in crate::commands) fn run(
    files: &[PathBuf],
    output: Option<&Path>,
    name: &str,
    format: Format,
) -> Result<()> {
    let samples = imported(files)?;
    let fit = fit_hockney(&samples)?;
    let mut provenance: BTreeMap<String, String> = provenance::of_this_run();
    let names: Vec<String> = files
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    provenance.insert("imported".into(), names.join(" "));
    write(output, &fit.to_network(name, provenance))?;
    show(&Report::new(&fit), format)
}

#[allow(non_snake_case, reason = "the name ends in the unit")]
#[derive(Serialize)]
struct Report {
    latency_us: f64,
    us_per_B: f64,
    sizes: usize,
    error_median: f64,
    error_worst: f64,
}

impl Report {
    fn new(fit: &HockneyFit) -> Report {
        Report {
            latency_us: fit.latency.as_micros(),
            us_per_B: fit.per_byte.as_micros(),
            sizes: fit.sizes,
            error_median: fit.error_median,
            error_worst: fit.error_worst,
        }
    }
}

impl Shown for Report {
    const SCHEMA: &'static str = "flowcast/hockney-fit/1";

    fn print(&self) {
        println_out!("latency    {}", Rounded(Time::from_micros(self.latency_us)));
        println_out!(
            "bandwidth  {}",
            Quantity::Rate(TimePerByte::from_micros(self.us_per_B).rate()).rounded()
        );
        println_out!(
            "The line misses {} sizes by {} (median), {} at worst.",
            self.sizes,
            percent(self.error_median),
            percent(self.error_worst)
        );
    }
}
