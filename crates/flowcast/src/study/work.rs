//! Distribution of sets over threads. Each thread replays several sets in one walk.

use flowcast_network::{network::Network, sharing::model::Model};
use flowcast_program::parallel::each_as_done;
use flowcast_replay::sweep::{SetOutcome, WIDEST};

use super::{
    Study, StudyError,
    rows::{Form, SetResult, row},
};
use crate::{Contention, Error, IntervalOptions, Options};
use flowcast_replay::outcome::finite_times;

/// Number of lanes that a walk fills together. Threads get multiples of this number of sets, except for the last ones.
const STEP: usize = 8;

/// Lines with the numbers of their sets.
pub type Lines = Vec<(usize, String)>;

impl Study {
    /// Replays these sets. `done` gets the lines of finished sets. Sets that finish together are passed in one call.
    ///
    /// # Errors
    /// A set without a prediction; errors of `done`.
    pub fn run<E: From<StudyError>>(
        &self,
        sets: &[usize],
        form: Form,
        threads: usize,
        mut done: impl FnMut(Lines) -> Result<(), E>,
    ) -> Result<(), E> {
        let share = match self.shares_walks()? {
            true => sets
                .len()
                .div_ceil(threads)
                .next_multiple_of(STEP)
                .clamp(STEP, WIDEST),
            false => 1,
        };
        let portions: Vec<&[usize]> = sets.chunks(share).collect();
        each_as_done(
            &portions,
            threads,
            |portion| self.lines(portion, form),
            |_, lines| done(lines?),
        )
    }

    /// `true` if several sets finish at the same time, in one walk. Otherwise each set is reported when it finishes.
    fn shares_walks(&self) -> Result<bool, StudyError> {
        let mut walks = self.level.is_none();
        for (network, choice) in self.networks.iter().zip(&self.choices) {
            walks &= match choice.contention {
                Contention::Shared(Model::Independent) => true,
                Contention::Limits => self
                    .prepared(network, &self.options[0])?
                    .engine()?
                    .is_free(),
                _ => false,
            };
        }
        Ok(walks)
    }

    /// The lines of these sets, on this thread.
    ///
    /// # Errors
    /// A set without a prediction.
    pub fn lines(&self, sets: &[usize], form: Form) -> Result<Lines, StudyError> {
        let mut lines = Lines::new();
        for sets in sets.chunk_by(|one, next| self.grid.mapping(*one) == self.grid.mapping(*next)) {
            let networks = sets
                .iter()
                .map(|set| self.grid.network(&self.networks, *set));
            let networks = networks.collect::<Result<Vec<_>, _>>()?;
            let found = self.found(&networks, &self.options[self.grid.mapping(sets[0])])?;
            lines.extend(
                sets.iter()
                    .zip(&found)
                    .map(|(set, found)| (*set, row(form, &self.grid, *set, found))),
            );
        }
        Ok(lines)
    }

    fn found(&self, networks: &[Network], options: &Options) -> Result<Vec<SetResult>, Error> {
        let first = self.prepared(&networks[0], options)?;
        let Some(level) = self.level else {
            let outcomes = first.sweep(networks, options)?.into_iter();
            let found = outcomes.map(|outcome| SetResult {
                outcome,
                interval: None,
            });
            return Ok(found.collect());
        };
        let asked = IntervalOptions {
            level,
            ..IntervalOptions::default()
        };
        let mut found = Vec::new();
        for network in networks {
            let prepared = self.prepared(network, options)?;
            let outcome = prepared.outcome()?;
            let interval = prepared.interval(&outcome, &asked)?;
            finite_times(interval.iter().flat_map(|one| [one.low, one.high]), || {
                format!("the network {}", network.name)
            })?;
            found.push(SetResult {
                outcome: SetOutcome::from(&outcome),
                interval: Some(interval),
            });
        }
        Ok(found)
    }
}
