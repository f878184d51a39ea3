//! Ten thousand connections that stall, trickle, send garbage, vanish and come twice, at each listening end. Clients with
//! the token are served during the attack and afterwards, and memory and open files do not grow.

use std::{
    collections::VecDeque,
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    process::{Child, Command, Output, Stdio},
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    time::{Duration, Instant},
};

use crate::outcome::json;
use flowcast_rails::frame::{FrameHeader, FrameKind, FramePiece, UNORDERED, encode};

const STRANGERS: usize = 10_000;
const AT_ONCE: usize = 4;
/// Number of connections that each attacker keeps open.
const HELD: usize = 50;
/// Allowed growth of a listening end.
const MORE_MEMORY: u64 = 16 << 20;
const MORE_FILES: usize = 64;
const TOKEN: &str = "000102030405060708090a0b0c0d0e0f";

struct Listening {
    child: Child,
    /// Lines that it has printed.
    said: Vec<String>,
}

impl Listening {
    /// Starts a listening end and reads this number of lines from its standard output or, if that is empty, its log.
    fn start(arguments: &str, lines: usize) -> Listening {
        let mut command = Command::new(env!("CARGO_BIN_EXE_flowcast"));
        command
            .args(arguments.split_whitespace())
            .env("FLOWCAST_TOKEN", TOKEN);
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let log = arguments.starts_with("measure");
        let from: &mut dyn Read = if log {
            child.stderr.as_mut().unwrap()
        } else {
            child.stdout.as_mut().unwrap()
        };
        let said = BufReader::new(from)
            .lines()
            .take(lines)
            .map(Result::unwrap)
            .collect();
        Listening { child, said }
    }

    fn memory(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:"))
            .unwrap();
        line.trim()
            .strip_suffix(" kB")
            .unwrap()
            .parse::<u64>()
            .unwrap()
            << 10
    }

    fn files(&self) -> usize {
        fs::read_dir(format!("/proc/{}/fd", self.child.id()))
            .unwrap()
            .count()
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A frame that introduces a rail with a wrong token.
fn wrong_hello() -> Vec<u8> {
    let text = [
        &b"FLOWRAI2"[..],
        &7u64.to_le_bytes(),
        &[0],
        &[0; 32],
        &[9; 16],
    ]
    .concat();
    let header = FrameHeader {
        kind: FrameKind::Hello,
        piece: FramePiece::WHOLE,
        sequence: 0,
        order: UNORDERED,
        acknowledged: 0,
        arrived: 0,
        credit: 0,
    };
    let mut frame = Vec::new();
    encode(&mut frame, &header, &text);
    frame
}

/// Connects one stranger. Open connections are held.
fn come(number: usize, address: &str, held: &mut VecDeque<TcpStream>) {
    // A listening end whose queue of connections is full may refuse one.
    let Ok(mut stream) = TcpStream::connect(address) else {
        return;
    };
    stream
        .set_write_timeout(Some(Duration::from_millis(100)))
        .unwrap();
    let hello = wrong_hello();
    let garbage: Vec<u8> = (0..600).map(|at| (number * 31 + at * 17) as u8).collect();
    // The connection may have been closed already, which is the purpose of this test.
    let _ = match number % 7 {
        0 => Ok(()),
        1 => stream.write_all(&hello[..number % hello.len()]),
        2 => stream.write_all(&garbage),
        3 => return,
        4 => stream
            .write_all(&hello)
            .and_then(|()| stream.write_all(&hello)),
        5 => stream
            .write_all(b"FLOWPEER")
            .and_then(|()| stream.write_all(&[0; 16])),
        _ => stream.write_all(&b"FLOWPEER0123456789"[..number % 18]),
    };
    for slow in held.iter_mut().take(3) {
        let _ = slow.write(&[0]);
    }
    held.push_back(stream);
    if held.len() > HELD {
        held.pop_front();
    }
}

/// Connects all strangers, and repeatedly a client that may enter. Returns the number of times that it entered.
fn attack(listening: &Listening, address: &str, enter: impl Fn() -> bool + Sync) -> usize {
    let (memory, files) = (listening.memory(), listening.files());
    let (next, is_over, entered) = (
        AtomicUsize::new(0),
        AtomicBool::new(false),
        AtomicUsize::new(0),
    );
    let begun = Instant::now();
    std::thread::scope(|scope| {
        let strangers = || {
            let mut held = VecDeque::new();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= STRANGERS {
                    break;
                }
                come(number, address, &mut held);
            }
        };
        let all: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(strangers)).collect();
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                entered.fetch_add(usize::from(enter()), Ordering::Relaxed);
            }
        });
        all.into_iter().for_each(|one| one.join().unwrap());
        is_over.store(true, Ordering::Relaxed);
    });
    println!(
        "{STRANGERS} strangers in {:.1} s, {entered:?} conversations meanwhile",
        begun.elapsed().as_secs_f64()
    );
    assert!(
        listening.memory() < memory + MORE_MEMORY,
        "{} bytes, {memory} before",
        listening.memory()
    );
    assert!(
        listening.files() < files + MORE_FILES,
        "{} files, {files} before",
        listening.files()
    );
    entered.into_inner()
}

fn flowcast(arguments: &str) -> Output {
    let mut command = Command::new("timeout");
    command
        .args(["60", env!("CARGO_BIN_EXE_flowcast")])
        .args(arguments.split_whitespace());
    command.env("FLOWCAST_TOKEN", TOKEN).output().unwrap()
}

#[test]
fn rails_are_served_among_ten_thousand_strangers() {
    let server = Listening::start("rails serve --listen 127.0.0.1:0", 2);
    let address = server.said[0].clone();
    let bench = format!(
        "rails bench --connect a={address},loggp=2/0.001/5/20us --burst 1 --sizes 64B --repetitions 1 --span 1ms --json"
    );
    let entered = attack(&server, &address, || flowcast(&bench).status.success());
    assert!(entered > 0);
    assert_eq!(
        json(&flowcast(&bench))["points"].as_array().unwrap().len(),
        1
    );
}

#[test]
fn a_measurement_waits_for_its_peer_among_ten_thousand_strangers() {
    let mut answering = Listening::start("measure p2p --listen 127.0.0.1:0", 1);
    let address = answering.said[0]
        .strip_prefix("listening at ")
        .unwrap()
        .to_owned();
    attack(&answering, &address, || {
        std::thread::sleep(Duration::from_millis(10));
        false
    });
    let measure =
        format!("measure p2p --connect {address} --time-limit 300ms --size 8KiB --step 4KiB");
    let output = flowcast(&measure);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(answering.child.wait().unwrap().success());
}
