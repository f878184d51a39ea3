//! The licences of all that is linked into the command, or into the wheel.

use std::{collections::BTreeMap, fs, path::Path};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::suite::{layers, licences};

/// What the wheel carries, from which pip installs as well.
const OF_WHEEL: &str = "python/THIRD-PARTY-LICENSES";

/// Writes anew what the wheel carries.
pub(crate) fn write_for_wheel() -> Result<()> {
    fs::write(OF_WHEEL, collect("flowcast-python", "wheel")?)
        .with_context(|| format!("cannot write {OF_WHEEL}"))
}

/// Refuses a wheel whose licences are those of other dependencies than it has.
pub(crate) fn check_wheel() -> Result<()> {
    let kept = fs::read_to_string(OF_WHEEL).with_context(|| format!("cannot read {OF_WHEEL}"))?;
    if kept != collect("flowcast-python", "wheel")? {
        bail!(
            "{OF_WHEEL}: found the licences of other dependencies, expected those of the current ones (cargo xtask notices)"
        );
    }
    Ok(())
}

/// The foreign packages that are linked into this one, as `cargo metadata` describes them.
pub(super) fn linked_into(package: &str) -> Result<Vec<Value>> {
    let linked = layers::packages_of(package)?;
    let mut metadata: Value = serde_json::from_str(&licences::metadata()?)?;
    let Value::Array(mut packages) = metadata["packages"].take() else {
        bail!("cargo metadata: expected `packages`");
    };
    packages.retain(|package| {
        !package["source"].is_null()
            && linked
                .iter()
                .any(|name| package["name"].as_str() == Some(name))
    });
    Ok(packages)
}

/// Our own, then each text once, with the packages that it belongs to; `what` is made of this package.
pub(super) fn collect(package: &str, what: &str) -> Result<String> {
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut licences = String::new();
    for package in linked_into(package)? {
        let text = |field: &str| package[field].as_str().unwrap_or_default();
        let name = format!("{} {}", text("name"), text("version"));
        licences += &format!("  {name}: {}\n", text("license"));
        for notice in notices(Path::new(text("manifest_path")))? {
            texts.entry(notice).or_default().push(name.clone());
        }
    }
    ensure!(!texts.is_empty(), "found no licence of a dependency");
    let own = format!(
        "Flowcast {}: Apache-2.0 OR MIT, see LICENSE-APACHE and LICENSE-MIT\n",
        super::VERSION
    );
    let others = format!(
        "The {what} contains Rust's standard library (Apache-2.0 OR MIT) and these packages:\n{licences}"
    );
    let rule = "-".repeat(80);
    let section = |(text, names): (&String, &Vec<String>)| {
        format!("{rule}\n{}\n\n{}\n", names.join(", "), text.trim_end())
    };
    Ok(format!(
        "{own}\n{others}\n{}",
        texts.iter().map(section).collect::<String>()
    ))
}

/// The texts that lie beside a package's manifest.
fn notices(manifest: &Path) -> Result<Vec<String>> {
    let folder = manifest.parent().context("a manifest has a folder")?;
    let mut files = crate::files_under(folder, |_| false)?;
    files.retain(|file| {
        let name = file
            .file_name()
            .map(|name| name.to_string_lossy().to_uppercase())
            .unwrap_or_default();
        [
            "LICENSE",
            "LICENCE",
            "COPYING",
            "COPYRIGHT",
            "NOTICE",
            "UNLICENSE",
        ]
        .iter()
        .any(|start| name.starts_with(start))
    });
    let read =
        |file: &std::path::PathBuf| Ok(String::from_utf8_lossy(&fs::read(file)?).into_owned());
    files.iter().map(read).collect()
}
