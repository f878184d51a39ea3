//! Sets dealt to threads; each thread replays several sets in one walk.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use anyhow::Result;
use flowcast::model::network::Network;
use flowcast::replay::sweep::WIDEST;
use flowcast::trace::Program;
use flowcast::{Options, sweep};

use super::grid::Grid;
use super::rows::{Form, row};

/// Lanes of a walk fill up in steps of this many sets.
const STEP: usize = 8;

/// A sweep to do.
pub(super) struct Work<'a> {
    pub program: &'a Program,
    pub network: &'a Network,
    pub grid: &'a Grid,
    pub form: Form,
    pub options: &'a Options,
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
        let networks = sets.iter().map(|set| self.grid.network(self.network, *set)).collect::<Result<Vec<_>>>()?;
        let outcomes = sweep(self.program, &networks, self.options)?;
        let line = |(set, outcome): (&usize, _)| (*set, row(self.form, self.grid, *set, outcome));
        Ok(sets.iter().zip(&outcomes).map(line).collect())
    }
}
