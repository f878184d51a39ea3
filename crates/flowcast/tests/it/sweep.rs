//! A sweep compared with one replay for each network: equal to the bit, for any program and networks.

use crate::{
    random_programs::{Numbers, any_numbers, any_records},
    testing::program_of,
};
use flowcast::{
    replay::sweep::{SetOutcome, WhatIf, run},
    trace::Program,
};
use proptest::prelude::*;

fn what_if(numbers: &Numbers, program: &Program) -> WhatIf {
    let from = numbers.rendezvous_from.map(flowcast::units::Bytes);
    WhatIf::new(program, numbers.network(program.ranks()), None, from).unwrap()
}

/// Networks that usually share a walk: one rule, one placement, one rendezvous threshold, other numbers.
fn any_sets() -> impl Strategy<Value = Vec<Numbers>> {
    let sets = prop_oneof![4 => 2usize..9, 1 => 9usize..40];
    (any_numbers(), sets, any::<bool>()).prop_flat_map(|(first, sets, alike)| {
        proptest::collection::vec(any_numbers(), sets).prop_map(move |mut sets| {
            for set in sets.iter_mut().filter(|_| alike) {
                set.rendezvous_from = first.rendezvous_from;
                set.ranks_per_node = first.ranks_per_node;
            }
            sets
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn every_lane_is_equal_to_a_replay_of_its_own(records in any_records(), sets in any_sets()) {
        let program = records.program();
        let what_ifs: Vec<WhatIf> = sets.iter().map(|numbers| what_if(numbers, &program)).collect();
        let outcomes = run(&program, &what_ifs).unwrap();
        prop_assert_eq!(outcomes.len(), sets.len());
        for (numbers, swept) in sets.iter().zip(&outcomes) {
            let alone = numbers.replay(&program).run().unwrap();
            let bits = |times: &[flowcast::units::Time]| times.iter().map(|time| time.as_nanos().to_bits()).collect::<Vec<_>>();
            let alone = SetOutcome::from(&alone);
            prop_assert_eq!(bits(&swept.ends), bits(&alone.ends), "{:?}", numbers);
            prop_assert_eq!(bits(&swept.computes), bits(&alone.computes), "{:?}", numbers);
        }
    }
}

#[test]
fn a_deadlock_is_reported_as_in_a_replay() {
    let text = "#DIMEMAS:\"dead\":0:2(1,1),1\nd:1:1:2:0:1\n3:0:0:1:-1:0:0:1:0\n2:0:0:1:-1:8:0:1:0\n\
                3:1:0:0:-1:0:0:1:0\n2:1:0:0:-1:8:0:1:0\n";
    let program = program_of(text);
    let network = flowcast::model::builtin::network("gige-tcp").unwrap();
    let sets: Vec<WhatIf> = (0..3)
        .map(|_| WhatIf::new(&program, network.clone(), None, None).unwrap())
        .collect();
    let expected = sets[0].replay(&program).unwrap().run().unwrap_err();
    assert_eq!(run(&program, &sets).unwrap_err(), expected);
    assert!(
        expected.to_string().starts_with("deadlock, 2 ranks wait"),
        "{expected}"
    );
}

#[test]
fn networks_with_limits_are_replayed_as_the_engine_for_limits_does() {
    let program = program_of(
        "#DIMEMAS:\"two\":0:3(1,1,1),1\nd:1:1:3:0:1:2\n2:0:0:2:-1:100000:0:1:0\n2:1:0:2:-1:100000:0:1:0\n\
         3:2:0:0:-1:0:0:1:0\n3:2:0:1:-1:0:0:1:0\n",
    );
    let network = flowcast::model::builtin::network("gige-tcp").unwrap();
    let with_buses = |buses: u32| {
        let mut network = network.clone();
        network.machine.buses = buses;
        WhatIf::new(&program, network, None, None).unwrap()
    };
    let sets: Vec<WhatIf> = [0, 1, 0, 2].map(with_buses).into();
    let outcomes = run(&program, &sets).unwrap();
    for (set, swept) in sets.iter().zip(&outcomes) {
        assert_eq!(
            *swept,
            SetOutcome::from(&set.replay(&program).unwrap().run().unwrap())
        );
    }
    assert!(outcomes[1].makespan() > outcomes[0].makespan());
    assert_eq!(outcomes[0], outcomes[2]);
}
