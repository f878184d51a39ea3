//! A Python with the packages that a step needs.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use anyhow::{Context, Result, ensure};

use super::programs::{find, run_within};

/// How long a package may take to come.
const INSTALL: Duration = Duration::from_secs(300);
/// The oldest Python that the package supports.
const OLDEST: &str = "import sys, venv; sys.exit(sys.version_info < (3, 10))";

/// A Python that can import one of the modules: the system's, or one in a folder of the suite's own, into which the last of
/// them is installed if need be.
pub(super) fn that_imports(modules: &[&str], own_folder: &str) -> Option<PathBuf> {
    let system = find("python3")?;
    let own = Path::new(own_folder).join("bin/python");
    let can = |python: &Path| modules.iter().any(|module| imports(python, module));
    if let Some(able) = [&system, &own].into_iter().find(|python| can(python)) {
        return Some(able.clone());
    }
    let package = modules.last()?;
    println!(
        "missing: {}; installing {package} into {own_folder}",
        modules.join(" or ")
    );
    let made =
        environment(&system, own_folder).and_then(|own| install(&own, &[package]).map(|()| own));
    made.ok().filter(|own| can(own))
}

/// A Python that the package supports and that can make virtual environments.
///
/// # Errors
/// There is none.
pub(crate) fn supported() -> Result<PathBuf> {
    let able = |python: &PathBuf| {
        let status = Command::new(python)
            .args(["-c", OLDEST])
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .status();
        status.is_ok_and(|status| status.success())
    };
    let names = [
        "python3",
        "python3.13",
        "python3.12",
        "python3.11",
        "python3.10",
    ];
    names
        .into_iter()
        .filter_map(find)
        .find(able)
        .context("Python 3.10 or newer with venv is not installed")
}

/// Makes a virtual environment in a folder; its Python.
///
/// # Errors
/// The interpreter cannot make one.
pub(crate) fn environment(system: &Path, folder: &str) -> Result<PathBuf> {
    let made = run_within(INSTALL, Command::new(system).args(["-m", "venv", folder]))?;
    ensure!(made.success(), "`python3 -m venv {folder}` fails");
    Ok(Path::new(folder).join("bin/python"))
}

/// The search path with an environment's programs first.
///
/// # Errors
/// The environment is not there.
pub(crate) fn path_with(python: &Path) -> Result<OsString> {
    let programs = python
        .parent()
        .context("the interpreter lies in a folder")?
        .canonicalize()?;
    let folders = std::env::var_os("PATH").unwrap_or_default();
    Ok(std::env::join_paths(
        [programs]
            .into_iter()
            .chain(std::env::split_paths(&folders)),
    )?)
}

/// Installs packages by pip.
///
/// # Errors
/// A package cannot be installed.
pub(crate) fn install(python: &Path, packages: &[&str]) -> Result<()> {
    let mut install = Command::new(python);
    install
        .args([
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
        ])
        .args(packages);
    ensure!(
        run_within(INSTALL, &mut install)?.success(),
        "pip cannot install {}",
        packages.join(", ")
    );
    Ok(())
}

fn imports(python: &Path, module: &str) -> bool {
    let output = Command::new(python)
        .args(["-c", &format!("import {module}")])
        .output();
    output.is_ok_and(|output| output.status.success())
}
