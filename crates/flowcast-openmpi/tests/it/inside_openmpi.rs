//! The component inside Open MPI 4.1 or 5.0: programs on two rails, in a separate network namespace.
//!
//! The tests need openmpi-bin, libopenmpi-dev and user namespaces. They are therefore ignored by default and run by
//! `cargo xtask test openmpi`. Every run has a time limit: a lost message shows as a program that does not end.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
    sync::OnceLock,
};

use flowcast_scheduler::discipline::SchedulerName;

use crate::layout::include_folders;

const WHY: &str = "run by cargo xtask test openmpi";

/// Script for two interfaces without the limits of a wire; both ends of a message are on this machine.
const RAILS: &str = "set -e; ip link set lo up
for k in 1 2; do
  ip link add rail$k type veth peer name peer$k; ip addr add 10.91.$k.1/24 dev rail$k
  ip link set rail$k up; ip link set peer$k up
done
exec \"$@\"";

/// Script for two interfaces of 200 Mbit/s each. With `SLOWER=1` the second falls to 40 Mbit/s after two seconds. With
/// `STUCK=1` the second passes no data from the second to the fifth second.
const LIMITED_RAILS: &str = "set -e; ip link set lo up mtu 9000
for k in 1 2; do
  ip link add rail$k type veth peer name peer$k; ip addr add 10.91.$k.1/24 dev rail$k
  ip link set rail$k up; ip link set peer$k up
done
limit() { tc class $1 dev lo parent 1: classid 1:$2 htb rate $3 burst 16k cburst 16k quantum 60000; }
tc qdisc add dev lo root handle 1: htb default 9
limit add 9 10gbit
for k in 1 2; do
  limit add $k 200mbit
  tc filter add dev lo parent 1: protocol ip u32 match ip dst 10.91.$k.1/32 flowid 1:$k
done
if [ -n \"$SLOWER\" ]; then (sleep 2; limit change 2 40mbit) & fi
lose() { tc filter $1 dev lo parent 1: prio 1 $2; }
if [ -n \"$STUCK\" ]; then
  (sleep 2; lose add \"protocol ip u32 match ip dst 10.91.2.1/32 action mirred egress redirect dev peer2\"; sleep 3; lose del) &
fi
exec \"$@\"";

/// Folder with the folders `components` and `none`, and with programs that are built once.
fn folder() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap().keep();
        // Next to this test's own folder `deps`.
        let built = std::env::current_exe()
            .unwrap()
            .with_file_name("libmca_bml_flowcast.so");
        let components = folder.join("components");
        fs::create_dir(&components).unwrap();
        fs::create_dir(folder.join("none")).unwrap();
        fs::copy(built, components.join("mca_bml_flowcast.so")).unwrap();
        folder
    })
}

fn program(name: &str) -> PathBuf {
    let program = folder().join(name);
    if !program.exists() {
        let source = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/programs")
            .join(format!("{name}.c"));
        let includes = include_folders();
        let mut compile = Command::new("mpicc.openmpi");
        compile
            .arg("-O1")
            .args(
                includes
                    .iter()
                    .map(|folder| format!("-I{}", folder.display())),
            )
            .arg("-o")
            .arg(&program)
            .arg(source)
            .args(["-lpthread", "-ldl"]);
        let output = compile.output().unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    program
}

fn run(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Runs `mpirun` with the component among the others; `settings` are MCA parameters.
fn mpirun(ranks: u32, settings: &[(&str, &str)], program: &[&str]) -> Output {
    mpirun_over(RAILS, ranks, settings, program)
        .output()
        .unwrap()
}

/// Prepares the command of [`mpirun`], in a network that a script creates.
fn mpirun_over(rails: &str, ranks: u32, settings: &[(&str, &str)], program: &[&str]) -> Command {
    let mut command = Command::new("unshare");
    command.args([
        "-Urn",
        "sh",
        "-c",
        rails,
        "sh",
        "timeout",
        "-k",
        "5",
        "180",
        "mpirun.openmpi",
        "--oversubscribe",
    ]);
    command.args(["-np", &ranks.to_string()]);
    let path = format!("{}:SYS_DEFAULT", folder().join("components").display());
    let usual = [
        ("mca_base_component_path", path.as_str()),
        ("btl", "tcp,self"),
        ("btl_tcp_if_include", "rail1,rail2"),
        ("oob_tcp_if_include", "lo"),
        ("mpi_yield_when_idle", "1"),
        ("bml", "flowcast"),
        ("bml_flowcast_store", "none"),
        (
            "bml_flowcast_rails",
            "rail1=3,0.001,2,10us; rail2=3,0.001,2,10us",
        ),
    ];
    for (name, value) in usual.iter().chain(settings) {
        command.env(format!("OMPI_MCA_{name}"), value);
    }
    // Open MPI 5.0 gives PMIx the same folder if it has none, and PMIx prints that our component is none of its own.
    command.env("PMIX_MCA_mca_base_component_path", folder().join("none"));
    for name in ["OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"] {
        command.env(name, "1");
    }
    // Open MPI 5 has this name for `rmaps_base_oversubscribe`.
    command.env("PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe");
    command.args(program);
    command
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

#[track_caller]
fn assert_sound(output: &Output, what: &str) {
    let text = text(output);
    assert!(
        output.status.success() && text.contains("bad=0 messages="),
        "{what}: {}\n{text}",
        output.status
    );
}

fn payload(ranks: u32, settings: &[(&str, &str)], messages: &str) -> Output {
    mpirun(
        ranks,
        settings,
        &[program("payload").to_str().unwrap(), messages, "7"],
    )
}

#[test]
#[ignore = "run by cargo xtask test openmpi"]
fn ompi_info_lists_the_component_with_its_parameters() {
    let listed = Command::new("ompi_info")
        .arg("--all")
        .env(
            "OMPI_MCA_mca_base_component_path",
            folder().join("components"),
        )
        .output();
    let listed = text(&listed.unwrap());
    for name in [
        "scheduler",
        "rails",
        "network",
        "measure",
        "measure_ms",
        "store",
        "stripe",
        "split_from",
        "remeasure",
        "epoll",
        "verbose",
        "counters",
    ] {
        assert!(
            listed.contains(&format!("\"bml_flowcast_{name}\"")),
            "{WHY}: {name}\n{listed}"
        );
    }
}

#[test]
#[ignore = "run by cargo xtask test openmpi"]
fn every_scheduler_delivers_every_payload() {
    for name in SchedulerName::every() {
        let name = name.to_string();
        assert_sound(
            &payload(2, &[("bml_flowcast_scheduler", &name)], "1500"),
            &name,
        );
    }
}

#[test]
#[ignore = "run by cargo xtask test openmpi"]
fn more_ranks_and_shared_memory_beside_the_rails_deliver_every_payload() {
    for ranks in [4, 8] {
        assert_sound(&payload(ranks, &[], "3000"), "tcp alone");
        assert_sound(
            &payload(
                ranks,
                &[
                    ("bml_flowcast_measure", "always"),
                    ("bml_flowcast_rails", ""),
                ],
                "3000",
            ),
            "measured",
        );
    }
    let mixed = [
        ("btl", "tcp,self,vader"),
        ("btl_tcp_exclusivity", "65536"),
        ("bml_flowcast_scheduler", "round-robin"),
    ];
    assert_sound(
        &payload(4, &mixed, "3000"),
        "shared memory as a companion of tcp",
    );
}

#[test]
#[ignore = "run by cargo xtask test openmpi"]
fn threads_deliver_every_payload() {
    for scheduler in ["earliest-delivery", "wfq", "fixed-point"] {
        let threads = program("threads");
        let output = mpirun(
            2,
            &[("bml_flowcast_scheduler", scheduler)],
            &[threads.to_str().unwrap(), "2000"],
        );
        assert_sound(&output, scheduler);
    }
}

#[test]
#[ignore = "run by cargo xtask test openmpi"]
fn threads_and_processes_of_a_program_end_as_without_the_component() {
    for (what, code) in [("cancel", 7), ("fork", 0), ("exit", 7)] {
        for bml in ["r2", "flowcast"] {
            let suffer = program("suffer");
            let output = mpirun(2, &[("bml", bml)], &[suffer.to_str().unwrap(), what]);
            let text = text(&output);
            assert_eq!(output.status.code(), Some(code), "{what} {bml}\n{text}");
            assert!(text.contains("bad=0 messages=200"), "{what} {bml}\n{text}");
        }
    }
}

#[test]
#[ignore = "run by cargo xtask test openmpi"]
fn an_invalid_piece_ends_the_job_and_is_named() {
    let output = mpirun(2, &[], &[program("misfit").to_str().unwrap()]);
    let text = text(&output);
    assert!(!matches!(output.status.code(), Some(0 | 124)), "{text}");
    assert!(
        text.contains("found 40 bytes that are not a piece of a message"),
        "{text}"
    );
}

#[test]
#[ignore = "run by cargo xtask test openmpi"]
fn processes_may_come_and_go() {
    assert_sound(
        &mpirun(
            1,
            &[("rmaps_base_oversubscribe", "1")],
            &[program("spawn").to_str().unwrap()],
        ),
        "spawn",
    );
}

#[test]
#[ignore = "run by cargo xtask test openmpi"]
fn both_rails_carry_first_fragments_and_a_lost_one_carries_no_more() {
    let counts = |name: &str, arguments: &[&str]| {
        let file = folder().join(format!("counts-{name}"));
        let program = program(name);
        let all = [&[program.to_str().unwrap()], arguments].concat();
        let settings = [
            ("bml_flowcast_counters", file.to_str().unwrap()),
            ("bml_flowcast_scheduler", "round-robin"),
        ];
        assert_sound(&mpirun(2, &settings, &all), name);
        let counts = fs::read_to_string(format!("{}.0.json", file.display())).unwrap();
        let counts: serde_json::Value = serde_json::from_str(&counts).unwrap();
        [0, 1].map(|rail| counts["rails"][rail]["eager_messages"].as_u64().unwrap())
    };
    let [first, second] = counts("payload", &["3000"]);
    assert!(
        first.abs_diff(second) <= 1 && first > 100,
        "in turn: {first} {second}"
    );
    let [first, second] = counts("lose", &[]);
    // 500 messages in turn before the loss, 500 on the remaining rail after it.
    assert_eq!(first.min(second) / 10, 25, "{first} {second}");
    assert_eq!(first.max(second) / 10, 75, "{first} {second}");
}

#[test]
#[ignore = "run by cargo xtask test openmpi"]
fn epoll_waits_for_the_sockets_that_open_mpi_polls() {
    let by_epoll = |settings: &[(&str, &str)]| {
        let settings = [settings, &[("bml_flowcast_verbose", "1")]].concat();
        let output = payload(4, &settings, "3000");
        assert_sound(&output, "verbose");
        let text = text(&output);
        let (before, _) = text.split_once(" sockets by epoll").expect(&text);
        let count = before.rsplit(' ').next().unwrap();
        count.parse::<u32>().expect(&text)
    };
    // Three processes over two networks. Open MPI 5 uses epoll itself.
    let uses_poll = run("mpirun.openmpi", &["--version"]).contains(") 4.");
    let usual = by_epoll(&[]);
    assert!(if uses_poll { usual >= 6 } else { usual == 0 }, "{usual}");
    assert_eq!(by_epoll(&[("bml_flowcast_epoll", "0")]), 0);
    assert_eq!(by_epoll(&[("opal_event_include", "epoll")]), 0);
}

#[test]
#[ignore = "run by cargo xtask test openmpi"]
fn it_steps_aside_with_one_line_if_it_cannot_help() {
    let refused = |settings: &[(&str, &str)], words: &str| {
        let output = payload(2, settings, "300");
        assert_sound(&output, words);
        let text = text(&output);
        let lines: Vec<&str> = text
            .lines()
            .filter(|line| line.contains("flowcast"))
            .collect();
        assert!(
            lines.len() == 1 && lines[0].contains("steps aside") && lines[0].contains(words),
            "{words}\n{text}"
        );
    };
    refused(
        &[("bml", "r2,flowcast")],
        "found the component r2 open as well",
    );
    refused(
        &[("btl_tcp_if_include", "rail1")],
        "found tcp, expected at least two networks",
    );
    refused(
        &[("bml_flowcast_scheduler", "fastest")],
        "bml_flowcast_scheduler",
    );
    refused(
        &[("bml_flowcast_rails", "rail1=fast")],
        "bml_flowcast_rails",
    );
    refused(
        &[("bml_flowcast_network", "rail1=/nowhere.toml")],
        "/nowhere.toml",
    );
}

#[test]
#[ignore = "run by cargo xtask test openmpi"]
fn it_steps_aside_for_a_library_of_another_series() {
    let source = folder().join("other.c");
    let library = folder().join("other.so");
    let version = "Open MPI v6.0.0, package: other";
    let code = format!(
        "#include <string.h>\nint MPI_Get_library_version(char *v, int *n) {{ strcpy(v, \"{version}\"); *n = {}; return 0; }}",
        version.len()
    );
    fs::write(&source, code).unwrap();
    let compiled = Command::new("cc")
        .args(["-shared", "-fPIC", "-o"])
        .args([&library, &source])
        .status()
        .unwrap();
    assert!(compiled.success());
    let preload = format!("LD_PRELOAD={}", library.display());
    let program = program("payload");
    let output = mpirun(
        2,
        &[],
        &["env", &preload, program.to_str().unwrap(), "300", "7"],
    );
    assert_sound(&output, "another series");
    assert!(
        text(&output).contains("steps aside, only r2 works: found Open MPI 6.0.0"),
        "{}",
        text(&output)
    );
}

#[test]
#[ignore = "run by cargo xtask test openmpi"]
fn it_is_silent_without_a_request() {
    let output = payload(2, &[("bml", "^none")], "300");
    assert_sound(&output, "stock");
    assert!(!text(&output).contains("flowcast"), "{}", text(&output));
}

#[test]
#[ignore = "run by cargo xtask test openmpi"]
fn results_of_start_up_are_stored_for_the_next_run() {
    let store = tempfile::tempdir().unwrap();
    let settings = [
        ("bml_flowcast_store", store.path().to_str().unwrap()),
        ("bml_flowcast_rails", ""),
        ("bml_flowcast_verbose", "2"),
    ];
    let run = |source: &str| {
        let output = payload(4, &settings, "3000");
        assert_sound(&output, source);
        text(&output)
    };
    // For other ranks the parameters that rank 0 sends count as measured.
    let all_ranks_say = |source: &str, text: &str| {
        let of_rank = |rank: u32| {
            let mut lines = text.lines();
            let is_known = |line: &str| rank > 0 && line.contains("parameters measured");
            lines.any(|line| {
                line.contains(&format!("rank {rank},")) && (line.contains(source) || is_known(line))
            })
        };
        assert!((0..4).all(of_rank), "{source}\n{text}");
    };
    let first = run("parameters measured");
    all_ranks_say("parameters measured", &first);
    let hosts = fs::read_dir(store.path()).into_iter().flatten().flatten();
    let files = hosts.flat_map(|hosts| fs::read_dir(hosts.path()).into_iter().flatten());
    let stored = files.count();
    // While other work occupies the processors, the time at start-up may not suffice. This is reported for each network.
    let missing = first
        .matches("is not stored: the time was too short")
        .count();
    assert_eq!(stored + missing, 2, "{first}");
    let next = run("parameters stored");
    // While other work occupies the processors, the check may reject the stored parameters. This is reported.
    let again = next.contains("the networks are measured again");
    let source = if again || missing > 0 {
        "parameters measured"
    } else {
        "parameters stored"
    };
    all_ranks_say(source, &next);
}

// Programs from Debian that were not written for these tests. The step skips the tests of programs that are not installed.

#[test]
#[ignore = "run by cargo xtask test openmpi"]
fn a_network_that_becomes_slower_while_the_program_runs_gets_less() {
    let counts = |slower: &str| {
        let file = folder().join(format!("counts-slower{slower}"));
        let settings = [
            ("bml_flowcast_rails", ""),
            ("bml_flowcast_counters", file.to_str().unwrap()),
        ];
        let program = program("stream");
        let mut run = mpirun_over(
            LIMITED_RAILS,
            2,
            &settings,
            &[program.to_str().unwrap(), "8", "60000"],
        );
        assert_sound(&run.env("SLOWER", slower).output().unwrap(), "stream");
        let counts = fs::read_to_string(format!("{}.0.json", file.display())).unwrap();
        let counts: serde_json::Value = serde_json::from_str(&counts).unwrap();
        let second = |field: &str| counts["rails"][1][field].as_f64().unwrap();
        (
            counts["parameters"].as_str().unwrap().to_owned(),
            second("G_us_per_B"),
            second("sent"),
        )
    };
    // 200 Mbit/s are 0.04 us/B, and 40 Mbit/s are 0.2 us/B.
    let (source, gap, sent) = counts("");
    // The measurement at start-up may have been disturbed. Then the traffic of the rail has corrected it.
    assert!(
        source.starts_with("measured")
            && (0.03..0.05).contains(&gap)
            && (0.45..0.55).contains(&sent),
        "{source} {gap} {sent}"
    );
    let (source, gap, sent) = counts("1");
    assert_eq!(source, "measured while the program ran");
    assert!((0.1..0.4).contains(&gap) && sent < 0.42, "{gap} {sent}");
}

#[test]
#[ignore = "run by cargo xtask test openmpi"]
fn a_message_is_divided_over_networks_by_their_bandwidths() {
    // Returns the number of first fragments or pieces of them, and the second network's share of all bytes.
    let sent = |split_from: &str, bytes: &str| {
        let file = folder().join(format!("counts-split-{split_from}-{bytes}"));
        let settings = [
            ("bml_flowcast_counters", file.to_str().unwrap()),
            // Ratio 4 : 1, and no other difference.
            (
                "bml_flowcast_rails",
                "rail1=0,0.02,0,0us; rail2=0,0.08,0,0us",
            ),
            ("bml_flowcast_split_from", split_from),
        ];
        let program = program("lone");
        let arguments = [program.to_str().unwrap(), "300", bytes];
        assert_sound(&mpirun(2, &settings, &arguments), split_from);
        let counts = fs::read_to_string(format!("{}.0.json", file.display())).unwrap();
        let counts: serde_json::Value = serde_json::from_str(&counts).unwrap();
        let rails = counts["rails"].as_array().unwrap();
        let pieces = rails
            .iter()
            .map(|rail| rail["eager_messages"].as_u64().unwrap());
        (pieces.sum::<u64>(), rails[1]["sent"].as_f64().unwrap())
    };
    let (pieces, share) = sent("8192", "30000");
    assert!(
        (600..640).contains(&pieces) && (0.18..0.22).contains(&share),
        "{pieces} {share}"
    );
    // Long messages are written into the receiver's memory.
    let (_, share) = sent("8192", "400000");
    assert!((0.18..0.22).contains(&share), "{share}");
    // Messages stay whole if division is off or if they are too short.
    for (split_from, bytes) in [("0", "30000"), ("8192", "8000")] {
        let (pieces, _) = sent(split_from, bytes);
        assert!(
            (300..340).contains(&pieces),
            "{split_from} {bytes} {pieces}"
        );
    }
}

#[test]
#[ignore = "run by cargo xtask test openmpi"]
fn a_stuck_network_gets_no_messages_until_it_moves() {
    let run = |stuck: &str| {
        let settings = [
            // Parameters are given, so that only a stuck network changes the choice: the second, as long as it moves.
            (
                "bml_flowcast_rails",
                "rail1=0,0.05,0,0us; rail2=0,0.04,0,0us",
            ),
            ("bml_flowcast_verbose", "1"),
        ];
        let program = program("late");
        let arguments = [program.to_str().unwrap(), "8", "4000"];
        let mut run = mpirun_over(LIMITED_RAILS, 2, &settings, &arguments);
        let output = run.env("STUCK", stuck).output().unwrap();
        assert_sound(&output, "late");
        let text = text(&output);
        let line = text.lines().find(|line| line.starts_with("late=")).unwrap();
        let late: u32 = line["late=".len()..]
            .split(' ')
            .next()
            .unwrap()
            .parse()
            .unwrap();
        (late, text)
    };
    let (late, text) = run("");
    assert!(late < 20 && !text.contains("nothing moves"), "{text}");
    // At most those of the 600 messages in these three seconds that were sent before the detection are late.
    let (late, text) = run("1");
    assert!((1..350).contains(&late), "{text}");
    assert!(
        text.contains("nothing moves on 1 connections over rail2")
            && text.contains("every network moves again"),
        "{text}"
    );
}

#[test]
#[ignore = "run by cargo xtask test openmpi"]
fn hpcc_verifies() {
    let place = tempfile::tempdir().unwrap();
    let input = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/hpccinf.txt");
    fs::copy(input, place.path().join("hpccinf.txt")).unwrap();
    let output = mpirun(
        4,
        &[],
        &["env", "--chdir", place.path().to_str().unwrap(), "hpcc"],
    );
    assert!(output.status.success(), "{}", text(&output));
    let results = fs::read_to_string(place.path().join("hpccoutf.txt")).unwrap();
    assert!(
        results.contains("Success=1") && results.contains("End of HPC Challenge tests"),
        "{results}"
    );
    assert!(
        !results.contains("FAILED ......")
            || results.contains("0 tests completed and failed residual checks")
    );
}

#[test]
#[ignore = "run by cargo xtask test openmpi"]
fn netpipe_receives_its_messages_as_sent() {
    let place = tempfile::tempdir().unwrap();
    let results = place.path().join("np.out");
    let arguments = [
        "NPopenmpi",
        "-i",
        "-u",
        "300000",
        "-o",
        results.to_str().unwrap(),
    ];
    let output = mpirun(2, &[], &arguments);
    let text = text(&output);
    assert!(output.status.success(), "{text}");
    // 5 B to 256 KiB, two sizes for each doubling.
    assert_eq!(text.matches("Integrity check passed").count(), 33, "{text}");
    assert!(!text.contains("failed"), "{text}");
}
