//! Debian packages that the suite needs beyond Rust, gcc, Python and git.

use std::{
    path::Path,
    process::{Command, Stdio},
};

use super::programs::{find, is_root, output};

/// A package and the steps that need it.
#[derive(Debug)]
struct Package {
    name: &'static str,
    program: &'static str,
    needed_by: &'static [&'static str],
}

const PACKAGES: &[Package] = &[
    Package {
        name: "iproute2",
        program: "ip",
        needed_by: &["tests", "pages", "openmpi"],
    },
    Package {
        name: "ethtool",
        program: "ethtool",
        needed_by: &["tests", "pages"],
    },
    Package {
        name: "libopenmpi-dev",
        program: "mpicc.openmpi",
        needed_by: &["record", "pages", "openmpi"],
    },
    Package {
        name: "openmpi-bin",
        program: "mpirun.openmpi",
        needed_by: &["record", "pages", "openmpi"],
    },
    Package {
        name: "libmpich-dev",
        program: "mpicc.mpich",
        needed_by: &["record"],
    },
    Package {
        name: "mpich",
        program: "mpirun.mpich",
        needed_by: &["record"],
    },
    Package {
        name: "gfortran",
        program: "gfortran",
        needed_by: &["record"],
    },
    Package {
        name: "otf2-tools",
        program: "otf2-print",
        needed_by: &["formats"],
    },
    Package {
        name: "libsimgrid-dev",
        program: "smpirun",
        needed_by: &["formats"],
    },
    Package {
        name: "debootstrap",
        program: "debootstrap",
        needed_by: &["openmpi"],
    },
    Package {
        name: "hpcc",
        program: "hpcc",
        needed_by: &["record", "openmpi"],
    },
    Package {
        name: "netpipe-openmpi",
        program: "NPopenmpi",
        needed_by: &["openmpi"],
    },
    Package {
        name: "valgrind",
        program: "valgrind",
        needed_by: &["counts", "doubling", "doubling-long"],
    },
    Package {
        name: "chromium",
        program: "chromium",
        needed_by: &["report-page"],
    },
    Package {
        name: "nodejs",
        program: "node",
        needed_by: &["report-page"],
    },
];

/// Installs what the running steps need and what is missing, or says what is missing.
///
/// A step that still lacks its program afterwards is skipped by itself, so nothing here can fail.
pub(super) fn provide(steps: &[&str]) {
    let needed = PACKAGES
        .iter()
        .filter(|package| package.needed_by.iter().any(|step| steps.contains(step)));
    let missing: Vec<&Package> = needed
        .filter(|package| find(package.program).is_none())
        .collect();
    if missing.is_empty() {
        return;
    }
    for package in &missing {
        println!(
            "missing: {} (package {}), needed by {}",
            package.program,
            package.name,
            package.needed_by.join(" and ")
        );
    }
    let names: Vec<&str> = missing
        .iter()
        .map(|package| package.name)
        .filter(|name| !is_installed(name))
        .collect();
    match may_install() {
        Ok(()) => install(&names),
        Err(why) => println!("not installed: {why}"),
    }
}

fn is_installed(package: &str) -> bool {
    output("dpkg", &["-s", package]).is_ok_and(|text| text.contains("Status: install ok installed"))
}

fn may_install() -> Result<(), &'static str> {
    if !Path::new("/etc/debian_version").exists() || find("apt-get").is_none() {
        Err("this is not Debian")
    } else if !is_root() {
        Err("only root may install packages")
    } else {
        Ok(())
    }
}

/// The package lists of a fresh machine are empty or old: they are fetched when the first attempt fails.
fn install(names: &[&str]) {
    let arguments = [&["install", "-y", "-q", "--no-install-recommends"], names].concat();
    let installed = names.is_empty()
        || apt_get(&arguments)
        || (apt_get(&["update", "-q"]) && apt_get(&arguments));
    if !installed {
        println!("could not install {}", names.join(" "));
    }
}

fn apt_get(arguments: &[&str]) -> bool {
    println!("+ apt-get {}", arguments.join(" "));
    let mut command = Command::new("apt-get");
    command
        .args(arguments)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdin(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::{super::steps::STEPS, *};

    #[test]
    fn each_package_belongs_to_an_existing_step() {
        for package in PACKAGES {
            for needed_by in package.needed_by {
                assert!(
                    STEPS.iter().any(|step| step.name == *needed_by),
                    "{}",
                    package.name
                );
            }
        }
    }
}
