//! One-sided communication and neighbour collectives of real MPI programs, recorded and replayed.
//!
//! The tests need an MPI library with its compilers, so `cargo test` lists them as ignored. `cargo xtask test record` runs
//! those whose libraries are installed.

use crate::recorder::{Bench, Mpi, calls};
use serde_json::json;

/// Synchronisation, calls of four ranks, messages of the replay, and its transfers with their bytes.
const EPOCHS: [(&str, &str, u64, (u64, u64)); 4] = [
    (
        "fence",
        "Accumulate 40 32000B, Get 40 160000B, Put 40 320000B, Win_create 4, Win_fence 44, Win_free 4",
        0,
        (120, 512_000),
    ),
    (
        "locks",
        "Barrier 4, Get 24 192B, Put 20 160B, Win_create 4, Win_flush 20, Win_free 4, Win_lock 24, Win_unlock 24",
        0,
        (44, 352),
    ),
    (
        "atomics",
        "Compare_and_swap 4 32B, Fetch_and_op 4 32B, Get_accumulate 4 640B, Put 4 32B, Raccumulate 4 1600B, Rget 4 9600B, \
         Rput 4 6400B, Waitall 4, Win_create 4, Win_flush 4, Win_flush_all 4, Win_free 4, Win_lock_all 4, Win_unlock_all 4",
        0,
        // Without the puts that have no target.
        (24, 18_304),
    ),
    (
        "pscw",
        "Put 40 320000B, Win_complete 40, Win_create 4, Win_free 4, Win_post 40, Win_start 40, Win_test 20, Win_wait 20",
        // One message for each post, and one for each completed access.
        80,
        (40, 320_000),
    ),
];

fn transfers_are_replayed_under_each_synchronisation(mpi: Mpi) {
    let bench = Bench::new(mpi);
    let program = bench.compile("one_sided.c");
    for (epoch, wanted, messages, (transfers, bytes)) in EPOCHS {
        let summary = bench.recorded(epoch, &[&program, epoch]);
        assert_eq!(calls(&summary), wanted, "{epoch}");
        let (replay, notes) = bench.predict(epoch);
        assert_eq!(replay["messages"], messages, "{epoch}");
        assert_eq!(
            replay["one_sided"],
            json!({"transfers": transfers, "bytes": bytes}),
            "{epoch}"
        );
        let left_out = "4 calls of MPI_Win_create left out of the replay";
        assert_eq!(notes, format!("flowcast: note: {left_out}\n"), "{epoch}");
        assert_eq!(replay["notes"][0], left_out, "{epoch}");
    }
}

fn ranks_wait_for_locks_and_for_epochs(mpi: Mpi) {
    let bench = Bench::new(mpi);
    let program = bench.compile("one_sided.c");
    // The lock of a counter is held for the answer to its request, a get and a put, by 15 ranks of other nodes one after the
    // other. An epoch takes the message that starts it, a put, and the message that completes it.
    for (epoch, latencies) in [("locks", 15.0 * 3.0), ("pscw", 10.0 * 3.0)] {
        bench.recorded(epoch, &[&program, epoch]);
        let (replay, _) = bench.predict_with(epoch, &["--set", "nic.latency=1ms"]);
        let predicted = replay["makespan_s"].as_f64().unwrap() * 1e3;
        assert!(
            (latencies..latencies + 20.0).contains(&predicted),
            "{epoch}: {predicted} ms"
        );
    }
}

/// Topology, calls of four ranks, messages of the replay with their bytes, and the function that creates the communicator.
const TOPOLOGIES: [(&str, &str, (u64, u64), &str); 4] = [
    // Two of four ranks in a row have two neighbours.
    (
        "row",
        "Cart_create 4, Comm_free 4, Neighbor_alltoall 40 48000B",
        (60, 48_000),
        "Cart_create",
    ),
    (
        "ring",
        "Cart_create 4, Comm_free 4, Ineighbor_allgather 20 1280B, Ineighbor_alltoallv 20 5280B, Waitall 20",
        (80, 6560),
        "Cart_create",
    ),
    (
        "star",
        "Comm_free 4, Dist_graph_create_adjacent 4, Neighbor_alltoallw 12 3600B",
        (9, 3600),
        "Dist_graph_create_adjacent",
    ),
    (
        "pairs",
        "Comm_free 4, Graph_create 4, Neighbor_allgather 16 1024B",
        (16, 1024),
        "Graph_create",
    ),
];

fn neighbours_exchange_messages_on_each_topology(mpi: Mpi) {
    let bench = Bench::new(mpi);
    let program = bench.compile("neighbours.c");
    for (topology, wanted, (messages, bytes), left_out) in TOPOLOGIES {
        let summary = bench.recorded(topology, &[&program, topology]);
        assert_eq!(calls(&summary), wanted, "{topology}");
        let (replay, notes) = bench.predict(topology);
        assert_eq!(
            (&replay["messages"], &replay["bytes"]),
            (&messages.into(), &bytes.into()),
            "{topology}"
        );
        assert_eq!(
            notes,
            format!("flowcast: note: 4 calls of MPI_{left_out} left out of the replay\n"),
            "{topology}"
        );
    }
}

for_both!(
    transfers_are_replayed_under_each_synchronisation,
    ranks_wait_for_locks_and_for_epochs,
    neighbours_exchange_messages_on_each_topology,
);
