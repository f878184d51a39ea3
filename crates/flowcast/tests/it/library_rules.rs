//! Files for MPI libraries contain the chosen algorithms, if they are read as the libraries read them.

use flowcast::{
    model::algorithm::{Algorithm, AlgorithmTable, Base, Choice, RuleExtent},
    units::{Bytes, CollectiveOp},
};
use flowcast_tuning::library_rules::{LibraryRule, mpich_rules, open_mpi_rules};
use proptest::prelude::*;

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

fn rule(op: CollectiveOp, ranks: u32, from: u64, choice: &str) -> LibraryRule {
    let rule: flowcast::model::algorithm::AlgorithmRule = choice.parse().unwrap();
    LibraryRule {
        op,
        ranks,
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
    let file = open_mpi_rules(&rules).unwrap();
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
    }
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
        let error = open_mpi_rules(&[rule]).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
    let twice = [rule(Bcast, 4, 0, "linear"), rule(Bcast, 4, 0, "chain")];
    let error = open_mpi_rules(&twice).unwrap_err().to_string();
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
        let error = mpich_rules(&[rule], Some(GENERIC)).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
    for generic in ["[]", "{\"collective=bcast\": 3}", "{}"] {
        let rule = rule(Bcast, 4, 0, "binomial");
        assert!(mpich_rules(&[rule], Some(generic)).is_err(), "{generic}");
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
    let json = mpich_rules(&rules, Some(GENERIC)).unwrap();
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
    fn both_files_end_with_the_last_row(
        rows in proptest::collection::btree_map((2u32..9, 0u64..50), 0usize..3, 1..12), ranks in 1u64..11, bytes in 0u64..60,
    ) {
        let algorithms = [Algorithm::Binomial, Algorithm::ScatterRecursiveDoubling, Algorithm::ScatterRing];
        // Each library has another binomial tree.
        let rules = |binomial| -> Vec<LibraryRule> {
            let choices = rows.iter().map(|((ranks, from), which)| {
                let algorithm = if *which == 0 { binomial } else { algorithms[*which] };
                LibraryRule { op: CollectiveOp::Bcast, ranks: *ranks, from: Bytes(*from), choice: Choice::plain(algorithm) }
            });
            choices.collect()
        };
        let expected = rows.iter().rfind(|((of, from), _)| u64::from(*of) == ranks && *from <= bytes).map(|(_, which)| *which);
        let file = open_mpi_rules(&rules(Algorithm::BinomialNearest)).unwrap();
        let number = expected.map_or(0, |which| [6, 8, 9][which]);
        prop_assert_eq!(open_mpi_uses(&file, 7, ranks, bytes)[0], number);
        let json = mpich_rules(&rules(Algorithm::Binomial), Some(GENERIC)).unwrap();
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
    let selection = Ordered::read(&mpich_rules(&[], None).unwrap());
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
