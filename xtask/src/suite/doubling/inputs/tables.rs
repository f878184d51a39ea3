//! Tables and logs of what was measured.

use super::{Files, each};

/// Calls of as many names, by eight sizes.
pub(super) fn calls(n: usize) -> String {
    let row = |i| format!("k,e,c{},{},{}", i / 8, i % 8, 2000 + i % 8);
    "cluster,experiment,call,bytes,median_ns\n".to_owned() + &each(8 * n, row)
}

const MEASURED: &str =
    "system,run,nodes,ranks_per_node,collective,library,version,algorithm,bytes,median_ns\n";
const ALLOCATIONS: &str = "system,run,nodes,rank,node,group,switch\n";

/// Medians of a collective operation in two runs on some nodes.
fn medians(rows: usize, nodes: usize) -> String {
    each(rows, |i| {
        let (run, bytes) = (i % 2, 256 + 64 * i);
        format!(
            "s,r{run},{nodes},1,allreduce,CRAY_MPICH,8.1.29,recursive_doubling_mpich,{bytes},{}",
            20_000 + bytes / 8
        )
    })
}

/// Rows with the nodes of `runs` runs, each on `nodes` nodes.
fn allocations(runs: usize, nodes: usize) -> String {
    each(runs * nodes, |i| {
        let (run, node) = (i / nodes, i % nodes);
        format!("s,r{run},{nodes},{node},{node},{},{}", node / 16, node / 4)
    })
}

/// Measurements to which a network is fitted, and the allocations of `runs` runs. The effort of the fit depends on the values
/// and not only on their number, so the medians are the same for all sizes.
pub(super) fn measured(runs: usize) -> Files {
    vec![
        (
            "measured.csv".into(),
            (MEASURED.to_owned() + &medians(32, 8)).into(),
        ),
        (
            "nodes.csv".into(),
            (ALLOCATIONS.to_owned() + &allocations(runs, 8)).into(),
        ),
    ]
}

/// Measurements to which a network is fitted, and `rows` cases on `nodes` nodes.
pub(super) fn collective_cases(rows: usize, nodes: usize) -> Files {
    let places = ALLOCATIONS.to_owned() + &allocations(2, 8) + &allocations(2, nodes);
    let mut files = measured(2);
    files[1].1 = places.into();
    files.push((
        "in".into(),
        (MEASURED.to_owned() + &medians(rows, nodes)).into(),
    ));
    files
}

/// A log of IMB's PingPong.
pub(super) fn imb(rows: &str) -> String {
    let line = "#---------------------------------------------------\n";
    format!(
        "{line}# Benchmarking PingPong \n# #processes = 2 \n{line}       #bytes #repetitions      t[usec]   Mbytes/sec\n{rows}\n"
    )
}
