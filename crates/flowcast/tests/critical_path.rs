//! The critical path adds up to the makespan, and it is what limits: costs on it cannot grow without the makespan.

mod random_programs;

use flowcast::simulate::critical_path::{CriticalPath, Limit};
use flowcast::trace::Program;
use flowcast::units::Time;
use proptest::prelude::*;
use random_programs::{Numbers, any_numbers, any_records};

fn makespan(numbers: &Numbers, program: &Program) -> f64 {
    numbers.replay(program).run().unwrap().makespan().as_nanos()
}

fn share(path: &CriticalPath, limit: Limit) -> f64 {
    path.shares().iter().filter(|share| share.limit == limit).map(|share| share.time.as_nanos()).sum()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn the_steps_fill_the_makespan_and_none_is_without_cause(records in any_records(), numbers in any_numbers()) {
        let program = records.program();
        let replay = numbers.replay(&program);
        let (outcome, recorder) = replay.record().unwrap();
        let path = replay.critical_path(&recorder);
        prop_assert_eq!(path.makespan, outcome.makespan());
        let mut at = Time::ZERO;
        for step in &path.steps {
            prop_assert_eq!(step.start, at);
            prop_assert!(step.end > step.start);
            at = step.end;
        }
        prop_assert_eq!(at, path.makespan);
        prop_assert_eq!(share(&path, Limit::Other), 0.0, "{:?}", path);
        let total = |times: Vec<Time>| times.into_iter().sum::<Time>().as_nanos();
        let nearly = path.makespan.as_nanos() * (1.0 + 1e-12)..=path.makespan.as_nanos() * (1.0 + 1e-12);
        for sum in [
            total(path.shares().iter().map(|share| share.time).collect()),
            total(path.ranks().iter().map(|(_, time)| *time).collect()),
        ] {
            prop_assert!((sum - path.makespan.as_nanos()).abs() <= *nearly.end() * 1e-12, "{sum}");
        }
    }

    #[test]
    fn whatever_the_path_is_spent_on_cannot_cost_more_without_delay(records in any_records(), numbers in any_numbers()) {
        let program = records.program();
        let replay = numbers.replay(&program);
        let (outcome, recorder) = replay.record().unwrap();
        let path = replay.critical_path(&recorder);
        let before = outcome.makespan().as_nanos();
        let part = |limit| share(&path, limit);
        let slower = 1.25;
        let grown = [
            (Numbers { speed: numbers.speed / slower, ..numbers }, part(Limit::Compute)),
            (
                Numbers { per_byte: numbers.per_byte * slower, inside_rate: numbers.inside_rate / slower, ..numbers },
                part(Limit::Bandwidth),
            ),
            (
                Numbers {
                    latency: numbers.latency * slower,
                    inside_latency: numbers.inside_latency * slower,
                    overhead: numbers.overhead * slower,
                    ..numbers
                },
                part(Limit::Latency) + part(Limit::Overhead),
            ),
            (Numbers { gap: numbers.gap * slower, ..numbers }, part(Limit::Gap)),
        ];
        for (numbers, share) in grown {
            let bound = before + share * (slower - 1.0);
            let after = makespan(&numbers, &program);
            // Start-ups of collectives are counted in whole nanoseconds.
            prop_assert!(after >= bound * (1.0 - 1e-9) - 60.0, "{after} < {bound}: {path:?}");
        }
    }
}
