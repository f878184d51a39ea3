//! The pages of the documentation, and the files that the commands on them read.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// Files that the command reads or writes.
const ENDINGS: &[&str] = &[
    "cfg", "csv", "dim", "dim.gz", "et", "fct", "goal", "list", "map", "otf2", "pattern", "prv",
    "prv.gz", "rec", "steps", "toml",
];

/// Options whose value is written, not read.
const WRITTEN: &[&str] = &["-o", "--output", "--report", "--write"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .expect("the repository is there")
}

/// README.md and everything under docs, in the order of their names.
pub(crate) fn all() -> Vec<PathBuf> {
    let mut pages = vec![root().join("README.md")];
    let mut folders = vec![root().join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder of pages") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "md") {
                pages.push(path);
            }
        }
    }
    pages.sort();
    pages
}

/// An empty folder for the commands of a page; `examples` in it is that of the repository.
pub(crate) fn new_folder(page: &Path) -> PathBuf {
    let place = page
        .strip_prefix(root())
        .expect("a page of the repository")
        .with_extension("");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join("pages")
        .join(place.to_string_lossy().replace('/', "-"));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("the build folder can be written");
    std::os::unix::fs::symlink(root().join("examples"), folder.join("examples"))
        .expect("a new folder");
    folder
}

/// What the commands of a page read that is neither in the repository nor written by a command before.
pub(crate) fn missing_inputs(page: &Path) -> Vec<String> {
    let text = fs::read_to_string(page).expect("a page");
    let (mut written, mut missing): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
    for (line, command) in commands(&text) {
        let (reads, writes) = files(&command);
        for file in reads.into_iter().filter(|file| !root().join(file).exists()) {
            if !written.iter().any(|earlier| can_be_same(earlier, &file)) {
                missing.push(format!("{}:{line}: {file}", page.display()));
            }
        }
        written.extend(writes);
    }
    missing
}

/// Each command of the `sh` blocks, and of the lines with a prompt in the others, with its line.
fn commands(text: &str) -> Vec<(usize, String)> {
    let (mut commands, mut block): (Vec<(usize, String)>, Option<&str>) = (Vec::new(), None);
    let mut goes_on = false;
    for (index, line) in text.lines().enumerate() {
        if let Some(language) = line.strip_prefix("```") {
            block = block.is_none().then_some(language);
            continue;
        }
        let typed = match block {
            Some("sh") => Some(line),
            Some(_) => line.strip_prefix("$ ").or(goes_on.then_some(line)),
            None => None,
        };
        let Some(typed) = typed.map(|typed| typed.split(" #").next().unwrap_or("").trim()) else {
            continue;
        };
        let part = typed.strip_suffix('\\').unwrap_or(typed);
        match commands.last_mut() {
            Some((_, command)) if goes_on => command.push_str(part),
            _ => commands.push((index + 1, part.to_owned())),
        }
        goes_on = typed.ends_with('\\');
    }
    commands
        .iter()
        .flat_map(|(line, command)| {
            command
                .split(['&', '|', ';'])
                .map(|one| (*line, one.to_owned()))
        })
        .collect()
}

/// The files that a command reads and writes: as `flowcast` has them, or as the shell redirects its output.
fn files(command: &str) -> (Vec<String>, Vec<String>) {
    let (mut reads, mut writes) = (Vec::new(), Vec::new());
    let (mut is_flowcast, mut before) = (false, "");
    for word in command.split_whitespace() {
        match word {
            "--" => is_flowcast = false,
            "flowcast" => is_flowcast = true,
            _ => {}
        }
        let into = before == ">" || WRITTEN.contains(&before);
        for name in word
            .split(['=', ','])
            .map(|name| name.trim_matches(['\'', '"']))
            .filter(|name| is_file(name))
        {
            if into {
                writes.push(name.to_owned());
            } else if is_flowcast {
                reads.push(name.to_owned());
            }
        }
        before = word;
    }
    (reads, writes)
}

fn is_file(name: &str) -> bool {
    ENDINGS.iter().any(|ending| {
        name.strip_suffix(ending)
            .is_some_and(|stem| stem.ends_with('.') && stem.len() > 1)
    })
}

/// Names are the same, or one is a pattern (`lu.?.csv`, `lu.{}.csv`) and the other begins as it does.
fn can_be_same(written: &str, read: &str) -> bool {
    let begins = |pattern: &str, name: &str| {
        let stem = pattern.split(['?', '*', '{', '$']).next().unwrap_or("");
        stem != pattern && name.starts_with(stem)
    };
    written == read || begins(written, read) || begins(read, written)
}
