//! Input files of `flowcast fit`, whose kind is determined from their content.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail, ensure};
use flowcast::{calibrate::conflict_samples::ConflictSamples, fit::sample_table};

use flowcast_terminal::files::read_text;

/// Kind of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FitInputKind {
    RoundTrips,
    Conflicts,
    Pairs,
    Calls,
    Recording,
    Benchmark,
    Collectives,
}

impl fmt::Display for FitInputKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            FitInputKind::RoundTrips => "round trips",
            FitInputKind::Conflicts => "conflicts",
            FitInputKind::Pairs => "times between pairs",
            FitInputKind::Calls => "medians of calls",
            FitInputKind::Recording => "recordings",
            FitInputKind::Benchmark => "outputs of benchmarks",
            FitInputKind::Collectives => "collective operations of machines",
        })
    }
}

impl FitInputKind {
    /// Kind of a table, from its columns.
    fn of_columns(text: &str) -> FitInputKind {
        if ConflictSamples::is_one(text) {
            FitInputKind::Conflicts
        } else if sample_table::has(text, "from") {
            FitInputKind::Pairs
        } else if sample_table::has(text, "median_ns") {
            FitInputKind::Calls
        } else if ["time_us", "n"]
            .iter()
            .any(|column| sample_table::has(text, column))
            || text.starts_with("# schema:")
        {
            FitInputKind::RoundTrips
        } else {
            FitInputKind::Benchmark
        }
    }
}

/// An input and its text. The text is empty for a recording, which is a folder.
pub(crate) struct FitInput {
    pub path: PathBuf,
    pub kind: FitInputKind,
    pub text: String,
}

impl FitInput {
    /// Reads a file and determines its kind. A folder is a recording.
    pub(crate) fn read(path: &Path) -> Result<FitInput> {
        let path = path.to_owned();
        if path.is_dir() {
            let (kind, text) = (FitInputKind::Recording, String::new());
            return Ok(FitInput { path, kind, text });
        }
        let text = read_text(&path)?;
        let kind = FitInputKind::of_columns(&text);
        Ok(FitInput { path, kind, text })
    }

    /// Parses the content. An error names the file.
    pub(crate) fn parsed<T, E>(&self, parse: impl FnOnce(&str) -> Result<T, E>) -> Result<T>
    where
        Result<T, E>: Context<T, E>,
    {
        parse(&self.text).with_context(|| self.place())
    }

    /// Name of the file for messages.
    pub(crate) fn place(&self) -> String {
        self.path.display().to_string()
    }
}

/// Common kind of all inputs.
pub(crate) fn one_kind(inputs: &[FitInput]) -> Result<FitInputKind> {
    let (kind, place) = (inputs[0].kind, inputs[0].place());
    for other in &inputs[1..] {
        ensure!(
            other.kind == kind,
            "{}: found {}, expected {kind} as in {place}, or --model all",
            other.place(),
            other.kind
        );
    }
    let is_one =
        inputs.len() == 1 || matches!(kind, FitInputKind::Recording | FitInputKind::Benchmark);
    match kind {
        FitInputKind::Pairs => {
            bail!("{place}: found {kind}, expected also --model all and a file with round trips")
        }
        _ if is_one => Ok(kind),
        _ => bail!("found {} files with {kind}, expected one", inputs.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_determine_the_kind_of_a_file() {
        for (text, kind) in [
            (
                include_str!("../../../../../examples/gige-samples.csv"),
                FitInputKind::RoundTrips,
            ),
            (
                include_str!("../../../../../examples/pair-round-trips.csv"),
                FitInputKind::RoundTrips,
            ),
            (
                include_str!("../../../../../examples/pairs.csv"),
                FitInputKind::Pairs,
            ),
            (
                include_str!("../../../../../examples/taurus-calls.csv"),
                FitInputKind::Calls,
            ),
            (
                include_str!("../../../../../examples/osu-latency.txt"),
                FitInputKind::Benchmark,
            ),
            ("n,d_us,size_B,prtt_us\n1,0,8,9\n", FitInputKind::RoundTrips),
            (
                "from,to,size_B,what,time_us\n0,1,8,both,5\n",
                FitInputKind::Pairs,
            ),
            (
                "what,kind,from,to,from_rack,to_rack,size_B,d_us,step,repetition,time_us\n",
                FitInputKind::Conflicts,
            ),
            (
                "conflict,kind,repetition,flow,src,dst,src_rack,dst_rack,size_B,start_us,duration_us\n",
                FitInputKind::Conflicts,
            ),
        ] {
            assert_eq!(
                FitInputKind::of_columns(text),
                kind,
                "{}",
                text.lines().next().unwrap_or_default()
            );
        }
    }
}
