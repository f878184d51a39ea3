//! `--hosts LIST|FILE`, the same for every command that has it.

use std::path::Path;

use anyhow::Result;
use flowcast::place::host_list::{self, ListedHost};

use crate::terminal::files::read_text;

/// The hosts of a list, or of a file with one.
pub(crate) fn listed_hosts(text: &str) -> Result<Vec<ListedHost>> {
    let path = Path::new(text);
    Ok(if path.is_file() {
        host_list::hosts(text, &read_text(path)?)?
    } else {
        host_list::hosts("--hosts", text)?
    })
}

/// The names of hosts.
pub(crate) fn names(hosts: &[ListedHost]) -> Vec<String> {
    hosts.iter().map(|host| host.name.clone()).collect()
}
