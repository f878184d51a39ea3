//! Parts of a network that threads solve concurrently: the results are the same as on one thread, bit by bit and in the same
//! order.

use std::fmt::Write as _;

use crate::{
    random_programs::{Numbers, Record, Records, any_groups, any_numbers, explained},
    testing::shared_engine,
};
use flowcast::{
    model::{builtin, sharing::model::Model},
    replay::{
        ReplayEngine,
        observer::{ObservedCollective, Observer, ReceivedMessage, Sent},
        outcome::Outcome,
    },
    trace::slot::Slot,
    units::{Rank, Time},
};
use proptest::prelude::*;

/// All notifications of an observer, in order.
#[derive(Default)]
struct Log(String);

impl Observer for Log {
    fn computed(&mut self, rank: Rank, start: Time, end: Time) {
        writeln!(self.0, "{rank} {start:?} {end:?}").unwrap();
    }

    fn sent(&mut self, rank: Rank, slot: Slot, sent: Sent) {
        writeln!(self.0, "{rank} {slot:?} {sent:?}").unwrap();
    }

    fn moved(&mut self, slot: Slot, start: Time, arrival: Time) {
        writeln!(self.0, "{slot:?} {start:?} {arrival:?}").unwrap();
    }

    fn received(&mut self, rank: Rank, slot: Slot, received: ReceivedMessage) {
        writeln!(self.0, "{rank} {slot:?} {received:?}").unwrap();
    }

    fn gathered(&mut self, rank: Rank, gathered: ObservedCollective) {
        writeln!(self.0, "{rank} {gathered:?}").unwrap();
    }
}

fn observed(engine: &ReplayEngine<'_>) -> (Outcome, String) {
    let mut log = Log::default();
    let outcome = engine.observed(&mut log).unwrap();
    (outcome, log.0)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn parts_solved_side_by_side_give_the_bits_of_one_thread(records in any_groups(100), numbers in any_numbers()) {
        let numbers = Numbers { rendezvous_from: None, per_byte: numbers.per_byte.max(0.01), ..numbers };
        let (program, network) = (records.program(), numbers.network(records.ranks.len()));
        for model in [Model::Fair, Model::DegreeFair, Model::Asymmetric] {
            let alone = shared_engine(&program, &network, model, 1);
            let expected = observed(&alone);
            prop_assert_eq!(&alone.run().unwrap(), &expected.0);
            for threads in [2, 5] {
                let divided = shared_engine(&program, &network, model, threads);
                prop_assert_eq!(&divided.run().unwrap(), &expected.0, "{:?}, {} threads, {} parts", model, threads, divided.parts().unwrap());
                prop_assert_eq!(&observed(&divided), &expected, "{:?}", model);
            }
        }
    }
}

/// Each rank sends to all others of its group, `times` times.
fn all_to_all(groups: usize, size: usize, times: usize) -> Records {
    let mut ranks = vec![Vec::new(); groups * size];
    for (rank, records) in ranks.iter_mut().enumerate() {
        let group = rank / size * size;
        let others: Vec<usize> = (1..size)
            .map(|distance| group + (rank + distance) % size)
            .collect();
        let (tag, comm) = (0, 0);
        for time in 0..times {
            // Few different times, so that many messages end at the same time.
            let compute = 10_000 + 977 * ((rank * 31 + time * 17) % 3) as u64;
            records.push(Record::Compute(compute));
            records.extend(others.iter().map(|from| Record::Irecv {
                from: *from,
                tag,
                comm,
            }));
            records.extend(others.iter().map(|to| Record::Send {
                to: *to,
                bytes: 8192 + 2048 * (to % 3) as u64,
                tag,
                comm,
                sync: false,
                non_blocking: true,
            }));
            records.extend(others.iter().map(|from| Record::Wait {
                from: *from,
                tag,
                comm,
            }));
        }
    }
    let comms = vec![(0..ranks.len()).collect()];
    Records { ranks, comms }
}

#[test]
fn groups_that_exchange_among_themselves_are_parts() {
    let (program, network) = (
        all_to_all(8, 4, 2).program(),
        builtin::network("gige-tcp").unwrap(),
    );
    let parts = |model, threads| {
        shared_engine(&program, &network, model, threads)
            .parts()
            .unwrap()
    };
    assert_eq!(parts(Model::Fair, 1), 1);
    assert_eq!(parts(Model::Fair, 2), 8);
    assert_eq!(parts(Model::Asymmetric, 8), 8);
    let one = all_to_all(1, 12, 2).program();
    assert_eq!(
        shared_engine(&one, &network, Model::Asymmetric, 2)
            .parts()
            .unwrap(),
        1
    );
}

#[test]
fn many_groups_give_the_bits_of_one_thread() {
    let (program, network) = (
        all_to_all(16, 8, 20).program(),
        builtin::network("gige-tcp").unwrap(),
    );
    let expected = observed(&shared_engine(&program, &network, Model::Fair, 1));
    let reasons = explained(&shared_engine(&program, &network, Model::Fair, 1));
    for threads in [2, 3, 8] {
        let divided = shared_engine(&program, &network, Model::Fair, threads);
        assert!(divided.parts().unwrap() > threads);
        assert_eq!(divided.run().unwrap(), expected.0);
        assert!(observed(&divided) == expected);
        assert_eq!(explained(&divided), reasons);
    }
}

#[test]
fn a_deadlock_is_reported_as_on_one_thread() {
    let mut records = all_to_all(4, 4, 20);
    let (tag, comm) = (0, 0);
    for (rank, other) in [(4, 5), (5, 4)] {
        records.ranks[rank].extend([
            Record::Recv {
                from: other,
                tag,
                comm,
            },
            Record::Send {
                to: other,
                bytes: 8,
                tag,
                comm,
                sync: false,
                non_blocking: false,
            },
        ]);
    }
    let (program, network) = (records.program(), builtin::network("gige-tcp").unwrap());
    let alone = shared_engine(&program, &network, Model::Fair, 1);
    let divided = shared_engine(&program, &network, Model::Fair, 2);
    assert_eq!(divided.parts().unwrap(), 4);
    assert_eq!(divided.run(), alone.run());
    assert!(alone.run().unwrap_err().to_string().contains("deadlock"));
}
