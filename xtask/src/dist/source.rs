//! The source with all crates that it needs: it builds without network.

use std::{
    fs::OpenOptions,
    io::Write,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};

use super::{VERSION, empty, pack};
use crate::suite::programs::{cargo, find, output, run};

/// Tells cargo where the crates are.
const SOURCES: &str = "
[source.crates-io]
replace-with = \"vendored\"

[source.vendored]
directory = \"vendor\"
";

/// Packs the files of the commit and the crates. Returns `None` if there is no commit or no `xz`.
pub(super) fn pack_with_crates(folder: &Path, time: &str) -> Result<Option<PathBuf>> {
    if output("git", &["rev-parse", "HEAD"]).is_err() || find("xz").is_none() {
        println!("no source with its crates: this is no checkout, or xz is not installed");
        return Ok(None);
    }
    let name = format!("flowcast-{VERSION}-vendored");
    let (tree, files) = (empty(folder.join(&name))?, folder.join("source.tar"));
    run(Command::new("git")
        .args(["archive", "HEAD", "--output"])
        .arg(&files))?;
    run(Command::new("tar")
        .arg("-xf")
        .arg(&files)
        .arg("-C")
        .arg(&tree))?;
    // What it prints names the registry of this machine.
    let vendored = cargo()
        .args([
            "vendor",
            "--locked",
            "--quiet",
            "--respect-source-config",
            "vendor",
        ])
        .current_dir(&tree)
        .output()?;
    anyhow::ensure!(
        vendored.status.success(),
        "cargo vendor: {}",
        String::from_utf8_lossy(&vendored.stderr).trim()
    );
    let configuration = tree.join(".cargo/config.toml");
    OpenOptions::new()
        .append(true)
        .open(&configuration)
        .and_then(|mut file| file.write_all(SOURCES.as_bytes()))
        .with_context(|| format!("cannot write {}", configuration.display()))?;
    let tarball = folder.join(format!("{name}.tar.xz"));
    pack(&tree, &tarball, time)?;
    println!("{}", tarball.display());
    Ok(Some(tarball))
}
