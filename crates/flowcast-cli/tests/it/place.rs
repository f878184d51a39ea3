//! `flowcast place` on files: a killed search is resumed and finds the same result.

use std::{
    fs,
    path::Path,
    process::{Command, Output, Stdio},
    thread::sleep,
    time::Duration,
};

const HEAT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/heat.rec");

/// Nodes of different sizes, so that a search is needed.
const PLACE: [&str; 10] = [
    "place",
    HEAT,
    "--network",
    "gige-tcp",
    "--nodes",
    "3",
    "--ranks-per-node",
    "1,2,2",
    "--seed",
    "3",
];

fn place(folder: &Path, more: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_flowcast"));
    command
        .current_dir(folder)
        .args(PLACE)
        .args(more)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn printed(command: &mut Command) -> Vec<u8> {
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    output.stdout
}

#[test]
fn a_killed_search_resumes_with_its_known_times() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let of = |output| ["--moves", "600", "-o", output, "--json"];
    let whole = printed(&mut place(folder, &of("whole")));
    let mut killed = place(folder, &of("map")).spawn().unwrap();
    let kept = folder.join("map.partial");
    while fs::metadata(&kept).map_or(0, |file| file.len()) < 3000 {
        assert!(killed.try_wait().unwrap().is_none(), "it ended too soon");
        sleep(Duration::from_millis(1));
    }
    killed.kill().unwrap();
    killed.wait().unwrap();
    assert!(kept.exists() && !folder.join("map").exists());
    let refused = place(folder, &of("map")).output().unwrap();
    let said = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        said.contains(
            "map.partial contains the mappings of an interrupted search: continue with --resume"
        ),
        "{said}"
    );
    let other = place(folder, &["--model", "independent", "-o", "map", "--resume"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&other.stderr);
    assert_eq!(other.status.code(), Some(2));
    assert!(
        said.contains("found the mappings of another search"),
        "{said}"
    );
    let resumed = place(folder, &of("map")).arg("--resume").output().unwrap();
    let said = String::from_utf8_lossy(&resumed.stderr);
    assert!(
        said.contains("mappings are known from the interrupted search"),
        "{said}"
    );
    assert_eq!(resumed.stdout, whole);
    assert_eq!(
        fs::read(folder.join("map")).unwrap(),
        fs::read(folder.join("whole")).unwrap()
    );
    assert!(!kept.exists());
}

#[test]
fn a_search_with_a_time_limit_reports_the_moves_that_reproduce_it() {
    let folder = tempfile::tempdir().unwrap();
    let limited = printed(&mut place(
        folder.path(),
        &["--time-limit", "300ms", "--json"],
    ));
    let told: serde_json::Value = serde_json::from_slice(&limited).unwrap();
    let moves = told["moves"].to_string();
    let again = printed(&mut place(folder.path(), &["--moves", &moves, "--json"]));
    assert_eq!(limited, again);
}

/// Runs a command with 1 GB of address space.
fn within_a_gigabyte(folder: &Path, arguments: &str) -> Output {
    let command = format!(
        "ulimit -v 1000000 && exec {} {arguments}",
        env!("CARGO_BIN_EXE_flowcast")
    );
    let mut shell = Command::new("sh");
    shell
        .current_dir(folder)
        .args(["-c", &command])
        .output()
        .unwrap()
}

#[test]
fn memory_follows_the_ranks_that_communicate() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name, text| fs::write(folder.path().join(name), text).unwrap();
    write("near.csv", "from,to,bytes\n0,1,5\n");
    write("far.csv", "from,to,bytes\n0,20000,5\n");
    write("far.steps", "0 -> 4294967295 1MB\n");
    write("far.map", "0\n2\n");
    write("farther.map", "0\n16777216\n");
    for answered in [
        "place near.csv -n gige-tcp --nodes 16777216 --ranks-per-node 1",
        "place near.csv -n gige-tcp --nodes 4 --ranks-per-node 1000000x1 --moves 1",
        "place far.csv -n gige-tcp --nodes 2 --moves 1",
    ] {
        let output = within_a_gigabyte(folder.path(), answered);
        assert!(output.status.success(), "{answered}: {output:?}");
    }
    for (refused, reason) in [
        (
            "place far.steps -n gige-tcp --nodes 2 --ranks-per-node 1",
            "at most 2, the number of slots",
        ),
        ("place far.steps -n gige-tcp --nodes 2", "at most 16777216"),
        (
            "place near.csv -n gige-tcp --nodes 16777217",
            "1..=16777216",
        ),
        (
            "mapping fill --ranks 1000000000 --nodes 1000000000",
            "1..=16777216",
        ),
        ("mapping fill --ranks 1 --nodes 0", "1..=16777216"),
        (
            "mapping fill --ranks 3 --hosts a:1,b:1",
            "expected at most 2, the number of slots",
        ),
        (
            "mapping round-robin --ranks 5 --nodes 2 --ranks-per-node 2",
            "expected at most 4, the number of slots",
        ),
        (
            "mapping fill --ranks 2 --nodes 3 --hosts a,b",
            "found 3 nodes in --nodes and 2 in --hosts",
        ),
        ("mapping far.map --hosts a,b", "a node below 2"),
        ("mapping farther.map", "a node number"),
    ] {
        let output = within_a_gigabyte(folder.path(), refused);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.code() == Some(2) && said.contains(reason),
            "{refused}: {said}"
        );
    }
}
