//! Relative links in `*.md` files: the file is there, and so is the heading after `#`.

use std::{fs, path::Path};

use anyhow::{Context, Result, ensure};

use crate::{files_under, has_ending};

/// Checks every page under `root`, hidden and build folders left out.
///
/// # Errors
/// A link that leads nowhere; the message names page and line.
pub(super) fn check(root: &Path) -> Result<()> {
    let mut pages = files_under(root, |name| !name.starts_with('.') && name != "target")?;
    pages.retain(|page| has_ending(page, "md"));
    ensure!(!pages.is_empty(), "found no page");
    let mut broken = Vec::new();
    for page in &pages {
        let text =
            fs::read_to_string(page).with_context(|| format!("cannot read {}", page.display()))?;
        for link in links(&text) {
            if let Err(why) = follow(page, &link.target) {
                broken.push(format!("{}:{}: {why}", page.display(), link.line));
            }
        }
    }
    ensure!(broken.is_empty(), "\n  {}", broken.join("\n  "));
    println!("{} pages, all links resolve", pages.len());
    Ok(())
}

struct Link {
    line: usize,
    target: String,
}

/// The targets of `[text](target)` and `[name]: target`, outside code and comments.
fn links(text: &str) -> Vec<Link> {
    let mut links = Vec::new();
    let (mut in_fence, mut in_comment) = (false, false);
    for (index, line) in text.lines().enumerate() {
        in_fence ^= is_fence(line);
        in_comment |= line.trim_start().starts_with("<!--");
        if !in_fence && !in_comment {
            links.extend(targets(line).into_iter().map(|target| Link {
                line: index + 1,
                target,
            }));
        }
        in_comment &= !line.contains("-->");
    }
    links
}

/// `true` for a line that begins or ends a block of code.
pub(super) fn is_fence(line: &str) -> bool {
    line.trim_start().starts_with("```")
}

fn targets(line: &str) -> Vec<String> {
    let prose: String = line.split('`').step_by(2).collect::<Vec<_>>().join("code");
    let inline = prose
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split(')').next());
    let named = prose
        .starts_with('[')
        .then(|| prose.split_once("]: "))
        .flatten()
        .map(|(_, target)| target);
    let bare = |target: &str| target.split_whitespace().next().unwrap_or("").to_owned();
    inline.chain(named).map(bare).collect()
}

fn follow(page: &Path, target: &str) -> Result<(), String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return Ok(());
    }
    let (file, heading) = target.split_once('#').unwrap_or((target, ""));
    let folder = page.parent().unwrap_or(Path::new("."));
    let path = if file.is_empty() {
        page.to_owned()
    } else {
        folder.join(file)
    };
    if !path.exists() {
        return Err(format!("`{target}` leads nowhere"));
    }
    if heading.is_empty() {
        return Ok(());
    }
    let text = fs::read_to_string(&path).map_err(|error| error.to_string())?;
    if anchors(&text).any(|anchor| anchor == heading) {
        Ok(())
    } else {
        Err(format!("`{target}`: no such heading"))
    }
}

/// Headings as the usual renderers name them: lower case, blanks as hyphens, without punctuation.
fn anchors(text: &str) -> impl Iterator<Item = String> + '_ {
    let name = |heading: &str| -> String {
        let kept = heading
            .trim()
            .chars()
            .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        kept.collect::<String>().to_lowercase().replace(' ', "-")
    };
    let mut in_fence = false;
    let headings = text.lines().filter(move |line| {
        in_fence ^= is_fence(line);
        !in_fence && line.starts_with('#')
    });
    headings.map(move |line| name(line.trim_start_matches('#')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_found_in_prose_and_not_in_code_or_comments() {
        let text = "[a](x.md) and ![b](y.png \"title\")\n`[c](no.md)`\n```\n[d](no.md)\n```\n<!-- [e](no.md)\n\
                    [f](no.md) -->\n[g]: z.md";
        let found: Vec<(usize, String)> = links(text)
            .into_iter()
            .map(|link| (link.line, link.target))
            .collect();
        assert_eq!(
            found,
            [(1, "x.md".into()), (1, "y.png".into()), (8, "z.md".into())]
        );
    }

    #[test]
    fn a_link_to_a_missing_page_or_heading_is_broken() {
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../README.md");
        assert!(follow(&page, "Cargo.toml").is_ok());
        assert!(follow(&page, "https://example.org/nowhere").is_ok());
        assert!(follow(&page, "no-such-page.md").is_err());
        assert!(follow(&page, "README.md#no-such-heading").is_err());
    }

    #[test]
    fn headings_become_anchors() {
        let text = "# Exit codes\n```\n# not one\n```\n## `nic`: the interface";
        assert_eq!(
            anchors(text).collect::<Vec<_>>(),
            ["exit-codes", "nic-the-interface"]
        );
    }
}
