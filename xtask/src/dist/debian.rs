//! The Debian package.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::Result;

use super::{Needs, VERSION, empty, put};
use crate::suite::programs::{output, run};

/// Packs the tree under `/usr`.
pub(super) fn pack(folder: &Path, tree: &Path, needs: &Needs, time: &str) -> Result<PathBuf> {
    let root = empty(folder.join("debian"))?;
    run(Command::new("cp").arg("-a").arg(tree).arg(root.join("usr")))?;
    // Debian has places of its own for the completions that packages bring.
    let zsh = root.join("usr/share/zsh");
    fs::rename(zsh.join("site-functions"), zsh.join("vendor-completions"))?;
    let architecture = output("dpkg", &["--print-architecture"])?;
    let architecture = architecture.trim();
    put(
        &root.join("DEBIAN/control"),
        control(needs, architecture, kibibytes(&root)?)?.as_bytes(),
    )?;
    run(Command::new("chmod").args(["-R", "u=rwX,go=rX"]).arg(&root))?;
    let package = folder.join(format!("flowcast_{VERSION}_{architecture}.deb"));
    let mut build = Command::new("dpkg-deb");
    build
        .args(["--root-owner-group", "--build"])
        .arg(&root)
        .arg(&package);
    run(build.env("SOURCE_DATE_EPOCH", time).stdout(Stdio::null()))?;
    Ok(package)
}

fn kibibytes(root: &Path) -> Result<u64> {
    let files = crate::files_under(root, |_| true)?;
    let sizes = files
        .iter()
        .map(|file| Ok(fs::metadata(file)?.len().div_ceil(1024)));
    sizes.sum()
}

fn control(needs: &Needs, architecture: &str, kibibytes: u64) -> Result<String> {
    Ok(format!(
        "Package: flowcast
Version: {VERSION}
Architecture: {architecture}
Maintainer: The Flowcast developers
Installed-Size: {kibibytes}
Depends: {}
Suggests: openmpi-bin | mpich
Section: science
Priority: optional
Homepage: {}
Description: communication performance of clusters
 Flowcast measures a network, fits a model to it, records or reads MPI
 programs, predicts how long their communication takes, places ranks and
 schedules messages over several networks.
",
        needs.debian()?,
        env!("CARGO_PKG_REPOSITORY"),
    ))
}
