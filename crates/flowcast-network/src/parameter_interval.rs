//! Confidence intervals of the fields of a network file.
//!
//! An interval with the level `p` means that the field is distributed around its value `v` like a normal variable whose
//! distances to the two ends are `z = Φ⁻¹((1+p)/2)` standard deviations; the two sides may differ. Fields with a lower end
//! above 0 are distributed in their logarithm, the others on a linear scale.

use std::collections::BTreeMap;

use crate::quantity::Quantity;
use flowcast_statistics::resampling::normal_score;

section! {
    /// A confidence interval of a field, in the field's unit.
    pub struct ParameterInterval {
        /// Lower end, in the unit of the field; at most the field's value.
        /// Default: required. Example: `"4.2us"`.
        low: Quantity,
        /// Upper end, in the unit of the field; at least the field's value.
        /// Default: required. Example: `"5.0us"`.
        high: Quantity,
        /// Confidence level, above 0 and below 1.
        /// Default: required. Example: `0.95`.
        level: f64,
        /// Correlations with other fields that have an interval, by dotted name, above -1 and below 1. Only one field of
        /// each pair lists the correlation.
        /// Default: 0. Example: `{ "nic.gap_per_byte" = -0.7 }`.
        correlations: BTreeMap<String, f64> | default,
    }
}

impl ParameterInterval {
    /// Creates an interval from `low` to `high`, extended to the field's value if a bootstrap left it outside.
    pub fn around(
        value: impl Into<Quantity>,
        low: impl Into<Quantity>,
        high: impl Into<Quantity>,
        level: f64,
    ) -> ParameterInterval {
        let (value, low, high) = (value.into(), low.into(), high.into());
        let low = if low.number() > value.number() {
            value
        } else {
            low
        };
        let high = if high.number() < value.number() {
            value
        } else {
            high
        };
        ParameterInterval {
            low,
            high,
            level,
            correlations: BTreeMap::new(),
        }
    }

    /// `true` if the ends differ. The ends of a single measurement coincide and carry no information.
    pub fn has_width(&self) -> bool {
        self.low.number() < self.high.number()
    }

    /// Standard error of a symmetrically distributed value, in the unit of [`Quantity::number`].
    pub fn standard_error(&self) -> f64 {
        (self.high.number() - self.low.number())
            / (2.0 * normal_score(f64::midpoint(1.0, self.level)))
    }

    /// Value of the field at this number of standard deviations from `value`.
    pub(crate) fn at(&self, value: f64, score: f64) -> f64 {
        let end = if score < 0.0 {
            self.low.number()
        } else {
            self.high.number()
        };
        let deviations = score.abs() / normal_score(f64::midpoint(1.0, self.level));
        if self.low.number() > 0.0 {
            value * (end / value).powf(deviations)
        } else {
            (value + (end - value) * deviations).max(0.0)
        }
    }
}
