//! The licences of all that is linked into the command.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::suite::{layers, licences};

/// Our own, then each text once, with the packages that it belongs to.
pub(super) fn collect() -> Result<String> {
    let linked = layers::packages_of("flowcast-cli")?;
    let metadata: Value = serde_json::from_str(&licences::metadata()?)?;
    let packages = metadata["packages"].as_array().context("cargo metadata: expected `packages`")?;
    let is_linked = |package: &&Value| {
        !package["source"].is_null() && linked.iter().any(|name| package["name"].as_str() == Some(name))
    };
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut licences = String::new();
    for package in packages.iter().filter(is_linked) {
        let text = |field: &str| package[field].as_str().unwrap_or_default();
        let name = format!("{} {}", text("name"), text("version"));
        licences += &format!("  {name}: {}\n", text("license"));
        for notice in notices(Path::new(text("manifest_path")))? {
            texts.entry(notice).or_default().push(name.clone());
        }
    }
    ensure!(!texts.is_empty(), "found no licence of a dependency");
    let own = format!("Flowcast {}: Apache-2.0 OR MIT, see LICENSE-APACHE and LICENSE-MIT\n", super::VERSION);
    let others =
        format!("The command contains Rust's standard library (Apache-2.0 OR MIT) and these packages:\n{licences}");
    let rule = "-".repeat(80);
    let section =
        |(text, names): (&String, &Vec<String>)| format!("{rule}\n{}\n\n{}\n", names.join(", "), text.trim_end());
    Ok(format!("{own}\n{others}\n{}", texts.iter().map(section).collect::<String>()))
}

/// The texts that lie beside a package's manifest.
fn notices(manifest: &Path) -> Result<Vec<String>> {
    let folder = manifest.parent().context("a manifest has a folder")?;
    let mut files = crate::files_under(folder, |_| false)?;
    files.retain(|file| {
        let name = file.file_name().map(|name| name.to_string_lossy().to_uppercase()).unwrap_or_default();
        ["LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE", "UNLICENSE"]
            .iter()
            .any(|start| name.starts_with(start))
    });
    let read = |file: &std::path::PathBuf| Ok(String::from_utf8_lossy(&fs::read(file)?).into_owned());
    files.iter().map(read).collect()
}
