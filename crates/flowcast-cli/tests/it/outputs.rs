//! Files that commands write never replace an input, are never incomplete, and are never left behind.

use std::{
    fs,
    os::unix::process::ExitStatusExt,
    path::Path,
    process::{Command, Output},
    time::{Duration, Instant},
};

use crate::interruptible;

fn flowcast(folder: &Path, arguments: &str) -> Output {
    let mut command = Command::new("timeout");
    command
        .arg("100")
        .arg(env!("CARGO_BIN_EXE_flowcast"))
        .args(arguments.split(' '))
        .current_dir(folder);
    command.output().unwrap()
}

fn with_inputs() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let made = flowcast(
        folder.path(),
        "generate shift --ranks 4 --iterations 2 -o q.dim",
    );
    assert!(made.status.success(), "{}", said(&made));
    let shown = flowcast(folder.path(), "networks show gige-tcp");
    fs::write(folder.path().join("n.toml"), shown.stdout).unwrap();
    fs::write(
        folder.path().join("s.csv"),
        "n,d_us,size_B,prtt_us\n1,0,1,9\n",
    )
    .unwrap();
    fs::write(folder.path().join("x.pattern"), "0 -> 1 4MB\n").unwrap();
    folder
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn no_command_overwrites_its_input() {
    let folder = with_inputs();
    fs::create_dir(folder.path().join("sub")).unwrap();
    std::os::unix::fs::symlink("../q.dim", folder.path().join("sub/link")).unwrap();
    let before: Vec<Vec<u8>> = ["q.dim", "n.toml", "s.csv"]
        .map(|name| fs::read(folder.path().join(name)).unwrap())
        .into();
    for arguments in [
        "compile q.dim -o q.dim",
        "compile q.dim -o sub/link",
        "convert q.dim --format goal -o ./q.dim",
        "fit s.csv -o s.csv",
        "fit s.csv -o s.csv",
        "sweep q.dim -n gige-tcp --grid latency=1us,2us -o q.dim",
        "sweep q.dim -n n.toml --grid latency=1us,2us -o n.toml",
        "predict q.dim -n gige-tcp --report q.dim",
        "predict q.dim -n n.toml --report n.toml",
        "predict x.pattern -n gige-tcp --report x.pattern",
        "mapping q.dim --ranks 4 --nodes 2 -o q.dim",
    ] {
        let refused = flowcast(folder.path(), arguments);
        assert_eq!(
            refused.status.code(),
            Some(2),
            "{arguments}: {}",
            said(&refused)
        );
        assert!(
            said(&refused).contains("which is an input"),
            "{arguments}: {}",
            said(&refused)
        );
    }
    let after: Vec<Vec<u8>> = ["q.dim", "n.toml", "s.csv"]
        .map(|name| fs::read(folder.path().join(name)).unwrap())
        .into();
    assert!(before == after);
}

#[test]
fn outputs_are_checked_before_the_work() {
    let folder = with_inputs();
    for (arguments, expected) in [
        (
            "--write messages=one.csv --write ranks=one.csv",
            "--write and --write: found one.csv for both",
        ),
        (
            "--write messages=x.xlsx",
            "--write: found `x.xlsx`, expected a name that ends in .csv or .parquet",
        ),
        (
            "--write perfetto=x.foo",
            "--write: found `x.foo`, expected a name that ends in .pftrace",
        ),
        (
            "--report /nonexist/x.html",
            "--report: cannot write /nonexist/x.html: found no folder /nonexist",
        ),
        (
            "--write paraver=x.prv --report x.pcf",
            "--write and --report: found x.pcf for both",
        ),
        (
            "--report sub",
            "--report: found the folder sub, expected the name of a file",
        ),
    ] {
        let _ = fs::create_dir(folder.path().join("sub"));
        let refused = flowcast(
            folder.path(),
            &format!("predict q.dim -n gige-tcp {arguments}"),
        );
        assert_eq!(
            refused.status.code(),
            Some(2),
            "{arguments}: {}",
            said(&refused)
        );
        assert!(
            said(&refused).contains(expected),
            "{arguments}: {}",
            said(&refused)
        );
    }
    assert!(!folder.path().join("one.csv").exists());
}

#[test]
fn the_standard_output_is_written_through() {
    let folder = with_inputs();
    let piped = flowcast(
        folder.path(),
        "generate shift --ranks 4 --iterations 2 -o /dev/stdout",
    );
    assert_eq!(piped.stdout, fs::read(folder.path().join("q.dim")).unwrap());
    // A shell's redirection continues after the existing content.
    let script = "{ echo first; \"$0\" generate shift --ranks 4 --iterations 2 -o /dev/stdout; echo last; } > all";
    let mut shell = Command::new("sh");
    shell
        .args(["-c", script, env!("CARGO_BIN_EXE_flowcast")])
        .current_dir(folder.path());
    assert!(shell.status().unwrap().success());
    let all = fs::read_to_string(folder.path().join("all")).unwrap();
    assert_eq!(
        all,
        format!("first\n{}last\n", String::from_utf8(piped.stdout).unwrap())
    );
}

#[test]
fn manual_pages_are_written_with_the_names_of_their_commands() {
    let folder = tempfile::tempdir().unwrap();
    assert!(flowcast(folder.path(), "man pages").status.success());
    for name in ["flowcast.1", "flowcast-predict.1", "flowcast-rails-bench.1"] {
        let page = fs::read_to_string(folder.path().join("pages/man1").join(name)).unwrap();
        assert!(page.contains(".TH "), "{name}");
    }
}

#[test]
fn the_standard_input_is_an_input() {
    let folder = with_inputs();
    let before = fs::read(folder.path().join("q.dim")).unwrap();
    for arguments in [
        "predict - -n gige-tcp --write ranks=in.csv",
        "compile - -o in.csv",
        "convert - --format goal -o link",
    ] {
        fs::write(folder.path().join("in.csv"), &before).unwrap();
        let _ = std::os::unix::fs::symlink("in.csv", folder.path().join("link"));
        let mut command = Command::new(env!("CARGO_BIN_EXE_flowcast"));
        command
            .args(arguments.split(' '))
            .current_dir(folder.path());
        let refused = command
            .stdin(fs::File::open(folder.path().join("in.csv")).unwrap())
            .output()
            .unwrap();
        assert_eq!(
            refused.status.code(),
            Some(2),
            "{arguments}: {}",
            said(&refused)
        );
        assert!(
            said(&refused).contains("which is an input (/dev/stdin)"),
            "{arguments}: {}",
            said(&refused)
        );
        assert!(
            fs::read(folder.path().join("in.csv")).unwrap() == before,
            "{arguments}"
        );
    }
}

#[test]
fn a_killed_command_leaves_no_temporary_file() {
    for signal in [
        "INT", "TERM", "HUP", "QUIT", "XCPU", "USR1", "USR2", "ALRM", "VTALRM", "PROF",
    ] {
        for format in ["dim", "ti"] {
            let folder = tempfile::tempdir().unwrap();
            let arguments = format!(
                "generate alltoall --ranks 256 --iterations 300 --format {format} -o x.out"
            );
            let mut command = interruptible();
            let mut child = command
                .args(arguments.split(' '))
                .current_dir(folder.path())
                .spawn()
                .unwrap();
            let began = Instant::now();
            while fs::read_dir(folder.path()).unwrap().count() == 0 {
                assert!(began.elapsed() < Duration::from_secs(60));
                std::thread::yield_now();
            }
            Command::new("kill")
                .args(["-s", signal, &child.id().to_string()])
                .status()
                .unwrap();
            let status = child.wait().unwrap();
            assert!(status.signal().is_some(), "{format} {signal}: {status}");
            let left: Vec<_> = fs::read_dir(folder.path())
                .unwrap()
                .map(|entry| entry.unwrap().file_name())
                .collect();
            assert!(left.is_empty(), "{format} {signal}: {left:?}");
        }
    }
}

#[test]
fn limits_of_the_system_are_reported_like_a_full_disk() {
    let folder = with_inputs();
    let made = flowcast(
        folder.path(),
        "generate shift --ranks 16 --iterations 300 -o big.dim",
    );
    assert!(made.status.success(), "{}", said(&made));
    let before = fs::read_dir(folder.path()).unwrap().count();
    for (limit, arguments) in [
        ("-f 1", "convert big.dim --format goal -o x"),
        ("-f 1", "convert big.dim --format ti -o x.list"),
        ("-f 1", "compile big.dim -o x"),
        (
            "-f 1",
            "predict big.dim -n gige-tcp --write messages=x.csv --write ranks=r.csv",
        ),
        ("-f 0", "mapping fill --ranks 4 --nodes 2 -o x.map"),
        ("-f 0", "networks show gige-tcp"),
    ] {
        let mut shell = Command::new("sh");
        // The shell keeps the files that it has opened. Its own standard output is a file.
        let script = format!("ulimit {limit}; exec \"$0\" {arguments} > out 2> /dev/null");
        shell
            .args(["-c", &script, env!("CARGO_BIN_EXE_flowcast")])
            .current_dir(folder.path());
        let status = shell.status().unwrap();
        assert_eq!(
            status.code(),
            Some(3),
            "ulimit {limit}: {arguments}: {status}"
        );
        fs::remove_file(folder.path().join("out")).unwrap();
        let left: Vec<_> = fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        assert_eq!(left.len(), before, "ulimit {limit}: {arguments}: {left:?}");
    }
    // With so few descriptors, there is none or one left for the file, or the program cannot even be loaded.
    let code = |most: u32| {
        let script = format!(
            "exec > /dev/null 2> /dev/null; ulimit -n {most}; exec \"$0\" compile big.dim -o x"
        );
        let mut shell = Command::new("sh");
        shell
            .args(["-c", &script, env!("CARGO_BIN_EXE_flowcast")])
            .current_dir(folder.path())
            .status()
            .unwrap()
            .code()
    };
    let codes: Vec<Option<i32>> = (3..10).map(code).collect();
    assert!(
        codes.contains(&Some(3))
            && codes
                .iter()
                .all(|code| [0, 3, 127].map(Some).contains(code)),
        "{codes:?}"
    );
}

#[test]
fn a_full_standard_output_is_reported() {
    let folder = with_inputs();
    let products = "node,intercept_s,s_per_mnk,resid_per_mnk\n1,1e-6,1e-10,0\n";
    fs::write(folder.path().join("d.csv"), products).unwrap();
    let full = |words: &str, shell: Option<&str>| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_flowcast"));
        command
            .args(words.split(' '))
            .envs(shell.map(|shell| ("COMPLETE", shell)))
            .env("_CLAP_COMPLETE_INDEX", "1")
            .current_dir(folder.path())
            .stdout(fs::File::create("/dev/full").unwrap());
        command.output().unwrap()
    };
    for (arguments, shell) in [
        // Request of a shell that completes words.
        ("-- flowcast pre", Some("bash")),
        ("-- flowcast pre", Some("fish")),
        ("--help", None),
        ("help predict", None),
        ("predict -h", None),
        ("--version", None),
        ("completions bash", None),
        ("networks", None),
        ("networks show gige-tcp --json", None),
        ("networks --tables csv", None),
        ("predict q.dim -n gige-tcp", None),
        ("generate shift --ranks 4", None),
        ("generate shift --ranks 4 --format fct", None),
        ("generate stream --ranks 4 --flows 3", None),
        ("generate hpl --n 100 --grid 2x2 --compute d.csv", None),
        ("mapping fill --ranks 4 --nodes 2", None),
    ] {
        let output = full(arguments, shell);
        let said = said(&output);
        assert_eq!(output.status.code(), Some(3), "{arguments}: {said}");
        assert!(said.contains("No space left"), "{arguments}: {said}");
    }
}

#[test]
fn a_standard_error_that_cannot_be_written_ends_nothing() {
    let folder = with_inputs();
    for (arguments, code) in [
        (
            "predict q.dim -n gige-tcp --set nic.latency=5us --explain",
            0,
        ),
        ("predict missing -n gige-tcp", 2),
        (
            "sweep q.dim -n gige-tcp --grid latency=1us,5us -o grid.csv",
            0,
        ),
        ("fit s.csv -o f.toml", 2),
        ("record -o x.rec -- true", 0),
        ("lab run -- true", 2),
        ("no-such-command", 2),
    ] {
        let with_error = |redirection: &str| {
            let mut shell = Command::new("sh");
            let script = format!("\"$0\" {arguments} > /dev/null {redirection}");
            shell
                .args(["-c", &script, env!("CARGO_BIN_EXE_flowcast")])
                .current_dir(folder.path());
            let status = shell.status().unwrap();
            let _ = fs::remove_file(folder.path().join("grid.csv"));
            let _ = fs::remove_dir_all(folder.path().join("x.rec"));
            status
        };
        for redirection in ["2> /dev/full", "2>&-", "2> /dev/null"] {
            assert_eq!(
                with_error(redirection).code(),
                Some(code),
                "{arguments} {redirection}"
            );
        }
    }
}

#[test]
fn a_full_disk_is_an_environment_error_and_no_file_is_left() {
    let folder = with_inputs();
    let full = flowcast(
        folder.path(),
        "predict q.dim -n gige-tcp --write messages=/dev/full",
    );
    assert_eq!(full.status.code(), Some(3), "{}", said(&full));
    assert!(
        said(&full).contains("cannot write /dev/full: No space left on device"),
        "{}",
        said(&full)
    );
    fs::create_dir(folder.path().join("small")).unwrap();
    let big = flowcast(
        folder.path(),
        "generate shift --ranks 16 --iterations 3000 -o big.dim",
    );
    assert!(big.status.success(), "{}", said(&big));
    for arguments in [
        "predict big.dim -n gige-tcp --write paraver=small/x.prv",
        "convert big.dim --format ti -o small/x.list",
        "convert big.dim --format goal -o small/x.goal",
        "convert big.dim --format goal-bin -o small/x.bin",
        "convert big.dim --format dim -o small/x.dim",
        "compile big.dim -o small/x.fct",
    ] {
        let script = format!(
            "mount -t tmpfs -o size=64k none small || exit 77\n\"$0\" {arguments}\ncode=$?\nls -A small\nexit $code"
        );
        let mut shell = Command::new("unshare");
        shell.args([
            "--user",
            "--map-root-user",
            "--mount",
            "sh",
            "-c",
            &script,
            env!("CARGO_BIN_EXE_flowcast"),
        ]);
        let full = shell.current_dir(folder.path()).output().unwrap();
        assert_eq!(full.status.code(), Some(3), "{arguments}: {}", said(&full));
        assert!(
            said(&full).contains("cannot write small/x"),
            "{arguments}: {}",
            said(&full)
        );
        assert_eq!(String::from_utf8_lossy(&full.stdout), "", "{arguments}");
    }
}

#[test]
fn the_head_of_a_page_counts_the_messages_that_its_sections_count() {
    let folder = tempfile::tempdir().unwrap();
    let recording = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/heat.rec");
    for networks in ["-n gige-tcp", "-n gige-tcp -n infiniband-edr"] {
        let done = flowcast(
            folder.path(),
            &format!("predict {recording} {networks} --report page.html"),
        );
        assert!(done.status.success(), "{}", said(&done));
        let page = fs::read_to_string(folder.path().join("page.html")).unwrap();
        assert!(page.contains("4 ranks, 1,360 messages"), "{networks}");
    }
}
