//! A Python with the packages that a step needs.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Result, ensure};

use super::programs::{find, run_within};

/// How long a package may take to come.
const INSTALL: Duration = Duration::from_secs(300);

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
    println!("missing: {}; installing {package} into {own_folder}", modules.join(" or "));
    let made = environment(&system, own_folder).and_then(|own| install(&own, &[package]).map(|()| own));
    made.ok().filter(|own| can(own))
}

/// Makes a virtual environment in a folder; its Python.
///
/// # Errors
/// The interpreter cannot make one.
pub(super) fn environment(system: &Path, folder: &str) -> Result<PathBuf> {
    let made = run_within(INSTALL, Command::new(system).args(["-m", "venv", folder]))?;
    ensure!(made.success(), "`python3 -m venv {folder}` fails");
    Ok(Path::new(folder).join("bin/python"))
}

/// Installs packages by pip.
///
/// # Errors
/// One of them cannot be had.
pub(super) fn install(python: &Path, packages: &[&str]) -> Result<()> {
    let mut install = Command::new(python);
    install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]).args(packages);
    ensure!(run_within(INSTALL, &mut install)?.success(), "pip cannot install {}", packages.join(", "));
    Ok(())
}

fn imports(python: &Path, module: &str) -> bool {
    let output = Command::new(python).args(["-c", &format!("import {module}")]).output();
    output.is_ok_and(|output| output.status.success())
}
