//! Each dependency's licence, offline: cargo knows the expressions, `deny.toml` says which licences are allowed.

use std::fs;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use super::programs::output;

/// Checks every package of the dependency graph that is not our own.
///
/// # Errors
/// A package without an allowed licence, or a graph that cannot be read.
pub(super) fn check() -> Result<()> {
    let allowed = allowed(&fs::read_to_string("deny.toml").context("cannot read deny.toml")?)?;
    let metadata: Value = serde_json::from_str(&metadata()?)?;
    let packages = metadata["packages"]
        .as_array()
        .context("cargo metadata: expected `packages`")?;
    let foreign: Vec<&Value> = packages
        .iter()
        .filter(|package| !package["source"].is_null())
        .collect();
    ensure!(!foreign.is_empty(), "cargo metadata: found no dependency");
    let refused: Vec<String> = foreign
        .iter()
        .filter_map(|package| complaint(package, &allowed))
        .collect();
    ensure!(refused.is_empty(), "\n  {}", refused.join("\n  "));
    println!("{} dependencies, all under allowed licences", foreign.len());
    Ok(())
}

fn allowed(text: &str) -> Result<Vec<String>> {
    let document: toml::Table = text.parse().context("deny.toml")?;
    let list = document
        .get("licenses")
        .and_then(|section| section.get("allow"))
        .and_then(toml::Value::as_array);
    let list = list.context("deny.toml: expected a list licenses.allow")?;
    Ok(list
        .iter()
        .filter_map(toml::Value::as_str)
        .map(str::to_owned)
        .collect())
}

/// For this platform only: what the builds before this step have fetched.
pub(crate) fn metadata() -> Result<String> {
    let version = output("rustc", &["-vV"])?;
    let host = version
        .lines()
        .find_map(|line| line.strip_prefix("host: "))
        .context("rustc -vV: expected `host:`")?;
    output(
        "cargo",
        &[
            "metadata",
            "--format-version",
            "1",
            "--locked",
            "--offline",
            "--filter-platform",
            host,
        ],
    )
}

fn complaint(package: &Value, allowed: &[String]) -> Option<String> {
    let name = format!(
        "{} {}",
        package["name"].as_str()?,
        package["version"].as_str()?
    );
    let Some(expression) = package["license"].as_str() else {
        return Some(format!(
            "{name}: found no licence, expected an SPDX expression"
        ));
    };
    match covers(expression, allowed) {
        Ok(true) => None,
        Ok(false) => Some(format!(
            "{name}: found `{expression}`, which deny.toml does not allow"
        )),
        Err(error) => Some(format!("{name}: {error}")),
    }
}

/// Whether the allowed licences are enough for an SPDX expression; `/` is the old form of `OR`.
fn covers(expression: &str, allowed: &[String]) -> Result<bool> {
    let spaced = expression
        .replace('(', " ( ")
        .replace(')', " ) ")
        .replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut reader = Reader {
        words: &words,
        allowed,
    };
    let covered = reader.any()?;
    ensure!(
        reader.words.is_empty(),
        "found `{expression}`, expected an SPDX expression"
    );
    Ok(covered)
}

/// Reads an expression: `any` of several, each `all` of several, each a licence or a group.
struct Reader<'a> {
    words: &'a [&'a str],
    allowed: &'a [String],
}

impl Reader<'_> {
    fn any(&mut self) -> Result<bool> {
        let mut covered = self.all()?;
        while self.take("OR") {
            covered |= self.all()?;
        }
        Ok(covered)
    }

    fn all(&mut self) -> Result<bool> {
        let mut covered = self.one()?;
        while self.take("AND") {
            covered &= self.one()?;
        }
        Ok(covered)
    }

    fn one(&mut self) -> Result<bool> {
        if self.take("(") {
            let covered = self.any()?;
            ensure!(self.take(")"), "a group of licences is not closed");
            return Ok(covered);
        }
        let mut licence = self.word()?.to_owned();
        if self.take("WITH") {
            licence = format!("{licence} WITH {}", self.word()?);
        }
        Ok(self.allowed.contains(&licence))
    }

    fn word(&mut self) -> Result<&str> {
        match self.words.split_first() {
            Some((word, rest)) if !matches!(*word, "AND" | "OR" | "WITH" | ")") => {
                self.words = rest;
                Ok(word)
            }
            found => bail!(
                "found `{}`, expected a licence",
                found.map_or("the end", |(word, _)| *word)
            ),
        }
    }

    fn take(&mut self, word: &str) -> bool {
        let found = self.words.first() == Some(&word);
        if found {
            self.words = &self.words[1..];
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_read_with_their_precedence() {
        let allowed = ["MIT", "Apache-2.0", "Unicode-3.0"].map(str::to_owned);
        let covers = |expression: &str| covers(expression, &allowed).unwrap();
        for expression in [
            "MIT",
            "MIT/GPL-3.0",
            "(MIT OR X) AND Unicode-3.0",
            "X AND Y OR MIT",
            "X WITH Y OR Apache-2.0",
        ] {
            assert!(covers(expression), "{expression}");
        }
        for expression in [
            "GPL-3.0",
            "MIT AND GPL-3.0",
            "Apache-2.0 WITH Something",
            "X AND (MIT OR Y)",
            "MIT+",
        ] {
            assert!(!covers(expression), "{expression}");
        }
    }

    #[test]
    fn broken_expressions_and_missing_licences_are_errors() {
        for expression in ["", "MIT OR", "(MIT", "MIT MIT", "AND", "MIT )"] {
            assert!(covers(expression, &["MIT".into()]).is_err(), "{expression}");
        }
        let package = serde_json::json!({"name": "x", "version": "1.0.0", "license": null});
        assert!(complaint(&package, &[]).unwrap().contains("no licence"));
    }
}
