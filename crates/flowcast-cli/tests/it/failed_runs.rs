//! Runs that fail before their first result leave no files that a later run would have to remove.

use std::process::Command;

use crate::outcome::said;

#[test]
fn a_program_that_is_missing_leaves_no_journal() {
    let folder = tempfile::tempdir().unwrap();
    let run = |program: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_flowcast"));
        command
            .args([
                "validate",
                "app",
                "--network",
                "gige-tcp",
                "--report",
                "q.html",
                "--recorder",
            ])
            .arg(RECORDER);
        command
            .args(["--", program])
            .current_dir(folder.path())
            .output()
            .unwrap()
    };
    for program in ["no-such-program", "another-that-is-not-there"] {
        let output = run(program);
        assert!(!output.status.success(), "{}", said(&output));
        assert!(!said(&output).contains("earlier run"), "{}", said(&output));
        assert!(
            !folder.path().join("q.html.journal").exists(),
            "{}",
            said(&output)
        );
    }
}

/// Any file will do, because it is not loaded into a program that does not start.
const RECORDER: &str = "/bin/true";
