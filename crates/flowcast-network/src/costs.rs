//! Costs of a kind of operation as a list of parameters, each with a prior and, after a fit, an interval.

use std::collections::BTreeMap;

use flowcast_units::{Bytes, Time, TimePerByte};
use serde::{Deserialize, Serialize};

use flowcast_statistics::linear_fit::LinearRow;

/// Unit of a cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CostUnit {
    /// Seconds.
    Seconds,
    /// Seconds per byte.
    SecondsPerByte,
    /// Bytes.
    Bytes,
    /// A number without a unit.
    Ratio,
}

use CostUnit::{Bytes as InBytes, Ratio, Seconds, SecondsPerByte};

impl CostUnit {
    /// The value with its unit, to four digits.
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

/// Rounds to twelve decimals, which removes the rounding errors of scaling.
fn tidy(value: f64) -> f64 {
    (value * 1e12).round() / 1e12
}

/// A cost parameter and its prior, a log-normal distribution.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CostParameter {
    /// Name of the field.
    pub name: &'static str,
    /// Unit of the value.
    pub unit: CostUnit,
    /// Median of the prior.
    pub prior: f64,
    /// Standard deviation of the prior's logarithm.
    pub spread: f64,
}

/// Costs that a fit determines: values above 0, each with its parameter.
pub trait CostParameters: Copy {
    /// Parameters in the order of the fields.
    const PARAMETERS: &'static [CostParameter];

    /// Values in the order of [`CostParameters::PARAMETERS`].
    fn values(&self) -> Vec<f64>;

    /// Creates the costs from all values in the order of [`CostParameters::PARAMETERS`].
    fn from_values(values: &[f64]) -> Self;

    /// The priors as rows of a fit. The fit's unknowns are the logarithmic distances of the parameters from their priors.
    fn prior_rows() -> impl Iterator<Item = LinearRow> {
        let all = Self::PARAMETERS.iter().enumerate();
        all.map(|(at, parameter)| {
            let mut columns = vec![0.0; Self::PARAMETERS.len()];
            columns[at] = 1.0;
            LinearRow {
                columns,
                value: 0.0,
                variance: parameter.spread.powi(2),
            }
        })
    }

    /// Medians of the priors.
    fn prior() -> Self {
        let medians: Vec<f64> = Self::PARAMETERS
            .iter()
            .map(|parameter| parameter.prior)
            .collect();
        Self::from_values(&medians)
    }
}

/// Declares a type of costs: `name: unit, median, spread of its logarithm;` for each parameter.
macro_rules! costs {
    ($(#[$type_doc:meta])* $type:ident { $($(#[$doc:meta])* $name:ident: $unit:ident, $prior:expr, $spread:expr;)* }) => {
        $(#[$type_doc])*
        #[derive(Debug, Clone, Copy, PartialEq)]
        pub struct $type {
            $($(#[$doc])* pub $name: f64,)*
        }

        impl $crate::costs::CostParameters for $type {
            const PARAMETERS: &'static [$crate::costs::CostParameter] = &[
                $($crate::costs::CostParameter {
                    name: stringify!($name),
                    unit: $crate::costs::CostUnit::$unit,
                    prior: $prior,
                    spread: $spread,
                },)*
            ];

            fn values(&self) -> Vec<f64> {
                vec![$(self.$name),*]
            }

            fn from_values(values: &[f64]) -> $type {
                let mut values = values.iter().copied();
                $type { $($name: values.next().expect("a value for each parameter"),)* }
            }
        }
    };
}

pub(crate) use costs;

/// Costs with their 90 % intervals; each is stored as `[value, low, high]` in a file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(
    try_from = "BTreeMap<String, [String; 3]>",
    into = "BTreeMap<String, [String; 3]>",
    bound = "C: CostParameters"
)]
pub struct FittedCosts<C> {
    /// Fitted values, each above 0 in a file.
    pub costs: C,
    /// Lower bounds of the intervals.
    pub low: C,
    /// Upper bounds of the intervals.
    pub high: C,
}

impl<C: CostParameters> From<FittedCosts<C>> for BTreeMap<String, [String; 3]> {
    fn from(fitted: FittedCosts<C>) -> BTreeMap<String, [String; 3]> {
        let columns = [
            fitted.costs.values(),
            fitted.low.values(),
            fitted.high.values(),
        ];
        (0..)
            .zip(C::PARAMETERS)
            .map(|(place, parameter): (usize, &CostParameter)| {
                let texts = columns
                    .each_ref()
                    .map(|column| parameter.unit.text(column[place]));
                (parameter.name.to_owned(), texts)
            })
            .collect()
    }
}

impl<C: CostParameters> TryFrom<BTreeMap<String, [String; 3]>> for FittedCosts<C> {
    type Error = String;

    fn try_from(mut texts: BTreeMap<String, [String; 3]>) -> Result<FittedCosts<C>, String> {
        let mut columns: [Vec<f64>; 3] = Default::default();
        for CostParameter { name, unit, .. } in C::PARAMETERS {
            let own = texts
                .remove(*name)
                .ok_or_else(|| format!("costs: found no `{name}`, expected every cost"))?;
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
        let [costs, low, high] = columns.map(|column| C::from_values(&column));
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
    use crate::collective_costs::CollectiveCosts;

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
        let read = FittedCosts::<CollectiveCosts>::try_from(texts).unwrap();
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
            FittedCosts::<CollectiveCosts>::try_from(without).unwrap_err(),
            "costs: found no `gap`, expected every cost"
        );
        let mut wrong = texts;
        wrong.get_mut("gap").unwrap()[1] = "-1ns/B".to_owned();
        let error = FittedCosts::<CollectiveCosts>::try_from(wrong).unwrap_err();
        assert_eq!(
            error,
            "costs.gap: found `-1ns/B`, expected a time per byte above 0"
        );
    }
}
