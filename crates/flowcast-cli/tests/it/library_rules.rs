//! MPI libraries follow the files that are written for them, and combine the same elements as the algorithms here.
//!
//! A reduction with a user-defined operation records the number of elements of each of its calls. This sequence identifies
//! the algorithm.

use std::{fs, process::Command};

use flowcast::{
    model::algorithm::{Algorithm, AlgorithmRule},
    trace::expand::{
        moves::{BlockLayout, Effect, ExpandedMove, MessagePart},
        plan::ExpansionTask,
    },
    units::{Bytes, CollectiveOp},
};
use flowcast_tuning::library_rules::{LibraryRule, mpich_rules, open_mpi_rules};

use crate::{
    mpich_selection::{MpichCall, Ordered},
    recorder::{Bench, MPICH, Mpi, OPEN_MPI},
};

const ELEMENT: u64 = 4;

/// Numbers of elements that a program with these counts combines on each rank, one count after the other.
fn run(mpi: Mpi, settings: &[(&str, &str)], of: &LibraryRule, counts: &[u64]) -> Vec<Vec<u64>> {
    let bench = Bench::new(mpi);
    let program = bench.compile("combined.c");
    let mut command = Command::new("timeout");
    command
        .args(["60", &format!("mpirun.{}", mpi.ending)])
        .args(mpi.options)
        .args(["-np", &of.ranks.to_string(), &program, of.op.name()])
        .args(counts.iter().map(u64::to_string))
        .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
        .envs(settings.iter().copied());
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{said}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let lines = said.lines().filter_map(|line| line.split_once(':'));
    lines
        .map(|(_, lengths)| {
            let lengths = lengths.split_whitespace();
            lengths.map(|length| length.parse().unwrap()).collect()
        })
        .collect()
}

/// Numbers of elements that each rank combines in an algorithm.
fn expected(rule: &LibraryRule, count: u64) -> Vec<Vec<u64>> {
    let task = ExpansionTask {
        op: rule.op,
        choice: rule.choice,
        ranks: rule.ranks,
        root: 0,
    };
    let layout = match rule.op {
        CollectiveOp::Reduce | CollectiveOp::Allreduce => task.layout(count * ELEMENT),
        _ => BlockLayout::given((0..rule.ranks).map(|_| count * ELEMENT)),
    };
    (0..rule.ranks)
        .map(|rank| combined(&task, rank, &layout))
        .collect()
}

fn among(ranks: u32, op: CollectiveOp, choice: &str) -> LibraryRule {
    LibraryRule {
        ranks,
        ..rule(op, 0, choice)
    }
}

fn combined(task: &ExpansionTask, rank: u32, layout: &BlockLayout) -> Vec<u64> {
    let (mut found, mut posted) = (Vec::new(), Vec::new());
    let mut add = |part: MessagePart| {
        if part.effect == Effect::Combine {
            found.push(layout.bytes(part.blocks) / ELEMENT);
        }
    };
    task.moves(rank, layout, &mut |step| match step {
        ExpandedMove::Recv { part, .. } => add(part),
        ExpandedMove::Post { part, .. } => posted.push(part),
        ExpandedMove::WaitRecv { ago } => add(posted.remove(posted.len() - 1 - ago as usize)),
        ExpandedMove::WaitAll => posted.drain(..).for_each(&mut add),
        _ => {}
    });
    found
}

fn rule(op: CollectiveOp, from: u64, choice: &str) -> LibraryRule {
    let rule: AlgorithmRule = choice.parse().unwrap();
    LibraryRule {
        op,
        ranks: 4,
        from: Bytes(from),
        choice: rule.choice,
    }
}

#[test]
#[ignore = "needs Open MPI: cargo xtask test record"]
fn open_mpi_combines_like_the_algorithms_of_its_rules() {
    use CollectiveOp::*;
    let rules = [
        among(4, Allreduce, "recursive-doubling"),
        among(6, Allreduce, "recursive-doubling"),
        among(4, Allreduce, "ring"),
        among(6, Allreduce, "ring segment 1KiB"),
        among(4, Allreduce, "rabenseifner"),
        among(6, Allreduce, "rabenseifner-halves"),
        among(4, Reduce, "linear"),
        among(6, Reduce, "binomial"),
        among(4, Reduce, "binomial segment 4KiB"),
        among(4, Reduce, "chain segment 4KiB"),
        among(6, Reduce, "chain width 2 segment 4KiB"),
        among(6, Reduce, "binary segment 4KiB"),
        among(4, Reduce, "rabenseifner"),
        among(6, Reduce, "rabenseifner-halves"),
        among(6, ReduceScatter, "recursive-halving"),
        among(6, ReduceScatter, "ring"),
        among(4, ReduceScatter, "butterfly"),
        among(6, ReduceScatter, "butterfly"),
        among(6, ReduceScatterBlock, "recursive-halving"),
        among(4, ReduceScatterBlock, "recursive-doubling"),
        among(4, ReduceScatterBlock, "butterfly"),
    ];
    for rule in rules {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("rules");
        fs::write(&file, open_mpi_rules(&[rule]).unwrap()).unwrap();
        let settings = [
            ("OMPI_MCA_coll_tuned_use_dynamic_rules", "1"),
            (
                "OMPI_MCA_coll_tuned_dynamic_rules_filename",
                file.to_str().unwrap(),
            ),
        ];
        let mut found = run(OPEN_MPI, &settings, &rule, &[6144]);
        if rule.choice.algorithm == Algorithm::RecursiveDoubling && rule.op == ReduceScatterBlock {
            // A part that wraps around the end of the vector is combined in two pieces.
            for lengths in &mut found {
                *lengths = lengths.chunks(2).map(|pair| pair.iter().sum()).collect();
            }
        }
        assert_eq!(found, expected(&rule, 6144), "{rule:?}");
    }
}

#[test]
#[ignore = "needs Open MPI: cargo xtask test record"]
fn open_mpi_changes_its_algorithm_at_the_sizes_of_its_rules() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("rules");
    let op = CollectiveOp::Allreduce;
    let rules = [
        rule(op, 4096, "ring"),
        rule(op, 16384, "recursive-doubling"),
    ];
    fs::write(&file, open_mpi_rules(&rules).unwrap()).unwrap();
    let settings = [
        ("OMPI_MCA_coll_tuned_use_dynamic_rules", "1"),
        (
            "OMPI_MCA_coll_tuned_dynamic_rules_filename",
            file.to_str().unwrap(),
        ),
    ];
    let found = run(OPEN_MPI, &settings, &rules[0], &[256, 1024, 4092, 4096]);
    // Below all rules, Open MPI decides itself and uses recursive doubling.
    let own = rule(op, 0, "recursive-doubling");
    let expected = [
        expected(&own, 256),
        expected(&rules[0], 1024),
        expected(&rules[0], 4092),
        expected(&rules[1], 4096),
    ];
    assert_eq!(found, expected.concat());
}

#[test]
#[ignore = "needs MPICH: cargo xtask test record"]
fn mpich_changes_its_algorithm_at_the_sizes_of_its_rules() {
    let op = CollectiveOp::ReduceScatterBlock;
    let rules = [rule(op, 16384, "pairwise")];
    let own = rule(op, 0, "recursive-halving");
    for selection in selections() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("rules.json");
        fs::write(&file, mpich_rules(&rules, selection.as_deref()).unwrap()).unwrap();
        let settings = [(SELECTION, file.to_str().unwrap())];
        let found = run(MPICH, &settings, &rules[0], &[1023, 1024]);
        assert_eq!(
            found,
            [expected(&own, 1023), expected(&rules[0], 1024)].concat()
        );
    }
    let without = run(MPICH, &[], &own, &[1024]);
    assert_eq!(without, expected(&own, 1024));
}

#[test]
#[ignore = "needs MPICH: cargo xtask test record"]
fn mpich_combines_like_the_algorithms_of_its_rules() {
    use CollectiveOp::*;
    let rules = [
        among(4, Allreduce, "recursive-doubling"),
        among(6, Allreduce, "recursive-doubling"),
        among(4, Reduce, "binomial"),
        among(6, Reduce, "binomial"),
        among(6, ReduceScatter, "recursive-halving"),
        among(6, ReduceScatter, "pairwise"),
        among(4, ReduceScatter, "interleaved-halving"),
        among(6, ReduceScatterBlock, "recursive-halving"),
        among(6, ReduceScatterBlock, "pairwise"),
        among(4, ReduceScatterBlock, "interleaved-halving"),
    ];
    for rule in rules {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("rules.json");
        for selection in selections() {
            fs::write(&file, mpich_rules(&[rule], selection.as_deref()).unwrap()).unwrap();
            let settings = [(SELECTION, file.to_str().unwrap())];
            let found = run(MPICH, &settings, &rule, &[1536]);
            assert_eq!(found, expected(&rule, 1536), "{rule:?}");
        }
    }
}

#[test]
#[ignore = "needs MPICH: cargo xtask test record"]
fn every_collective_succeeds_with_the_selection_of_flowcast() {
    use CollectiveOp::*;
    let bench = Bench::new(MPICH);
    let program = bench.compile("every_collective.c");
    let rules = [
        among(4, Bcast, "scatter-ring"),
        among(4, Allreduce, "rabenseifner"),
        among(4, Reduce, "rabenseifner"),
        among(4, ReduceScatter, "pairwise"),
        among(4, ReduceScatterBlock, "interleaved-halving"),
        among(4, Alltoall, "bruck"),
        among(4, Allgather, "ring"),
        among(4, Barrier, "dissemination"),
    ];
    let file = bench.path("rules.json");
    // The library treats cliques as nodes.
    for (ranks, cliques, rules) in [
        ("4", "1", &rules[..]),
        ("4", "2", &[]),
        ("5", "1", &[]),
        ("6", "3", &[]),
    ] {
        fs::write(&file, mpich_rules(rules, None).unwrap()).unwrap();
        let mut command = Command::new("timeout");
        command
            .args(["100", "mpirun.mpich", "-np", ranks, &program])
            .env(SELECTION, &file)
            .env("MPIR_CVAR_NUM_CLIQUES", cliques);
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{ranks} {cliques} {said}{errors}");
        assert!(said.ends_with("all is right\n"), "{ranks} {cliques} {said}");
    }
}

#[test]
#[ignore = "needs MPICH: cargo xtask test record"]
fn the_selection_of_flowcast_decides_like_that_of_the_library() {
    let Some(library) = selection_of_mpich() else {
        println!("skipped: found no library of MPICH with its selection");
        return;
    };
    let library = Ordered::read(&library);
    let own = Ordered::read(&mpich_rules(&[], None).unwrap());
    for (key, _) in &library.0 {
        let op = key.strip_prefix("collective=").unwrap();
        for facts in 0u32..32 {
            for ranks in [2, 3, 7, 8, 9, 16, 20] {
                for bytes in (0..24).flat_map(|power| [8 << power, (8 << power) + 8]) {
                    let call = MpichCall {
                        is_in_place: facts & 1 > 0,
                        is_commutative: facts & 2 > 0,
                        // All of MPI's own operations commute.
                        is_built_in: facts & 6 == 6,
                        is_block_regular: facts & 8 > 0,
                        has_nodes: facts & 16 > 0,
                        ..MpichCall::new(op, ranks, bytes)
                    };
                    assert_eq!(own.uses(&call), library.uses(&call), "{call:?}");
                }
            }
        }
    }
    assert_eq!(own.0.len(), library.0.len());
}

const SELECTION: &str = "MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE";

/// Flowcast's own selection, and the library's if it is found.
fn selections() -> Vec<Option<String>> {
    let library = selection_of_mpich();
    if library.is_none() {
        println!("found no library of MPICH with its selection, so only Flowcast's own is tried");
    }
    [None].into_iter().chain(library.map(Some)).collect()
}

/// Selection in MPICH's library, which contains it as text.
fn selection_of_mpich() -> Option<String> {
    let output = Command::new("mpicc.mpich").arg("-show").output().ok()?;
    let line = String::from_utf8_lossy(&output.stdout).into_owned();
    let folders = line
        .split_whitespace()
        .filter_map(|word| word.strip_prefix("-L"));
    for folder in folders {
        let Ok(library) = fs::read(format!("{folder}/libmpich.so")) else {
            continue;
        };
        let begin = "{\"collective=bcast\":";
        let texts = library.split(|byte| *byte == 0);
        let mut texts = texts.filter_map(|text| std::str::from_utf8(text).ok());
        // The selection of the lower device has the same first words.
        return texts
            .find(|text| text.starts_with(begin) && text.contains("\"collective=ibarrier\""))
            .map(str::to_owned);
    }
    None
}
