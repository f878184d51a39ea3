#![no_main]

use flowcast::trace::ReadOptions;
use flowcast::trace::otf2::{Collective, Definitions, Event, Events, Peer};

/// The library reads the bytes of an archive; what it tells may be anything.
libfuzzer_sys::fuzz_target!(|told: Vec<(u8, u8, u8, u8)>| {
    let mut definitions = Definitions::default();
    definitions.clock(1_000_000_000);
    definitions.group(0, 4, 4, &[0, 1, 2]);
    definitions.group(1, 5, 4, &[0, 2]);
    definitions.communicator(0, Some(0));
    definitions.communicator(1, Some(1));
    for (number, name) in ["MPI_Wait", "mpi_waitall_", "MPI_Sendrecv", "main"].into_iter().enumerate() {
        definitions.string(number as u32, name);
        definitions.region(number as u32, number as u32, 0);
    }
    let mut events = Events::new(&definitions);
    for (time, (kind, location, a, b)) in (0..).zip(told) {
        let peer = Peer { rank: u32::from(a), communicator: u32::from(b % 3), tag: u32::from(b) };
        let request = u64::from(b);
        let operation = Collective { operation: a, communicator: u32::from(b % 3), root: 0, sent: 8, received: 8 };
        let event = match kind % 13 {
            0 => Event::Enter(u32::from(a)),
            1 => Event::Leave(u32::from(a)),
            2 => Event::Send { to: peer, bytes: u64::from(a) },
            3 => Event::Isend { to: peer, bytes: u64::from(a), request },
            4 => Event::IsendComplete(request),
            5 => Event::IrecvPosted(request),
            6 => Event::Recv(peer),
            7 => Event::Irecv { from: peer, request },
            8 => Event::Cancelled(request),
            9 => Event::Collective(operation),
            10 => Event::CollectivePosted(request),
            11 => Event::CollectiveComplete(operation, request),
            _ => Event::Measurement(a % 2 == 0),
        };
        events.event(u64::from(location % 4), time, event);
    }
    let _ = events.program("t", ReadOptions::default());
});
