//! Terminals of several widths: no command breaks a word or a command line that it prints, omits one, or writes a line that
//! is unnecessarily wide.

use std::{
    collections::BTreeSet,
    fs::{File, OpenOptions},
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
};

use rustix::{
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{Winsize, tcsetwinsize},
};

use crate::{
    documents::COMMANDS, measure::listener, outcome::labs_can_be_had, rails_live::Server,
    validate::JOURNAL,
};

pub(crate) const WIDTHS: [u16; 4] = [60, 80, 100, 132];
const THREADS: usize = 4;
/// A byte that no output contains.
const END: u8 = 0x1e;

/// Commands with tables, notes or errors that have no document, or a different one, in [`COMMANDS`].
const MORE: &[&str] = &[
    "collectives choose -n {sessions}/choose.in/machine.toml --ranks 8,16 --sizes 64KiB,1MiB",
    "compare {out}/before.json {out}/after.json",
    "compare lu.S.4.dim.gz lu.S.4.dim.gz -n gige-tcp --model independent",
    "explain events lu.S.4.dim.gz -n gige-tcp",
    "fit taurus-calls.csv --pieces 3",
    "fit --collectives collectives.csv --allocations collective-nodes.csv --system lumi",
    "fit reprompi.txt",
    "hpl predict linpack-runs.csv -n infiniband-edr --compute dgemm.csv",
    "mapping fill --ranks 8 --nodes 4",
    "mapping 2-per-node --ranks 4 --hosts n1,n2 --format openmpi",
    "measure pairs --show pairs.csv",
    "networks show nosuch",
    "nosuch",
    "place is.S.4.dim.gz -n infiniband-hdr --nodes 2 --ranks-per-node 2",
    "predict --help",
    "predict -h",
    "predict deadlock.dim -n gige-tcp",
    "predict lu.S.4.dim.gz -n gige-tcp -n infiniband-ndr200 -n ethernet-10g-tcp",
    "predict lu.S.4.dim.gz -n gige-tcp -n infiniband-hdr --mapping fill --mapping round-robin --no-interval",
    "predict lu.S.4.dim.gz -n gige-tcp --tables wrong",
    "predict lu.S.4.dim.gz -n gige-tcp --set nic.latency=5",
    "record --show heat.rec",
    "sweep lu.S.4.dim.gz -n gige-tcp -n infiniband-hdr --grid latency=1us..10us:2",
    "validate pattern --no-run --report {out}/page.html",
];

/// The output depends on the speed of this machine.
const VARIES: &[&str] = &["bench "];

/// The output is a file, whose lines are never broken.
const FILES: &[&str] = &["networks show", "sweep "];

#[test]
fn commands_fit_terminals_of_every_width() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("page.html.journal"), JOURNAL).unwrap();
    for (file, seconds) in [("before.json", "1.0"), ("after.json", "1.5")] {
        let ranks =
            format!(r#"{{"end_s":{seconds},"compute_s":0.5,"blocked_s":0.5,"overhead_s":0}}"#);
        let saved =
            format!(r#"{{"schema":"flowcast/replay/1","makespan_s":{seconds},"ranks":[{ranks}]}}"#);
        std::fs::write(folder.path().join(file), saved).unwrap();
    }
    let help = helps(folder.path());
    let lines: Vec<&str> = COMMANDS.iter().chain(MORE).copied().collect();
    let lines: Vec<&str> = lines
        .into_iter()
        .chain(help.iter().map(String::as_str))
        .collect();
    let faults: Vec<String> = thread::scope(|scope| {
        let parts = lines.chunks(lines.len().div_ceil(THREADS));
        let parts = parts.map(|part| {
            let folder = folder.path();
            scope.spawn(move || {
                part.iter()
                    .flat_map(|line| faults(line, folder))
                    .collect::<Vec<_>>()
            })
        });
        let parts: Vec<_> = parts.collect();
        parts
            .into_iter()
            .flat_map(|part| part.join().unwrap())
            .collect()
    });
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Commands that measure, and words of their output. Numbers and notes differ from run to run. `{0}` and `{1}` are the
/// addresses of two served rails, `{2}` is the address of a measurement.
const LIVE: &[(&str, &str)] = &[
    (
        "doctor",
        "check found launcher recorder interfaces frequency governor clock source time synchronisation swap other programs \
         resolution labs",
    ),
    (
        "demo",
        "network predicted time in communication slowest rank what limits it loopback gige-tcp infiniband-2006 \
         ethernet-10g-tcp flowcast-demo.html",
    ),
    (
        "lab cable-check --count 20",
        "rail from late (median) Mbit/s nominal rate error frames lost by seed astray node0 node1",
    ),
    (
        "measure check gige-tcp --connect {2}",
        "parameter size in a row predicted from to measured samples latency bandwidth message rate",
    ),
    (
        "measure clocks --lab fair --lab-set cluster.nodes=2 --count 3 --repetitions 3 --span 50ms --delay 50ms",
        "node host offset drift deviation asymmetry error after hold node0 node1",
    ),
    (
        "measure conflicts --no-self-test --lab fair --lab-set cluster.nodes=2 --flows 2 --size 200KB --window 0B --only out -o {width}.csv",
        "conflict flows repetitions longest slowdown alone-half random-1 random-6",
    ),
    (
        "measure p2p --sizes 1KiB,64KiB,1MiB --time-limit 300ms -o {width}-samples.csv",
        "size round trip 16 in a row time between messages KiB MiB samples rounds and",
    ),
    (
        "measure pairs --no-self-test --lab fair --lab-set cluster.nodes=4 --sizes 1B -o pairs-{width}.csv",
        "size pairs usual time",
    ),
    (
        "rails bench --connect a={0},loggp=2/0.001/5/20us --connect b={1},loggp=2/0.001/5/20us --burst 8 --sizes 4KiB --repetitions 2 --span 1ms",
        "earliest-delivery round-robin",
    ),
];

#[test]
fn commands_that_measure_fit_terminals() {
    let folder = tempfile::tempdir().unwrap();
    let mut missing = Vec::new();
    let labs = labs_can_be_had("commands_that_measure_fit_terminals");
    for (line, names) in LIVE
        .iter()
        .filter(|(line, _)| labs || !line.contains("lab "))
    {
        for width in WIDTHS {
            let rails = Server::start();
            let (mut answering, address) = listener(folder.path());
            let ends = rails.addresses.iter().chain([&address]).enumerate();
            let line = ends.fold(
                line.replace("{width}", &width.to_string()),
                |line, (end, address)| line.replace(&format!("{{{end}}}"), address),
            );
            let mut command = flowcast(&line, folder.path());
            command.current_dir(folder.path());
            if line.starts_with("rails") {
                command.env("FLOWCAST_TOKEN", &rails.token);
            }
            let text = in_terminal(command, width);
            let _ = answering.kill();
            answering.wait().unwrap();
            let words = words("", &text);
            let absent = names.split(' ').filter(|name| !words.contains(*name));
            missing
                .extend(absent.map(|name| format!("{line}: {width}: {name} is missing\n{text}")));
            missing.extend(too_wide(&text, width).map(|of| format!("{line}: too wide: {of}")));
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

/// Command lines for the help of every command.
fn helps(folder: &Path) -> Vec<String> {
    assert!(flowcast("man {out}", folder).status().unwrap().success());
    let pages = std::fs::read_dir(folder.join("man1")).unwrap();
    let names = pages.map(|page| page.unwrap().path().file_stem().unwrap().to_owned());
    let spaced = |name: &str| name.replace('-', " ").replace("cable check", "cable-check");
    let commands = names.map(|name| spaced(name.to_str().unwrap()));
    let below = commands.map(|command| command.replacen("flowcast", "", 1));
    below
        .map(|command| format!("{command} --help").trim_start().to_owned())
        .collect()
}

/// `true` for a line of which people copy all or a part between backquotes into a shell.
fn is_command(line: &str) -> bool {
    let starts = ["  flowcast ", "  mpirun ", "  srun "];
    starts.iter().any(|start| line.starts_with(start)) || line.contains("$ flowcast ")
}

/// Commands in an output: whole lines that are commands, and texts between backquotes.
fn commands(text: &str) -> BTreeSet<String> {
    let joined = text.replace(" \\\n", " ");
    let in_one = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let lines = joined.lines().filter(|line| is_command(line)).map(in_one);
    let quoted = joined
        .lines()
        .flat_map(|line| line.split('`').skip(1).step_by(2));
    lines.chain(quoted.map(str::to_owned)).collect()
}

/// Number of words of a line. A quotation in a command, or a quoted command, is one word, and so is a command with a
/// comment.
fn parts(line: &str) -> usize {
    if is_command(line) && line.contains(" #") {
        return 1;
    }
    let quote = if is_command(line) { '\'' } else { '`' };
    let outside = line.split(quote).step_by(2).collect::<Vec<_>>().join("x");
    outside.split_whitespace().count()
}

/// Lines of an output that are unnecessarily wide.
pub(crate) fn too_wide(text: &str, width: u16) -> impl Iterator<Item = &str> {
    let columns = |line: &str| line.trim_end().chars().count();
    text.lines()
        .filter(move |line| columns(line) > width.into() && parts(line) > 1)
}

/// Description of each word that a command breaks or omits at some width, and of each line that is too wide.
fn faults(line: &str, folder: &Path) -> Vec<String> {
    let piped = flowcast(line, folder).output().unwrap();
    let unlimited = String::from_utf8_lossy(&[piped.stdout, piped.stderr].concat()).into_owned();
    let in_width = |width: u16| {
        let text = in_terminal(flowcast(line, folder), width);
        let is_file = FILES.iter().any(|file| line.starts_with(file));
        let too_wide = too_wide(&text, width).filter(|_| !is_file);
        let (found, expected) = (words(line, &text), words(line, &unlimited));
        let broken = found
            .difference(&expected)
            .map(|word| format!("{word} is broken"));
        let missing = expected
            .difference(&found)
            .map(|word| format!("{word} is missing"));
        let (found, expected) = (commands(&text), commands(&unlimited));
        let cut = expected.difference(&found);
        let all: Vec<String> = too_wide
            .map(|line| format!("too wide: {line}"))
            .chain(broken)
            .chain(missing)
            .chain(cut.map(|command| format!("`{command}` is cut")))
            .map(|fault| format!("{line}: {width}: {fault}"))
            .collect();
        all
    };
    WIDTHS.into_iter().flat_map(in_width).collect()
}

/// Words of an output, without rules and empty values; without numbers where they vary.
fn words(command: &str, text: &str) -> BTreeSet<String> {
    let varies = VARIES.iter().any(|varying| command.starts_with(varying));
    text.split_whitespace()
        .map(|word| word.trim_end_matches(':').trim_matches('─'))
        .filter(|word| !matches!(*word, "" | "-" | "\\"))
        .filter(|word| !varies || !word.contains(|letter: char| letter.is_ascii_digit()))
        .map(str::to_owned)
        .collect()
}

fn flowcast(line: &str, folder: &Path) -> Command {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut command = Command::new(env!("CARGO_BIN_EXE_flowcast"));
    let sessions = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cmd");
    let line = line.replace("{out}", folder.to_str().unwrap());
    command
        .args(line.replace("{sessions}", sessions).split(' '))
        .current_dir(examples)
        .env("XDG_DATA_HOME", "/nonexistent")
        .env("XDG_RUNTIME_DIR", folder)
        .stdin(Stdio::null());
    command
}

/// Output and errors of a command in a terminal of `width` columns.
pub(crate) fn in_terminal(mut command: Command, width: u16) -> String {
    let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&controller).unwrap();
    unlockpt(&controller).unwrap();
    let path = PathBuf::from(
        ptsname(&controller, Vec::new())
            .unwrap()
            .into_string()
            .unwrap(),
    );
    let terminal = OpenOptions::new()
        .read(true)
        .write(true)
        .open(path)
        .unwrap();
    let size = Winsize {
        ws_row: 50,
        ws_col: width,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    tcsetwinsize(&terminal, size).unwrap();
    let mut child = command
        .env("TERM", "dumb")
        .env("NO_COLOR", "1")
        .stdout(terminal.try_clone().unwrap())
        .stderr(terminal.try_clone().unwrap())
        .spawn()
        .unwrap();
    // Linux may lose unread output if all processes have closed a terminal. An end mark is therefore written after the
    // output.
    let end = thread::spawn(move || {
        child.wait().unwrap();
        (&terminal).write_all(&[END]).unwrap();
        terminal
    });
    let mut text = Vec::new();
    BufReader::new(File::from(controller))
        .read_until(END, &mut text)
        .unwrap();
    end.join().unwrap();
    String::from_utf8_lossy(&text).replace(['\r', END.into()], "")
}
