//! Traces of tools that write a file for each rank, in the form in which these tools wrote them.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use crate::mutations::{any_mutations, mutate};
use flowcast::{
    formats::read::{TracePart, is_part, read_parts},
    trace::{Program, ReadOptions, Trace, TraceError},
};
use proptest::prelude::*;

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/data/tracers")
        .join(name)
}

fn files(name: &str, ending: &str) -> Vec<(String, Vec<u8>)> {
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder(name))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.retain(|path| path.extension().is_some_and(|found| found == ending));
    paths.sort();
    assert!(!paths.is_empty(), "{name}");
    let file = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
    paths
        .iter()
        .map(|path| (file(path), std::fs::read(path).unwrap()))
        .collect()
}

fn read(files: Vec<(String, Vec<u8>)>) -> Result<Program, TraceError> {
    let parts: Vec<TracePart> = files
        .into_iter()
        .map(|(name, bytes)| (name, Arc::new(bytes) as _))
        .collect();
    match read_parts("t", parts, ReadOptions::default())? {
        Trace::Program(program) => Ok(program),
        _ => panic!("expected a program"),
    }
}

fn liballprof() -> Vec<(String, Vec<u8>)> {
    files("liballprof", "txt")
}

fn dumpi() -> Vec<(String, Vec<u8>)> {
    files("dumpi", "txt")
}

fn chakra() -> Vec<(String, Vec<u8>)> {
    files("chakra", "et")
}

fn told(program: &Program) -> Vec<String> {
    program
        .ignored()
        .iter()
        .map(|record| format!("{} {}", record.count, record.kind))
        .collect()
}

/// Counted by hand in the program's source: each of 4 ranks sends 3 x 8000 and 20 and 4 and 2 x 12 bytes, ranks 1 to 3 send
/// 80.
#[test]
fn a_liballprof_trace_has_all_messages_of_its_program() {
    let program = read(liballprof()).unwrap();
    assert_eq!(program.ranks(), 4);
    assert_eq!(program.messages(), 4 * (3 + 1 + 1 + 2) + 3);
    assert_eq!(program.bytes().0, 4 * (3 * 8000 + 20 + 4 + 2 * 12) + 3 * 80);
    let told = told(&program);
    assert!(
        told.iter()
            .any(|line| line.starts_with("3 receives whose source")),
        "{told:?}"
    );
    let sizes: Vec<usize> = program
        .communicators()
        .iter()
        .map(|communicator| communicator.members.len())
        .collect();
    assert!(sizes.contains(&2), "the halves of the split: {sizes:?}");
    replay(&program);
}

#[test]
fn ranks_one_after_the_other_in_one_file_are_read_too() {
    for files in [liballprof(), dumpi()] {
        let apart = read(files.clone()).unwrap();
        let joined = files.iter().flat_map(|(_, text)| text.clone()).collect();
        let together = read(vec![("t".into(), joined)]).unwrap();
        assert_eq!(
            (apart.ranks(), apart.messages()),
            (together.ranks(), together.messages())
        );
        assert_eq!(apart.bytes(), together.bytes());
    }
}

#[test]
fn a_dumpi_trace_has_its_calls() {
    let program = read(dumpi()).unwrap();
    assert_eq!(
        (program.ranks(), program.messages(), program.bytes().0),
        (4, 4, 16)
    );
    assert_eq!(program.instances().len(), 2, "a barrier and a sum");
    assert!(told(&program).is_empty(), "{:?}", told(&program));
    replay(&program);
}

#[test]
fn one_rank_of_four_is_refused_with_the_missing_files() {
    let one = || vec![dumpi().remove(0)];
    let message = read(one()).unwrap_err().to_string();
    assert!(
        message.starts_with("testtrace-0000.txt:1: found 1 ranks, expected 4"),
        "{message}"
    );
    let message = read(vec![liballprof().remove(0)]).unwrap_err().to_string();
    assert!(
        message.contains("found rank 0 of 4, expected one of 1"),
        "{message}"
    );
}

#[test]
fn a_chakra_trace_has_its_collective() {
    let program = read(chakra()).unwrap();
    assert_eq!(
        (
            program.ranks(),
            program.messages(),
            program.instances().len()
        ),
        (8, 0, 1)
    );
    assert_eq!(program.calls()[0].send.0, 1 << 20);
    replay(&program);
}

/// A DUMPI trace made by hand: the calls of each rank as `(name, arguments)`, an instant apart.
fn dumpi_of(ranks: &[Vec<(&str, String)>]) -> Vec<(String, Vec<u8>)> {
    let file = |(rank, calls): (usize, &Vec<(&str, String)>)| {
        let mut text = String::new();
        let place = format!("MPI_Comm comm=2 (MPI_COMM_WORLD)\nint rank={rank}\n");
        let calls = [("Init", String::new()), ("Comm_rank", place)]
            .into_iter()
            .chain(calls.clone());
        for ((name, arguments), at) in calls.zip(1..) {
            let time = |part| {
                format!("walltime 1.00{at}00000{part}, cputime 0.000000001 seconds in thread 0.")
            };
            let (begin, end) = (time(0), time(1));
            text += &format!(
                "MPI_{name} entering at {begin}\n{arguments}MPI_{name} returning at {end}\n"
            );
        }
        (format!("t-{rank:04}.txt"), text.into_bytes())
    };
    ranks.iter().enumerate().map(file).collect()
}

/// Two groups of two ranks: the second rank of one sends to the first rank of the other, then all compute a sum.
#[test]
fn messages_between_two_groups_of_a_dumpi_trace_reach_the_other_group() {
    let of = |rank: i32| {
        let half = rank / 2;
        let between = format!(
            "MPI_Comm localcomm=4 (user-defined-comm)\nint localleader=0\nMPI_Comm remotecomm=2 (MPI_COMM_WORLD)\n\
             int remoteleader={}\nint tag=52\nMPI_Comm newcomm=5 (user-defined-comm)\n",
            2 - half * 2
        );
        let mut calls = vec![
            (
                "Comm_split",
                format!("MPI_Comm oldcomm=2\nint color={half}\nint key=0\nMPI_Comm newcomm=4\n"),
            ),
            ("Intercomm_create", between),
            (
                "Comm_dup",
                "MPI_Comm oldcomm=5\nMPI_Comm newcomm=6\n".to_owned(),
            ),
            (
                "Intercomm_merge",
                format!(
                    "MPI_Comm comm=6\nint high={}\nMPI_Comm newcomm=7\n",
                    1 - half
                ),
            ),
        ];
        let message = |end: &str, peer| {
            format!(
                "int count=250\nMPI_Datatype datatype=9 (MPI_INT)\nint {end}={peer}\nint tag=7\nMPI_Comm comm=6\n"
            )
        };
        match rank {
            1 => calls.push(("Send", message("dest", 0))),
            2 => calls.push(("Recv", message("source", 1))),
            _ => {}
        }
        let sum = |comm| {
            format!(
                "int count=2\nMPI_Datatype datatype=9 (MPI_INT)\nMPI_Op op=3\nMPI_Comm comm={comm}\n"
            )
        };
        calls.extend([("Allreduce", sum(7)), ("Allreduce", sum(5))]);
        calls
    };
    let program = read(dumpi_of(&[of(0), of(1), of(2), of(3)])).unwrap();
    assert_eq!((program.messages(), program.bytes().0), (1, 1000));
    let merged = program
        .communicators()
        .iter()
        .map(|communicator| communicator.members.iter().map(|rank| rank.0).collect());
    assert!(
        merged
            .collect::<Vec<Vec<u32>>>()
            .contains(&vec![2, 3, 0, 1])
    );
    let told = told(&program);
    assert!(
        told.iter().any(|line| line
            == "4 calls of MPI_Allreduce (32 bytes, 3.0 % of all sent) between two groups"),
        "{told:?}"
    );
    assert!(
        !told.iter().any(|line| line.contains("members are unknown")),
        "{told:?}"
    );
    replay(&program);
}

#[test]
fn types_of_dumpi_have_the_sizes_of_their_parts() {
    let sender = |maker: &'static str, made: &str| {
        let send =
            "int count=2\nMPI_Datatype datatype=29\nint dest=1\nint tag=7\nMPI_Comm comm=2\n";
        let recv =
            "int count=2\nMPI_Datatype datatype=3\nint source=0\nint tag=7\nMPI_Comm comm=2\n";
        let making = format!("{made}MPI_Datatype newtype=29 (user-defined-datatype)\n");
        let sending = vec![(maker, making), ("Send", send.to_owned())];
        read(dumpi_of(&[sending, vec![("Recv", recv.to_owned())]])).unwrap()
    };
    let struct_of = |lengths: &str| {
        format!(
            "int count=2\nint {lengths}[2]=[3, 1]\nint indices[2]=[0, 12]\nMPI_Datatype oldtypes[2]=[9, 14]\n"
        )
    };
    for (maker, made) in [
        ("Type_struct", struct_of("lengths")),
        ("Type_create_struct", struct_of("blocklengths")),
    ] {
        let program = sender(maker, &made);
        assert_eq!(program.bytes().0, 2 * (3 * 4 + 8), "{maker}");
        assert!(told(&program).is_empty(), "{:?}", told(&program));
    }
    let program = sender("Type_create_darray", "int size=4\nMPI_Datatype oldtype=9\n");
    assert_eq!(program.bytes().0, 2);
    let told = told(&program);
    assert!(
        told[0].contains("created by MPI_Type_create_darray, whose size"),
        "{told:?}"
    );
}

#[test]
fn messages_of_dumpi_without_a_receiver_are_left_out_and_counts_below_0_refused() {
    let send = |count, to| {
        format!(
            "int count={count}\nMPI_Datatype datatype=3\nint dest={to}\nint tag=7\nMPI_Comm comm=2\n"
        )
    };
    let of = |count, to| read(dumpi_of(&[vec![("Send", send(count, to))], vec![]]));
    let told = told(&of(4, 7).unwrap());
    assert_eq!(
        told,
        ["1 calls that name a rank outside their communicator,"]
    );
    let message = of(-4, 1).unwrap_err().to_string();
    assert!(
        message.ends_with("found count=-4, expected a count of at least 0"),
        "{message}"
    );
}

/// Checks that the program can be replayed to its end.
fn replay(program: &Program) {
    use flowcast::{
        model::builtin,
        replay::{ReplayEngine, costs::Rendezvous, placement::Placement},
    };
    let network = builtin::network("gige-tcp").unwrap();
    let placement = Placement::of_program(&network.machine, None, program).unwrap();
    let outcome = ReplayEngine::new(program, &network, placement, Rendezvous::AsRecorded)
        .unwrap()
        .run()
        .unwrap();
    assert!(outcome.makespan().as_nanos() > 0.0);
}

#[test]
fn errors_name_file_and_line() {
    let damaged = |which: fn() -> Vec<(String, Vec<u8>)>, from: &str, to: &str| {
        let mut files = which();
        let text = String::from_utf8(files[1].1.clone()).unwrap();
        assert!(text.contains(from), "{from}");
        files[1].1 = text.replacen(from, to, 1).into_bytes();
        read(files).unwrap_err().to_string()
    };
    let message = damaged(liballprof, ":1000:10,8,8:", ":many:10,8,8:");
    assert!(
        message.starts_with("pmpi-trace-rank-1.txt:") && message.contains("found `many`"),
        "{message}"
    );
    let message = damaged(liballprof, "MPI_Bcast:", "MPI_Bcast:noon");
    assert!(
        message.contains("pmpi-trace-rank-1.txt:") && message.contains("expected MPI_NAME:BEGIN"),
        "{message}"
    );
    let message = damaged(dumpi, "int dest=2", "int dest=west");
    assert!(
        message.starts_with("testtrace-0001.txt:") && message.contains("dest=west"),
        "{message}"
    );
    let message = damaged(dumpi, "MPI_Isend returning", "MPI_Irecv returning");
    assert!(
        message.contains("expected the end of MPI_Isend"),
        "{message}"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn no_mutation_panics(which in 0usize..3, rank in 0usize..4, mutations in any_mutations()) {
        let mut files = [liballprof, dumpi, chakra][which]();
        mutations.iter().for_each(|mutation| mutate(&mut files[rank].1, mutation));
        let _ = is_part(&files[rank].1);
        if is_part(&files[0].1) {
            let _ = read(files);
        }
    }
}

proptest! {
    #[test]
    fn no_sequence_of_otf2_events_panics(told in proptest::collection::vec(any::<(u8, u8, u8, u8)>(), 0..80)) {
        crate::otf2_events::read(&told);
    }
}
