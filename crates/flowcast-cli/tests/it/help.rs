//! Help texts agree with the behaviour of commands.

use std::{collections::BTreeSet, fs, path::Path, process::Command};

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

/// Words that a command prints, without line breaks.
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
fn commands_execute_collectives_as_their_help_says() {
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
    // The network has no formula and no limits, and the trace no library.
    let plain = "predict examples/is.S.4.dim.gz --network gige-tcp --json";
    let with = |option: &str| printed(&format!("{plain} {option}"));
    let by_default = with("");
    assert_eq!(by_default, with("--collectives openmpi"));
    assert_ne!(by_default, with("--collectives formula"));
    // Dimemas' limits include the formula.
    let limits = |option: &str| {
        printed(&format!(
            "predict examples/is.S.4.dim.gz --network examples/halo.cfg --json {option}"
        ))
    };
    assert_eq!(limits(""), limits("--collectives formula"));
    assert_ne!(limits(""), limits("--collectives openmpi"));
}

/// Verbs with which commands begin.
const VERBS: &str = "Advise Answer Build Carry Check Choose Compare Compile Convert Draw End Find Fit Let List Measure Merge Plot \
                     Predict Print Rank Record Remove Rewrite Run Save Schedule Show Write";

/// Long options in a text.
fn options(text: &str) -> BTreeSet<String> {
    let is_end = |letter: char| !(letter.is_ascii_alphanumeric() || letter == '-');
    let words = text
        .split_whitespace()
        .map(|word| word.split(is_end).next().unwrap_or_default());
    words
        .filter(|word| word.len() > 2 && word.starts_with("--"))
        .map(str::to_owned)
        .collect()
}

#[test]
fn help_begins_with_a_verb_in_one_line_and_the_manual_page_has_the_same_options() {
    let folder = tempfile::tempdir().unwrap();
    printed(&format!("man {}", folder.path().display()));
    for page in fs::read_dir(folder.path().join("man1")).unwrap() {
        let page = page.unwrap().path();
        let name = page
            .file_stem()
            .unwrap()
            .to_str()
            .unwrap()
            .replace('-', " ");
        let command = name
            .replacen("flowcast", "", 1)
            .replace("cable check", "cable-check");
        let page = fs::read_to_string(&page)
            .unwrap()
            .replace("\\-", "-")
            .replace("\\fB", " ");
        let page = page
            .replace("\\*(Aq", "'")
            .replace("\\fR", " ")
            .replace("\\fI", " ");
        let help = Command::new(env!("CARGO_BIN_EXE_flowcast"))
            .args(command.split_whitespace())
            .arg("--help")
            .output()
            .unwrap();
        let help = String::from_utf8(help.stdout).unwrap();
        let first = help.lines().next().unwrap();
        let verb = first.split([' ', ',']).next().unwrap();
        assert!(
            VERBS.split(' ').any(|known| known == verb),
            "{command}: {first}"
        );
        // The list of commands indents the text by 15 columns.
        let is_listed = !command.is_empty() && !command.contains(' ');
        let most = if is_listed { 65 } else { 80 };
        assert!(
            first.len() <= most && page.contains(first),
            "{command}: {first}"
        );
        let missing: Vec<String> = options(&help)
            .difference(&options(&page))
            .cloned()
            .collect();
        assert!(missing.is_empty(), "{command}: the page lacks {missing:?}");
    }
}
