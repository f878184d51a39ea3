//! Help texts state what commands do.

use std::{path::Path, process::Command};

use flowcast::{Collectives, Conversion};

use crate::outcome::said;

/// Commands that replay a trace with its collectives.
const REPLAYING: [&str; 8] = [
    "predict",
    "sweep",
    "compare",
    "sensitivity",
    "explain path",
    "explain gradient",
    "explain slack",
    "rails advise",
];

/// The words that a command prints, without line breaks.
fn printed(command: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let output = Command::new(env!("CARGO_BIN_EXE_flowcast"))
        .args(command.split_whitespace())
        .current_dir(root)
        .output()
        .unwrap();
    assert!(output.status.success(), "{command}: {}", said(&output));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn collectives_are_carried_out_as_the_help_of_each_command_says() {
    for command in REPLAYING {
        let help = printed(&format!("{command} --help"));
        assert!(
            help.contains(&Collectives::automatic_help()),
            "{command}: {help}"
        );
    }
    let convert = printed("convert --help");
    assert!(
        convert.contains(Conversion::WITHOUT_COLLECTIVES),
        "{convert}"
    );
    // The network has no formula of its own and no limits, the trace no library.
    let plain = "predict examples/is.S.4.dim.gz --network gige-tcp --json";
    let with = |option: &str| printed(&format!("{plain} {option}"));
    let by_default = with("");
    assert_eq!(by_default, with("--collectives openmpi"));
    assert_ne!(by_default, with("--collectives formula"));
    // Dimemas' limits bring the formula.
    let limits = |option: &str| {
        printed(&format!(
            "predict examples/is.S.4.dim.gz --network examples/halo.cfg --json {option}"
        ))
    };
    assert_eq!(limits(""), limits("--collectives formula"));
    assert_ne!(limits(""), limits("--collectives openmpi"));
}
