//! Costs derived from measured collective operations: the section `[collectives.measured]` of a network file.

use flowcast_units::{Bytes, CollectiveOp};

use crate::{algorithm::Choice, collective_costs::CollectiveCosts, costs::FittedCosts};

section! {
    /// Costs of the steps of operations on a machine, and the residuals that they leave unexplained.
    pub struct MeasuredCollectives {
        /// The machine, as the table of its operations names it.
        system: String,
        /// By which the half-widths of intervals are multiplied, so that they held for runs that were left out.
        widening: f64,
        /// What the steps cost.
        costs: FittedCosts<CollectiveCosts>,
        /// How what is left over hangs together.
        spread: ResidualSpread,
        /// What is left over, of this machine and of others with the same algorithms.
        series: Vec<ResidualSeries>,
    }

    /// Standard deviations of the parts of `ln(measured / predicted)` that measurements share, and the distances over which
    /// residuals are correlated.
    pub struct ResidualSpread + Copy {
        /// The same algorithm of an operation, on any machine.
        algorithm: f64,
        /// The same algorithm of an operation on the same machine.
        algorithm_here: f64,
        /// The same operation on the same machine.
        operation_here: f64,
        /// The same run, for each doubling of its nodes: what other jobs and the place in the machine do.
        run: f64,
        /// The same operation on the same machine, for the square root of each doubling of its ranks per node: they share memory,
        /// caches and interfaces.
        shared_node: f64,
        /// A single measurement, in common with no other.
        single: f64,
        /// A single measurement, for each doubling of its nodes: what other jobs do to it alone.
        disturbance: f64,
        /// Doublings of the size over which residuals stay correlated.
        sizes: f64,
        /// Doublings of the number of ranks over which residuals stay correlated.
        ranks: f64,
    }

    /// Residuals of one algorithm in one run.
    pub struct ResidualSeries {
        /// Name of the machine, as in the table of operations.
        system: String,
        /// Name of the run on that machine.
        run: String,
        /// Number of nodes of the run.
        nodes: u32,
        /// Number of ranks of the run, on all nodes together.
        ranks: u32,
        /// The collective operation that was measured.
        operation: CollectiveOp,
        /// The algorithm that carried the operation out, written as text.
        algorithm: Choice [with = "choice_as_text"],
        /// Buffer sizes that were measured, one for each factor.
        bytes: Vec<Bytes>,
        /// Measured time divided by the time of the steps, by size; above 0.
        factors: Vec<f64>,
    }
}

mod choice_as_text {
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

    use crate::algorithm::{AlgorithmRule, Choice};

    pub(super) fn serialize<S: Serializer>(
        choice: &Choice,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        choice.to_string().serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Choice, D::Error> {
        let text = String::deserialize(deserializer)?;
        let rule: AlgorithmRule = text.parse().map_err(D::Error::custom)?;
        match rule.conditions.is_empty() {
            true => Ok(rule.choice),
            false => Err(D::Error::custom(format!(
                "found `{text}`, expected an algorithm without conditions"
            ))),
        }
    }
}
