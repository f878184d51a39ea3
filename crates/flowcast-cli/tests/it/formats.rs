//! Traces of other tools, read and written with those tools.
//!
//! The tests need programs and a library from packages, so `cargo test` lists them as ignored. `cargo xtask test formats`
//! runs those whose programs are installed.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use serde_json::Value;

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/data/tracers")
        .join(name)
}

fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap();
    assert!(
        output.status.success(),
        "{command:?}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

fn flowcast(folder: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new("timeout");
    command
        .arg("100")
        .arg(env!("CARGO_BIN_EXE_flowcast"))
        .args(arguments)
        .current_dir(folder);
    String::from_utf8(run(&mut command).stdout).unwrap()
}

/// Prediction with only the messages of the trace.
fn predicted(folder: &Path, trace: &str) -> Value {
    serde_json::from_str(&flowcast(
        folder,
        &[
            "predict",
            trace,
            "--network",
            "gige-tcp",
            "--collectives",
            "formula",
            "--json",
        ],
    ))
    .unwrap()
}

mod otf2 {
    use super::*;

    /// Number of sends and bytes according to the library's own program.
    fn printed(anchor: &Path) -> (u64, u64) {
        let output = run(Command::new("otf2-print").arg(anchor));
        let text = String::from_utf8(output.stdout).unwrap();
        let sends = text
            .lines()
            .filter(|line| line.starts_with("MPI_SEND ") || line.starts_with("MPI_ISEND "));
        let bytes = sends.clone().map(|line| {
            let length = line
                .split("Length: ")
                .nth(1)
                .unwrap()
                .split(',')
                .next()
                .unwrap();
            length.trim().parse::<u64>().unwrap()
        });
        (sends.count() as u64, bytes.sum())
    }

    #[test]
    #[ignore = "needs otf2-print; run by cargo xtask test formats"]
    fn archives_have_the_messages_that_otf2_print_shows() {
        for (name, ranks) in [("otf2/pingpong", 2), ("otf2/stencil4d-32", 32)] {
            let anchor = data(name).join("traces.otf2");
            let told = predicted(&data(name), "traces.otf2");
            let (messages, bytes) = printed(&anchor);
            assert!(messages > 0);
            assert_eq!(
                (told["messages"].as_u64(), told["bytes"].as_u64()),
                (Some(messages), Some(bytes)),
                "{name}"
            );
            assert_eq!(told["ranks"].as_array().unwrap().len(), ranks);
            assert!(told["makespan_s"].as_f64().unwrap() > 0.0);
        }
    }

    #[test]
    #[ignore = "needs the OTF2 library; run by cargo xtask test formats"]
    fn a_damaged_archive_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let whole = fs::read(data("otf2/pingpong/traces.otf2")).unwrap();
        // Its 5 properties become 80 million, which the library would search for minutes.
        let mut counting = whole.clone();
        assert_eq!(counting[60..64], [5, 0, 0, 0]);
        counting[63] = 5;
        for (anchor, told) in [
            (whole, "found an archive that cannot be read"),
            (counting, "fewer properties than it declares"),
        ] {
            fs::write(folder.path().join("traces.otf2"), anchor).unwrap();
            let mut command = Command::new("timeout");
            command.args([
                "10",
                env!("CARGO_BIN_EXE_flowcast"),
                "predict",
                "traces.otf2",
                "--network",
                "gige-tcp",
            ]);
            let output = command.current_dir(folder.path()).output().unwrap();
            let message = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(2), "{message}");
            assert!(
                message.contains("traces.otf2: ") && message.contains(told),
                "{message}"
            );
        }
    }
}

mod simgrid {
    use super::*;

    const PLATFORM: &str = "<?xml version='1.0'?>\n<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n\
        <platform version=\"4.1\"><cluster id=\"c\" prefix=\"n\" suffix=\"\" radical=\"0-15\" speed=\"1Gf\" \
        bw=\"125MBps\" lat=\"50us\"/></platform>\n";

    /// Time of SimGrid's replay of a list.
    fn replayed(folder: &Path, list: &str, ranks: usize) -> f64 {
        fs::write(folder.join("platform.xml"), PLATFORM).unwrap();
        let hosts: String = (0..ranks).map(|host| format!("n{host}\n")).collect();
        fs::write(folder.join("hosts"), hosts).unwrap();
        let ranks = ranks.to_string();
        let mut command = Command::new("timeout");
        command.args([
            "100",
            "smpirun",
            "-np",
            &ranks,
            "-platform",
            "platform.xml",
            "-hostfile",
            "hosts",
        ]);
        command
            .args(["-replay", list, "--cfg=smpi/host-speed:1Gf"])
            .current_dir(folder);
        let output = run(&mut command);
        let text = String::from_utf8_lossy(&output.stderr).into_owned()
            + &String::from_utf8_lossy(&output.stdout);
        let time = text
            .split("Simulation time ")
            .nth(1)
            .unwrap_or_else(|| panic!("{text}"));
        time.split_whitespace().next().unwrap().parse().unwrap()
    }

    #[test]
    #[ignore = "needs smpirun; run by cargo xtask test formats"]
    fn a_converted_trace_takes_as_long_as_a_generated_one() {
        let folder = tempfile::tempdir().unwrap();
        let shape = [
            "generate",
            "halo",
            "--ranks",
            "8",
            "--iterations",
            "5",
            "--size",
            "8KiB",
        ];
        let here = folder.path();
        flowcast(
            here,
            &[&shape[..], &["--format", "ti", "-o", "generated.list"]].concat(),
        );
        flowcast(here, &[&shape[..], &["-o", "halo.dim"]].concat());
        flowcast(
            here,
            &[
                "convert",
                "halo.dim",
                "-o",
                "converted.list",
                "--format",
                "ti",
            ],
        );
        let (generated, converted) = (
            replayed(here, "generated.list", 8),
            replayed(here, "converted.list", 8),
        );
        assert!(
            (generated - converted).abs() < 1e-5,
            "{generated} {converted}"
        );
    }

    #[test]
    #[ignore = "needs smpirun; run by cargo xtask test formats"]
    fn a_real_program_with_collectives_is_replayed_to_its_end() {
        let folder = tempfile::tempdir().unwrap();
        let trace =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../flowcast/examples/data/lu.S.4.dim.gz");
        let trace = trace.to_str().unwrap();
        flowcast(
            folder.path(),
            &["convert", trace, "-o", "lu.list", "--format", "ti"],
        );
        let computed: f64 = predicted(folder.path(), trace)["ranks"][0]["compute_s"]
            .as_f64()
            .unwrap();
        let time = replayed(folder.path(), "lu.list", 4);
        assert!(time > computed && time < 1.0, "{time} {computed}");
    }
}
