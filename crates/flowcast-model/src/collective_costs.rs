//! What the steps of collective operations cost on a machine: the parameters that [`fit`] finds from measured operations.
//!
//! [`fit`]: https://docs.rs/flowcast

use std::collections::BTreeMap;

use flowcast_units::{Bytes, Time, TimePerByte};
use serde::{Deserialize, Serialize};

/// What a number counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CostUnit {
    /// Seconds.
    Seconds,
    /// Seconds per byte.
    SecondsPerByte,
    /// Bytes.
    Bytes,
    /// A plain number.
    Ratio,
}

use CostUnit::{Bytes as InBytes, Ratio, Seconds, SecondsPerByte};

impl CostUnit {
    /// The number with its unit, to four digits.
    pub fn text(self, value: f64) -> String {
        let digits = 10f64.powi(3 - value.log10().floor() as i32);
        let value = (value * digits).round() / digits;
        match self {
            Seconds => format!("{}us", tidy(value * 1e6)),
            SecondsPerByte => format!("{}ns/B", tidy(value * 1e9)),
            InBytes => Bytes(value.round() as u64).to_string(),
            Ratio => tidy(value).to_string(),
        }
    }

    fn parse(self, text: &str) -> Option<f64> {
        let value = match self {
            Seconds => text.parse::<Time>().ok()?.as_seconds(),
            SecondsPerByte => text.parse::<TimePerByte>().ok()?.as_nanos() * 1e-9,
            InBytes => text.parse::<Bytes>().ok()?.0 as f64,
            Ratio => text.parse().ok()?,
        };
        (value > 0.0 && value.is_finite()).then_some(value)
    }
}

/// The nearest number with twelve decimals: what scaling left behind goes away.
fn tidy(value: f64) -> f64 {
    (value * 1e12).round() / 1e12
}

/// A parameter of [`CollectiveCosts`] and what is known of it before anything is measured: a log-normal distribution.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CostParameter {
    /// Its field.
    pub name: &'static str,
    /// What it counts.
    pub unit: CostUnit,
    /// The median.
    pub prior: f64,
    /// The standard deviation of its logarithm.
    pub spread: f64,
}

macro_rules! costs {
    ($($(#[$doc:meta])* $name:ident: $unit:ident, $prior:expr, $spread:expr;)*) => {
        /// What messages and memory cost in the steps of a collective operation.
        #[derive(Debug, Clone, Copy, PartialEq)]
        pub struct CollectiveCosts {
            $($(#[$doc])* pub $name: f64,)*
        }

        /// The parameters in the order of the fields.
        pub const COST_PARAMETERS: &[CostParameter] = &[
            $(CostParameter { name: stringify!($name), unit: $unit, prior: $prior, spread: $spread },)*
        ];

        impl CollectiveCosts {
            /// The values in the order of [`COST_PARAMETERS`].
            pub fn values(&self) -> Vec<f64> {
                vec![$(self.$name),*]
            }

            /// From values in the order of [`COST_PARAMETERS`], all of them.
            pub fn from_values(values: &[f64]) -> CollectiveCosts {
                let mut values = values.iter().copied();
                let mut next = || values.next().expect("a value for each parameter");
                CollectiveCosts { $($name: next(),)* }
            }
        }
    };
}

// Priors: interfaces of 100 to 400 Gbit/s and processors of 2019 to 2023; a factor of 2 to 4 to both sides.
costs! {
    /// Time before the first step of a rank, and by which the slowest begins later than the others.
    start: Seconds, 1e-6, 0.7;
    /// Processor time of a message's sender.
    send_overhead: Seconds, 3e-7, 0.7;
    /// Processor time of a message's receiver.
    receive_overhead: Seconds, 3e-7, 0.7;
    /// Messages up to this size are handed to the interface with their descriptor.
    inline_limit: InBytes, 200.0, 0.5;
    /// By how much longer messages take the processors of both sides.
    beyond_inline: Seconds, 3e-7, 1.0;
    /// Latency inside a node.
    node_latency: Seconds, 3e-7, 0.7;
    /// Latency between nodes of a switch.
    switch_latency: Seconds, 1e-6, 0.5;
    /// Latency between switches of a group.
    group_latency: Seconds, 1.2e-6, 0.5;
    /// Latency between groups.
    global_latency: Seconds, 1.6e-6, 0.5;
    /// Mean by which a message is late by chance; the delays are exponential.
    noise: Seconds, 2e-7, 1.0;
    /// Time per byte inside a node.
    node_gap: SecondsPerByte, 1e-10, 1.0;
    /// Time per byte of an interface.
    gap: SecondsPerByte, 4.3e-11, 0.5;
    /// Messages above this size take longer per byte: they fit no cache.
    long_from: InBytes, 8e6, 1.0;
    /// By how much, for each byte above it.
    long_gap: SecondsPerByte, 4e-11, 1.5;
    /// Messages above this size are sent when their receiver has answered.
    eager_limit: InBytes, 8192.0, 0.7;
    /// What asking and answering takes beyond twice the latency.
    handshake: Seconds, 5e-7, 0.7;
    /// Copies of messages up to the eager limit, at both ends.
    eager_copy: SecondsPerByte, 5e-11, 1.0;
    /// Packing and unpacking of blocks that lie apart.
    pack: SecondsPerByte, 2e-10, 1.0;
    /// Copying the operation's data in memory, once.
    copy: SecondsPerByte, 5e-11, 1.0;
    /// Combining data with others.
    combine: SecondsPerByte, 1e-10, 1.0;
    /// What memory is touched beyond this size comes from outside the cache.
    cache: InBytes, 1048576.0, 0.7;
    /// By how much copying takes longer there.
    far_copy: SecondsPerByte, 1e-10, 1.0;
    /// By how much combining takes longer there.
    far_combine: SecondsPerByte, 1e-10, 1.0;
    /// Temporary memory that each call gets anew from the kernel, above 32 MiB (glibc, `DEFAULT_MMAP_THRESHOLD_MAX`).
    mapped_memory: SecondsPerByte, 2e-10, 1.0;
    /// Two temporaries or more above 128 KiB, which together are given back to the kernel after each call (glibc, `M_TRIM_THRESHOLD`).
    trimmed_memory: SecondsPerByte, 1e-10, 1.5;
    /// Ranks of a node that use up its memory's bandwidth.
    memory_ranks: Ratio, 4.0, 0.7;
    /// The part of the links between groups that the other jobs leave.
    global_share: Ratio, 0.5, 0.5;
}

impl CollectiveCosts {
    /// The medians of what is known before anything is measured.
    pub fn prior() -> CollectiveCosts {
        let medians: Vec<f64> = COST_PARAMETERS
            .iter()
            .map(|parameter| parameter.prior)
            .collect();
        CollectiveCosts::from_values(&medians)
    }
}

/// Costs with their intervals (90 %): each as `[value, low, high]` in a file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(
    try_from = "BTreeMap<String, [String; 3]>",
    into = "BTreeMap<String, [String; 3]>"
)]
pub struct FittedCosts {
    /// The values.
    pub costs: CollectiveCosts,
    /// The lower ends.
    pub low: CollectiveCosts,
    /// The upper ends.
    pub high: CollectiveCosts,
}

impl From<FittedCosts> for BTreeMap<String, [String; 3]> {
    fn from(fitted: FittedCosts) -> BTreeMap<String, [String; 3]> {
        let columns = [
            fitted.costs.values(),
            fitted.low.values(),
            fitted.high.values(),
        ];
        (0..)
            .zip(COST_PARAMETERS)
            .map(|(place, parameter): (usize, &CostParameter)| {
                let texts = columns
                    .each_ref()
                    .map(|column| parameter.unit.text(column[place]));
                (parameter.name.to_owned(), texts)
            })
            .collect()
    }
}

impl TryFrom<BTreeMap<String, [String; 3]>> for FittedCosts {
    type Error = String;

    fn try_from(mut texts: BTreeMap<String, [String; 3]>) -> Result<FittedCosts, String> {
        let mut columns: [Vec<f64>; 3] = Default::default();
        for CostParameter { name, unit, .. } in COST_PARAMETERS {
            let own = texts
                .remove(*name)
                .ok_or_else(|| format!("costs: found no `{name}`, expected it"))?;
            for (column, text) in columns.iter_mut().zip(own) {
                column.push(unit.parse(&text).ok_or_else(|| {
                    format!(
                        "costs.{name}: found `{text}`, expected {} above 0",
                        unit.expected()
                    )
                })?);
            }
        }
        if let Some(other) = texts.keys().next() {
            return Err(format!("costs: found `{other}`, expected a known cost"));
        }
        let [costs, low, high] = columns.map(|column| CollectiveCosts::from_values(&column));
        Ok(FittedCosts { costs, low, high })
    }
}

impl CostUnit {
    fn expected(self) -> &'static str {
        match self {
            Seconds => "a time",
            SecondsPerByte => "a time per byte",
            InBytes => "a size",
            Ratio => "a number",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_read_as_they_are_written() {
        let costs = CollectiveCosts::prior();
        let fitted = FittedCosts {
            costs,
            low: costs,
            high: costs,
        };
        let texts = BTreeMap::from(fitted.clone());
        assert_eq!(texts["send_overhead"][0], "0.3us");
        let read = FittedCosts::try_from(texts).unwrap();
        for (read, written) in read.costs.values().iter().zip(fitted.costs.values()) {
            assert!((read / written - 1.0).abs() < 1e-3);
        }
    }

    #[test]
    fn a_cost_that_is_missing_or_wrong_is_named() {
        let costs = CollectiveCosts::prior();
        let texts = BTreeMap::from(FittedCosts {
            costs,
            low: costs,
            high: costs,
        });
        let mut without = texts.clone();
        without.remove("gap");
        assert_eq!(
            FittedCosts::try_from(without).unwrap_err(),
            "costs: found no `gap`, expected it"
        );
        let mut wrong = texts;
        wrong.get_mut("gap").unwrap()[1] = "-1ns/B".to_owned();
        let error = FittedCosts::try_from(wrong).unwrap_err();
        assert_eq!(
            error,
            "costs.gap: found `-1ns/B`, expected a time per byte above 0"
        );
    }
}
