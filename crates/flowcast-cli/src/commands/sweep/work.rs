//! Sets dealt to threads; each thread replays several sets in one walk.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use anyhow::Result;
use flowcast::model::network::Network;
use flowcast::replay::sweep::SetOutcome;
use flowcast::replay::sweep::WIDEST;
use flowcast::{IntervalOptions, Options, PreparedProgram};

use super::grid::Grid;
use super::rows::{Form, Found, row};

/// Lanes of a walk fill up in steps of this many sets.
const STEP: usize = 8;

/// A sweep to do.
pub(super) struct Work<'a> {
    pub prepared: &'a PreparedProgram<'a>,
    pub networks: &'a [Network],
    /// One for each mapping.
    pub options: &'a [Options],
    pub grid: &'a Grid,
    pub form: Form,
    /// Probability with which intervals hold what is measured, if they are asked for.
    pub level: Option<f64>,
}

type Lines = Vec<(usize, String)>;

impl Work<'_> {
    /// Replays these sets; `done` gets the lines of several at a time, in the order in which they are finished.
    pub(super) fn run(&self, sets: &[usize], threads: usize, mut done: impl FnMut(Lines) -> Result<()>) -> Result<()> {
        let share = sets.len().div_ceil(threads).next_multiple_of(STEP).clamp(STEP, 2 * WIDEST);
        let portions: Vec<&[usize]> = sets.chunks(share).collect();
        let next = AtomicUsize::new(0);
        let (sender, receiver) = mpsc::channel();
        std::thread::scope(|scope| {
            for _ in 0..threads.min(portions.len()) {
                let (sender, next, portions) = (sender.clone(), &next, &portions);
                scope.spawn(move || {
                    while let Some(portion) = portions.get(next.fetch_add(1, Ordering::Relaxed)) {
                        if self.send(portion, &sender).is_break() {
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

    fn send(&self, portion: &[usize], sender: &mpsc::Sender<Result<Lines>>) -> ControlFlow<()> {
        let lines = self.lines(portion);
        let failed = lines.is_err();
        if sender.send(lines).is_err() || failed { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn lines(&self, sets: &[usize]) -> Result<Lines> {
        let mut lines = Vec::new();
        for sets in sets.chunk_by(|one, next| self.grid.mapping(*one) == self.grid.mapping(*next)) {
            let networks = sets.iter().map(|set| self.grid.network(self.networks, *set)).collect::<Result<Vec<_>>>()?;
            let found = self.found(&networks, &self.options[self.grid.mapping(sets[0])])?;
            lines.extend(sets.iter().zip(&found).map(|(set, found)| (*set, row(self.form, self.grid, *set, found))));
        }
        Ok(lines)
    }

    fn found(&self, networks: &[Network], options: &Options) -> Result<Vec<Found>> {
        let Some(level) = self.level else {
            let outcomes = self.prepared.sweep(networks, options)?;
            return Ok(outcomes.into_iter().map(|outcome| Found { outcome, interval: None }).collect());
        };
        let asked = IntervalOptions { level, ..IntervalOptions::default() };
        let one = |network| {
            let prepared = self.prepared.moved(network, options)?;
            let outcome = prepared.engine()?.run()?;
            let interval = Some(prepared.interval(&outcome, &asked)?);
            Ok(Found { outcome: SetOutcome::from(&outcome), interval })
        };
        networks.iter().map(one).collect()
    }
}
