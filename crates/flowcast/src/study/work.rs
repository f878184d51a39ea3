//! Sets dealt to threads; each thread replays several sets in one walk.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use flowcast_model::network::Network;
use flowcast_replay::sweep::{SetOutcome, WIDEST};

use super::rows::{Form, Found, row};
use super::{Study, StudyError};
use crate::{Error, IntervalOptions, Options};

/// Lanes of a walk fill up in steps of this many sets.
const STEP: usize = 8;

/// Lines with the numbers of their sets.
pub type Lines = Vec<(usize, String)>;

impl Study {
    /// Replays these sets; `done` gets the lines of several at a time, in the order in which they are finished.
    ///
    /// # Errors
    /// A set without a prediction; those of `done`.
    pub fn run<E: From<StudyError>>(
        &self,
        (sets, form): (&[usize], Form),
        threads: usize,
        mut done: impl FnMut(Lines) -> Result<(), E>,
    ) -> Result<(), E> {
        let share = sets.len().div_ceil(threads).next_multiple_of(STEP).clamp(STEP, 2 * WIDEST);
        let portions: Vec<&[usize]> = sets.chunks(share).collect();
        let next = AtomicUsize::new(0);
        let (sender, receiver) = mpsc::channel();
        std::thread::scope(|scope| {
            for _ in 0..threads.min(portions.len()) {
                let (sender, next, portions) = (sender.clone(), &next, &portions);
                scope.spawn(move || {
                    while let Some(portion) = portions.get(next.fetch_add(1, Ordering::Relaxed)) {
                        if self.send((portion, form), &sender).is_break() {
                            break;
                        }
                    }
                });
            }
            drop(sender);
            // An error drops the receiver, at which the threads stop.
            receiver.into_iter().try_for_each(|lines| done(lines?))
        })
    }

    fn send(&self, portion: (&[usize], Form), sender: &mpsc::Sender<Result<Lines, StudyError>>) -> ControlFlow<()> {
        let lines = self.lines(portion.0, portion.1);
        let failed = lines.is_err();
        if sender.send(lines).is_err() || failed { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// The lines of these sets, on this thread.
    ///
    /// # Errors
    /// A set without a prediction.
    pub fn lines(&self, sets: &[usize], form: Form) -> Result<Lines, StudyError> {
        let mut lines = Lines::new();
        for sets in sets.chunk_by(|one, next| self.grid.mapping(*one) == self.grid.mapping(*next)) {
            let networks = sets.iter().map(|set| self.grid.network(&self.networks, *set));
            let networks = networks.collect::<Result<Vec<_>, _>>()?;
            let found = self.found(&networks, &self.options[self.grid.mapping(sets[0])])?;
            lines.extend(sets.iter().zip(&found).map(|(set, found)| (*set, row(form, &self.grid, *set, found))));
        }
        Ok(lines)
    }

    fn found(&self, networks: &[Network], options: &Options) -> Result<Vec<Found>, Error> {
        let Some(level) = self.level else {
            let outcomes = self.prepared(&networks[0], options)?.sweep(networks, options)?;
            return Ok(outcomes.into_iter().map(|outcome| Found { outcome, interval: None }).collect());
        };
        let asked = IntervalOptions { level, ..IntervalOptions::default() };
        let one = |network| {
            let prepared = self.prepared(network, options)?;
            let outcome = prepared.engine()?.run()?;
            let interval = Some(prepared.interval(&outcome, &asked)?);
            Ok(Found { outcome: SetOutcome::from(&outcome), interval })
        };
        networks.iter().map(one).collect()
    }
}
