//! A root folder with Debian 13, whose Open MPI is 5.0. It is made once, in cargo's target folder, from the archive in apt's
//! configuration.

use std::{
    env, fs,
    path::{Path, PathBuf, absolute},
    process::Command,
};

use anyhow::{Context, Result, bail, ensure};

use super::programs::{find, is_root, output, run};

const INSTALL: [&str; 5] = ["apt-get", "install", "-y", "-q", "--no-install-recommends"];
const PACKAGES: [&str; 7] = [
    "openmpi-bin",
    "libopenmpi-dev",
    "gcc",
    "libc6-dev",
    "iproute2",
    "hpcc",
    "netpipe-openmpi",
];
/// A file that says that a root is complete.
const COMPLETE: &str = "complete";

/// Script that runs a command in a root ($1), with the system's folders, the workspace ($2) and cargo's target folder ($3)
/// at their places. The root becomes the root of a mount namespace, because the kernel refuses the tests' own namespaces
/// behind a `chroot`.
const ENTER: &str = r#"set -e; root=$1; here=$PWD
mount --rbind "$root" "$root"
for folder in /proc /dev /sys; do mount --rbind $folder "$root$folder"; done
for folder in /tmp "$2" "$3"; do
  mkdir -p "$root$folder"; mount --bind "$folder" "$root$folder"
done
shift 3; unset TMPDIR; cd "$root"; pivot_root . mnt; cd "$here"; exec "$@""#;

/// A complete root.
#[derive(Debug)]
pub(super) struct DebianRoot {
    folder: PathBuf,
}

impl DebianRoot {
    /// Returns the root, which is made if it does not exist.
    ///
    /// # Errors
    /// This machine cannot make it.
    pub(super) fn provide() -> Result<DebianRoot> {
        let programs = ["apt-get", "debootstrap", "mount", "pivot_root", "unshare"];
        if let Some(program) = programs.iter().find(|program| find(program).is_none()) {
            bail!("{program} is not installed");
        }
        ensure!(is_root(), "only root may make and enter it");
        let folder = absolute(crate::target())?.join("debian-13");
        let root = DebianRoot { folder };
        if !root.folder.join(COMPLETE).is_file() {
            root.make()?;
        }
        Ok(root)
    }

    fn make(&self) -> Result<()> {
        let mirror = mirror()?;
        println!(
            "missing: Debian 13; installing it into {}",
            self.folder.display()
        );
        // Left by an attempt that failed.
        if self.folder.exists() {
            fs::remove_dir_all(&self.folder)?;
        }
        // Its mounts end with the namespace.
        run(Command::new("unshare")
            .args(["--mount", "debootstrap", "--variant=minbase", "trixie"])
            .arg(&self.folder)
            .arg(mirror))?;
        let words = self.enter()?;
        let mut install = Command::new(&words[0]);
        install.args(&words[1..]).args(INSTALL).args(PACKAGES);
        run(install.env("DEBIAN_FRONTEND", "noninteractive"))?;
        Ok(fs::write(self.folder.join(COMPLETE), "")?)
    }

    /// Words before a command that runs it in the root.
    fn enter(&self) -> Result<Vec<String>> {
        let text = |path: &Path| {
            let text = path.to_str().map(str::to_owned);
            text.with_context(|| format!("found no text in {}", path.display()))
        };
        let folders = [
            text(&self.folder)?,
            text(&env::current_dir()?)?,
            text(&absolute(crate::target())?)?,
        ];
        let words = ["unshare", "--mount", "sh", "-c", ENTER, "sh"].map(str::to_owned);
        Ok([&words[..], &folders].concat())
    }

    /// Setting of cargo that runs its tests in the root.
    ///
    /// # Errors
    /// A folder whose name is no text.
    pub(super) fn runner(&self) -> Result<String> {
        Ok(format!("target.'cfg(unix)'.runner = {:?}", self.enter()?))
    }

    /// Returns `true` if the root has a program.
    pub(super) fn has(&self, program: &str) -> bool {
        self.folder.join("usr/bin").join(program).is_file()
    }
}

/// The first archive of Debian in apt's configuration.
fn mirror() -> Result<String> {
    let arguments = ["indextargets", "--format", "$(REPO_URI)", "Label: Debian"];
    let archives = output("apt-get", &arguments)?;
    let first = archives.lines().next();
    Ok(first
        .context("found no archive of Debian in apt's configuration")?
        .to_owned())
}
