//! High Performance Linpack makes the calls that its recordings show, and its traces can be replayed to their end.

mod simulation;
mod solves;

use std::{collections::BTreeMap, str::FromStr};

use flowcast::{
    Options,
    hpl::{ActionPurpose, Broadcast, HplSettings, Pivots, ScriptStep, Swap},
    model::network::Network,
    predict,
    trace::Trace,
    units::Rank,
};
use proptest::prelude::*;

/// The recordings of `tests/data/hpl`, which also describes their origin.
const RECORDED: [(&str, &[u8]); 3] = [
    (
        "binary",
        include_bytes!("../../../../../tests/data/hpl/binary.txt.zst"),
    ),
    (
        "long",
        include_bytes!("../../../../../tests/data/hpl/long.txt.zst"),
    ),
    (
        "mix:24",
        include_bytes!("../../../../../tests/data/hpl/mix-24.txt.zst"),
    ),
];

#[test]
fn every_call_equals_that_of_the_recordings() {
    for (swap, packed) in RECORDED {
        let text = String::from_utf8(zstd::decode_all(packed).unwrap()).unwrap();
        let runs: Vec<&str> = text.split("run ").skip(1).collect();
        assert_eq!(runs.len(), 4 * 3 * 6, "{swap}");
        for run in runs {
            let heading = run.lines().next().unwrap();
            let settings = settings(heading);
            assert_eq!(settings.swap.to_string(), swap);
            let described = solves::text(&settings, &solves::described(settings));
            let described = described.strip_prefix("run ").unwrap();
            let differing = run.lines().zip(described.lines());
            if let Some((recorded, described)) = differing.into_iter().find(|(a, b)| a != b) {
                panic!("run {heading}\nrecorded  {recorded}\ndescribed {described}");
            }
            assert_eq!(run.len(), described.len(), "run {heading}");
        }
    }
}

fn settings(heading: &str) -> HplSettings {
    fn read<T: FromStr<Err: std::fmt::Debug>>(word: &str) -> T {
        word.parse().unwrap()
    }
    let words: Vec<&str> = heading.split(' ').collect();
    let [order, block, rows, columns, depth, broadcast, swap] = words[..] else {
        panic!("{heading}")
    };
    HplSettings {
        order: read(order),
        block: read(block),
        rows: read(rows),
        columns: read(columns),
        depth: read(depth),
        broadcast: read(broadcast),
        swap: read(swap),
    }
}

/// All messages wait for their receivers, so that a cycle of sends would be detected.
fn rendezvous() -> Network {
    let network = flowcast::model::builtin::network("gige-tcp").unwrap();
    let always = ("point_to_point.rendezvous_from".to_owned(), "0B".to_owned());
    network.with_overrides(&[always]).unwrap()
}

/// Sizes of all messages from one rank to another for one purpose, in order.
type Sizes = BTreeMap<(u32, u32, ActionPurpose), Vec<u64>>;

fn check(settings: HplSettings, seed: u64, network: &Network) {
    let script = solves::script(settings, &Pivots::Random { seed });
    let (mut sent, mut received) = (Sizes::new(), Sizes::new());
    for rank in 0..settings.ranks() {
        for step in script.steps(Rank(rank)) {
            let ScriptStep::Exchange(exchange) = step else {
                continue;
            };
            let (peer, purpose) = (exchange.partner, exchange.purpose);
            if let Some(bytes) = exchange.send {
                sent.entry((rank, peer, purpose)).or_default().push(bytes);
            }
            if let Some(bytes) = exchange.receive {
                received
                    .entry((peer, rank, purpose))
                    .or_default()
                    .push(bytes);
            }
        }
    }
    assert_eq!(sent, received, "{settings:?}");
    let messages: usize = sent.values().map(Vec::len).sum();
    let program = script.program().unwrap();
    assert_eq!(program.messages() as usize, messages, "{settings:?}");
    if let Err(error) = predict(&Trace::Program(program), network, &Options::default()) {
        panic!("{settings:?}: {error}");
    }
}

#[test]
fn every_broadcast_and_swap_finishes_at_every_depth() {
    let network = rendezvous();
    for (rows, columns) in [(1, 4), (4, 1), (2, 2), (2, 3), (3, 5), (4, 8)] {
        for depth in 0..3 {
            for broadcast in Broadcast::ALL {
                for swap in [Swap::Binary, Swap::Long, Swap::Mix(12)] {
                    let settings = HplSettings {
                        order: 90,
                        block: 8,
                        rows,
                        columns,
                        depth,
                        broadcast,
                        swap,
                    };
                    check(settings, 1, &network);
                }
            }
        }
    }
}

fn any_settings() -> impl Strategy<Value = HplSettings> {
    let swap = prop_oneof![
        Just(Swap::Binary),
        Just(Swap::Long),
        (0u32..60).prop_map(Swap::Mix)
    ];
    let grid = (1u32..8, 1u32..8);
    (1u64..150, 1u32..20, grid, 0u32..4, 0usize..6, swap).prop_map(
        |(order, block, (rows, columns), depth, broadcast, swap)| {
            let mut settings = HplSettings {
                order,
                block,
                rows,
                columns,
                depth,
                broadcast: Broadcast::ALL[broadcast],
                swap,
            };
            settings.depth = depth.min(settings.panels());
            settings
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn each_send_has_its_receive_and_no_run_deadlocks(settings in any_settings(), seed in any::<u64>()) {
        check(settings, seed, &rendezvous());
    }
}
