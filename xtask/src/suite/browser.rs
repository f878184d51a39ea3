//! The demo's report page in headless Chromium.

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use super::programs::{find, is_root, run_within};
use super::{Outcome, cargo};

const FOLDER: &str = "target/report-page";
const PAGE: &str = "flowcast-demo.html";

/// Runs the demo and opens its page.
pub(super) fn check() -> Outcome {
    let Some(browser) = find("chromium") else {
        return Outcome::Skipped("chromium is not installed".into());
    };
    match cargo::run(&["build", "--release", "--package", "flowcast-cli"]) {
        Outcome::Passed => {}
        other => return other,
    }
    let flowcast = crate::built("flowcast");
    if !Command::new(&flowcast).args(["demo", "--help"]).output().is_ok_and(|output| output.status.success()) {
        return Outcome::Skipped("flowcast has no command `demo`".into());
    }
    write_page(&flowcast).and_then(|()| open(&browser, &Path::new(FOLDER).join(PAGE))).into()
}

fn write_page(flowcast: &Path) -> Result<()> {
    fs::create_dir_all(FOLDER)?;
    let page = Path::new(FOLDER).join(PAGE);
    if page.exists() {
        fs::remove_file(&page)?;
    }
    let mut demo = Command::new(flowcast.canonicalize()?);
    let status = run_within(Duration::from_secs(120), demo.arg("demo").current_dir(FOLDER))?;
    ensure!(status.success(), "flowcast demo: {status}");
    ensure!(page.is_file(), "flowcast demo wrote no {PAGE}");
    Ok(())
}

/// No name is resolved: the page has to do without the outside.
fn open(browser: &Path, page: &Path) -> Result<()> {
    let page = page.canonicalize()?;
    ensure_self_contained(&fs::read_to_string(&page)?)?;
    let folder = page.parent().context("a page has a folder")?;
    let (log, dom) = (folder.join("console.log"), folder.join("dom.html"));
    let mut command = Command::new(browser);
    command
        .args(["--headless", "--disable-gpu", "--enable-logging=stderr", "--virtual-time-budget=5000", "--dump-dom"])
        .arg("--host-resolver-rules=MAP * ~NOTFOUND")
        .arg(format!("--user-data-dir={}", folder.join("profile").display()))
        .args(is_root().then_some("--no-sandbox"))
        .arg(format!("file://{}", page.display()))
        .stdout(File::create(&dom)?)
        .stderr(File::create(&log)?);
    let status = run_within(Duration::from_secs(120), &mut command)?;
    ensure!(status.success(), "chromium: {status}, see {}", log.display());
    judge(&String::from_utf8_lossy(&fs::read(&log)?), &String::from_utf8_lossy(&fs::read(&dom)?))
}

/// The ways in which a page asks for something outside itself.
fn ensure_self_contained(html: &str) -> Result<()> {
    const ASKING: [&str; 11] = [
        "src=\"http",
        "src='http",
        "src=http",
        "src=\"//",
        "url(http",
        "url(\"http",
        "url('http",
        "@import",
        "fetch(",
        "XMLHttpRequest",
        "<link rel=\"stylesheet\"",
    ];
    match ASKING.iter().find(|words| html.contains(**words)) {
        Some(words) => bail!("the page is not self-contained: found `{words}`"),
        None => Ok(()),
    }
}

/// A sound page draws something and says nothing on the console.
fn judge(log: &str, dom: &str) -> Result<()> {
    let words: Vec<&str> = log.lines().filter(|line| line.contains(":CONSOLE")).collect();
    ensure!(words.is_empty(), "the page says on the console:\n{}", words.join("\n"));
    ensure!(dom.contains("<svg") || dom.contains("<canvas"), "the page draws nothing");
    ensure!(dom.contains("<table"), "the page has no table");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_console_error_or_an_empty_page_fails() {
        let page = "<html><svg></svg><table></table></html>";
        let error = r#"[1:2:3/4:INFO:CONSOLE:1] "Uncaught ReferenceError: x is not defined", source: (1)"#;
        assert!(judge("[1:2:3/4:WARNING:gl.cc(1)] dbus", page).is_ok());
        assert!(judge(error, page).is_err());
        assert!(judge("", "<html></html>").is_err());
    }

    #[test]
    fn a_page_that_asks_for_something_outside_fails() {
        assert!(ensure_self_contained(r#"<script src="https://example.org/x.js"></script>"#).is_err());
        assert!(ensure_self_contained(r#"<svg xmlns="http://www.w3.org/2000/svg"></svg>"#).is_ok());
    }
}
