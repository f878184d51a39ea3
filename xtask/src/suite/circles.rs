//! Circles between the files of a crate, but for a parent with what is in its folder: who wants to read one file of a circle
//! has to read all.
//!
//! An import is a path that starts with `crate::` or `super::`; what it names is the longest part of it that is a file.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use anyhow::Result;

use crate::{files_under, has_ending};

/// The path of a module in its crate; none for the root.
type Module = Vec<String>;
type Imports = BTreeMap<Module, BTreeSet<Module>>;

/// A circle between the files of `source`, each importing the next.
pub(super) fn circle_of(
    source: &Path,
    code: impl Fn(&Path) -> Result<String>,
) -> Result<Option<String>> {
    let files = files_under(source, |_| true)?
        .into_iter()
        .filter(|file| has_ending(file, "rs"));
    let texts = files
        .map(|file| Ok((module_of(file.strip_prefix(source)?), code(&file)?)))
        .collect::<Result<_>>()?;
    Ok(circle(&imports(&texts)).map(|circle| {
        circle
            .iter()
            .map(|module| module.join("::"))
            .collect::<Vec<_>>()
            .join(" -> ")
    }))
}

fn module_of(file: &Path) -> Module {
    let mut parts: Module = file
        .with_extension("")
        .iter()
        .map(|part| part.to_string_lossy().into_owned())
        .collect();
    parts.pop_if(|last| matches!(last.as_str(), "mod" | "lib" | "main"));
    parts
}

fn imports(texts: &BTreeMap<Module, String>) -> Imports {
    let of = |module: &Module, text: &str| {
        let named = paths(module, text).into_iter().filter_map(|path| {
            let files = (0..=path.len()).rev().map(|length| path[..length].to_vec());
            files.into_iter().find(|file| texts.contains_key(file))
        });
        named
            .filter(|other| !other.starts_with(module) && !module.starts_with(other))
            .collect()
    };
    texts
        .iter()
        .map(|(module, text)| (module.clone(), of(module, text)))
        .collect()
}

/// All paths of a text that start in its own crate, from the crate's root on.
fn paths(module: &Module, text: &str) -> Vec<Module> {
    let mut found = Vec::new();
    for root in ["crate::", "super::"] {
        for at in super::layers::words(text, root) {
            if text[..at].ends_with("super::") {
                continue;
            }
            let ups = text[at..]
                .split("::")
                .take_while(|part| *part == "super")
                .count();
            let Some(kept) = (if ups == 0 {
                Some(0)
            } else {
                module.len().checked_sub(ups)
            }) else {
                continue;
            };
            let rest = &text[at + ups.max(1) * root.len()..];
            expand(&mut module[..kept].to_vec(), rest, &mut found);
        }
    }
    found
}

/// Finds the paths of `a::{b, c::d}` and returns the text after them.
fn expand<'a>(before: &mut Module, text: &'a str, found: &mut Vec<Module>) -> &'a str {
    let text = text.trim_start();
    if let Some(mut group) = text.strip_prefix('{') {
        loop {
            group = expand(&mut before.clone(), group, found).trim_start();
            match group.strip_prefix(',') {
                Some(next) if !next.trim_start().starts_with('}') => group = next,
                Some(end) => return end.trim_start().strip_prefix('}').unwrap_or(end),
                None => return group.strip_prefix('}').unwrap_or(group),
            }
        }
    }
    let end = text
        .find(|c: char| !c.is_alphanumeric() && c != '_')
        .unwrap_or(text.len());
    before.push(text[..end].to_owned());
    match text[end..].strip_prefix("::") {
        Some(next) => expand(before, next, found),
        None => {
            found.push(before.clone());
            let renamed = text[end..]
                .trim_start()
                .strip_prefix("as ")
                .map(str::trim_start);
            renamed.map_or(&text[end..], |name| {
                name.trim_start_matches(|c: char| c.is_alphanumeric() || c == '_')
            })
        }
    }
}

/// The first circle, its first module again at its end.
fn circle(imports: &Imports) -> Option<Vec<Module>> {
    let mut done = BTreeSet::new();
    imports
        .keys()
        .find_map(|start| visit(start, imports, &mut Vec::new(), &mut done))
}

fn visit(
    module: &Module,
    imports: &Imports,
    way: &mut Vec<Module>,
    done: &mut BTreeSet<Module>,
) -> Option<Vec<Module>> {
    if let Some(first) = way.iter().position(|earlier| earlier == module) {
        return Some([&way[first..], std::slice::from_ref(module)].concat());
    }
    if !done.insert(module.clone()) {
        return None;
    }
    way.push(module.clone());
    let found = imports[module]
        .iter()
        .find_map(|next| visit(next, imports, way, done));
    way.pop();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn circle_of_texts(texts: &[(&str, &str)]) -> Option<Vec<Module>> {
        let texts = texts
            .iter()
            .map(|(file, text)| (module_of(Path::new(file)), (*text).to_owned()))
            .collect();
        circle(&imports(&texts))
    }

    #[test]
    fn a_circle_of_three_files_is_found() {
        let two = [
            ("a.rs", "use crate::b::B;"),
            ("b/mod.rs", "use super::{x::{Y as Z}, c as d, e};"),
        ];
        assert_eq!(
            circle_of_texts(&[&two[..], &[("c.rs", "struct C;")]].concat()),
            None
        );
        let third = [("c.rs", "fn c() { crate::a::f() }")];
        assert!(circle_of_texts(&[&two[..], &third].concat()).is_some());
    }

    #[test]
    fn a_parent_and_its_child_may_import_each_other() {
        assert_eq!(
            circle_of_texts(&[
                ("a.rs", "use self::b::B; use crate::a::b;"),
                ("a/b.rs", "use super::A;")
            ]),
            None
        );
        assert!(
            circle_of_texts(&[
                ("a/b.rs", "use super::c;"),
                ("a/c.rs", "use super::super::a::b::B;"),
                ("a.rs", "")
            ])
            .is_some()
        );
    }
}
