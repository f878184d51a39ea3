//! Programs whose collectives have been expanded to messages: their costs, and the parts that stay the same.

use crate::{
    random_programs::{Mode, Record, any_records},
    testing::{collective, program_of},
};
use flowcast::{
    Collectives, Options,
    model::{
        algorithm::{Algorithm, AlgorithmTable, Base},
        network::{LinkRate, MessageRule, Network},
    },
    replay::{ReplayEngine, costs::Rendezvous, placement::Placement, walk::Replay},
    trace::{
        Program, ReadOptions,
        expand::{Expanded, NonBlocking, expand},
        opcodes::Op,
    },
    units::{Bytes, CollectiveOp, Rank, Rate, Time, TimePerByte},
};
use proptest::prelude::*;

const LATENCY: f64 = 2000.0;
const NANOS_PER_BYTE: f64 = 0.5;

fn by(op: CollectiveOp, algorithm: &str) -> AlgorithmTable {
    AlgorithmTable::from_toml(&format!("[rows]\n{} = ['{algorithm}']", op.name())).unwrap()
}

fn expanded(program: &Program, table: &AlgorithmTable) -> Expanded {
    expand(
        program,
        table,
        NonBlocking::Expanded,
        ReadOptions::default(),
    )
    .unwrap()
}

fn hockney() -> Network {
    let mut network = flowcast::model::builtin::network("gige-lam").unwrap();
    network.point_to_point.rule = MessageRule::Hockney;
    network.nic.latency = Time::from_nanos(LATENCY);
    network.nic.rate = LinkRate::Goodput(Rate::from_bytes_per_second(1e9 / NANOS_PER_BYTE).into());
    network
}

fn makespan(program: &Program, network: &Network) -> f64 {
    let placement = Placement::of_program(&network.machine, None, program).unwrap();
    let replay = Replay::new(program, network, placement, Rendezvous::AsRecorded).unwrap();
    replay.run().unwrap().makespan().as_nanos()
}

#[test]
fn each_algorithm_without_contention_takes_the_time_of_the_textbook() {
    use CollectiveOp::*;
    for p in [2u32, 4, 8, 16, 64] {
        let n = 1 << 16;
        let (ranks, log) = (f64::from(p), f64::from(p.ilog2()));
        let message = |bytes: f64| LATENCY + bytes * NANOS_PER_BYTE;
        let vector = n as f64;
        let all = vector * (ranks - 1.0) / ranks * NANOS_PER_BYTE;
        for (op, algorithm, sizes, expected) in [
            (Barrier, "dissemination", (0, 0), log * LATENCY),
            (Barrier, "recursive-doubling", (0, 0), log * LATENCY),
            (Barrier, "linear", (0, 0), 2.0 * LATENCY),
            (Bcast, "binomial", (n, n), log * message(vector)),
            (Bcast, "chain", (n, n), (ranks - 1.0) * message(vector)),
            (
                Bcast,
                "scatter-ring",
                (n, n),
                (log + ranks - 1.0) * LATENCY + 2.0 * all,
            ),
            (
                Bcast,
                "scatter-recursive-doubling",
                (n, n),
                2.0 * log * LATENCY + 2.0 * all,
            ),
            (Reduce, "binomial", (n, n), log * message(vector)),
            (
                Reduce,
                "rabenseifner",
                (n, n),
                2.0 * log * LATENCY + 2.0 * all,
            ),
            (
                Allreduce,
                "recursive-doubling",
                (n, n),
                log * message(vector),
            ),
            (
                Allreduce,
                "ring",
                (n, n),
                2.0 * (ranks - 1.0) * LATENCY + 2.0 * all,
            ),
            (
                Allreduce,
                "rabenseifner",
                (n, n),
                2.0 * log * LATENCY + 2.0 * all,
            ),
            (
                Gather,
                "binomial",
                (n, 0),
                log * LATENCY + (ranks - 1.0) * vector * NANOS_PER_BYTE,
            ),
            (
                Scatter,
                "binomial",
                (0, n),
                log * LATENCY + (ranks - 1.0) * vector * NANOS_PER_BYTE,
            ),
            (Gather, "linear", (n, 0), message(vector)),
            (Allgather, "ring", (n, 0), (ranks - 1.0) * message(vector)),
            (
                Allgather,
                "bruck",
                (n, 0),
                log * LATENCY + (ranks - 1.0) * vector * NANOS_PER_BYTE,
            ),
            (
                Allgather,
                "recursive-doubling",
                (n, 0),
                log * LATENCY + (ranks - 1.0) * vector * NANOS_PER_BYTE,
            ),
            (
                Alltoall,
                "pairwise",
                (n * u64::from(p), 0),
                (ranks - 1.0) * message(vector),
            ),
            (Alltoall, "linear", (n * u64::from(p), 0), message(vector)),
            (
                Alltoall,
                "bruck",
                (n * u64::from(p), 0),
                log * message(vector * ranks / 2.0),
            ),
            (
                ReduceScatter,
                "recursive-halving",
                (0, n),
                log * LATENCY + (ranks - 1.0) * vector * NANOS_PER_BYTE,
            ),
            (
                ReduceScatter,
                "ring",
                (0, n),
                (ranks - 1.0) * message(vector),
            ),
            (Scan, "recursive-doubling", (n, n), log * message(vector)),
            (Scan, "linear", (n, n), (ranks - 1.0) * message(vector)),
        ] {
            let Expanded {
                program,
                uses,
                kept,
            } = expanded(&collective(op, p, sizes), &by(op, algorithm));
            let found = makespan(&program, &hockney());
            assert!(
                (found - expected).abs() < 1e-6 * expected,
                "{op:?} {algorithm} {p}: {found} {expected}"
            );
            assert_eq!(
                (uses.len(), kept, uses[0].messages),
                (1, 0, u64::from(program.messages())),
                "{op:?}"
            );
            assert_eq!(uses[0].bytes, program.bytes());
        }
    }
}

/// Bytes that are combined on the longest path, by Hockney's rule and 1/4 ns/B.
#[test]
fn combining_takes_the_receiver_the_time_of_the_network_file() {
    use CollectiveOp::*;
    let reduction = TimePerByte::from_nanos(0.25);
    for p in [2u32, 4, 8, 16] {
        let n = 1u64 << 16;
        let (ranks, log, vector) = (f64::from(p), f64::from(p.ilog2()), n as f64);
        let share = vector * (ranks - 1.0) / ranks;
        for (op, algorithm, combined) in [
            (Reduce, "binomial", log * vector),
            (Reduce, "rabenseifner", share),
            (Allreduce, "recursive-doubling", log * vector),
            (Allreduce, "rabenseifner", share),
            (Allreduce, "ring", share),
            (Allreduce, "allgather-then-reduce", (ranks - 1.0) * vector),
            (Allreduce, "reduce-then-bcast-tree", log * vector),
            (ReduceScatter, "recursive-halving", (ranks - 1.0) * vector),
            (ReduceScatter, "interleaved-halving", (ranks - 1.0) * vector),
            (Scan, "recursive-doubling", log * vector),
            (Bcast, "scatter-ring", 0.0),
            (Allgather, "bruck", 0.0),
        ] {
            let program = collective(op, p, (n, n));
            let table = by(op, algorithm);
            let costly = AlgorithmTable {
                reduction,
                ..table.clone()
            };
            let network = hockney();
            let time = |table| makespan(&expanded(&program, table).program, &network);
            let (found, expected) = (
                time(&costly) - time(&table),
                combined * reduction.as_nanos(),
            );
            assert!(
                (found - expected).abs() <= 1e-6 * (1.0 + expected),
                "{op:?} {algorithm} {p}: {found} {expected}"
            );
        }
    }
}

#[test]
fn a_prediction_has_the_reduction_of_its_network_under_any_algorithms() {
    let program = collective(CollectiveOp::Allreduce, 4, (1 << 20, 1 << 20));
    let network = hockney();
    let mut costly = network.clone();
    costly.collectives.reduction = Some(TimePerByte::from_nanos(1.0));
    for collectives in [Collectives::Automatic, Collectives::Mpich] {
        let options = Options {
            collectives,
            ..Options::default()
        };
        let times = flowcast::sweep(&program, &[network.clone(), costly.clone()], &options);
        let times: Vec<f64> = times
            .unwrap()
            .iter()
            .map(|outcome| outcome.makespan().as_nanos())
            .collect();
        // Rabenseifner's algorithm combines three quarters of a vector.
        assert_eq!(times[1] - times[0], f64::from(3 << 18));
    }
}

#[test]
fn a_pipeline_takes_as_many_steps_as_ranks_and_pieces() {
    let program = collective(CollectiveOp::Bcast, 5, (1 << 20, 1 << 20));
    let table = by(CollectiveOp::Bcast, "chain segment 64KiB");
    let Expanded { program, uses, .. } = expanded(&program, &table);
    assert_eq!(
        (
            program.messages(),
            uses[0].choice.unwrap().to_string().as_str()
        ),
        (64, "chain segment 64KiB")
    );
    // Without contention all pieces leave at the same time. A link for one message at a time turns them into a pipeline.
    let mut network = hockney();
    network.nic.latency = Time::ZERO;
    network.machine.nodes = vec![flowcast::model::machine::NodeGroup {
        count: 5,
        in_links: 1,
        out_links: 1,
        ..flowcast::model::machine::NodeGroup::default()
    }];
    let placement = Placement::new(&network.machine, None, 5).unwrap();
    let engine =
        flowcast::replay::ReplayEngine::new(&program, &network, placement, Rendezvous::AsRecorded)
            .unwrap();
    let piece = 65536.0 * NANOS_PER_BYTE;
    assert!((engine.run().unwrap().makespan().as_nanos() - (16.0 + 3.0) * piece).abs() < 1.0);
}

/// The pieces of Open MPI's trees: a rank starts the next piece after the previous one has left. With `k` pieces of `S`
/// bytes among `P` ranks, the first piece takes `(P-1) (2o + L + (S-1)G)`. Each further piece takes the time that a rank in
/// the middle needs, `max(g, 2o) + (S-1)G`.
#[test]
fn a_pipeline_follows_the_loggops_formula() {
    let (latency, overhead, piece, pieces) = (3000.0, 400.0, 1000.0, 20u32);
    for gap in [100.0, 2000.0] {
        for ranks in [3u32, 5, 8] {
            let bytes = u64::from(pieces) * 1000;
            let mut network = hockney();
            network.point_to_point.rule = MessageRule::Loggops;
            network.nic.latency = Time::from_nanos(latency);
            network.nic.overhead = Time::from_nanos(overhead);
            network.nic.gap = Time::from_nanos(gap);
            let on_the_wire = (piece - 1.0) * NANOS_PER_BYTE;
            let hop = 2.0 * overhead + latency + on_the_wire;
            let period = gap.max(2.0 * overhead) + on_the_wire;
            let expected = f64::from(ranks - 1) * hop + f64::from(pieces - 1) * period;
            let program = collective(CollectiveOp::Bcast, ranks, (bytes, bytes));
            let program =
                expanded(&program, &by(CollectiveOp::Bcast, "chain segment 1000B")).program;
            let found = makespan(&program, &network);
            assert!(
                (found - expected).abs() < 1e-3,
                "{ranks} {gap}: {found} {expected}"
            );
        }
    }
}

/// Receivers post the next piece while they forward the current one, so that its sender need not wait.
#[test]
fn pieces_flow_while_others_are_sent_on_although_senders_wait_for_receivers() {
    use CollectiveOp::*;
    let (piece, pieces) = (1u64 << 16, 12u32);
    let transfer = piece as f64 * NANOS_PER_BYTE;
    let mut network = hockney();
    network.nic.latency = Time::ZERO;
    for ranks in [3u32, 5, 8] {
        let deep = f64::from(ranks - 1);
        let all = f64::from(pieces);
        for (op, bytes, algorithm, transfers) in [
            (Bcast, piece * 12, "chain segment 64KiB", deep + all - 1.0),
            (Reduce, piece * 12, "chain segment 64KiB", deep + all - 1.0),
            (
                Allreduce,
                piece * 12 * u64::from(ranks),
                "ring segment 64KiB",
                all * deep,
            ),
        ] {
            let program = collective(op, ranks, (bytes, bytes));
            let program = expanded(&program, &by(op, algorithm)).program;
            let placement = Placement::of_program(&network.machine, None, &program).unwrap();
            let replay = Replay::new(&program, &network, placement, Rendezvous::From(Bytes(1)));
            let found = replay.unwrap().run().unwrap().makespan().as_nanos();
            // The ring gathers whole blocks afterwards.
            let gathered = if op == Allreduce { deep * all } else { 0.0 };
            let expected = (transfers + gathered) * transfer;
            assert!(
                (found - expected).abs() < 1e-3,
                "{op:?} {ranks}: {found} {expected}"
            );
        }
    }
}

#[test]
fn ranks_without_bytes_send_no_messages() {
    for op in CollectiveOp::ALL {
        for base in [Base::OpenMpi, Base::Mpich] {
            let Expanded { program, uses, .. } =
                expanded(&collective(op, 6, (0, 0)), &AlgorithmTable::from_base(base));
            assert_eq!(
                program.messages() > 0,
                op == CollectiveOp::Barrier,
                "{op:?}"
            );
            assert_eq!(uses[0].choice.is_none(), op != CollectiveOp::Barrier);
            assert!(makespan(&program, &hockney()) >= 0.0);
        }
    }
}

#[test]
fn blocks_of_different_sizes_keep_their_sizes() {
    let text = "#DIMEMAS:\"v\":0:3(1,1,1),1\nd:1:1:3:2:0:1\n\
        1:0:0:0.0\n10:0:0:3:1:0:0:10:0:1\n10:0:0:5:1:0:0:0:7:1\n10:0:0:9:1:0:0:30:300:1\n\
        1:1:0:0.0\n10:1:0:3:1:1:0:20:36:1\n10:1:0:5:1:1:0:24:8:1\n10:1:0:9:1:0:0:60:200:1\n\
        1:2:0:0.0\n10:2:0:3:1:0:0:6:0:1\n10:2:0:5:1:0:0:0:9:1\n10:2:0:9:1:0:0:90:100:1\n";
    let Expanded { program, uses, .. } =
        expanded(&program_of(text), &AlgorithmTable::from_base(Base::Mpich));
    let sizes = |rank| {
        let sizes = program.ops(Rank(rank)).filter_map(|(_, op)| match op {
            Op::Send { class, .. } => Some(program.classes()[class as usize].size.0),
            _ => None,
        });
        sizes.collect::<Vec<_>>()
    };
    // Rank 0 is second in the communicator 2, 0, 1; rank 1 is the root. The shares of an alltoallv are 100, 300, 200 of 600.
    assert_eq!(
        (sizes(0), sizes(1), sizes(2)),
        (vec![10, 5, 10], vec![9, 7, 30, 10], vec![6, 30, 45])
    );
    assert_eq!(
        uses.iter().map(|used| used.messages).collect::<Vec<_>>(),
        [2, 2, 6]
    );
}

#[test]
fn immediate_collectives_keep_their_formula_where_they_are_to_and_root_synchronous_ones_are_expanded()
 {
    let text = "#DIMEMAS:\"i\":0:2(1,1),1\nd:1:1:2:0:1\n\
        1:0:0:0.0\n10:0:0:10:1:0:0:8:8:3\n10:0:0:8:1:0:0:64:64:0\n10:0:0:0:1:0:0:0:0:2\n\
        1:1:0:0.0\n10:1:0:10:1:0:0:8:0:3\n10:1:0:8:1:0:0:64:64:0\n10:1:0:0:1:0:0:0:0:2\n";
    let whole = program_of(text);
    let table = AlgorithmTable::from_base(Base::Mpich);
    let Expanded {
        program,
        uses,
        kept,
    } = expand(&whole, &table, NonBlocking::Kept, ReadOptions::default()).unwrap();
    assert_eq!(
        (
            program.messages(),
            kept,
            uses.len(),
            program.instances().len()
        ),
        (1, 1, 1, 1)
    );
    assert!(makespan(&program, &hockney()) > 0.0);
    let Expanded {
        program,
        uses,
        kept,
    } = expanded(&whole, &table);
    let non_blocking: Vec<u64> = uses.iter().map(|used| used.non_blocking).collect();
    assert_eq!((program.messages(), kept, non_blocking), (3, 0, vec![1, 0]));
}

/// All records except collectives and their messages.
fn others(program: &Program, rank: Rank) -> Vec<String> {
    let shown = |(record, op): (u32, Op)| match op {
        Op::Send { class, .. } => {
            let class = &program.classes()[class as usize];
            (class.tag > -1000).then(|| format!("{record} {class:?}"))
        }
        Op::Compute(time) => Some(format!("{record} {time}")),
        Op::Event(event) => Some(format!("{record} {:?}", program.events()[event as usize])),
        _ => None,
    };
    program.ops(rank).filter_map(shown).collect()
}

proptest! {
    #[test]
    fn instructions_other_than_collectives_stay_and_the_program_ends(records in any_records(), mpich: bool) {
        let program = records.program();
        let base = if mpich { Base::Mpich } else { Base::OpenMpi };
        let Expanded { program: messages, uses, kept } = expanded(&program, &AlgorithmTable::from_base(base));
        let sent: u64 = uses.iter().map(|used| used.messages).sum();
        prop_assert_eq!(u64::from(messages.messages()), u64::from(program.messages()) + sent);
        prop_assert_eq!(messages.bytes().0, program.bytes().0 + uses.iter().map(|used| used.bytes.0).sum::<u64>());
        prop_assert_eq!(kept, 0);
        for rank in (0..program.ranks() as u32).map(Rank) {
            prop_assert_eq!(others(&messages, rank), others(&program, rank));
        }
        prop_assert!(makespan(&messages, &hockney()) >= 0.0);
        let non_blocking = |record: &Record| matches!(record, Record::Collective { mode: Mode::NonBlocking, .. });
        prop_assert_eq!(messages.streams() > program.ranks(), records.ranks.iter().flatten().any(non_blocking));
        prop_assert_eq!(uses.iter().any(|used| used.non_blocking > 0), records.ranks.iter().flatten().any(non_blocking));
    }

    #[test]
    fn both_engines_agree_on_expanded_collectives(
        which in (0usize..16, 0usize..8), ranks in 2u32..20, bytes in (0u64..100_000, 0u64..100_000),
    ) {
        let op = CollectiveOp::ALL[which.0];
        let algorithms = Algorithm::all_for(op);
        let table = by(op, algorithms[which.1 % algorithms.len()].name());
        let Expanded { program, .. } = expanded(&collective(op, ranks, bytes), &table.with_base());
        let network = hockney();
        let placement = Placement::new(&network.machine, None, program.ranks()).unwrap();
        let event_driven = ReplayEngine::limited(Replay::new(&program, &network, placement, Rendezvous::AsRecorded).unwrap(), &network);
        prop_assert_eq!(event_driven.run().unwrap().makespan().as_nanos(), makespan(&program, &network));
    }

    #[test]
    fn threads_change_nothing(records in any_records()) {
        let program = records.program();
        let table = AlgorithmTable::from_base(Base::OpenMpi);
        let one = expanded(&program, &table).program;
        let many = expand(&program, &table, NonBlocking::Expanded, ReadOptions { threads: 3 }).unwrap().program;
        for rank in (0..one.streams() as u32).map(Rank) {
            prop_assert_eq!(one.words(rank), many.words(rank));
        }
    }
}
