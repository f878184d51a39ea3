//! High Performance Linpack, recorded while it runs, makes the calls of its description: every message, with the pivots of
//! its matrix.
//!
//! The test needs Debian's `hpcc` and Open MPI, so `cargo test` lists it as ignored; `cargo xtask test record` runs it.

mod recorded;
#[path = "../../../../flowcast/tests/it/hpl/solves/mod.rs"]
mod solves;

use std::{env, fs, path::Path, process::Command};

use flowcast::hpl::{Broadcast, HplSettings, Swap};

use crate::{outcome::said, recorder::OPEN_MPI};

/// Swap algorithm, the name of its frozen text, and the line of HPL's input.
const SWAPS: [(Swap, &str, &str); 3] = [
    (Swap::Binary, "binary", "0 SWAP\n64 threshold"),
    (Swap::Long, "long", "1 SWAP\n64 threshold"),
    (Swap::Mix(24), "mix-24", "2 SWAP\n24 threshold"),
];

/// HPL's input with all broadcasts, depths 0 to 2 and four grids. The input of `hpcc` has some more lines.
fn input(swap: &str) -> String {
    format!(
        "first line\nsecond line\nHPL.out\n8 device\n1 of N\n100\n1 of NB\n8\n0 by rows\n4 grids\n3 6 5 1\n4 2 1 5\n16.0 threshold\n\
         1 PFACT\n1\n1 NBMIN\n2\n1 NDIV\n2\n1 RFACT\n2\n6 BCAST\n0 1 2 3 4 5\n3 DEPTH\n0 1 2\n{swap}\n0 L1\n0 U\n1 equilibration\n\
         8 alignment\nseparator\n0 PTRANS\n1200\n0 PTRANS\n40\n"
    )
}

/// Runs in the order in which the program executes them.
fn runs(swap: Swap) -> Vec<HplSettings> {
    let mut runs = Vec::new();
    for (rows, columns) in [(3, 4), (6, 2), (5, 1), (1, 5)] {
        for depth in 0..3 {
            runs.extend(Broadcast::ALL.map(|broadcast| HplSettings {
                order: 100,
                block: 8,
                rows,
                columns,
                depth,
                broadcast,
                swap,
            }));
        }
    }
    runs
}

fn record(folder: &Path, swap: &str) {
    fs::write(folder.join("hpccinf.txt"), input(swap)).unwrap();
    let mut command = Command::new("timeout");
    command
        .arg("100")
        .arg(env!("CARGO_BIN_EXE_flowcast"))
        .args(["record", "-o", "hpl.rec", "--", "mpirun.openmpi"])
        .args(OPEN_MPI.options)
        .args(["-np", "12", "hpcc"]);
    command
        .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    let output = command.current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
}

mod hpcc {
    use super::*;

    #[test]
    #[ignore = "needs hpcc and Open MPI: cargo xtask test record"]
    fn recorded_calls_equal_the_described_calls() {
        for (swap, name, lines) in SWAPS {
            let folder = tempfile::tempdir().unwrap();
            record(folder.path(), lines);
            let runs = runs(swap);
            let solves = recorded::solves(&folder.path().join("hpl.rec"), &runs);
            let mut texts = String::new();
            for (settings, calls) in runs.iter().zip(solves) {
                let recorded = solves::text(settings, &calls);
                let described = solves::text(settings, &solves::described(*settings));
                let mut lines = recorded.lines().zip(described.lines());
                let differing = lines.find(|(recorded, described)| recorded != described);
                assert_eq!(differing, None, "{settings:?}");
                texts += &recorded;
            }
            if let Some(folder) = env::var_os("FLOWCAST_HPL_CALLS") {
                fs::write(Path::new(&folder).join(format!("{name}.txt")), texts).unwrap();
            }
        }
    }
}
