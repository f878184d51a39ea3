//! A real program whose ranks start other processes. The recording contains the ranks that the launcher started.
//!
//! The test needs Open MPI with its compiler, so `cargo test` lists it as ignored; `cargo xtask test record` runs it.
//! Debian's MPICH cannot start ranks.

use std::{
    fs::DirEntry,
    path::Path,
    process::{Command, Output},
};

use crate::outcome::said;
use flowcast::recording::format::RECORDING;

/// Records two ranks that start three children.
fn record(folder: &Path) -> Output {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/spawn.c");
    let program = folder.join("spawn");
    let mut compiler = Command::new("mpicc.openmpi");
    let compiled = compiler
        .args(["-O2", "-o"])
        .arg(&program)
        .arg(source)
        .output()
        .unwrap();
    assert!(compiled.status.success(), "{}", said(&compiled));
    let mut command = Command::new("timeout");
    command
        .arg("100")
        .arg(env!("CARGO_BIN_EXE_flowcast"))
        .args(["record", "-o", "spawn.rec", "--"]);
    command
        .args(["mpirun.openmpi", "--oversubscribe", "-np", "2"])
        .arg(&program);
    command
        .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    command.current_dir(folder).output().unwrap()
}

mod open_mpi {
    use super::*;

    #[test]
    #[ignore = "needs Open MPI: cargo xtask test record"]
    fn started_ranks_are_not_recorded_and_disturb_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let recorded = record(folder.path());
        let printed = String::from_utf8_lossy(&recorded.stdout);
        assert!(recorded.status.success(), "{}", said(&recorded));
        assert!(printed.contains("the children's sum is 6"), "{printed}");
        for complaint in ["File exists", "not recorded", "os error"] {
            assert!(!said(&recorded).contains(complaint), "{}", said(&recorded));
        }
        let unseen = "MPI_Recv with processes outside MPI_COMM_WORLD";
        assert!(printed.contains(unseen), "{printed}");
        let recording = folder.path().join("spawn.rec");
        let open = |file: &str| std::fs::read(recording.join(file));
        assert_eq!(flowcast::read_files(RECORDING, open).unwrap().ranks(), 2);
        let is_rank = |file: &DirEntry| file.file_name().to_string_lossy().starts_with("rank-");
        assert_eq!(
            recording
                .read_dir()
                .unwrap()
                .filter(|file| is_rank(file.as_ref().unwrap()))
                .count(),
            2
        );
    }
}
