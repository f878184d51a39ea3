//! Launchers of MPI programs: their kinds, and their ways of passing environment variables to other machines.

use std::{
    ffi::{OsStr, OsString},
    path::Path,
    process::{Command, Stdio},
};

/// Kind of a launcher.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Launcher {
    OpenMpi,
    /// MPICH's Hydra, and launchers derived from it.
    Hydra,
    /// Slurm's srun, which starts programs of Open MPI and of MPICH.
    Slurm,
    /// Anything else, also a program without a launcher.
    Unknown,
}

impl Launcher {
    /// Determines the kind of launcher from the program's name and its output.
    pub(crate) fn by_program(program: &OsStr) -> Launcher {
        let name = Path::new(program)
            .file_name()
            .unwrap_or(program)
            .to_string_lossy()
            .into_owned();
        if name == "srun" {
            return Launcher::Slurm;
        }
        // Other programs are not called, because they may do anything.
        if !["mpirun", "mpiexec", "orterun", "prterun"]
            .iter()
            .any(|known| name.starts_with(known))
        {
            return Launcher::Unknown;
        }
        let asked = Command::new(program)
            .arg("--version")
            .stdin(Stdio::null())
            .output();
        let text = asked
            .map(|output| String::from_utf8_lossy(&output.stdout).into_owned())
            .unwrap_or_default();
        Launcher::from_version(&text)
    }

    fn from_version(text: &str) -> Launcher {
        if ["Open MPI", "OpenRTE", "PRRTE"]
            .iter()
            .any(|word| text.contains(word))
        {
            Launcher::OpenMpi
        } else if text.contains("HYDRA") || text.contains("Intel(R) MPI") {
            Launcher::Hydra
        } else {
            Launcher::Unknown
        }
    }

    /// Name in printed text, such as `Open MPI`.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Launcher::OpenMpi => "Open MPI",
            Launcher::Hydra => "MPICH",
            Launcher::Slurm => "Slurm",
            Launcher::Unknown => "an unknown launcher",
        }
    }
}

/// A command that passes variables to the ranks.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Forwarded {
    /// Command with additional options of the launcher.
    pub command: Vec<OsString>,
    /// Variables to set in the environment of the launcher.
    pub variables: Vec<(String, OsString)>,
}

const ENVIRONMENT_LIST: &str = "OMPI_MCA_mca_base_env_list";

/// Makes the launcher pass variables of its environment to ranks on other machines. Hydra and srun always do. Open MPI has a
/// list of names in a variable, but rejects it if the command has an `-x` option. In this case, each name gets an `-x` too.
pub(crate) fn forward(launcher: Launcher, command: &[OsString], names: &[&str]) -> Forwarded {
    let mut forwarded = Forwarded {
        command: command.to_vec(),
        variables: Vec::new(),
    };
    if launcher != Launcher::OpenMpi {
        return forwarded;
    }
    if command.iter().any(|word| word == "-x") {
        let options = names
            .iter()
            .flat_map(|name| ["-x".into(), OsString::from(name)]);
        forwarded.command.splice(1..1, options);
        return forwarded;
    }
    let mut list = names.join(";");
    if let Ok(others) = std::env::var(ENVIRONMENT_LIST) {
        list = format!("{others};{list}");
    }
    forwarded
        .variables
        .push((ENVIRONMENT_LIST.to_owned(), list.into()));
    forwarded
}

/// Number of processes that a command requests, and the position of the program in it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct LaunchCommand {
    /// Number of processes, if the command contains it.
    pub ranks: Option<usize>,
    /// `true` if other machines are named.
    pub hosts: bool,
    /// `true` if more processes than processors are requested.
    pub oversubscribe: bool,
    /// Index of the program.
    pub program: Option<usize>,
}

/// Parses a launcher's command. The program is the first word that is a program and not the value of an option.
pub(crate) fn launch_command(
    command: &[OsString],
    is_program: impl Fn(&OsStr) -> bool,
) -> LaunchCommand {
    let mut asked = LaunchCommand::default();
    let mut words = command.iter().enumerate().skip(1);
    while let Some((index, word)) = words.next() {
        match word.to_string_lossy().as_ref() {
            "-np" | "-n" | "--np" | "-c" | "--ntasks" => {
                asked.ranks = words
                    .next()
                    .and_then(|(_, value)| value.to_string_lossy().parse().ok());
            }
            "--oversubscribe" | "-oversubscribe" => asked.oversubscribe = true,
            "-host" | "--host" | "-H" | "-hosts" | "-hostfile" | "--hostfile" | "-f"
            | "--machinefile" => {
                asked.hosts = true;
                words.next();
            }
            "-x" => drop(words.next()),
            "--mca" | "-mca" => drop((words.next(), words.next())),
            option if option.starts_with('-') => {}
            _ if is_program(word) => {
                asked.program = Some(index);
                break;
            }
            _ => {}
        }
    }
    asked
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<OsString> {
        text.split_whitespace().map(OsString::from).collect()
    }

    #[test]
    fn open_mpi_gets_a_list_of_names_or_the_options_of_the_command() {
        let command = words("mpirun -np 2 ./a");
        let forwarded = forward(Launcher::OpenMpi, &command, &["A", "B"]);
        assert_eq!(forwarded.command, command);
        assert!(forwarded.variables[0].1.to_string_lossy().ends_with("A;B"));
        let forwarded = forward(
            Launcher::OpenMpi,
            &words("mpirun -x HOME -np 2 ./a"),
            &["A", "B"],
        );
        assert_eq!(
            forwarded.command,
            words("mpirun -x A -x B -x HOME -np 2 ./a")
        );
        assert!(forwarded.variables.is_empty());
        assert!(
            forward(Launcher::Hydra, &command, &["A"])
                .variables
                .is_empty()
        );
    }

    #[test]
    fn launchers_are_recognised_by_their_version_texts() {
        assert_eq!(
            Launcher::from_version("mpirun (Open MPI) 4.1.4"),
            Launcher::OpenMpi
        );
        assert_eq!(
            Launcher::from_version("mpirun.openmpi (OpenRTE) 4.1.4"),
            Launcher::OpenMpi
        );
        assert_eq!(
            Launcher::from_version("HYDRA build details:\n Version: 4.0.2"),
            Launcher::Hydra
        );
        assert_eq!(Launcher::from_version(""), Launcher::Unknown);
        assert_eq!(
            Launcher::by_program("./program".as_ref()),
            Launcher::Unknown
        );
    }

    #[test]
    fn a_command_contains_ranks_hosts_and_program() {
        let is_program = |word: &OsStr| word == "./a";
        let command = words("mpirun --mca btl tcp,self -np 4 --oversubscribe -x HOME ./a -n 7");
        let found = launch_command(&command, is_program);
        assert_eq!(
            found,
            LaunchCommand {
                ranks: Some(4),
                hosts: false,
                oversubscribe: true,
                program: Some(9)
            }
        );
        assert!(launch_command(&words("mpiexec -f hosts -n 2 ./a"), is_program).hosts);
    }
}
