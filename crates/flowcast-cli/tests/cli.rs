//! Sessions with the `flowcast` command: what is typed, what is printed, how it exits.
//!
//! `tests/cmd` holds the sessions; the `console` blocks of README.md and of the pages under `docs` are run as well, so that
//! no page shows what the command does not print. A page's commands run in a new folder in which `examples` is that of the
//! repository, as a reader sees it. After an intended change: `TRYCMD=overwrite cargo test -p flowcast-cli --test cli`.

mod pages;

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
        // Commands run in the folder of the test; the sessions above have folders of their own where they read files.
        std::env::set_current_dir(pages::new_folder(&page)).expect("the folder was just made");
        flowcast().case(&page).run();
    }
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
    // Networks that the user keeps are not among what the pages show.
    cases.env("XDG_DATA_HOME", "/nonexistent");
    cases.register_bin("flowcast", trycmd::cargo::cargo_bin!("flowcast"));
    cases
}
