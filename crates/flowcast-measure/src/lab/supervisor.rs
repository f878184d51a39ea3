//! Process that holds a lab's namespaces: `unshare`, whose only child runs the script that [`crate::lab::script`] writes.
//!
//! When `unshare` is killed, the kernel kills its child, the first process of its process namespace, and with it everything
//! in the lab.

use std::{
    fs::{self, File},
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

use serde::{Deserialize, Serialize};

use crate::lab::{
    error::LabError,
    requirements::{NAMESPACES, command},
    script::{LabLifetime, READY},
};

/// Time limit for building a lab.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Supervisor process: its number and its start time, which distinguishes it from a later process with the same number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SupervisorId {
    /// Process number (PID) of the supervisor.
    pub process: u32,
    /// Clock ticks from the start of the system to the start of the process.
    pub started: u64,
}

impl SupervisorId {
    pub(crate) fn is_alive(self) -> bool {
        start_of(self.process) == Some(self.started)
    }

    /// Returns the path of a file under `/proc` that belongs to the supervisor.
    pub(crate) fn file(self, name: &str) -> PathBuf {
        Path::new("/proc").join(self.process.to_string()).join(name)
    }
}

/// Supervisor that this process has started.
#[derive(Debug)]
pub(crate) struct Supervisor {
    child: Child,
    /// Pipe to the supervisor, which ends the lab when it is closed.
    _lifeline: Option<ChildStdin>,
    /// Identity of the process.
    pub id: SupervisorId,
}

impl Supervisor {
    /// Starts `build.sh` of `folder`; its errors are written to `build.log` beside it. The program `carrier` runs the link
    /// emulators, if there are any.
    pub(crate) fn start(
        folder: &Path,
        stay: LabLifetime,
        carrier: Option<&Path>,
    ) -> Result<Supervisor, LabError> {
        let log = folder.join("build.log");
        let log = File::create(&log).map_err(|source| LabError::File { path: log, source })?;
        let mut start = command("unshare");
        start
            .args(NAMESPACES)
            .args(["--kill-child=KILL", "--", "sh"])
            .arg(folder.join("build.sh"))
            .arg(folder)
            .arg(stay.argument())
            .arg(carrier.unwrap_or(Path::new("")));
        start.stdin(if stay == LabLifetime::WithOwner {
            Stdio::piped()
        } else {
            Stdio::null()
        });
        start.stdout(Stdio::piped()).stderr(log);
        // Ctrl-C at the terminal must only reach the command that runs in the lab.
        std::os::unix::process::CommandExt::process_group(&mut start, 0);
        let mut child = start.spawn().map_err(|source| LabError::System {
            what: "starting unshare",
            source,
        })?;
        let process = child.id();
        let started = start_of(process).unwrap_or(0);
        let lifeline = child.stdin.take();
        Ok(Supervisor {
            child,
            _lifeline: lifeline,
            id: SupervisorId { process, started },
        })
    }

    /// Waits until the lab is complete.
    pub(crate) fn wait_until_ready(&mut self, folder: &Path) -> Result<(), LabError> {
        let output = self
            .child
            .stdout
            .take()
            .expect("the standard output is a pipe");
        let (sender, receiver) = mpsc::channel();
        thread::spawn(move || {
            let ready = BufReader::new(output)
                .lines()
                .map_while(Result::ok)
                .any(|line| line == READY);
            // The receiver no longer exists after the timeout.
            let _ = sender.send(ready);
        });
        match receiver.recv_timeout(TIMEOUT) {
            Ok(true) => Ok(()),
            Ok(false) => Err(LabError::Build(complaint(folder))),
            Err(_) => Err(LabError::Build(format!(
                "not ready after {} s; {}",
                TIMEOUT.as_secs(),
                complaint(folder)
            ))),
        }
    }

    pub(crate) fn end(&mut self) {
        // These calls fail if the process has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Ends a supervisor that another process has started.
pub(crate) fn end(id: SupervisorId) {
    if !id.is_alive() {
        return;
    }
    if let Some(process) = rustix::process::Pid::from_raw(id.process as i32) {
        // This call fails if the process has ended in the meantime.
        let _ = rustix::process::kill_process(process, rustix::process::Signal::KILL);
    }
    for _ in 0..200 {
        if !id.is_alive() {
            return;
        }
        thread::sleep(Duration::from_millis(10));
    }
}

fn complaint(folder: &Path) -> String {
    let log = fs::read_to_string(folder.join("build.log")).unwrap_or_default();
    let lines: Vec<&str> = log.lines().filter(|line| !line.trim().is_empty()).collect();
    if lines.is_empty() {
        "it gave no reason".into()
    } else {
        lines[lines.len().saturating_sub(4)..].join("; ")
    }
}

/// Returns the start time of a process, field 22 of its status line. Returns `None` if the process is gone or is a zombie.
fn start_of(process: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let after_name = text.rsplit_once(") ")?.1;
    let mut fields = after_name.split(' ');
    if fields.next()? == "Z" {
        None
    } else {
        fields.nth(18)?.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_alive_and_an_earlier_one_with_its_number_is_not() {
        let process = std::process::id();
        let id = SupervisorId {
            process,
            started: start_of(process).unwrap(),
        };
        assert!(id.is_alive());
        assert!(
            !SupervisorId {
                started: id.started + 1,
                ..id
            }
            .is_alive()
        );
    }
}
