//! The packages, installed into roots that have a shell and the libraries that the packages ask for, and nothing else.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};

use super::{
    Outcome,
    programs::{cargo, find, is_root, output, run},
    python_modules::{environment, supported},
};
use crate::dist;

const FOLDER: &str = "target/dist";
const TRACE: &str = "crates/flowcast/examples/data/lu.S.4.dim.gz";

/// Commands that a user would try first. `true` calls no MPI, which a note reports.
const TRY: &str = "set -e
flowcast --version
flowcast predict /trace --network gige-tcp --json > /prediction.json
flowcast record --output /recording -- /bin/sh -c true 2> /said";

/// Makes the packages and tries them.
pub(super) fn check() -> Outcome {
    let programs = ["dpkg", "dpkg-deb", "objdump", "timeout", "unshare"];
    if let Some(program) = programs.into_iter().find(|program| find(program).is_none()) {
        return Outcome::Skipped(format!("{program} is not installed"));
    }
    if !in_root(Path::new("/"), "true")
        .output()
        .is_ok_and(|output| output.status.success())
    {
        return Outcome::Skipped("this machine allows no change of the root folder".into());
    }
    make_and_try().into()
}

fn make_and_try() -> Result<()> {
    let packages = dist::make(Path::new(FOLDER))?;
    let debian = packages.debian.context("found no Debian package")?;
    let needed = packages.needs.packages()?;

    let root = bare_root("root-debian", &needed)?;
    let mut install = namespace();
    install
        .args(["dpkg", "--force-not-root", "--root"])
        .arg(&root)
        .arg("--install")
        .arg(&debian);
    run(&mut install)?;
    try_out(&root, "/usr/bin")?;
    ensure!(
        root.join("usr/share/man/man1/flowcast-predict.1.gz")
            .is_file(),
        "the manual is not installed"
    );

    let root = bare_root("root-tarball", &needed)?;
    let prefix = root.join("usr/local");
    fs::create_dir_all(&prefix)?;
    run(Command::new("tar")
        .args(["--strip-components=1", "-xzf"])
        .arg(&packages.tarball)
        .arg("-C")
        .arg(&prefix))?;
    try_out(&root, "/usr/local/bin")?;
    if let Some(wheel) = &packages.wheel {
        try_wheel(wheel)?;
    }
    record_mpi(&prefix.join("bin/flowcast"))?;
    packages
        .source
        .as_deref()
        .map_or(Ok(()), build_without_network)
}

/// Builds the command from the source with its crates, in a network namespace without interfaces and with an empty folder of
/// cargo's own, and records a program with it.
fn build_without_network(source: &Path) -> Result<()> {
    let folder = dist::empty(Path::new(FOLDER).canonicalize()?.join("unpacked"))?;
    run(Command::new("tar")
        .args(["--strip-components=1", "-xf"])
        .arg(source)
        .arg("-C")
        .arg(&folder))?;
    let mut build = Command::new("unshare");
    build
        .args((!is_root()).then_some("--map-root-user"))
        .arg("--net")
        .arg(cargo().get_program())
        .args([
            "build",
            "--release",
            "--locked",
            "--package",
            "flowcast-cli",
        ]);
    build
        .env("CARGO_HOME", folder.join("home"))
        .env("CARGO_TARGET_DIR", folder.join("target"));
    run(build.current_dir(&folder))?;
    let command = folder.join("target/release/flowcast");
    output(&command, &["predict", TRACE, "--network", "gige-tcp"])?;
    record_mpi(&command)
}

/// The wheel in an environment of its own, where no compiler can be found.
fn try_wheel(wheel: &Path) -> Result<()> {
    let own = environment(&supported()?, "target/dist/python")?;
    let mut install = Command::new(&own);
    install
        .args([
            "-m",
            "pip",
            "install",
            "--quiet",
            "--force-reinstall",
            "--no-index",
            "--no-deps",
        ])
        .arg(wheel);
    run(install.env("PATH", "/nowhere"))?;
    let predict = format!("import flowcast_hpc; print(flowcast_hpc.predict({TRACE:?}).makespan_s)");
    let makespan: f64 = output(&own, &["-c", &predict])?.trim().parse()?;
    ensure!(makespan > 0.0, "the wheel: found a makespan of {makespan}");
    Ok(())
}

/// A root with `/bin/sh`, the shared libraries of the packages, and dpkg's notes of these.
fn bare_root(name: &str, packages: &[&str]) -> Result<PathBuf> {
    let root = dist::empty(Path::new(FOLDER).canonicalize()?.join(name))?;
    for package in packages {
        let files = output("dpkg", &["--listfiles", *package])?;
        for file in files
            .lines()
            .filter(|file| file.contains(".so") && !file.contains("gconv"))
        {
            copy_into(&root, Path::new(file))?;
        }
    }
    copy_into(&root, Path::new("/bin/sh"))?;
    for folder in [
        "root",
        "tmp",
        "var/lib/dpkg/info",
        "var/lib/dpkg/updates",
        "var/lib/dpkg/triggers",
    ] {
        fs::create_dir_all(root.join(folder))?;
    }
    fs::write(
        root.join("var/lib/dpkg/status"),
        output("dpkg", &[&["--status"], packages].concat())?,
    )?;
    fs::copy(TRACE, root.join("trace"))?;
    Ok(root)
}

/// The file that a path leads to, at the same place below another root.
fn copy_into(root: &Path, file: &Path) -> Result<()> {
    let place = root.join(file.strip_prefix("/")?);
    fs::create_dir_all(place.parent().context("a file has a folder")?)?;
    if file.is_file() {
        fs::copy(file, &place).with_context(|| format!("cannot copy {}", file.display()))?;
    }
    Ok(())
}

/// As root of a user namespace, where this process is no root, for at most a minute.
fn namespace() -> Command {
    let mut command = Command::new("timeout");
    command
        .args(["60", "unshare"])
        .args((!is_root()).then_some("--map-root-user"));
    command.env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
    command
}

fn in_root(root: &Path, script: &str) -> Command {
    let mut command = namespace();
    command
        .arg(format!("--root={}", root.display()))
        .args(["/bin/sh", "-c", script]);
    command
        .env("HOME", "/root")
        .env_remove("XDG_CACHE_HOME")
        .env_remove("FLOWCAST_RECORDER");
    command
}

fn try_out(root: &Path, binaries: &str) -> Result<()> {
    run(&mut in_root(root, &format!("PATH={binaries}\n{TRY}")))?;
    let prediction: serde_json::Value =
        serde_json::from_slice(&fs::read(root.join("prediction.json"))?)?;
    ensure!(
        prediction["makespan_s"]
            .as_f64()
            .is_some_and(|time| time > 0.0),
        "found {prediction}"
    );
    let said = fs::read_to_string(root.join("said"))?;
    ensure!(
        said.contains("nothing was recorded") && !said.contains("cannot be preloaded"),
        "record printed: {said}"
    );
    let unpacked = fs::read_dir(root.join("root/.cache/flowcast"))?.count();
    ensure!(
        unpacked == 1,
        "found {unpacked} recorders in the cache, expected one"
    );
    Ok(())
}

/// A real program, if an MPI library with its compiler is here.
fn record_mpi(flowcast: &Path) -> Result<()> {
    let endings = ["", ".mpich", ".openmpi"];
    let is_whole = |ending: &&str| {
        ["mpicc", "mpirun"]
            .iter()
            .all(|name| find(&format!("{name}{ending}")).is_some())
    };
    let Some(ending) = endings.into_iter().find(is_whole) else {
        println!("skipped: recording an MPI program: mpicc or mpirun is not installed");
        return Ok(());
    };
    let folder = dist::empty(Path::new(FOLDER).canonicalize()?.join("recording"))?;
    let source = "crates/flowcast-cli/tests/programs/mixes.c";
    run(Command::new(format!("mpicc{ending}"))
        .args(["-w", source, "-o"])
        .arg(folder.join("mixes"))
        .arg("-lpthread"))?;
    let mut record = Command::new("timeout");
    record
        .arg("100")
        .arg(flowcast)
        .args(["record", "--output", "cg.rec", "--"]);
    record
        .arg(format!("mpirun{ending}"))
        .args(["-np", "4", "./mixes", "cg"]);
    record
        .current_dir(&folder)
        .env("XDG_CACHE_HOME", folder.join("cache"))
        .env_remove("FLOWCAST_RECORDER");
    record
        .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    run(record
        .env("OMPI_MCA_rmaps_base_oversubscribe", "1")
        .env("OMPI_MCA_mpi_yield_when_idle", "1"))
}
