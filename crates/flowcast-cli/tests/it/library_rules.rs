//! MPI libraries follow the files that are written for them, and combine the same elements as the algorithms here.
//!
//! A reduction with a user-defined operation records the number of elements of each of its calls. This sequence identifies
//! the algorithm.

use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

use flowcast::{
    model::algorithm::{Algorithm, AlgorithmRule},
    trace::expand::{
        moves::{BlockLayout, Effect, ExpandedMove, MessagePart},
        plan::ExpansionTask,
    },
    units::{Bytes, CollectiveOp},
};
use flowcast_tuning::library_rules::{LibraryRule, RankDistribution, RuleForm};
use serde_json::Value;

use crate::{
    libraries,
    mpich_selection::{MpichCall, Ordered},
    outcome::json,
    recorder::{Bench, MPICH, Mpi, OPEN_MPI},
};

const ELEMENT: u64 = 4;

#[test]
fn the_command_writes_rules_for_open_mpi_6_and_names_what_overrides_them() {
    let folder = tempfile::tempdir().unwrap();
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let [measured, nodes] =
        ["broadcasts.csv", "broadcast-nodes.csv"].map(|name| examples.join(name));
    let mut fit = Command::new(env!("CARGO_BIN_EXE_flowcast"));
    fit.args(["fit", "--system", "mare_nostrum", "-o", "mn5.toml"])
        .arg("--collectives")
        .arg(measured)
        .arg("--allocations")
        .arg(nodes)
        .current_dir(folder.path());
    assert!(fit.output().unwrap().status.success());
    let mut choose = Command::new(env!("CARGO_BIN_EXE_flowcast"));
    choose
        .args(["collectives", "choose", "--network", "mn5.toml", "--json"])
        .args(["--ranks", "32,64", "--nodes", "32,32", "--sizes", "1MiB"])
        .args(["--write", "openmpi-6.0=rules.json"])
        .current_dir(folder.path());
    let document = json(&choose.output().unwrap());
    let notes = document["notes"].to_string();
    assert!(notes.contains("--mca coll ^han"), "{notes}");
    let rules = fs::read_to_string(folder.path().join("rules.json")).unwrap();
    let rules: Value = serde_json::from_str(&rules).unwrap();
    let bcast = &rules["collectives"]["bcast"];
    for (at, ranks) in [32, 64].into_iter().enumerate() {
        assert_eq!(bcast[at]["comm_size_min"], ranks, "{rules}");
        assert_eq!(bcast[at]["comm_rank_distribution"], "any", "{rules}");
    }
}

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
    lengths(&command.output().unwrap())
}

/// Numbers of elements in the output of the program.
fn lengths(output: &Output) -> Vec<Vec<u64>> {
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
        distribution: RankDistribution::Any,
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
        fs::write(&file, RuleForm::OpenMpi41.write(&[rule], None).unwrap()).unwrap();
        let [used, name] = OPEN_MPI_RULES;
        let settings = [(used, "1"), (name, file.to_str().unwrap())];
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

/// Rules for the sizes of a reduction on four ranks, and what ranks combine.
struct SizeRules {
    rules: Vec<LibraryRule>,
    counts: &'static [u64],
    combined: Vec<Vec<u64>>,
}

fn size_rules_of_open_mpi() -> SizeRules {
    let op = CollectiveOp::Allreduce;
    let rules = [
        rule(op, 4096, "ring"),
        rule(op, 16384, "recursive-doubling"),
    ];
    // Below all rules, Open MPI decides itself and uses recursive doubling.
    let own = rule(op, 0, "recursive-doubling");
    let combined = [
        expected(&own, 256),
        expected(&rules[0], 1024),
        expected(&rules[0], 4092),
        expected(&rules[1], 4096),
    ];
    SizeRules {
        rules: rules.to_vec(),
        counts: &[256, 1024, 4092, 4096],
        combined: combined.concat(),
    }
}

fn size_rules_of_mpich() -> SizeRules {
    let op = CollectiveOp::ReduceScatterBlock;
    let pairwise = rule(op, 16384, "pairwise");
    let own = rule(op, 0, "recursive-halving");
    SizeRules {
        rules: vec![pairwise],
        counts: &[1023, 1024],
        combined: [expected(&own, 1023), expected(&pairwise, 1024)].concat(),
    }
}

#[test]
#[ignore = "needs Open MPI: cargo xtask test record"]
fn open_mpi_changes_its_algorithm_at_the_sizes_of_its_rules() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("rules");
    let sizes = size_rules_of_open_mpi();
    fs::write(
        &file,
        RuleForm::OpenMpi41.write(&sizes.rules, None).unwrap(),
    )
    .unwrap();
    let [used, name] = OPEN_MPI_RULES;
    let settings = [(used, "1"), (name, file.to_str().unwrap())];
    let found = run(OPEN_MPI, &settings, &sizes.rules[0], sizes.counts);
    assert_eq!(found, sizes.combined);
}

#[test]
#[ignore = "needs MPICH: cargo xtask test record"]
fn mpich_changes_its_algorithm_at_the_sizes_of_its_rules() {
    let sizes = size_rules_of_mpich();
    for selection in selections() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("rules.json");
        let text = RuleForm::Mpich40.write(&sizes.rules, selection.as_deref());
        fs::write(&file, text.unwrap()).unwrap();
        let settings = [(SELECTION, file.to_str().unwrap())];
        let found = run(MPICH, &settings, &sizes.rules[0], sizes.counts);
        assert_eq!(found, sizes.combined);
    }
    let own = rule(CollectiveOp::ReduceScatterBlock, 0, "recursive-halving");
    let without = run(MPICH, &[], &own, &[1024]);
    assert_eq!(without, expected(&own, 1024));
}

/// A library combines by the rules in the form of its version, and otherwise without them. With MPICH's selection, which
/// decides for all operations, each of them succeeds.
pub(crate) fn a_library_follows_the_rules_of_its_form(bench: &libraries::Bench, version: &str) {
    let mut forms = RuleForm::NAMES.iter();
    let (_, form) = forms.find(|(name, _)| *name == version).unwrap();
    let file = bench.folder.path().join("rules");
    let path = file.to_str().unwrap();
    let is_mpich = version.starts_with("mpich");
    let sizes = match is_mpich {
        true => size_rules_of_mpich(),
        false => size_rules_of_open_mpi(),
    };
    let [used, name] = OPEN_MPI_RULES;
    let variables = match is_mpich {
        true => vec![format!("{SELECTION}={path}")],
        false => vec![format!("{used}=1"), format!("{name}={path}")],
    };
    fs::write(&file, form.write(&sizes.rules, None).unwrap()).unwrap();
    let with_rules = [vec!["env".to_owned()], variables, bench.launch()].concat();
    let mut program = vec![
        bench.compile("combined.c"),
        sizes.rules[0].op.name().to_owned(),
    ];
    program.extend(sizes.counts.iter().map(u64::to_string));
    let alone = lengths(&bench.run(&[bench.launch(), program.clone()].concat()));
    assert_ne!(alone, sizes.combined, "{version}");
    let found = lengths(&bench.run(&[with_rules.clone(), program].concat()));
    assert_eq!(found, sizes.combined, "{version}");
    if is_mpich {
        let every = vec![bench.compile("every_collective.c")];
        let output = bench.run(&[with_rules, every].concat());
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success() && said.ends_with("all is right\n"),
            "{version} {said}{errors}"
        );
    }
}

/// Prefix of an installation of Open MPI 6.0, which no package has.
const OPEN_MPI_6: &str = "FLOWCAST_OPEN_MPI_6";

#[test]
#[ignore = "needs Open MPI 6.0, with its prefix in FLOWCAST_OPEN_MPI_6"]
fn open_mpi_6_follows_the_rules_of_its_form() {
    match std::env::var_os(OPEN_MPI_6) {
        None => println!("skipped: no package has Open MPI 6.0, and {OPEN_MPI_6} is not set"),
        Some(prefix) => {
            let bench = libraries::Bench::at(libraries::OPEN_MPI_5, prefix.into());
            a_library_follows_the_rules_of_its_form(&bench, "openmpi-6.0");
        }
    }
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
            fs::write(
                &file,
                RuleForm::Mpich40
                    .write(&[rule], selection.as_deref())
                    .unwrap(),
            )
            .unwrap();
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
        fs::write(&file, RuleForm::Mpich40.write(rules, None).unwrap()).unwrap();
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
    let own = Ordered::read(&RuleForm::Mpich40.write(&[], None).unwrap());
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

/// Variables of Open MPI that switch rules on and name their file.
const OPEN_MPI_RULES: [&str; 2] = [
    "OMPI_MCA_coll_tuned_use_dynamic_rules",
    "OMPI_MCA_coll_tuned_dynamic_rules_filename",
];
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
