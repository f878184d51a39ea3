//! Sessions with the `flowcast` command: its input, output and exit code.
//!
//! `tests/cmd` contains the sessions. The `console` blocks of README.md and of the pages under `docs` are run too, so that
//! every page shows the command's real output. The `sh` blocks of tutorials and how-tos are executed (`pages::runs`). The
//! commands of a page run in a new folder whose `examples` is a link to the repository's, as for a reader. After an
//! intended change: `TRYCMD=overwrite cargo test -p flowcast-cli --test cli`.

mod pages;

use pages::runs::{self, Runs};

#[test]
fn sessions_go_as_written() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cmd");
    flowcast()
        .case(format!("{folder}/*.toml"))
        .case(format!("{folder}/*.md"))
        .run();
}

#[test]
fn pages_go_as_written() {
    for page in pages::all() {
        // Commands run in the folder of the test. The sessions above have their own folders if they read files.
        std::env::set_current_dir(pages::new_folder("pages", &page))
            .expect("the folder was just made");
        flowcast().env("FLOWCAST_COLUMNS", "100").case(&page).run();
    }
}

#[test]
#[ignore = "run by cargo xtask test pages"]
fn each_command_of_a_tutorial_or_a_how_to_runs() {
    let runs: Vec<Runs> = pages::guides().iter().map(|page| runs::run(page)).collect();
    for skipped in runs.iter().flat_map(|runs| &runs.skipped) {
        println!("skipped: {skipped}");
    }
    let passed: usize = runs.iter().map(|runs| runs.passed).sum();
    let failed: Vec<&str> = runs
        .iter()
        .flat_map(|runs| runs.failed.iter().map(String::as_str))
        .collect();
    println!("{passed} blocks passed");
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn each_block_of_a_tutorial_or_a_how_to_says_how_it_is_run() {
    let unknown: Vec<String> = pages::guides()
        .iter()
        .flat_map(|page| runs::unknown(page))
        .collect();
    assert!(unknown.is_empty(), "{}", unknown.join("\n"));
}

#[test]
fn the_first_page_and_the_table_of_contents_list_every_page_in_one_order() {
    let first = pages::listed("docs/README.md");
    assert_eq!(first, pages::listed("docs/SUMMARY.md"));
    let lists = ["docs/README.md", "docs/SUMMARY.md"];
    let mut pages: Vec<String> = pages::all().iter().map(|page| pages::name(page)).collect();
    // The pages of options are listed by `reference/commands.md` and checked where they are printed.
    let is_listed = |page: &String| {
        page.starts_with("docs/")
            && !page.starts_with("docs/reference/commands/")
            && !lists.contains(&page.as_str())
    };
    pages.retain(is_listed);
    let mut sorted = first;
    sorted.sort();
    pages.sort();
    assert_eq!(sorted, pages);
}

#[test]
fn each_file_that_a_page_reads_is_an_example_or_made_before() {
    let missing: Vec<String> = pages::all()
        .iter()
        .flat_map(|page| pages::missing_inputs(page))
        .collect();
    assert!(
        missing.is_empty(),
        "neither under examples nor made earlier on the page:\n{}",
        missing.join("\n")
    );
}

fn flowcast() -> trycmd::TestCases {
    let cases = trycmd::TestCases::new();
    // The pages do not show networks that the user keeps.
    cases.env("XDG_DATA_HOME", "/nonexistent");
    cases.register_bin("flowcast", trycmd::cargo::cargo_bin!("flowcast"));
    cases
}
