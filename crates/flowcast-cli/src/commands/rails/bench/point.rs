//! One N and size of `flowcast rails bench`, which is visited once in each round.

use anyhow::Result;
use flowcast::{
    scheduler::{
        RailSet,
        guard::{Guard, GuardRule},
        split::SplitRule,
    },
    statistics::sample::median,
    units::{Bytes, Time},
};
use flowcast_rails::{
    exchange::{ExchangeTest, exchange},
    link::RailLink,
};

use super::Bench;
use crate::commands::rails::{
    chosen::{Chosen, Subject},
    serve::exchange_error,
};

/// Number of blocks into which a guarded subject divides the exchanges of a visit. It decides before each block.
const BLOCKS: u32 = 4;
/// Maximum number of exchanges of a visit.
const LONGEST: u32 = 200;

/// A point, with its state between two rounds.
pub(super) struct PointRun<'a> {
    subjects: &'a [Subject],
    split: SplitRule,
    once: ExchangeTest,
    lasts: Time,
    /// Number of exchanges of a visit, by subject. `None` before its first visit.
    repetitions: Vec<Option<u32>>,
    guard: Guard,
}

impl<'a> PointRun<'a> {
    /// State before the first round.
    pub(super) fn new(
        bench: &Bench,
        subjects: &'a [Subject],
        (messages, size): (u32, Bytes),
    ) -> PointRun<'a> {
        PointRun {
            subjects,
            split: bench.split_from,
            once: ExchangeTest {
                messages,
                size,
                repetitions: 1,
            },
            lasts: bench.span,
            repetitions: vec![None; subjects.len()],
            guard: Guard::new(RailSet::first(bench.rails.len()), GuardRule::default()),
        }
    }

    /// Measures every subject once and returns the median one-way times.
    pub(super) fn visit(&mut self, link: &mut RailLink, round: usize) -> Result<Vec<Time>> {
        let count = self.subjects.len();
        let mut one_way = vec![Time::ZERO; count];
        // The first subject rotates from round to round, so that the successor of a slow subject is not always the same.
        for index in (0..count).map(|place| (place + round) % count) {
            let subject = &self.subjects[index];
            let repetitions = match self.repetitions[index] {
                Some(repetitions) => repetitions,
                None => self.warm_up(link, index)?,
            };
            let times = self.run(link, subject, repetitions)?;
            let micros: Vec<f64> = times.iter().map(|time| time.as_micros() / 2.0).collect();
            one_way[index] = Time::from_micros(median(&micros)?);
        }
        Ok(one_way)
    }

    /// Sets the number of exchanges from the time of two, and lets a guard make its first measurements.
    fn warm_up(&mut self, link: &mut RailLink, index: usize) -> Result<u32> {
        let subject = &self.subjects[index];
        let times = self.exchanged(link, subject, subject.rails, 2)?;
        let last = times.last().copied().unwrap_or(self.lasts);
        let repetitions = ((self.lasts.as_nanos() / last.as_nanos()) as u32).clamp(1, LONGEST);
        self.repetitions[index] = Some(repetitions);
        while subject.chosen == Chosen::Guarded && !self.guard.has_measured_all() {
            self.block(link, subject, repetitions.div_ceil(BLOCKS))?;
        }
        Ok(repetitions)
    }

    /// Measures a subject. A guarded one decides before each block; all others run without interruption.
    fn run(
        &mut self,
        link: &mut RailLink,
        subject: &Subject,
        repetitions: u32,
    ) -> Result<Vec<Time>> {
        if subject.chosen != Chosen::Guarded {
            return self.exchanged(link, subject, subject.rails, repetitions);
        }
        let block = repetitions.div_ceil(BLOCKS) as usize;
        let mut times = Vec::new();
        while times.len() < repetitions as usize {
            let rest = block.min(repetitions as usize - times.len());
            times.extend(self.block(link, subject, rest as u32)?);
        }
        Ok(times)
    }

    fn block(
        &mut self,
        link: &mut RailLink,
        subject: &Subject,
        repetitions: u32,
    ) -> Result<Vec<Time>> {
        let arm = self.guard.choose();
        let times = self.exchanged(link, subject, arm.rails(subject.rails), repetitions)?;
        let took = times.iter().fold(Time::ZERO, |sum, time| sum + *time);
        self.guard
            .observe(arm, took, Time::from_micros(f64::from(repetitions)));
        Ok(times)
    }

    /// Times of exchanges over these rails.
    fn exchanged(
        &self,
        link: &mut RailLink,
        subject: &Subject,
        rails: RailSet,
        repetitions: u32,
    ) -> Result<Vec<Time>> {
        let test = ExchangeTest {
            repetitions,
            ..self.once
        };
        let course = subject.chosen.course(rails, self.split);
        exchange(link, course, test).map_err(exchange_error)
    }
}
