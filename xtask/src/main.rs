//! Development tasks: `cargo xtask test`, `bench`, `fuzz`, `golden`, `lines`, `dist`, `notices` and `install-openmpi`.

mod bench;
mod dist;
mod fuzz;
mod golden;
mod lines;
mod openmpi;
mod suite;

use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};

/// Development tasks of Flowcast
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Run the test suite
    Test(suite::Options),
    /// Count what a message costs, compare with what is kept, and the walk's speed with a bare loop's
    Bench(bench::Options),
    /// Run fuzz targets for some minutes, or print what all parts have run
    Fuzz(fuzz::Options),
    /// Run every golden case under a folder
    #[command(after_help = "Example:\n  cargo xtask golden tests/golden")]
    Golden {
        /// Folder with *.json files of cases and tables of results
        folder: PathBuf,
    },
    /// Count tokens and lines of each crate: code, documentation and tests apart
    Lines,
    /// Pack the command, its manual and its completions as a tarball and as a Debian package
    Dist(dist::Options),
    /// Write the licences that the Python package carries
    Notices,
    /// Build the Open MPI component and install it
    InstallOpenmpi(openmpi::Options),
}

/// Where a release build puts a file.
fn built(file: &str) -> PathBuf {
    target().join("release").join(file)
}

/// Cargo's folder for what it builds.
fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR")
        .unwrap_or_else(|| "target".into())
        .into()
}

/// All files under a folder, in path order; folders for which `enter` is false are left out.
fn files_under(folder: &Path, enter: fn(&str) -> bool) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in
        fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?
    {
        let path = entry?.path();
        if !path.is_dir() {
            files.push(path);
        } else if path
            .file_name()
            .and_then(|name| name.to_str())
            .is_some_and(enter)
        {
            files.extend(files_under(&path, enter)?);
        }
    }
    files.sort();
    Ok(files)
}

/// Whether a file's name ends so, behind a dot.
fn has_ending(path: &Path, ending: &str) -> bool {
    path.extension().is_some_and(|own| own == ending)
}

fn main() -> ExitCode {
    let done = match Cli::parse().task {
        Task::Test(options) => suite::run(&options),
        Task::Bench(options) => bench::run(&options),
        Task::InstallOpenmpi(options) => openmpi::install(&options).map(|_| true),
        Task::Dist(options) => dist::make(&options.output).map(|_| true),
        Task::Notices => dist::notices::write_for_wheel().map(|()| true),
        Task::Fuzz(options) => fuzz::run(&options),
        Task::Lines => lines::print(Path::new(".")).map(|()| true),
        Task::Golden { folder } => golden::run(&folder).map(|report| {
            print!("{report}");
            println!("{}", report.closing_line());
            report.failed() == 0
        }),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("cargo xtask: {error:#}");
            ExitCode::from(2)
        }
    }
}
