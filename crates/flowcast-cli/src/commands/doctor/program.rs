//! Launcher, library, program and recorder: whether they fit together.

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
    mpi_launcher::{Asked, Launcher, asked},
    recording::{Found, RECORDER, WHERE_EXPECTED, find_recorder},
};

/// What a program's list of libraries says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Linked {
    OpenMpi,
    Mpich,
    /// Shared libraries, none of MPI that is known.
    Without,
    Statically,
    Unreadable,
}

/// All of them; without a command, the launcher that is first on the search path.
pub(super) fn checks(machine: &Machine, command: &[OsString]) -> Vec<Check> {
    let name = command.first().cloned().unwrap_or_else(|| "mpirun".into());
    let found = find_on_path(machine, &name);
    let launcher = found
        .as_ref()
        .map(|path| Launcher::of(path.as_os_str()))
        .unwrap_or(Launcher::Unknown);
    let mut checks = vec![check_launcher(&name, found.as_deref(), launcher)];
    if !command.is_empty() {
        let asked = asked(command, |word| find_on_path(machine, word).is_some());
        let program = asked
            .program
            .and_then(|index| find_on_path(machine, &command[index]));
        checks.push(check_program(launcher, program.as_deref(), &asked));
        checks.push(check_ranks(machine, &asked));
    }
    checks.push(check_recorder());
    checks
}

/// Whether a command names other machines, or a batch system has given this one several.
pub(super) fn extent(machine: &Machine, command: &[OsString]) -> Extent {
    let is_launcher = command.first().is_some_and(|name| is_launcher(name));
    let names_hosts =
        is_launcher && asked(command, |word| find_on_path(machine, word).is_some()).hosts;
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

fn check_program(launcher: Launcher, program: Option<&Path>, asked: &Asked) -> Check {
    let Some(program) = program else {
        return Check::unknown(LIBRARY, "the command names no program that is here");
    };
    judge_library(launcher, linked(program), asked.ranks)
}

const LIBRARY: &str = "library";

/// A launcher of one library starts a program of the other as many worlds of one rank.
fn judge_library(launcher: Launcher, linked: Linked, ranks: Option<usize>) -> Check {
    let alone = |library: &str, other: &str| {
        let ranks = ranks.map_or("its".to_owned(), |ranks| ranks.to_string());
        Check::bad(
            LIBRARY,
            format!(
                "the program has {library}, the launcher is that of {other}: {ranks} processes, each a world of 1"
            ),
            format!(
                "use the mpirun of {library} (`mpirun.{}` in Debian)",
                if library == "MPICH" {
                    "mpich"
                } else {
                    "openmpi"
                }
            ),
        )
    };
    match (launcher, linked) {
        (Launcher::Hydra, Linked::OpenMpi) => alone("Open MPI", "MPICH"),
        (Launcher::OpenMpi, Linked::Mpich) => alone("MPICH", "Open MPI"),
        (_, Linked::Statically) => Check::bad(
            LIBRARY,
            "the program is linked statically",
            "the recorder cannot be loaded into it: link it with the shared MPI library",
        ),
        (_, Linked::OpenMpi) => Check::good(LIBRARY, "Open MPI"),
        (_, Linked::Mpich) => Check::good(LIBRARY, "MPICH"),
        (_, Linked::Without) => Check::unknown(
            LIBRARY,
            "the program links no MPI library itself (a script, or by a plugin)",
        ),
        (_, Linked::Unreadable) => {
            Check::unknown(LIBRARY, "the program's libraries cannot be listed")
        }
    }
}

fn linked(program: &Path) -> Linked {
    let mut magic = [0; 4];
    let read = File::open(program).and_then(|mut file| file.read_exact(&mut magic));
    if read.is_err() {
        return Linked::Unreadable;
    }
    // A script, which starts something else.
    if magic != *b"\x7FELF" {
        return Linked::Without;
    }
    let listed = Command::new("ldd")
        .arg(program)
        .stdin(Stdio::null())
        .env_remove("LD_PRELOAD")
        .output();
    let Ok(listed) = listed else {
        return Linked::Unreadable;
    };
    let text = [listed.stdout, listed.stderr].concat();
    linked_by(&String::from_utf8_lossy(&text))
}

fn linked_by(listing: &str) -> Linked {
    let has = |name: &str| listing.contains(name);
    if has("libmpi.so.40") || has("libopen-pal") {
        Linked::OpenMpi
    } else if has("libmpich.so") || has("libmpi.so.12") {
        Linked::Mpich
    } else if has("not a dynamic executable") || has("statically linked") {
        Linked::Statically
    } else {
        Linked::Without
    }
}

fn check_ranks(machine: &Machine, asked: &Asked) -> Check {
    const NAME: &str = "processors";
    let processors = machine.processors;
    match asked.ranks {
        None => Check::unknown(
            NAME,
            format!("{processors} here; the command does not say how many ranks (-np)"),
        ),
        Some(ranks) if asked.hosts => Check::unknown(
            NAME,
            format!("{ranks} ranks on the machines that the command names"),
        ),
        Some(ranks) if ranks > processors => Check::bad(
            NAME,
            format!("{ranks} ranks on {processors} processors"),
            "ranks wait for each other's turns: use more machines or fewer ranks; a recording then counts thread CPU \
             time, and measured times mean little",
        ),
        Some(ranks) => Check::good(NAME, format!("{ranks} ranks on {processors} processors")),
    }
}

fn check_recorder() -> Check {
    const NAME: &str = "recorder";
    match find_recorder(None) {
        Some(Found::File(path)) => Check::good(NAME, path.display().to_string()),
        Some(Found::Embedded) => Check::good(NAME, "in flowcast itself"),
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

    #[test]
    fn a_program_of_the_other_library_is_found_out() {
        let check = judge_library(Launcher::OpenMpi, Linked::Mpich, Some(8));
        assert_eq!(
            (
                check.verdict,
                check.found.contains("8 processes, each a world of 1")
            ),
            (Verdict::Bad, true)
        );
        assert!(check.advice.unwrap().contains("mpirun.mpich"));
        assert_eq!(
            judge_library(Launcher::Hydra, Linked::Mpich, None).verdict,
            Verdict::Good
        );
        assert_eq!(
            judge_library(Launcher::Slurm, Linked::OpenMpi, None).verdict,
            Verdict::Good
        );
        assert_eq!(
            judge_library(Launcher::Hydra, Linked::Statically, None).verdict,
            Verdict::Bad
        );
    }

    #[test]
    fn libraries_are_told_by_their_names() {
        assert_eq!(
            linked_by("\tlibmpi.so.40 => /lib/libmpi.so.40 (0x1)"),
            Linked::OpenMpi
        );
        assert_eq!(
            linked_by("\tlibmpich.so.12 => /lib/libmpich.so.12 (0x1)"),
            Linked::Mpich
        );
        assert_eq!(
            linked_by("\tlibc.so.6 => /lib/libc.so.6 (0x1)"),
            Linked::Without
        );
        assert_eq!(linked_by("\tnot a dynamic executable"), Linked::Statically);
    }

    #[test]
    fn more_ranks_than_processors_are_a_problem_unless_they_are_elsewhere() {
        let folder = tempfile::tempdir().unwrap();
        let machine = Machine::under(folder.path(), &[]);
        let verdict = |ranks, hosts| {
            check_ranks(
                &machine,
                &Asked {
                    ranks,
                    hosts,
                    ..Asked::default()
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
