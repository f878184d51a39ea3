use std::sync::Arc;

use super::*;
use flowcast_program::{opcodes::Op, slot::Slot};
use flowcast_units::{Rank, Time};
use proptest::prelude::*;

fn read_text(text: &str) -> Result<Program, TraceError> {
    read(
        "t.prv",
        Arc::new(text.as_bytes().to_vec()),
        ReadOptions::default(),
    )
}

fn ops(text: &str, rank: u32) -> Vec<Op> {
    read_text(text)
        .unwrap()
        .ops(Rank(rank))
        .map(|(_, op)| op)
        .collect()
}

fn message(text: &str) -> String {
    read_text(text).unwrap_err().to_string()
}

const HEAD: &str = "#Paraver (21/11/2026 at 08:58):1000_ns:2(1,1):1:2(1:1,1:2),1\nc:1:1:2:1:2\n";

fn compute(nanos: f64) -> Op {
    Op::Compute(Time::from_nanos(nanos))
}

#[test]
fn running_states_and_messages_become_computation_sends_and_receives() {
    let text = format!(
        "{HEAD}1:1:1:1:1:0:100:1\n1:2:1:2:1:0:50:1\n1:2:1:2:1:50:300:3\n3:1:1:1:1:60:70:2:1:2:1:50:300:8:5\n1:2:1:2:1:300:310:1\n"
    );
    assert_eq!(
        ops(&text, 0),
        [
            compute(60.0),
            Op::Send {
                class: 0,
                slot: Slot(0)
            },
            compute(40.0)
        ]
    );
    assert_eq!(
        ops(&text, 1),
        [compute(50.0), Op::Irecv, Op::WaitRecv(0), compute(10.0)]
    );
}

#[test]
fn times_without_ns_are_microseconds() {
    let text = "#Paraver (01/02/03 at 04:05):9:1:1:1(1:1)\n1:1:1:1:1:2:5:1\n";
    assert_eq!(ops(text, 0), [compute(3000.0)]);
}

#[test]
fn messages_that_overtake_each_other_stay_with_their_receives() {
    let text =
        format!("{HEAD}3:1:1:1:1:10:10:2:1:2:1:90:95:8:5\n3:1:1:1:1:20:20:2:1:2:1:30:40:16:5\n");
    // The second message is received first, so it fills slot 0.
    assert_eq!(
        ops(&text, 0),
        [
            Op::Send {
                class: 0,
                slot: Slot(1)
            },
            Op::Send {
                class: 1,
                slot: Slot(0)
            }
        ]
    );
}

#[test]
fn a_message_received_before_it_was_sent_can_still_be_replayed() {
    let text =
        format!("{HEAD}3:1:1:1:1:100:100:2:1:2:1:10:20:8:5\n3:2:1:2:1:90:90:1:1:1:1:5:95:8:5\n");
    assert_eq!(
        ops(&text, 1),
        [
            Op::Irecv,
            Op::Send {
                class: 0,
                slot: Slot(0)
            },
            Op::WaitRecv(0)
        ]
    );
    assert_eq!(
        ops(&text, 0),
        [
            Op::Irecv,
            Op::WaitRecv(0),
            Op::Send {
                class: 0,
                slot: Slot(1)
            }
        ]
    );
}

#[test]
fn collective_calls_are_read_if_all_members_make_them_and_counted_otherwise() {
    let call = |task: u32, value: u32| {
        format!("2:{task}:1:{task}:1:10:50000002:{value}:50100001:4:50100002:8:50100004:1\n")
    };
    let whole = format!("{HEAD}{}{}4:1:2\n", call(1, 10), call(2, 10));
    let program = read_text(&whole).unwrap();
    assert_eq!(program.instances().len(), 1);
    assert_eq!(
        (program.calls()[0].send.0, program.calls()[0].recv.0),
        (4, 8)
    );
    let kinds: Vec<_> = program
        .ignored()
        .iter()
        .map(|ignored| (ignored.kind.as_str(), ignored.count))
        .collect();
    assert_eq!(
        kinds,
        [
            ("records of type 4", 1),
            (
                "tasks without running states; they are replayed without computation",
                2
            )
        ]
    );

    let partial = read_text(&format!("{HEAD}{}", call(1, 10))).unwrap();
    assert_eq!(
        (partial.instances().len(), partial.ignored()[0].count),
        (0, 1)
    );
    assert!(partial.ignored()[0].kind.contains("only some tasks"));
    let unknown = read_text(&format!("{HEAD}2:1:1:1:1:10:50000002:8\n")).unwrap();
    assert!(
        unknown.ignored()[0]
            .kind
            .contains("without a defined communicator")
    );
}

#[test]
fn the_ranks_of_two_applications_are_numbered_in_one_sequence() {
    let text = "#Paraver (1/1/26 at 00:00):9_ns:1(2):2:1(1:1),1:1(1:1),1\nc:1:1:1:1\nc:2:1:1:1\n3:1:1:1:1:0:0:2:2:1:1:1:2:8:0\n";
    let program = read_text(text).unwrap();
    assert_eq!((program.ranks(), program.messages()), (2, 1));
    assert_eq!(
        program
            .communicators()
            .iter()
            .map(|one| one.members[0])
            .collect::<Vec<_>>(),
        [Rank(0), Rank(1)]
    );
}

#[test]
fn errors_name_the_line_the_found_and_the_expected_content() {
    let body = |line: &str| message(&format!("{HEAD}{line}\n"));
    assert_eq!(
        body("1:1:1:1:1:0"),
        "t.prv:3: found `1:1:1:1:1:0`, expected 1:cpu:application:task:thread:begin:end:state"
    );
    assert!(
        body("1:1:1:3:1:0:1:1")
            .starts_with("t.prv:3: found task 3 of application 1, expected a task")
    );
    assert!(body("1:1:1:1:2:0:1:1").starts_with("t.prv:3: found thread 2, expected thread 1"));
    assert!(body("1:1:1:1:1:5:1:1").starts_with("t.prv:3: found a state from 5 ns to 1 ns"));
    assert!(body("x").starts_with("t.prv:3: found `x`, expected a record"));
    assert!(body("2:1:1:1:1:5").starts_with("t.prv:3: found `2:1:1:1:1:5`, expected 2:cpu"));
    assert!(body("3:1:1:1:1:1:1:2:1:2:1:1:1:-8:0").starts_with("t.prv:3: found size -8"));
    assert!(body("c:1:2:2:1:1").starts_with("t.prv:3: found a task twice in communicator 2"));
    assert!(
        body("1:1:1:1:1:5:9:1\n1:1:1:1:1:8:9:1")
            .starts_with("t.prv:4: found a running state at 8 ns")
    );
    assert!(
        message("#Paraver\n").starts_with("t.prv:1: found `#Paraver`, expected #Paraver (date)")
    );
    let threads = message("#Paraver (1/1/26 at 00:00):9_ns:1(2):1:1(2:1)\n");
    assert_eq!(
        threads,
        "t.prv:1: found 2 threads in task 1, expected one thread in each task (more are not supported yet)"
    );
}

const SAMPLE: &str = "1:1:1:1:1:0:100:1\n2:1:1:1:1:100:50000002:7:50100004:1\n2:2:1:2:1:100:50000002:7:50100004:1\n3:1:1:1:1:60:70:2:1:2:1:50:300:8:5\n3:2:1:2:1:61:70:1:1:1:1:50:300:8:5\n4:7\n";

proptest! {
    #[test]
    fn traces_damaged_at_any_place_are_read_or_refused(
        changes in proptest::collection::vec((any::<prop::sample::Index>(), prop_oneof![Just(b':'), Just(b'\n'), Just(b'-'), b'0'..=b'9', any::<u8>()]), 1..6),
        cut in proptest::option::of(any::<prop::sample::Index>()),
    ) {
        let mut text = format!("{HEAD}{SAMPLE}").into_bytes();
        for (at, byte) in changes {
            let at = at.index(text.len());
            text[at] = byte;
        }
        if let Some(cut) = cut {
            text.truncate(cut.index(text.len()));
        }
        // The reader must not panic, and must not allocate more than the text justifies.
        let _ = read("t.prv", Arc::new(text), ReadOptions::default());
    }

    #[test]
    fn pairs_of_sends_and_receives_stay_as_recorded(times in proptest::collection::vec((0u32..50, 0u32..50), 1..30)) {
        // Message k has size k. Slots follow the order of posting, so the sizes in slot order identify the messages in the
        // slots.
        let mut text = HEAD.to_owned();
        for (index, (send, receive)) in times.iter().enumerate() {
            text += &format!("3:1:1:1:1:{send}:{send}:2:1:2:1:{receive}:{receive}:{index}:5\n");
        }
        let program = read_text(&text).unwrap();
        let mut filled = vec![0; times.len()];
        for (_, op) in program.ops(Rank(0)) {
            if let Op::Send { class, slot } = op {
                filled[slot.index()] = program.classes()[class as usize].size.0 as usize;
            }
        }
        let mut expected: Vec<usize> = (0..times.len()).collect();
        expected.sort_by_key(|index| (times[*index].1, *index));
        prop_assert_eq!(filled, expected);
    }
}
