//! Programs that the recorder must not change: without an MPI library, with an unknown one, with one that they load
//! themselves, with a profiling tool, without memory, and when they are interrupted.
//!
//! The tests need Open MPI or MPICH with their compilers, so `cargo test` lists them as ignored; `cargo xtask test record`
//! runs them.

use std::{
    fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use serde_json::Value;

use crate::outcome::{json, said};

/// Folder in which programs are compiled and run.
struct Bench(tempfile::TempDir);

impl Bench {
    fn new() -> Bench {
        Bench(tempfile::tempdir().unwrap())
    }

    /// Compiles a program or a library.
    fn compile(&self, compiler: &str, source: &str, file: &str, options: &[&str]) -> String {
        let path = self.0.path().join(file);
        let mut command = Command::new(compiler);
        command
            .arg("-w")
            .arg("-o")
            .arg(&path)
            .arg(source_of(source));
        command.args(options).arg("-ldl").current_dir(self.0.path());
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", said(&output));
        path.display().to_string()
    }

    fn flowcast(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("timeout");
        command.args(["--foreground", "100", env!("CARGO_BIN_EXE_flowcast")]);
        command.args(arguments).current_dir(self.0.path());
        command
            .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
            .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        command
    }

    /// Runs a program with the recorder.
    fn record(&self, program: &[&str]) -> Output {
        let arguments = [&["record", "-o", "recording", "--"], program].concat();
        self.flowcast(&arguments).output().unwrap()
    }

    /// Number of calls of a function in the recording.
    fn calls(&self, name: &str) -> u64 {
        let output = self
            .flowcast(&["record", "--show", "recording", "--json"])
            .output()
            .unwrap();
        let summary = json(&output);
        let functions = summary["functions"].as_array().unwrap();
        let function = functions.iter().find(|function| function["name"] == name);
        function.map_or(0, |function| function["calls"].as_u64().unwrap())
    }
}

fn source_of(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/programs")
        .join(name)
}

fn printed(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
#[ignore = "needs a C compiler: cargo xtask test record"]
fn a_program_without_mpi_finds_none_of_its_functions() {
    let bench = Bench::new();
    let program = bench.compile("gcc", "loaded.c", "program", &[]);
    let output = bench.record(&[&program]);
    assert_eq!(
        (printed(&output).as_str(), output.status.code()),
        ("000\n", Some(5))
    );
    assert!(
        said(&output).contains("nothing was recorded: it calls no MPI"),
        "{}",
        said(&output)
    );
}

#[test]
#[ignore = "needs a C compiler: cargo xtask test record"]
fn a_program_runs_with_an_unknown_library() {
    let bench = Bench::new();
    let options = ["-shared", "-fPIC", "-DLIBRARY"];
    let library = bench.compile("gcc", "toy_mpi.c", "libtoy_mpi.so", &options);
    let program = bench.compile("gcc", "toy_mpi.c", "program", &[&library]);
    let output = bench.record(&[&program]);
    assert_eq!(
        (printed(&output).as_str(), output.status.code()),
        ("done\n", Some(9))
    );
    let because = "cannot be recorded: its ABI is unknown (Toy MPI 1.0)";
    assert!(said(&output).contains(because), "{}", said(&output));
    let doctor = bench
        .flowcast(&["doctor", "--json", "--", &program])
        .output()
        .unwrap();
    let checks: Value = serde_json::from_slice(&doctor.stdout).unwrap();
    assert!(
        checks
            .to_string()
            .contains("its ABI is unknown (Toy MPI 1.0)"),
        "{checks}"
    );
}

/// A thread is cancelled, or an error handler or a signal handler jumps. After each of these, the program continues as it
/// does without the recorder.
fn calls_may_end_without_a_return(compiler: &str) {
    let bench = Bench::new();
    let program = bench.compile(compiler, "leaves.c", "program", &["-lpthread"]);
    for (way, barriers) in [("cancelled", 5), ("jumped", 5), ("interrupted", 0)] {
        let output = bench.record(&[&program, way]);
        assert_eq!(output.status.code(), Some(4), "{way}: {}", said(&output));
        let printed = printed(&output);
        assert!(printed.starts_with(&format!("{way}\n")), "{printed}");
        assert_eq!(bench.calls("MPI_Barrier"), barriers, "{way}");
        let because = "a signal handler interrupted the recorder";
        assert_eq!(said(&output).contains(because), way == "interrupted");
        fs::remove_dir_all(bench.0.path().join("recording")).unwrap();
    }
}

mod open_mpi {
    use super::*;

    #[test]
    #[ignore = "needs Open MPI: cargo xtask test record"]
    fn calls_may_end_without_a_return() {
        super::calls_may_end_without_a_return("mpicc.openmpi");
    }

    #[test]
    #[ignore = "needs Open MPI: cargo xtask test record"]
    fn a_library_that_a_program_loads_itself_is_recorded_and_not_found_before() {
        let bench = Bench::new();
        for options in [&[][..], &["-Wl,-rpath,/nowhere"], &["-Wl,-z,now"]] {
            let program = bench.compile("gcc", "loaded.c", "program", options);
            let output = bench.record(&[
                "mpirun.openmpi",
                "--oversubscribe",
                "-np",
                "2",
                &program,
                "libmpi.so.40",
            ]);
            assert_eq!(output.status.code(), Some(5), "{}", said(&output));
            assert!(
                printed(&output).starts_with("000\n000\n"),
                "{}",
                printed(&output)
            );
            assert_eq!(bench.calls("MPI_Barrier"), 14);
            fs::remove_dir_all(bench.0.path().join("recording")).unwrap();
        }
    }

    #[test]
    #[ignore = "needs Open MPI: cargo xtask test record"]
    fn a_profiling_tool_stays_between_program_and_library() {
        let bench = Bench::new();
        let tool = bench.compile(
            "mpicc.openmpi",
            "profiler.c",
            "profiler.so",
            &["-shared", "-fPIC"],
        );
        let program = bench.compile("mpicc.openmpi", "mixes.c", "program", &["-lpthread"]);
        let command = [
            "record",
            "-o",
            "recording",
            "--",
            "mpirun.openmpi",
            "--oversubscribe",
            "-np",
            "4",
            &program,
            "regions",
        ];
        let output = bench
            .flowcast(&command)
            .env("LD_PRELOAD", tool)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", said(&output));
        assert_eq!(
            printed(&output).matches("3 barriers").count(),
            4,
            "{}",
            printed(&output)
        );
        assert_eq!(bench.calls("MPI_Barrier"), 8);
    }
}

mod mpich {
    use super::*;

    #[test]
    #[ignore = "needs MPICH: cargo xtask test record"]
    fn calls_may_end_without_a_return() {
        super::calls_may_end_without_a_return("mpicc.mpich");
    }

    #[test]
    #[ignore = "needs MPICH: cargo xtask test record"]
    fn the_recording_ends_without_memory_and_the_program_continues() {
        let bench = Bench::new();
        let program = bench.compile("mpicc.mpich", "waits.c", "program", &[]);
        let limited = format!("ulimit -v 2000000; exec {program} hungry");
        let output = bench.record(&["sh", "-c", &limited]);
        assert_eq!(output.status.code(), Some(6), "{}", said(&output));
        assert!(
            printed(&output).starts_with("done\n"),
            "{}",
            printed(&output)
        );
        assert!(said(&output).contains("out of memory"), "{}", said(&output));
    }

    #[test]
    #[ignore = "needs MPICH: cargo xtask test record"]
    fn an_interrupted_recording_is_kept_and_reported() {
        let bench = Bench::new();
        let program = bench.compile("mpicc.mpich", "waits.c", "program", &[]);
        let mut command = crate::interruptible();
        command
            .args(["record", "-o", "recording", "--", &program])
            .current_dir(bench.0.path());
        let mut running = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut first = String::new();
        BufReader::new(running.stdout.as_mut().unwrap())
            .read_line(&mut first)
            .unwrap();
        assert_eq!(first, "begun\n");
        // The signal goes only to the command, as from a batch system.
        let number = running.id().to_string();
        assert!(
            Command::new("kill")
                .args(["-INT", &number])
                .status()
                .unwrap()
                .success()
        );
        let output = running.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(130), "{}", said(&output));
        assert!(said(&output).contains("interrupted; "), "{}", said(&output));
        assert!(bench.0.path().join("recording/recording").exists());
    }
}
