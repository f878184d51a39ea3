//! `flowcast measure p2p --over shm` and `measure pairs --over shm`: start this command again as the answering end, on
//! another core.

use std::{
    env,
    path::Path,
    process::{Child, Command, Stdio},
};

use anyhow::{Context, Result, bail};
use flowcast_measure::{
    prtt::{PrttError, answer},
    shm::{Cores, SharedMemory, ShmTransport, one_way::answer_one_way, pin},
};
use rustix::process::{Signal, set_parent_process_death_signal};

use crate::round_trips::explained;

/// Answering process. It ends when the measuring end has closed.
pub(crate) struct AnsweringProcess {
    process: Child,
    _memory: SharedMemory,
}

impl Drop for AnsweringProcess {
    fn drop(&mut self) {
        // The rings are closed by now, so the process ends by itself.
        let _ = self.process.wait();
    }
}

/// Parses two cores, `A,B`.
pub(crate) fn cores(text: &str) -> Result<Cores, String> {
    let two = text
        .split_once(',')
        .and_then(|(one, other)| Some((one.trim().parse().ok()?, other.trim().parse().ok()?)));
    match two {
        Some((measuring, answering)) if measuring != answering => Ok(Cores {
            measuring,
            answering,
        }),
        _ => Err(format!(
            "found `{text}`, expected two different cores such as 0,1"
        )),
    }
}

/// Measuring end, answering end on its core, and a description of the path.
pub(crate) fn connect(cores: Option<Cores>) -> Result<(MeasuringEnd, AnsweringProcess, String)> {
    let cores = match cores {
        Some(cores) => cores,
        None => Cores::choose().map_err(explained)?,
    };
    let both = format!("{},{}", cores.measuring, cores.answering);
    let (transport, answering) = start(["measure", "p2p", "--over", "shm", "--cores", &both])?;
    let path = format!(
        "shared memory, cores {} and {}, {}",
        cores.measuring,
        cores.answering,
        cores.distance()
    );
    Ok((
        MeasuringEnd {
            transport,
            core: cores.measuring,
        },
        answering,
        path,
    ))
}

/// Starts this command again with these arguments, as the answering end of a new shared memory. Opens the measuring end
/// before that.
fn start<const N: usize>(arguments: [&str; N]) -> Result<(ShmTransport, AnsweringProcess)> {
    let memory = SharedMemory::new().map_err(explained)?;
    let transport = memory.measuring_end().map_err(explained)?;
    let process = Command::new(env::current_exe().context("cannot find this command")?)
        .args(arguments)
        .arg("--answer-in")
        .arg(memory.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .context("cannot start the answering end")?;
    Ok((
        transport,
        AnsweringProcess {
            process,
            _memory: memory,
        },
    ))
}

/// Two cores for one-way messages: this process on the first core, and an answering process on the second. Both may be the
/// same core.
pub(crate) fn one_way_pair(
    measuring: usize,
    answering: usize,
) -> Result<(ShmTransport, AnsweringProcess)> {
    let pair = start([
        "measure",
        "pairs",
        "--over",
        "shm",
        "--cores",
        &answering.to_string(),
    ])?;
    pin(measuring).map_err(explained)?;
    Ok(pair)
}

/// Answering end of [`one_way_pair`].
pub(crate) fn answer_one_way_in(memory: &Path, core: usize) -> Result<()> {
    answer_with(memory, core, |end| Ok(answer_one_way(end)?))
}

/// Measuring end, not yet pinned to its core, because the provenance of the machine counts all usable cores.
pub(crate) struct MeasuringEnd {
    transport: ShmTransport,
    core: usize,
}

impl MeasuringEnd {
    /// Pins this process to the core.
    pub(crate) fn pinned(self) -> Result<ShmTransport, PrttError> {
        pin(self.core)?;
        Ok(self.transport)
    }
}

/// Answers in the memory that the measuring end has created.
pub(crate) fn answer_in(memory: &Path, cores: Option<Cores>) -> Result<()> {
    let Some(cores) = cores else {
        bail!("--answer-in: found no --cores, expected both options")
    };
    answer_with(memory, cores.answering, answer)
}

fn answer_with(
    memory: &Path,
    core: usize,
    answer: impl FnOnce(&mut ShmTransport) -> Result<(), PrttError>,
) -> Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))
        .context("cannot make this process end with the measuring end")?;
    // The memory is opened before the core is pinned, so that the measuring end sees it closed if the core is not available.
    let mut transport = ShmTransport::answering_end(memory).map_err(explained)?;
    pin(core).map_err(explained)?;
    answer(&mut transport).map_err(explained)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_are_two_different_numbers() {
        assert_eq!(
            cores("0, 3"),
            Ok(Cores {
                measuring: 0,
                answering: 3
            })
        );
        assert_eq!(
            cores("1,1").unwrap_err(),
            "found `1,1`, expected two different cores such as 0,1"
        );
        assert!(cores("a,b").is_err() && cores("4").is_err());
    }
}
