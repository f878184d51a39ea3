//! Traces with one file per rank: the files that belong together, and the file that represents a folder.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use flowcast::{
    formats::read::{is_part, listed},
    recording::format::RECORDING,
};

use crate::{
    cannot_read, folder_of,
    near::{beginning, beside},
};

/// File by which a folder is recognised as a trace: the file of a recording, an OTF2 anchor, the first of the ranks' files,
/// or the list of a SimGrid trace.
pub fn first_of_folder(folder: &Path) -> Result<PathBuf> {
    let recording = folder.join(RECORDING);
    if recording.exists() {
        return Ok(recording);
    }
    let entries = fs::read_dir(folder).with_context(cannot_read(folder))?;
    let mut files: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.is_file())
        .collect();
    files.sort();
    let anchor = files
        .iter()
        .find(|file| file.extension().is_some_and(|ending| ending == "otf2"));
    if let Some(file) = anchor {
        return Ok(file.clone());
    }
    let mut parts = files
        .iter()
        .filter(|file| beginning(file).is_ok_and(|bytes| is_part(&bytes)));
    let Some(first) = parts.next() else {
        return list_in(folder, &files);
    };
    let own = of_all_ranks(first)?;
    match parts.find(|part| !own.contains(part)) {
        None => Ok(first.clone()),
        Some(other) => bail!(
            "{}: found several traces, such as {} and {}, expected the name of one",
            folder.display(),
            first.display(),
            other.display()
        ),
    }
}

/// SimGrid's name for the list of a trace's files.
const LIST: &str = "trace_list.txt";

/// The list among the files of a folder.
fn list_in(folder: &Path, files: &[PathBuf]) -> Result<PathBuf> {
    let lists: Vec<&PathBuf> = files
        .iter()
        .filter(|file| {
            let may_be = beginning(file).is_ok_and(|bytes| !listed(&bytes).is_empty());
            let named = if may_be {
                fs::read(file).map_or(Vec::new(), |bytes| listed(&bytes))
            } else {
                Vec::new()
            };
            !named.is_empty() && named.iter().all(|name| beside(file, name).exists())
        })
        .collect();
    let expected = "expected a recording, an OTF2 archive, files of ranks, or a list of files";
    match lists[..] {
        [] => bail!(
            "{}: found a folder without a trace in parts, {expected}, or the name of one file",
            folder.display()
        ),
        [list] => Ok(list.clone()),
        _ => {
            let usual = lists
                .iter()
                .find(|list| list.file_name().is_some_and(|name| name == LIST));
            let names: Vec<String> = lists
                .iter()
                .map(|list| list.display().to_string())
                .collect();
            Ok(usual
                .with_context(|| {
                    format!(
                        "{}: found the lists {}, expected one",
                        folder.display(),
                        names.join(", ")
                    )
                })?
                .to_path_buf())
        }
    }
}

/// Files of all ranks in rank order, from the name of one of them: the files whose names differ only in one number. A single
/// file contains all ranks.
pub(crate) fn of_all_ranks(one: &Path) -> Result<Vec<PathBuf>> {
    let name = one.file_name().unwrap_or_default().to_string_lossy();
    let folder = folder_of(one);
    let entries = fs::read_dir(folder).with_context(cannot_read(folder))?;
    let names: Vec<String> = entries
        .filter_map(|entry| Some(entry.ok()?.file_name().to_string_lossy().into_owned()))
        .collect();
    for (before, behind) in numbers_in(&name).into_iter().rev() {
        let found = siblings(&names, before, behind);
        if found.len() < 2 {
            continue;
        }
        let missing = found
            .keys()
            .zip(0..)
            .find(|(number, expected)| *number != expected);
        if let Some((_, expected)) = missing {
            bail!(
                "{}: found the files of {} ranks without number {expected}, expected `{before}{expected}{behind}` too",
                one.display(),
                found.len()
            );
        }
        return Ok(found
            .into_values()
            .map(|name| one.with_file_name(name))
            .collect());
    }
    Ok(vec![one.to_owned()])
}

/// Text before and after each number in a name.
fn numbers_in(name: &str) -> Vec<(&str, &str)> {
    let bytes = name.as_bytes();
    let is_digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    let starts = (0..bytes.len()).filter(|at| is_digit(*at) && (*at == 0 || !is_digit(at - 1)));
    starts
        .map(|start| {
            let end = (start..=bytes.len())
                .find(|at| !is_digit(*at))
                .unwrap_or(bytes.len());
            (&name[..start], &name[end..])
        })
        .collect()
}

/// Names with a number between `before` and `behind`, keyed by this number.
fn siblings(names: &[String], before: &str, behind: &str) -> BTreeMap<u64, String> {
    names
        .iter()
        .filter_map(|name| {
            let digits = name.strip_prefix(before)?.strip_suffix(behind)?;
            let all_digits = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
            Some((digits.parse().ok().filter(|_| all_digits)?, name.clone()))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_stands_for_the_list_in_it() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
        write("hosts.txt", "node1.cluster\nnode2.cluster\n");
        write("a.txt", "0 init\n");
        let error = first_of_folder(folder.path()).unwrap_err().to_string();
        assert!(
            error.contains("found a folder without a trace in parts"),
            "{error}"
        );
        write("one", "a.txt\n");
        assert!(first_of_folder(folder.path()).unwrap().ends_with("one"));
        write("two", "a.txt\n");
        let error = first_of_folder(folder.path()).unwrap_err().to_string();
        assert!(
            error.contains("one, ") && error.contains("two, expected one"),
            "{error}"
        );
        write(LIST, "a.txt\n");
        assert!(first_of_folder(folder.path()).unwrap().ends_with(LIST));
    }

    #[test]
    fn a_folder_with_the_parts_of_two_traces_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str| {
            let text = "MPI_Init entering at walltime 1.0, cputime 0.1 seconds in thread 0.\n";
            fs::write(folder.path().join(name), text).unwrap();
        };
        write("a.0");
        write("a.1");
        assert!(first_of_folder(folder.path()).unwrap().ends_with("a.0"));
        write("b.0");
        let error = first_of_folder(folder.path()).unwrap_err().to_string();
        assert!(error.contains("found several traces"), "{error}");
    }

    #[test]
    fn files_that_differ_in_one_number_are_ordered_by_it() {
        let folder = tempfile::tempdir().unwrap();
        for name in [
            "run2-0.txt",
            "run2-10.txt",
            "run2-9.txt",
            "run2-x.txt",
            "other.txt",
        ] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        let error = of_all_ranks(&folder.path().join("run2-9.txt"))
            .unwrap_err()
            .to_string();
        assert!(error.contains("without number 1, "), "{error}");
        for number in 1..9 {
            fs::write(folder.path().join(format!("run2-{number}.txt")), "").unwrap();
        }
        let found = of_all_ranks(&folder.path().join("run2-9.txt")).unwrap();
        assert_eq!(found.len(), 11);
        assert!(found[10].ends_with("run2-10.txt"));
        let alone = folder.path().join("other.txt");
        assert_eq!(of_all_ranks(&alone).unwrap(), [alone]);
    }
}
