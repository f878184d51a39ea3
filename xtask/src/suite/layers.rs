//! The rules of the library: stages import leftward only, and nothing outside is touched.
//!
//! The source is read as text: paths that start with `crate::` name a stage, paths that start with `std::` a part of
//! the standard library. Comments and texts in quotes are blanked first.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

/// The stages with their place in the order; equal places may not import each other.
const STAGES: [(&str, u8); 10] = [
    ("units", 0),
    ("stats", 1),
    ("cluster", 2),
    ("model", 3),
    ("fit", 4),
    ("trace", 5),
    ("simulate", 6),
    ("place", 7),
    ("rails", 7),
    ("report", 8),
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

/// Checks every file under `source`.
///
/// # Errors
/// A rule is broken; the message names file and line.
pub fn check(source: &Path) -> Result<()> {
    let mut files = Vec::new();
    rust_files(source, &mut files)?;
    files.sort();
    let mut problems = Vec::new();
    for file in &files {
        let text = fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
        let inside = file.strip_prefix(source).unwrap_or(file);
        problems.extend(problems_of(inside, &text).into_iter().map(|problem| format!("{}{problem}", file.display())));
    }
    match (problems.is_empty(), files.is_empty()) {
        (true, false) => Ok(()),
        (_, true) => bail!("{}: found no source file", source.display()),
        _ => bail!("\n  {}", problems.join("\n  ")),
    }
}

fn rust_files(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            rust_files(&path, files)?;
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            files.push(path);
        }
    }
    Ok(())
}

/// `:LINE: what is wrong` for each broken rule of one file.
fn problems_of(file: &Path, text: &str) -> Vec<String> {
    let code = blanked(text);
    let line = |at: usize| code[..at].matches('\n').count() + 1;
    let mut problems = Vec::new();
    if let Some(stage) = stage_of(file) {
        let own = place(&stage);
        for (at, other) in names_after(&code, "crate").into_iter().chain(names_above(file, &code)) {
            let leftward = other == stage || matches!((own, place(&other)), (Some(own), Some(other)) if other < own);
            if !leftward && (own.is_none() || place(&other).is_some()) {
                problems.push(format!(":{}: `{stage}` must not import `{other}`", line(at)));
            }
        }
    }
    let code = without_tests(file, &code);
    for (at, part) in names_after(code, "std") {
        if FORBIDDEN_STD.contains(&part.as_str()) {
            problems.push(format!(":{}: the library must not use std::{part}", line(at)));
        }
    }
    for word in FORBIDDEN_WORDS {
        problems.extend(words(code, word).map(|at| format!(":{}: the library must not use {word}", line(at))));
    }
    problems
}

/// Tests may read files; they stand last.
fn without_tests<'a>(file: &Path, code: &'a str) -> &'a str {
    let in_own_file = file.components().any(|part| matches!(part.as_os_str().to_str(), Some("tests.rs" | "tests")));
    let tests = if in_own_file { Some(0) } else { code.find("#[cfg(test)]\nmod tests {") };
    &code[..tests.unwrap_or(code.len())]
}

fn place(stage: &str) -> Option<u8> {
    STAGES.iter().find(|(name, _)| *name == stage).map(|(_, place)| *place)
}

/// `model` for `model/network.rs` and `units.rs`' own name; nothing for `lib.rs`, which names all stages.
fn stage_of(file: &Path) -> Option<String> {
    let first = file.components().next()?.as_os_str().to_str()?;
    let stage = first.strip_suffix(".rs").unwrap_or(first);
    (stage != "lib").then(|| stage.to_owned())
}

/// Where `word` stands as a word of its own.
fn words<'a>(code: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    code.match_indices(word).map(|(at, _)| at).filter(move |at| !code[..*at].ends_with(is_part))
}

/// The first name of each path that starts with `root::`, also of the paths in a group `root::{a::x, b}`.
fn names_after(code: &str, root: &str) -> Vec<(usize, String)> {
    let prefix = format!("{root}::");
    let starts: Vec<usize> = words(code, &prefix).collect();
    starts
        .into_iter()
        .flat_map(|at| first_names(&code[at + prefix.len()..]).into_iter().map(move |n| (at, n)))
        .collect()
}

/// The same for paths that climb from a stage's own modules to the crate with `super::super::`.
fn names_above(file: &Path, code: &str) -> Vec<(usize, String)> {
    let climb = file.components().count() - usize::from(file.ends_with("mod.rs"));
    let prefix = "super::".repeat(climb);
    let starts: Vec<usize> = words(code, &prefix).filter(|at| !code[..*at].ends_with("super::")).collect();
    let names = starts.into_iter().map(|at| (at, first_names(&code[at + prefix.len()..])));
    names
        .flat_map(|(at, names)| names.into_iter().map(move |name| (at, name)))
        .filter(|(_, n)| place(n).is_some())
        .collect()
}

/// `a` of `a::b`, or `a` and `c` of `{a::{b}, c}`.
fn first_names(path: &str) -> Vec<String> {
    let name =
        |text: &str| -> String { text.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect() };
    let Some(group) = path.strip_prefix('{') else { return vec![name(path)] };
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
    text.lines().map(blanked_line).collect::<Vec<_>>().join("\n")
}

fn blanked_line(line: &str) -> String {
    let mut kept = String::with_capacity(line.len());
    let (mut quoted, mut before) = (false, ' ');
    for (at, c) in line.char_indices() {
        if !quoted && line[at..].starts_with("//") {
            break;
        }
        let is_quote = c == '"' && before != '\\' && !(before == '\'' && line[at..].starts_with("\"'"));
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
    fn leftward_imports_pass_and_others_do_not() {
        assert_eq!(problems("model/network.rs", "use crate::units::Time;\nuse super::machine::Machine;"), 0);
        assert_eq!(problems("model/network.rs", "use crate::trace::Trace;"), 1);
        assert_eq!(problems("trace/mod.rs", "use crate::{model::network::Network, units::{Time, Rate}};"), 0);
        assert_eq!(problems("trace/mod.rs", "use crate::{model::{a, b}, simulate::replay, report};"), 2);
        assert_eq!(problems("rails/vft.rs", "fn f() { crate::place::best() }"), 1);
        assert_eq!(problems("units.rs", "use crate::model::x;"), 1);
        assert_eq!(problems("lib.rs", "pub use crate::report::Page;"), 0);
    }

    #[test]
    fn climbing_out_of_a_stage_counts_as_an_import() {
        assert_eq!(problems("model/network.rs", "use super::super::report::Page;"), 1);
        assert_eq!(problems("model/mod.rs", "use super::report::Page;"), 1);
        assert_eq!(problems("model/sharing/cuts.rs", "use super::super::network::Network;"), 0);
        assert_eq!(problems("report/page.rs", "use super::super::units::Time;"), 0);
    }

    #[test]
    fn a_stage_without_a_place_in_the_order_may_import_nothing() {
        assert_eq!(problems("utils/mod.rs", "use crate::units::Time;"), 1);
    }

    #[test]
    fn the_outside_is_out_of_reach() {
        assert_eq!(problems("trace/read.rs", "use std::io::Read;\nuse std::fs::File;"), 1);
        assert_eq!(problems("trace/read.rs", "use std::{fs::File, io, time::{Duration, Instant}};"), 2);
        assert_eq!(problems("trace/read.rs", "let t = Instant::now();"), 1);
        assert_eq!(problems("trace/read.rs", "// std::fs\nlet x = \"std::fs // println!\"; my_print!(x);"), 0);
    }

    #[test]
    fn tests_may_read_files_but_import_leftward_too() {
        assert_eq!(problems("trace/read.rs", "use std::io;\n#[cfg(test)]\nmod tests {\n    use std::fs;\n}"), 0);
        assert_eq!(problems("trace/read/tests.rs", "use std::fs;"), 0);
        assert_eq!(problems("trace/read/tests.rs", "use crate::report::Page;"), 1);
        assert_eq!(problems("trace/read.rs", "#[cfg(test)]\nmod tests;\nuse std::fs;"), 1);
    }

    #[test]
    fn a_problem_names_its_line() {
        let found = problems_of(Path::new("model/a.rs"), "\n\nuse crate::trace::Trace;");
        assert!(found[0].starts_with(":3: "), "{found:?}");
    }
}
