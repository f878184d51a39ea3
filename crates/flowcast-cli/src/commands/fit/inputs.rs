//! What the files of `flowcast fit` hold, told by their content.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use anyhow::{Result, bail};
use flowcast::calibrate::conflict_samples::ConflictSamples;

use crate::terminal::files::read_text;

/// What a file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::commands) enum Kind {
    RoundTrips,
    Conflicts,
    Pairs,
    Calls,
    Recording,
    Benchmark,
}

impl fmt::Display for Kind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Kind::RoundTrips => "round trips",
            Kind::Conflicts => "conflicts",
            Kind::Pairs => "times between pairs",
            Kind::Calls => "medians of calls",
            Kind::Recording => "recordings",
            Kind::Benchmark => "outputs of benchmarks",
        })
    }
}

impl Kind {
    /// By the columns of the first line that is no comment.
    fn of(text: &str) -> Kind {
        let mut lines = text.lines().map(str::trim);
        let header = lines.find(|line| !line.is_empty() && !line.starts_with('#'));
        let header = header.unwrap_or_default();
        let has = |column: &str| header.split(',').any(|name| name.trim() == column);
        if ConflictSamples::is_one(text) {
            Kind::Conflicts
        } else if has("company") {
            Kind::Pairs
        } else if has("median_ns") {
            Kind::Calls
        } else if has("prtt_us") || has("n") || text.starts_with("# schema:") {
            Kind::RoundTrips
        } else {
            Kind::Benchmark
        }
    }
}

/// A file, read; of a recording, which is a folder, there is no text.
pub(in crate::commands) struct FitInput {
    pub path: PathBuf,
    pub kind: Kind,
    pub text: String,
}

impl FitInput {
    /// Reads a file.
    pub(in crate::commands) fn read(path: &Path) -> Result<FitInput> {
        let path = path.to_owned();
        if path.is_dir() {
            let (kind, text) = (Kind::Recording, String::new());
            return Ok(FitInput { path, kind, text });
        }
        let text = read_text(&path)?;
        let kind = Kind::of(&text);
        Ok(FitInput { path, kind, text })
    }

    /// As it is called in messages.
    pub(in crate::commands) fn place(&self) -> String {
        self.path.display().to_string()
    }
}

/// What all inputs hold.
pub(in crate::commands) fn one_kind(inputs: &[FitInput]) -> Result<Kind> {
    let (kind, place) = (inputs[0].kind, inputs[0].place());
    for other in &inputs[1..] {
        if other.kind != kind {
            let (found, other) = (other.kind, other.place());
            bail!("{other}: found {found}, expected {kind} as in {place}, or --model all");
        }
    }
    let is_one = inputs.len() == 1 || matches!(kind, Kind::Recording | Kind::Benchmark);
    match kind {
        Kind::Pairs => {
            bail!("{place}: found {kind}, expected --model all and round trips beside them")
        }
        _ if is_one => Ok(kind),
        _ => bail!("found {} files with {kind}, expected one", inputs.len()),
    }
}
