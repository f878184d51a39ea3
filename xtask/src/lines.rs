//! `cargo xtask lines`: how much code each crate has, and figures of its style. The step `sizes` fails where a figure is beyond
//! the limit in `xtask/sizes.toml`.
//!
//! A token is a string, a word or a single sign; of a string with an escaped line end each word counts. Lines depend on the
//! format and characters on the length of names, tokens on neither. Tests, comments that stand on lines of their own and xtask
//! do not count. Tests are the folders `tests`, `benches`, `bench`, `examples` and `fuzz`, files called `tests.rs`, and
//! modules behind `#[cfg(test)]`.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};
use regex::Regex;

use crate::{files_under, has_ending};

/// The limits of the figures.
const KEPT: &str = "xtask/sizes.toml";

/// A file of former names whose length says nothing about the code.
const FORMER_NAMES: &str = "former_schemas.rs";

/// Folders and files whose code does not belong to the product.
const APART: [&str; 7] = [
    "tests", "tests.rs", "benches", "examples", "fuzz", "bench", "xtask",
];

/// Counts of product code, of all crates but xtask.
#[derive(Debug, Default)]
struct Counts {
    tokens: usize,
    lines: usize,
    tokens_of_crates: BTreeMap<String, usize>,
    lines_of_crates: BTreeMap<String, usize>,
    closures: usize,
    tuple_parameters: usize,
    types: BTreeMap<String, usize>,
    functions_named_of: usize,
    schemas: BTreeSet<String>,
    doc_tests: usize,
    clause_docs: usize,
}

/// A count that has a limit.
struct Figure {
    /// Its name in the file of limits.
    name: &'static str,
    what: &'static str,
    found: f64,
    /// Whether it may only rise, and not only fall.
    rises: bool,
}

impl Counts {
    fn figures(&self) -> Vec<Figure> {
        let closures = self.closures as f64 / self.tokens as f64 * 1e6;
        let twice = self.types.values().filter(|count| **count > 1).count();
        let largest = self.tokens_of_crates.values().max().copied();
        let figure = |name, what, found| Figure {
            name,
            what,
            found,
            rises: name == "doc_tests",
        };
        vec![
            figure("total", "tokens", self.tokens as f64),
            figure(
                "largest_crate",
                "tokens of the largest crate",
                largest.unwrap_or(0) as f64,
            ),
            figure(
                "closures_per_100k_tokens",
                "closures bound to a name, per 100k tokens",
                closures.round() / 10.0,
            ),
            figure(
                "tuple_parameters",
                "parameters that are tuples",
                self.tuple_parameters as f64,
            ),
            figure(
                "types_defined_twice",
                "type names defined more than once",
                twice as f64,
            ),
            figure(
                "functions_named_of",
                "functions named `of`",
                self.functions_named_of as f64,
            ),
            figure("schemas", "document schemas", self.schemas.len() as f64),
            figure("doc_tests", "doc tests of items", self.doc_tests as f64),
            figure(
                "clause_docs",
                "doc comments that begin with a clause",
                self.clause_docs as f64,
            ),
        ]
    }
}

/// Prints the sizes of all crates and the figures that have limits.
///
/// # Errors
/// A file cannot be read.
pub(crate) fn print(root: &Path) -> Result<()> {
    let counts = Counter::new().product(root)?;
    println!("{:<24} {:>8} {:>8}", "crate", "tokens", "lines");
    for (name, tokens) in &counts.tokens_of_crates {
        println!("{name:<24} {tokens:>8} {:>8}", counts.lines_of_crates[name]);
    }
    println!(
        "{:<24} {:>8} {:>8}\n",
        "product", counts.tokens, counts.lines
    );
    for Figure { what, found, .. } in counts.figures() {
        println!("{what:<42} {found:>8}");
    }
    Ok(())
}

/// Refuses a product beyond one of the limits.
///
/// # Errors
/// Names each figure with its limit.
pub(crate) fn check(root: &Path) -> Result<()> {
    let text =
        fs::read_to_string(root.join(KEPT)).with_context(|| format!("cannot read {KEPT}"))?;
    let mut limits: BTreeMap<String, f64> = toml::from_str(&text).context(KEPT)?;
    let mut beyond = Vec::new();
    for Figure {
        name, found, rises, ..
    } in Counter::new().product(root)?.figures()
    {
        let limit = limits.remove(name);
        let limit = limit.with_context(|| format!("{KEPT}: found no limit `{name}`"))?;
        match rises {
            true if found < limit => {
                beyond.push(format!("{name}: found {found}, expected at least {limit}"));
            }
            false if found > limit => {
                beyond.push(format!("{name}: found {found}, expected at most {limit}"));
            }
            _ => {}
        }
    }
    ensure!(
        limits.is_empty(),
        "{KEPT}: found limits of unknown figures: {limits:?}"
    );
    ensure!(beyond.is_empty(), "{KEPT}: {}", beyond.join("; "));
    Ok(())
}

/// The patterns by which code is counted, compiled once.
struct Counter {
    token: Regex,
    test_module: Regex,
    test_block: Regex,
    closure: Regex,
    function: Regex,
    tuple: Regex,
    type_name: Regex,
    schema: Regex,
    public_item: Regex,
    doc_test: Regex,
    doc_comment: Regex,
    clause: Regex,
}

impl Counter {
    fn new() -> Counter {
        let regex = |pattern: &str| Regex::new(pattern).expect("the pattern is constant");
        Counter {
            token: regex(r#""(?:[^"\\]|\\.)*"|\w+|[^\w\s]"#),
            test_module: regex(
                r"#\[cfg\((?:all\()?test[^\]]*\)\]\s*(?:pub(?:\(.*?\))? )?mod (\w+);",
            ),
            test_block: regex(r"^\s*(pub(\(.*?\))? )?mod \w+ \{"),
            closure: regex(r"(?m)^\s*let (?:mut )?[a-z_0-9]+(?:\s*:[^=\n]*)? = (?:move )?\|"),
            function: regex(r"(?s)\bfn \w+(?:<[^(]*>)?\(([^{;]*?)\)\s*(?:->|\{|where)"),
            tuple: regex(r"(^|,\s*)\s*(\w+|\([^)]*\))\s*:\s*\("),
            type_name: regex(r"(?m)^\s*(?:pub(?:\([^)]*\))? )?(?:struct|enum|trait|union) (\w+)"),
            schema: regex(r#""flowcast/([a-z0-9-]+(?:/[a-z0-9-]+)*)/\d+""#),
            public_item: regex(
                r#"^\s*pub (?:(?:const|async|unsafe|extern "C") )*(fn|struct|enum|trait|type|const|static|mod|union)\b"#,
            ),
            doc_test: regex(r"^\s*/// ```(rust|no_run|should_panic)?\s*$"),
            doc_comment: regex(r"^\s*//[/!] ?(.*)"),
            clause: regex(r"^(What|Who|Whose|Whom|How|By|Of|So|As|Where|That|The same)\b"),
        }
    }

    fn product(&self, root: &Path) -> Result<Counts> {
        let mut texts = BTreeMap::new();
        let mut test_modules = BTreeSet::new();
        for file in files_under(&root.join("crates"), |name| name != "target")? {
            if !has_ending(&file, "rs") || file.file_name().is_some_and(|name| name == FORMER_NAMES)
            {
                continue;
            }
            let text = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
            for found in self.test_module.captures_iter(&text) {
                test_modules.insert(folder_of_modules(&file).join(&found[1]));
            }
            texts.insert(file, text);
        }
        let is_test = |file: &PathBuf| {
            let own = file.with_extension("");
            let is_apart = |part: &std::ffi::OsStr| {
                part.to_str()
                    .is_some_and(|part| APART.contains(&part) || part.ends_with("_tests.rs"))
            };
            own.ancestors().any(|folder| test_modules.contains(folder))
                || file.strip_prefix(root).unwrap_or(file).iter().any(is_apart)
        };
        let mut counts = Counts::default();
        for (file, text) in texts.iter().filter(|(file, _)| !is_test(file)) {
            let folder = file.strip_prefix(root.join("crates")).unwrap_or(file);
            let crate_name = folder.iter().next().unwrap_or_default().to_string_lossy();
            self.add_file(&crate_name, text, &mut counts);
        }
        Ok(counts)
    }

    fn add_file(&self, crate_name: &str, text: &str, counts: &mut Counts) {
        let lines = self.without_tests(text);
        let is_code =
            |line: &&&str| !line.trim().is_empty() && !line.trim_start().starts_with("//");
        let code: Vec<&str> = lines.iter().filter(is_code).copied().collect();
        let joined = code.join("\n");
        let tokens = self.token.find_iter(&joined).count();
        counts.tokens += tokens;
        counts.lines += code.len();
        *counts
            .tokens_of_crates
            .entry(crate_name.to_owned())
            .or_default() += tokens;
        *counts
            .lines_of_crates
            .entry(crate_name.to_owned())
            .or_default() += code.len();
        counts.closures += self.closure.find_iter(&joined).count();
        counts.functions_named_of +=
            joined.matches("fn of(").count() + joined.matches("fn of<").count();
        let parameters = self.function.captures_iter(&joined);
        counts.tuple_parameters += parameters
            .filter(|found| self.tuple.is_match(&found[1]))
            .count();
        for found in self.type_name.captures_iter(&joined) {
            *counts.types.entry(found[1].to_owned()).or_default() += 1;
        }
        counts.schemas.extend(
            self.schema
                .captures_iter(&joined)
                .map(|found| found[1].to_owned()),
        );
        counts.doc_tests += self.doc_tests(&lines);
        counts.clause_docs += self.clause_docs(&lines);
    }

    /// Number of doc comments whose first line begins with a clause in place of a noun or a verb (STYLE.md).
    fn clause_docs(&self, lines: &[&str]) -> usize {
        let mut count = 0;
        let mut is_inside = false;
        for line in lines {
            let text = self.doc_comment.captures(line);
            let first = text.as_ref().filter(|_| !is_inside);
            count += usize::from(first.is_some_and(|text| self.clause.is_match(&text[1])));
            is_inside = text.is_some();
        }
        count
    }

    /// The lines of a file without its modules of tests.
    fn without_tests<'a>(&self, text: &'a str) -> Vec<&'a str> {
        let mut lines = text.lines().peekable();
        let mut product = Vec::new();
        while let Some(line) = lines.next() {
            let own = line.trim();
            if !own.starts_with("#[cfg(test)]") && !own.starts_with("#[cfg(all(test") {
                product.push(line);
                continue;
            }
            let mut attributes = vec![line];
            while let Some(next) = lines.next_if(|next| next.trim().starts_with("#[")) {
                attributes.push(next);
            }
            match lines.next_if(|next| self.test_block.is_match(next)) {
                Some(head) => {
                    let end = format!("{}}}", &head[..head.len() - head.trim_start().len()]);
                    lines.by_ref().find(|next| *next == end);
                }
                None => product.append(&mut attributes),
            }
        }
        product
    }

    /// Public items whose documentation has an example that runs.
    fn doc_tests(&self, lines: &[&str]) -> usize {
        let mut count = 0;
        for (at, _) in lines
            .iter()
            .enumerate()
            .filter(|(_, line)| self.public_item.is_match(line))
        {
            let mut above = lines[..at].iter().rev().peekable();
            let is_attribute = |line: &str| {
                line.starts_with("#[")
                    || line.starts_with(")]")
                    || line.ends_with(']') && !line.starts_with("//")
            };
            while above.next_if(|line| is_attribute(line.trim())).is_some() {}
            let mut docs = above.take_while(|line| line.trim().starts_with("///"));
            count += usize::from(docs.any(|line| self.doc_test.is_match(line)));
        }
        count
    }
}

/// Where the modules stand that a file names.
fn folder_of_modules(file: &Path) -> PathBuf {
    let is_root = file.file_name().is_some_and(|name| {
        ["mod.rs", "lib.rs", "main.rs"]
            .iter()
            .any(|root| name == *root)
    });
    match file.parent() {
        Some(folder) if is_root => folder.to_owned(),
        _ => file.with_extension(""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(text: &str) -> Counts {
        let mut counts = Counts::default();
        Counter::new().add_file("a", text, &mut counts);
        counts
    }

    #[test]
    fn only_the_first_line_of_a_doc_comment_can_begin_with_a_clause() {
        let text =
            "/// What it is.\nfn a() {}\n/// A thing.\n/// What it is.\nfn b() {}\n// What.\n";
        assert_eq!(counts(text).clause_docs, 1);
    }

    #[test]
    fn modules_of_tests_do_not_count() {
        let text = "a;\n\n#[cfg(test)]\nmod tests {\n    b;\n}\n#[cfg(test)]\nuse c;\n";
        let counted = counts(text);
        assert_eq!((counted.tokens, counted.lines), (2 + 7 + 3, 3));
    }

    #[test]
    fn a_word_a_string_and_a_sign_are_one_token_each_and_comments_are_none() {
        let counted = counts("//! Page.\n/// Doc.\nfn f() -> u8 { g(\"a \\\" b\", 1) }\n// why\n");
        assert_eq!(
            (counted.tokens, counted.lines),
            (2 + 2 + 3 + 2 + 1 + 2 + 3, 1)
        );
    }

    #[test]
    fn figures_of_style_are_counted() {
        let text = "/// A.\n///\n/// ```\n/// f();\n/// ```\n#[must_use]\npub fn of(a: (u8, u8)) -> u8 {\n    let one = |x| x;\n}\n\
                    struct A;\nmod b {\n    enum A {}\n}\nconst S: &str = \"flowcast/result/1\";\n";
        let counted = counts(text);
        assert_eq!(
            (
                counted.closures,
                counted.tuple_parameters,
                counted.functions_named_of
            ),
            (1, 1, 1)
        );
        assert_eq!(
            (counted.types["A"], counted.schemas.len(), counted.doc_tests),
            (2, 1, 1)
        );
    }
}
