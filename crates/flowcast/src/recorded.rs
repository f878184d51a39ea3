//! Recordings of programs, replayed and compared with their measured times.

use std::borrow::Cow;

use flowcast_formats::read::{Clock, recorded_program, recorded_regions};
use flowcast_network::{machine::Mapping, network::Network};
use flowcast_program::{Program, ReadOptions, TraceError, expand::Expanded, run_times::RunTimes};
use flowcast_recording::decode::RankFile;

use crate::{
    Collectives, CollectivesWay, Error, Interval, IntervalOptions, Options, PreparedProgram,
};

/// A recording that can be replayed on any network.
#[derive(Debug, Clone)]
pub struct Recorded {
    program: Program,
    /// Names of the program's regions by number, from 1.
    regions: Vec<String>,
    mapping: Option<Mapping>,
}

/// Prediction for a recording as a whole.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordingPrediction {
    /// Name of the model.
    pub model: &'static str,
    /// Interval of the makespan, if it is known.
    pub interval: Option<Interval>,
    /// Sentences on the basis of the prediction.
    pub notes: Vec<String>,
}

impl Recorded {
    /// Creates a recording from the files of all ranks. `clock` measures the computation between calls. `mapping` places the
    /// ranks. Without a mapping, they run on the hosts of the recording if there were several.
    ///
    /// # Errors
    /// [`TraceError`] for calls that do not match.
    pub fn new(
        files: &[RankFile],
        clock: Clock,
        mapping: Option<Mapping>,
        threads: usize,
    ) -> Result<Recorded, TraceError> {
        let program = recorded_program(
            "the recording",
            files,
            clock,
            ReadOptions {
                threads: threads.max(1),
            },
        )?;
        Ok(Recorded {
            program,
            regions: recorded_regions(files),
            mapping: mapping.or_else(|| hosts(files)),
        })
    }

    /// The recorded program, with its collectives as calls.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Returns the recording with its collectives carried out, and the way in which this was done. The recording is
    /// unchanged if the formula applies.
    ///
    /// # Errors
    /// [`TraceError::Limit`] for more messages than a program can hold.
    pub fn expanded(
        &self,
        collectives: &Collectives,
        network: &Network,
        threads: usize,
    ) -> Result<(Cow<'_, Recorded>, CollectivesWay), TraceError> {
        let carried_out = collectives.carry_out(&self.program, Some(network), threads)?;
        let recorded = match carried_out.expanded {
            Some(Expanded { program, .. }) => Cow::Owned(Recorded {
                program,
                ..self.clone()
            }),
            None => Cow::Borrowed(self),
        };
        Ok((recorded, carried_out.way))
    }

    /// Prediction for the whole run, as `predict` makes it.
    ///
    /// # Errors
    /// Errors of the replay.
    pub fn predicted(
        &self,
        network: &Network,
        options: &Options,
        asked: &IntervalOptions<'_>,
    ) -> Result<RecordingPrediction, Error> {
        let options = Options {
            mapping: self.mapping.clone(),
            ..options.clone()
        };
        let prepared = PreparedProgram::new(&self.program, network, &options)?;
        let outcome = prepared.outcome()?;
        Ok(RecordingPrediction {
            model: prepared.model().name(),
            interval: prepared.interval(&outcome, asked)?,
            notes: prepared.notes(),
        })
    }

    /// Times of its replay on a network, in the terms in which the recording is measured; see
    /// [`PreparedProgram::run_times`].
    ///
    /// # Errors
    /// Errors of the replay.
    pub fn run_times(
        &self,
        network: &Network,
        options: &Options,
        seeds: u64,
    ) -> Result<Vec<RunTimes>, Error> {
        let options = Options {
            mapping: self.mapping.clone(),
            ..options.clone()
        };
        PreparedProgram::new(&self.program, network, &options)?.run_times(&self.regions, seeds)
    }
}

/// Mapping to the hosts of the recording as nodes, if there were several. Ranks that ran on a single host are meant to be on
/// nodes of their own.
fn hosts(files: &[RankFile]) -> Option<Mapping> {
    let mut names: Vec<&str> = Vec::new();
    let mut nodes = Vec::new();
    for file in files {
        let host = file.header.fields.get("host").map_or("", String::as_str);
        let known = names.iter().position(|name| *name == host);
        nodes.push(known.unwrap_or(names.len()) as u32);
        if known.is_none() {
            names.push(host);
        }
    }
    (names.len() > 1).then_some(Mapping::List(nodes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on(host: &str) -> RankFile {
        let mut file = RankFile::default();
        file.header.fields.insert("host".into(), host.into());
        file
    }

    #[test]
    fn ranks_run_on_the_hosts_of_the_recording_unless_there_is_only_one() {
        assert_eq!(
            hosts(&[on("b"), on("a"), on("b")]),
            Some(Mapping::List(vec![0, 1, 0]))
        );
        assert_eq!(hosts(&[on("a"), on("a")]), None);
    }
}
