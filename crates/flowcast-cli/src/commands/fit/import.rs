//! `flowcast fit` of outputs of other benchmarks, as samples.

use std::{collections::BTreeMap, path::Path};

use anyhow::{Context, Result};
use flowcast::{
    fit::{
        hockney::fit_hockney,
        import::{read, samples},
        samples::PrttSamples,
    },
    model::quantity::Quantity,
    table::Document,
    units::Rounded,
};

use super::{
    inputs::{FitInput, Kind},
    write,
};
use crate::{
    commands::fit_conflicts::percent,
    terminal::{output::Format, provenance},
};

/// The round trips of all files together.
pub(in crate::commands) fn imported(files: &[FitInput]) -> Result<PrttSamples> {
    let all = files.iter().filter(|file| file.kind == Kind::Benchmark);
    let all = all.map(|file| read(&file.text).with_context(|| file.place()));
    let all = all.collect::<Result<Vec<_>>>()?;
    Ok(samples(&all)?)
}

/// Fits latency and bandwidth, writes the network if asked, and prints them.
pub(in crate::commands) fn run(
    files: &[FitInput],
    output: Option<&Path>,
    name: &str,
    format: Format,
) -> Result<()> {
    let samples = imported(files)?;
    let fit = fit_hockney(&samples)?;
    let mut provenance: BTreeMap<String, String> = provenance::of_this_run();
    let names: Vec<String> = files.iter().map(FitInput::place).collect();
    provenance.insert("imported".into(), names.join(" "));
    write(output, &fit.to_network(name, provenance))?;
    let rate = Quantity::Rate(fit.per_byte.rate()).rounded();
    format.print(
        &Document::new("hockney-fit")
            .field("latency_us", fit.latency)
            .field("us_per_B", fit.per_byte.as_micros())
            .field("sizes", fit.sizes)
            .field("error_median", fit.error_median)
            .field("error_worst", fit.error_worst)
            .line(format!("latency    {}", Rounded(fit.latency)))
            .line(format!("bandwidth  {rate}"))
            .line(format!(
                "The line misses {} sizes by {} (median), {} at worst.",
                fit.sizes,
                percent(fit.error_median),
                percent(fit.error_worst)
            )),
    )
}
