//! `flowcast rails serve` and `bench` over loopback. Each rail has its own address.

use std::{
    fs,
    io::{BufRead, BufReader, Read},
    net::{TcpListener, TcpStream},
    path::Path,
    process::{Child, Command, Stdio},
    thread,
};

use serde_json::Value;

use crate::outcome::{json, labs_can_be_had, said};

pub(crate) struct Server {
    child: Child,
    pub addresses: Vec<String>,
    pub token: String,
}

impl Server {
    pub(crate) fn start() -> Server {
        Server::serving("--once")
    }

    fn serving(how: &str) -> Server {
        let arguments = "rails serve --listen 127.0.0.1:0 --listen 127.0.0.2:0";
        let mut child = Command::new(env!("CARGO_BIN_EXE_flowcast"))
            .args(arguments.split(' ').chain(how.split_whitespace()))
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut addresses: Vec<String> = lines.take(3).map(Result::unwrap).collect();
        let token = addresses
            .pop()
            .unwrap()
            .strip_prefix("token ")
            .unwrap()
            .to_owned();
        Server {
            child,
            addresses,
            token,
        }
    }

    fn bench(mut self, folder: &Path, arguments: &str) -> Value {
        let flowcast = Command::new(env!("CARGO_BIN_EXE_flowcast"));
        let measured = json(&self.client(flowcast, folder, arguments).output().unwrap());
        assert!(self.child.wait().unwrap().success());
        measured
    }

    /// `flowcast` with the arguments of a bench.
    fn client(&self, mut flowcast: Command, folder: &Path, arguments: &str) -> Command {
        flowcast
            .args(["rails", "bench", "--json"])
            .args(arguments.split_whitespace())
            .current_dir(folder)
            .env("FLOWCAST_TOKEN", &self.token);
        for (name, address) in ["a", "b"].iter().zip(&self.addresses) {
            let rail = format!("{name}={address},loggp=2/0.001/5/20us");
            flowcast.args(["--connect", &rail]);
        }
        flowcast
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The process has ended already unless a test has failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn schedulers_and_rails_alone_are_measured() {
    let folder = tempfile::tempdir().unwrap();
    let measured = Server::start().bench(
        folder.path(),
        "--burst 1,8 --sizes 1B,4KiB --repetitions 2 --span 1ms --output all.csv",
    );
    let points = measured["points"].as_array().unwrap();
    assert_eq!(points.len(), 4);
    for point in points {
        let results = point["results"].as_array().unwrap();
        assert_eq!(results.len(), 17, "fifteen schedulers and two rails alone");
        assert!(
            results
                .iter()
                .all(|result| result["rate_Mbit_s"].as_f64().unwrap() > 0.0)
        );
    }
    let rows = std::fs::read_to_string(folder.path().join("all.csv"))
        .unwrap()
        .lines()
        .filter(|line| !line.starts_with('#'))
        .count();
    assert_eq!(rows, 1 + 4 * 17 * 2, "the names and every measured time");
}

#[test]
fn a_rail_withdrawn_in_the_middle_loses_and_repeats_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let counted = Server::start().bench(
        folder.path(),
        "--count 20000 --withdraw b --scheduler round-robin",
    );
    assert_eq!(counted["received"], 20_000);
    assert_eq!([&counted["out_of_order"], &counted["spoilt"]], [0, 0]);
    assert_eq!(counted["rails_lost"], 1);
    assert!(counted["given_B"][1].as_u64().unwrap() > 0, "{counted}");
}

#[test]
fn a_client_without_the_token_is_not_served() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start();
    let bench = |token: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_flowcast"));
        command
            .args(["rails", "bench", "--sizes", "1B", "--repetitions", "1"])
            .args(token)
            .current_dir(folder.path());
        command
            .args([
                "--connect",
                &format!("a={},loggp=2/0.001/5/20us", server.addresses[0]),
            ])
            .env_remove("FLOWCAST_TOKEN");
        let output = command.output().unwrap();
        (
            output.status.code(),
            String::from_utf8(output.stderr).unwrap(),
        )
    };
    let (code, said) = bench(&[]);
    assert_eq!(code, Some(2));
    assert!(
        said.contains("found no token, expected --token TOKEN"),
        "{said}"
    );
    let (code, said) = bench(&["--token", "00000000000000000000000000000000"]);
    assert_eq!(code, Some(3), "{said}");
    let measured = server.bench(
        folder.path(),
        "--burst 1 --sizes 1B --repetitions 1 --span 1ms",
    );
    assert_eq!(measured["points"].as_array().unwrap().len(), 1);
}

/// Near end of a path to `to` that carries this number of bytes, then falls silent and keeps the connection.
fn falls_silent(to: &str, after: u64) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (near, to) = (listener.local_addr().unwrap(), to.to_owned());
    thread::spawn(move || {
        let (near, far) = (
            listener.accept().unwrap().0,
            TcpStream::connect(to).unwrap(),
        );
        let (mut back_from, mut back_to) = (far.try_clone().unwrap(), near.try_clone().unwrap());
        thread::spawn(move || std::io::copy(&mut back_from, &mut back_to));
        let carried = std::io::copy(&mut (&near).take(after), &mut &far);
        assert_eq!(carried.unwrap(), after);
        loop {
            thread::park();
        }
    });
    near.to_string()
}

#[test]
fn a_rail_that_falls_silent_blocks_neither_end() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::start();
    server.addresses[0] = falls_silent(&server.addresses[0], 1_000_000);
    let counted = server.bench(
        folder.path(),
        "--count 20000 --size 1KiB --scheduler round-robin",
    );
    assert_eq!(counted["received"], 20_000);
    assert_eq!([&counted["out_of_order"], &counted["spoilt"]], [0, 0]);
    assert!(counted["rails_lost"].as_u64().unwrap() > 0, "{counted}");
}

#[test]
fn the_next_client_is_served_after_a_bench_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::serving("");
    let flowcast = || Command::new(env!("CARGO_BIN_EXE_flowcast"));
    let endless = "--burst 1 --sizes 1B --repetitions 2 --span 1ms -o killed.csv";
    let endless = endless.replace("--repetitions 2", "--repetitions 1000000");
    let mut killed = server
        .client(flowcast(), folder.path(), &endless)
        .spawn()
        .unwrap();
    // The measurement runs once its samples are stored.
    while !folder.path().join("killed.csv.partial").exists() {
        assert!(killed.try_wait().unwrap().is_none());
    }
    killed.kill().unwrap();
    killed.wait().unwrap();
    let counted = server
        .client(flowcast(), folder.path(), "--count 1000")
        .output()
        .unwrap();
    assert_eq!(json(&counted)["received"], 1000);
}

/// The command on a machine with this load, if namespaces are available.
fn under_load(folder: &Path, load: &str) -> Command {
    fs::write(
        folder.join("loadavg"),
        format!("{load} 0.00 0.00 1/100 1\n"),
    )
    .unwrap();
    let mut command = Command::new("unshare");
    command.args(["--map-root-user", "--mount", "sh", "-c"]);
    command.args([
        "mount --bind \"$0\" /proc/loadavg && exec \"$@\"",
        "loadavg",
        env!("CARGO_BIN_EXE_flowcast"),
    ]);
    command
}

#[test]
fn a_bench_on_a_busy_machine_is_marked() {
    if !labs_can_be_had("a_bench_on_a_busy_machine_is_marked") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for (load, busy) in [("4321.5", true), ("0.00", false)] {
        let mut server = Server::start();
        let short = "--burst 1 --sizes 1B --repetitions 1 --span 1ms --scheduler gap";
        let output = server
            .client(under_load(folder.path(), load), folder.path(), short)
            .output()
            .unwrap();
        assert!(server.child.wait().unwrap().success());
        let measured = json(&output);
        let mark = format!("other programs: a load of {load}");
        let provenance = measured["provenance"]["disturbed_by"]
            .as_str()
            .unwrap_or_default();
        for text in [provenance, &measured["notes"].to_string(), &said(&output)] {
            assert_eq!(text.contains(&mark), busy, "{load}: {text}");
        }
    }
}
