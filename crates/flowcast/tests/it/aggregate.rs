//! Messages that are sent together: programs stay valid, bytes stay the same, and combined messages cost as much as one
//! message.

use crate::{
    random_programs::any_records,
    testing::{all, dim, program_of},
};
use flowcast::{
    Collectives, Contention, Options,
    model::sharing::model::Model,
    predict,
    trace::{Program, Trace, aggregate::aggregated, compiled, opcodes::Op},
    units::{Bytes, Rank},
};
use proptest::prelude::*;

/// Ranks 0 and 1 of a `.dim` trace.
fn two_ranks(first: &str, second: &str) -> Program {
    program_of(dim(&[all(2)], &[first, second]))
}

fn makespan(program: &Program) -> f64 {
    let network = flowcast::model::builtin::network("gige-tcp").unwrap();
    let contention = Contention::Shared(Model::Independent);
    let options = Options {
        contention,
        collectives: Collectives::Formula,
        ..Options::default()
    };
    predict(&Trace::Program(program.clone()), &network, &options)
        .unwrap()
        .outcome
        .makespan()
        .as_seconds()
}

fn sent_bytes(program: &Program) -> u64 {
    let ops = (0..program.streams() as u32).flat_map(|stream| program.ops(Rank(stream)));
    let sizes = ops.map(|(_, op)| match op {
        Op::Send { class, .. } => program.classes()[class as usize].size.0,
        _ => 0,
    });
    sizes.sum()
}

#[test]
fn three_messages_cost_what_one_of_their_bytes_costs() {
    let sends = |sizes: &[u32]| {
        sizes
            .iter()
            .map(|size| format!("2:1:-1:{size}:7:1:0"))
            .collect::<Vec<_>>()
            .join(" ")
    };
    let (three, one) = (sends(&[100, 200, 300]), sends(&[600]));
    let receive = |sizes: &[u32]| {
        sizes
            .iter()
            .map(|size| format!("3:0:-1:{size}:7:1:0"))
            .collect::<Vec<_>>()
            .join(" ")
    };
    let apart = two_ranks(&three, &receive(&[100, 200, 300]));
    let together = aggregated(&apart, Bytes(600));
    assert_eq!((apart.messages(), together.messages()), (3, 1));
    assert_eq!(
        makespan(&together),
        makespan(&two_ranks(&one, &receive(&[600])))
    );
    assert_eq!(aggregated(&apart, Bytes(599)).messages(), 2);
    // With receives posted before, the first one that is waited for waits.
    let posted =
        "3:0:-1:100:7:1:1 3:0:-1:200:7:1:1 3:0:-1:300:7:1:0 3:0:-1:100:7:1:2 3:0:-1:200:7:1:2";
    let posted = aggregated(&two_ranks(&three, posted), Bytes(600));
    assert_eq!(
        (posted.messages(), makespan(&posted)),
        (1, makespan(&together))
    );
    let ops: Vec<Op> = posted
        .ops(Rank(1))
        .map(|(_, op)| op)
        .filter(|op| *op != Op::Nothing)
        .collect();
    assert_eq!(ops, [Op::Irecv, Op::WaitRecv(0)]);
}

#[test]
fn a_computation_between_keeps_messages_apart() {
    let sends = "2:1:-1:8:7:1:0 1:0.000001 2:1:-1:8:7:1:0";
    let apart = two_ranks(sends, "3:0:-1:8:7:1:0 3:0:-1:8:7:1:0");
    assert_eq!(aggregated(&apart, Bytes(1 << 20)).messages(), 2);
}

proptest! {
    #[test]
    fn an_aggregated_program_is_valid_and_has_the_same_bytes(records in any_records(), up_to in 0u64..100_000) {
        let program = records.program();
        let together = aggregated(&program, Bytes(up_to));
        prop_assert!(together.messages() <= program.messages());
        prop_assert_eq!(sent_bytes(&together), sent_bytes(&program));
        // The reader checks the compiled program.
        let mut file = Vec::new();
        compiled::write(&Trace::Program(together.clone()), &mut file).unwrap();
        let read = program_of(file);
        prop_assert_eq!(makespan(&read), makespan(&together));
        // Only empty messages cannot be combined.
        if program.classes().iter().all(|class| class.size > Bytes(0)) {
            prop_assert_eq!(makespan(&aggregated(&program, Bytes(0))), makespan(&program));
        }
    }
}
