//! The rules between crates that cargo does not keep: the pure ones touch nothing outside, and what is loaded into other
//! people's programs compiles no more than it needs. Nor are there circles between the files of a crate.
//!
//! The source is read as text; paths that start with `std::` name a part of the standard library. Comments and texts in
//! quotes are blanked first.

use std::{fs, path::Path};

use anyhow::{Context, Result, ensure};

use super::{circles::circle_of, programs::output};
use crate::{files_under, has_ending};

/// The crates that take bytes and parameters and give values.
const PURE: [&str; 19] = [
    "flowcast",
    "flowcast-fit",
    "flowcast-formats",
    "flowcast-graph",
    "flowcast-hpl",
    "flowcast-network",
    "flowcast-observers",
    "flowcast-place",
    "flowcast-program",
    "flowcast-recording",
    "flowcast-replay",
    "flowcast-report",
    "flowcast-scheduler",
    "flowcast-sensitivity",
    "flowcast-statistics",
    "flowcast-table",
    "flowcast-traffic",
    "flowcast-tuning",
    "flowcast-units",
];

/// Libraries that other programs load, and the packages of which they must not consist.
const LOADED: [(&str, &[&str]); 2] = [
    (
        "flowcast-record",
        &[
            "flowcast-network",
            "flowcast-formats",
            "flowcast-program",
            "serde",
            "statrs",
            "toml",
            "zstd",
        ],
    ),
    (
        "flowcast-openmpi",
        &[
            "flowcast-traffic",
            "flowcast-replay",
            "flowcast-report",
            "flowcast-formats",
            "flowcast-program",
            "zstd",
        ],
    ),
];

const FORBIDDEN_STD: [&str; 6] = ["env", "fs", "net", "path", "process", "time"];
const FORBIDDEN_WORDS: [&str; 12] = [
    "Instant::",
    "SystemTime",
    "stdin(",
    "stdout(",
    "stderr(",
    "println!",
    "print!",
    "eprintln!",
    "eprint!",
    "dbg!",
    "static mut",
    "thread_local!",
];

/// Checks the crates of the workspace in `root`.
///
/// # Errors
/// A rule is broken; the message names the crate, or file and line.
pub(super) fn check(root: &Path) -> Result<()> {
    let mut problems = Vec::new();
    for name in PURE {
        let source = root.join("crates").join(name).join("src");
        let mut files = files_under(&source, |_| true)?;
        files.retain(|file| has_ending(file, "rs"));
        ensure!(
            !files.is_empty(),
            "{}: found no source file",
            source.display()
        );
        for file in &files {
            let text = fs::read_to_string(file)
                .with_context(|| format!("cannot read {}", file.display()))?;
            problems.extend(
                problems_of(file, &text)
                    .into_iter()
                    .map(|problem| format!("{}{problem}", file.display())),
            );
        }
    }
    for (name, unwanted) in LOADED {
        let packages = packages_of(name)?;
        let found = unwanted
            .iter()
            .filter(|package| packages.iter().any(|one| one == *package));
        problems.extend(found.map(|package| format!("{name} must not depend on {package}")));
    }
    for folder in fs::read_dir(root.join("crates")).context("cannot read crates")? {
        let source = folder?.path().join("src");
        let code =
            |file: &Path| Ok(without_tests(file, &blanked(&fs::read_to_string(file)?)).to_owned());
        let found = circle_of(&source, code)?;
        problems.extend(
            found.map(|circle| format!("{}: files import each other: {circle}", source.display())),
        );
    }
    ensure!(problems.is_empty(), "\n  {}", problems.join("\n  "));
    Ok(())
}

/// The packages that make up a library, itself among them.
pub(crate) fn packages_of(name: &str) -> Result<Vec<String>> {
    let arguments = [
        "tree",
        "--package",
        name,
        "--edges",
        "normal",
        "--prefix",
        "none",
        "--format",
        "{p}",
    ];
    let text = output("cargo", &arguments)?;
    Ok(text
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .map(str::to_owned)
        .collect())
}

/// `:LINE: what is wrong` for each broken rule of one file.
fn problems_of(file: &Path, text: &str) -> Vec<String> {
    let code = blanked(text);
    let code = without_tests(file, &code);
    let line = |at: usize| code[..at].matches('\n').count() + 1;
    let mut problems = Vec::new();
    for (at, part) in names_after(code, "std") {
        if FORBIDDEN_STD.contains(&part.as_str()) {
            problems.push(format!(
                ":{}: the library must not use std::{part}",
                line(at)
            ));
        }
    }
    for word in FORBIDDEN_WORDS {
        problems.extend(
            words(code, word).map(|at| format!(":{}: the library must not use {word}", line(at))),
        );
    }
    problems
}

/// Tests may read files; they stand last.
fn without_tests<'a>(file: &Path, code: &'a str) -> &'a str {
    let in_own_file = file
        .components()
        .any(|part| matches!(part.as_os_str().to_str(), Some("tests.rs" | "tests")));
    let tests = if in_own_file {
        Some(0)
    } else {
        code.find("#[cfg(test)]\nmod tests {")
    };
    &code[..tests.unwrap_or(code.len())]
}

/// Where `word` stands as a word of its own.
pub(super) fn words<'a>(code: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    code.match_indices(word)
        .map(|(at, _)| at)
        .filter(move |at| !code[..*at].ends_with(is_part))
}

/// The first name of each path that starts with `root::`, also of the paths in a group `root::{a::x, b}`.
fn names_after(code: &str, root: &str) -> Vec<(usize, String)> {
    let prefix = format!("{root}::");
    let starts: Vec<usize> = words(code, &prefix).collect();
    starts
        .into_iter()
        .flat_map(|at| {
            first_names(&code[at + prefix.len()..])
                .into_iter()
                .map(move |n| (at, n))
        })
        .collect()
}

/// `a` of `a::b`, or `a` and `c` of `{a::{b}, c}`.
fn first_names(path: &str) -> Vec<String> {
    let name = |text: &str| -> String {
        text.trim_start()
            .chars()
            .take_while(|c| c.is_alphanumeric() || *c == '_')
            .collect()
    };
    let Some(group) = path.strip_prefix('{') else {
        return vec![name(path)];
    };
    let mut depth = 1;
    let mut names = vec![name(group)];
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 1 => names.push(name(&group[at + 1..])),
            _ => {}
        }
        if depth == 0 {
            break;
        }
    }
    names.retain(|name| !name.is_empty());
    names
}

/// The text with comments and quoted texts replaced by blanks, line for line.
fn blanked(text: &str) -> String {
    text.lines()
        .map(blanked_line)
        .collect::<Vec<_>>()
        .join("\n")
}

fn blanked_line(line: &str) -> String {
    let mut kept = String::with_capacity(line.len());
    let (mut quoted, mut before) = (false, ' ');
    for (at, c) in line.char_indices() {
        if !quoted && line[at..].starts_with("//") {
            break;
        }
        let is_quote =
            c == '"' && before != '\\' && !(before == '\'' && line[at..].starts_with("\"'"));
        quoted ^= is_quote;
        kept.push(if quoted || is_quote { ' ' } else { c });
        before = if before == '\\' && c == '\\' { ' ' } else { c };
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(file: &str, text: &str) -> usize {
        problems_of(Path::new(file), text).len()
    }

    #[test]
    fn files_sockets_and_clocks_are_refused() {
        assert_eq!(
            problems("read.rs", "use std::io::Read;\nuse std::fs::File;"),
            1
        );
        assert_eq!(
            problems(
                "read.rs",
                "use std::{fs::File, io, time::{Duration, Instant}};"
            ),
            2
        );
        assert_eq!(problems("read.rs", "let t = Instant::now();"), 1);
        assert_eq!(
            problems(
                "read.rs",
                "// std::fs\nlet x = \"std::fs // println!\"; my_print!(x);"
            ),
            0
        );
    }

    #[test]
    fn tests_may_read_files() {
        assert_eq!(
            problems(
                "read.rs",
                "use std::io;\n#[cfg(test)]\nmod tests {\n    use std::fs;\n}"
            ),
            0
        );
        assert_eq!(problems("read/tests.rs", "use std::fs;"), 0);
        assert_eq!(
            problems("read.rs", "#[cfg(test)]\nmod tests;\nuse std::fs;"),
            1
        );
    }

    #[test]
    fn a_violation_names_its_line() {
        let found = problems_of(Path::new("a.rs"), "\n\nuse std::net::TcpStream;");
        assert!(found[0].starts_with(":3: "), "{found:?}");
    }

    #[test]
    fn the_packages_of_the_recorder_are_few() {
        let packages = packages_of("flowcast-record").unwrap();
        assert!(
            packages.iter().any(|name| name == "flowcast-recording"),
            "{packages:?}"
        );
    }
}
