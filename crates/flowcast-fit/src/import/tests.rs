use proptest::prelude::*;

use super::*;

fn read_all(text: &str) -> Result<Imported, ImportError> {
    read(text, &ImportChoice::default())
}

fn round_trips(imported: &[Imported]) -> Vec<(u32, u64, f64)> {
    let samples = samples(imported.iter()).unwrap();
    samples
        .points()
        .map(|(point, times)| (point.messages, point.size.0, times[0].as_micros()))
        .collect()
}

fn of(text: &str) -> Vec<(u32, u64, f64)> {
    round_trips(&[read_all(text).unwrap_or_else(|error| panic!("{error}: {text}"))])
}

fn refused(text: &str) -> String {
    read_all(text).unwrap_err().to_string()
}

const OSU: &str = "# OSU MPI Latency Test v5.6.3\n# Size          Latency (us)\n0                       1.02\n8    1.10\n";
const IMB: &str = "# Benchmarking PingPong \n# #processes = 2 \n       #bytes #repetitions      t[usec]   Mbytes/sec\n            0         \
                   1000         2.50         0.00\n           64         1000         3.00        21.33\n";
const SKAMPI: &str = "# begin result \"Pingpong_Send_Recv\"\ncount= 1        4       6.0       0.0      160       5.7       5.7\n\
                      # end result \"Pingpong_Send_Recv\"\n";
const NCCL: &str = "# Collective test starting: sendrecv_perf\n\
                    #       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong\n\
                    #        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)\n\
                    \x20       1024           256     float    none      -1    12.50    0.08    0.08      0    12.4    0.08    0.08    N/A\n\
                    # Out of bounds values : 0 OK\n# Collective test concluded: sendrecv_perf\n";
const PERFTEST: &str = "-----\n                    Send Latency Test\n Dual-port       : OFF\t\tDevice         : mlx5_0\n-----\n \
                        #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   99% \
                        percentile[usec]   99.9% percentile[usec] \n \
                        2       1000          0.78           3.53         0.80     \t       0.81        \t0.05   \t\t0.87    \t\t3.53\n \
                        4096    1000          1.90           5.10         2.00     \t       2.05        \t0.08   \t\t2.20    \t\t5.10\n-----\n";
const NETPIPE: &str = "0: node1\n1: node2\nNow starting the main loop\n  \
                       0:       1 bytes   2000 times -->      4.00 Mbps in       1.91 usec\n  \
                       1:    1024 bytes   2500 times -->   4000.00 Mbps in       2.05 usec\n";
const NETGAUGE: &str = "## Netgauge v2.4 - mode mpi - 2 processes\n\
                        2 - 1.00 1.10 1.05 2.00 (0.10 3) - 4.00 4.60 4.50 9.00 (0.2 4) - 1 2 3 4\n";
const REPROMPI: &str = "#@datatype_size_bytes=4\n#@reproMPIcommitSHA1=abc\ntest nrep count runtime_sec\nSend_Recv 0 8 0.000003\n\
                        Send_Recv 1 16 0.000004\n";

/// Logs with one run of a message test between two processes each.
const LOGS: [&str; 8] = [
    OSU, IMB, SKAMPI, NCCL, PERFTEST, NETPIPE, NETGAUGE, REPROMPI,
];

/// Logs of other tests.
const OTHERS: [&str; 9] = [
    "# OSU MPI Init Test v5.6.2\nnprocs: 4, min: 67 ms, max: 67 ms, avg: 67 ms\n",
    "# OSU MPI Allreduce Latency Test v7.3\n# Datatype: MPI_CHAR.\n# Size       Avg Latency(us)\n4                      11.00\n64                     12.00\n",
    "# OSU MPI-CUDA Bi-Directional Bandwidth Test v5.9\n# Size      Bandwidth (MB/s)\n1                       1.10\n",
    "# OSU MPI_Put Latency Test v5.9\n# Window creation: MPI_Win_allocate\n# Size          Latency (us)\n1                       2.10\n",
    "# Benchmarking PingPing \n# #processes = 2 \n #bytes #repetitions t[usec] Mbytes/sec\n  0 1000 9.0 0.0\n",
    "# Benchmarking Barrier \n# #processes = 2 \n #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]\n 1000  1.0  1.1  1.0\n",
    "# Collective test starting: all_reduce_perf\n# size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n \
     256 64 float sum -1 300.00 0.01 0.01 0 31.00 0.01 0.01 N/A\n# Collective test concluded: all_reduce_perf\n",
    " RDMA_Read Latency Test\n #bytes        #iterations       t_avg[usec]    tps average\n 8 3000 2.25 400000.1\n-----\n",
    "# begin result \"MPI_Bcast\"\ncount= 1 8 7.0 0.1 8\n# end result \"MPI_Bcast\"\n",
];

#[test]
fn each_benchmark_gives_round_trips() {
    assert_eq!(of(OSU), [(1, 0, 2.04), (1, 8, 2.2)]);
    assert_eq!(of(IMB), [(1, 0, 5.0), (1, 64, 6.0)]);
    assert_eq!(of(SKAMPI), [(1, 4, 6.0)]);
    assert_eq!(of(NETGAUGE), [(1, 2, 9.0)]);
    let terminal = "1 bytes \t -> 4.50 us \t == 1.78 Mbit/s\n";
    assert_eq!(of(terminal), [(1, 1, 9.0)]);
    assert_eq!(of(NCCL), [(1, 1024, 25.0)]);
    assert_eq!(of(PERFTEST), [(1, 2, 1.6), (1, 4096, 4.0)]);
    assert_eq!(of(REPROMPI), [(1, 32, 3.0), (1, 64, 4.0)]);
    let for_seconds = "  RDMA_Write Latency Test\n #bytes        #iterations       t_avg[usec]    tps average\n 8 3000 1.25 400000.1\n";
    assert_eq!(of(for_seconds), [(1, 8, 2.5)]);
}

#[test]
fn banners_of_all_versions_and_devices_are_read_by_their_whole_name() {
    for banner in [
        "# OSU MPI Latency Test v3.1.1",
        "# OSU MPI Latency Test (Version 2.0)",
        "# OSU MPI-CUDA Latency Test v7.3",
        "# OSU MPI-ROCM Latency Test v5.9",
        "# OSU NCCL-CUDA Latency Test v7.4",
        "# OSU Latency Test",
        "# OMB Python MPI osu_latency Test",
    ] {
        let log = OSU.replace("# OSU MPI Latency Test v5.6.3", banner);
        assert_eq!(of(&log), of(OSU), "{banner}");
    }
    for banner in [
        "OSU MPI Reduce Latency Test v7.3",
        "OSU MPI Non-blocking Allreduce Latency Test v5.9",
        "OSU MPI Allgather Persistent Latency Test v7.3",
        "OSU MPI_Get latency Test v5.9",
        "OSU MPI_Put Latency Test v5.9",
        "OSU One Sided MPI_Put latency Test v3.1.1",
        "OSU MPI_Put-CUDA Bandwidth Test v5.9",
        "OSU MPI Bi-Directional Bandwidth Test v5.9",
        "OSU MPI Multi Latency Test v5.9",
        "OSU MPI-CUDA Multi-threaded Latency Test v5.9",
        "OSU MPI Multi-process Latency Test v7.0",
        "OSU MPI Multiple Bandwidth / Message Rate Test v5.9",
        "OSU OpenSHMEM Put Test v5.9",
        "OSU NCCL Allreduce Latency Test v7.4",
    ] {
        let log = OSU.replace("OSU MPI Latency Test v5.6.3", banner);
        let name = banner.rsplit_once(" v").unwrap().0;
        let message = refused(&log);
        assert!(
            message.starts_with(&format!("found {name} (line 1), expected a message")),
            "{message}"
        );
    }
    for name in [
        "PingPing",
        "Sendrecv",
        "Exchange",
        "Multi-PingPong",
        "Unidir_Put",
        "PingPongAnySource",
    ] {
        let message = refused(&IMB.replace("PingPong", name));
        assert!(
            message.starts_with(&format!("found IMB {name} (line 1)")),
            "{message}"
        );
    }
    assert!(
        refused(&IMB.replace("processes = 2", "processes = 4"))
            .starts_with("found IMB PingPong among 4 processes (line 1)")
    );
    for verb in ["RDMA_Read", "Atomic FETCH_AND_ADD", "Atomic CMP_AND_SWAP"] {
        assert!(
            refused(&PERFTEST.replace("Send", verb)).starts_with("found perftest"),
            "{verb}"
        );
    }
    assert!(
        refused(&PERFTEST.replace("Latency Test", "Latency Multicast Test"))
            .starts_with("found perftest")
    );
    let rate = "  Send BW Test\n #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]\n 65536 1000 11.0 11.0 0.1\n";
    assert!(refused(rate).starts_with("found perftest Send BW Test (line 1)"));
}

#[test]
fn a_window_of_messages_needs_the_latency_of_its_size() {
    let bandwidth =
        read_all("# OSU MPI Bandwidth Test v7\n# Size Bandwidth (MB/s)\n1000 800\n").unwrap();
    let message = samples([&bandwidth].into_iter()).unwrap_err().to_string();
    assert_eq!(
        message,
        "osu_bw: found no osu_latency of 1kB, expected it together with the bandwidths"
    );
    let latency = read_all("# OSU MPI Latency Test\n1 2.0\n1000 3.5\n").unwrap();
    let all = samples([&bandwidth, &latency].into_iter()).unwrap();
    // 64 messages of 1000 bytes at 800 bytes per microsecond, and an answer that takes 1.5 us longer than the shortest.
    assert_eq!(
        all.at(PrttPoint::new(64, Time::ZERO, Bytes(1000))),
        [Time::from_micros(81.5)]
    );
}

#[test]
fn a_table_without_a_name_is_refused_unless_its_command_or_the_user_names_the_test() {
    let without = |log: &str, banner: &str| log.replace(banner, "");
    let nccl = without(NCCL, "# Collective test starting: sendrecv_perf\n");
    assert_eq!(
        refused(&nccl),
        "line 1: found a table of nccl-tests that does not name its test (versions before 2.17 do not), expected its \
         banner or the name of the test, such as --test sendrecv"
    );
    let perftest = without(PERFTEST, "Send Latency Test");
    assert!(refused(&perftest).contains("a table of perftest that does not name its test"));
    let imb = without(IMB, "# Benchmarking PingPong \n");
    assert!(refused(&imb).contains("a table of IMB that does not name its test"));
    assert!(refused("Exchange:\n#bytes #repetitions t_min[usec] t_max[usec] t_avg[usec] Mbytes/sec\n262144 160 82.66 92.93 87.85 11283.53\n")
        .contains("a table of IMB"));
    for (log, named, test) in [
        (&nccl, NCCL, "sendrecv"),
        (&nccl, NCCL, "sendrecv_perf"),
        (&perftest, PERFTEST, "ib_send_lat"),
        (&imb, IMB, "PingPong"),
    ] {
        let test = Some(test.to_owned());
        let sections = Vec::new();
        let imported = read(log, &ImportChoice { test, sections }).unwrap();
        assert_eq!(round_trips(&[imported]), of(named));
    }
    assert_eq!(
        of(&format!(
            "+ mpirun -np 2 ./build/sendrecv_perf -b 8\n{nccl}"
        )),
        of(NCCL)
    );
    assert_eq!(
        of(&format!("$ ib_send_lat -a host2\n{perftest}")),
        of(PERFTEST)
    );
    assert!(
        refused(&format!("# ib_read_lat -a host2\n{perftest}"))
            .starts_with("found perftest ib_read_lat")
    );
    assert!(
        refused(&format!("./all_reduce_perf; ./sendrecv_perf\n{nccl}"))
            .contains("does not name its test")
    );
    let choice = ImportChoice {
        test: Some("sendrecv".into()),
        sections: Vec::new(),
    };
    assert_eq!(read(OSU, &choice), Err(ImportError::AllNamed));
}

#[test]
fn the_log_or_its_command_determines_the_window() {
    let bandwidth = "# OSU MPI Bandwidth Test v7.4\n";
    let rows = "# Size Bandwidth (MB/s)\n1 0.4\n1000 800\n";
    let latency = "# OSU MPI Latency Test\n# Size Latency (us)\n1 2.0\n1000 3.5\n";
    let in_a_row = |text: String| -> Vec<(u32, f64)> {
        let bursts = of(&text)
            .into_iter()
            .filter(|point| point.0 > 1 && point.1 == 1000);
        bursts
            .map(|(messages, _, micros)| (messages, micros))
            .collect()
    };
    for said in [
        format!("{latency}{bandwidth}# Window size: 16\n{rows}"),
        format!("{latency}{bandwidth}# [ pairs: 1 ] [ window size: 16 ]\n{rows}"),
        format!("$ mpirun -np 2 ./osu_bw -x 5 -W 16\n{latency}{bandwidth}{rows}"),
        format!("{latency}+ osu_bw --window-size 16\n{bandwidth}{rows}"),
        format!("srun osu_bw -W 16 -m 1:4096\n{bandwidth}{rows}{latency}"),
    ] {
        // 16 messages of 1000 bytes at 800 bytes per microsecond, and 1.5 us for the answer.
        assert_eq!(in_a_row(said.clone()), [(16, 21.5)], "{said}");
    }
    assert_eq!(
        in_a_row(format!("{latency}{bandwidth}{rows}")),
        [(64, 81.5)]
    );
    for wrong in ["varied", "0"] {
        let text = format!("{latency}{bandwidth}# [ pairs: 1 ] [ window size: {wrong} ]\n{rows}");
        assert_eq!(
            refused(&text),
            format!(
                "line 5: found a window of `{wrong}` messages, expected a whole number above 0"
            )
        );
    }
}

#[test]
fn a_restart_of_the_sizes_begins_a_new_run() {
    let again = format!("{OSU}0 3.06\n8 3.30\n");
    let expected =
        "found OSU MPI Latency Test (line 1), OSU MPI Latency Test (line 5), expected one run";
    assert!(refused(&again).starts_with(expected), "{}", refused(&again));
    let choice = |line| ImportChoice {
        test: None,
        sections: vec![line],
    };
    let second = read(&again, &choice(5)).unwrap();
    assert_eq!(round_trips(&[second]), [(1, 0, 6.12), (1, 8, 6.6)]);
    // A smaller size before the repeated one belongs to the second run as well.
    let smaller = format!(
        "{}0 3.06\n8 3.30\n",
        OSU.replace("0                       1.02\n", "")
    );
    let [first, second] = [1, 4].map(|line| round_trips(&[read(&smaller, &choice(line)).unwrap()]));
    assert_eq!(
        (first, second),
        (vec![(1, 8, 2.2)], vec![(1, 0, 6.12), (1, 8, 6.6)])
    );
    let row = SKAMPI.lines().nth(1).unwrap();
    assert!(refused(&SKAMPI.replace(row, &format!("{row}\n{row}"))).contains("(line 3)"));
    // NetPIPE numbers its rows. A list of sizes may have any order.
    assert!(
        refused(&format!(
            "{NETPIPE}{}",
            &NETPIPE[NETPIPE.find("  0:").unwrap()..]
        ))
        .contains("(line 6)")
    );
    assert_eq!(of(&format!("{OSU}4 1.05\n2 1.04\n")).len(), 4);
}

#[test]
fn several_runs_are_separated_and_chosen_by_their_lines() {
    let log = format!(
        "{OSU}{}",
        OSU.replace("1.10", "3.30").replace("1.02", "3.06")
    );
    assert_eq!(
        refused(&log),
        "found OSU MPI Latency Test (line 1), OSU MPI Latency Test (line 5), expected one run: choose with --section 1, or fit \
         several together with --section 1,5"
    );
    let choose = |sections: &[usize]| {
        let sections = sections.to_vec();
        read(
            &log,
            &ImportChoice {
                test: None,
                sections,
            },
        )
    };
    let second = choose(&[5]).unwrap();
    assert_eq!(
        second.skipped[0].to_string(),
        "line 1: OSU MPI Latency Test (not chosen)"
    );
    assert_eq!(round_trips(&[second]), [(1, 0, 6.12), (1, 8, 6.6)]);
    assert_eq!(samples([choose(&[1, 5]).unwrap()].iter()).unwrap().len(), 4);
    assert!(
        choose(&[2])
            .unwrap_err()
            .to_string()
            .starts_with("--section 2: found no such section")
    );
    // Each data type has its own table below the same banner.
    let types = format!("{OSU}# Datatype: MPI_INT.\n# Size Latency (us)\n0 1.5\n8 1.6\n");
    assert!(refused(&types).contains("OSU MPI Latency Test (line 6)"));
    assert!(
        refused(&format!("{OSU}{IMB}"))
            .contains("OSU MPI Latency Test (line 1), IMB PingPong (line 5)")
    );
}

#[test]
fn lines_of_a_table_that_are_no_rows_are_skipped_and_named() {
    let time_out = format!(
        "{IMB}      4194304 time-out.; Time limit (secs_per_sample * msg_sizes_list_len) is over\n\n# All processes entering MPI_Finalize\n"
    );
    let imported = read_all(&time_out).unwrap();
    assert_eq!(
        imported.notes,
        [
            "line 6: `4194304 time-out.; Time limit (secs_per_sample * msg_sizes_l` is no row of IMB PingPong and is left out"
        ]
    );
    assert_eq!(round_trips(&[imported]), of(IMB));
    let job_log = OSU.replace("8    1.10", "slurmstepd: error: something\n8    1.10");
    let imported = read_all(&job_log).unwrap();
    assert!(
        imported.notes[0].starts_with(
            "line 4: `slurmstepd: error: something` is no row of OSU MPI Latency Test"
        )
    );
    assert_eq!(round_trips(&[imported]), of(OSU));
    let frequencies = PERFTEST.replace(
        "\n 4096",
        "\nConflicting CPU frequency values detected: 2400.0 != 3000.0.\n 4096",
    );
    assert_eq!(of(&frequencies), of(PERFTEST));
    // Other numbers after a table are not rows of it.
    let other = format!("{OSU}16 1.2\nElapsed by step:\n1 5.0\n32 9.0\n");
    let imported = read_all(&other).unwrap();
    assert!(
        imported.notes[0].contains("`Elapsed by step:`")
            && imported.notes[0].ends_with("and more lines")
    );
    assert_eq!(round_trips(&[imported]).len(), 3);
    assert_eq!(
        refused("# OSU MPI Latency Test\n4 1.0\n8 fast\n"),
        "line 3: found latency `fast`, expected a number above 0"
    );
}

#[test]
fn rows_with_wrong_data_are_skipped_and_named() {
    let with_column = |log: &str, (header, name): (&str, &str), marks: [&str; 2]| {
        let mut marks = marks.into_iter();
        let lines = log.lines().map(|line| match line.trim_start() {
            text if text.starts_with(header) => format!("{line} {name}\n"),
            text if text.starts_with(|sign: char| sign.is_ascii_digit()) => {
                format!("{line} {}\n", marks.next().unwrap())
            }
            _ => format!("{line}\n"),
        });
        lines.collect::<String>()
    };
    let osu = ("# Size", "Validation");
    let imb = ("#bytes", "defects");
    assert_eq!(of(&with_column(OSU, osu, ["Pass", "Pass"])), of(OSU));
    assert_eq!(of(&with_column(IMB, imb, ["0.00", "0.00"])), of(IMB));
    let nccl = NCCL.replace("     0    12.4", "    17    12.4");
    assert_eq!(
        refused(&nccl),
        "line 4: found only rows that the benchmark marks as wrong, expected a valid row"
    );
    let right = "2048 512 float none -1 13.50 0.08 0.08 0 12.4 0.08 0.08 N/A\n# Out of";
    let nccl = nccl.replace("# Out of", right);
    for (log, size) in [
        (with_column(OSU, osu, ["Pass", "Fail"]), 8),
        (with_column(IMB, imb, ["0.00", "3.00"]), 64),
        (nccl, 1024),
    ] {
        let imported = read_all(&log).unwrap();
        let note = format!("wrong data in messages of {size} B, which are left out");
        assert!(imported.notes[0].ends_with(&note), "{:?}", imported.notes);
        assert!(imported.one_way.iter().all(|(own, _)| own.0 != size));
    }
}

#[test]
fn tests_of_more_or_fewer_than_two_processes_are_no_messages_between_two() {
    let devices = |count: usize| {
        let device = |rank| {
            format!("#  Rank  {rank} Group  0 Pid 77 on node{rank} device  0 [0x31] NVIDIA A100\n")
        };
        let devices: String = (0..count).map(device).collect();
        NCCL.replacen('\n', &format!("\n{devices}"), 1)
    };
    assert_eq!(of(&devices(2)), of(NCCL));
    for (count, among) in [(1, "of one process"), (8, "among 8 processes")] {
        let expected = format!("found nccl-tests sendrecv_perf {among} (line 1)");
        assert!(refused(&devices(count)).starts_with(&expected));
    }
    let groups = IMB
        .replace(
            "# #processes = 2",
            "# ( 2 groups of 2 processes each running simultaneously )",
        )
        .replace("#bytes", "Group #bytes")
        .replace("            0 ", "0 0 ");
    assert!(refused(&groups).starts_with("found IMB PingPong among 4 processes (line 1)"));
}

#[test]
fn rows_and_columns_of_another_form_are_named() {
    let short = format!("{OSU}64 1.2\n1K 2.0\n64K 9.0\n");
    let notes = read_all(&short).unwrap().notes;
    assert_eq!(
        notes,
        ["line 6: `1K 2.0` is no row of OSU MPI Latency Test and is left out, and one more line"]
    );
    assert!(
        refused("# OSU MPI Latency Test\n# Size Latency (us)\n8 1,10\n")
            .starts_with("found OSU MPI Latency Test (line 1) without rows, as line 3: `8 1,10` is no row of OSU MPI Latency Test, expected")
    );
    assert_eq!(
        refused(&PERFTEST.replace("[usec]", "[cycles]")),
        "line 6: found a table without times in microseconds, expected the column t_avg[usec]"
    );
    assert_eq!(
        refused(&NCCL.replace(" time ", " cputime ")),
        "line 4: found a table without times in microseconds, expected the column time"
    );
}

#[test]
fn rows_of_several_processes_and_unknown_prefixes_are_named() {
    let prefixed = |log: &str, prefix: &str| -> String {
        log.lines()
            .map(|line| format!("{prefix}{line}\n"))
            .collect()
    };
    let both = prefixed(OSU, "[0] ") + "[1] 16 1.2\n";
    assert_eq!(
        refused(&both),
        "line 5: found a row after `[1]`, expected rows of one process, after `[0]` as in line 3"
    );
    let some = prefixed(OSU, "[0] ") + "16 1.2\n";
    assert!(refused(&some).starts_with("line 5: found a row without a prefix"));
    assert_eq!(
        refused(&prefixed(OSU, "rank zero | ")),
        "line 1: found `rank zero | ` before the banner of a benchmark, expected the banner alone or after a rank, a node or \
         a time"
    );
}

#[test]
fn netpipe_is_read_from_the_screen_and_from_its_file() {
    let expected = [(1, 1, 3.82), (1, 1024, 4.1)];
    assert_eq!(of(NETPIPE), expected);
    assert_eq!(
        of("       1     4.000000   0.00000191\n    1024  3814.697266   0.00000205\n"),
        expected
    );
    assert_eq!(
        of(
            "        1     0.004     0.004     0.004    1.91\n     1024     3.996     3.900     4.100    2.05\n"
        ),
        expected
    );
    let colours = "Start testing with 7 trials for each message size\n  \
                   1: \u{1b}[32m      1  B\u{1b}[0m     24999 times -->  \u{1b}[36m  4.188 Mbps\u{1b}[0m  in  \u{1b}[36m  1.910 usecs\u{1b}[0m\n  \
                   2:   1.024 KB     24999 times -->    3.996 Gbps  in    2.050 usecs\n";
    assert_eq!(of(colours), expected);
    let streaming = format!("Streaming data in one direction\n{NETPIPE}");
    assert!(refused(&streaming).starts_with("found NetPIPE streaming (line 4)"));
}

#[test]
fn other_files_than_message_benchmarks_are_refused() {
    assert!(
        refused("hello")
            .starts_with("found no samples and no output of a known benchmark, expected columns of samples (`flowcast fit --help`) or one of OSU, IMB")
    );
    assert!(
        refused("# OSU MPI Latency Test v5\n# Size Latency (us)\n")
            .starts_with("found OSU MPI Latency Test (line 1) without rows")
    );
    for log in OTHERS {
        assert!(
            refused(log).contains("expected a message between two processes"),
            "{log}"
        );
    }
}

proptest! {
    #[test]
    fn additions_of_launchers_and_terminals_to_lines_have_no_effect(
        log in prop::sample::select(&LOGS),
        prefix in prop::sample::select(&[
            "", "[0] ", "[1,0]<stdout>:", "[prterun-n1-7@1,0]<stdout>: ", "0: ", " 12: ", "node01: ",
            "2024-05-01T10:00:00.123Z ", "May 01 10:00:00 ", "[10:00:00] ", "1714557600.5 ", "[0] 10:00:00 ",
        ]),
        end in prop::sample::select(&["\n", "\r\n"]),
        start in prop::sample::select(&["", "\u{feff}"]),
    ) {
        let lines: String = log.lines().map(|line| format!("{prefix}{line}{end}")).collect();
        let plain = read_all(log).unwrap();
        let read = read_all(&format!("{start}{lines}")).unwrap();
        prop_assert_eq!(read, plain);
    }

    #[test]
    fn logs_of_other_tests_around_a_log_change_nothing_and_are_named(
        log in prop::sample::select(&LOGS),
        before in prop::collection::vec(prop::sample::select(&OTHERS), 0..3),
        after in prop::collection::vec(prop::sample::select(&OTHERS), 0..3),
    ) {
        let text = [before.concat(), log.to_string(), after.concat()].concat();
        let read = read_all(&text).unwrap();
        prop_assert_eq!(read.skipped.len(), before.len() + after.len());
        prop_assert_eq!(round_trips(&[read]), of(log));
    }

    #[test]
    fn no_text_makes_the_reader_panic(
        parts in prop::collection::vec(prop::sample::select(&[
            OSU, IMB, NCCL, "# OSU ", "#", "[", "0: ", "8 1.0\n", "bytes", "-->", "#bytes #iterations\n", "\n", "\u{1b}[", "\r",
            "test count runtime_sec\n", "é",
        ]), 0..12),
    ) {
        let _ = read_all(&parts.concat());
    }
}
