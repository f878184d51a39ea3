//! Invalid sequences of events, from numbers that a test or a fuzzer chooses.

use flowcast::{
    formats::otf2::{Collective, Definitions, Event, Events, Peer},
    trace::{Program, ReadOptions},
};

/// Sparse locations, as tracers number them; the last one belongs to no rank.
const LOCATIONS: [u64; 4] = [0, 1, 536_870_911, 3];

/// Makes a program from numbers: kind, location, and two for the subject of the event.
pub(crate) fn read(told: &[(u8, u8, u8, u8)]) {
    let definitions = definitions("", NAMES);
    let mut events = Events::new(&definitions);
    for (time, (kind, location, a, b)) in (0..).zip(told) {
        events.event(
            LOCATIONS[usize::from(*location) % LOCATIONS.len()],
            time,
            event(*kind, *a, *b),
        );
    }
    let _ = events.program("t", ReadOptions::default());
}

/// A message between two ranks, and calls of functions with these names, in an archive of a tool with this name.
#[allow(dead_code, reason = "the fuzzer reads other programs")]
pub(crate) fn named(name: &str) -> Program {
    let function = format!("MPI_{name}");
    let definitions = definitions(name, [&function, name, &function, name, name]);
    let mut events = Events::new(&definitions);
    let peer = |rank| Peer {
        rank,
        communicator: 0,
        tag: 0,
    };
    let message = [
        Event::Send {
            to: peer(1),
            bytes: 8,
        },
        Event::Recv(peer(0)),
    ];
    for (location, message) in LOCATIONS.into_iter().zip(message) {
        let calls = (0..5).flat_map(|region| [Event::Enter(region), Event::Leave(region)]);
        for (time, event) in (0..).zip(calls.chain([message])) {
            events.event(location, 10 * time, event);
        }
    }
    events.program(name, ReadOptions::default()).unwrap()
}

/// Functions of MPI whose names matter, and one other function.
const NAMES: [&str; 5] = [
    "MPI_Wait",
    "mpi_waitall_",
    "MPI_Sendrecv",
    "MPI_Iallreduce",
    "main",
];

/// Three ranks, a communicator of two of them, and functions with these names.
fn definitions(creator: &str, names: [&str; 5]) -> Definitions {
    let mut definitions = Definitions::by(creator.to_owned());
    definitions.clock(1_000_000_000);
    definitions.group(0, 4, 4, &LOCATIONS[..3]);
    definitions.group(1, 5, 4, &[0, 2]);
    definitions.communicator(0, Some(0));
    definitions.communicator(1, Some(1));
    for (rank, location) in (0..).zip(&LOCATIONS[..3]) {
        definitions.location(*location, 1, rank);
    }
    for (number, name) in (0..).zip(names) {
        definitions.string(number, name);
        definitions.region(number, number, 0);
    }
    definitions
}

fn event(kind: u8, a: u8, b: u8) -> Event {
    let communicator = u32::from(b % 3);
    let peer = Peer {
        rank: u32::from(a),
        communicator,
        tag: u32::from(b),
    };
    let request = u64::from(b % 8);
    let operation = Collective {
        operation: a % 20,
        communicator,
        root: 0,
        sent: 8,
        received: 8,
    };
    match kind % 13 {
        0 => Event::Enter(u32::from(a % 6)),
        1 => Event::Leave(u32::from(a % 6)),
        2 => Event::Send {
            to: peer,
            bytes: u64::from(a),
        },
        3 => Event::Isend {
            to: peer,
            bytes: u64::from(a),
            request,
        },
        4 => Event::IsendComplete(request),
        5 => Event::IrecvPosted(request),
        6 => Event::Recv(peer),
        7 => Event::Irecv {
            from: peer,
            request,
        },
        8 => Event::Cancelled(request),
        9 => Event::Collective(operation),
        10 => Event::CollectivePosted(request),
        11 => Event::CollectiveComplete(operation, request),
        _ => Event::Measurement(a & 1 == 0),
    }
}
