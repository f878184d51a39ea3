//! Results of start-up measurements, stored for later runs: a network file for each interface, in a folder for each pair of
//! hosts and library version. `--mca bml_flowcast_network eth1=FILE` reads them as well.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use flowcast_network::network::Network;
use flowcast_scheduler::Rail;

use crate::costs::read_rail;

/// Store of the results for a pair of hosts and a library version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CostStore {
    folder: PathBuf,
}

impl CostStore {
    /// Creates the store for a pair of hosts. `from` is the host of the measuring rank, `to` the host of its partner.
    pub(crate) fn new(folder: &Path, from: &str, to: &str, version: &str) -> CostStore {
        let name = format!("{}--{}--openmpi-{}", plain(from), plain(to), plain(version));
        CostStore {
            folder: folder.join(name),
        }
    }

    /// Returns the parameters of all these interfaces, or `None` if one is missing.
    pub(crate) fn load<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> Option<Vec<Rail>> {
        names
            .into_iter()
            .map(|name| read_rail(name, &self.file(name)).ok())
            .collect()
    }

    /// Stores the parameters of an interface, atomically.
    ///
    /// # Errors
    /// The folder is not writable.
    pub(crate) fn save(&self, name: &str, network: &Network) -> io::Result<()> {
        fs::create_dir_all(&self.folder)?;
        let partial = self
            .folder
            .join(format!(".{}.{}.partial", plain(name), std::process::id()));
        fs::write(&partial, network.to_toml())?;
        fs::rename(&partial, self.file(name))
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{}.toml", plain(name)))
    }
}

/// Replaces characters with a special meaning in paths.
fn plain(name: &str) -> String {
    name.chars()
        .map(|c: char| {
            if c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.') {
                c
            } else {
                '_'
            }
        })
        .collect::<String>()
        .trim_start_matches('.')
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use flowcast_network::builtin;

    #[test]
    fn results_are_found_by_hosts_interface_and_version_only() {
        let folder = tempfile::tempdir().unwrap();
        let network = builtin::network("gige-tcp").unwrap();
        let store = |to: &str, version: &str| CostStore::new(folder.path(), "a", to, version);
        store("b", "4.1.4").save("eth1:1", &network).unwrap();
        let found = store("b", "4.1.4").load(["eth1:1"]).unwrap();
        assert_eq!(found[0].cost, (&network.nic).into());
        assert_eq!(store("c", "4.1.4").load(["eth1:1"]), None);
        assert_eq!(store("b", "4.1.5").load(["eth1:1"]), None);
        assert_eq!(store("b", "4.1.4").load(["eth1:1", "eth2"]), None);
    }

    #[test]
    fn a_name_cannot_leave_the_folder() {
        assert_eq!(plain("../../etc/passwd"), "_.._etc_passwd");
    }
}
