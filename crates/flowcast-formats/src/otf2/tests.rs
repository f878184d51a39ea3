use super::*;
use flowcast_program::{ReadOptions, opcodes::Op, program::Program};
use flowcast_units::Rank;

/// Returns definitions for two ranks at sparse locations. They are out of order, and the world's group is defined twice.
fn definitions(creator: &str) -> Definitions {
    let mut definitions = Definitions::by(creator.to_owned());
    definitions.communicator(7, Some(3));
    definitions.group(3, 4, 4, &[0, 536_870_911]);
    definitions.group(3, 5, 4, &[0, 1]);
    definitions.group(3, 4, 4, &[0, 536_870_911]);
    definitions.region(1, 10, 0);
    definitions.region(2, 11, 0);
    definitions.region(3, 12, 4);
    definitions.region(4, 13, 4);
    for (number, name) in [
        (10, "main"),
        (11, "mpi_send_"),
        (12, "MPI_Wait"),
        (13, "MPI_Iallreduce"),
    ] {
        definitions.string(number, name);
    }
    definitions.location(0, 1, 0);
    definitions.location(536_870_911, 1, 1);
    definitions.clock(1_000_000_000);
    definitions
}

fn program(definitions: &Definitions, list: &[(u64, u64, Event)]) -> Program {
    let mut events = Events::new(definitions);
    list.iter()
        .for_each(|(location, time, event)| events.event(*location, *time, *event));
    events.program("t", ReadOptions::default()).unwrap()
}

fn ops(program: &Program, rank: u32) -> Vec<Op> {
    program
        .ops(Rank(rank))
        .map(|(_, op)| op)
        .filter(|op| !matches!(op, Op::Nothing))
        .collect()
}

const TO_ONE: Peer = Peer {
    rank: 1,
    communicator: 7,
    tag: 5,
};
const FROM_NULL: Peer = Peer {
    rank: 0,
    communicator: 7,
    tag: 5,
};
const SECOND: u64 = 536_870_911;

#[test]
fn time_between_mpi_calls_is_computation_and_the_end_of_a_receive_identifies_it() {
    let definitions = definitions("EZTrace");
    let list = [
        (0, 100, Event::Enter(1)),
        (0, 150, Event::Enter(2)),
        (
            0,
            155,
            Event::Send {
                to: TO_ONE,
                bytes: 80,
            },
        ),
        (0, 170, Event::Leave(2)),
        (0, 200, Event::Leave(1)),
        (SECOND, 90, Event::IrecvPosted(1)),
        (SECOND, 120, Event::Enter(3)),
        (
            SECOND,
            180,
            Event::Irecv {
                from: FROM_NULL,
                request: 1,
            },
        ),
        (SECOND, 190, Event::Leave(3)),
    ];
    let program = program(&definitions, &list);
    assert_eq!(
        (program.ranks(), program.messages(), program.bytes().0),
        (2, 1, 80)
    );
    assert_eq!(
        ops(&program, 0)
            .iter()
            .filter_map(|op: &Op| {
                if let Op::Compute(time) = op {
                    Some(time.as_nanos())
                } else {
                    None
                }
            })
            .collect::<Vec<_>>(),
        [50.0, 30.0]
    );
    assert!(matches!(
        ops(&program, 1)[..],
        [Op::Irecv, Op::Compute(_), Op::WaitRecv(0)]
    ));
    assert!(program.ignored().is_empty(), "{:?}", program.ignored());
}

#[test]
fn receives_without_an_end_complete_at_the_next_wait() {
    let definitions = definitions("EZTrace");
    let list = [
        (
            0,
            0,
            Event::Send {
                to: TO_ONE,
                bytes: 80,
            },
        ),
        (SECOND, 0, Event::IrecvPosted(1)),
        (SECOND, 10, Event::Enter(3)),
        (SECOND, 20, Event::Leave(3)),
    ];
    let program = program(&definitions, &list);
    assert_eq!(program.messages(), 1);
    assert!(matches!(
        ops(&program, 1)[..],
        [Op::Irecv, Op::Compute(_), Op::WaitRecv(0)]
    ));
    assert!(
        program.ignored()[0].kind.contains("remaining messages"),
        "{:?}",
        program.ignored()
    );
}

#[test]
fn a_wait_without_an_end_completes_the_oldest_receive_that_is_still_open() {
    let definitions = definitions("EZTrace");
    let send = Event::Send {
        to: TO_ONE,
        bytes: 80,
    };
    let second = Event::Irecv {
        from: FROM_NULL,
        request: 2,
    };
    let list = [
        (0, 0, send),
        (0, 1, send),
        (0, 2, send),
        (SECOND, 0, Event::IrecvPosted(1)),
        (SECOND, 0, Event::IrecvPosted(2)),
        (SECOND, 0, Event::IrecvPosted(3)),
        (SECOND, 5, second),
        (SECOND, 10, Event::Enter(3)),
        (SECOND, 20, Event::Leave(3)),
    ];
    let mut waits = ops(&program(&definitions, &list), 1);
    waits.retain(|op| matches!(op, Op::WaitRecv(_)));
    assert!(matches!(waits[..], [Op::WaitRecv(1), Op::WaitRecv(0)]));
}

#[test]
fn bytes_of_score_p_count_once_and_calls_without_events_are_reported() {
    let definitions = definitions("Score-P 7.0");
    let sum = Collective {
        operation: 11,
        communicator: 7,
        root: u32::MAX,
        sent: 16,
        received: 16,
    };
    let of_rank = |location| {
        [
            (location, 0, Event::Collective(sum)),
            (location, 5, Event::Enter(4)),
            (location, 9, Event::Leave(4)),
            (location, 10, Event::Measurement(false)),
            (location, 900, Event::Measurement(true)),
        ]
    };
    let program = program(&definitions, &[of_rank(0), of_rank(SECOND)].concat());
    assert_eq!(program.calls()[0].send.0, 8);
    let told: Vec<_> = program
        .ignored()
        .iter()
        .map(|record| (record.count, record.kind.clone()))
        .collect();
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(
        told.iter().all(|(count, _)| *count == 2) && told[0].1.contains("Iallreduce"),
        "{told:?}"
    );
    let computed: f64 = ops(&program, 0)
        .iter()
        .map(|op| {
            if let Op::Compute(t) = op {
                t.as_nanos()
            } else {
                0.0
            }
        })
        .sum();
    assert_eq!(
        computed, 6.0,
        "what happened while measurement was off is not known"
    );
}

#[test]
fn collectives_between_two_groups_are_reported_with_their_bytes() {
    let mut definitions = definitions("EZTrace");
    definitions.group(20, 5, 4, &[0]);
    definitions.group(21, 5, 4, &[1]);
    definitions.intercommunicator(8, [20, 21]);
    let sum = Event::Collective(Collective {
        operation: 11,
        communicator: 8,
        root: u32::MAX,
        sent: 16,
        received: 16,
    });
    let program = program(&definitions, &[(0, 1, sum), (SECOND, 1, sum)]);
    assert!(program.calls().is_empty());
    let told: Vec<String> = program.ignored().iter().map(ToString::to_string).collect();
    assert!(
        told.len() == 1
            && told[0].starts_with("2 calls of MPI_Allreduce (32 bytes")
            && told[0].contains(" between two groups"),
        "{told:?}"
    );
}

#[test]
fn messages_between_two_groups_reach_the_other_group() {
    let mut definitions = definitions("Score-P 8.0");
    definitions.group(20, 5, 4, &[0]);
    definitions.group(21, 5, 4, &[1]);
    definitions.intercommunicator(8, [20, 21]);
    definitions.communicator(9, Some(u32::MAX));
    let other = Peer {
        rank: 0,
        communicator: 8,
        tag: 5,
    };
    let lost = Peer {
        communicator: 9,
        ..other
    };
    let send = |to| Event::Send { to, bytes: 80 };
    let list = [
        (0, 1, send(other)),
        (SECOND, 1, Event::Recv(other)),
        (SECOND, 2, send(other)),
        (0, 2, Event::Recv(other)),
        (0, 3, send(lost)),
    ];
    let program = program(&definitions, &list);
    assert_eq!((program.messages(), program.bytes().0), (2, 160));
    let told: Vec<String> = program.ignored().iter().map(ToString::to_string).collect();
    assert!(
        told.len() == 1 && told[0].contains("members are unknown"),
        "{told:?}"
    );
}
