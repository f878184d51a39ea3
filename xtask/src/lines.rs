//! `cargo xtask lines`: how much code each crate has. The step `sizes` fails where all crates together have more tokens than are
//! kept.
//!
//! A token is a word, a string, a number or a single sign; comments have none. Lines depend on the format and characters on
//! the length of names, tokens on neither. Tests are the folders `tests`, `benches`, `examples` and `fuzz`, files called
//! `tests.rs`, and blocks behind `#[cfg(test)]`, which stand last in their file.

use std::{collections::BTreeMap, fs, path::Path, str::FromStr};

use anyhow::{Context, Result, anyhow, ensure};
use proc_macro2::{Delimiter, TokenStream, TokenTree};
use serde::Deserialize;

use crate::{files_under, has_ending};

/// The limit of the tokens of product code.
const KEPT: &str = "xtask/sizes.toml";

/// A file of former names whose length says nothing about the code.
const FORMER_NAMES: &str = "former_schemas.rs";

/// How much there is of what, product code apart from tests.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Size {
    tokens: usize,
    code_lines: usize,
    doc_lines: usize,
    comment_lines: usize,
    blank_lines: usize,
    test_lines: usize,
}

impl Size {
    fn add(&mut self, other: Size) {
        self.tokens += other.tokens;
        self.code_lines += other.code_lines;
        self.doc_lines += other.doc_lines;
        self.comment_lines += other.comment_lines;
        self.blank_lines += other.blank_lines;
        self.test_lines += other.test_lines;
    }

    fn row(&self, name: &str) -> String {
        let Size {
            tokens,
            code_lines,
            doc_lines,
            comment_lines,
            blank_lines,
            test_lines,
        } = self;
        format!(
            "{name:<24} {tokens:>8} {code_lines:>8} {doc_lines:>8} {comment_lines:>8} {blank_lines:>8} {test_lines:>8}"
        )
    }
}

/// The limit of the product's size.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeptSize {
    /// Tokens of product code of all crates together.
    total: usize,
}

/// Prints the sizes of all crates, of xtask, and of the product: all crates together.
///
/// # Errors
/// A file cannot be read or has no tokens of Rust.
pub(crate) fn print(root: &Path) -> Result<()> {
    let crates = crate_sizes(root)?;
    println!(
        "{:<24} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8}",
        "crate", "tokens", "code", "docs", "comments", "blank", "tests"
    );
    for (name, size) in &crates {
        println!("{}", size.row(name));
    }
    println!("{}", product(&crates).row("product"));
    Ok(())
}

/// The size of all crates together, without xtask.
fn product(crates: &BTreeMap<String, Size>) -> Size {
    let mut product = Size::default();
    let own = crates.iter().filter(|(name, _)| *name != "xtask");
    own.for_each(|(_, size)| product.add(*size));
    product
}

/// Refuses a product with more tokens than are kept.
///
/// # Errors
/// Gives the number of tokens and the limit.
pub(crate) fn check(root: &Path) -> Result<()> {
    let text =
        fs::read_to_string(root.join(KEPT)).with_context(|| format!("cannot read {KEPT}"))?;
    let KeptSize { total } = toml::from_str(&text).with_context(|| KEPT.to_owned())?;
    let found = product(&crate_sizes(root)?).tokens;
    ensure!(
        found <= total,
        "{KEPT}: found {found} tokens of product code, expected at most {total}"
    );
    Ok(())
}

fn crate_sizes(root: &Path) -> Result<BTreeMap<String, Size>> {
    let mut crates: BTreeMap<String, Size> = BTreeMap::new();
    for folder in ["crates", "xtask"] {
        for file in files_under(&root.join(folder), |name| name != "target")? {
            if has_ending(&file, "rs") && file.file_name().is_none_or(|name| name != FORMER_NAMES) {
                let path = file.strip_prefix(root).unwrap_or(&file);
                let text = fs::read_to_string(&file).with_context(|| path.display().to_string())?;
                let size = size_of_file(path, &text).with_context(|| path.display().to_string())?;
                crates.entry(crate_of(path)).or_default().add(size);
            }
        }
    }
    Ok(crates)
}

fn crate_of(path: &Path) -> String {
    let mut parts = path
        .components()
        .map(|part| part.as_os_str().to_string_lossy().into_owned());
    let first = parts.next().unwrap_or_default();
    if first == "crates" {
        parts.next().unwrap_or_default()
    } else {
        first
    }
}

fn is_of_tests(path: &Path) -> bool {
    let is_test_part = |part: &str| matches!(part, "tests" | "tests.rs" | "benches" | "examples");
    path.components()
        .any(|part| part.as_os_str().to_str().is_some_and(is_test_part))
}

fn size_of_file(path: &Path, text: &str) -> Result<Size> {
    if is_of_tests(path) {
        return Ok(Size {
            test_lines: text.lines().count(),
            ..Size::default()
        });
    }
    let lines: Vec<&str> = text.lines().map(str::trim_start).collect();
    let is_test_block = |pair: &[&str]| {
        pair[0] == "#[cfg(test)]" && pair[1].starts_with("mod ") && pair[1].ends_with('{')
    };
    let product_lines = lines
        .windows(2)
        .position(is_test_block)
        .unwrap_or(lines.len());
    let mut size = Size {
        test_lines: lines.len() - product_lines,
        ..Size::default()
    };
    for line in &lines[..product_lines] {
        if line.is_empty() {
            size.blank_lines += 1;
        } else if line.starts_with("///") || line.starts_with("//!") {
            size.doc_lines += 1;
        } else if line.starts_with("//") {
            size.comment_lines += 1;
        } else {
            size.code_lines += 1;
        }
    }
    let product: String = text.split_inclusive('\n').take(product_lines).collect();
    let stream =
        TokenStream::from_str(&product).map_err(|error| anyhow!("no tokens of Rust: {error}"))?;
    size.tokens = count_tokens(stream);
    Ok(size)
}

/// Counts the tokens of a stream; documentation, which comes as `#[doc = "..."]` or `#![doc = "..."]`, has none.
fn count_tokens(stream: TokenStream) -> usize {
    let mut count = 0;
    let mut signs_before = 0;
    for token in stream {
        match token {
            TokenTree::Group(group) if is_documentation(group.stream()) => count -= signs_before,
            TokenTree::Group(group) => {
                count += count_tokens(group.stream());
                count += if group.delimiter() == Delimiter::None {
                    0
                } else {
                    2
                };
            }
            TokenTree::Punct(sign) => {
                count += 1;
                signs_before = if sign.as_char() == '!' {
                    signs_before + 1
                } else {
                    1
                };
            }
            _ => count += 1,
        }
    }
    count
}

fn is_documentation(attribute: TokenStream) -> bool {
    let mut tokens = attribute.into_iter();
    matches!(tokens.next(), Some(TokenTree::Ident(name)) if name == "doc")
        && matches!(tokens.next(), Some(TokenTree::Punct(sign)) if sign.as_char() == '=')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size(path: &str, text: &str) -> Size {
        size_of_file(Path::new(path), text).unwrap()
    }

    #[test]
    fn tests_are_known_by_folder_file_and_block() {
        assert_eq!(
            size("crates/a/tests/b.rs", "a\nb\n"),
            Size {
                test_lines: 2,
                ..Size::default()
            }
        );
        assert_eq!(
            size("crates/a/src/b/tests.rs", "a\n"),
            Size {
                test_lines: 1,
                ..Size::default()
            }
        );
        let with_block = size("crates/a/src/b.rs", "a;\n\n#[cfg(test)]\nmod tests {\n}\n");
        assert_eq!(
            (
                with_block.tokens,
                with_block.code_lines,
                with_block.blank_lines,
                with_block.test_lines
            ),
            (2, 1, 1, 3)
        );
        assert_eq!(
            size("crates/a/src/b.rs", "a;\n#[cfg(test)]\nmod tests;\n").test_lines,
            0
        );
        assert_eq!(crate_of(Path::new("crates/a/src/b.rs")), "a");
        assert_eq!(crate_of(Path::new("xtask/src/b.rs")), "xtask");
    }

    #[test]
    fn a_word_a_string_and_a_sign_are_a_token_each_and_comments_are_none() {
        let text = "//! Page.\n/// Doc.\nfn f() -> u8 { g(\"a b\", 1) } // why\n";
        let counted = size("crates/a/src/b.rs", text);
        assert_eq!(counted.tokens, 2 + 2 + 3 + 2 + 1 + 2 + 3);
        assert_eq!((counted.code_lines, counted.doc_lines), (1, 2));
    }
}
