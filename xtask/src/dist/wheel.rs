//! The Python package as a wheel, which pip installs without a compiler on systems from glibc 2.17 on.
//!
//! Zig, which comes as a Python package, links for that glibc, and maturin checks the symbols.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};

use super::empty;
use crate::{
    files_under,
    suite::{
        programs::run,
        python_modules::{environment, install, path_with, supported},
    },
};

const ENVIRONMENT: &str = "target/dist-python";

/// Builds the wheel with the time of the commit. Returns `None` if Python is missing or the tools that build the wheel cannot be installed.
pub(super) fn pack(folder: &Path, time: &str) -> Result<Option<PathBuf>> {
    let tools = supported().and_then(|system| environment(&system, ENVIRONMENT));
    let python =
        match tools.and_then(|own| install(&own, &["maturin>=1.9,<2", "ziglang"]).map(|()| own)) {
            Ok(python) => python,
            Err(error) => {
                println!("no wheel: {error:#}");
                return Ok(None);
            }
        };
    let wheels = empty(folder.join("wheel"))?;
    let mut build = Command::new(std::env::current_dir()?.join(&python));
    build.args([
        "-m",
        "maturin",
        "build",
        "--release",
        "--locked",
        "--zig",
        "--compatibility",
        "manylinux2014",
    ]);
    // Zig is looked for on the path.
    run(build
        .arg("--out")
        .arg(&wheels)
        .current_dir("python")
        .env("PATH", path_with(&python)?)
        .env("SOURCE_DATE_EPOCH", time))?;
    let wheel = files_under(&wheels, |_| true)?
        .pop()
        .context("maturin built no wheel")?;
    println!("{}", wheel.display());
    Ok(Some(wheel))
}
