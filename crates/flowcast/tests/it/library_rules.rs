//! Files for MPI libraries contain the chosen algorithms, if they are read as the libraries read them.

use flowcast::{
    model::algorithm::{Algorithm, AlgorithmTable, Base, Choice, RuleExtent},
    units::{Bytes, CollectiveOp},
};
use flowcast_tuning::library_rules::{LibraryRule, RankDistribution, RuleForm};
use proptest::prelude::*;
use serde_json::Value;

use crate::mpich_selection::{MpichCall, Ordered};

/// The choice that Open MPI would make: algorithm, fan-out, segment, requests.
fn open_mpi_uses(file: &str, op: u64, ranks: u64, bytes: u64) -> [u64; 4] {
    let body = file.strip_prefix("rule-file-version-2\n");
    let has_limits = body.is_some();
    let lines: Vec<Vec<u64>> = body
        .unwrap_or(file)
        .lines()
        .map(|line| line.split('#').next().unwrap())
        .map(|line| {
            line.split_whitespace()
                .map(|n| n.parse().unwrap())
                .collect()
        })
        .collect();
    let mut lines = lines.into_iter();
    let mut next = || lines.next().unwrap();
    let mut used = [0; 4];
    for _ in 0..next()[0] {
        let number = next()[0];
        let mut best = None;
        for size in 0..next()[0] {
            let (of, messages) = {
                let line = next();
                (line[0], line[1])
            };
            let rules: Vec<Vec<u64>> = (0..messages).map(|_| next()).collect();
            assert_eq!(rules[0][0], 0, "the look-up begins at 0 bytes");
            if size == 0 || of <= ranks {
                best = Some(rules);
            }
        }
        if number == op {
            let rules = best.unwrap();
            let rule = rules.iter().rfind(|rule| rule[0] <= bytes).unwrap();
            assert!(rule.len() == 4 || has_limits);
            used = [0, 1, 2, 3].map(|at| rule.get(at + 1).copied().unwrap_or(0));
        }
    }
    used
}

/// The choice that Open MPI 6.0 would make on ranks with this distribution: the first communicator that fits, then the first
/// size.
fn open_mpi_6_uses(file: &str, op: &str, ranks: u64, detected: &str, bytes: u64) -> [u64; 4] {
    let file: Value = serde_json::from_str(file).unwrap();
    assert_eq!(file["rule_file_version"], 3);
    assert_eq!(file["module"], "tuned");
    let communicators = file["collectives"][op].as_array();
    let fits = communicators.into_iter().flatten().find(|one| {
        let of = one["comm_rank_distribution"].as_str().unwrap();
        let sizes = setting(one, "comm_size_min")..=setting(one, "comm_size_max");
        (of == "any" || of == detected) && sizes.contains(&ranks)
    });
    let rules = fits.and_then(|one| one["rules"].as_array());
    let mut rules = rules.into_iter().flatten();
    let rule = rules.find(|rule| setting(rule, "msg_size_min") <= bytes);
    rule.map_or([0; 4], |rule| {
        ["alg", "faninout", "seg_size", "reqs"].map(|name| setting(rule, name))
    })
}

/// Number in a rule; Open MPI 6.0 reads missing ones as 0.
fn setting(rule: &Value, name: &str) -> u64 {
    rule.get(name).map_or(0, |number| number.as_u64().unwrap())
}

fn rule(op: CollectiveOp, ranks: u32, from: u64, choice: &str) -> LibraryRule {
    let rule: flowcast::model::algorithm::AlgorithmRule = choice.parse().unwrap();
    LibraryRule {
        op,
        ranks,
        distribution: RankDistribution::Any,
        from: Bytes(from),
        choice: rule.choice,
    }
}

#[test]
fn open_mpi_reads_algorithm_chains_segment_and_requests() {
    use CollectiveOp::*;
    let rules = [
        rule(Bcast, 4, 4096, "chain width 3 segment 8KiB"),
        rule(Bcast, 4, 1 << 20, "chain segment 64KiB"),
        rule(Bcast, 5, 0, "knomial width 4"),
        rule(Bcast, 32, 0, "scatter-ring"),
        rule(Alltoall, 4, 0, "linear-sync width 16"),
        rule(Allreduce, 4, 1 << 20, "ring segment 1MiB"),
        rule(Allgatherv, 4, 4000, "ring"),
        rule(Barrier, 4, 0, "binomial"),
    ];
    let file = RuleForm::OpenMpi50.write(&rules, None).unwrap();
    let json = RuleForm::OpenMpi60.write(&rules, None).unwrap();
    for (op, ranks, bytes, expected) in [
        (7, 4, 4095, [0; 4]),
        (7, 4, 4096, [2, 3, 8192, 0]),
        (7, 4, 2 << 20, [3, 0, 65536, 0]),
        (7, 5, 0, [7, 0, 0, 0]),
        (7, 3, 5000, [0; 4]),
        (7, 6, 5000, [0; 4]),
        (7, 31, 5000, [0; 4]),
        (7, 32, 5000, [9, 0, 0, 0]),
        (7, 33, 5000, [0; 4]),
        (3, 4, 100, [4, 0, 0, 16]),
        (2, 4, 1 << 20, [5, 0, 1 << 20, 0]),
        (1, 4, 1000, [3, 0, 0, 0]),
        (1, 4, 999, [0; 4]),
        (6, 4, 0, [6, 0, 0, 0]),
        (0, 4, 100, [0; 4]),
    ] {
        assert_eq!(
            open_mpi_uses(&file, op, ranks, bytes),
            expected,
            "{op} {ranks} {bytes}\n{file}"
        );
        let names = [
            "allgather",
            "allgatherv",
            "allreduce",
            "alltoall",
            "alltoallv",
            "alltoallw",
            "barrier",
            "bcast",
        ];
        let used = open_mpi_6_uses(&json, names[op as usize], ranks, "any", bytes);
        assert_eq!(used, expected, "{op} {ranks} {bytes}\n{json}");
    }
}

#[test]
fn open_mpi_6_distinguishes_the_distributions_of_ranks() {
    use RankDistribution::*;
    let rules = [
        (Any, "binary"),
        (OnePerNode, "scatter-ring"),
        (SingleNode, "linear"),
    ]
    .map(|(distribution, choice)| LibraryRule {
        distribution,
        ..rule(CollectiveOp::Bcast, 8, 0, choice)
    });
    let file = RuleForm::OpenMpi60.write(&rules, None).unwrap();
    for (detected, number) in [("any", 5), ("one-per-node", 9), ("single-node", 1)] {
        let used = open_mpi_6_uses(&file, "bcast", 8, detected, 0);
        assert_eq!(used[0], number, "{detected}\n{file}");
    }
    // MPI_COMM_WORLD has no detected distribution.
    let alone = RuleForm::OpenMpi60.write(&rules[1..2], None).unwrap();
    assert_eq!(open_mpi_6_uses(&alone, "bcast", 8, "any", 0)[0], 9);
    for form in [
        RuleForm::OpenMpi41,
        RuleForm::OpenMpi50,
        RuleForm::Mpich40,
        RuleForm::Mpich41,
    ] {
        let error = form.write(&rules, None).unwrap_err().to_string();
        assert!(error.contains("openmpi-6.0"), "{error}");
    }
}

#[test]
fn forms_have_the_algorithms_of_their_versions() {
    use CollectiveOp::*;
    for op in [Allgather, Allgatherv] {
        let sparbit = [rule(op, 8, 0, "sparbit")];
        let error = RuleForm::OpenMpi41.write(&sparbit, None).unwrap_err();
        assert!(error.to_string().contains("found `sparbit`"), "{error}");
        assert!(RuleForm::OpenMpi50.write(&sparbit, None).is_ok());
    }
    let bruck = RuleForm::OpenMpi60.write(&[rule(Allgather, 8, 0, "bruck")], None);
    let used = open_mpi_6_uses(&bruck.unwrap(), "allgather", 8, "any", 0);
    assert_eq!(used, [2, 2, 0, 0], "a radix of 0 does not end");
    let barrier = [rule(Barrier, 4, 0, "dissemination")];
    let [older, newer] = [RuleForm::Mpich40, RuleForm::Mpich41].map(|form| {
        let text = form.write(&barrier, None).unwrap();
        let selection: Value = serde_json::from_str(&text).unwrap();
        selection.to_string()
    });
    let with_radix = older.replace(
        "Barrier_intra_dissemination\":{}",
        "Barrier_intra_k_dissemination\":{\"k=2\":{}}",
    );
    assert_eq!(newer, with_radix);
    assert_ne!(newer, older);
}

#[test]
fn rules_that_a_library_does_not_support_are_refused() {
    use CollectiveOp::*;
    for (rule, part) in [
        (
            rule(Bcast, 4, 0, "knomial width 8"),
            "found `knomial width 8`",
        ),
        (
            rule(Reduce, 4, 0, "linear segment 1KiB"),
            "found `linear segment 1KiB`",
        ),
        (
            rule(Allgather, 4, 0, "bruck width 4"),
            "found `bruck width 4`",
        ),
        (rule(Gatherv, 4, 0, "linear"), "accepts: nothing"),
        (rule(Barrier, 4, 1, "linear"), "one algorithm for all sizes"),
        (rule(Bcast, 1, 0, "linear"), "a number out of range"),
    ] {
        let error = RuleForm::OpenMpi50
            .write(&[rule], None)
            .unwrap_err()
            .to_string();
        assert!(error.contains(part), "{error}");
    }
    let twice = [rule(Bcast, 4, 0, "linear"), rule(Bcast, 4, 0, "chain")];
    let error = RuleForm::OpenMpi50
        .write(&twice, None)
        .unwrap_err()
        .to_string();
    assert!(error.contains("found two rows"), "{error}");
    for (rule, part) in [
        (
            rule(Bcast, 4, 0, "chain"),
            "found `chain`, expected a choice that MPICH",
        ),
        (
            rule(Gather, 4, 1, "binomial"),
            "one algorithm for all sizes",
        ),
        (rule(Scan, 4, 0, "linear"), "found `linear`"),
    ] {
        let error = RuleForm::Mpich40
            .write(&[rule], Some(GENERIC))
            .unwrap_err()
            .to_string();
        assert!(error.contains(part), "{error}");
    }
    for generic in ["[]", "{\"collective=bcast\": 3}", "{}"] {
        let rule = rule(Bcast, 4, 0, "binomial");
        assert!(
            RuleForm::Mpich40.write(&[rule], Some(generic)).is_err(),
            "{generic}"
        );
    }
}

/// A small version of MPICH's file. Sorting would change the order of its keys.
const GENERIC: &str = r#"{
    "collective=bcast": {
        "comm_type=intra": {
            "avg_msg_size<=900": {"algorithm=short": {}},
            "avg_msg_size<=12288": {"algorithm=middle": {}},
            "avg_msg_size=any": {"algorithm=long": {}}
        },
        "comm_type=inter": {"algorithm=inter": {}}
    },
    "collective=alltoall": {"comm_type=intra": {"algorithm=own": {}}},
    "collective=gather": {"algorithm=own": {}},
    "collective=scan": {"algorithm=own": {}}
}"#;

#[test]
fn mpich_reads_the_rules_before_its_own_selection() {
    use CollectiveOp::*;
    let rules = [
        rule(Bcast, 4, 1000, "binomial"),
        rule(Bcast, 4, 1 << 20, "scatter-ring"),
        rule(Bcast, 8, 0, "scatter-recursive-doubling"),
        rule(Alltoall, 8, 8001, "linear width 32"),
        rule(Gather, 4, 0, "binomial"),
    ];
    let json = RuleForm::Mpich40.write(&rules, Some(GENERIC)).unwrap();
    let selection = Ordered::read(&json);
    let ring = "MPIR_Bcast_intra_scatter_ring_allgather";
    let doubling = "MPIR_Bcast_intra_scatter_recursive_doubling_allgather";
    for (op, ranks, bytes, expected) in [
        ("bcast", 4, 800, "short"),
        ("bcast", 4, 999, "middle"),
        ("bcast", 4, 1000, "MPIR_Bcast_intra_binomial"),
        ("bcast", 4, 1 << 20, ring),
        ("bcast", 3, 1 << 20, "long"),
        ("bcast", 7, 900, "short"),
        ("bcast", 8, 0, doubling),
        ("bcast", 9, 901, "middle"),
        // Bytes to one rank: 8001 bytes for 8 ranks are at least 1001 for one.
        ("alltoall", 8, 1000, "own"),
        ("alltoall", 8, 1001, "MPIR_Alltoall_intra_scattered"),
        ("gather", 4, 5, "MPIR_Gather_intra_binomial"),
        ("gather", 5, 5, "own"),
    ] {
        let call = MpichCall::new(op, ranks, bytes);
        assert_eq!(
            selection.uses(&call),
            Some(expected),
            "{op} {ranks} {bytes}"
        );
    }
}

proptest! {
    #[test]
    fn all_forms_end_with_the_last_row(
        rows in proptest::collection::btree_map((2u32..9, 0u64..50), 0usize..3, 1..12), ranks in 1u64..11, bytes in 0u64..60,
    ) {
        let algorithms = [Algorithm::Binomial, Algorithm::ScatterRecursiveDoubling, Algorithm::ScatterRing];
        // Each library has another binomial tree.
        let rules = |binomial| -> Vec<LibraryRule> {
            let choices = rows.iter().map(|((ranks, from), which)| {
                let algorithm = if *which == 0 { binomial } else { algorithms[*which] };
                LibraryRule {
                    op: CollectiveOp::Bcast,
                    ranks: *ranks,
                    distribution: RankDistribution::Any,
                    from: Bytes(*from),
                    choice: Choice::plain(algorithm),
                }
            });
            choices.collect()
        };
        let expected = rows.iter().rfind(|((of, from), _)| u64::from(*of) == ranks && *from <= bytes).map(|(_, which)| *which);
        let number = expected.map_or(0, |which| [6, 8, 9][which]);
        let open_mpi = rules(Algorithm::BinomialNearest);
        let file = RuleForm::OpenMpi50.write(&open_mpi, None).unwrap();
        prop_assert_eq!(open_mpi_uses(&file, 7, ranks, bytes)[0], number);
        let json = RuleForm::OpenMpi60.write(&open_mpi, None).unwrap();
        prop_assert_eq!(open_mpi_6_uses(&json, "bcast", ranks, "any", bytes)[0], number);
        let json = RuleForm::Mpich40.write(&rules(Algorithm::Binomial), Some(GENERIC)).unwrap();
        let names = ["binomial", "scatter_recursive_doubling_allgather", "scatter_ring_allgather"];
        let name = expected.map_or("short".to_owned(), |which| format!("MPIR_Bcast_intra_{}", names[which]));
        let selection = Ordered::read(&json);
        prop_assert_eq!(selection.uses(&MpichCall::new("bcast", ranks, bytes)), Some(&*name));
    }
}

/// Endings of the names of MPICH's functions that implement an algorithm of its table.
const ENDINGS: [(&str, Algorithm); 14] = [
    ("dissemination", Algorithm::Dissemination),
    ("binomial", Algorithm::Binomial),
    ("linear", Algorithm::Linear),
    ("scattered", Algorithm::Linear),
    (
        "scatter_recursive_doubling_allgather",
        Algorithm::ScatterRecursiveDoubling,
    ),
    ("scatter_ring_allgather", Algorithm::ScatterRing),
    ("brucks", Algorithm::Bruck),
    ("_recursive_doubling", Algorithm::RecursiveDoubling),
    ("a_ring", Algorithm::Ring),
    ("v_ring", Algorithm::Ring),
    ("pairwise", Algorithm::Pairwise),
    ("reduce_scatter_gather", Algorithm::Rabenseifner),
    ("reduce_scatter_allgather", Algorithm::Rabenseifner),
    ("recursive_halving", Algorithm::RecursiveHalving),
];

#[test]
fn the_own_selection_of_mpich_decides_as_its_table() {
    let selection = Ordered::read(&RuleForm::Mpich40.write(&[], None).unwrap());
    let table = AlgorithmTable::from_base(Base::Mpich);
    for op in CollectiveOp::ALL {
        for ranks in [2, 3, 7, 8, 9, 16, 20] {
            for bytes in (0..24).flat_map(|power| [8 << power, (8 << power) + 8]) {
                let extent = RuleExtent {
                    ranks,
                    bytes: Bytes(bytes),
                    total: Bytes(bytes * u64::from(ranks)),
                };
                let name = op.name().to_ascii_lowercase();
                let call = MpichCall::new(&name, ranks.into(), bytes);
                let used = selection.uses(&call).unwrap();
                let found = ENDINGS.iter().find(|(ending, _)| used.ends_with(ending));
                let expected = table.choose(op, &extent).algorithm;
                assert_eq!(
                    found.map(|found| found.1),
                    Some(expected),
                    "{call:?} {used}"
                );
            }
        }
    }
}
