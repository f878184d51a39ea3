//! One program in C and one in Python with each MPI library: they behave the same with the recorder as without, and the
//! recordings predict the same messages. Libraries with files of rules follow them.
//!
//! The tests need the libraries, so `cargo test` lists them as ignored. `cargo xtask test record` installs the libraries and
//! sets their location.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use serde_json::Value;
use tempfile::TempDir;

use crate::{
    library_rules::a_library_follows_the_rules_of_its_form,
    outcome::{json, said},
};

/// Location of the libraries of Python packages, each in its own environment.
const FOLDER: &str = "FLOWCAST_MPI_LIBRARIES";

/// Messages and bytes that the programs send among four ranks, without those of collectives.
const IN_C: (u64, u64) = (40 + 40 + 3, 40 * 4000 + 40 * 800 + 3 * 17);
const IN_PYTHON: (u64, u64) = (40 + 3, 40 * 1000 + 3 * 17);

/// An MPI library.
pub(crate) struct Library {
    /// Environment of the library. Debian's libraries have one for mpi4py.
    environment: &'static str,
    launcher: &'static str,
    options: &'static [&'static str],
    compiler: Compiler,
    /// Version according to `doctor`.
    version: &'static str,
    abi: &'static str,
}

enum Compiler {
    /// Compiler on the search path.
    Debian(&'static str),
    /// Compiler in the environment.
    Own(&'static str),
    /// Library without headers: the headers of another environment, and the library's file.
    Headers(&'static str, &'static str, &'static str),
}

const OPEN_MPI_4: Library = Library {
    environment: "mpi4py",
    launcher: "mpirun.openmpi",
    options: &["--oversubscribe"],
    compiler: Compiler::Debian("mpicc.openmpi"),
    version: "Open MPI v4.1",
    abi: "Open MPI's ABI",
};
pub(crate) const OPEN_MPI_5: Library = Library {
    environment: "openmpi-5.0.11",
    launcher: "mpirun",
    compiler: Compiler::Own("mpicc"),
    version: "Open MPI v5.0.11",
    ..OPEN_MPI_4
};
const MPICH_4_0: Library = Library {
    environment: "mpi4py",
    launcher: "mpirun.mpich",
    options: &[],
    compiler: Compiler::Debian("mpicc.mpich"),
    version: "MPICH Version: 4.0",
    abi: "MPICH's ABI",
};
const MPICH_4_3: Library = Library {
    environment: "mpich-4.3.2",
    launcher: "mpirun",
    compiler: Compiler::Own("mpicc"),
    version: "MPICH Version: 4.3.2",
    ..MPICH_4_0
};
const MPICH_5: Library = Library {
    environment: "mpich-5.0.2",
    version: "MPICH Version: 5.0.2",
    ..MPICH_4_3
};
const MPICH_5_STANDARD: Library = Library {
    compiler: Compiler::Own("mpicc_abi"),
    abi: "the standard ABI of MPI 5.0",
    ..MPICH_5
};
const INTEL: Library = Library {
    environment: "impi-2021.19",
    compiler: Compiler::Headers("mpich-4.3.2", "mpi.h", "libmpi.so.12"),
    version: "Intel(R) MPI Library 2021.19",
    ..MPICH_4_3
};
const INTEL_STANDARD: Library = Library {
    compiler: Compiler::Headers("mpich-5.0.2", "mpi_abi.h", "libmpi_abi.so.1"),
    abi: "the standard ABI of MPI 5.0",
    ..INTEL
};

/// Folder for a library's programs and recordings.
pub(crate) struct Bench {
    library: Library,
    environment: PathBuf,
    pub(crate) folder: TempDir,
}

impl Bench {
    fn new(library: Library) -> Bench {
        let all =
            env::var_os(FOLDER).expect("`cargo xtask test record` says where the libraries are");
        let environment = Path::new(&all).join(library.environment);
        Bench::at(library, environment)
    }

    /// Bench of a library in this environment.
    pub(crate) fn at(library: Library, environment: PathBuf) -> Bench {
        Bench {
            environment,
            library,
            folder: tempfile::tempdir().unwrap(),
        }
    }

    fn own(&self, program: &str) -> PathBuf {
        self.environment.join("bin").join(program)
    }

    pub(crate) fn launch(&self) -> Vec<String> {
        let launcher = match self.library.compiler {
            Compiler::Debian(_) => self.library.launcher.to_owned(),
            _ => self.own(self.library.launcher).display().to_string(),
        };
        let mut words = vec![launcher];
        words.extend(self.library.options.iter().map(|option| option.to_string()));
        words.extend(["-np".to_owned(), "4".to_owned()]);
        words
    }

    /// Compiles a program and returns its path.
    pub(crate) fn compile(&self, source: &str) -> String {
        let program = self.folder.path().join("program").display().to_string();
        let libraries = self.environment.join("lib");
        let mut command = match self.library.compiler {
            Compiler::Debian(compiler) => Command::new(compiler),
            Compiler::Own(compiler) => Command::new(self.own(compiler)),
            Compiler::Headers(environment, header, library) => {
                let headers = self.environment.with_file_name(environment).join("include");
                fs::copy(headers.join(header), self.folder.path().join("mpi.h")).unwrap();
                let mut command = Command::new("gcc");
                command
                    .arg("-I")
                    .arg(self.folder.path())
                    .arg("-I")
                    .arg(headers);
                command
                    .arg("-Wl,--no-as-needed")
                    .arg(libraries.join(library));
                command
            }
        };
        command
            .args(["-w", "-o", &program])
            .arg(source_of(source))
            .arg("-ldl");
        command.arg(format!("-Wl,-rpath,{}", libraries.display()));
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", said(&output));
        program
    }

    pub(crate) fn run(&self, words: &[String]) -> Output {
        let mut command = Command::new("timeout");
        command
            .arg("100")
            .args(words)
            .current_dir(self.folder.path());
        command
            .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
            .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
            // Intel's package of the library does not include the fabric.
            .env("I_MPI_FABRICS", "shm");
        if let Compiler::Debian("mpicc.mpich") = self.library.compiler {
            // mpi4py requests it by another name.
            let found = Command::new("gcc")
                .arg("-print-file-name=libmpich.so.12")
                .output()
                .unwrap();
            let found = String::from_utf8(found.stdout).unwrap();
            let _ =
                std::os::unix::fs::symlink(found.trim(), self.folder.path().join("libmpi.so.12"));
            command
                .env("LD_LIBRARY_PATH", self.folder.path())
                .env("MPI4PY_LIBMPI", "libmpi.so.12");
        }
        command.output().unwrap()
    }

    fn flowcast(&self, arguments: &[&str], words: &[String]) -> Output {
        let arguments = arguments.iter().map(|argument| argument.to_string());
        let command: Vec<String> = [env!("CARGO_BIN_EXE_flowcast").to_owned()]
            .into_iter()
            .chain(arguments)
            .chain(words.iter().cloned())
            .collect();
        self.run(&command)
    }

    /// Runs a program with and without the recorder, expects the same output and exit code, and replays the recording.
    fn check(&self, program: &[&str], code: i32, (messages, bytes): (u64, u64)) {
        let mut words = self.launch();
        words.extend(program.iter().map(|word| word.to_string()));
        let alone = self.run(&words);
        assert_eq!(alone.status.code(), Some(code), "{}", said(&alone));
        let recorded = self.flowcast(&["record", "-o", "recording", "--"], &words);
        assert_eq!(recorded.status.code(), Some(code), "{}", said(&recorded));
        let [alone, printed] =
            [&alone, &recorded].map(|output| String::from_utf8_lossy(&output.stdout));
        assert!(alone.contains("4 ranks, 0 wrong"), "{alone}");
        assert!(
            printed.starts_with(&*alone),
            "alone:\n{alone}\nrecorded:\n{printed}"
        );
        let options = [
            "--network",
            "gige-tcp",
            "--collectives",
            "formula",
            "--incomplete",
            "--json",
        ];
        let replay = json(&self.flowcast(&[&["predict", "recording"], &options[..]].concat(), &[]));
        assert_eq!(
            (&replay["messages"], &replay["bytes"]),
            (&messages.into(), &bytes.into())
        );
        fs::remove_dir_all(self.folder.path().join("recording")).unwrap();
    }

    /// Report of `doctor` on the library of a program.
    fn diagnose(&self, program: &[&str]) {
        let mut words = self.launch();
        words.extend(program.iter().map(|word| word.to_string()));
        let output = self.flowcast(&["doctor", "--json", "--"], &words);
        let all: Value = serde_json::from_slice(&output.stdout).unwrap();
        let checks = all["checks"].as_array().unwrap();
        let library = checks
            .iter()
            .find(|check| check["name"] == "library")
            .unwrap();
        let found = library["found"].as_str().unwrap();
        assert_eq!(library["verdict"], "good", "{library}");
        assert!(
            found.starts_with(self.library.version) && found.contains(self.library.abi),
            "{found}"
        );
    }
}

fn source_of(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/programs")
        .join(name)
}

fn a_program_in_c_does_what_it_does_alone(library: Library) {
    let bench = Bench::new(library);
    let program = bench.compile("libraries.c");
    bench.check(&[&program, "3"], 3, IN_C);
    bench.diagnose(&[&program]);
}

fn a_program_in_python_does_what_it_does_alone(library: Library) {
    let bench = Bench::new(library);
    let (python, source) = (bench.own("python"), source_of("libraries.py"));
    let program = [python.to_str().unwrap(), source.to_str().unwrap()];
    bench.check(&program, 0, IN_PYTHON);
    bench.diagnose(&program);
}

/// Tests of a program in C, in Python if mpi4py has a build for the ABI, and of rules in a form, with each library.
macro_rules! under {
    ($($library:ident: $constant:ident $($language:ident)+ $(, $form:literal)?;)*) => {
        $(mod $library {
            $(under!(@ $constant $language);)+
            $(#[test]
            #[ignore = "needs this library: cargo xtask test record"]
            fn a_library_follows_the_rules_of_its_form() {
                super::a_library_follows_the_rules_of_its_form(&super::Bench::new(super::$constant), $form);
            })?
        })*
    };
    (@ $constant:ident c) => {
        #[test]
        #[ignore = "needs this library: cargo xtask test record"]
        fn a_program_in_c_does_what_it_does_alone() {
            super::a_program_in_c_does_what_it_does_alone(super::$constant);
        }
    };
    (@ $constant:ident python) => {
        #[test]
        #[ignore = "needs this library: cargo xtask test record"]
        fn a_program_in_python_does_what_it_does_alone() {
            super::a_program_in_python_does_what_it_does_alone(super::$constant);
        }
    };
}

under! {
    debian_openmpi: OPEN_MPI_4 c python;
    openmpi_5_0_11: OPEN_MPI_5 c python, "openmpi-5.0";
    debian_mpich: MPICH_4_0 c python;
    mpich_4_3_2: MPICH_4_3 c python, "mpich-4.3";
    mpich_5_0_2: MPICH_5 c python, "mpich-5.0";
    mpich_5_0_2_standard_abi: MPICH_5_STANDARD c;
    intel_2021_19: INTEL c python;
    intel_2021_19_standard_abi: INTEL_STANDARD c;
}
