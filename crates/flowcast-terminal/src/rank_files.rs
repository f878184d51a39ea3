//! Output of traces with one file per rank.

use std::{
    io::{self, Write},
    path::{Path, PathBuf},
};

use anyhow::Result;
use flowcast::units::Rank;

use crate::files::{Batch, Writer};

/// Folder for the files of the ranks beside `NAME.list`: `NAME.ti`, or `NAME.ti.ranks` if the list itself has that name.
pub(crate) fn folder_of_list(list: &Path) -> PathBuf {
    let folder = list.with_extension("ti");
    if folder == list {
        list.with_extension("ti.ranks")
    } else {
        folder
    }
}

/// Writes the folder and the list. The list is written last, so that it never names missing files.
pub fn write_list(
    list: &Path,
    ranks: u32,
    mut write: impl FnMut(Rank, &mut Writer<'_>) -> io::Result<()>,
) -> Result<()> {
    let folder = folder_of_list(list);
    let mut batch = Batch::new();
    batch.folder(&folder)?;
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    for rank in (0..ranks).map(Rank) {
        batch.write(&folder.join(format!("rank{rank}.txt")), |out| {
            Ok(write(rank, out)?)
        })?;
    }
    let lines: String = (0..ranks)
        .map(|rank| format!("{name}/rank{rank}.txt\n"))
        .collect();
    batch.write(list, |out| Ok(out.write_all(lines.as_bytes())?))?;
    batch.commit()
}
