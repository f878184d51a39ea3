//! `flowcast sweep` and `flowcast merge` on files: merged shards, killed runs, and rows that agree with `predict`.

use std::{
    fs,
    os::unix::process::ExitStatusExt,
    path::Path,
    process::{Command, Output, Stdio},
};

use crate::{in_parts, interruptible, outcome::there_is_mpi};

const LU: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/tests/cmd/traces.in/lu.S.4.dim.gz"
);
const GRID: [&str; 6] = [
    "--grid",
    "latency=1us..100us:5",
    "--grid",
    "bandwidth=10MB/s..1GB/s:4:log",
    "--grid",
    "overhead=0us,3us",
];

fn flowcast(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_flowcast"))
        .current_dir(folder)
        .args(arguments)
        .output()
        .unwrap()
}

fn sweep(folder: &Path, more: &[&str]) -> Output {
    let mut arguments = vec![
        "sweep",
        LU,
        "--network",
        "gige-tcp",
        "--model",
        "independent",
    ];
    arguments.extend(GRID);
    arguments.extend(more);
    flowcast(folder, &arguments)
}

fn swept(folder: &Path, more: &[&str]) -> Vec<u8> {
    let output = sweep(folder, more);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    output.stdout
}

fn said(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(2));
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Results in the format of an unfinished run: the header, then the rows.
fn kept(result: &[u8]) -> Vec<u8> {
    let text = std::str::from_utf8(result).unwrap();
    let mut lines = text.split_inclusive('\n');
    let header: String = lines.by_ref().take(2).collect();
    in_parts(std::iter::once(header.as_str()).chain(lines)).into_bytes()
}

#[test]
fn merged_shards_equal_the_whole_sweep_for_any_number_of_shards_and_threads() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for form in [&["--threads", "1"][..], &["--threads", "1", "--json"]] {
        let whole = swept(folder, form);
        for threads in ["2", "3", "5"] {
            assert_eq!(
                whole,
                swept(folder, &[&form[2..], &["--threads", threads]].concat())
            );
        }
        for of in [1, 2, 3, 7, 41] {
            let mut files = Vec::new();
            for number in 1..=of {
                let (shard, file) = (format!("{number}/{of}"), format!("part.{number}"));
                let threads = [1, 2, 5][number % 3].to_string();
                let more = ["--threads", &threads, "--shard", &shard, "-o", &file];
                swept(folder, &[&more[..], &form[2..]].concat());
                files.push(file);
            }
            // The order of the files does not matter.
            files.reverse();
            // `sweep --merge` is the former spelling.
            let merge: &[&str] = if of == 3 {
                &["sweep", "--merge"]
            } else {
                &["merge"]
            };
            let mut arguments = merge.to_vec();
            arguments.extend(files.iter().map(String::as_str));
            arguments.extend(["-o", "all"]);
            assert!(flowcast(folder, &arguments).status.success());
            assert_eq!(fs::read(folder.join("all")).unwrap(), whole, "{of} parts");
        }
    }
}

#[test]
fn an_interrupted_run_reports_its_file_and_how_to_resume() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = interruptible();
    command.current_dir(folder.path()).args([
        "sweep",
        LU,
        "--network",
        "gige-tcp",
        "--model",
        "independent",
        "--threads",
        "1",
        "-o",
        "lu.csv",
    ]);
    command
        .args([
            "--grid",
            "latency=1us..100us:100",
            "--grid",
            "overhead=1us..9us:100",
        ])
        .stderr(Stdio::piped());
    let running = command.spawn().unwrap();
    let partial = folder.path().join("lu.csv.partial");
    while fs::read_to_string(&partial).map_or(0, |text| text.lines().count()) < 5 {
        std::thread::yield_now();
    }
    assert!(
        Command::new("kill")
            .args(["-INT", &running.id().to_string()])
            .status()
            .unwrap()
            .success()
    );
    let output = running.wait_with_output().unwrap();
    let printed = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.signal(), Some(2), "{printed}");
    assert!(
        printed.contains("interrupted; lu.csv.partial contains the finished part")
            && printed.contains("--resume"),
        "{printed}"
    );
    assert!(partial.exists());
}

#[test]
fn each_finished_set_is_stored_and_not_replayed_again_after_any_signal() {
    let folder = tempfile::tempdir().unwrap();
    let made = flowcast(
        folder.path(),
        &[
            "generate",
            "alltoall",
            "--ranks",
            "24",
            "--iterations",
            "20",
            "-o",
            "a.dim",
        ],
    );
    assert!(made.status.success());
    let arguments = [
        "sweep",
        "a.dim",
        "-n",
        "gige-tcp",
        "--grid",
        "latency=1us..100us:12",
        "--threads",
        "2",
    ];
    let whole = flowcast(folder.path(), &arguments).stdout;
    let partial = folder.path().join("a.csv.partial");
    let kept = || {
        fs::read_to_string(&partial)
            .map_or(0, |text| text.matches("# part ").count().saturating_sub(1))
    };
    let mut before = 0;
    for signal in ["INT", "TERM", "QUIT", "KILL"] {
        let mut command = interruptible();
        command
            .current_dir(folder.path())
            .args(arguments)
            .args(["-o", "a.csv", "--resume"])
            .stderr(Stdio::piped());
        let running = command.spawn().unwrap();
        while kept() <= before && !folder.path().join("a.csv").exists() {
            std::thread::yield_now();
        }
        assert!(
            Command::new("kill")
                .args(["-s", signal, &running.id().to_string()])
                .status()
                .unwrap()
                .success()
        );
        let output = running.wait_with_output().unwrap();
        let printed = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.signal().is_some(), "{signal}: {printed}");
        assert!(
            printed.contains(&format!(
                "sets: {before} resumed, {} to replay",
                12 - before
            )),
            "{signal}: {printed}"
        );
        assert_eq!(
            printed.contains("a.csv.partial contains the finished part"),
            signal != "KILL",
            "{signal}: {printed}"
        );
        before = kept();
        assert!((1..12).contains(&before), "{signal}: {before}");
    }
    let output = flowcast(
        folder.path(),
        &[&arguments[..], &["-o", "a.csv", "--resume"]].concat(),
    );
    assert!(String::from_utf8_lossy(&output.stderr).contains(&format!("sets: {before} resumed, ")));
    assert_eq!(fs::read(folder.path().join("a.csv")).unwrap(), whole);
}

#[test]
fn a_run_killed_in_the_middle_of_a_line_resumes() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let whole = swept(folder, &[]);
    let partial = folder.join("lu.csv.partial");
    let kept = kept(&whole);
    for killed_at in [
        0,
        10,
        kept.len() / 3,
        kept.len() / 2 + 1,
        kept.len() - 1,
        kept.len(),
    ] {
        fs::write(&partial, &kept[..killed_at]).unwrap();
        assert!(said(&sweep(folder, &["-o", "lu.csv"])).contains("--resume"));
        swept(folder, &["-o", "lu.csv", "--resume"]);
        assert_eq!(fs::read(folder.join("lu.csv")).unwrap(), whole);
        assert!(!partial.exists());
        fs::remove_file(folder.join("lu.csv")).unwrap();
    }
    swept(folder, &["-o", "lu.csv"]);
    // No set is replayed twice.
    let output = sweep(folder, &["-o", "lu.csv", "--resume"]);
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("nothing to do, all 40 sets are complete")
    );
}

#[test]
fn stored_sets_are_not_replayed_again() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let whole = String::from_utf8(swept(folder, &[])).unwrap();
    let half: String = whole.split_inclusive('\n').take(2 + 25).collect();
    fs::write(folder.join("lu.csv.partial"), kept(half.as_bytes())).unwrap();
    let output = sweep(folder, &["-o", "lu.csv", "--resume"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        said.contains("sets: 15 replayed, 25 resumed, 40 in the whole sweep"),
        "{said}"
    );
}

#[test]
fn a_set_with_a_changed_digit_is_reported_and_replayed_again() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let whole = swept(folder, &[]);
    let mut changed = kept(&whole);
    let at = changed.len()
        - changed
            .iter()
            .rev()
            .skip(1)
            .position(|byte| *byte == b'\n')
            .unwrap()
        - 12;
    changed[at] ^= 1;
    fs::write(folder.join("lu.csv.partial"), &changed).unwrap();
    let output = sweep(folder, &["-o", "lu.csv", "--resume"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        said.contains("note: lu.csv.partial: ignored the last ")
            && said.contains("sets: 1 replayed, 39 resumed"),
        "{said}"
    );
    assert_eq!(fs::read(folder.join("lu.csv")).unwrap(), whole);
}

#[test]
fn every_row_equals_the_prediction_on_the_same_network() {
    let folder = tempfile::tempdir().unwrap();
    let text = String::from_utf8(swept(folder.path(), &[])).unwrap();
    let rows: Vec<Vec<&str>> = text
        .lines()
        .skip(2)
        .map(|line| line.split(',').collect())
        .collect();
    assert_eq!(rows.len(), 40);
    for row in rows.iter().step_by(7) {
        let [_, latency, bandwidth, overhead, makespan, share] = row[..] else {
            panic!("{row:?}")
        };
        let set = [
            format!("nic.latency={latency}s"),
            format!("nic.bandwidth={bandwidth}B/s"),
        ];
        let overhead = format!("nic.overhead={overhead}s");
        let more = [
            "--network",
            "gige-tcp",
            "--model",
            "independent",
            "--set",
            &set[0],
            "--set",
            &set[1],
            "--set",
            &overhead,
            "--json",
        ];
        let output = flowcast(folder.path(), &[&["predict", LU][..], &more].concat());
        let predicted: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let exact = text
            .split_once("\"makespan_s\":")
            .unwrap()
            .1
            .split(',')
            .next()
            .unwrap();
        assert_eq!(
            exact.parse::<f64>().unwrap(),
            makespan.parse::<f64>().unwrap()
        );
        let sum = |field: &str| {
            predicted["ranks"]
                .as_array()
                .unwrap()
                .iter()
                .map(|rank| rank[field].as_f64().unwrap())
                .sum::<f64>()
        };
        let expected = 1.0 - sum("compute_s") / sum("end_s");
        assert!((share.parse::<f64>().unwrap() - expected).abs() < 1e-12);
    }
}

#[test]
fn missing_overlapping_truncated_and_foreign_shards_are_not_merged() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    swept(folder, &["--shard", "1/2", "-o", "a.csv"]);
    swept(folder, &["--shard", "2/2", "-o", "b.csv"]);
    swept(
        folder,
        &["--set", "nic.gap=1us", "--shard", "2/2", "-o", "other.csv"],
    );
    let merge = |parts: &[&str]| {
        said(&flowcast(
            folder,
            &[&["merge"][..], parts, &["-o", "all.csv"]].concat(),
        ))
    };
    assert!(
        merge(&["b.csv"]).contains(
            "found 20 of 40 results, expected all; the first missing one has the number 0"
        )
    );
    assert!(
        merge(&["a.csv", "other.csv"])
            .contains("other.csv: found a shard of another run than a.csv")
    );
    let text = fs::read_to_string(folder.join("b.csv")).unwrap();
    fs::write(folder.join("cut.csv"), &text[..text.len() - 4]).unwrap();
    assert!(
        merge(&["a.csv", "cut.csv"])
            .contains("cut.csv: found a file that ends in the middle of a line")
    );
    let first_row = text.lines().nth(2).unwrap();
    fs::write(
        folder.join("differs.csv"),
        text.replace(first_row, &format!("{first_row}1")),
    )
    .unwrap();
    for again in ["b.csv", "differs.csv"] {
        let expected = format!("{again}: found result 20 twice, expected each result once");
        assert!(merge(&["a.csv", "b.csv", again]).contains(&expected));
    }
    fs::write(folder.join("none.csv"), "a,b\n1,2\n").unwrap();
    assert!(merge(&["none.csv"]).contains("none.csv:1: found no description of a sweep"));
    assert!(!folder.join("all.csv").exists());
}

/// Variables by which launchers number processes.
const LAUNCHERS: [&str; 12] = [
    "OMPI_COMM_WORLD_RANK",
    "OMPI_COMM_WORLD_SIZE",
    "PMI_RANK",
    "PMI_SIZE",
    "SLURM_JOB_ID",
    "SLURM_STEP_ID",
    "SLURM_PROCID",
    "SLURM_NTASKS",
    "SLURM_ARRAY_TASK_ID",
    "SLURM_ARRAY_TASK_MIN",
    "SLURM_ARRAY_TASK_STEP",
    "SLURM_ARRAY_TASK_COUNT",
];

/// Sweeps a shard as a process of a launcher with these variables.
fn launched(folder: &Path, variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_flowcast"));
    for name in LAUNCHERS {
        command.env_remove(name);
    }
    command
        .envs(variables.iter().copied())
        .current_dir(folder)
        .args(["sweep", LU, "-n", "gige-tcp", "--model", "independent"])
        .args(GRID)
        .args(["--shard", "auto", "-o", "lu.csv", "--resume"])
        .output()
        .unwrap()
}

#[test]
fn a_launcher_numbers_the_shards_and_their_files() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for rank in ["0", "1", "2"] {
        let variables = [("SLURM_PROCID", rank), ("SLURM_NTASKS", "3")];
        let output = launched(folder, &variables);
        let printed = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{printed}");
    }
    assert!(folder.join("lu.2-of-3.csv").exists() && !folder.join("lu.csv").exists());
    // The name of the option stands for the files of all shards.
    let merged = flowcast(folder, &["merge", "lu.csv", "-o", "all.csv"]);
    assert!(merged.status.success());
    assert_eq!(
        fs::read(folder.join("all.csv")).unwrap(),
        swept(folder, &[])
    );
    fs::remove_file(folder.join("lu.3-of-3.csv")).unwrap();
    let missing = said(&flowcast(folder, &["merge", "lu.csv", "-o", "all.csv"]));
    assert!(
        missing.contains("the first missing one has the number 26"),
        "{missing}"
    );
}

#[test]
fn automatic_shards_without_variables_or_with_contradictory_ones_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let none = said(&launched(folder.path(), &[]));
    assert!(
        none.contains("found none of OMPI_COMM_WORLD_RANK") && none.contains("SLURM_NTASKS"),
        "{none}"
    );
    let two = [
        ("OMPI_COMM_WORLD_RANK", "1"),
        ("OMPI_COMM_WORLD_SIZE", "4"),
        ("PMI_RANK", "0"),
        ("PMI_SIZE", "4"),
    ];
    let contradictory = said(&launched(folder.path(), &two));
    assert!(
        contradictory.contains(
            "found process 1 of 4 by OMPI_COMM_WORLD_RANK and process 0 of 4 by PMI_RANK"
        ),
        "{contradictory}"
    );
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn shards_of_a_launcher_survive_a_kill_and_merge_into_the_bytes_of_one_run() {
    if !there_is_mpi("shards_of_a_launcher_survive_a_kill_and_merge_into_the_bytes_of_one_run") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let generate = "generate alltoall --ranks 24 --iterations 20 -o a.dim";
    let made = flowcast(folder, &generate.split(' ').collect::<Vec<_>>());
    assert!(made.status.success());
    let arguments = [
        "sweep",
        "a.dim",
        "-n",
        "gige-tcp",
        "--grid",
        "latency=1us..100us:40",
        "--threads",
        "1",
    ];
    let whole = flowcast(folder, &arguments).stdout;
    let launch = || {
        // The launcher gives up before the test would hang. Each process leaves its number, so that one can be killed.
        let mut command = Command::new("timeout");
        command
            .args(["100", "mpirun", "-np", "4", "--oversubscribe"])
            .args([
                "sh",
                "-c",
                "echo $$ > pid.$OMPI_COMM_WORLD_RANK; exec \"$0\" \"$@\"",
            ])
            .arg(env!("CARGO_BIN_EXE_flowcast"))
            .args(arguments)
            .args(["--shard", "auto", "-o", "a.csv", "--resume"]);
        for name in LAUNCHERS {
            command.env_remove(name);
        }
        command
            .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
            .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
            .current_dir(folder)
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        command
    };
    let running = launch().spawn().unwrap();
    let kept = || {
        fs::read_to_string(folder.join("a.3-of-4.csv.partial"))
            .map_or(0, |text| text.matches("# part ").count().saturating_sub(1))
    };
    while kept() == 0 && !folder.join("a.3-of-4.csv").exists() {
        std::thread::yield_now();
    }
    let process = fs::read_to_string(folder.join("pid.2")).unwrap();
    let killed = Command::new("kill")
        .args(["-KILL", process.trim()])
        .status()
        .unwrap();
    assert!(killed.success());
    let output = running.wait_with_output().unwrap();
    let printed = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{printed}");
    let before = kept();
    assert!((1..10).contains(&before), "{before}: {printed}");

    let output = launch().output().unwrap();
    let printed = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{printed}");
    let resumed = format!("sets: {before} resumed, {} to replay", 10 - before);
    assert!(printed.contains(&resumed), "{printed}");
    let files: Vec<String> = (1..=4)
        .map(|number| format!("a.{number}-of-4.csv"))
        .collect();
    let mut merge: Vec<&str> = files.iter().map(String::as_str).collect();
    merge.insert(0, "merge");
    merge.extend(["-o", "all.csv"]);
    let merged = flowcast(folder, &merge);
    assert!(merged.status.success());
    assert_eq!(fs::read(folder.join("all.csv")).unwrap(), whole);
}

#[test]
fn a_run_on_a_changed_network_is_not_resumed() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let kept = kept(&swept(folder, &[]));
    fs::write(folder.join("lu.csv.partial"), &kept).unwrap();
    let other = said(&sweep(
        folder,
        &["--set", "nic.gap=1us", "-o", "lu.csv", "--resume"],
    ));
    assert!(other.contains("found the sets of another sweep"), "{other}");
    assert_eq!(fs::read(folder.join("lu.csv.partial")).unwrap(), kept);
}

#[test]
fn a_page_contains_the_lines_that_it_draws_and_is_not_computed_again() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let csv = String::from_utf8(swept(folder, &[])).unwrap();
    swept(folder, &["--report", "lu.html"]);
    let page = fs::read_to_string(folder.join("lu.html")).unwrap();
    assert_eq!(flowcast::report::sweep_page::csv_of(&page), Some(csv));
    let again = sweep(folder, &["--report", "lu.html", "--resume"]);
    assert!(String::from_utf8_lossy(&again.stderr).contains("nothing to do"));
    assert!(
        said(&sweep(folder, &["--report", "lu.html", "--json"])).contains("--json: found --report")
    );
}
