//! Pages in headless Chromium: the demo's report, those of two generated traces, of few and of many intervals, and pages of
//! charts.

use std::{
    ffi::OsStr,
    fs::{self, File},
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anyhow::{Result, bail, ensure};

use super::{
    Outcome, cargo,
    programs::{find, is_root, run_within},
};

const FOLDER: &str = "target/report-page";
const DEMO: &str = "flowcast-demo.html";

/// What uses the reports: it speaks the browser's DevTools protocol.
const CHECK: &str = "xtask/src/suite/browser/check.mjs";
/// What uses a report of several networks.
const NETWORKS: &str = "xtask/src/suite/browser/networks.mjs";
/// What uses pages of charts.
const CHARTS: &str = "xtask/src/suite/browser/charts.mjs";

/// Traces by name and arguments of `flowcast generate`. Of the second the page has shares instead of intervals.
const TRACES: [(&str, &[&str]); 2] = [
    (
        "few",
        &[
            "halo",
            "--ranks",
            "16",
            "--iterations",
            "40",
            "--size",
            "8KiB",
        ],
    ),
    (
        "many",
        &[
            "halo",
            "--ranks",
            "300",
            "--iterations",
            "60",
            "--size",
            "8KiB",
        ],
    ),
];

const PATTERN: &str = "examples/figure5.pattern";
const SAMPLES: &str = "examples/gige-samples.csv";
const MACHINE: &str = "crates/flowcast-cli/tests/cmd/choose.in/machine.toml";

/// Pages of charts by name, and what writes them.
const CHART_PAGES: [(&str, &[&str]); 5] = [
    (
        "pattern.html",
        &[
            "predict",
            "chain.pattern",
            "--network",
            "gige-mpich",
            "--report",
        ],
    ),
    (
        "sweep.html",
        &[
            "sweep",
            "few.dim",
            "--network",
            "gige-tcp",
            "--grid",
            "nic.latency=1us..100us:8",
            "--report",
        ],
    ),
    (
        "models.html",
        &["fit", "--model", "all", "samples.csv", "--report"],
    ),
    (
        "sensitivity.html",
        &[
            "sensitivity",
            "few.dim",
            "--network",
            "gige-tcp",
            "--model",
            "independent",
            "--parameter",
            "nic.latency",
            "--range",
            "0us..1ms",
            "--report",
        ],
    ),
    (
        "algorithms.html",
        &[
            "collectives",
            "choose",
            "--network",
            "machine.toml",
            "--ranks",
            "4,6,16",
            "--sizes",
            "1KiB,128KiB,8MiB",
            "--report",
        ],
    ),
];

/// Writes the pages and uses them.
pub(super) fn check() -> Outcome {
    let (Some(browser), Some(node)) = (find("chromium"), find("node")) else {
        return Outcome::Skipped("chromium or node is not installed".into());
    };
    match cargo::run(&["build", "--release", "--package", "flowcast-cli"]) {
        Outcome::Passed => {}
        other => return other,
    }
    check_pages(&crate::built("flowcast"), &browser, &node).into()
}

fn check_pages(flowcast: &Path, browser: &Path, node: &Path) -> Result<()> {
    fs::create_dir_all(FOLDER)?;
    let (flowcast, folder) = (flowcast.canonicalize()?, Path::new(FOLDER).canonicalize()?);
    write_in(&folder, &flowcast, &["demo"], DEMO)?;
    ensure_self_contained(&fs::read_to_string(folder.join(DEMO))?)?;
    for (name, workload) in TRACES {
        let [trace, page, replay] =
            ["dim", "html", "json"].map(|ending| format!("{name}.{ending}"));
        write_in(
            &folder,
            &flowcast,
            &[&["generate"], workload, &["-o", &trace]].concat(),
            &trace,
        )?;
        let mapping = [
            "--network",
            "gige-tcp",
            "--mapping",
            "4-per-node",
            "--set",
            "machine.nodes.0.cpus=4",
        ];
        let predict = [
            &["predict", &trace, "--report", &page, "--json"],
            &mapping[..],
        ]
        .concat();
        write_in(&folder, &flowcast, &predict, &replay)?;
        let pictures = folder.join(name);
        fs::create_dir_all(&pictures)?;
        use_pages(
            node,
            CHECK,
            &[
                browser.to_owned(),
                pictures,
                folder.join(page),
                folder.join(replay),
            ],
        )?;
    }
    let networks = "networks.html";
    let several = [
        "predict",
        "few.dim",
        "--network",
        "infiniband*",
        "--report",
        networks,
    ];
    write_in(&folder, &flowcast, &several, networks)?;
    let page = folder.join(networks);
    use_pages(node, NETWORKS, &[browser.to_owned(), folder.clone(), page])?;
    fs::copy(PATTERN, folder.join("chain.pattern"))?;
    fs::copy(MACHINE, folder.join("machine.toml"))?;
    fs::copy(SAMPLES, folder.join("samples.csv"))?;
    for (page, command) in CHART_PAGES {
        write_in(&folder, &flowcast, &[command, &[page]].concat(), page)?;
    }
    let pages = CHART_PAGES.map(|(page, _)| folder.join(page));
    use_pages(
        node,
        CHARTS,
        &[&[browser.to_owned(), folder.clone()], &pages[..]].concat(),
    )?;
    Ok(())
}

/// Runs the command in a folder; what it prints goes to `output` unless it writes that itself.
fn write_in(folder: &Path, flowcast: &Path, arguments: &[&str], output: &str) -> Result<()> {
    let output = folder.join(output);
    if output.exists() {
        fs::remove_file(&output)?;
    }
    let printed = folder.join("printed");
    let mut command = Command::new(flowcast);
    command
        .args(arguments)
        .current_dir(folder)
        .stdout(File::create(&printed)?);
    let status = run_within(Duration::from_secs(120), &mut command)?;
    ensure!(
        status.success(),
        "flowcast {}: {status}",
        arguments.join(" ")
    );
    if !output.exists() {
        fs::rename(printed, output)?;
    }
    Ok(())
}

fn use_pages(node: &Path, script: &str, files: &[PathBuf]) -> Result<()> {
    let mut command = Command::new(node);
    let sandbox = is_root().then_some("--no-sandbox");
    command
        .arg(script)
        .args(files)
        .args(sandbox.map(OsStr::new));
    let status = run_within(Duration::from_secs(120), &mut command)?;
    ensure!(
        status.success(),
        "{} failed the checks above",
        files[2].display()
    );
    Ok(())
}

/// Checks that a page requests nothing from outside itself.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_with_external_requests_fails() {
        assert!(
            ensure_self_contained(r#"<script src="https://example.org/x.js"></script>"#).is_err()
        );
        assert!(ensure_self_contained(r#"<svg xmlns="http://www.w3.org/2000/svg"></svg>"#).is_ok());
    }
}
