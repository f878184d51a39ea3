//! Costs derived from measured collective operations: the section `[collectives.measured]` of a network file.

use flowcast_units::{Bytes, CollectiveOp};

use crate::{algorithm::Choice, collective_costs::CollectiveCosts, costs::FittedCosts};

section! {
    /// Costs of the steps of operations on a machine, and the residuals that they leave unexplained.
    pub struct MeasuredCollectives {
        /// Name of the machine, as in the table of operations.
        system: String,
        /// Factor for the half-widths of intervals on at least twice the fitted nodes, chosen such that the intervals hold for
        /// runs left out of the fit. Its square root is the factor on fitted numbers of nodes.
        widening: f64,
        /// Costs of the steps.
        costs: FittedCosts<CollectiveCosts>,
        /// Standard deviations and correlation lengths of the residuals.
        spread: ResidualSpread,
        /// Residuals of this machine and of other machines with the same algorithms.
        series: Vec<ResidualSeries>,
    }

    /// Standard deviations of the parts of `ln(measured / predicted)` that measurements share, and the distances over which
    /// residuals are correlated.
    pub struct ResidualSpread + Copy {
        /// Part shared by the same algorithm of an operation on any machine, for 1 MiB on 32 nodes. This and the next two parts
        /// are proportional to the doublings of the size and to the square root of the doublings of the nodes.
        algorithm: f64,
        /// Part shared by the same algorithm of an operation on the same machine.
        algorithm_here: f64,
        /// Part shared by the same operation on the same machine.
        operation_here: f64,
        /// Part shared by the same run, for each doubling of its nodes: effect of other jobs and of the placement in the
        /// machine.
        run: f64,
        /// Part shared by the same operation on the same machine, for the square root of each doubling of its ranks per
        /// node, which share memory, caches and interfaces.
        shared_node: f64,
        /// Part of a single measurement.
        single: f64,
        /// Part of a single measurement, for each doubling of its nodes: effect of other jobs on it alone.
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
        /// Number of ranks of the run on all nodes.
        ranks: u32,
        /// Collective operation whose times were measured.
        operation: CollectiveOp,
        /// Algorithm of the operation, as text.
        algorithm: Choice [with = "choice_as_text"],
        /// Measured buffer sizes, one for each factor.
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
