//! `flowcast validate app` and `flowcast fit` with a real MPI program.
//!
//! The tests need Open MPI with its compiler, so `cargo test` lists them as ignored; `cargo xtask test record` runs them.

use std::{
    path::{Path, PathBuf},
    process::{Command, Output},
};

use flowcast_measure::lab::check_machine;
use serde_json::Value;

use crate::{
    outcome::{json, said},
    terminals::{WIDTHS, in_terminal, too_wide},
};

struct Bench {
    folder: tempfile::TempDir,
}

impl Bench {
    /// Compiles the micro-benchmarks of `regions.c` into a temporary folder.
    fn new() -> Bench {
        Bench::of("regions")
    }

    /// Compiles a program into a temporary folder.
    fn of(program: &str) -> Bench {
        let bench = Bench {
            folder: tempfile::tempdir().unwrap(),
        };
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
        let mut compiler = Command::new("mpicc.openmpi");
        let output = compiler
            .args(["-O2", "-w", "-o"])
            .arg(bench.path(program))
            .arg(source.join(program).with_extension("c"))
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", said(&output));
        bench
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn flowcast(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new("timeout");
        command
            .arg("200")
            .arg(env!("CARGO_BIN_EXE_flowcast"))
            .args(arguments)
            .current_dir(self.folder.path());
        command
            .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
            .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        command
            .env("XDG_RUNTIME_DIR", self.folder.path())
            .output()
            .unwrap()
    }

    fn validate(&self, options: &[&str], program: &[&str]) -> Output {
        let mut arguments = vec!["validate", "app", "--report", "small.html", "--json"];
        arguments.extend_from_slice(options);
        if !program.is_empty() {
            arguments.extend_from_slice(&["--", "mpirun.openmpi", "--oversubscribe", "-np", "4"]);
            arguments.extend_from_slice(program);
        }
        self.flowcast(&arguments)
    }
}

fn rows<'a>(document: &'a Value, quantity: &str) -> Vec<&'a Value> {
    document["rows"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|row| row["quantity"] == quantity)
        .collect()
}

/// Median error of the fitted regions, in the run to which they were fitted.
fn median_error(fit: &Value) -> f64 {
    let time = |region: &Value, field: &str| region[field].as_f64().unwrap();
    let error =
        |region: &Value| (time(region, "predicted_s") / time(region, "measured_s") - 1.0).abs();
    median(fit["regions"].as_array().unwrap().iter().map(error))
}

/// Median relative distance between the runs. No prediction can be closer to all of them.
fn median_distance(regions: &[&Value]) -> f64 {
    let time = |value: &Value| value.as_f64().unwrap();
    let distance = |region: &&Value| {
        (time(&region["interval_s"][1]) - time(&region["interval_s"][0]))
            / time(&region["measured_s"])
    };
    median(regions.iter().map(distance))
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

mod open_mpi {
    use super::*;

    #[test]
    #[ignore = "needs Open MPI: cargo xtask test record"]
    fn a_program_is_run_recorded_fitted_and_predicted_again() {
        let bench = Bench::new();
        let how = [
            "--network",
            "gige-tcp",
            "--model",
            "limits,fair",
            "--collectives",
            "openmpi",
        ];
        let first = [&how[..], &["--repetitions", "2"]].concat();
        let document_of_two = json(&bench.validate(&first, &["./regions", "1024"]));
        assert_eq!(document_of_two["runs"].as_array().unwrap().len(), 2);
        // Fourteen operations at four sizes and the barrier; five patterns at four sizes.
        assert_eq!(rows(&document_of_two, "region").len(), 77);
        assert_eq!(rows(&document_of_two, "communication of rank").len(), 4);
        let calls = rows(&document_of_two, "call");
        assert!(
            calls
                .iter()
                .any(|row| row["name"] == "MPI_Scan" && row["measured_s"].as_f64() > Some(0.0)),
            "{calls:?}"
        );
        let total = rows(&document_of_two, "total")[0];
        assert!(
            total["interval_s"][0].as_f64() <= total["measured_s"].as_f64(),
            "{total}"
        );
        assert!(
            total["predicted_s"]["fair/openmpi"].as_f64() > Some(0.0),
            "{total}"
        );
        let page = std::fs::read_to_string(bench.path("small.html")).unwrap();
        assert!(page.contains("<div id=\"picture\">") && page.contains("Allreduce 1024"));

        let blocked = bench.validate(&first, &["./regions", "1024"]);
        assert_eq!(blocked.status.code(), Some(2));
        assert!(
            said(&blocked).contains("continue with --resume"),
            "{}",
            said(&blocked)
        );
        let more = [&how[..], &["--resume", "--repetitions", "3"]].concat();
        let document_of_three = json(&bench.validate(&more, &["./regions", "1024"]));
        assert_eq!(document_of_three["runs"].as_array().unwrap().len(), 3);
        assert_eq!(document_of_three["runs"][1], document_of_two["runs"][1]);

        let fitted = bench.flowcast(&["fit", "small.rec", "-o", "fitted.toml", "--json"]);
        let fit = json(&fitted);
        assert_eq!(fit["regions"].as_array().unwrap().len(), 77);
        assert!(
            fit["latency_s"].as_f64() > Some(0.0) && fit["collectives"]["Bcast"].is_string(),
            "{fit}"
        );
        let lab = bench.flowcast(&["lab", "network", "asymmetric"]);
        std::fs::write(bench.path("lab.toml"), &lab.stdout).unwrap();
        let packets = ["--network", "lab.toml", "-o", "packet.toml", "--json"];
        let mark = r#"{"provenance":{"disturbed_by":"other programs"}}"#;
        std::fs::write(bench.path("small.rec/provenance.json"), mark).unwrap();
        let marked = json(&bench.flowcast(&["fit", "small.rec", "--json"]));
        assert!(
            marked["notes"]
                .to_string()
                .contains("was disturbed (other programs)")
        );
        let with_packets = json(&bench.flowcast(&[&["fit", "small.rec"][..], &packets].concat()));
        let latency = with_packets["packets"]["latency_s"].as_f64().unwrap();
        assert!((0.0..=2e-3).contains(&latency), "{latency}");
        assert_eq!(
            with_packets["packets"]["errors"].as_object().unwrap().len(),
            77
        );
        assert_eq!(with_packets["regions"], fit["regions"]);
        let written = std::fs::read_to_string(bench.path("packet.toml")).unwrap();
        assert!(
            written.contains("wire_rate = ") && written.contains("rule = \"dimemas\""),
            "{written}"
        );
        let again = [
            "--no-run",
            "--network",
            "fitted.toml",
            "--model",
            "limits",
            "--collectives",
            "formula",
        ];
        let predicted = json(&bench.validate(&again, &[]));
        // If there are more ranks than cores, a region's time says little about another region, or about the same region in
        // another run. No prediction can then be closer to the runs than they are to one another.
        let bound = median_distance(&rows(&document_of_three, "region")).max(0.5);
        let regions = &predicted["predictions"][0]["regions"];
        let errors = [
            median_error(&fit),
            regions["median_absolute_error"].as_f64().unwrap(),
        ];
        let disturbed = &document_of_three["provenance"]["disturbed_by"];
        eprintln!(
            "errors of the fit and of the prediction: {errors:?}, bound {bound}, disturbed: {disturbed}"
        );
        // Times are not reliable while other programs run.
        assert!(
            !disturbed.is_null() || errors.iter().all(|error| *error < bound),
            "{errors:?}"
        );
        let refused = bench.validate(
            &[&again[..], &["--threshold", "limits/formula=0%"]].concat(),
            &[],
        );
        assert_eq!(refused.status.code(), Some(1), "{}", said(&refused));
        assert!(
            said(&refused).contains("limits/formula: total error"),
            "{}",
            said(&refused)
        );
        for width in WIDTHS {
            let mut command = Command::new(env!("CARGO_BIN_EXE_flowcast"));
            command
                .args(["validate", "app", "--report", "small.html"])
                .args(again)
                .current_dir(bench.folder.path());
            let text = in_terminal(command, width);
            let words: Vec<&str> = text.split_whitespace().collect();
            let names = ["Allgather", "measured", "limits/formula"];
            let absent: Vec<_> = names.iter().filter(|name| !words.contains(name)).collect();
            assert!(absent.is_empty(), "{absent:?} at {width}\n{text}");
            assert_eq!(too_wide(&text, width).collect::<Vec<_>>(), [""; 0]);
        }
        let chart = bench.flowcast(&["validate", "chart", "small.json", "-o", "chart.svg"]);
        assert!(
            String::from_utf8_lossy(&chart.stdout).contains("mean absolute"),
            "{}",
            said(&chart)
        );
        assert!(
            std::fs::read_to_string(bench.path("chart.svg"))
                .unwrap()
                .contains("limits/formula")
        );
    }

    #[test]
    #[ignore = "needs Open MPI: cargo xtask test record"]
    fn a_program_that_fails_or_calls_no_mpi_is_reported() {
        let bench = Bench::new();
        let once = ["--network", "gige-tcp", "--repetitions", "1"];
        let none = bench.validate(&once, &["true"]);
        assert_eq!(none.status.code(), Some(3), "{}", said(&none));
        assert!(
            said(&none).contains("nothing was recorded"),
            "{}",
            said(&none)
        );
    }

    /// In slow motion, the ranks of a lab are as if each had a processor of its own.
    #[test]
    #[ignore = "needs Open MPI: cargo xtask test record"]
    fn ranks_that_poll_on_other_nodes_do_not_change_the_time_of_a_program() {
        if let Err(reason) = check_machine() {
            eprintln!(
                "skipped: ranks_that_poll_on_other_nodes_do_not_change_the_time_of_a_program: {reason}"
            );
            return;
        }
        let bench = Bench::of("waiters");
        let [two, eight] = ["2", "8"].map(|ranks| {
            let report = format!("{ranks}.html");
            let of_lab = "--lab asymmetric --lab-set slow_motion=10 --lab-set nic.delay=100us \
                          --lab-set cluster.nodes=8 --lab-set cluster.ranks_per_node=1 --no-self-test --repetitions 3 \
                          --model independent --json --report";
            let run = [
                "--",
                "mpirun.openmpi",
                "-np",
                ranks,
                "./waiters",
                "60",
                "20000",
            ];
            let mut arguments = vec!["validate", "app"];
            arguments.extend(of_lab.split_whitespace().chain([&*report]).chain(run));
            json(&bench.flowcast(&arguments))
        });
        let times = |document: &Value| -> Vec<f64> {
            let runs = document["runs"].as_array().unwrap().iter();
            runs.map(|run| run["total_s"].as_f64().unwrap()).collect()
        };
        let [alone, beside] = [&two, &eight].map(|document| median(times(document).into_iter()));
        let share = eight["processor_share"].as_f64().unwrap();
        eprintln!(
            "alone {:?}, beside six ranks that poll {:?}: {:+.1} %; ranks compute for {:.2} % of the processors' time",
            times(&two),
            times(&eight),
            (beside / alone - 1.0) * 100.0,
            share * 100.0
        );
        assert!(eight["runs"][0]["calls_s"].as_object().unwrap().is_empty());
        assert!(two["processor_share"].is_null() && share < 0.05, "{share}");
        // Times are not reliable while other programs run.
        let disturbed = &eight["provenance"]["disturbed_by"];
        assert!(!disturbed.is_null() || (beside / alone - 1.0).abs() < 0.1);
    }

    #[test]
    #[ignore = "needs Open MPI: cargo xtask test record"]
    fn a_program_in_a_lab_is_predicted_from_the_labs_rates() {
        if let Err(reason) = check_machine() {
            eprintln!("skipped: a_program_in_a_lab_is_predicted_from_the_labs_rates: {reason}");
            return;
        }
        let bench = Bench::new();
        let lab = [
            "--lab",
            "asymmetric",
            "--lab-set",
            "cluster.nodes=4",
            "--no-self-test",
        ];
        let how = [
            "--repetitions",
            "1",
            "--model",
            "fair,limits",
            "--collectives",
            "openmpi",
        ];
        let document = json(&bench.validate(&[&lab[..], &how].concat(), &["./regions", "65536"]));
        let error = document["predictions"][0]["total_error"].as_f64().unwrap();
        let disturbed = &document["provenance"]["disturbed_by"];
        eprintln!("error of the prediction: {error}, disturbed: {disturbed}");
        // Times are not reliable while other programs run.
        assert!(!disturbed.is_null() || error.abs() < 0.6, "{error}");
    }
}
