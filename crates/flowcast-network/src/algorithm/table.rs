//! Rules that select the algorithm of each operation.

use flowcast_units::{CollectiveOp, TimePerByte, named};
use std::{collections::BTreeMap, sync::LazyLock};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::{Algorithm, AlgorithmRule, Choice, RuleExtent};

/// Reason why a table was rejected.
#[derive(Debug, Error)]
pub enum TableError {
    /// The text is not a table; the message names line, column and field.
    #[error(transparent)]
    Malformed(#[from] Box<toml::de::Error>),
    /// The algorithm cannot carry out its operation.
    #[error("collectives.algorithms.rows.{}: found `{algorithm}`, expected one of {known}", op.name())]
    Algorithm {
        /// The operation.
        op: CollectiveOp,
        /// Name of the algorithm.
        algorithm: &'static str,
        /// Names of the algorithms that can carry out the operation.
        known: String,
    },
}

named! {
    /// The defaults of a library.
    #[derive(Default, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Base {
        /// Open MPI 4.1 and 5.0: the fixed decisions of its component `tuned`, which are the same in both.
        #[default]
        #[serde(rename = "openmpi")]
        OpenMpi = "openmpi",
        /// MPICH 4.0: its generic tuning table.
        Mpich = "mpich",
        /// Cray MPICH 8.1: MPICH 4.0 with thresholds measured on a Cray EX.
        CrayMpich = "cray-mpich",
    }
}

impl Base {
    const fn text(self) -> &'static str {
        match self {
            Base::OpenMpi => include_str!("../../collectives/openmpi-4.1.toml"),
            Base::Mpich => include_str!("../../collectives/mpich-4.0.toml"),
            Base::CrayMpich => include_str!("../../collectives/cray-mpich-8.1.toml"),
        }
    }
}

/// Rules by operation. An operation without a matching rule uses the base.
///
/// ```
/// use flowcast_network::algorithm::{Algorithm, AlgorithmTable, RuleExtent};
/// use flowcast_units::{Bytes, CollectiveOp};
///
/// let table = AlgorithmTable::from_toml("[rows]\nBcast = [\"bytes < 1KiB: binomial\", \"chain\"]")?;
/// let extent = RuleExtent { ranks: 8, bytes: Bytes(64), total: Bytes(64) };
/// assert_eq!(table.choose(CollectiveOp::Bcast, &extent).algorithm, Algorithm::Binomial);
/// # Ok::<(), flowcast_network::algorithm::TableError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AlgorithmTable {
    /// Library whose defaults apply if no rule matches.
    #[serde(default)]
    pub base: Base,
    /// Rules by operation; the first rule that holds decides.
    #[serde(default)]
    pub rows: BTreeMap<CollectiveOp, Vec<AlgorithmRule>>,
    /// Time per byte for combining vectors on a rank, 0 or more. It is a property of the machine, so tables never contain it
    /// in their text.
    #[serde(skip)]
    pub reduction: TimePerByte,
}

impl AlgorithmTable {
    /// The defaults of a library as explicit rules.
    pub fn from_base(base: Base) -> AlgorithmTable {
        // Parsed once, because a sweep requests the table for each of its networks.
        static OPEN_MPI: LazyLock<AlgorithmTable> =
            LazyLock::new(|| AlgorithmTable::read_own(Base::OpenMpi));
        static MPICH: LazyLock<AlgorithmTable> =
            LazyLock::new(|| AlgorithmTable::read_own(Base::Mpich));
        static CRAY_MPICH: LazyLock<AlgorithmTable> =
            LazyLock::new(|| AlgorithmTable::read_own(Base::CrayMpich).with_base());
        match base {
            Base::OpenMpi => OPEN_MPI.clone(),
            Base::Mpich => MPICH.clone(),
            Base::CrayMpich => CRAY_MPICH.clone(),
        }
    }

    fn read_own(base: Base) -> AlgorithmTable {
        AlgorithmTable::from_toml(base.text()).expect("the tables of the library are well formed")
    }

    /// Reads a table.
    ///
    /// # Errors
    /// [`TableError`].
    pub fn from_toml(text: &str) -> Result<AlgorithmTable, TableError> {
        let table: AlgorithmTable = toml::from_str(text).map_err(Box::new)?;
        table.check()?;
        Ok(table)
    }

    /// Checks that each operation can be carried out by the algorithms of its rules.
    ///
    /// # Errors
    /// [`TableError::Algorithm`].
    pub fn check(&self) -> Result<(), TableError> {
        for (op, rules) in &self.rows {
            let known = Algorithm::all_for(*op);
            if let Some(rule) = rules
                .iter()
                .find(|rule| !known.contains(&rule.choice.algorithm))
            {
                let known = known
                    .iter()
                    .map(|algorithm| algorithm.name())
                    .collect::<Vec<_>>()
                    .join(", ");
                return Err(TableError::Algorithm {
                    op: *op,
                    algorithm: rule.choice.algorithm.name(),
                    known,
                });
            }
        }
        Ok(())
    }

    /// The table with the rules of its base appended to its own rules.
    pub fn with_base(&self) -> AlgorithmTable {
        let mut whole = AlgorithmTable::from_base(self.base);
        for (op, rules) in &self.rows {
            let behind = whole.rows.remove(op).unwrap_or_default();
            whole
                .rows
                .insert(*op, rules.iter().cloned().chain(behind).collect());
        }
        whole
    }

    /// Returns the algorithm for an operation. An algorithm that requires another number of ranks is replaced.
    pub fn choose(&self, op: CollectiveOp, extent: &RuleExtent) -> Choice {
        let rules = self.rows.get(&op).into_iter().flatten();
        let found = rules
            .into_iter()
            .find(|rule| rule.holds(extent))
            .map(|rule| rule.choice);
        let choice = found.unwrap_or(Choice::plain(Algorithm::all_for(op)[0]));
        Choice {
            algorithm: choice.algorithm.for_ranks(op, extent.ranks),
            ..choice
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flowcast_units::Bytes;

    fn chosen(base: Base, op: CollectiveOp, ranks: u32, bytes: u64) -> String {
        let total = Bytes(bytes * u64::from(ranks));
        let vector = matches!(
            op,
            CollectiveOp::Bcast | CollectiveOp::Reduce | CollectiveOp::Allreduce
        );
        let extent = RuleExtent {
            ranks,
            bytes: Bytes(bytes),
            total: if vector { Bytes(bytes) } else { total },
        };
        AlgorithmTable::from_base(base)
            .choose(op, &extent)
            .to_string()
    }

    #[test]
    fn the_defaults_end_with_an_unconditional_rule_for_each_operation() {
        for base in Base::ALL {
            let table = AlgorithmTable::from_base(base);
            for op in CollectiveOp::ALL {
                let last = table.rows[&op].last().unwrap();
                assert!(last.conditions.is_empty(), "{base:?} {op:?}");
            }
        }
    }

    #[test]
    fn open_mpi_decides_as_in_its_source() {
        use CollectiveOp::*;
        for (op, ranks, bytes, expected) in [
            (Allreduce, 16, 32, "recursive-doubling"),
            (Allreduce, 3, 9000, "recursive-doubling"),
            (Allreduce, 3, 20000, "ring"),
            (Allreduce, 16, 1 << 20, "rabenseifner"),
            (Bcast, 64, 100, "knomial width 4"),
            (Bcast, 16, 2 << 20, "scatter-recursive-doubling"),
            (Alltoall, 64, 1000, "bruck"),
            (Alltoall, 64, 1 << 20, "pairwise"),
            (Allgather, 33, 100, "bruck"),
            (Allgather, 33, 2000, "ring"),
            (Allgather, 34, 2000, "neighbor-exchange"),
            (Barrier, 6, 0, "linear"),
            (Barrier, 32, 0, "recursive-doubling"),
            (Gather, 100, 1 << 20, "binomial"),
        ] {
            assert_eq!(
                chosen(Base::OpenMpi, op, ranks, bytes),
                expected,
                "{op:?} {ranks} {bytes}"
            );
        }
    }

    #[test]
    fn mpich_decides_by_its_thresholds() {
        use CollectiveOp::*;
        for (op, ranks, bytes, expected) in [
            (Bcast, 7, 1 << 20, "binomial"),
            (Bcast, 16, 12288, "binomial"),
            (Bcast, 16, 12289, "scatter-recursive-doubling"),
            (Bcast, 16, 524289, "scatter-ring"),
            (Bcast, 15, 12289, "scatter-ring"),
            (Allgather, 16, 32767, "recursive-doubling"),
            (Allgather, 16, 32768, "ring"),
            (Allgather, 15, 5461, "bruck"),
            (Allgather, 15, 5462, "ring"),
            (Alltoall, 8, 256, "bruck"),
            (Alltoall, 8, 257, "linear width 32"),
            (Alltoall, 8, 32769, "pairwise"),
            (Allreduce, 16, 8, "recursive-doubling"),
            (Allreduce, 16, 4096, "rabenseifner"),
            (Reduce, 16, 2048, "binomial"),
            (Reduce, 16, 2049, "rabenseifner"),
        ] {
            assert_eq!(
                chosen(Base::Mpich, op, ranks, bytes),
                expected,
                "{op:?} {ranks} {bytes}"
            );
        }
    }

    #[test]
    fn own_rules_precede_those_of_the_base() {
        let table =
            AlgorithmTable::from_toml("base = 'mpich'\n[rows]\nBcast = ['bytes < 1KiB: linear']")
                .unwrap();
        let extent = |bytes| RuleExtent {
            ranks: 16,
            bytes: Bytes(bytes),
            total: Bytes(bytes),
        };
        let whole = table.with_base();
        assert_eq!(
            whole.choose(CollectiveOp::Bcast, &extent(1000)),
            Choice::plain(Algorithm::Linear)
        );
        assert_eq!(
            whole.choose(CollectiveOp::Bcast, &extent(2000)),
            Choice::plain(Algorithm::Binomial)
        );
        assert_eq!(
            toml::from_str::<AlgorithmTable>(&toml::to_string(&whole).unwrap()).unwrap(),
            whole
        );
    }

    #[test]
    fn an_algorithm_for_another_operation_is_refused() {
        let error = AlgorithmTable::from_toml("[rows]\nScan = ['bruck']")
            .unwrap_err()
            .to_string();
        assert_eq!(
            error,
            "collectives.algorithms.rows.Scan: found `bruck`, expected one of linear, recursive-doubling"
        );
        let error = AlgorithmTable::from_toml("[rows]\nScan = ['bytes: ring']")
            .unwrap_err()
            .to_string();
        assert!(error.contains("found `bytes` in `bytes: ring`"), "{error}");
    }
}
