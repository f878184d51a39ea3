//! A replay under limits, and one under the closed loop, allocates while it is set up and while its queues grow, and then no
//! more: a program of twice the length causes the same number of allocations. A global allocator counts, so this test is a
//! binary of its own.

#![expect(unsafe_code, reason = "an allocator that counts")]

use std::{
    alloc::{GlobalAlloc, Layout, System},
    sync::atomic::{AtomicU64, Ordering},
};

use flowcast::{
    model::{
        machine::{Machine, NodeGroup},
        network::Network,
        sharing::model::Model,
    },
    read_text,
    replay::{ReplayEngine, costs::Rendezvous, placement::Placement},
    trace::{Program, Trace},
    units::Bytes,
};

struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// Sound: all calls are passed to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        unsafe { System.dealloc(place, layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        unsafe { System.realloc(place, layout, size) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// A ring: `turns` times, every rank computes, sends to the right and receives from the left.
fn ring(ranks: usize, turns: usize) -> Program {
    let threads = vec!["1"; ranks].join(",");
    let mut text = format!("#DIMEMAS:\"ring\":0:{ranks}({threads}),0\n");
    for rank in 0..ranks {
        let (right, left) = ((rank + 1) % ranks, (rank + ranks - 1) % ranks);
        for turn in 0..turns {
            let nanos = 1000 + (rank * 7919 + turn * 104_729) % 997;
            text += &format!("1:{rank}:0:0.00000{nanos:04}\n2:{rank}:0:{right}:-1:8192:0:1:0\n");
            text += &format!("3:{rank}:0:{left}:-1:8192:0:1:0\n");
        }
    }
    match read_text("ring.dim", text).unwrap() {
        Trace::Program(program) => program,
        _ => unreachable!("a .dim file is no schedule"),
    }
}

fn network(buses: u32, cpus: u32) -> Network {
    let text = "schema = \"flowcast/network/1\"\nname = \"test\"\n[point_to_point]\nrule = \"dimemas\"\n[nic]\nlatency = \
                \"2us\"\nbandwidth = \"1000MB/s\"\n";
    let mut network = Network::from_toml(text, &[]).unwrap();
    let group = NodeGroup {
        count: 8,
        cpus,
        in_links: 1,
        out_links: 1,
        ..NodeGroup::default()
    };
    network.machine = Machine {
        buses,
        nodes: vec![group],
        ..Machine::default()
    };
    network
}

/// Number of allocations of one replay, including its setup.
fn allocations(
    program: &Program,
    network: &Network,
    rendezvous: Rendezvous,
    model: Option<Model>,
) -> u64 {
    let placement = Placement::of_program(&network.machine, None, program).unwrap();
    let engine = match model {
        None => ReplayEngine::new(program, network, placement, rendezvous).unwrap(),
        Some(model) => {
            ReplayEngine::sharing(program, network, placement, rendezvous, model).unwrap()
        }
    };
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    let outcome = engine.run().unwrap();
    let after = ALLOCATIONS.load(Ordering::Relaxed);
    assert!(outcome.makespan().as_nanos() > 0.0);
    after - before
}

#[test]
fn a_replay_of_twice_the_length_makes_no_more_allocations() {
    let (short, long) = (ring(16, 200), ring(16, 400));
    for (buses, cpus) in [(0, 2), (3, 2), (3, 1)] {
        let network = network(buses, cpus);
        for rendezvous in [Rendezvous::AsRecorded, Rendezvous::From(Bytes(1 << 20))] {
            let counts =
                [&short, &long].map(|program| allocations(program, &network, rendezvous, None));
            assert!(counts[0] > 0, "the allocator counts");
            assert_eq!(
                counts[0], counts[1],
                "buses {buses}, processors {cpus}, {rendezvous:?}"
            );
        }
    }
    // The list of messages of each link grows with the largest number that cross it at the same time. A longer program
    // reaches this number later.
    let count = |program| {
        allocations(
            program,
            &network(0, 2),
            Rendezvous::AsRecorded,
            Some(Model::ClosedLoop),
        )
    };
    let (few, many) = (count(&short), count(&long));
    assert!(many < few + 32, "{few} and {many}, for 3,200 messages more");
}
