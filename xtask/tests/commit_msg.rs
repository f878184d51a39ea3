//! The hook that looks at commit messages, `.githooks/commit-msg`.

use std::{fs, path::Path, process::Command};

/// What the hook says about a message; empty if it lets the commit pass.
fn refusal(message: &str) -> String {
    let hook = Path::new(env!("CARGO_MANIFEST_DIR")).join("../.githooks/commit-msg");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("COMMIT_EDITMSG");
    fs::write(&file, message).unwrap();
    let output = Command::new("sh").arg(hook).arg(file).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.success(), said.is_empty(), "{said}");
    said
}

#[test]
fn a_message_has_a_room_and_a_reason() {
    let passes = [
        "replay: count held rendezvous sends once\n\nThey were counted at both ends.\n",
        "trace, docs: read `.prv` of Extrae 5\n\nIts header has a tenth field.\n# a comment of git\n",
        "Merge branch 'rails'\n",
        "Revert \"replay: count held rendezvous sends once\"\n",
    ];
    for message in passes {
        assert_eq!(refusal(message), "", "{message}");
    }
    let refused = [
        ("Renew sizes\n\nThey fell.\n", "the subject `Renew sizes`"),
        (
            "replay: count once.\n\nThey were counted twice.\n",
            "the subject",
        ),
        (
            "Replay: count once\n\nThey were counted twice.\n",
            "the subject",
        ),
        (
            "replay: count once\nThey were counted twice.\n",
            "a second line",
        ),
        ("replay: count once\n\n# a comment of git\n", "no body"),
        ("", "the subject ``"),
    ];
    for (message, fault) in refused {
        assert!(refusal(message).contains(fault), "{message}");
    }
    let long = format!("replay: {}\n\nReason.\n", "x".repeat(93));
    assert!(refusal(&long).contains("a subject of 101 characters"));
}
