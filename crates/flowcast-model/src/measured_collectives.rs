//! What measured collective operations say of a machine: the section `[collectives.measured]` of a network file.

use flowcast_units::{Bytes, CollectiveOp};
use serde::{Deserialize, Serialize};

use crate::{algorithm::Choice, collective_costs::CollectiveCosts, costs::FittedCosts};

/// What the steps of operations cost on a machine, and what they leave unexplained.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeasuredCollectives {
    /// The machine, as the table of its operations names it.
    pub system: String,
    /// By which the half-widths of intervals are multiplied, so that they held for runs that were left out.
    pub widening: f64,
    /// What the steps cost.
    pub costs: FittedCosts<CollectiveCosts>,
    /// How what is left over hangs together.
    pub spread: ResidualSpread,
    /// What is left over, of this machine and of others with the same algorithms.
    pub series: Vec<ResidualSeries>,
}

/// Standard deviations of `ln(measured / predicted)` by what they have in common, and over which distances that holds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResidualSpread {
    /// The same algorithm of an operation, on any machine.
    pub algorithm: f64,
    /// The same algorithm of an operation on the same machine.
    pub algorithm_here: f64,
    /// The same operation on the same machine.
    pub operation_here: f64,
    /// The same run, for each doubling of its nodes: what other jobs and the place in the machine do.
    pub run: f64,
    /// The same operation on the same machine, for the square root of each doubling of its ranks per node: they share memory,
    /// caches and interfaces.
    pub shared_node: f64,
    /// The single measurement.
    pub single: f64,
    /// The single measurement, for each doubling of its nodes: what other jobs do to it alone.
    pub disturbance: f64,
    /// Distance in size, in doublings.
    pub sizes: f64,
    /// Distance in number of ranks, in doublings.
    pub ranks: f64,
}

/// What one algorithm left over in one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResidualSeries {
    /// The machine.
    pub system: String,
    /// The run.
    pub run: String,
    /// Its nodes.
    pub nodes: u32,
    /// Its ranks.
    pub ranks: u32,
    /// The operation.
    pub operation: CollectiveOp,
    /// Its algorithm.
    #[serde(with = "choice_as_text")]
    pub algorithm: Choice,
    /// Sizes of the buffer.
    pub bytes: Vec<Bytes>,
    /// What was measured as multiples of what the steps take, above 0.
    pub factors: Vec<f64>,
}

mod choice_as_text {
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

    use crate::algorithm::{Choice, Rule};

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
        let rule: Rule = text.parse().map_err(D::Error::custom)?;
        match rule.conditions.is_empty() {
            true => Ok(rule.choice),
            false => Err(D::Error::custom(format!(
                "found `{text}`, expected an algorithm without conditions"
            ))),
        }
    }
}
