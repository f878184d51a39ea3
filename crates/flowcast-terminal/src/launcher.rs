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

/// Position of this process according to Open MPI or a PMI launcher (MPICH, Intel MPI, srun).
pub fn place() -> Option<Place> {
    place_from(|name| env::var(name).ok())
}

/// Position of a process that is always started by a launcher. It may therefore also come from Slurm's own variables, which
/// every step of a batch script has.
pub fn place_of_rank() -> Option<Place> {
    place().or_else(|| {
        Some(Place {
            rank: Rank(number("SLURM_PROCID")?),
            size: number("SLURM_NTASKS")?,
        })
    })
}

fn place_from(read: impl Fn(&str) -> Option<String>) -> Option<Place> {
    let names = [
        ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
        ("PMI_RANK", "PMI_SIZE"),
    ];
    names.into_iter().find_map(|(rank, size)| {
        Some(Place {
            rank: Rank(read(rank)?.parse().ok()?),
            size: read(size)?.parse().ok()?,
        })
    })
}

fn number(name: &str) -> Option<u32> {
    env::var(name).ok()?.parse().ok()
}

/// `true` if all processes of the launcher run on this host.
pub(crate) fn all_are_here() -> bool {
    let here = number("OMPI_COMM_WORLD_LOCAL_SIZE").or_else(|| number("MPI_LOCALNRANKS"));
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

    #[test]
    fn both_kinds_of_launchers_are_recognised() {
        let environment = |pairs: &'static [(&str, &str)]| {
            place_from(move |name| {
                pairs
                    .iter()
                    .find(|(key, _)| *key == name)
                    .map(|(_, value)| (*value).to_owned())
            })
        };
        let open_mpi = environment(&[("OMPI_COMM_WORLD_RANK", "1"), ("OMPI_COMM_WORLD_SIZE", "2")]);
        assert_eq!(
            open_mpi,
            Some(Place {
                rank: Rank(1),
                size: 2
            })
        );
        assert_eq!(
            environment(&[("PMI_RANK", "0"), ("PMI_SIZE", "4")]),
            Some(Place {
                rank: Rank(0),
                size: 4
            })
        );
        assert_eq!(environment(&[("PMI_RANK", "0")]), None);
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
