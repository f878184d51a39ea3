//! The bill of materials of the command: CycloneDX 1.5, one component for each crate that is linked into it.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::{VERSION, notices, put};

/// Writes the bill. It has no date and no serial number, so equal sources give equal bills.
pub(super) fn write(folder: &Path) -> Result<PathBuf> {
    let lock: toml::Table = fs::read_to_string("Cargo.lock")
        .context("cannot read Cargo.lock")?
        .parse()
        .context("Cargo.lock")?;
    let bill = bill(&notices::linked_into("flowcast-cli")?, &checksums(&lock));
    let file = folder.join(format!("flowcast-{VERSION}.cdx.json"));
    put(&file, format!("{bill:#}\n").as_bytes())?;
    println!("{}", file.display());
    Ok(file)
}

/// Checksums of the crates, by name and version.
fn checksums(lock: &toml::Table) -> BTreeMap<[&str; 2], &str> {
    let packages = lock.get("package").and_then(toml::Value::as_array);
    packages.into_iter().flatten().filter_map(entry).collect()
}

/// A crate's name and version, and its checksum; `None` for the crates of this workspace.
fn entry(package: &toml::Value) -> Option<([&str; 2], &str)> {
    let [name, version, checksum] =
        ["name", "version", "checksum"].map(|field| package.get(field)?.as_str());
    Some(([name?, version?], checksum?))
}

fn bill(packages: &[Value], checksums: &BTreeMap<[&str; 2], &str>) -> Value {
    let components: Vec<Value> = packages
        .iter()
        .map(|package| {
            let text = |field: &str| package[field].as_str().unwrap_or_default();
            let (name, version) = (text("name"), text("version"));
            let link = format!("pkg:cargo/{name}@{version}");
            let checksum = checksums.get(&[name, version]);
            json!({
                "type": "library",
                "bom-ref": link,
                "name": name,
                "version": version,
                "purl": link,
                // The older form of OR, which SPDX does not have.
                "licenses": [{"expression": text("license").replace('/', " OR ")}],
                "hashes": checksum.map(|sum| json!({"alg": "SHA-256", "content": sum})).into_iter().collect::<Vec<_>>(),
            })
        })
        .collect();
    json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": {
            "type": "application",
            "bom-ref": format!("pkg:cargo/flowcast-cli@{VERSION}"),
            "name": "flowcast",
            "version": VERSION,
            "licenses": [{"expression": "Apache-2.0 OR MIT"}],
        }},
        "components": components,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn components_have_their_licence_and_the_checksum_of_the_lock() {
        let lock = "[[package]]\nname = \"a\"\nversion = \"1.0.0\"\nchecksum = \"ab\"\n[[package]]\nname = \"own\"\nversion = \"0.1.0\"\n";
        let lock: toml::Table = lock.parse().unwrap();
        let package = json!({"name": "a", "version": "1.0.0", "license": "MIT/Apache-2.0"});
        let bill = bill(&[package], &checksums(&lock));
        let component = &bill["components"][0];
        assert_eq!(component["purl"], "pkg:cargo/a@1.0.0");
        assert_eq!(component["licenses"][0]["expression"], "MIT OR Apache-2.0");
        assert_eq!(component["hashes"][0]["content"], "ab");
    }
}
