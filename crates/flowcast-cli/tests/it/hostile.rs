//! Malicious or damaged inputs: each is refused, and its content never reaches a terminal unescaped.

use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

fn flowcast(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new("timeout");
    command
        .arg("100")
        .arg(env!("CARGO_BIN_EXE_flowcast"))
        .args(arguments)
        .current_dir(folder);
    command.output().unwrap()
}

fn words(folder: &Path, arguments: &str) -> Output {
    flowcast(folder, &arguments.split(' ').collect::<Vec<_>>())
}

/// Checks that the command refuses an input with code 2 and this message.
fn refused(folder: &Path, arguments: &[&str], expected: &str) {
    let output = flowcast(folder, arguments);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(
        output.status.code(),
        Some(2),
        "{arguments:?}: {}{said}",
        String::from_utf8_lossy(&output.stdout)
    );
    assert!(said.contains(expected), "{arguments:?}: {said}");
}

fn with_ring() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let made = words(
        folder.path(),
        "generate shift --ranks 4 --iterations 2 -o ring.dim",
    );
    assert!(
        made.status.success(),
        "{}",
        String::from_utf8_lossy(&made.stderr)
    );
    folder
}

#[test]
fn no_result_contains_a_time_that_is_not_a_number() {
    let folder = with_ring();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write(
        "slow.toml",
        "[[scenario]]\nname = \"slow\"\n[scenario.slow_links]\n0 = 1e-320\n",
    );
    write("burst.csv", "arrival_us,size_B\n0,64\n1,4096\n");
    let expected = "not a finite number";
    for set in [
        "nic.bandwidth=1e-300B/s",
        "nic.bandwidth=1e-320MB/s",
        "machine.nodes.0.speed=1e-310",
    ] {
        for form in [&[][..], &["--json"]] {
            let sweep = [
                "sweep",
                "ring.dim",
                "-n",
                "gige-tcp",
                "--set",
                set,
                "--grid",
                "latency=1us,5us",
            ];
            refused(folder.path(), &[&sweep[..], form].concat(), expected);
            refused(
                folder.path(),
                &[&sweep[..], &["--model", "independent"], form].concat(),
                expected,
            );
            refused(
                folder.path(),
                &[
                    &["predict", "ring.dim", "-n", "gige-tcp", "--set", set][..],
                    form,
                ]
                .concat(),
                expected,
            );
        }
    }
    let grid = [
        "sweep",
        "ring.dim",
        "-n",
        "gige-tcp",
        "--grid",
        "bandwidth=1e-300B/s,1e300B/s",
        "-o",
        "grid.csv",
    ];
    refused(folder.path(), &grid, expected);
    assert!(!folder.path().join("grid.csv").exists());
    let slow = [
        "predict",
        "ring.dim",
        "-n",
        "gige-tcp",
        "--model",
        "independent",
        "--scenarios",
        "slow.toml",
    ];
    refused(folder.path(), &slow, expected);
    refused(folder.path(), &[&slow[..], &["--json"]].concat(), expected);
    for rail in [
        "ib=1e308,0.001,1,1us",
        "ib=1,1,1,1e308us",
        "ib=1,1e308,1,1us",
        "ib=1,1,1e308,1us",
    ] {
        for command in ["simulate", "optimum", "compare"] {
            let arguments = ["rails", command, "--rail", rail, "--messages", "burst.csv"];
            refused(folder.path(), &arguments, "rail");
        }
    }
}

/// Network names that a terminal would interpret, a spreadsheet take for a formula, or a reader for a line of the result.
const NAMES: [&str; 6] = [
    r"x\u001b]0;pwn\u0007\u001b[31m",
    r"x\npredicted time on x: 1 ns",
    r"x\u202etxt.exe",
    r"x\u009b31m",
    r"x\r",
    r"x\u2066",
];

#[test]
fn names_write_no_control_sequences_to_the_terminal() {
    let folder = with_ring();
    let shown = String::from_utf8(words(folder.path(), "networks show gige-tcp").stdout).unwrap();
    for name in NAMES {
        for field in ["name", "title", "source"] {
            let own = shown
                .lines()
                .find(|line| line.starts_with(&format!("{field} = ")))
                .unwrap();
            let text = shown.replace(own, &format!("{field} = \"{name}\""));
            fs::write(folder.path().join("n.toml"), text).unwrap();
            refused(
                folder.path(),
                &["predict", "ring.dim", "-n", "n.toml"],
                &format!("{field}: found the character"),
            );
        }
    }
    // The message on a refused file contains its name.
    let file = "\u{1b}[31m\u{202e}x.dim";
    fs::copy(folder.path().join("ring.dim"), folder.path().join(file)).unwrap();
    for arguments in [
        vec!["predict", file, "ring.dim", "-n", "gige-tcp"],
        vec!["predict", file, "-n", file],
        vec!["compile", file, "-o", "x.fct"],
        vec!["sweep", file, "-n", "gige-tcp", "--grid", "latency=1us,2us"],
        vec![
            "predict", file, "ring.dim", "-n", "gige-tcp", "--tables", "csv",
        ],
        vec![
            "predict",
            file,
            "-n",
            "gige-tcp",
            "--write",
            "ranks=ranks.csv",
        ],
    ] {
        let output = flowcast(folder.path(), &arguments);
        let written = fs::read(folder.path().join("ranks.csv")).unwrap_or_default();
        let all = String::from_utf8([output.stdout, output.stderr, written].concat()).unwrap();
        assert!(
            !all.contains(['\u{1b}', '\u{202e}']),
            "{arguments:?}: {all}"
        );
    }
}

/// Recording of the examples whose program, host and library have these names.
fn recording_by(name: &[u8]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/heat.rec");
    for file in fs::read_dir(example).unwrap() {
        let file = file.unwrap();
        let bytes = fs::read(file.path()).unwrap();
        let named =
            ["program heat", "host vm", "library Open MPI"]
                .iter()
                .fold(bytes, |bytes, line| {
                    let at = bytes
                        .windows(line.len())
                        .position(|part| part == line.as_bytes());
                    let Some(at) = at else { return bytes };
                    let key = line.split_inclusive(' ').next().unwrap();
                    [
                        &bytes[..at],
                        key.as_bytes(),
                        name,
                        &bytes[at + line.len()..],
                    ]
                    .concat()
                });
        fs::write(folder.path().join(file.file_name()), named).unwrap();
    }
    folder
}

#[test]
fn names_in_a_recording_are_escaped_in_all_outputs() {
    let long = vec![b'n'; 10_000];
    let names: [&[u8]; 6] = [
        b"\x1b[31m\x1b]0;title\x07\rx",
        b"</title><script>alert(1)</script>",
        b"=1+1,\"x\",'",
        b"\xff\xfe\xc3 \xe2\x80\xae",
        b"../../etc/passwd",
        &long,
    ];
    for name in names {
        let recording = recording_by(name);
        let folder = tempfile::tempdir().unwrap();
        let trace = recording.path().to_str().unwrap();
        let write = [
            "ranks=r.csv",
            "messages=m.csv",
            "paraver=p.prv",
            "perfetto=p.pftrace",
        ];
        let write = write.iter().flat_map(|one| ["--write", one]);
        let arguments: Vec<&str> = ["predict", trace, "-n", "gige-tcp", "--report", "p.html"]
            .into_iter()
            .chain(write)
            .collect();
        let output = flowcast(folder.path(), &arguments);
        let shown = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        assert_eq!(output.status.code(), Some(0), "{shown}");
        let is_obeyed = |sign: char| sign.is_control() && !matches!(sign, '\n' | '\t');
        assert!(!shown.contains(is_obeyed), "{shown:?}");
        for file in ["r.csv", "m.csv", "p.prv", "p.pcf", "p.row", "p.html"] {
            let text = String::from_utf8(fs::read(folder.path().join(file)).unwrap()).unwrap();
            assert!(!text.contains(is_obeyed), "{file}: {name:?}");
            assert!(
                !text.contains("<script>alert") || !file.ends_with("html"),
                "{file}"
            );
            if file.ends_with("csv") {
                let columns = |line: &&str| line.split(',').count();
                let rows: Vec<usize> = text
                    .lines()
                    .filter(|line| !line.starts_with('#'))
                    .map(|line| columns(&line))
                    .collect();
                assert!(
                    rows.len() > 1 && rows.iter().all(|row| *row == rows[0]),
                    "{file}: {name:?}"
                );
            }
        }
    }
}

#[test]
fn the_files_of_a_trace_share_one_limit_and_occur_once() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &[u8]| fs::write(folder.path().join(name), text).unwrap();
    for rank in 0..6 {
        let mut plain = format!("{rank} init\n").into_bytes();
        plain.resize(16 << 20, b'\n');
        write(&format!("r{rank}.txt"), &plain);
        let packed = Command::new("gzip")
            .arg(format!("r{rank}.txt"))
            .current_dir(folder.path())
            .status();
        assert!(packed.unwrap().success());
    }
    let names = |count: u32| {
        (0..count)
            .map(|rank| format!("r{rank}.txt.gz\n"))
            .collect::<String>()
    };
    write("list", names(6).as_bytes());
    refused(
        folder.path(),
        &["predict", "list", "-n", "gige-tcp"],
        "in all files of a trace",
    );
    for again in ["r0.txt.gz", "./r0.txt.gz", "link"] {
        let _ = std::os::unix::fs::symlink("r0.txt.gz", folder.path().join("link"));
        write("list", format!("{}./{again}\n", names(1)).as_bytes());
        refused(
            folder.path(),
            &["predict", "list", "-n", "gige-tcp"],
            "found the file a second time, expected each file once",
        );
    }
    write("list", b"/dev/zero\n");
    refused(
        folder.path(),
        &["predict", "list", "-n", "gige-tcp"],
        "found a device, expected a file",
    );
    refused(
        folder.path(),
        &["predict", "/dev/zero", "-n", "gige-tcp"],
        "found a device, expected a file",
    );
    refused(
        folder.path(),
        &["fit", "/dev/zero", "-o", "x.toml"],
        "found a device, expected a file",
    );
}

#[test]
fn a_flow_that_never_ends_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write("p.pattern", "0 -> 1 1MB\n2 -> 3 1MB\n6 -> 1 1MB\n");
    let tree = "--set topology.fat_tree=4 --set topology.bandwidth=1e-300B/s";
    for model in ["fair", "degree-fair", "closed-loop", "independent"] {
        for set in [tree, "--set nic.bandwidth=1e-300B/s"] {
            let line = format!("predict p.pattern -n gige-tcp {set} --model {model}");
            let output = words(folder.path(), &line);
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{line}: {said}");
        }
    }
}

#[test]
fn linpack_runs_without_a_time_or_with_too_long_a_time_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    let runs = |run: &str| format!("N,P,Q,block_size,depth,bcast,swap,time_s\n{run},0.3\n");
    let processors = |seconds: &str| {
        format!("node,intercept_s,s_per_mnk,resid_per_mnk\n1,2e-6,{seconds},2e-12\n")
    };
    write("slow.csv", &processors("1e300"));
    write("fast.csv", &processors("6e-11"));
    write("small.csv", &runs("300,2,2,128,1,1,0"));
    write("huge.csv", &runs("2147483648,64,64,128,1,1,0"));
    for (arguments, expected) in [
        (
            "hpl fit small.csv --compute slow.csv",
            "not a finite number",
        ),
        ("hpl fit huge.csv --compute fast.csv", "h to simulate"),
        (
            "hpl predict huge.csv --compute fast.csv --limit 4",
            "h to simulate",
        ),
    ] {
        let words = format!("{arguments} --network gige-tcp --ranks-per-node 4096");
        refused(
            folder.path(),
            &words.split(' ').collect::<Vec<_>>(),
            expected,
        );
    }
}
