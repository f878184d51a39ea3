//! Invalid traces: each fault is reported with its place, the text found and the text expected; nothing panics.

use crate::{
    mutations::{any_mutations, mutate},
    random_programs::Numbers,
    testing::{all, dim_head},
};
use flowcast::{
    model::network::MessageRule,
    replay::{
        loggops::{self, Loggops},
        observer::Unobserved,
        outcome::Outcome,
    },
    trace::{Trace, compiled},
};
use proptest::prelude::*;

const NUMBERS: Numbers = Numbers {
    rule: MessageRule::Dimemas,
    latency: 1000.0,
    per_byte: 1.0,
    overhead: 100.0,
    gap: 10.0,
    inside_latency: 10.0,
    inside_rate: 1e9,
    speed: 1.0,
    ranks_per_node: 2,
    rendezvous_from: None,
};

/// Predicts like `flowcast predict`, without printing.
fn predict(text: impl AsRef<[u8]>) -> Result<Outcome, String> {
    match flowcast::read_text("t", text.as_ref().to_vec()).map_err(|error| error.to_string())? {
        Trace::Program(program) => NUMBERS
            .replay(&program)
            .run()
            .map_err(|error| error.to_string()),
        Trace::Schedule(schedule) => {
            let parameters = Loggops::from_network(&NUMBERS.network(1));
            loggops::placed(&schedule, parameters.into(), &mut Unobserved)
                .map_err(|error| error.to_string())
        }
        Trace::Folded(_) => Err("loops, which no text has".to_owned()),
    }
}

/// The header and the communicator of all ranks occupy lines 1 and 2.
fn dim(ranks: usize, records: &str) -> String {
    dim_head(ranks, &[all(ranks)]) + records
}

#[track_caller]
fn assert_told(text: &str, parts: &[&str]) {
    let message = predict(text).expect_err(text);
    for part in parts {
        assert!(
            message.contains(part),
            "expected `{part}` in\n{message}\nfor\n{text}"
        );
    }
}

const DIM: &str = "1:0:0:0.000001000\n20:0:0:50000001:1\n2:0:0:1:-1:80:7:1:2\n3:0:0:1:-1:90:8:1:1\n3:0:0:1:-1:90:8:1:2\n\
    10:0:0:0:1:1:0:0:0:1\n1:1:0:0.000002000\n3:1:0:0:-1:80:7:1:0\n2:1:0:0:-1:90:8:1:1\n10:1:0:0:1:0:0:0:0:1\n";

const GOAL: &str = "num_ranks 2\n\nrank 0 {\nl1: calc 1000\nl2: send 80b to 1 tag 7\nl3: recv 90b from 1 tag 8 cpu 0 nic 0\n\
    l2 requires l1\nl3 irequires l2\n}\n\nrank 1 {\nl1: recv 80b from 0 tag 7\nl2: send 90b to 0 tag 8\nl2 requires l1\n}\n";

const TI: &str = "0 init\n0 compute 1000\n0 isend 1 7 80 0\n0 irecv 1 8 90 0\n0 waitall\n0 allreduce 10 5 0\n0 finalize\n\
    1 init\n1 recv 0 7 80 0\n1 send 0 8 90 0\n1 allreduce 10 5 0\n1 finalize\n";

#[test]
fn the_traces_of_these_tests_are_right_before_they_are_damaged() {
    for text in [dim(2, DIM), GOAL.to_owned(), TI.to_owned()] {
        let outcome = predict(&text).unwrap();
        assert_eq!((outcome.messages, outcome.ranks.len()), (2, 2), "{text}");
    }
}

#[test]
fn a_deadlock_is_reported_as_a_cycle_with_the_places_of_its_records() {
    let receive_first =
        "3:0:0:1:-1:8:0:1:0\n2:0:0:1:-1:8:0:1:0\n3:1:0:0:-1:8:0:1:0\n2:1:0:0:-1:8:0:1:0\n";
    assert_told(
        &dim(2, receive_first),
        &[
            "deadlock, 2 ranks wait",
            "t:3: rank 0 waits for a message from rank 1",
            "t:5: rank 1 waits for a message from rank 0",
            "rank 0 closes the cycle",
        ],
    );
    let send_first =
        "2:0:0:1:-1:8:0:1:1\n3:0:0:1:-1:8:0:1:0\n2:1:0:0:-1:8:0:1:1\n3:1:0:0:-1:8:0:1:0\n";
    assert_told(
        &dim(2, send_first),
        &[
            "t:3: rank 0 waits for rank 1 to receive",
            "t:5: rank 1",
            "closes the cycle",
        ],
    );
    assert_told(
        "0 recv 1 0 8\n0 send 1 0 8\n1 recv 0 0 8\n1 send 0 0 8\n",
        &[
            "t:1: rank 0 waits for a message from rank 1",
            "t:3: rank 1",
            "closes the cycle",
        ],
    );
    assert_told(
        "num_ranks 2\nrank 0 {\na: recv 8b from 1\nb: send 8b to 1\nb requires a\n}\n\
         rank 1 {\na: recv 8b from 0\nb: send 8b to 0\nb requires a\n}\n",
        &[
            "t:3: rank 0 waits for a message from rank 1",
            "t:8: rank 1",
            "closes the cycle",
        ],
    );
}

#[test]
fn a_rank_that_waits_for_a_non_blocking_send_is_reported_with_the_size_of_its_message() {
    let text = "0 send 1 6 8\n0 isend 1 7 300000\n0 waitall\n0 send 1 9 8\n1 recv 0 6 8\n1 recv 0 9 8\n1 recv 0 7 300000\n";
    let Trace::Program(program) = flowcast::read_text("t", text).unwrap() else {
        panic!("found a schedule")
    };
    let numbers = Numbers {
        rendezvous_from: Some(65536),
        ..NUMBERS
    };
    let message = numbers.replay(&program).run().unwrap_err().to_string();
    assert!(
        message.contains("t:3: rank 0 waits for rank 1 to receive its message (300000 bytes"),
        "{message}"
    );
    assert!(
        message.contains("t:6: rank 1 waits for a message from rank 0 (tag 9"),
        "{message}"
    );
}

#[test]
fn a_rank_that_waits_at_a_collective_for_one_that_waits_for_it_closes_a_cycle() {
    let records =
        "10:0:0:0:1:1:0:0:0:1\n2:0:0:1:-1:8:0:1:0\n3:1:0:0:-1:8:0:1:0\n10:1:0:0:1:0:0:0:0:1\n";
    assert_told(
        &dim(2, records),
        &[
            "t:3: rank 0 waits for rank 1 in a collective",
            "t:5: rank 1",
            "closes the cycle",
        ],
    );
}

#[test]
fn messages_without_counterpart_are_reported_with_the_remaining_record() {
    let send = "2:0:0:1:-1:8:0:1:0\n";
    let recv = "3:1:0:0:-1:8:0:1:0\n";
    assert_told(
        &dim(2, &format!("{send}{send}1:0:0:1.0\n{recv}")),
        &["t:4: ", "2 sends", "and 1 receive", "expected a receive"],
    );
    assert_told(
        &dim(2, &format!("{send}{recv}{recv}")),
        &["t:5: ", "2 receives", "and 1 send", "expected a send"],
    );
    assert_told(
        &dim(2, "3:1:0:0:-1:8:0:1:1\n"),
        &["t:3: ", "1 receive ", "and 0 sends"],
    );
    assert_told("0 send 1 0 8\n1 init\n", &["t:1: ", "and 0 receives"]);
    assert_told("0 init\n1 irecv 0 0 8\n", &["t:2: ", "and 0 sends"]);
    assert_told(
        "num_ranks 2\nrank 0 {\nsend 8b to 1\n}\nrank 1 {\n}\n",
        &["t:3: ", "without a receive"],
    );
    assert_told(
        "num_ranks 2\nrank 0 {\n}\nrank 1 {\nrecv 8b from 0\n}\n",
        &["t:5: ", "without a send"],
    );
    assert_told(
        "num_ranks 2\nrank 0 {\nsend 8b to 1 tag 3\n}\nrank 1 {\nrecv 8b from 0 tag 4\n}\n",
        &["t:6: ", "without a send"],
    );
}

#[test]
fn unknown_ranks_are_reported_with_the_existing_ones() {
    assert_told(
        &dim(2, "2:0:0:2:-1:8:0:1:0\n"),
        &["t:3: found task 2, expected a task from 0 to 1"],
    );
    assert_told(
        &dim(2, "3:1:0:-1:-1:8:0:1:0\n"),
        &["t:3: found task -1, expected a task from 0 to 1"],
    );
    assert_told(&dim(2, "1:2:0:1.0\n"), &["t:3: ", "tasks 0 to 1"]);
    assert_told(
        &dim(2, "10:0:0:0:1:2:0:0:0:3\n"),
        &["t:3: found root task 2"],
    );
    assert_told(
        &dim(2, "").replace(":0:1\n", ":0:2\n"),
        &["t:2: found task 2"],
    );
    assert_told("0 send 2 0 8\n1 init\n", &["t:1: ", "a rank of the trace"]);
    assert_told(
        "0 bcast 8 5\n1 bcast 8 5\n",
        &["t:1: ", "a rank of the trace"],
    );
    assert_told("0 init\n2 init\n", &["t: ", "rank 1"]);
    assert_told(
        "num_ranks 2\nrank 0 {\nsend 8b to 2\n}\n",
        &["t:3: found rank `2`, expected a rank below 2"],
    );
    assert_told(
        "num_ranks 2\nrank 2 {\n}\n",
        &["t:2: found rank `2`, expected a rank below 2"],
    );
}

#[test]
fn impossible_numbers_are_refused_with_their_place() {
    for burst in [
        "nan", "-1.0", "inf", "1e400", "1e300", "", "1.0.0", "0x10", "١",
    ] {
        assert_told(
            &dim(1, &format!("0:0:0\n1:0:0:{burst}\n")),
            &["t:4: ", "a time in seconds"],
        );
    }
    assert_told(
        &dim(2, "2:0:0:1:-1:-8:0:1:0\n"),
        &["t:3: found size -8, expected a size of at least 0"],
    );
    assert_told(&dim(2, "10:0:0:0:1:1:0:0:-4:1\n"), &["t:3: found size -4"]);
    assert_told(
        &dim(2, "2:0:0:1:-1:99999999999999999999:0:1:0\n"),
        &["t:3: "],
    );
    assert_told(
        &dim(2, "2:0:0:1:-1:8:99999999999:1:0\n"),
        &["t:3: ", "32-bit number"],
    );
    for flops in ["nan", "-5", "inf", "1e300", "x"] {
        assert_told(&format!("0 compute {flops}\n"), &["t:1: ", "compute FLOPS"]);
        assert_told(&format!("0 sleep {flops}\n"), &["t:1: ", "sleep SECONDS"]);
        assert_told(
            &format!("num_ranks 1\nrank 0 {{\ncalc {flops}\n}}\n"),
            &["t:3: ", "calc NANOSECONDS"],
        );
        assert_told(
            &format!("0 allreduce 8 {flops}\n"),
            &["t:1: ", "a reduction"],
        );
    }
    assert_told("0 send 0 0 -8\n", &["t:1: ", "send DESTINATION TAG COUNT"]);
    assert_told("0 send 0 0 nan\n", &["t:1: ", "send DESTINATION TAG COUNT"]);
    assert_told(
        "num_ranks 1\nrank 0 {\nsend -8b to 0\n}\n",
        &["t:3: found `-8b`, expected a size"],
    );
    assert_told("num_ranks 0\n", &["t:1: ", "num_ranks N"]);
}

#[test]
fn sums_of_large_sizes_stay_at_the_largest_number() {
    let size = i64::MAX;
    let sends = format!("2:0:0:1:-1:{size}:0:1:0\n").repeat(3);
    let recvs = format!("3:1:0:0:-1:{size}:0:1:0\n").repeat(3);
    assert_eq!(
        predict(dim(2, &format!("{sends}{recvs}"))).unwrap().bytes.0,
        u64::MAX
    );
    let size = u64::MAX;
    let sends = format!("send {size}b to 1\n").repeat(3);
    let recvs = format!("recv {size}b from 0\n").repeat(3);
    let goal = format!("num_ranks 2\nrank 0 {{\n{sends}}}\nrank 1 {{\n{recvs}}}\n");
    assert_eq!(predict(goal).unwrap().bytes.0, u64::MAX);
    let sends = "0 send 1 0 8e15 16\n".repeat(1000);
    let recvs = "1 recv 0 0 8e15 16\n".repeat(1000);
    assert!(predict(format!("{sends}{recvs}")).is_ok());
}

#[test]
fn meaningless_lines_are_shown_with_the_expected_form() {
    for line in [
        "2:0:0:1",
        "2:0:0:1:-1:8:0:1:0:5:5",
        "2:0:0:1:-1:x:0:1:0",
        "hello",
        ":::",
        "1:0",
        "1",
        "20:0:0:5",
        "-1:0:0:1",
    ] {
        assert_told(&dim(2, &format!("{line}\n")), &["t:3: found "]);
    }
    assert_told(
        &dim(2, "2:0:0:1:-1:8:0:1:4\n"),
        &["t:3: found synchronism 4, expected 0 to 3"],
    );
    assert_told(
        &dim(2, "10:0:0:77:1:1:0:0:0:1\n"),
        &["t:3: found operation 77"],
    );
    assert_told(&dim(2, "1:0:1:0.5\n"), &["t:3: found thread 1"]);
    assert_told(&dim(2, "1:1:0:0.5\n1:0:0:0.5\n"), &["t:4: "]);
    for line in [
        "dance",
        "send 1",
        "send x 0 8",
        "allreduce",
        "wait 0",
        "compute",
        "recv 1 0",
    ] {
        assert_told(&format!("0 init\n0 {line}\n1 init\n"), &["t:2: found `0 "]);
    }
    for line in [
        "dance",
        "send 8b",
        "send 8b to",
        "send 8 to 1",
        "recv 8b to 1",
        "calc",
        "a requires b",
        "send 8b to 1 hat 3",
        "put 8b to 1",
    ] {
        assert_told(
            &format!("num_ranks 2\nrank 0 {{\n{line}\n}}\n"),
            &["t:", "found ", "expected "],
        );
    }
    assert_told(
        "num_ranks 1\nrank 0 {\na: calc 1\na: calc 2\n}\n",
        &["t:4: found label `a` again"],
    );
    assert_told(
        "num_ranks 1\nrank 0 {\n}\nrank 0 {\n}\n",
        &["t:4: found rank 0 again"],
    );
    assert_told(
        "num_ranks 1\nrank 0 {\na: calc 1\n",
        &["found the end of the file inside rank 0, expected a closing brace"],
    );
    assert_told("GIF89a", &["t: found `GIF89a`, expected a Dimemas trace"]);
}

#[test]
fn operations_that_require_each_other_are_reported() {
    let goal = "num_ranks 1\nrank 0 {\na: calc 1\nb: calc 1\na requires b\nb requires a\n}\n";
    assert_told(
        goal,
        &["deadlock", "t:3: rank 0 waits for its own operations"],
    );
}

#[test]
fn a_header_with_or_without_offsets_is_read() {
    let plain = dim(2, DIM);
    let expected = predict(&plain).unwrap();
    for head in [
        "\"t\":0,0:2(",
        "\"t\":1,00000000000000000000004096:2(",
        "\"t\":1:2(",
    ] {
        let text = format!("{}s:0:60\ns:1:90\n", plain.replacen("\"t\":0:2(", head, 1));
        assert_eq!(predict(&text).unwrap(), expected, "{head}");
    }
    for head in [
        "\"t\":2(",
        "t:0:2(",
        "\"t\":0:3(",
        "\"t\":0:0(",
        "\"t\":0:99999999999(",
        "\"t\":x:2(",
    ] {
        assert_told(&plain.replacen("\"t\":0:2(", head, 1), &["t:1: found "]);
    }
    assert_told(
        &plain.replacen("(1,1)", "(1,0)", 1),
        &["t:1: found 0 threads in task 1"],
    );
    // Empty threads would take more time and memory than a file of this size can justify.
    assert_told(
        &plain.replacen("(1,1)", "(1,65536)", 1),
        &["t:1: found 65536 threads in task 1", "of this size"],
    );
    assert!(
        predict(plain.replacen("(1,1)", "(1,2)", 1)).is_ok(),
        "a thread without records ends immediately"
    );
}

#[test]
fn records_of_unknown_type_are_counted() {
    let text = dim(
        1,
        "1:0:0:0.5\n77:0:0:1:2\n77:0:0:3\n3:0:0:0:-1:8:0:1:3\n10:0:0:0:0:1:0:0:0:1\n",
    );
    let Trace::Program(program) = flowcast::read_text("t", text.into_bytes()).unwrap() else {
        panic!("expected a program")
    };
    let told: Vec<String> = program
        .ignored()
        .iter()
        .map(|kind| format!("{} {}", kind.count, kind.kind))
        .collect();
    assert_eq!(
        told,
        [
            "2 records of type 77",
            "1 receives of type 3",
            "1 collectives without a communicator"
        ]
    );
    assert_eq!(
        NUMBERS
            .replay(&program)
            .run()
            .unwrap()
            .makespan()
            .as_seconds(),
        0.5
    );
}

#[test]
fn collectives_must_agree_and_name_a_communicator_that_is_defined() {
    let op = |rank: usize, op: u32, communicator: u32| {
        format!("10:{rank}:0:{op}:{communicator}:0:0:0:0:1\n")
    };
    assert_told(
        &dim(2, &(op(0, 0, 5) + &op(1, 0, 5))),
        &["t:3: found a collective on communicator 5", "defined"],
    );
    assert_told(
        &dim(2, &(op(0, 0, 1) + &op(1, 1, 1))),
        &["t:4: found Bcast by rank 1, expected Barrier"],
    );
    assert_told(
        &dim(2, &(op(0, 0, 1) + &op(0, 0, 1) + &op(1, 0, 1))),
        &[
            "t:4: found collective number 2",
            "by rank 1, which makes only 1",
        ],
    );
    let part = dim(2, &op(1, 0, 2)).replacen("d:1:1", "d:1:2:1:0\nd:1:1", 1);
    assert_told(
        &part,
        &[
            "t:4: found a collective of rank 1 on communicator 2",
            "the rank is a member",
        ],
    );
    assert_told(
        "0 barrier\n1 bcast 8\n",
        &["t:2: found Bcast by rank 1, expected Barrier"],
    );
    assert_told(
        "0 barrier\n0 barrier\n1 barrier\n",
        &["t:2: found collective number 2"],
    );
    assert_told(
        &dim(2, "").replace("2:0:1\n", "3:0:1\n"),
        &["t:2: found 2 tasks", "3 tasks"],
    );
    assert_told(
        &dim(2, "").replace(":0:1\n", ":0:0\n"),
        &["t:2: found a task twice"],
    );
    assert_told(
        &dim(2, "").replace("d:1:1", "d:1:1:0\nd:1:1"),
        &["t:3: found communicator 1 again"],
    );
}

#[test]
fn waits_need_an_operation_to_wait_for() {
    assert_told(
        &dim(2, "3:0:0:1:-1:8:0:1:2\n"),
        &["t:3: found a wait, expected an earlier non-blocking receive"],
    );
    let other_tag = "3:0:0:1:-1:8:0:1:1\n3:0:0:1:-1:8:9:1:2\n2:1:0:0:-1:8:0:1:0\n";
    assert_told(&dim(2, other_tag), &["t:4: found a wait"]);
    assert_told(
        &dim(2, "10:0:0:0:1:0:0:0:0:2\n"),
        &["t:3: found a wait, expected an earlier non-blocking collective"],
    );
    assert_told(
        "0 wait 1 0 7\n1 init\n",
        &["t:1: found a wait, expected an earlier non-blocking receive"],
    );
    assert_told(
        "0 wait 0 1 7\n1 init\n",
        &["t:1: found a wait, expected an earlier non-blocking send"],
    );
}

#[test]
fn a_file_cut_at_any_byte_is_refused_unless_the_rest_is_valid() {
    for text in [dim(2, DIM), GOAL.to_owned(), TI.to_owned()] {
        let refused = (0..text.len())
            .filter(|length| predict(&text[..*length]).is_err())
            .count();
        assert!(
            refused * 10 > text.len() * 8,
            "{refused} of {} in\n{text}",
            text.len()
        );
        let packed = zstd::encode_all(text.as_bytes(), 3).unwrap();
        assert!((4..packed.len()).all(|length| predict(&packed[..length]).is_err()));
    }
}

fn compiled_form(text: &str) -> Vec<u8> {
    compiled::parts(&flowcast::read_text("t", text.as_bytes().to_vec()).unwrap()).concat()
}

/// A compiled trace with the checksum of its content.
fn sealed(mut file: Vec<u8>) -> Vec<u8> {
    let checksum = crc32fast::hash(&file[32..]);
    file[12..16].copy_from_slice(&checksum.to_le_bytes());
    file
}

#[test]
fn a_damaged_compiled_trace_is_refused_or_gives_the_same() {
    for text in [dim(2, DIM), GOAL.to_owned()] {
        let file = compiled_form(&text);
        let expected = predict(&file).unwrap();
        for at in 0..file.len() {
            for flip in [1, 0x80, 0xFF] {
                let mut damaged = file.clone();
                damaged[at] ^= flip;
                match predict(&damaged) {
                    Ok(outcome) => assert_eq!(outcome, expected, "byte {at}"),
                    Err(message) => assert!(message.starts_with("t: "), "byte {at}: {message}"),
                }
            }
            assert!(predict(&file[..at]).is_err(), "cut at byte {at}");
        }
    }
}

#[test]
fn a_false_compiled_trace_with_a_right_checksum_does_no_harm() {
    for text in [dim(2, DIM), GOAL.to_owned(), TI.to_owned()] {
        let file = compiled_form(&text);
        for at in 16..file.len() {
            for flip in [1, 2, 4, 8, 0x10, 0x20, 0x40, 0x80, 0xFF] {
                let mut lie = file.clone();
                lie[at] ^= flip;
                let _ = predict(sealed(lie));
            }
        }
    }
}

const GOAL_BINARY: &[u8] = include_bytes!("../../../../tests/data/tracers/goal/every-word.bin");

#[test]
fn a_damaged_binary_goal_schedule_is_refused_in_one_line() {
    let refused = |file: &[u8], part: &str| {
        let message = predict(file).unwrap_err();
        assert!(
            message.starts_with("t: ") && message.contains(part) && !message.contains('\n'),
            "{message}"
        );
    };
    for length in 8..GOAL_BINARY.len() {
        refused(&GOAL_BINARY[..length], "found ");
    }
    let changed = |at: usize, byte: u8| {
        let mut file = GOAL_BINARY.to_vec();
        file[at] = byte;
        file
    };
    // The magic number is followed by 4 + 1 + 1 bytes and 16 for each of three ranks, then 4 + 4 for rank 0 and 4 for each
    // root.
    let operation = 8 + 6 + 3 * 16 + 8 + 2 * 4;
    refused(&changed(0, 0x26)[..], "expected a Dimemas trace");
    refused(
        &[&2342u64.to_le_bytes(), &GOAL_BINARY[8..]].concat(),
        "`LogGOPSim --save-mem` has overwritten",
    );
    refused(&changed(11, 1), "found fewer bytes than expected");
    refused(&changed(8 + 6 + 16, 0), "found rank 1 at bytes");
    refused(
        &changed(operation + 4, 4),
        "rank 0: operation 1: found kind 4, expected send (1)",
    );
    refused(
        &changed(operation + 39 + 5, 3),
        "rank 0: operation 2: found rank 3, expected a rank below 3",
    );
    refused(
        &changed(operation + 39, 2),
        "rank 0: operation 2: found 2 required operations, expected 1",
    );
    refused(
        &changed(operation - 4, 1),
        "rank 0: found a list of roots that differs",
    );
}

#[test]
fn a_binary_goal_schedule_with_any_byte_changed_does_no_harm() {
    for at in 8..GOAL_BINARY.len() {
        for flip in [1, 2, 4, 8, 0x10, 0x20, 0x40, 0x80, 0xFF] {
            let mut lie = GOAL_BINARY.to_vec();
            lie[at] ^= flip;
            let _ = predict(&lie);
        }
    }
}

#[test]
fn large_numbers_in_small_files_do_not_take_memory() {
    assert_told(
        "num_ranks 16777216\nrank 0 {\n}\n",
        &["t:1: found 16777216 ranks in a text of 30 bytes"],
    );
    assert_told("16777215 init\n", &["t: found rank 16777215 in 14 bytes"]);
    let file = compiled_form(&dim(2, DIM));
    let text = String::from_utf8_lossy(&file[32..]).into_owned();
    for (entry, large) in [
        ("\"instances\":[[0,1]]", "\"instances\":[[0,4294967295]]"),
        ("[8,1]", "[8,4294967295]"),
    ] {
        let tables = u64::from_le_bytes(file[16..24].try_into().unwrap()) as usize;
        assert!(text.contains(entry), "{text}");
        let mut lie = String::from_utf8(file[32..32 + tables].to_vec())
            .unwrap()
            .replacen(entry, large, 1);
        lie += &" ".repeat(lie.len().next_multiple_of(8) - lie.len());
        let mut head = file[..32].to_vec();
        head[16..24].copy_from_slice(&(lie.len() as u64).to_le_bytes());
        let message = predict(sealed(
            [&head, lie.as_bytes(), &file[32 + tables..]].concat(),
        ))
        .unwrap_err();
        assert!(message.contains("than there are instructions"), "{message}");
    }
}

#[test]
fn sends_larger_than_their_receives_and_disagreement_about_the_root_are_reported() {
    let told = |records: &str| {
        let Ok(Trace::Program(program)) = flowcast::read_text("t", dim(2, records).into_bytes())
        else {
            panic!("{records}")
        };
        program
            .ignored()
            .iter()
            .map(|told| format!("{} {}", told.count, told.kind))
            .collect::<Vec<_>>()
            .join("\n")
    };
    let message =
        |send: u32, receive: u32| format!("2:0:0:1:-1:{send}:0:1:0\n3:1:0:0:-1:{receive}:0:1:0\n");
    assert!(told(&message(100, 50)).starts_with("1 sends that are larger than any receive"));
    assert_eq!(told(&message(50, 100)) + &told(&message(100, 100)), "");
    // A broadcast in which both ranks claim to be the root, then one with one root.
    let broadcast = |first: u8, second: u8| {
        format!("10:0:0:1:1:{first}:0:8:8:1\n10:1:0:1:1:{second}:0:8:8:1\n")
    };
    assert!(
        told(&broadcast(1, 1))
            .starts_with("1 executions of collectives whose ranks disagree on the root")
    );
    assert_eq!(told(&broadcast(1, 0)), "");
}

#[test]
fn no_line_is_dropped_silently() {
    for text in [dim(2, DIM), GOAL.to_owned(), TI.to_owned()] {
        assert!(predict(&text).is_ok(), "{text}");
        for end in ["\r\n", "\r"] {
            assert!(predict(text.replace('\n', end)).is_ok(), "{text}");
        }
        // Two lines joined to one, and an extra word, at each place.
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        for at in 0..lines.len() {
            let has_no_effect = ["init", "waitall", "finalize"]
                .iter()
                .any(|action| lines[at].trim_end().ends_with(action));
            for more in ["\r1:0:0:1", " 1 garbage", "\r0 compute 5", "\rl9: calc 5"] {
                let changed = format!("{}{more}", lines[at].trim_end());
                let text = [
                    lines[..at].concat(),
                    changed,
                    "\n".to_owned(),
                    lines[at + 1..].concat(),
                ]
                .concat();
                let is_empty = lines[at].trim().is_empty();
                assert!(
                    predict(&text).is_err() || is_empty || has_no_effect && more == " 1 garbage",
                    "{text:?}"
                );
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn no_mutation_of_a_trace_panics(which in 0usize..3, mutations in any_mutations()) {
        let mut text = [dim(2, DIM), GOAL.to_owned(), TI.to_owned()][which].clone().into_bytes();
        mutations.iter().for_each(|mutation| mutate(&mut text, mutation));
        let _ = predict(&text);
    }

    #[test]
    fn no_mutation_of_a_random_program_panics(records in crate::random_programs::any_records(), mutations in any_mutations()) {
        let mut text = records.to_dim(crate::random_programs::Offsets::Present).into_bytes();
        mutations.iter().for_each(|mutation| mutate(&mut text, mutation));
        let _ = predict(&text);
    }

    #[test]
    fn no_mutation_of_a_compiled_trace_panics(records in crate::random_programs::any_records(), mutations in any_mutations()) {
        let mut file = compiled::parts(&Trace::Program(records.program())).concat();
        mutations.iter().for_each(|mutation| mutate(&mut file, mutation));
        if file.len() > 32 {
            let _ = predict(sealed(file));
        }
    }
}

#[test]
fn the_files_of_a_recording_are_opened_by_name() {
    let folder = std::path::Path::new(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../examples/heat.rec"
    ));
    let read = |without: &str| {
        let refused = || std::io::Error::other("gone");
        let open = |file: &str| {
            if file == without {
                Err(refused())
            } else {
                std::fs::read(folder.join(file))
            }
        };
        flowcast::read_files(flowcast::recording::format::RECORDING, open)
    };
    assert_eq!(read("").unwrap().messages(), 1200);
    assert_eq!(
        read("recording").unwrap_err().to_string(),
        "trace: cannot read recording: gone"
    );
    assert_eq!(
        read("rank-00002").unwrap_err().to_string(),
        "recording: cannot read rank-00002: gone"
    );
}

#[test]
fn a_simgrid_trace_without_tags_is_refused_with_the_tool_that_converts_it() {
    let tool = "simgrid_convert_TI_traces.py";
    for (line, text) in [
        (1, "0 send 1 1000000 6\n1 recv 0 1000000 6\n"),
        (1, "0 send 1 1e6\n1 recv 0 1e6\n"),
        (2, "0 init\n0 Isend 1 8\n0 wait\n1 Irecv 0 8\n1 wait\n"),
        (2, "0 compute 5\n0 allReduce 8 5\n1 allReduce 8 5\n"),
        (1, "0 waitAll\n1 waitAll\n"),
        (1, "0 wait\n1 wait\n"),
        (1, "0 isend 1 1000000 6\n0 waitall\n1 recv 0 1000000 6\n"),
    ] {
        assert_told(
            text,
            &[&format!("t:{line}: "), "up to 3.19", "no tags", tool],
        );
    }
    for text in [
        "0 send 1 0 6\n1 recv 0 0 6\n",
        "0 send 1 1000000 60\n1 recv 0 1000000 60\n",
        "0 send 1 1000000 6\n0 send 1 3 6 6\n1 recv 0 1000000 6\n1 recv 0 3 6 6\n",
        "0 isend 1 4 0\n0 waitall\n1 recv 0 4 0\n",
    ] {
        assert!(predict(text).is_ok(), "{text}: {:?}", predict(text).err());
    }
}

#[test]
fn a_time_below_zero_is_refused_however_many_decimals_it_has() {
    for time in ["-0.000500000", "-0.5", "-1.000000000", "-0.000000001"] {
        let text = dim(1, &format!("1:0:0:{time}\n"));
        assert_told(&text, &["t:3: ", &format!("found `{time}`"), "at least 0"]);
    }
}
