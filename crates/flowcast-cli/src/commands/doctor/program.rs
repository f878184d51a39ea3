//! Checks that launcher, library, program and recorder fit together.

use std::{
    ffi::{OsStr, OsString},
    fs::File,
    io::Read,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use super::{
    Check,
    machine::{Extent, Machine},
};
use crate::{
    mpi_launcher::{LaunchCommand, Launcher, launch_command},
    recording::{RECORDER, RecorderPlace, WHERE_EXPECTED, find_recorder, recorder},
};

/// MPI library that a program calls.
#[derive(Debug, Clone, PartialEq, Eq)]
enum LibraryUse {
    By(MpiLibrary),
    /// Shared libraries without an MPI library.
    Without,
    Statically,
    /// Reason why the library cannot be determined.
    Unknown(&'static str),
}

/// An MPI library, as the recorder identifies it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct MpiLibrary {
    path: String,
    /// Binary interface, if the recorder knows it.
    abi: Option<String>,
    /// Version according to the library, or the reason why the recorder cannot record it.
    version: String,
}

/// All checks of a command. Without a command, the first launcher on the search path is checked.
pub(super) fn checks(machine: &Machine, command: &[OsString]) -> Vec<Check> {
    let name = command.first().cloned().unwrap_or_else(|| "mpirun".into());
    let found = find_on_path(machine, &name);
    let launcher = found.as_ref().map_or(Launcher::Unknown, |path| {
        Launcher::by_program(path.as_os_str())
    });
    let mut checks = vec![check_launcher(&name, found.as_deref(), launcher)];
    if !command.is_empty() {
        let asked = launch_command(command, |word| find_on_path(machine, word).is_some());
        let program = asked
            .program
            .and_then(|index| find_on_path(machine, &command[index]))
            // A program without a launcher.
            .or_else(|| found.filter(|_| !is_launcher(&name)));
        checks.push(check_program(launcher, program.as_deref(), &asked));
        checks.push(check_ranks(machine, &asked));
    }
    checks.push(check_recorder());
    checks
}

/// Extent of a command: several machines if it names other machines, or if a batch system has allocated several nodes.
pub(super) fn extent(machine: &Machine, command: &[OsString]) -> Extent {
    let is_launcher = command.first().is_some_and(|name| is_launcher(name));
    let names_hosts =
        is_launcher && launch_command(command, |word| find_on_path(machine, word).is_some()).hosts;
    let nodes = ["SLURM_JOB_NUM_NODES", "SLURM_NNODES"]
        .iter()
        .find_map(|name| machine.variable(name));
    let is_given_several = nodes
        .and_then(|nodes| nodes.parse::<u32>().ok())
        .is_some_and(|nodes| nodes > 1);
    if names_hosts || is_given_several {
        Extent::SeveralMachines
    } else {
        Extent::OneMachine
    }
}

fn is_launcher(name: &OsStr) -> bool {
    let name = Path::new(name)
        .file_name()
        .unwrap_or(name)
        .to_string_lossy();
    ["mpirun", "mpiexec", "orterun", "prterun", "srun"]
        .iter()
        .any(|known| name.starts_with(known))
}

fn find_on_path(machine: &Machine, name: &OsStr) -> Option<PathBuf> {
    if Path::new(name).components().count() > 1 {
        return Some(PathBuf::from(name)).filter(|path| is_program(path));
    }
    std::env::split_paths(machine.variable("PATH")?)
        .map(|folder| folder.join(name))
        .find(|path| is_program(path))
}

fn is_program(path: &Path) -> bool {
    path.metadata()
        .is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

fn check_launcher(name: &OsStr, found: Option<&Path>, launcher: Launcher) -> Check {
    const NAME: &str = "launcher";
    match found {
        Some(path) => Check::good(NAME, format!("{} ({})", path.display(), launcher.name())),
        None => Check::bad(
            NAME,
            format!("no program {}", name.to_string_lossy()),
            "install an MPI library with its launcher: `apt install openmpi-bin`, or load its module",
        ),
    }
}

fn check_program(launcher: Launcher, program: Option<&Path>, asked: &LaunchCommand) -> Check {
    let Some(program) = program else {
        return Check::unknown(LIBRARY, "this machine has no program of the command");
    };
    judge_library(launcher, &library_use(program), asked.ranks)
}

const LIBRARY: &str = "library";

fn judge_library(launcher: Launcher, served: &LibraryUse, ranks: Option<usize>) -> Check {
    match served {
        LibraryUse::By(library) => check_library(launcher, library, ranks),
        LibraryUse::Statically => Check::bad(
            LIBRARY,
            "the program is linked statically",
            "the recorder cannot be loaded into it: link it with the shared MPI library",
        ),
        LibraryUse::Without => Check::unknown(
            LIBRARY,
            "the program itself does not link an MPI library (it is a script or loads a plugin)",
        ),
        LibraryUse::Unknown(why) => Check::unknown(LIBRARY, *why),
    }
}

/// Checks that the library belongs to the launcher. Otherwise each process of the program would be a world of one rank.
fn check_library(launcher: Launcher, library: &MpiLibrary, ranks: Option<usize>) -> Check {
    let MpiLibrary { path, version, .. } = library;
    let Some(abi) = &library.abi else {
        return Check::bad(
            LIBRARY,
            format!("{path}: {version}"),
            "the recorder does not know this library: the program would run without being recorded",
        );
    };
    let is_open_mpi = version.starts_with("Open MPI");
    if launcher == Launcher::Hydra && is_open_mpi || launcher == Launcher::OpenMpi && !is_open_mpi {
        let ranks = ranks.map_or("its".to_owned(), |ranks| ranks.to_string());
        let ending = if is_open_mpi { "openmpi" } else { "mpich" };
        return Check::bad(
            LIBRARY,
            format!(
                "the program uses {version}, the launcher belongs to {}: {ranks} processes, each alone in MPI_COMM_WORLD",
                launcher.name()
            ),
            format!("use the mpirun of that library (`mpirun.{ending}` in Debian)"),
        );
    }
    Check::good(
        LIBRARY,
        format!("{version} ({path}), {abi}, supported by the recorder"),
    )
}

/// Determines the library that a program calls: loads the program's libraries into a program that does nothing, with the
/// recorder.
fn library_use(program: &Path) -> LibraryUse {
    let mut magic = [0; 4];
    let read = File::open(program).and_then(|mut file| file.read_exact(&mut magic));
    if read.is_err() {
        return LibraryUse::Unknown("the program cannot be read");
    }
    // A script, which starts another program.
    if magic != *b"\x7FELF" {
        return LibraryUse::Without;
    }
    let Some(listing) = listing(program) else {
        return LibraryUse::Unknown("the program's libraries cannot be listed");
    };
    if ["not a dynamic executable", "statically linked"]
        .iter()
        .any(|said| listing.contains(said))
    {
        return LibraryUse::Statically;
    }
    let libraries = libraries(&listing);
    if libraries.is_empty() {
        return LibraryUse::Without;
    }
    ask(&libraries)
}

/// List of the libraries with which a program is linked, or which Python loads with mpi4py.
fn listing(program: &Path) -> Option<String> {
    const PYTHON: &str = "import mpi4py; mpi4py.rc.initialize = False; from mpi4py import MPI; \
                          print(*{line.split()[-1] + ' ()' for line in open('/proc/self/maps') if '.so' in line}, sep='\\n')";
    let name = program.file_name()?.to_string_lossy();
    let mut command = if name.starts_with("python") {
        let mut command = Command::new(program);
        command.args(["-c", PYTHON]);
        command
    } else {
        let mut command = Command::new("ldd");
        command.arg(program);
        command
    };
    let listed = command
        .stdin(Stdio::null())
        .env_remove("LD_PRELOAD")
        .output()
        .ok()?;
    let text = [listed.stdout, listed.stderr].concat();
    Some(String::from_utf8_lossy(&text).into_owned())
}

/// Files in a list of `NAME => FILE (ADDRESS)` that may be MPI libraries according to their names.
fn libraries(listing: &str) -> Vec<&str> {
    let files = listing.lines().filter_map(|line| {
        let line = line.trim().split(" (").next()?;
        let file = line.rsplit(" => ").next()?;
        let (folder, name) = file.rsplit_once('/')?;
        (folder.starts_with('/') && name.starts_with("lib") && name.contains("mpi")).then_some(file)
    });
    files.collect()
}

fn ask(libraries: &[&str]) -> LibraryUse {
    let Ok(recorder) = recorder(None) else {
        return LibraryUse::Unknown("no recorder is available to identify the program's libraries");
    };
    let mut loaded: OsString = recorder.path.clone().into();
    for library in libraries {
        loaded.push(":");
        loaded.push(library);
    }
    let mut command = Command::new("true");
    command
        .env("LD_PRELOAD", loaded)
        .env("FLOWCAST_RECORD_ASK", "1");
    let Ok(answer) = command.stdin(Stdio::null()).output() else {
        return LibraryUse::Unknown("the program's libraries cannot be loaded");
    };
    parse_answer(&String::from_utf8_lossy(&answer.stdout))
        .map_or(LibraryUse::Without, LibraryUse::By)
}

/// Parses the recorder's answer: path, ABI and version.
fn parse_answer(text: &str) -> Option<MpiLibrary> {
    let mut lines = text.lines();
    let (path, abi, version) = (lines.next()?, lines.next()?, lines.next()?);
    Some(MpiLibrary {
        path: path.to_owned(),
        abi: (!abi.is_empty()).then(|| abi.to_owned()),
        // Open MPI appends its package.
        version: version.split(',').next().unwrap_or_default().to_owned(),
    })
}

fn check_ranks(machine: &Machine, asked: &LaunchCommand) -> Check {
    const NAME: &str = "processors";
    let processors = machine.processors;
    match asked.ranks {
        None => Check::unknown(
            NAME,
            format!("{processors} here; the command gives no number of ranks (-np)"),
        ),
        Some(ranks) if asked.hosts => Check::unknown(
            NAME,
            format!("{ranks} ranks on the machines named in the command"),
        ),
        Some(ranks) if ranks > processors => Check::bad(
            NAME,
            format!("{ranks} ranks on {processors} processors"),
            "ranks share processors: use more machines or fewer ranks; otherwise, a recording counts thread CPU time, and \
             measured times mean little",
        ),
        Some(ranks) => Check::good(NAME, format!("{ranks} ranks on {processors} processors")),
    }
}

fn check_recorder() -> Check {
    const NAME: &str = "recorder";
    match find_recorder(None) {
        Some(RecorderPlace::File(path)) => Check::good(NAME, path.display().to_string()),
        Some(RecorderPlace::Embedded) => Check::good(NAME, "built into flowcast"),
        None => Check::bad(
            NAME,
            format!("no {RECORDER}"),
            format!("expected it {WHERE_EXPECTED}"),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::{super::Verdict, *};

    fn library(version: &str, abi: &str) -> LibraryUse {
        LibraryUse::By(parse_answer(&format!("/lib/x.so\n{abi}\n{version}\n")).unwrap())
    }

    #[test]
    fn a_program_of_another_library_than_the_launcher_is_a_problem() {
        let mpich = library("MPICH Version: 5.0.2", "MPICH's ABI");
        let check = judge_library(Launcher::OpenMpi, &mpich, Some(8));
        assert_eq!(
            (
                check.verdict,
                check
                    .found
                    .contains("8 processes, each alone in MPI_COMM_WORLD")
            ),
            (Verdict::Bad, true)
        );
        assert!(check.advice.unwrap().contains("mpirun.mpich"));
        assert_eq!(
            judge_library(Launcher::Hydra, &mpich, None).found,
            "MPICH Version: 5.0.2 (/lib/x.so), MPICH's ABI, supported by the recorder"
        );
        let open_mpi = library("Open MPI v4.1.4, package: Debian OpenMPI", "Open MPI's ABI");
        let check = judge_library(Launcher::Slurm, &open_mpi, None);
        assert_eq!(check.verdict, Verdict::Good);
        assert!(
            check.found.starts_with("Open MPI v4.1.4 (/lib"),
            "{}",
            check.found
        );
        assert_eq!(
            judge_library(Launcher::Hydra, &LibraryUse::Statically, None).verdict,
            Verdict::Bad
        );
    }

    #[test]
    fn a_library_that_the_recorder_does_not_know_is_a_problem() {
        let unknown = library("its ABI is unknown (Toy MPI 1)", "");
        let check = judge_library(Launcher::Hydra, &unknown, None);
        assert_eq!(
            (check.verdict, check.found.as_str()),
            (Verdict::Bad, "/lib/x.so: its ABI is unknown (Toy MPI 1)")
        );
    }

    #[test]
    fn the_paths_of_libraries_follow_their_names_in_the_list() {
        let listing = "\tlinux-vdso.so.1 (0x7)\n\tlibmpi.so.40 => /lib/libmpi.so.40 (0x1)\n\tlibmpi_x.so => not found\n\t\
                       libc.so.6 => /lib/libc.so.6 (0x2)\n/opt/lib/libmpich.so.12 ()\n";
        assert_eq!(
            libraries(listing),
            ["/lib/libmpi.so.40", "/opt/lib/libmpich.so.12"]
        );
    }

    #[test]
    fn more_ranks_than_processors_are_a_problem_unless_they_are_elsewhere() {
        let folder = tempfile::tempdir().unwrap();
        let machine = Machine::under(folder.path(), &[]);
        let verdict = |ranks, hosts| {
            check_ranks(
                &machine,
                &LaunchCommand {
                    ranks,
                    hosts,
                    ..LaunchCommand::default()
                },
            )
            .verdict
        };
        assert_eq!(verdict(Some(2), false), Verdict::Good);
        assert_eq!(verdict(Some(3), false), Verdict::Bad);
        assert_eq!(verdict(Some(3), true), Verdict::Unknown);
        assert_eq!(verdict(None, false), Verdict::Unknown);
    }
}
