//! Checks that this machine and this user can build a lab.

use std::{
    env,
    path::PathBuf,
    process::{Command, Stdio},
};

use crate::lab::error::LabError;

const CARRIER: &str = "flowcast";
const PROGRAMS: [(&str, &str); 6] = [
    ("unshare", "util-linux"),
    ("nsenter", "util-linux"),
    ("setpriv", "util-linux"),
    ("ip", "iproute2"),
    ("tc", "iproute2"),
    ("ethtool", "ethtool"),
];

/// Namespaces of a lab, as options of `unshare`.
pub(crate) const NAMESPACES: [&str; 8] = [
    "--user",
    "--map-root-user",
    "--net",
    "--mount",
    "--uts",
    "--ipc",
    "--pid",
    "--fork",
];

/// Checks that a lab can be built here.
///
/// # Errors
/// A program is missing, or the system forbids namespaces to this user.
pub fn check() -> Result<(), LabError> {
    for (program, package) in PROGRAMS {
        if installed(program).is_none() {
            return Err(LabError::ProgramMissing { program, package });
        }
    }
    let trial = command("unshare")
        .args(NAMESPACES)
        .arg("true")
        .stdin(Stdio::null())
        .output()
        .map_err(|source| LabError::System {
            what: "running unshare",
            source,
        })?;
    if trial.status.success() {
        return Ok(());
    }
    Err(LabError::NamespacesForbidden(
        String::from_utf8_lossy(&trial.stderr).trim().to_owned(),
    ))
}

/// Returns the program that runs the link emulators: the running program if it is `flowcast`, or else the `flowcast` on the
/// search path.
pub(crate) fn cable_carrier() -> Result<PathBuf, LabError> {
    let own = env::current_exe()
        .ok()
        .filter(|path| path.file_name().is_some_and(|name| name == CARRIER));
    own.or_else(|| installed(CARRIER))
        .ok_or(LabError::NoCableCarrier)
}

/// Returns a command that runs a program by its name. The search path includes the folders of administrators' programs,
/// which many users lack.
pub(crate) fn command(program: &str) -> Command {
    let mut command = Command::new(program);
    command.env("PATH", search_path());
    command
}

pub(crate) fn search_path() -> String {
    let path = env::var("PATH").unwrap_or_default();
    format!("{path}:/usr/local/sbin:/usr/sbin:/sbin:/usr/bin:/bin")
        .trim_start_matches(':')
        .to_owned()
}

fn installed(program: &str) -> Option<PathBuf> {
    env::split_paths(&search_path())
        .map(|folder| folder.join(program))
        .find(|path| path.is_file())
}
