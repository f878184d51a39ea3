//! `cargo xtask lines`: how much code each crate has, product and tests apart.
//!
//! Tests are the folders `tests`, `benches`, `examples` and `fuzz`, files called `tests.rs`, and blocks behind
//! `#[cfg(test)]`, which stand last in their file. All other lines of `*.rs` are product code, comments among them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

/// Lines of product code and of tests.
type Lines = (usize, usize);

/// Prints the lines of each crate and of all together.
///
/// # Errors
/// A file cannot be read.
pub(crate) fn print(root: &Path) -> Result<()> {
    let mut crates: BTreeMap<String, Lines> = BTreeMap::new();
    for folder in ["crates", "xtask", "fuzz"] {
        count(root, Path::new(folder), &mut crates)?;
    }
    println!("{:<24} {:>8} {:>8}", "crate", "product", "tests");
    for (name, (product, tests)) in &crates {
        println!("{name:<24} {product:>8} {tests:>8}");
    }
    let total = crates.values().fold((0, 0), |sum, lines| (sum.0 + lines.0, sum.1 + lines.1));
    println!("{:<24} {:>8} {:>8}", "all", total.0, total.1);
    Ok(())
}

fn count(root: &Path, folder: &Path, crates: &mut BTreeMap<String, Lines>) -> Result<()> {
    let full = root.join(folder);
    for entry in fs::read_dir(&full).with_context(|| format!("cannot read {}", full.display()))? {
        let name = entry?.file_name();
        let path = folder.join(&name);
        if root.join(&path).is_dir() {
            if name != "target" {
                count(root, &path, crates)?;
            }
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            let text = fs::read_to_string(root.join(&path)).with_context(|| path.display().to_string())?;
            let (product, tests) = lines_of(&path, &text);
            let sum = crates.entry(crate_of(&path)).or_default();
            *sum = (sum.0 + product, sum.1 + tests);
        }
    }
    Ok(())
}

fn crate_of(path: &Path) -> String {
    let mut parts = path.components().map(|part| part.as_os_str().to_string_lossy().into_owned());
    let first = parts.next().unwrap_or_default();
    if first == "crates" { parts.next().unwrap_or_default() } else { first }
}

fn lines_of(path: &Path, text: &str) -> Lines {
    let all = text.lines().count();
    let of_tests = |part: &str| matches!(part, "tests" | "tests.rs" | "benches" | "examples" | "fuzz");
    if path.components().any(|part| part.as_os_str().to_str().is_some_and(of_tests)) {
        return (0, all);
    }
    let lines: Vec<&str> = text.lines().map(str::trim_start).collect();
    let is_block = |pair: &[&str]| pair[0] == "#[cfg(test)]" && pair[1].starts_with("mod ") && pair[1].ends_with('{');
    let product = lines.windows(2).position(is_block).unwrap_or(all);
    (product, all - product)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_told_by_folder_file_and_block() {
        let lines = |path: &str, text: &str| lines_of(Path::new(path), text);
        assert_eq!(lines("crates/a/tests/b.rs", "a\nb\n"), (0, 2));
        assert_eq!(lines("crates/a/src/b/tests.rs", "a\n"), (0, 1));
        assert_eq!(lines("crates/a/src/b.rs", "a\n\n#[cfg(test)]\nmod tests {\n}\n"), (2, 3));
        assert_eq!(lines("crates/a/src/b.rs", "a\n#[cfg(test)]\nmod tests;\n"), (3, 0));
        assert_eq!(crate_of(Path::new("crates/a/src/b.rs")), "a");
        assert_eq!(crate_of(Path::new("xtask/src/b.rs")), "xtask");
    }
}
