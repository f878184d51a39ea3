//! `flowcast rails serve` and `bench` over loopback, each rail with an address of its own.

use std::{
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
};

use serde_json::Value;

use crate::outcome::json;

struct Server {
    child: Child,
    addresses: Vec<String>,
    token: String,
}

impl Server {
    fn start() -> Server {
        let arguments = [
            "rails",
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--listen",
            "127.0.0.2:0",
            "--once",
        ];
        let mut child = Command::new(env!("CARGO_BIN_EXE_flowcast"))
            .args(arguments)
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
        let mut command = Command::new(env!("CARGO_BIN_EXE_flowcast"));
        command
            .args(["rails", "bench"])
            .args(arguments.split_whitespace())
            .arg("--json")
            .current_dir(folder);
        command.env("FLOWCAST_TOKEN", &self.token);
        for (name, address) in ["a", "b"].iter().zip(&self.addresses) {
            command.args([
                "--connect",
                &format!("{name}={address},loggp=2/0.001/5/20us"),
            ]);
        }
        let output = command.output().unwrap();
        assert!(self.child.wait().unwrap().success());
        json(&output)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Ended already unless a test has failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn schedulers_and_rails_alone_are_measured_and_drawn() {
    let folder = tempfile::tempdir().unwrap();
    let measured = Server::start().bench(
        folder.path(),
        "--burst 1,8 --sizes 1B,4KiB --repetitions 2 --span 1ms --output all.csv --report all.svg",
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
    assert!(
        std::fs::read_to_string(folder.path().join("all.svg"))
            .unwrap()
            .contains("N = 8")
    );
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
fn who_has_no_token_or_another_is_not_served() {
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
