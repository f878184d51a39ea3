//! Jobs that are started with written mappings, in a lab of four nodes with two slots each, to check the launchers'
//! placement.
//!
//! The tests need an MPI library with its compilers, so `cargo test` lists them as ignored. `cargo xtask test record` runs
//! those whose libraries are installed. Where namespaces are forbidden, each test prints its name and checks nothing.

use std::{collections::BTreeMap, fs, process::Command};

use flowcast::units::Node;
use flowcast_place::{
    job::Job,
    mapping_file::{MappingFormat, write},
};
use serde_json::Value;

use crate::{
    outcome::{json, labs_can_be_had, said},
    recorder::{Bench, Mpi, OPEN_MPI},
};

/// Mappings that follow no rule, and mappings that follow one rule each.
const FREE: [[u32; 8]; 2] = [[2, 0, 3, 1, 1, 3, 0, 2], [0, 1, 1, 0, 2, 3, 3, 2]];
const RULED: [&[u32]; 5] = [
    &[0, 1, 2, 3, 0, 1, 2, 3],
    &[0, 0, 1, 1, 2, 2, 3, 3],
    &[0, 0, 1, 2, 2, 3],
    &[0, 0, 1, 1, 2],
    &[1, 3, 1, 3],
];
const HOSTS: &str = "node0,node1,node2,node3";

/// Format of a library's mapping in `flowcast mapping`.
fn format(mpi: Mpi) -> &'static str {
    mpi.ending
}

fn map_file(bench: &Bench, nodes: &[u32]) -> String {
    let lines: String = nodes.iter().map(|node| format!("{node}\n")).collect();
    fs::write(bench.path("ranks.map"), lines).unwrap();
    "ranks.map".to_owned()
}

/// Commands for a mapping, for the option `--format` of [`format`].
fn hint(bench: &Bench, nodes: &[u32]) -> Value {
    let map = map_file(bench, nodes);
    let told = json(&bench.flowcast(&["mapping", &map, "--hosts", HOSTS, "--json"]));
    let commands = told["launch"].as_array().unwrap();
    let of_library = |hint: &&Value| hint["format"] == format(bench.mpi);
    commands.iter().find(of_library).unwrap().clone()
}

/// Runs a command with this program in a lab and returns its sorted output lines.
fn in_lab(bench: &Bench, command: &Value, program: &str) -> Vec<String> {
    let command = command.as_str().unwrap().replace("FILE", "mapping");
    let (launcher, options) = command.split_once(' ').unwrap();
    let launcher = format!("{launcher}.{}", bench.mpi.ending);
    let mut arguments = vec!["lab", "run", "two-racks", "--no-self-test"];
    arguments.extend([
        "--set",
        "cluster.nodes=4",
        "--set",
        "cluster.ranks_per_node=2",
        "--",
    ]);
    arguments.push(&launcher);
    arguments.extend(options.split(' ').chain(program.split(' ')));
    let mut output = bench.flowcast(&arguments);
    // Fault of MPICH's launcher (Hydra 4.0): it sometimes mistakes the end of a process for the end of the node's proxy.
    if said(&output).contains("assert (!closed) failed") {
        output = bench.flowcast(&arguments);
    }
    assert!(output.status.success(), "{command}: {}", said(&output));
    let text = String::from_utf8_lossy(&output.stdout);
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

/// Host of each rank that printed `rank host more`.
fn hosts_of(lines: &[String]) -> Vec<String> {
    let mut hosts = BTreeMap::new();
    for line in lines {
        let words: Vec<&str> = line.split_whitespace().collect();
        hosts.insert(words[0].parse::<usize>().unwrap(), words[1].to_owned());
    }
    hosts.into_values().collect()
}

fn expected(nodes: &[u32]) -> Vec<String> {
    nodes.iter().map(|node| format!("node{node}")).collect()
}

fn a_job_with_a_mapping_file_has_each_rank_where_the_mapping_puts_it(mpi: Mpi) {
    if !labs_can_be_had("a_job_with_a_mapping_file_has_each_rank_where_the_mapping_puts_it") {
        return;
    }
    let bench = Bench::new(mpi);
    let program = bench.compile("where.c");
    for nodes in FREE {
        let hint = hint(&bench, &nodes);
        assert_eq!(hint["by_rule"], Value::Null);
        let mapping = [
            "mapping",
            "ranks.map",
            "--hosts",
            HOSTS,
            "--format",
            format(mpi),
            "-o",
        ];
        let written = bench.flowcast(&[&mapping[..], &["mapping"]].concat());
        assert!(written.status.success(), "{}", said(&written));
        let lines = in_lab(&bench, &hint["by_file"], &program);
        assert_eq!(hosts_of(&lines), expected(&nodes), "{hint}");
    }
}

fn the_options_of_a_rule_make_the_mapping(mpi: Mpi) {
    if !labs_can_be_had("the_options_of_a_rule_make_the_mapping") {
        return;
    }
    let bench = Bench::new(mpi);
    let program = bench.compile("where.c");
    for nodes in RULED {
        let hint = hint(&bench, nodes);
        let lines = in_lab(&bench, &hint["by_rule"], &program);
        assert_eq!(hosts_of(&lines), expected(nodes), "{hint}");
    }
}

/// Checks that the processes of a job under a rule get the ranks of a mapping, and that the grid of 2 x 4 follows.
fn reordered(mpi: Mpi, language: &str, source: &str) {
    let bench = Bench::new(mpi);
    let part = bench.path(&format!("part.{}", source.split('.').next_back().unwrap()));
    for (nodes, launched) in [(FREE[0], RULED[1]), (FREE[1], RULED[0])] {
        let map = map_file(&bench, &nodes);
        let launched_map = bench.path("launched.map");
        let lines: Vec<String> = launched.iter().map(ToString::to_string).collect();
        fs::write(&launched_map, lines.join("\n")).unwrap();
        let mut mapping = vec!["mapping", &map, "--hosts", HOSTS, "--format", language];
        mapping.extend([
            "--grid",
            "2x4",
            "--mapping",
            "launched.map",
            "-o",
            part.to_str().unwrap(),
        ]);
        let written = bench.flowcast(&mapping);
        assert!(written.status.success(), "{}", said(&written));
        let program = bench.compile_with(source, &[part.as_path()]);
        let command = hint(&bench, launched)["by_rule"].clone();
        let lines = in_lab(&bench, &command, &command_line(mpi, &program));
        assert_eq!(hosts_of(&lines), expected(&nodes));
        let cells = lines
            .iter()
            .map(|line| line.split(' ').next_back().unwrap());
        assert_eq!(
            cells.collect::<Vec<_>>(),
            ["0,0", "0,1", "0,2", "0,3", "1,0", "1,1", "1,2", "1,3"]
        );
    }
}

/// Open MPI considers a process that ends without MPI_Finalize as failed.
fn command_line(mpi: Mpi, program: &str) -> String {
    match mpi.ending {
        "mpich" => format!("{program} end"),
        _ => program.to_owned(),
    }
}

fn a_function_in_c_gives_processes_the_ranks_of_a_mapping(mpi: Mpi) {
    if labs_can_be_had("a_function_in_c_gives_processes_the_ranks_of_a_mapping") {
        reordered(mpi, "c", "reordered.c");
    }
}

fn a_function_in_fortran_gives_processes_the_ranks_of_a_mapping(mpi: Mpi) {
    let test = "a_function_in_fortran_gives_processes_the_ranks_of_a_mapping";
    if Command::new("gfortran").arg("--version").output().is_err() {
        eprintln!("skipped: {test}: no gfortran");
    } else if labs_can_be_had(test) {
        reordered(mpi, "fortran", "reordered.f90");
    }
}

for_both!(
    a_job_with_a_mapping_file_has_each_rank_where_the_mapping_puts_it,
    the_options_of_a_rule_make_the_mapping,
    a_function_in_c_gives_processes_the_ranks_of_a_mapping,
    a_function_in_fortran_gives_processes_the_ranks_of_a_mapping,
);

/// MPICH has no file for this.
mod sockets {
    mod open_mpi {
        use super::super::*;

        #[test]
        #[ignore = "needs Open MPI: cargo xtask test record"]
        fn a_rankfile_with_sockets_binds_each_rank_to_a_core_of_its_own() {
            let cores = std::thread::available_parallelism().unwrap().get();
            if cores < 2 {
                eprintln!(
                    "skipped: a_rankfile_with_sockets_binds_each_rank_to_a_core_of_its_own: one processor"
                );
                return;
            }
            let bench = Bench::new(OPEN_MPI);
            let program = bench.compile("where.c");
            let job = Job {
                hosts: vec!["localhost".to_owned()],
                node_of_rank: vec![Node(0); 2],
                domain_of_rank: vec![0, 0],
                ..Job::default()
            };
            let text = write(MappingFormat::Rankfile, &job).unwrap();
            assert_eq!(
                text,
                "rank 0=localhost slot=0:0\nrank 1=localhost slot=0:1\n"
            );
            let file = bench.path("rankfile");
            fs::write(&file, text).unwrap();
            let mut command = Command::new("timeout");
            command.args(["60", "mpirun.openmpi", "-np", "2", "--rankfile"]);
            command.arg(file).arg(program);
            for name in ["OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"] {
                command.env(name, "1");
            }
            let output = command.output().unwrap();
            assert!(output.status.success(), "{}", said(&output));
            let text = String::from_utf8_lossy(&output.stdout);
            let mut cores: Vec<u32> = text
                .lines()
                .map(|line| line.rsplit_once(' ').unwrap().1.parse().unwrap())
                .collect();
            cores.dedup();
            assert_eq!(cores.len(), 2, "{text}");
        }
    }
}
