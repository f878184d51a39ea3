//! Pages of the documentation, and the files that their commands read.

pub(crate) mod runs;

use std::{
    fs,
    path::{Path, PathBuf},
};

/// Endings of files that the command reads or writes.
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

/// README.md and all files under docs, sorted by name.
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

/// Tutorials and how-to pages.
pub(crate) fn guides() -> Vec<PathBuf> {
    let mut pages = all();
    pages.retain(|page| name(page).contains("/tutorials/") || name(page).contains("/how-to/"));
    pages
}

/// Path of a page in the repository.
pub(crate) fn name(page: &Path) -> String {
    let name = page.strip_prefix(root()).expect("a page of the repository");
    name.to_string_lossy().into_owned()
}

/// Pages to which the items of a list link, in its order.
pub(crate) fn listed(list: &str) -> Vec<String> {
    let text = fs::read_to_string(root().join(list)).expect("a list of pages");
    let items = text.lines().filter(|line| line.starts_with("- ["));
    items
        .filter_map(|item| item.split_once("](")?.1.split_once(')'))
        .map(|(target, _)| format!("docs/{target}"))
        .collect()
}

/// Empty folder below `tests` for the commands of a page. Its `examples` is a link to the repository's.
pub(crate) fn new_folder(tests: &str, page: &Path) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join(tests)
        .join(name(page).trim_end_matches(".md").replace('/', "-"));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("the build folder can be written");
    std::os::unix::fs::symlink(root().join("examples"), folder.join("examples"))
        .expect("a new folder");
    folder
}

/// Files that the commands of a page read, but that are neither in the repository nor written by an earlier command.
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

/// A fenced block.
pub(crate) struct Block {
    /// Line number of its first fence.
    line: usize,
    /// Words after that fence. The first one is the language.
    words: Vec<String>,
    lines: Vec<String>,
}

/// Fenced blocks of a page, in order.
pub(crate) fn blocks(text: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut is_inside = false;
    for (index, line) in text.lines().enumerate() {
        match (line.strip_prefix("```"), blocks.last_mut()) {
            (Some(_), _) if is_inside => is_inside = false,
            (Some(words), _) => {
                is_inside = true;
                blocks.push(Block {
                    line: index + 1,
                    words: words.split_whitespace().map(str::to_owned).collect(),
                    lines: Vec::new(),
                });
            }
            (None, Some(block)) if is_inside => block.lines.push(line.to_owned()),
            _ => {}
        }
    }
    blocks
}

impl Block {
    fn language(&self) -> &str {
        self.words.first().map_or("", String::as_str)
    }

    /// Lines that a reader types, with their numbers: all lines of a `sh` block, and lines with a prompt in other blocks. A line
    /// after `> ` continues the line before it.
    fn typed(&self) -> Vec<(usize, String)> {
        let mut goes_on = false;
        let mut typed: Vec<(usize, String)> = Vec::new();
        for (index, line) in self.lines.iter().enumerate() {
            let is_shell = self.language() == "sh";
            if let (Some(more), Some((_, command))) = (line.strip_prefix("> "), typed.last_mut())
                && !is_shell
            {
                *command += &format!(" {more}");
                continue;
            }
            let part = match is_shell {
                true => Some(line.as_str()),
                false => line.strip_prefix("$ ").or(goes_on.then_some(line)),
            };
            typed.extend(part.map(|part| (self.line + index + 1, part.to_owned())));
            goes_on = part.is_some_and(|part| part.ends_with('\\'));
        }
        typed
    }
}

/// Each command of a page with its line number.
fn commands(text: &str) -> Vec<(usize, String)> {
    let mut commands: Vec<(usize, String)> = Vec::new();
    let mut goes_on = false;
    for (line, typed) in blocks(text).iter().flat_map(Block::typed) {
        let typed = typed.split(" #").next().unwrap_or("").trim();
        let part = typed.strip_suffix('\\').unwrap_or(typed);
        match commands.last_mut() {
            Some((_, command)) if goes_on => *command += &format!(" {part}"),
            _ => commands.push((line, part.to_owned())),
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

/// Files that a command reads and writes, as arguments of `flowcast` or by redirection of the shell.
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

/// `true` if the names are the same, or if one is a pattern (`lu.?.csv`, `lu.{}.csv`) and the other has the same beginning.
fn can_be_same(written: &str, read: &str) -> bool {
    let begins = |pattern: &str, name: &str| {
        let stem = pattern.split(['?', '*', '{', '$']).next().unwrap_or("");
        stem != pattern && name.starts_with(stem)
    };
    written == read || begins(written, read) || begins(read, written)
}
