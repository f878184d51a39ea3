//! Stored network files: they are in the user's data folder (`$XDG_DATA_HOME/flowcast/networks`, or below `~/.local/share`)
//! and are found by their names. The Open MPI component stores its measurements there too, in a folder for each pair of
//! hosts.

use std::{
    env, fs,
    io::Write,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use flowcast::model::network::Network;

use crate::cannot_write;

/// Store that maps names of networks to files.
///
/// ```
/// use std::path::Path;
/// use flowcast_io::Store;
///
/// let store = Store::at("/data");
/// assert_eq!(store.file("cluster")?, Path::new("/data/cluster.toml"));
/// assert!(store.file("../elsewhere").is_err());
/// # Ok::<(), anyhow::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Store {
    folder: PathBuf,
}

/// A network of the store, whose file may be unreadable.
#[derive(Debug, Clone, PartialEq)]
pub struct KeptNetwork {
    /// Name, such as `cluster`, or `node0--node1--openmpi-4.1.4/eth0`.
    pub name: String,
    /// The network, or the reason why its file cannot be read.
    pub network: Result<Network, String>,
}

impl Store {
    /// Store of this user; `None` without a home folder.
    pub fn usual() -> Option<Store> {
        let absolute = |name: &str| {
            env::var_os(name)
                .map(PathBuf::from)
                .filter(|path| path.is_absolute())
        };
        let data = absolute("XDG_DATA_HOME")
            .or_else(|| absolute("HOME").map(|home| home.join(".local/share")))?;
        Some(Store::at(data.join("flowcast/networks")))
    }

    /// Store in a folder, which need not exist.
    pub fn at(folder: impl Into<PathBuf>) -> Store {
        Store {
            folder: folder.into(),
        }
    }

    /// Path of the file for a name, even if it does not exist.
    ///
    /// # Errors
    /// A name that would lead to another place.
    pub fn file(&self, name: &str) -> Result<PathBuf> {
        if name.is_empty()
            || name.len() > 200
            || !name.split('/').all(|part| {
                !part.is_empty()
                    && !part.starts_with('.')
                    && part
                        .chars()
                        .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '@'))
            })
        {
            bail!(
                "found the name `{name}`, expected letters, digits, `-`, `_`, `@` and `.`, not beginning with `.`"
            );
        }
        Ok(self.folder.join(format!("{name}.toml")))
    }

    /// All networks, sorted by name.
    ///
    /// # Errors
    /// The folder exists and cannot be read.
    pub fn list(&self) -> Result<Vec<KeptNetwork>> {
        let mut names = Vec::new();
        if self.folder.is_dir() {
            collect(&self.folder, "", &mut names)
                .with_context(|| self.folder.display().to_string())?;
        }
        names.sort();
        Ok(names
            .into_iter()
            .map(|name| {
                let text = fs::read_to_string(self.folder.join(format!("{name}.toml")))
                    .map_err(|error| error.to_string());
                let network = text.and_then(|text| {
                    Network::from_toml(&text, &[]).map_err(|error| error.to_string())
                });
                KeptNetwork { name, network }
            })
            .collect())
    }

    /// Stores a network file unchanged, with its comments. The file is written completely or not at all. Returns its path,
    /// and `true` if it replaces a network of that name.
    ///
    /// # Errors
    /// A name that would lead to another place, or a folder that cannot be written.
    pub fn save(&self, name: &str, text: &str) -> Result<(PathBuf, bool)> {
        let file = self.file(name)?;
        let folder = file.parent().unwrap_or(&self.folder);
        fs::create_dir_all(folder).with_context(cannot_write(&file))?;
        let partial = folder.join(format!(".{}.partial", std::process::id()));
        let replaces = file.exists();
        let written = fs::File::create(&partial)
            .and_then(|mut out| out.write_all(text.as_bytes()).and_then(|()| out.sync_all()))
            .and_then(|()| fs::rename(&partial, &file));
        if written.is_err() {
            // An incomplete file is not a network.
            let _ = fs::remove_file(&partial);
        }
        written.with_context(cannot_write(&file))?;
        Ok((file, replaces))
    }

    /// Removes a network.
    ///
    /// # Errors
    /// No network of that name, or a file that cannot be removed.
    pub fn remove(&self, name: &str) -> Result<()> {
        let file = self.file(name)?;
        if !file.is_file() {
            bail!(
                "found no saved network `{name}` in {} (built-in networks cannot be removed)",
                self.folder.display()
            );
        }
        fs::remove_file(&file).with_context(|| format!("cannot remove {}", file.display()))
    }
}

/// Collects the names of the files in a folder. Nested folders belong to the Open MPI component and have one level.
fn collect(folder: &Path, prefix: &str, names: &mut Vec<String>) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else {
            continue;
        };
        if entry.file_type()?.is_dir() && prefix.is_empty() {
            collect(&entry.path(), &format!("{name}/"), names)?;
        } else if let Some(stem) = name
            .strip_suffix(".toml")
            .filter(|stem| !stem.starts_with('.'))
        {
            names.push(format!("{prefix}{stem}"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use flowcast::model::builtin;

    #[test]
    fn a_saved_network_is_listed_until_it_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::at(folder.path().join("not/yet"));
        assert_eq!(store.list().unwrap(), []);
        let network = builtin::network("gige-tcp").unwrap();
        let text = format!("# mine\n{}", network.to_toml());
        let (file, replaces) = store.save("cluster", &text).unwrap();
        assert_eq!(
            (fs::read_to_string(file).unwrap(), replaces),
            (text.clone(), false)
        );
        assert!(store.save("cluster", &text).unwrap().1);
        store.save("a--b/eth0", &text).unwrap();
        fs::write(store.file("broken").unwrap(), "schema = 7").unwrap();
        let listed = store.list().unwrap();
        assert_eq!(
            listed
                .iter()
                .map(|kept| kept.name.as_str())
                .collect::<Vec<_>>(),
            ["a--b/eth0", "broken", "cluster"]
        );
        assert_eq!(listed[2].network.as_ref(), Ok(&network));
        assert!(listed[1].network.is_err());
        store.remove("cluster").unwrap();
        assert!(
            store
                .remove("cluster")
                .unwrap_err()
                .to_string()
                .contains("found no saved network `cluster`")
        );
        assert_eq!(store.list().unwrap().len(), 2);
    }

    #[test]
    fn no_name_leads_out_of_the_folder() {
        let store = Store::at("/data");
        for name in [
            "../x", "a/../b", "/etc/x", "", ".hidden", "a b", "a/.b", "a//b",
        ] {
            assert!(store.file(name).is_err(), "{name}");
        }
        assert_eq!(
            store.file("a--b/eth0").unwrap(),
            Path::new("/data/a--b/eth0.toml")
        );
    }
}
