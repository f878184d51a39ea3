//! Programs that are compiled, recorded and replayed with either MPI library.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use flowcast::{
    recording::{
        decode::{self, RankFile},
        summary::rank_file,
    },
    units::Rank,
};
use serde_json::Value;

/// One of the two libraries, by the ending of its commands in Debian.
#[derive(Clone, Copy)]
pub(crate) struct Mpi {
    pub(crate) ending: &'static str,
    pub(crate) options: &'static [&'static str],
}

pub(crate) const OPEN_MPI: Mpi = Mpi {
    ending: "openmpi",
    options: &[
        "--oversubscribe",
        "--mca",
        "mpi_yield_when_idle",
        "1",
        "--mca",
        "btl",
        "self,vader",
    ],
};
pub(crate) const MPICH: Mpi = Mpi {
    ending: "mpich",
    options: &[],
};

/// Folder in which programs are compiled and recorded.
pub(crate) struct Bench {
    pub(crate) mpi: Mpi,
    folder: tempfile::TempDir,
}

impl Bench {
    pub(crate) fn new(mpi: Mpi) -> Bench {
        Bench {
            mpi,
            folder: tempfile::tempdir().unwrap(),
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn compile(&self, source: &str) -> String {
        self.compile_with(source, &[])
    }

    /// Compiles a program that includes other source files.
    pub(crate) fn compile_with(&self, source: &str, parts: &[&Path]) -> String {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/programs")
            .join(source);
        let compiler = if source.ends_with(".c") {
            "mpicc"
        } else {
            "mpif90"
        };
        let program = self.path(source.split('.').next().unwrap());
        let mut command = Command::new(format!("{compiler}.{}", self.mpi.ending));
        command
            .arg("-O2")
            .arg("-w")
            .arg(&path)
            .args(parts)
            .arg("-o")
            .arg(&program)
            .arg("-lpthread")
            .current_dir(self.folder.path());
        let output = command.output().unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        program.display().to_string()
    }

    pub(crate) fn flowcast(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new("timeout");
        command
            .arg("100")
            .arg(env!("CARGO_BIN_EXE_flowcast"))
            .args(arguments)
            .current_dir(self.folder.path());
        command
            .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
            .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        command.output().unwrap()
    }

    /// Records four ranks and returns the output of the command.
    pub(crate) fn record(&self, trace: &str, options: &[&str], program: &[&str]) -> Output {
        let launcher = format!("mpirun.{}", self.mpi.ending);
        let mut arguments = vec!["record", "-o", trace, "--json"];
        arguments.extend_from_slice(options);
        arguments.extend_from_slice(&["--", &launcher]);
        arguments.extend_from_slice(self.mpi.options);
        arguments.extend_from_slice(&["-np", "4"]);
        arguments.extend_from_slice(program);
        self.flowcast(&arguments)
    }

    pub(crate) fn recorded(&self, trace: &str, program: &[&str]) -> Value {
        let output = self.record(trace, &[], program);
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        summary(&output)
    }

    /// Replays a recording. Returns the result and the notes on omissions.
    pub(crate) fn predict(&self, trace: &str) -> (Value, String) {
        self.predict_with(trace, &[])
    }

    pub(crate) fn predict_with(&self, trace: &str, options: &[&str]) -> (Value, String) {
        // Messages are counted without those of collectives.
        let predict = [
            "predict",
            trace,
            "--network",
            "gige-tcp",
            "--collectives",
            "formula",
            "--json",
        ];
        let output = self.flowcast(&[&predict[..], options].concat());
        let notes = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{notes}");
        (serde_json::from_slice(&output.stdout).unwrap(), notes)
    }
}

pub(crate) fn summary(output: &Output) -> Value {
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text
        .lines()
        .rev()
        .find(|line| line.starts_with('{'))
        .unwrap();
    serde_json::from_str(line).unwrap()
}

/// Successful calls of each function, except those that every program makes, and the bytes of functions that send.
pub(crate) fn calls(summary: &Value) -> String {
    let functions = summary["functions"].as_array().unwrap();
    let words = functions.iter().filter_map(|function| {
        let name = function["name"].as_str()?.strip_prefix("MPI_")?;
        let calls = function["calls"].as_u64()? - function["unsuccessful"].as_u64()?;
        match function["bytes"].as_u64()? {
            _ if name.starts_with("Init") || name == "Finalize" => None,
            0 => Some(format!("{name} {calls}")),
            bytes => Some(format!("{name} {calls} {bytes}B")),
        }
    });
    words.collect::<Vec<_>>().join(", ")
}

/// Files of a recording of four ranks.
pub(crate) fn open(folder: &Path) -> Vec<RankFile> {
    let read = |name: String| decode::read(&name, &fs::read(folder.join(&name)).unwrap()).unwrap();
    (0..4).map(|rank| read(rank_file(Rank(rank)))).collect()
}

/// Defines each test once for either library.
macro_rules! for_both {
    ($($test:ident),* $(,)?) => {
        mod open_mpi {
            $(#[test]
            #[ignore = "needs Open MPI: cargo xtask test record"]
            fn $test() {
                super::$test(crate::recorder::OPEN_MPI);
            })*
        }

        mod mpich {
            $(#[test]
            #[ignore = "needs MPICH: cargo xtask test record"]
            fn $test() {
                super::$test(crate::recorder::MPICH);
            })*
        }
    };
}
