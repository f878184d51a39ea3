//! Costs of a kind of operation as a list of parameters: what is known of each before anything is measured, and after a fit.

use std::collections::BTreeMap;

use flowcast_units::{Bytes, Time, TimePerByte};
use serde::{Deserialize, Serialize};

use flowcast_statistics::linear_fit::LinearRow;

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

/// A parameter of some costs and what is known of it before anything is measured: a log-normal distribution.
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

/// Costs that a fit finds: numbers above 0, each with its parameter.
pub trait CostParameters: Copy {
    /// The parameters in the order of the fields.
    const PARAMETERS: &'static [CostParameter];

    /// The values in the order of [`CostParameters::PARAMETERS`].
    fn values(&self) -> Vec<f64>;

    /// From values in the order of [`CostParameters::PARAMETERS`], all of them.
    fn from_values(values: &[f64]) -> Self;

    /// What is known before anything is measured, as rows of a fit of each parameter's distance to it in logarithms.
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

    /// The medians of what is known before anything is measured.
    fn prior() -> Self {
        let medians: Vec<f64> = Self::PARAMETERS
            .iter()
            .map(|parameter| parameter.prior)
            .collect();
        Self::from_values(&medians)
    }
}

/// A type of costs: `name: unit, median, spread of its logarithm;` for each parameter.
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

/// Costs with their intervals (90 %): each as `[value, low, high]` in a file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(
    try_from = "BTreeMap<String, [String; 3]>",
    into = "BTreeMap<String, [String; 3]>",
    bound = "C: CostParameters"
)]
pub struct FittedCosts<C> {
    /// The values.
    pub costs: C,
    /// The lower ends.
    pub low: C,
    /// The upper ends.
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
            "costs: found no `gap`, expected it"
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
