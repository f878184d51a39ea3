//! Words that STYLE.md replaces: they stand in no comment, text, help or page.
//!
//! The list is the table "Words" of STYLE.md. A phrase in the column "not" that stands between backticks is searched for, in
//! any case and across ends of lines: in comments and strings of Rust sources, in comments of TOML, Python and shell files, and
//! in the prose of pages.

use std::{fs, path::Path};

use anyhow::{Context, Result, ensure};
use regex::Regex;

use super::links::is_fence;
use crate::files_under;

const GUIDE: &str = "STYLE.md";

/// Checks all sources and pages under `root`, without hidden folders and build folders.
///
/// # Errors
/// Names file, line and phrase of each finding.
pub(super) fn check(root: &Path) -> Result<()> {
    let guide =
        fs::read_to_string(root.join(GUIDE)).with_context(|| format!("cannot read {GUIDE}"))?;
    let phrases = phrases(&guide);
    ensure!(
        !phrases.is_empty(),
        "{GUIDE}: found no phrase in its table of words"
    );
    let pattern = format!(r"(?i)\b(?:{})\b", phrases.join("|").replace(' ', r"\s+"));
    let replaced = Regex::new(&pattern).context(GUIDE)?;
    let mut found = Vec::new();
    for file in files_under(root, is_entered)? {
        let prose: fn(&str) -> String = match file.extension().and_then(|ending| ending.to_str()) {
            Some("rs") => prose_of_rust,
            Some("md") if !file.ends_with(GUIDE) => prose_of_page,
            Some("toml" | "py" | "sh") => prose_of_script,
            _ => continue,
        };
        let text = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
        let prose = prose(&text);
        found.extend(replaced.find_iter(&prose).map(|phrase| {
            let line = prose[..phrase.start()].matches('\n').count() + 1;
            let words: Vec<&str> = phrase.as_str().split_whitespace().collect();
            format!("{}:{line}: found `{}`", file.display(), words.join(" "))
        }));
    }
    ensure!(
        found.is_empty(),
        "expected the words of {GUIDE}\n  {}",
        found.join("\n  ")
    );
    println!("{} phrases occur nowhere", phrases.len());
    Ok(())
}

/// `false` for folders whose files are built or are inputs of tests.
fn is_entered(folder: &str) -> bool {
    !folder.starts_with('.') && !["target", "corpus", "data"].contains(&folder)
}

/// Phrases between backticks in the second column of the table of words.
fn phrases(guide: &str) -> Vec<String> {
    let table = guide.split("## Words").nth(1).unwrap_or_default();
    let rows = table.lines().filter(|line| line.starts_with('|'));
    let replaced = rows.filter_map(|row| row.split('|').nth(2));
    replaced
        .flat_map(|cell| cell.split('`').skip(1).step_by(2))
        .map(str::to_owned)
        .collect()
}

/// Comments and strings of more than one word. Line breaks stay, so that lines keep their numbers.
fn prose_of_rust(text: &str) -> String {
    let part = r##"(?s)//[^\n]*|r#".*?"#|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)'"##;
    let part = Regex::new(part).expect("the pattern is constant");
    let (mut prose, mut end) = (String::new(), 0);
    for found in part.find_iter(text) {
        prose += &line_breaks(&text[end..found.start()]);
        prose += &match found.as_str() {
            comment if comment.starts_with("//") => {
                without_code(comment.trim_start_matches(['/', '!']))
            }
            string if string.contains(' ') => format!(" . {} . ", string.replace("\\\n", "\n")),
            other => line_breaks(other),
        };
        end = found.end();
    }
    prose
}

fn line_breaks(code: &str) -> String {
    "\n".repeat(code.matches('\n').count())
}

/// Text of a page outside blocks of code.
fn prose_of_page(text: &str) -> String {
    let mut in_fence = false;
    let prose = |line: &str| {
        in_fence ^= is_fence(line);
        if in_fence || is_fence(line) {
            String::new()
        } else {
            without_code(line)
        }
    };
    text.lines().map(prose).collect::<Vec<_>>().join("\n")
}

fn prose_of_script(text: &str) -> String {
    let prose = |line: &str| {
        line.split_once('#')
            .map_or(String::new(), |(_, comment)| without_code(comment))
    };
    text.lines().map(prose).collect::<Vec<_>>().join("\n")
}

/// A line without what stands between backticks.
fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect::<Vec<_>>().join("code")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phrases_stand_between_backticks_in_the_second_column() {
        let guide =
            "| `a` | `b` |\n## Words\n| use | not |\n|---|---|\n| list, `c` | `e f`, d, `g` |\n";
        assert_eq!(phrases(guide), ["e f", "g"]);
    }

    #[test]
    fn comments_strings_and_pages_are_prose_and_code_is_not() {
        let text = "/// a `b` c\nlet g = \"e \\\n f\"; // x\nlet y = \"g\";\n";
        let words: Vec<String> = prose_of_rust(text)
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
            .collect();
        assert_eq!(words, ["a code c", ". \"e", "f\" . x"]);
        assert_eq!(prose_of_page("a\n```\nb\n```\nc `d`\n"), "a\n\n\n\nc code");
        assert_eq!(prose_of_script("a = 1 # b\n"), " b");
    }
}
