//! Recording real MPI programs, with each of the libraries that is here.

use super::{Outcome, cargo, programs::find};

/// A library, the ending of its commands in Debian, and the module of its tests.
const LIBRARIES: [(&str, &str, &str); 2] = [
    ("Open MPI", "openmpi", "open_mpi"),
    ("MPICH", "mpich", "mpich"),
];

/// Runs the tests of each library, and those of HPL under Open MPI; skipped by name if one is missing.
pub(super) fn check() -> Outcome {
    let mut missing = Vec::new();
    let mut modules = Vec::new();
    for (name, ending, module) in LIBRARIES {
        let programs = ["mpicc", "mpif90", "mpirun"].map(|program| format!("{program}.{ending}"));
        match programs.iter().find(|program| find(program).is_none()) {
            Some(program) => missing.push(format!("{name} (no {program})")),
            None => modules.push(module),
        }
    }
    match ["hpcc", "mpirun.openmpi"]
        .iter()
        .find(|program| find(program).is_none())
    {
        Some(program) => missing.push(format!("High Performance Linpack (no {program})")),
        None => modules.push("hpl::hpcc"),
    }
    // One after the other: each program has more ranks than there are processors already.
    let tests = [
        "--workspace",
        "--test",
        "it",
        "--",
        "--ignored",
        "--test-threads=1",
    ];
    cargo::test_modules(&tests, &modules, &missing)
}
