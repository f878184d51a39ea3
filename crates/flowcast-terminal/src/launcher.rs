//! Position of this process among the processes that an MPI launcher has started.
//!
//! The two measuring processes find each other by a rendezvous file: rank 1 listens and writes its address, and rank 0 reads
//! it. No MPI library is needed.

use std::{
    env, fs,
    path::Path,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Result, anyhow};
use flowcast::units::Rank;
use flowcast_measure::tcp::{TcpEntry, TcpTransport, Waiting};
use flowcast_rails::token::Token;

use crate::{exit::EnvironmentLacks, files::write_private_text, provenance};

use crate::token;

/// Maximum time that a process of a launcher waits for another one.
pub const TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum time that a connecting end waits until the other end listens.
const LISTENING: Duration = Duration::from_secs(5);

/// Rank and number of processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    pub rank: Rank,
    pub size: u32,
}

/// Variables of the rank and the number of processes that Open MPI and PMI launchers (MPICH, Intel MPI, srun) set.
const MPI: [[&str; 2]; 2] = [
    ["OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"],
    ["PMI_RANK", "PMI_SIZE"],
];
/// Variables of the rank and the number of processes in a Slurm step.
const STEP: [&str; 2] = ["SLURM_PROCID", "SLURM_NTASKS"];
/// Variables of an array of Slurm jobs: own index, first index, step between indices, number of jobs.
const ARRAY: [&str; 4] = [
    "SLURM_ARRAY_TASK_ID",
    "SLURM_ARRAY_TASK_MIN",
    "SLURM_ARRAY_TASK_STEP",
    "SLURM_ARRAY_TASK_COUNT",
];

/// Position of this process according to Open MPI or a PMI launcher.
pub fn place() -> Option<Place> {
    MPI.into_iter().find_map(|names| place_in(&variable, names))
}

/// Position of a process that is always started by a launcher. It may therefore also come from Slurm's own variables, which
/// every step of a batch script has.
pub fn place_of_rank() -> Option<Place> {
    place().or_else(|| place_in(&variable, STEP))
}

/// Positions of this process according to each launcher and to an array of jobs, with the variable of the position.
pub(crate) fn places(read: &dyn Fn(&str) -> Option<String>) -> Vec<(&'static str, Place)> {
    // A batch script has the variables of a step, but is not one of its processes.
    let is_script = read("SLURM_JOB_ID").is_some() && read("SLURM_STEP_ID").is_none();
    let steps = (!is_script).then_some(STEP);
    let launched = MPI.into_iter().chain(steps);
    let launched = launched.filter_map(|names| Some((names[0], place_in(read, names)?)));
    let array = place_in_array(read).map(|place| (ARRAY[0], place));
    launched.chain(array).collect()
}

fn place_in(read: &dyn Fn(&str) -> Option<String>, [rank, size]: [&str; 2]) -> Option<Place> {
    Some(Place {
        rank: Rank(number(read, rank)?),
        size: number(read, size)?,
    })
}

/// Position in an array of jobs whose indices have equal distances.
fn place_in_array(read: &dyn Fn(&str) -> Option<String>) -> Option<Place> {
    let [index, first, step, count] = ARRAY.map(|name| number(read, name));
    let (distance, step) = (index?.checked_sub(first?)?, step?);
    let rank = Rank(distance.checked_div(step)?);
    (distance % step == 0).then_some(Place { rank, size: count? })
}

fn number(read: &dyn Fn(&str) -> Option<String>, name: &str) -> Option<u32> {
    read(name)?.parse().ok()
}

/// Value of an environment variable.
pub(crate) fn variable(name: &str) -> Option<String> {
    env::var(name).ok()
}

/// `true` if all processes of the launcher run on this host.
pub(crate) fn all_are_here() -> bool {
    let names = ["OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"];
    let here = names.iter().find_map(|name| number(&variable, name));
    place().is_some_and(|place| here == Some(place.size))
}

/// Rank 1: listens, on loopback if the other rank is on this host. Writes this host's name, the port and a token into the
/// file, which only this user can read. The other rank must present the token.
pub fn wait_at(file: &Path, waiting: Waiting) -> Result<TcpTransport> {
    let door = TcpEntry::open(if all_are_here() {
        "127.0.0.1:0"
    } else {
        "0.0.0.0:0"
    })?;
    let (host, port, token) = (provenance::host(), door.address()?.port(), token::new()?);
    write_private_text(file, &format!("{host}:{port} {token}\n"))?;
    let transport = door.admit(token.bytes(), waiting)?;
    // The file is removed as soon as it is used, so that a later run does not find it.
    fs::remove_file(file)?;
    Ok(transport)
}

/// Rank 0: waits for the file and connects to the address in it.
pub fn meet_at(file: &Path, waiting: Waiting) -> Result<TcpTransport> {
    retried(TIMEOUT, || connect_to(file, waiting)).map_err(|error| {
        EnvironmentLacks(format!(
            "rank 0 waited 30 s for rank 1 at {}: {error:#}",
            file.display()
        ))
        .into()
    })
}

/// Connects to an end that may have been started at the same time and may not listen yet.
///
/// # Errors
/// The error of the last attempt.
pub fn connected<T, E>(attempt: impl FnMut() -> Result<T, E>) -> Result<T, E> {
    retried(LISTENING, attempt)
}

/// Repeats an attempt until it succeeds, for at most `limit`.
pub fn retried<T, E>(limit: Duration, mut attempt: impl FnMut() -> Result<T, E>) -> Result<T, E> {
    let start = Instant::now();
    loop {
        match attempt() {
            Err(_) if start.elapsed() <= limit => thread::sleep(Duration::from_millis(20)),
            done => return done,
        }
    }
}

fn connect_to(file: &Path, waiting: Waiting) -> Result<TcpTransport> {
    let text = fs::read_to_string(file)?;
    let parts = text.trim().split_once(' ').and_then(|(address, token)| {
        let (host, port) = address.rsplit_once(':')?;
        Some((host, port, token))
    });
    let (host, port, token) =
        parts.ok_or_else(|| anyhow!("found `{text}`, expected HOST:PORT TOKEN"))?;
    let token: Token = token.parse()?;
    // A machine may be unable to resolve its own name.
    let host = if host == provenance::host() {
        "127.0.0.1"
    } else {
        host
    };
    Ok(TcpTransport::introduced(
        &format!("{host}:{port}"),
        token.bytes(),
        waiting,
    )?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Positions in an environment with these variables: `NAME=VALUE`, separated by spaces.
    fn found(variables: &str) -> Vec<(&'static str, Place)> {
        places(&|name| {
            let mut pairs = variables.split(' ').filter_map(|pair| pair.split_once('='));
            pairs
                .find(|(key, _)| *key == name)
                .map(|(_, value)| value.to_owned())
        })
    }

    fn place_of(rank: u32, size: u32) -> Place {
        Place {
            rank: Rank(rank),
            size,
        }
    }

    #[test]
    fn launchers_and_arrays_of_jobs_are_recognised() {
        for (variables, name, place) in [
            (
                "OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2",
                "OMPI_COMM_WORLD_RANK",
                place_of(1, 2),
            ),
            ("PMI_RANK=0 PMI_SIZE=4", "PMI_RANK", place_of(0, 4)),
            (
                "SLURM_JOB_ID=7 SLURM_STEP_ID=0 SLURM_PROCID=3 SLURM_NTASKS=512",
                "SLURM_PROCID",
                place_of(3, 512),
            ),
            (
                "SLURM_ARRAY_TASK_ID=5 SLURM_ARRAY_TASK_MIN=1 SLURM_ARRAY_TASK_STEP=2 SLURM_ARRAY_TASK_COUNT=4",
                "SLURM_ARRAY_TASK_ID",
                place_of(2, 4),
            ),
        ] {
            assert_eq!(found(variables), [(name, place)], "{variables}");
        }
    }

    #[test]
    fn incomplete_variables_and_those_of_a_batch_script_give_no_position() {
        for variables in [
            "PMI_RANK=0",
            "PMI_RANK=first PMI_SIZE=4",
            // The script of `sbatch --ntasks=512`.
            "SLURM_JOB_ID=7 SLURM_PROCID=0 SLURM_NTASKS=512",
            // The array 1,3,4 is irregular.
            "SLURM_ARRAY_TASK_ID=4 SLURM_ARRAY_TASK_MIN=1 SLURM_ARRAY_TASK_STEP=2 SLURM_ARRAY_TASK_COUNT=3",
            "SLURM_ARRAY_TASK_ID=4 SLURM_ARRAY_TASK_MIN=1 SLURM_ARRAY_TASK_STEP=0 SLURM_ARRAY_TASK_COUNT=3",
            "SLURM_ARRAY_TASK_ID=0 SLURM_ARRAY_TASK_MIN=1 SLURM_ARRAY_TASK_STEP=1 SLURM_ARRAY_TASK_COUNT=3",
        ] {
            assert!(found(variables).is_empty(), "{variables}");
        }
    }

    #[test]
    fn a_connection_is_retried_until_the_other_end_listens() {
        let mut attempts = 0;
        let connected = connected(|| {
            attempts += 1;
            if attempts < 3 {
                Err("refused")
            } else {
                Ok(attempts)
            }
        });
        assert_eq!(connected, Ok(3));
    }

    #[test]
    fn two_ranks_meet_at_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("meet");
        thread::scope(|scope| {
            scope.spawn(|| wait_at(&file, Waiting::Sleep).unwrap());
            meet_at(&file, Waiting::Sleep).unwrap();
        });
        assert!(!file.exists());
    }
}
