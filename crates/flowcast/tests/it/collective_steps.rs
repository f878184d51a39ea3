//! Clocks of single collective operations, compared with the replay of the same operation as a program.

use std::sync::Arc;

use crate::testing::collective;
use flowcast::{
    model::{
        algorithm::{Algorithm, AlgorithmTable, Base, Choice, RuleExtent},
        collective_costs::CollectiveCosts,
        costs::{CostParameters, FittedCosts},
        measured_collectives::{MeasuredCollectives, ResidualSpread},
        network::{LinkRate, MessageRule, Network},
    },
    replay::{costs::Rendezvous, placement::Placement, walk::Replay},
    trace::{
        Program, ReadOptions,
        expand::{NonBlocking, expand},
    },
    units::{Bytes, CollectiveOp, Rate, Time},
};
use flowcast_place::rank_place::RankPlace;
use flowcast_tuning::{
    cases::CollectiveCase, job::JobKey, predict::predict_collectives, step_times::PlacedCase,
};
use proptest::prelude::*;

const OVERHEAD: f64 = 300e-9;
const LATENCY: f64 = 2e-6;

/// One operation of all ranks, each with blocks, or a vector, of `block` bytes.
fn operation(op: CollectiveOp, ranks: u32, block: u64) -> Program {
    use CollectiveOp::*;
    let all = block * u64::from(ranks);
    let (send, receive) = match op {
        Gather | Allgather => (block, all),
        Scatter | ReduceScatter | ReduceScatterBlock => (all, block),
        Alltoall => (all, all),
        Barrier => (0, 0),
        _ => (block, block),
    };
    collective(op, ranks, (send, receive))
}

fn replayed(program: &Program, table: &AlgorithmTable, per_byte: f64) -> f64 {
    let program = expand(
        program,
        table,
        NonBlocking::Expanded,
        ReadOptions::default(),
    )
    .unwrap()
    .program;
    let mut network: Network = flowcast::model::builtin::network("gige-lam").unwrap();
    network.point_to_point.rule = MessageRule::Loggops;
    network.point_to_point.rendezvous_from = None;
    network.nic.latency = Time::from_seconds(LATENCY);
    network.nic.overhead = Time::from_seconds(OVERHEAD);
    network.nic.gap = Time::ZERO;
    network.nic.rate = LinkRate::Goodput(Rate::from_bytes_per_second(1.0 / per_byte).into());
    let placement = Placement::of_program(&network.machine, None, &program).unwrap();
    let replay = Replay::new(&program, &network, placement, Rendezvous::AsRecorded).unwrap();
    replay.run().unwrap().makespan().as_seconds()
}

/// Time from costs of messages only: each message has the same latency, and links between groups have enough capacity.
fn stepped(op: CollectiveOp, ranks: u32, block: u64, table: &AlgorithmTable, per_byte: f64) -> f64 {
    use CollectiveOp::*;
    let extent = RuleExtent {
        ranks,
        bytes: Bytes(block),
        total: Bytes(block * u64::from(ranks)),
    };
    let blocks = match op {
        Barrier | Bcast | Reduce | Allreduce => 1,
        _ => u64::from(ranks),
    };
    let case = CollectiveCase {
        job: JobKey {
            system: String::new(),
            run: String::new(),
            nodes: ranks,
        },
        ranks_per_node: 1,
        library: Base::Mpich,
        op,
        choice: table.choose(op, &extent),
        bytes: Bytes(block * blocks),
    };
    let places: Arc<[RankPlace]> = (0..ranks)
        .map(|rank| RankPlace {
            node: rank,
            switch: rank % 2,
            group: rank % 2,
        })
        .collect();
    let free = CollectiveCosts::from_values(&[0.0; CollectiveCosts::PARAMETERS.len()]);
    let costs = CollectiveCosts {
        send_overhead: OVERHEAD,
        receive_overhead: OVERHEAD,
        switch_latency: LATENCY,
        group_latency: LATENCY,
        global_latency: LATENCY,
        gap: per_byte,
        inline_limit: f64::INFINITY,
        long_from: f64::INFINITY,
        eager_limit: f64::INFINITY,
        memory_ranks: 1.0,
        global_share: 1.0,
        ..free
    };
    let measured = MeasuredCollectives {
        system: String::new(),
        widening: 1.0,
        costs: FittedCosts {
            costs,
            low: costs,
            high: costs,
        },
        spread: ResidualSpread {
            algorithm: 0.0,
            algorithm_here: 0.0,
            operation_here: 0.0,
            run: 0.0,
            shared_node: 0.0,
            single: 0.0,
            disturbance: 0.0,
            sizes: 1.0,
            ranks: 1.0,
        },
        series: Vec::new(),
    };
    let placed = [f64::INFINITY, 1e6].map(|group_links| PlacedCase {
        case: case.clone(),
        places: places.clone(),
        group_links,
    });
    let predictions = predict_collectives(&measured, &placed, 0.9, 1);
    let [time, through_links] = [0, 1].map(|at| predictions[at].predicted);
    assert_eq!(through_links, time, "links that carry all of it");
    time.as_seconds()
}

fn table(op: CollectiveOp, choice: Choice) -> AlgorithmTable {
    AlgorithmTable::from_toml(&format!("[rows]\n{} = ['{choice}']", op.name())).unwrap()
}

/// Algorithms in which a rank receives one message at a time.
fn exchanges() -> Vec<(CollectiveOp, Algorithm)> {
    use Algorithm::*;
    use CollectiveOp::*;
    vec![
        (Allgather, Ring),
        (Allgather, RecursiveDoubling),
        (Allgather, Bruck),
        (Allgather, NeighborExchange),
        (Allreduce, RecursiveDoubling),
        (Allreduce, Ring),
        (Allreduce, Rabenseifner),
        (Alltoall, Pairwise),
        (ReduceScatter, RecursiveHalving),
        (ReduceScatter, Ring),
        (ReduceScatter, Pairwise),
        (Bcast, Binary),
        (Bcast, ScatterRing),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn overheads_and_latencies_add_up_as_in_a_replay(ranks in 2u32..20, block in 1u64..2000) {
        use CollectiveOp::*;
        for op in [Barrier, Bcast, Gather, Scatter, Allgather, Alltoall, Reduce, Allreduce, ReduceScatter] {
            for algorithm in Algorithm::all_for(op) {
                let choice = Choice::plain(*algorithm);
                let table = table(op, choice);
                let (block, per_byte) = (block * u64::from(ranks), 1e-18);
                let replayed = replayed(&operation(op, ranks, block), &table, per_byte);
                let stepped = stepped(op, ranks, block, &table, per_byte);
                prop_assert!((stepped / replayed - 1.0).abs() < 1e-6, "{op:?} {choice} {ranks}: {stepped} {replayed}");
            }
        }
    }

    #[test]
    fn bytes_cost_what_they_cost_in_a_replay(doublings in 1u32..5, block in 1u64..2000) {
        // Other numbers of ranks form pairs whose messages share a port, which the replay does not model.
        let ranks = 1 << doublings;
        for (op, algorithm) in exchanges() {
            let choice = Choice::plain(algorithm);
            let table = table(op, choice);
            let block = block * u64::from(ranks) * 64;
            let replayed = replayed(&operation(op, ranks, block), &table, 1e-9);
            let stepped = stepped(op, ranks, block, &table, 1e-9);
            prop_assert!((stepped / replayed - 1.0).abs() < 1e-3, "{op:?} {choice} {ranks} {block}: {stepped} {replayed}");
        }
    }
}
