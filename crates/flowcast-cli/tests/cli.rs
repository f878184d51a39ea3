//! Sessions with the `flowcast` command: what is typed, what is printed, how it exits.
//!
//! `tests/cmd` holds the sessions; the `console` blocks of the pages under `docs` are run as well, so that no page shows
//! what the command does not print. After an intended change: `TRYCMD=overwrite cargo test -p flowcast-cli --test cli`.

#[test]
fn sessions_go_as_written() {
    trycmd::TestCases::new()
        .case("tests/cmd/*.toml")
        .case("tests/cmd/*.md")
        .case("../../docs/*.md")
        .register_bin("flowcast", trycmd::cargo::cargo_bin!("flowcast"))
        .run();
}
