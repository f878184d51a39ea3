//! `cargo xtask dist`: the command as a tarball and as a Debian package, with its manual pages, completions and licences, the
//! Python package as a wheel, the source with all crates, the bill of materials, and the checksums of these files.
//!
//! The recorder is in the command itself. Equal sources give equal packages: files have the time of the commit.

mod bill;
mod debian;
mod needs;
pub(crate) mod notices;
mod source;
mod wheel;

use std::{
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};
use clap::Args;

use crate::suite::programs::{cargo, find, output, run};
pub(crate) use needs::Needs;

/// Where to put what is made.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  cargo xtask dist\n  cargo xtask dist --output /tmp/packages")]
pub(crate) struct Options {
    /// Folder for the packages
    #[arg(short, long, value_name = "DIR", default_value = "target/dist")]
    pub output: PathBuf,
}

/// What was made.
#[derive(Debug)]
pub(crate) struct Packages {
    /// One folder in it, with `bin` and `share`.
    pub tarball: PathBuf,
    /// `None` if `dpkg-deb` is not installed.
    pub debian: Option<PathBuf>,
    /// `None` if Python is missing or the tools that build wheels cannot be installed.
    pub wheel: Option<PathBuf>,
    /// `None` outside of a checkout or without `xz`.
    pub source: Option<PathBuf>,
    /// The crates in the command.
    pub bill: PathBuf,
    /// What the command needs of the system.
    pub needs: Needs,
}

pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Each shell, and where its completions are looked for under `share`.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "bash-completion/completions/flowcast"),
    ("fish", "fish/vendor_completions.d/flowcast.fish"),
    ("zsh", "zsh/site-functions/_flowcast"),
];

/// Builds the command and packs it, and builds the wheel.
///
/// # Errors
/// It does not build, or a program that packs is missing or fails.
pub(crate) fn make(folder: &Path) -> Result<Packages> {
    run(cargo().args([
        "build",
        "--release",
        "--locked",
        "--package",
        "flowcast-cli",
    ]))?;
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let folder = folder.canonicalize()?;
    let name = format!("flowcast-{VERSION}-{}-linux-gnu", std::env::consts::ARCH);
    let tree = empty(folder.join(&name))?;
    fill(&tree, &empty(folder.join("manual"))?)?;
    let recorder = unpacked_recorder(&tree, &empty(folder.join("recorder"))?)?;
    let needs = Needs::of(&[&tree.join("bin/flowcast"), &recorder])?;
    let time = commit_time();
    let tarball = folder.join(format!("{name}.tar.gz"));
    pack(&tree, &tarball, &time)?;
    println!("{}", tarball.display());
    let debian = match find("dpkg-deb") {
        Some(_) => Some(debian::pack(&folder, &tree, &needs, &time)?),
        None => None,
    };
    match &debian {
        Some(package) => println!("{}", package.display()),
        None => println!("no Debian package: dpkg-deb is not installed"),
    }
    println!("{needs}");
    let packages = Packages {
        tarball,
        debian,
        wheel: wheel::pack(&folder, &time)?,
        source: source::pack_with_crates(&folder, &time)?,
        bill: bill::write(&folder)?,
        needs,
    };
    write_checksums(&folder, &packages)?;
    Ok(packages)
}

/// Writes the checksums as `sha256sum --check` reads them.
fn write_checksums(folder: &Path, packages: &Packages) -> Result<()> {
    let mut sums = String::new();
    let optional = [&packages.debian, &packages.wheel, &packages.source];
    for file in [&packages.tarball, &packages.bill]
        .into_iter()
        .chain(optional.into_iter().flatten())
    {
        let name = file.file_name().context("a package has a name")?;
        let sum = output("sha256sum", &[file])?;
        let sum = sum
            .split_whitespace()
            .next()
            .context("sha256sum printed nothing")?;
        sums += &format!("{sum}  {}\n", name.display());
    }
    put(&folder.join("SHA256SUMS"), sums.as_bytes())
}

/// The files as they lie under a prefix such as `/usr/local`.
fn fill(tree: &Path, manual: &Path) -> Result<()> {
    let program = tree.join("bin/flowcast");
    put(
        &program,
        &fs::read(crate::built("flowcast")).context("cannot read the built command")?,
    )?;
    fs::set_permissions(&program, Permissions::from_mode(0o755))?;
    let share = tree.join("share");
    for (shell, place) in COMPLETIONS {
        put(
            &share.join(place),
            output(&program, &["completions", shell])?.as_bytes(),
        )?;
    }
    output(&program, &["man".as_ref(), manual.as_os_str()])?;
    pack_manual(manual, &share.join("man/man1"))?;
    let documents = share.join("doc/flowcast");
    for file in ["CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT"] {
        put(
            &documents.join(file),
            &fs::read(file).with_context(|| format!("cannot read {file}"))?,
        )?;
    }
    put(
        &documents.join("copyright"),
        notices::collect("flowcast-cli", "command")?.as_bytes(),
    )?;
    // Whatever the user's mask.
    run(Command::new("chmod").args(["-R", "u=rwX,go=rX"]).arg(tree))
}

/// The pages, packed as `man` reads them.
fn pack_manual(written: &Path, section: &Path) -> Result<()> {
    let pages = crate::files_under(written, |_| true)?;
    ensure!(!pages.is_empty(), "flowcast man wrote no page");
    run(Command::new("gzip").arg("-9n").args(pages))?;
    for page in crate::files_under(written, |_| true)? {
        put(
            &section.join(page.file_name().context("a page has a name")?),
            &fs::read(&page)?,
        )?;
    }
    Ok(())
}

/// A folder with nothing in it.
pub(crate) fn empty(folder: PathBuf) -> Result<PathBuf> {
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    Ok(folder)
}

/// Writes a file and makes its folder.
fn put(path: &Path, content: &[u8]) -> Result<()> {
    let folder = path.parent().context("a file has a folder")?;
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    fs::write(path, content).with_context(|| format!("cannot write {}", path.display()))
}

/// The recorder, taken out of the command by the command.
fn unpacked_recorder(tree: &Path, cache: &Path) -> Result<PathBuf> {
    let mut record = Command::new(tree.join("bin/flowcast"));
    record
        .args(["record", "--output"])
        .arg(cache.join("recording"))
        .args(["--", "true"]);
    // That nothing was recorded is what `true` is for.
    record
        .env("XDG_CACHE_HOME", cache)
        .env_remove("FLOWCAST_RECORDER")
        .output()?;
    let files = fs::read_dir(cache.join("flowcast")).context("the command contains no recorder")?;
    let mut paths = files.filter_map(|file| Some(file.ok()?.path()));
    paths.next().context("the command unpacked no recorder")
}

/// The time of the commit, in seconds since 1970; 0 outside of a checkout.
fn commit_time() -> String {
    output("git", &["log", "-1", "--format=%ct"]).map_or("0".into(), |time| time.trim().to_owned())
}

fn pack(tree: &Path, tarball: &Path, time: &str) -> Result<()> {
    let parent = tree.parent().context("the tree has a folder")?;
    let name = tree.file_name().context("the tree has a name")?;
    let mut tar = Command::new("tar");
    tar.args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner"])
        .arg(format!("--mtime=@{time}"));
    run(tar.arg("-C").arg(parent).arg("-caf").arg(tarball).arg(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_crate_has_a_description() {
        let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates");
        let manifests = fs::read_dir(crates)
            .unwrap()
            .map(|folder| folder.unwrap().path().join("Cargo.toml"));
        for manifest in manifests {
            let document: toml::Table = fs::read_to_string(&manifest).unwrap().parse().unwrap();
            for field in [
                "description",
                "documentation",
                "readme",
                "keywords",
                "categories",
                "license",
                "repository",
            ] {
                assert!(
                    document["package"].get(field).is_some(),
                    "{}: {field}",
                    manifest.display()
                );
            }
        }
    }
}
