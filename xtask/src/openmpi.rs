//! `cargo xtask install-openmpi`: builds the component and puts it where Open MPI looks for a user's own.

use std::{fs, path::PathBuf};

use anyhow::{Context, Result};
use clap::Args;

use crate::suite::programs::{cargo, run};

/// The name that Open MPI looks for.
pub(crate) const COMPONENT: &str = "mca_bml_flowcast.so";

/// Where to install.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  cargo xtask install-openmpi\n  \
                        cargo xtask install-openmpi --prefix /usr/lib/x86_64-linux-gnu/openmpi/lib/openmpi3\n\n\
                        Then: mpirun --mca bml flowcast ...")]
pub(crate) struct Options {
    /// Folder of components [default: $HOME/.openmpi/components, which Open MPI searches]
    #[arg(long, value_name = "DIR")]
    prefix: Option<PathBuf>,
}

/// Builds and installs; says where.
///
/// # Errors
/// It does not build, or the folder cannot be written.
pub(crate) fn install(options: &Options) -> Result<PathBuf> {
    let folder = match &options.prefix {
        Some(folder) => folder.clone(),
        None => usual_folder().context("found no $HOME, expected $HOME or --prefix DIR")?,
    };
    run(cargo().args(["build", "--release", "--package", "flowcast-openmpi"]))?;
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let place = folder.join(COMPONENT);
    // Renamed into place, because a running program may have the old one open.
    let partial = folder.join(format!(".{COMPONENT}.{}", std::process::id()));
    fs::copy(crate::built("libmca_bml_flowcast.so"), &partial)
        .with_context(|| format!("cannot write into {}", folder.display()))?;
    fs::rename(&partial, &place).with_context(|| format!("cannot write {}", place.display()))?;
    println!("installed {}", place.display());
    Ok(place)
}

fn usual_folder() -> Option<PathBuf> {
    Some(
        PathBuf::from(std::env::var_os("HOME")?)
            .join(".openmpi")
            .join("components"),
    )
}
