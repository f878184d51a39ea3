//! Which files under a golden folder are what.

use std::path::{Path, PathBuf};

use anyhow::Result;

use super::replay;
use crate::files_under;

/// What a file is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// A JSON file with cases.
    Cases,
    /// A table of results.
    Table,
    /// Read by a case, or a note for people.
    Input,
    /// Nothing that this program knows.
    Unknown,
}

/// A file of a golden folder.
#[derive(Debug, Clone)]
pub(super) struct Place {
    /// Where it is.
    pub path: PathBuf,
    /// Its path from the golden folder on.
    pub name: String,
    /// What it is for.
    pub role: Role,
}

/// All files under `folder`, in path order.
///
/// # Errors
/// A folder that cannot be read.
pub(super) fn under(folder: &Path) -> Result<Vec<Place>> {
    let place = |path: PathBuf| {
        let name = path
            .strip_prefix(folder)
            .unwrap_or(&path)
            .display()
            .to_string();
        Place {
            role: role(&path),
            path,
            name,
        }
    };
    Ok(files_under(folder, |_| true)?
        .into_iter()
        .map(place)
        .collect())
}

fn role(path: &Path) -> Role {
    let ending = |path: &Path| {
        path.extension()
            .map(|ending| ending.to_string_lossy().into_owned())
    };
    let name = path
        .file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default();
    match ending(path).as_deref() {
        Some("json") => Role::Cases,
        Some("tsv") if replay::TABLES.iter().any(|table| table.file == name) => Role::Table,
        Some("md" | "dim" | "goal" | "cfg" | "list") => Role::Input,
        Some("txt") if path.parent().and_then(ending).as_deref() == Some("ti") => Role::Input,
        _ => Role::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_determines_the_role_of_a_file() {
        let role = |path: &str| role(Path::new(path));
        assert_eq!(role("g/A.json"), Role::Cases);
        assert_eq!(role("g/replay/expected.tsv"), Role::Table);
        assert_eq!(role("g/replay/halo.ti/r0.txt"), Role::Input);
        assert_eq!(role("g/README.md"), Role::Input);
        for stray in ["g/replay/others.tsv", "g/r0.txt", "g/core", "g/x.csv"] {
            assert_eq!(role(stray), Role::Unknown, "{stray}");
        }
    }
}
