//! Real MPI programs, recorded and replayed.
//!
//! The tests need an MPI library with its compilers, so `cargo test` lists them as ignored. `cargo xtask test record` runs
//! those whose libraries are installed.

use std::{fs, process::Command};

use crate::recorder::{Bench, MPICH, Mpi, OPEN_MPI, calls, open, summary};
use flowcast::{trace::recorded_times::worked, units::Time};
use serde_json::Value;

/// Mix, calls of four ranks, messages of the replay with their bytes, and a part of the omissions.
const MIXES: [(&str, &str, (u64, u64), &str); 15] = [
    (
        "cg",
        "Barrier 4, Irecv 400, Reduce 4 32B, Send 400 2240000B, Wait 400",
        (400, 2_240_000),
        "",
    ),
    (
        "lu",
        "Allreduce 4 160B, Recv 600, Send 600 24000B",
        (600, 24_000),
        "",
    ),
    (
        "is",
        "Allreduce 40 1280B, Alltoall 40 640B, Alltoallv 40 1600B, Comm_dup 4, Comm_free 4",
        (0, 0),
        "4 calls of MPI_Comm_dup left out",
    ),
    (
        "ft",
        "Alltoall 24 24576B, Bcast 24 3072B, Comm_split 8, Reduce 4 64B",
        (0, 0),
        "8 calls of MPI_Comm_split left out",
    ),
    (
        "lulesh",
        "Allreduce 80 640B, Irecv 240, Isend 240 122880B, Wait 240, Waitall 80",
        (240, 122_880),
        "",
    ),
    ("comd", "Sendrecv 200 20300B", (200, 20_300), ""),
    (
        "minife",
        "Allreduce 120 960B, Irecv 240, Send 240 61440B, Wait 240",
        (240, 61_440),
        "",
    ),
    (
        "amg",
        "Allgatherv 40 480B, Iprobe 40, Isend 80 2800B, Probe 40, Recv 80, Testall 40",
        (80, 2800),
        "",
    ),
    (
        "cart",
        "Allreduce 40 320B, Cart_create 4, Cart_shift 4, Cart_sub 4, Comm_free 8, Irecv 80, Isend 80 5120B, Waitall 40",
        (40, 2560),
        "4 calls of MPI_Cart_sub left out",
    ),
    (
        "persistent",
        "Recv_init 4, Request_free 8, Ssend_init 4, Startall 100, Wait 100, Waitany 100",
        (100, 12_800),
        "",
    ),
    (
        "matched",
        "Cancel 4, Irecv 4, Isend 40 800B, Mprobe 40, Mrecv 40, Wait 44",
        (40, 800),
        "4 receives without a matching send",
    ),
    (
        "groups",
        "Allreduce 4 16B, Comm_split 4, Intercomm_create 4, Intercomm_merge 4, Recv 2, Send 2 56B",
        (2, 56),
        "4 calls of MPI_Intercomm_merge left out",
    ),
    (
        "windows",
        "File_close 4, File_open 4, File_write_at 4 3200B, Put 4 320B, Win_create 4, Win_fence 8, Win_free 4",
        (0, 0),
        "4 calls of MPI_Win_create left out",
    ),
    ("regions", "Barrier 8, Pcontrol 16", (0, 0), ""),
    (
        "threads",
        "Barrier 4, Recv 3200, Send 3200 1638400B",
        (3200, 1_638_400),
        "",
    ),
];

fn mixes_are_recorded_call_by_call_and_replayed(mpi: Mpi) {
    let bench = Bench::new(mpi);
    let program = bench.compile("mixes.c");
    for (mix, wanted, (messages, bytes), left_out) in MIXES {
        let summary = bench.recorded(mix, &[&program, mix]);
        assert_eq!(calls(&summary), wanted, "{mix}");
        assert_eq!(summary["ended"], 4, "{mix}");
        let (replay, notes) = bench.predict(mix);
        assert_eq!(
            (&replay["messages"], &replay["bytes"]),
            (&messages.into(), &bytes.into()),
            "{mix}"
        );
        assert!(
            notes.contains(left_out) && (notes.is_empty() == left_out.is_empty()),
            "{mix}: {notes}"
        );
        if ["cg", "lu"].contains(&mix) {
            let each = summary["file_bytes"].as_f64().unwrap() / summary["calls"].as_f64().unwrap();
            // The header alone takes 350 bytes of each rank's file.
            assert!(each < 7.0, "{mix}: {each} bytes a call");
        }
    }
}

/// Mix, and the calls in tables of its replay with four ranks on four nodes.
const OWN_CALLS: [(&str, &[&str]); 5] = [
    ("comd", &["MPI_Sendrecv"]),
    ("persistent", &["MPI_Startall", "MPI_Wait", "MPI_Waitany"]),
    (
        "immediate",
        &[
            "MPI_Allgather",
            "MPI_Iallreduce",
            "MPI_Ibarrier",
            "MPI_Ibcast",
            "MPI_Reduce",
            "MPI_Wait",
            "MPI_Waitsome",
        ],
    ),
    ("neighbours", &["MPI_Neighbor_allgather"]),
    (
        "threads",
        &["(other threads)", "MPI_Barrier", "MPI_Recv", "MPI_Send"],
    ),
];

fn tables_name_the_calls_of_the_program(mpi: Mpi) {
    let bench = Bench::new(mpi);
    let program = bench.compile("mixes.c");
    for (mix, wanted) in OWN_CALLS {
        bench.recorded(mix, &[&program, mix]);
        let compiled = format!("{mix}.fct");
        let output = bench.flowcast(&["compile", mix, "-o", &compiled]);
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        for trace in [mix, &compiled] {
            let (replay, _) =
                bench.predict_with(trace, &["--explain", "--write", "paraver=calls.prv"]);
            let places = replay["explanation"]["places"].as_array().unwrap();
            let mut names: Vec<&str> = places
                .iter()
                .filter_map(|place| place["place"].as_str())
                .collect();
            names.sort_unstable();
            assert_eq!(names, wanted, "{trace}");
        }
    }
    // One call for each record of the program, not for each part that is replayed.
    bench.predict_with("comd", &["--write", "paraver=comd.prv"]);
    let legend = fs::read_to_string(bench.path("comd.pcf")).unwrap();
    let number = legend
        .lines()
        .find_map(|line| line.strip_suffix("MPI_Sendrecv"))
        .unwrap()
        .trim();
    let events = fs::read_to_string(bench.path("comd.prv")).unwrap();
    let begins = events
        .lines()
        .filter(|line| line.ends_with(&format!(":50000001:{number}")))
        .count();
    assert_eq!(begins, 200);
}

fn calls_without_a_model_are_passed_on_and_counted(mpi: Mpi) {
    let bench = Bench::new(mpi);
    let program = bench.compile("mixes.c");
    let summary = bench.recorded("unmodelled", &[&program, "unmodelled"]);
    let left_out = |name: &str| {
        summary["functions"]
            .as_array()
            .unwrap()
            .iter()
            .any(|function| function["name"] == name && function["left_out"] == true)
    };
    assert!(
        left_out("MPI_Grequest_start") && left_out("MPI_Grequest_complete"),
        "{summary}"
    );
    let (replay, notes) = bench.predict("unmodelled");
    assert!(
        notes.contains("note: 4 calls of MPI_Grequest_start left out of the replay"),
        "{notes}"
    );
    assert!(
        replay["notes"]
            .to_string()
            .contains("4 calls of MPI_Grequest_complete left out of the replay"),
        "{replay}"
    );
    // Partitioned communication came with MPI 4.
    let partitioned = calls(&summary).contains("Psend_init 4");
    assert_eq!(
        partitioned,
        notes.contains("4 calls of MPI_Psend_init left out of the replay"),
        "{notes}"
    );
    assert_eq!(
        summary["not_modelled"],
        if partitioned { 8 + 4 * 4 } else { 8 },
        "{summary}"
    );
    assert_eq!(replay["messages"], 0, "{replay}");
}

fn neighbours_exchange_messages_by_functions_with_large_counts_too(mpi: Mpi) {
    let bench = Bench::new(mpi);
    let program = bench.compile("mixes.c");
    let summary = bench.recorded("neighbours", &[&program, "neighbours"]);
    let calls = calls(&summary);
    assert!(
        calls.starts_with(
            "Cart_coords 4, Cart_create 4, Cart_rank 4, Comm_free 4, Neighbor_allgather "
        ),
        "{calls}"
    );
    // In MPI 4, a third of them are the variants with large counts.
    let large = calls.contains("Neighbor_allgather 8 256B, Neighbor_allgather_c 4 128B");
    assert!(
        large || calls.contains("Neighbor_allgather 12 384B"),
        "{calls}"
    );
    let (replay, _) = bench.predict("neighbours");
    assert_eq!(
        (&replay["messages"], &replay["bytes"]),
        (&24.into(), &384.into()),
        "{replay}"
    );
}

fn immediate_collectives_are_waited_for_in_any_order(mpi: Mpi) {
    let bench = Bench::new(mpi);
    let program = bench.compile("mixes.c");
    let summary = bench.recorded("immediate", &[&program, "immediate"]);
    let calls = calls(&summary);
    let wanted = "Allgather 4 64B, Iallreduce 40 1280B, Ibarrier 40, Ibcast 40 32000B, Reduce 4 128B, Wait 40, Waitsome";
    assert!(calls.starts_with(wanted), "{calls}");
    assert_eq!(bench.predict("immediate").1, "");
}

fn fortran_is_recorded_by_each_of_its_interfaces(mpi: Mpi) {
    let bench = Bench::new(mpi);
    for source in ["mpifh.f90", "usempi.f90", "f08.f90"] {
        let program = bench.compile(source);
        let trace = format!("{source}.rec");
        let summary = bench.recorded(&trace, &[&program]);
        let wanted = "Allgather 4 16B, Allreduce 4 96B, Barrier 4, Bcast 4 512B, Cart_create 8, Comm_free 4, Comm_split 4, \
                      Irecv 200, Isend 280 104960B, Recv 80, Recv_init 4, Request_free 8, Send_init 4, Sendrecv 4 160B, \
                      Startall 40, Test 80, Waitall 240";
        assert_eq!(calls(&summary), wanted, "{source}");
        let (replay, notes) = bench.predict(&trace);
        assert_eq!(
            (&replay["messages"], &replay["bytes"]),
            (&324.into(), &105_760.into()),
            "{source}"
        );
        assert!(
            notes.lines().count() == 2 && notes.contains("4 calls of MPI_Comm_split left out"),
            "{source}: {notes}"
        );
    }
}

fn a_killed_program_leaves_its_flushed_calls(mpi: Mpi) {
    let bench = Bench::new(mpi);
    let program = bench.compile("mixes.c");
    let output = bench.record("killed", &["--buffer", "4KiB"], &[&program, "killed"]);
    assert_eq!(
        output.status.code(),
        // Exit code of the launcher. Open MPI's is the same as a shell's.
        Some(if mpi.ending == "mpich" { 9 } else { 137 }),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let summary = summary(&output);
    // Rank 3 dies in its 21st round of 302 calls. Its last 4 KiB, or 820 calls, may be missing.
    assert_eq!(summary["ended"], 0);
    assert!(
        summary["calls"].as_u64().unwrap() > 4 * (20 * 302 - 1000),
        "{summary}"
    );
    let refused = bench.flowcast(&["predict", "killed", "--network", "gige-tcp"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        String::from_utf8_lossy(&refused.stderr)
            .contains("found 4 of 4 ranks that were not recorded to their end")
    );
    let (replay, notes) = bench.predict_with("killed", &["--incomplete"]);
    assert!(replay["messages"].as_u64().unwrap() > 4 * 1600, "{replay}");
    assert!(notes.contains("4 ends of ranks"), "{notes}");
    // A block that was cut off in the middle is ignored, as if it had never been written.
    let file = bench.path("killed/rank-00002");
    let bytes = fs::read(&file).unwrap();
    fs::write(&file, &bytes[..bytes.len() - 100]).unwrap();
    assert!(
        bench.predict_with("killed", &["--incomplete"]).0["messages"].as_u64()
            < replay["messages"].as_u64()
    );
}

fn a_recorder_that_cannot_write_ends_the_recording_and_not_the_program(mpi: Mpi) {
    let bench = Bench::new(mpi);
    let program = bench.compile("mixes.c");
    for (mix, why) in [
        ("limited", "File too large"),
        ("closes", "the program has closed its file"),
    ] {
        let output = bench.record(mix, &["--buffer", "4KiB"], &[&program, mix]);
        let printed = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(0), "{mix}: {printed}");
        assert!(
            printed.contains("4 of 4 ranks were not recorded to their end")
                && printed.contains(why),
            "{mix}: {printed}"
        );
        assert!(
            !printed.contains("the program ended with"),
            "{mix}: {printed}"
        );
        for rank in 0..4 {
            let own = fs::read(bench.path(&format!("own-{rank}"))).unwrap_or_default();
            assert!(
                own.is_empty(),
                "{mix}: the recording stands in the program's file"
            );
        }
    }
}

fn a_panic_of_the_recorder_ends_the_recording_and_not_the_program(mpi: Mpi) {
    let bench = Bench::new(mpi);
    let program = bench.compile("mixes.c");
    for (number, place) in ["Send", "Send,behind", "Allreduce", "Recv,behind"]
        .into_iter()
        .enumerate()
    {
        let trace = format!("panicked{number}");
        // Release builds have no such variable. The launcher passes it on as its own environment.
        let asked = [
            "env".to_owned(),
            format!("FLOWCAST_RECORD_TEST_PANIC={place}"),
            program.clone(),
        ];
        let output = bench.record(&trace, &[], &[&asked[0], &asked[1], &asked[2], "lu"]);
        let printed = String::from_utf8_lossy(&output.stderr).into_owned();
        // The program ended normally.
        assert_eq!(output.status.code(), Some(0), "{place}: {printed}");
        assert!(
            printed.contains("ranks were not recorded to their end"),
            "{place}: {printed}"
        );
        // A rank at the border of the grid neither sends nor receives in some loops, so its recording continues.
        let ended = summary(&output)["ended"].as_u64().unwrap();
        assert!(ended <= 1, "{place}: {printed}");
        assert!(
            printed.contains(&format!("{} of 4 ranks", 4 - ended))
                && printed.contains("the recorder failed"),
            "{place}: {printed}"
        );
        let refused = bench.flowcast(&["predict", &trace, "--network", "gige-tcp"]);
        assert_eq!(
            refused.status.code(),
            Some(2),
            "{place}: {}",
            String::from_utf8_lossy(&refused.stderr)
        );
    }
}

fn a_budget_is_kept_and_the_whole_loop_replayed(mpi: Mpi) {
    let bench = Bench::new(mpi);
    let program = bench.compile("mixes.c");
    let output = bench.record("loop", &["--max-file-size", "30KB"], &[&program, "loop"]);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let summary = summary(&output);
    assert_eq!(
        calls(&summary),
        "Barrier 400, Irecv 40000, Reduce 400 3200B, Send 40000 224000000B, Wait 40000"
    );
    for rank in 0..4 {
        let bytes = fs::metadata(bench.path(&format!("loop/rank-{rank:05}")))
            .unwrap()
            .len();
        assert!(bytes < 31_000, "{bytes}");
    }
    assert_eq!(bench.predict("loop").0["messages"], 40_000);
}

fn recording_costs_little(mpi: Mpi) {
    let bench = Bench::new(mpi);
    let program = bench.compile("cost.c");
    let output = bench.flowcast(&[
        "record",
        "-o",
        "cost.rec",
        "--",
        &format!("mpirun.{}", mpi.ending),
        "-np",
        "1",
        &program,
    ]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    for test in ["iprobe", "message"] {
        let line = text.lines().find(|line| line.starts_with(test)).unwrap();
        let cost: f64 = line.split(' ').next_back().unwrap().parse().unwrap();
        // This is a debug build on a busy machine; docs/reference/record.md has the results of a release build.
        assert!(cost < 5000.0, "{line}");
        println!("{line}");
    }
}

fn under_the_other_launcher_a_program_runs_and_is_not_recorded(mpi: Mpi) {
    let bench = Bench::new(mpi);
    let program = bench.compile("mixes.c");
    let other = if mpi.ending == "mpich" {
        OPEN_MPI
    } else {
        MPICH
    };
    let launcher = format!("mpirun.{}", other.ending);
    if Command::new(&launcher).arg("--version").output().is_err() {
        println!("skipped: there is no {launcher}");
        return;
    }
    let mut arguments = vec!["record", "-o", "alone", "--", &launcher];
    arguments.extend_from_slice(other.options);
    arguments.extend_from_slice(&["-np", "2", &program, "regions"]);
    let output = bench.flowcast(&arguments);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("an MPI_COMM_WORLD of its own"), "{said}");
    assert_eq!(
        fs::read_dir(bench.path("alone")).unwrap().count(),
        0,
        "the next attempt finds an empty folder"
    );
    let mut arguments = vec!["doctor", "--json", "--", &launcher];
    arguments.extend_from_slice(&["-np", "2", &program]);
    let output = bench.flowcast(&arguments);
    assert_eq!(output.status.code(), Some(1));
    let checks: Value = serde_json::from_slice(&output.stdout).unwrap();
    let library = checks["checks"]
        .as_array()
        .unwrap()
        .iter()
        .find(|check| check["name"] == "library")
        .unwrap();
    assert_eq!(library["verdict"], "bad", "{library}");
}

fn ranks_with_different_clocks_share_one_time_axis(mpi: Mpi) {
    let bench = Bench::new(mpi);
    let program = bench.compile("mixes.c");
    let shared = bench.recorded("shared", &[&program, "cg"]);
    assert_eq!(shared["clocks"]["state"], "shared", "{shared}");
    // The monotonic clock of each rank is 100 s ahead of the previous rank's clock.
    if mpi.ending == "mpich" {
        println!(
            "skipped: UCX, beneath MPICH, shares no memory between processes of different namespaces"
        );
        return;
    }
    let rank = "OMPI_COMM_WORLD_RANK";
    let script = format!("exec unshare -Ur -T --monotonic $((100 * ${rank})) --fork {program} cg");
    let apart = ["sh", "-c", &script];
    if !Command::new("unshare")
        .args(["-Ur", "-T", "--monotonic", "100", "--fork", "true"])
        .status()
        .is_ok_and(|it| it.success())
    {
        println!("skipped: no time namespaces");
        return;
    }
    let unknown = bench.recorded("unknown", &apart);
    assert_eq!(
        unknown["clocks"],
        serde_json::json!({"state": "apart", "ranks": 3}),
        "{unknown}"
    );
    assert!(
        unknown["begins"][3]["begin_s"].is_null() && unknown["begins"][0]["begin_s"] == 0.0,
        "{unknown}"
    );
    let known = bench.record("known", &["--clocks"], &apart);
    assert!(
        known.status.success(),
        "{}",
        String::from_utf8_lossy(&known.stderr)
    );
    let known = summary(&known);
    assert_eq!(known["clocks"]["state"], "synchronised", "{known}");
    for (number, file) in open(&bench.path("known")).iter().enumerate() {
        assert_eq!(file.clocks.len(), 2);
        for reading in &file.clocks {
            let reference = reading.reference.unwrap();
            let error = reference.ahead + Time::from_seconds(100.0 * number as f64);
            assert!(
                error.as_nanos().abs() <= reference.known_to.as_nanos() + 1.0,
                "{number}: {error} {reading:?}"
            );
        }
        let begin = known["begins"][number]["begin_s"].as_f64().unwrap();
        assert!((0.0..50.0).contains(&begin), "{known}");
    }
}

/// Programs with two or more threads on four ranks, which share two processors or fewer.
fn threads_become_streams_with_their_own_computations(mpi: Mpi) {
    let bench = Bench::new(mpi);
    let program = bench.compile("threads.c");
    let record = |kind: &str| {
        bench.recorded(kind, &[&program, kind]);
        let (answer, notes) = bench.predict(kind);
        // A recording of four ranks on a busy machine may contain a warning. This sentence is in each.
        assert!(
            answer["notes"]
                .to_string()
                .contains("computation is measured in thread CPU time"),
            "{answer} {notes}"
        );
        let computed = worked(&open(&bench.path(kind)))
            .iter()
            .map(|time| time.as_seconds())
            .sum::<f64>();
        (answer, notes, computed)
    };
    let end_of = |answer: &Value, thread: u64| {
        let rows = answer["ranks"].as_array().unwrap();
        let row = rows
            .iter()
            .find(|row| (row["task"].as_u64(), row["thread"].as_u64()) == (Some(0), Some(thread)));
        row.unwrap()["end_s"].as_f64().unwrap()
    };
    let compute_of = |answer: &Value| -> f64 {
        let rows = answer["ranks"].as_array().unwrap();
        rows.iter()
            .map(|row| row["compute_s"].as_f64().unwrap())
            .sum()
    };
    // A thread that sleeps in a join does not compute: the rank's computation is at most the sum over its threads.
    let mut exchange_alone = 0.0;
    for kind in ["three", "join"] {
        let (answer, notes, computed) = record(kind);
        assert!(!notes.contains("in one sequence"), "{notes}");
        // The wall time of sleeping threads was fifty times as much.
        assert!(
            (compute_of(&answer) - computed).abs() < 0.2 * computed,
            "{kind}: {answer}, computed {computed}"
        );
        exchange_alone = end_of(&answer, 1);
    }
    // One thread computes for 0.1 s while another one communicates, or two threads compute 0.1 s each at the same time. If
    // they ran one after the other, they would end 0.1 s later. The time at which the first thread joins the second is not
    // recorded if ranks share processors, so the process may end later than its threads.
    for (kind, thread, alone) in [("beside", 1, exchange_alone), ("both", 2, 0.1)] {
        let (answer, notes, _) = record(kind);
        assert!(!notes.contains("in one sequence"), "{notes}");
        let end = end_of(&answer, thread);
        assert!(end < alone + 0.05, "{kind}: {alone} alone, {answer}");
        assert!(compute_of(&answer) > 0.38, "{kind}: {answer}");
    }
    // Requests that another thread completes belong to no thread.
    let (answer, notes, _) = record("shared");
    assert!(notes.contains("complete each other's requests"), "{notes}");
    assert_eq!(answer["messages"], 200, "{answer}");
}

fn a_validation_predicts_its_recording_as_predict_does(mpi: Mpi) {
    let bench = Bench::new(mpi);
    let program = bench.compile("threads.c");
    let launcher = format!("mpirun.{}", mpi.ending);
    let validate = [
        "validate",
        "app",
        "--network",
        "gige-tcp",
        "--repetitions",
        "1",
        "--report",
        "v.html",
        "--json",
        "--",
        &launcher,
    ];
    let output =
        bench.flowcast(&[&validate[..], mpi.options, &["-np", "4", &program, "both"]].concat());
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let validation = summary(&output);
    let predicted = validation["rows"][0]["predicted_s"].as_object().unwrap();
    let output = bench.flowcast(&["predict", "v.rec", "--network", "gige-tcp", "--json"]);
    let prediction: Value = serde_json::from_slice(&output.stdout).unwrap();
    let model = prediction["model"].as_str().unwrap();
    let (_, total) = predicted
        .iter()
        .find(|(name, _)| name.starts_with(model))
        .unwrap();
    assert_eq!(
        *total, prediction["makespan_s"],
        "{validation} {prediction}"
    );
}

fn a_failed_program_is_predicted_only_on_request(mpi: Mpi) {
    let bench = Bench::new(mpi);
    let program = bench.compile("threads.c");
    let output = bench.record(
        "failed",
        &[],
        &["sh", "-c", &format!("{program} none; exit 3")],
    );
    assert!(!output.status.success());
    let refused = bench.flowcast(&["predict", "failed", "--network", "gige-tcp"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        String::from_utf8_lossy(&refused.stderr)
            .contains("found the recording of a program that failed")
    );
    bench.predict_with("failed", &["--incomplete"]);
}

for_both!(
    tables_name_the_calls_of_the_program,
    mixes_are_recorded_call_by_call_and_replayed,
    calls_without_a_model_are_passed_on_and_counted,
    neighbours_exchange_messages_by_functions_with_large_counts_too,
    immediate_collectives_are_waited_for_in_any_order,
    fortran_is_recorded_by_each_of_its_interfaces,
    a_killed_program_leaves_its_flushed_calls,
    a_recorder_that_cannot_write_ends_the_recording_and_not_the_program,
    a_panic_of_the_recorder_ends_the_recording_and_not_the_program,
    a_budget_is_kept_and_the_whole_loop_replayed,
    recording_costs_little,
    under_the_other_launcher_a_program_runs_and_is_not_recorded,
    ranks_with_different_clocks_share_one_time_axis,
    threads_become_streams_with_their_own_computations,
    a_validation_predicts_its_recording_as_predict_does,
    a_failed_program_is_predicted_only_on_request,
);
