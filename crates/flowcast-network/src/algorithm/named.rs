//! Names that MPI libraries and benchmarks give to algorithms.

use std::{collections::BTreeMap, sync::LazyLock};

use flowcast_units::CollectiveOp;
use thiserror::Error;

use super::{AlgorithmRule, AlgorithmTable, Base, Choice, RuleExtent};

/// Reason why a name cannot be resolved to an algorithm.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NameError {
    /// No table exists for the library.
    #[error(
        "library: found `{library}` `{version}`, expected OMPI or customOMPI 4.1 or later, MPICH 4.0 or later, or \
         CRAY_MPICH 8"
    )]
    Library {
        /// Name of the library.
        library: String,
        /// Version of the library.
        version: String,
    },
    /// The library has no algorithm of this name for the operation.
    #[error("algorithm of {}: found `{algorithm}`, expected one of {known}", op.name())]
    Algorithm {
        /// The operation.
        op: CollectiveOp,
        /// Name of the algorithm.
        algorithm: String,
        /// Names of known algorithms, including `default`.
        known: String,
    },
}

/// Returns the algorithm that a library uses under a name such as `ring_segmented_ompi`, `recexch_mpich` or `knomial`.
/// `default`, with or without the library's suffix, selects from the library's table. MPICH's `nb` and `non_blocking` select
/// from its table for non-blocking operations. Segments and widths are the library's defaults.
///
/// ```
/// use flowcast_network::algorithm::{RuleExtent, named_choice};
/// use flowcast_units::{Bytes, CollectiveOp};
///
/// let extent = RuleExtent::from_buffer(CollectiveOp::Bcast, 32, Bytes(1 << 20));
/// let choice = named_choice(CollectiveOp::Bcast, "OMPI", "4.1.5", "chain_ompi", &extent)?;
/// assert_eq!(choice.to_string(), "chain width 4");
/// let choice = named_choice(CollectiveOp::Bcast, "OMPI", "4.1.5", "default_ompi", &extent)?;
/// assert_eq!(choice.to_string(), "knomial width 4");
/// # Ok::<(), flowcast_network::algorithm::NameError>(())
/// ```
///
/// # Errors
/// [`NameError`].
pub fn named_choice(
    op: CollectiveOp,
    library: &str,
    version: &str,
    algorithm: &str,
    extent: &RuleExtent,
) -> Result<Choice, NameError> {
    let base = library_base(library, version)?;
    let name = bare_name(algorithm);
    let names = match base {
        Base::OpenMpi => &OPEN_MPI,
        Base::Mpich | Base::CrayMpich => &MPICH,
    };
    let known = names.get(&op);
    if base == Base::OpenMpi
        && major_version(version) < 6
        && SINCE_OPEN_MPI_6.contains(&name.as_str())
    {
        return Ok(AlgorithmTable::from_base(base).choose(op, extent));
    }
    if let Some(rules) = known.and_then(|known| known.get(&name)) {
        let table = AlgorithmTable {
            base,
            rows: BTreeMap::from([(op, rules.clone())]),
            ..AlgorithmTable::default()
        };
        return Ok(table.choose(op, extent));
    }
    match (name.as_str(), base) {
        ("default" | "auto", _) | ("nb" | "non_blocking", Base::CrayMpich) => {
            Ok(AlgorithmTable::from_base(base).choose(op, extent))
        }
        ("nb" | "non_blocking", Base::Mpich) => Ok(MPICH_NON_BLOCKING.choose(op, extent)),
        _ => Err(NameError::Algorithm {
            op,
            algorithm: algorithm.to_owned(),
            known: known_names(known, base),
        }),
    }
}

/// Algorithms that Open MPI 6 introduced. In earlier versions their numbers select no algorithm, and the library's table
/// decides. On 4 to 16 nodes `allgather_reduce` of 5.0.7 takes the same time as Rabenseifner's algorithm, to within one per
/// cent.
const SINCE_OPEN_MPI_6: [&str; 4] = [
    "allgather_reduce",
    "bruck_k_fanout",
    "direct",
    "direct_messaging",
];

fn major_version(version: &str) -> u32 {
    version
        .split('.')
        .next()
        .and_then(|number| number.parse().ok())
        .unwrap_or(0)
}

type Names = BTreeMap<CollectiveOp, BTreeMap<String, Vec<AlgorithmRule>>>;

static OPEN_MPI: LazyLock<Names> =
    LazyLock::new(|| read_names(include_str!("../../collectives/openmpi-names.toml")));
static MPICH: LazyLock<Names> =
    LazyLock::new(|| read_names(include_str!("../../collectives/mpich-names.toml")));
static MPICH_NON_BLOCKING: LazyLock<AlgorithmTable> = LazyLock::new(|| {
    let text = include_str!("../../collectives/mpich-nonblocking.toml");
    AlgorithmTable::from_toml(text)
        .expect("the tables of the library are well formed")
        .with_base()
});

/// The algorithms of MPICH 4.0 for non-blocking operations, for all operations.
pub fn mpich_non_blocking() -> &'static AlgorithmTable {
    &MPICH_NON_BLOCKING
}

fn read_names(text: &str) -> Names {
    toml::from_str(text).expect("the tables of the library are well formed")
}

/// Names of the algorithms of an operation in a library, without `default`.
pub fn algorithm_names(op: CollectiveOp, base: Base) -> impl Iterator<Item = &'static str> {
    let names = match base {
        Base::OpenMpi => &OPEN_MPI,
        Base::Mpich | Base::CrayMpich => &MPICH,
    };
    names
        .get(&op)
        .into_iter()
        .flatten()
        .map(|(name, _)| name.as_str())
}

/// Returns the library whose table applies. A version without its own table uses the table of the version before it.
///
/// # Errors
/// [`NameError::Library`].
pub fn library_base(library: &str, version: &str) -> Result<Base, NameError> {
    let mut numbers = version
        .split('.')
        .map_while(|number| number.parse::<u32>().ok());
    let version_number = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    match library.to_ascii_lowercase().as_str() {
        "ompi" | "customompi" | "openmpi" if version_number >= (4, 1) => Ok(Base::OpenMpi),
        "mpich" if version_number >= (4, 0) => Ok(Base::Mpich),
        "cray_mpich" if version_number >= (8, 0) => Ok(Base::CrayMpich),
        _ => Err(NameError::Library {
            library: library.to_owned(),
            version: version.to_owned(),
        }),
    }
}

fn bare_name(algorithm: &str) -> String {
    let name = algorithm.to_ascii_lowercase().replace('-', "_");
    let bare = name
        .strip_suffix("_ompi")
        .or_else(|| name.strip_suffix("_mpich"));
    bare.unwrap_or(&name).to_owned()
}

fn known_names(known: Option<&BTreeMap<String, Vec<AlgorithmRule>>>, base: Base) -> String {
    let further: &[&str] = match base {
        Base::OpenMpi => &["default"],
        Base::Mpich | Base::CrayMpich => &["default", "non_blocking"],
    };
    let own = known.into_iter().flatten().map(|(name, _)| name.as_str());
    own.chain(further.iter().copied())
        .collect::<Vec<_>>()
        .join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::Algorithm;
    use flowcast_units::Bytes;

    fn chosen(
        op: CollectiveOp,
        library: [&str; 2],
        algorithm: &str,
        ranks: u32,
        buffer: u64,
    ) -> String {
        let extent = RuleExtent::from_buffer(op, ranks, Bytes(buffer));
        named_choice(op, library[0], library[1], algorithm, &extent)
            .unwrap()
            .to_string()
    }

    #[test]
    fn every_name_means_an_algorithm_of_its_operation() {
        for names in [&*OPEN_MPI, &*MPICH] {
            for (op, known) in names {
                for (name, rules) in known {
                    assert!(rules.last().unwrap().conditions.is_empty(), "{op:?} {name}");
                    for rule in rules {
                        assert!(
                            Algorithm::all_for(*op).contains(&rule.choice.algorithm),
                            "{op:?} {name}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn names_of_measurements_mean_what_the_library_does() {
        use CollectiveOp::*;
        let open_mpi = ["OMPI", "4.1.6"];
        let cray = ["CRAY_MPICH", "8.1.29"];
        for (op, library, name, ranks, buffer, expected) in [
            (
                Reduce,
                open_mpi,
                "in_order_ompi",
                32,
                1 << 20,
                "in-order-binary",
            ),
            (
                Gather,
                open_mpi,
                "linear_synch_ompi",
                32,
                1 << 20,
                "linear-sync",
            ),
            (
                Allreduce,
                open_mpi,
                "ring_segmented_ompi",
                32,
                1 << 20,
                "ring",
            ),
            (
                Allreduce,
                open_mpi,
                "ring_ompi",
                32,
                64,
                "recursive-doubling",
            ),
            (
                Allgather,
                open_mpi,
                "recursive_doubling_ompi",
                60,
                1 << 20,
                "bruck",
            ),
            (
                Allreduce,
                ["customOMPI", "5.0.7"],
                "allgather_reduce_ompi",
                4,
                1 << 20,
                "rabenseifner",
            ),
            (
                Allreduce,
                cray,
                "rabenseifner_mpich",
                8,
                1 << 20,
                "rabenseifner",
            ),
            (
                Allreduce,
                cray,
                "non_blocking_mpich",
                16,
                2048,
                "recursive-doubling",
            ),
            (Allreduce, cray, "default_mpich", 16, 16384, "rabenseifner"),
            (
                Allgather,
                cray,
                "default_mpich",
                16,
                1 << 20,
                "recursive-doubling",
            ),
            (Allgather, cray, "default_mpich", 16, 64 << 20, "ring"),
            (
                Allreduce,
                ["MPICH", "4.0.2"],
                "default",
                16,
                2048,
                "rabenseifner",
            ),
            (
                Allreduce,
                ["MPICH", "4.0.2"],
                "nb",
                16,
                2048,
                "recursive-doubling",
            ),
            (
                Bcast,
                ["MPICH", "4.3"],
                "pipelined_tree",
                16,
                2048,
                "k-ary width 2 segment 8KiB",
            ),
        ] {
            assert_eq!(
                chosen(op, library, name, ranks, buffer),
                expected,
                "{op:?} {name}"
            );
        }
    }

    #[test]
    fn an_unknown_name_is_reported_with_the_known_names() {
        let extent = RuleExtent::from_buffer(CollectiveOp::Scan, 8, Bytes(64));
        let scan = |library, name| {
            named_choice(CollectiveOp::Scan, library, "4.1.2", name, &extent)
                .unwrap_err()
                .to_string()
        };
        assert_eq!(
            scan("OMPI", "wheel_ompi"),
            "algorithm of Scan: found `wheel_ompi`, expected one of linear, recursive_doubling, default"
        );
        assert_eq!(
            scan("CRAY_MPICH", "ring"),
            "library: found `CRAY_MPICH` `4.1.2`, expected OMPI or customOMPI 4.1 or later, MPICH 4.0 or later, or \
             CRAY_MPICH 8"
        );
    }
}
