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
use serde::Deserialize;

use crate::{files_under, has_ending};

/// The limits of the figures.
const KEPT: &str = "xtask/sizes.toml";

/// A file of former names whose length says nothing about the code.
const FORMER_NAMES: &str = "former_schemas.rs";

/// Folders and files whose code does not belong to the product.
const APART: [&str; 7] = [
    "tests", "tests.rs", "benches", "examples", "fuzz", "bench", "xtask",
];

/// Limits of the product's size and style; each may only fall, but for `doc_tests`, which may only rise.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Limits {
    total: usize,
    largest_crate: usize,
    closures_per_100k_tokens: f64,
    tuple_parameters: usize,
    types_defined_twice: usize,
    functions_named_of: usize,
    schemas: usize,
    doc_tests: usize,
}

/// Counts of product code.
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
}

impl Counts {
    fn closures_per_100k_tokens(&self) -> f64 {
        (self.closures as f64 / self.tokens as f64 * 1e6).round() / 10.0
    }

    fn types_defined_twice(&self) -> usize {
        self.types.values().filter(|count| **count > 1).count()
    }

    fn largest_crate(&self) -> usize {
        self.tokens_of_crates.values().copied().max().unwrap_or(0)
    }
}

/// Prints the sizes of all crates and the figures of style.
///
/// # Errors
/// A file cannot be read.
pub(crate) fn print(root: &Path) -> Result<()> {
    let counts = Counter::new().product(root)?;
    println!("{:<24} {:>8} {:>8}", "crate", "tokens", "lines");
    for (name, tokens) in &counts.tokens_of_crates {
        println!("{name:<24} {tokens:>8} {:>8}", counts.lines_of_crates[name]);
    }
    println!("{:<24} {:>8} {:>8}", "product", counts.tokens, counts.lines);
    println!(
        "\nclosures bound to a name, per 100k tokens  {}",
        counts.closures_per_100k_tokens()
    );
    println!(
        "parameters that are tuples                 {}",
        counts.tuple_parameters
    );
    println!(
        "type names defined more than once          {}",
        counts.types_defined_twice()
    );
    println!(
        "functions named `of`                       {}",
        counts.functions_named_of
    );
    println!(
        "document schemas                           {}",
        counts.schemas.len()
    );
    println!(
        "doc tests of items                         {}",
        counts.doc_tests
    );
    Ok(())
}

/// Refuses a product beyond one of the limits.
///
/// # Errors
/// Names each figure with its limit.
pub(crate) fn check(root: &Path) -> Result<()> {
    let text =
        fs::read_to_string(root.join(KEPT)).with_context(|| format!("cannot read {KEPT}"))?;
    let limits: Limits = toml::from_str(&text).with_context(|| KEPT.to_owned())?;
    let counts = Counter::new().product(root)?;
    let most = [
        ("total", counts.tokens as f64, limits.total as f64),
        (
            "largest_crate",
            counts.largest_crate() as f64,
            limits.largest_crate as f64,
        ),
        (
            "closures_per_100k_tokens",
            counts.closures_per_100k_tokens(),
            limits.closures_per_100k_tokens,
        ),
        (
            "tuple_parameters",
            counts.tuple_parameters as f64,
            limits.tuple_parameters as f64,
        ),
        (
            "types_defined_twice",
            counts.types_defined_twice() as f64,
            limits.types_defined_twice as f64,
        ),
        (
            "functions_named_of",
            counts.functions_named_of as f64,
            limits.functions_named_of as f64,
        ),
        (
            "schemas",
            counts.schemas.len() as f64,
            limits.schemas as f64,
        ),
    ];
    let mut beyond: Vec<String> = most
        .iter()
        .filter(|(_, found, limit)| found > limit)
        .map(|(name, found, limit)| format!("{name}: found {found}, expected at most {limit}"))
        .collect();
    if counts.doc_tests < limits.doc_tests {
        let (found, limit) = (counts.doc_tests, limits.doc_tests);
        beyond.push(format!(
            "doc_tests: found {found}, expected at least {limit}"
        ));
    }
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
    fn modules_of_tests_do_not_count() {
        let text = "a;\n\n#[cfg(test)]\nmod tests {\n    b;\n}\n#[cfg(test)]\nuse c;\n";
        let counted = counts(text);
        assert_eq!((counted.tokens, counted.lines), (2 + 7 + 3, 3));
    }

    #[test]
    fn a_word_a_string_and_a_sign_are_a_token_each_and_lines_of_comments_none() {
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
            (
                counted.types_defined_twice(),
                counted.schemas.len(),
                counted.doc_tests
            ),
            (1, 1, 1)
        );
    }
}
