//! A Python with the packages that a step needs.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

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
    let mut make = Command::new(&system);
    let made = run_within(INSTALL, make.args(["-m", "venv", own_folder])).is_ok_and(|status| status.success());
    let mut install = Command::new(&own);
    let install = install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", package]);
    (made && run_within(INSTALL, install).is_ok_and(|status| status.success()) && can(&own)).then_some(own)
}

fn imports(python: &Path, module: &str) -> bool {
    let output = Command::new(python).args(["-c", &format!("import {module}")]).output();
    output.is_ok_and(|output| output.status.success())
}
