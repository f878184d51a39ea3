//! The command measures over loopback, between processes, and after an interruption.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    net::{Shutdown, TcpStream},
    path::Path,
    process::{Child, Command, Output, Stdio},
    time::{Duration, Instant},
};

use crate::{
    in_parts,
    outcome::{json, said},
};

fn flowcast(folder: &Path, arguments: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_flowcast"));
    command
        .args(arguments.split_whitespace())
        .current_dir(folder);
    for name in [
        "OMPI_COMM_WORLD_RANK",
        "OMPI_COMM_WORLD_SIZE",
        "PMI_RANK",
        "PMI_SIZE",
    ] {
        command.env_remove(name);
    }
    command
}

fn run(folder: &Path, arguments: &str) -> Output {
    flowcast(folder, arguments).output().unwrap()
}

const SHORT: &str = "--time-limit 300ms --size 32KiB --step 8KiB";

#[test]
fn loopback_is_measured_fitted_and_usable_as_a_network() {
    let folder = tempfile::tempdir().unwrap();
    // A single round would give no intervals.
    let measured = json(&run(
        folder.path(),
        "measure p2p --time-limit 2s --size 32KiB --step 8KiB -o samples.csv --json",
    ));
    assert_eq!(measured["kind"], "measurement");
    // 4 sizes, n = 1 and n = 16, and the delayed point.
    assert_eq!(measured["points"].as_array().unwrap().len(), 9);
    assert!(!folder.path().join("samples.csv.partial").exists());

    let fit = json(&run(folder.path(), "fit samples.csv -o mine.toml --json"));
    for symbol in ["g_us", "G_us_per_B", "o_us", "L_us"] {
        let (value, interval) = (
            fit[symbol].as_f64().unwrap(),
            &fit[format!("{symbol}_interval")],
        );
        assert!(value.is_finite() && value >= 0.0, "{fit}");
        // A parameter at its bound, such as an overhead of 0, has no interval.
        let ends = interval
            .as_array()
            .map(|ends| [ends[0].as_f64().unwrap(), ends[1].as_f64().unwrap()]);
        assert!(ends.is_none_or(|[low, high]| low < high), "{fit}");
    }
    let shown = run(folder.path(), "networks show ./mine.toml");
    let text = String::from_utf8(shown.stdout).unwrap();
    assert!(
        text.contains("name = \"mine\"") && text.contains("[intervals.\"nic.gap_per_byte\"]"),
        "{text}"
    );
    assert!(
        text.contains("\"samples.path\" = \"tcp over loopback, two threads\""),
        "{text}"
    );
}

#[test]
fn two_cores_are_measured_over_shared_memory() {
    let cores = std::thread::available_parallelism().unwrap().get();
    if cores < 2 {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let measured = json(&run(
        folder.path(),
        &format!("measure p2p --over shm {SHORT} -o samples.csv --json"),
    ));
    assert_eq!(measured["points"].as_array().unwrap().len(), 9);
    let path = measured["provenance"]["path"].as_str().unwrap();
    assert!(path.starts_with("shared memory, cores "), "{path}");
    let fit = json(&run(folder.path(), "fit samples.csv -o node.toml --json"));
    assert!(fit["G_us_per_B"].as_f64().unwrap() > 0.0, "{fit}");
    let compared = json(&run(
        folder.path(),
        "fit --model all samples.csv --replicates 2 --json",
    ));
    assert_eq!(compared["models"].as_array().unwrap().len(), 9);
    let budgeted = json(&run(
        folder.path(),
        "measure p2p --over shm --adaptive --time-limit 300ms -o few.csv --json",
    ));
    assert!(budgeted["messages"].as_u64().unwrap() > 100, "{budgeted}");
}

#[test]
fn all_pairs_of_cores_are_measured_and_resumed_after_an_interruption() {
    if std::thread::available_parallelism().unwrap().get() < 2 {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    // Four ranks on two cores. The machine decides which of them are slow.
    let command = "measure pairs --over shm --cores 0,1,0,1 --sizes 1B,64KiB --repetitions 1 1 --warm-ups 0 --report cores.html";
    let output = run(folder.path(), &format!("{command} -o cores.csv --json"));
    assert!(
        matches!(output.status.code(), Some(0 | 1)),
        "{}",
        said(&output)
    );
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&report["sizes"][0]["pairs"], &report["sizes"][1]["pairs"]),
        (&12.into(), &12.into())
    );
    let notes = report["notes"].as_array().unwrap();
    assert_eq!(notes[0], "Ranks 0 to 3 run on the cores 0 1 0 1.");
    assert!(
        notes[1]
            .as_str()
            .unwrap()
            .starts_with("Ranks 0, 2 share core 0"),
        "{report}"
    );
    let page = fs::read_to_string(folder.path().join("cores.html")).unwrap();
    assert_eq!(
        (page.matches("<h2>").count(), page.contains("share core 1")),
        (2, true)
    );

    // The first four pairs of the file.
    let text = fs::read_to_string(folder.path().join("cores.csv")).unwrap();
    let head: String = text
        .lines()
        .take_while(|line| !line.starts_with("alone,0,"))
        .map(|line| line.to_owned() + "\n")
        .collect();
    let known = |line: &&str| {
        [
            "0,1,", "1,0,", "0,2,", "2,0,", "0,3,", "3,0,", "1,2,", "2,1,",
        ]
        .iter()
        .any(|pair| line.starts_with(&format!("alone,{pair}")))
    };
    let rows: String = text
        .lines()
        .filter(known)
        .map(|line| line.to_owned() + "\n")
        .collect();
    fs::write(
        folder.path().join("more.csv.partial"),
        in_parts([&*head, &rows]),
    )
    .unwrap();
    let other = run(
        folder.path(),
        "measure pairs --over shm --cores 0,1,1,0 --sizes 1B,64KiB -o more.csv --resume",
    );
    assert!(
        other.status.code() == Some(2)
            && said(&other).contains("found cores 0 1 0 1, expected 0 1 1 0 as in this run"),
        "{}",
        said(&other)
    );
    let resumed = run(folder.path(), &format!("{command} -o more.csv --resume"));
    assert!(
        said(&resumed).contains("2 of 2: ranks") && !said(&resumed).contains("of 6: "),
        "{}",
        said(&resumed)
    );
    let text = fs::read_to_string(folder.path().join("more.csv")).unwrap();
    assert!(rows.lines().all(|row| text.contains(row)), "{text}");
}

#[test]
fn options_that_exclude_shared_memory_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |arguments: &str| {
        let output = run(folder.path(), arguments);
        (
            output.status.code(),
            String::from_utf8(output.stderr).unwrap(),
        )
    };
    let (code, text) = refused("measure p2p --over shm --connect 127.0.0.1:1");
    assert!(
        code == Some(2) && text.contains("--over shm: found --listen, --connect"),
        "{text}"
    );
    let (code, text) = refused("measure p2p --cores 0,1");
    assert!(
        code == Some(2) && text.contains("expected --over shm"),
        "{text}"
    );
    let (code, text) = refused("measure p2p --over shm --cores 1,1");
    assert!(
        code == Some(2) && text.contains("expected two different cores"),
        "{text}"
    );
    let (code, text) = refused("measure p2p --over shm --cores 0,100000");
    assert!(
        code == Some(3) && text.contains("cannot run on core 100000"),
        "{text}"
    );
    let (code, text) = refused("measure pairs --over shm --cores 0,1 -o cores.csv");
    assert!(
        code == Some(2) && text.contains("--cores: found 2 ranks, expected 4 or more"),
        "{text}"
    );
    let (code, text) = refused("measure pairs --over shm --lab fair -o cores.csv");
    assert!(
        code == Some(2) && text.contains("--over shm: found --lab"),
        "{text}"
    );
    let (code, text) = refused("measure pairs --cores 0-3 -o cores.csv");
    assert!(
        code == Some(2) && text.contains("expected --over shm"),
        "{text}"
    );
    let (code, text) = refused("measure conflicts --over shm --launcher true -o conflicts.csv");
    assert!(
        code == Some(2) && text.contains("--over: found shm"),
        "{text}"
    );
}

#[test]
fn without_an_output_file_the_samples_go_to_the_standard_output() {
    let folder = tempfile::tempdir().unwrap();
    let output = run(folder.path(), &format!("measure p2p {SHORT}"));
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.starts_with("# schema: flowcast/samples/2\n")
            && text.contains("\nwhat,n,d_us,size_B,time_us\n")
    );
}

/// Starts the answering end and reads its address from its log.
pub(crate) fn listener(folder: &Path) -> (Child, String) {
    listener_with(folder, "")
}

fn listener_with(folder: &Path, options: &str) -> (Child, String) {
    let mut child = flowcast(
        folder,
        &format!("measure p2p --listen 127.0.0.1:0 {options}"),
    )
    .stderr(Stdio::piped())
    .spawn()
    .unwrap();
    let mut line = String::new();
    BufReader::new(child.stderr.as_mut().unwrap())
        .read_line(&mut line)
        .unwrap();
    let address = line
        .trim()
        .strip_prefix("listening at ")
        .expect("the log names the address")
        .to_owned();
    (child, address)
}

/// First bytes of a connection that enters without a token.
const ENTERS: [u8; 24] = *b"FLOWPEER\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";

#[test]
fn a_peer_that_does_not_measure_is_refused_with_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let greeting = *b"flowcast-prtt/1\n";
    let numbers = |numbers: &[u32]| -> Vec<u8> {
        let bytes = numbers.iter().flat_map(|number| number.to_le_bytes());
        greeting.into_iter().chain(bytes).collect()
    };
    let begun = [numbers(&[1, 4, 1000]), vec![7; 1500]].concat();
    for (says, code, told) in [
        (&b""[..], 3, "the other end closed the connection"),
        (b"flowcast", 3, "the other end closed the connection"),
        (
            b"GET / HTTP/1.1\r\n\r\n",
            3,
            "found `GET / HTTP/1.1\\r\\n` at the other end",
        ),
        (
            b"\x1b[2J\0\xff\xfe 56789abcde",
            3,
            "found `\\x1b[2J\\x00\\xff\\xfe 56789abc` at",
        ),
        (
            b"flowcast-prtt/2\n",
            3,
            "expected flowcast with the protocol flowcast-prtt/1",
        ),
        (
            &numbers(&[u32::MAX]),
            2,
            "4294967295 exchanges, expected 0 to 65536",
        ),
        (&numbers(&[1, 0, 1]), 2, "0 messages, expected 1 to 4096"),
        (
            &numbers(&[1, 1, u32::MAX]),
            2,
            "4294967295 bytes, expected 1 to 67108864",
        ),
        (&begun, 3, "the other end closed the connection"),
    ] {
        let (listening, address) = listener(folder.path());
        let mut stranger = TcpStream::connect(&address).unwrap();
        stranger.write_all(&ENTERS).unwrap();
        stranger.write_all(says).unwrap();
        // The stranger sends no more, but can still read an answer unless the listener has closed the connection.
        let _ = stranger.shutdown(Shutdown::Write);
        let output = listening.wait_with_output().unwrap();
        let said = said(&output);
        assert_eq!(output.status.code(), Some(code), "{said}");
        assert!(said.contains(told) && said.lines().count() == 1, "{said}");
    }
}

#[test]
fn other_connections_do_not_disturb_a_measurement() {
    let folder = tempfile::tempdir().unwrap();
    let (listening, address) = listener(folder.path());
    let says = [
        &b""[..],
        b"F",
        &ENTERS[..23],
        b"flowcast-prtt/1\n",
        b"FLOWRAI2",
        b"GET / HTTP/1.1\r\n\r\n",
        &[255; 100_000],
    ];
    let strangers: Vec<TcpStream> = says
        .into_iter()
        .map(|says| {
            let mut stranger = TcpStream::connect(&address).unwrap();
            // The connection may have been closed already.
            let _ = stranger.write_all(says);
            stranger
        })
        .collect();
    (0..50).for_each(|_| drop(TcpStream::connect(&address).unwrap()));
    let measured = run(
        folder.path(),
        &format!("measure p2p --connect {address} {SHORT} -o x.csv --json"),
    );
    assert!(json(&measured)["samples"].as_u64().unwrap() > 0);
    let output = listening.wait_with_output().unwrap();
    assert!(
        output.status.success() && said(&output).is_empty(),
        "{}",
        said(&output)
    );
    drop(strangers);
}

#[test]
fn a_killed_budgeted_run_resumes_with_its_samples() {
    let folder = tempfile::tempdir().unwrap();
    let partial = folder.path().join("samples.csv.partial");
    let arguments = "measure p2p --adaptive --time-limit 20s --precision 0.001% --limit 100000000 -o samples.csv";
    let mut child = flowcast(folder.path(), arguments)
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let rows = || {
        fs::read_to_string(&partial).map_or(0, |text| {
            text.lines()
                .filter(|line| line.starts_with("round-trip,"))
                .count()
        })
    };
    let began = Instant::now();
    while rows() < 60 {
        assert!(
            began.elapsed() < Duration::from_secs(15),
            "nothing was kept"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!folder.path().join("samples.csv").exists());
    let refused = |arguments: &str| said(&run(folder.path(), arguments));
    assert!(refused("measure p2p --adaptive --time-limit 1s -o samples.csv").contains("--resume"));
    assert!(refused("measure p2p --resume -o samples.csv").contains("another kind of run"));
    let kept = rows();
    let measured = json(&run(
        folder.path(),
        "measure p2p --adaptive --time-limit 1s --resume -o samples.csv --json",
    ));
    assert!(
        measured["round_trips"].as_u64().unwrap() >= kept as u64,
        "{measured}"
    );
    assert!(!partial.exists());
    let whole = fs::read_to_string(folder.path().join("samples.csv")).unwrap();
    let has_rows = whole
        .lines()
        .filter(|line| line.starts_with("round-trip,"))
        .count();
    assert!(
        whole.contains("\nwhat,n,d_us,size_B,time_us,busy_us\n") && has_rows >= kept,
        "{has_rows} of {kept}"
    );
}

#[test]
fn the_doctor_compares_the_clock_with_that_of_a_peer() {
    let folder = tempfile::tempdir().unwrap();
    let (mut answering, address) = listener(folder.path());
    let output = flowcast(folder.path(), &format!("doctor --connect {address} --json"))
        .output()
        .unwrap();
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let checks = report["checks"].as_array().unwrap();
    let clock = checks
        .iter()
        .find(|check| check["name"] == "clock of the peer")
        .expect("it has a check");
    let found = clock["found"].as_str().unwrap();
    // Both ends have the same clock.
    let is_near = found.contains(" us ahead, uncertainty ")
        || found.contains(" us behind, uncertainty ")
        || found.contains(" ns ");
    assert!(
        clock["verdict"] == "good" && is_near && found.contains(" ppm"),
        "{clock}"
    );
    assert!(answering.wait().unwrap().success());

    let absent = run(folder.path(), &format!("doctor --connect {address}"));
    assert!(
        absent.status.code() == Some(3) && said(&absent).contains(&address),
        "{}",
        said(&absent)
    );
    let token = |digit: &str| digit.repeat(32);
    let (mut answering, address) = listener_with(folder.path(), &format!("--token {}", token("a")));
    let stranger = run(
        folder.path(),
        &format!("doctor --connect {address} --token {}", token("b")),
    );
    assert!(stranger.status.code() == Some(3), "{}", said(&stranger));
    answering.kill().unwrap();
    answering.wait().unwrap();
}

#[test]
fn two_processes_measure_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let (mut answering, address) = listener(folder.path());
    let measured = json(&run(
        folder.path(),
        &format!("measure p2p --waiting poll --connect {address} {SHORT} -o samples.csv --json"),
    ));
    assert!(measured["rounds"].as_u64().unwrap() >= 1);
    assert_eq!(measured["provenance"]["path"], format!("tcp to {address}"));
    assert!(answering.wait().unwrap().success());
}

#[test]
fn ranks_of_an_mpi_launcher_meet_at_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let rank = |rank: &str| {
        let mut command = flowcast(
            folder.path(),
            &format!("measure p2p --rendezvous meet {SHORT} -o samples.csv"),
        );
        command
            .env("PMI_RANK", rank)
            .env("PMI_SIZE", "3")
            .stdout(Stdio::null());
        command
    };
    let mut second = rank("1").spawn().unwrap();
    assert!(rank("0").status().unwrap().success());
    assert!(second.wait().unwrap().success());
    assert!(rank("2").status().unwrap().success());
    assert!(folder.path().join("samples.csv").exists() && !folder.path().join("meet").exists());
}

#[test]
fn ranks_without_a_rendezvous_file_name_the_option() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = flowcast(folder.path(), "measure p2p");
    let output = command
        .env("OMPI_COMM_WORLD_RANK", "0")
        .env("OMPI_COMM_WORLD_SIZE", "2")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(3));
    assert!(said(&output).contains("--rendezvous FILE"));
}

#[test]
fn an_interrupted_measurement_resumes_where_it_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let partial = folder.path().join("samples.csv.partial");
    let mut rows = String::new();
    for size in [1, 8193, 16385, 24577] {
        rows += &format!("round-trip,1,0,{size},50\nround-trip,16,0,{size},90\n");
    }
    rows += "round-trip,16,20,1,400\n";
    let head = "# path: tcp over loopback, two threads\nwhat,n,d_us,size_B,time_us\n";
    let kept = in_parts([head, &rows]) + "# part 23 01234567\nround-trip,16,20,1,4";
    fs::write(&partial, kept).unwrap();

    let refused = run(
        folder.path(),
        &format!("measure p2p {SHORT} -o samples.csv"),
    );
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("continue with --resume"));
    let foreign = run(
        folder.path(),
        &format!("measure p2p {SHORT} --burst 8 -o samples.csv --resume"),
    );
    assert_eq!(foreign.status.code(), Some(2));

    let measured = json(&run(
        folder.path(),
        &format!("measure p2p {SHORT} -o samples.csv --resume --json"),
    ));
    assert_eq!(measured["delay_us"], 20.0);
    let rounds = measured["rounds"].as_u64().unwrap();
    assert!(
        measured["points"]
            .as_array()
            .unwrap()
            .iter()
            .all(|point| point["samples"] == rounds + 1),
        "{measured}"
    );
    assert!(!partial.exists());
}

#[test]
fn a_missing_listener_is_reported_and_no_file_is_left() {
    let folder = tempfile::tempdir().unwrap();
    // Nothing listens at the reserved port 1.
    let output = run(
        folder.path(),
        "measure p2p --connect 127.0.0.1:1 -o samples.csv",
    );
    assert_eq!(output.status.code(), Some(3));
    assert!(said(&output).contains("cannot connect to 127.0.0.1:1"));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn an_error_in_a_plan_names_its_field() {
    let folder = tempfile::tempdir().unwrap();
    let output = run(folder.path(), "measure p2p --sizes 1B -o samples.csv");
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).contains("sizes: found 1 sizes, expected 2 to 10000"));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}
