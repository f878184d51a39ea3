//! The command's outputs as recorded in `cmd/`.

#[test]
fn outputs_are_as_recorded() {
    trycmd::TestCases::new().case("tests/cmd/*.trycmd").case("tests/cmd/*.toml");
}
