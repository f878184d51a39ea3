//! Warnings that a reader has to know before the numbers of a fit.

use std::fmt;

use super::{ConflictFit, outcome::Bound};

/// Error of the best model on data that no fit has seen, as a fraction, above which it does not explain the network.
const FAR_OFF: f64 = 0.1;

/// A property of a fit that its numbers do not show.
#[derive(Debug, Clone, PartialEq)]
pub enum Warning {
    /// The best model has a large error on data that no fit has seen.
    FarOff {
        /// Name of the model.
        model: &'static str,
        /// Mean absolute error, as a fraction.
        mean_absolute: f64,
        /// `true` if the error is on random patterns, `false` if it is on conflicts left out.
        on_random_patterns: bool,
    },
    /// A parameter of the best model is at a bound of its range.
    AtBound {
        /// Dotted name of the parameter.
        field: &'static str,
        /// The fitted value, in the unit of its field.
        value: f64,
        /// The bound that it has reached.
        bound: Bound,
    },
    /// Every conflict was measured once, so the variation of repetitions is unknown.
    NoRepetitions,
    /// The links between racks did not limit the measured flows.
    BackboneUnknown,
    /// No conflict depends on a parameter.
    WithoutInfluence {
        /// Dotted name of the parameter.
        field: &'static str,
        /// Value at the end of the search.
        value: f64,
    },
}

use Warning::*;

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FarOff { model, mean_absolute, on_random_patterns } => write!(
                f,
                "no model explains this network: the mean error of the best, {model}, on {} is {:.1} %",
                if *on_random_patterns { "the random patterns" } else { "conflicts left out of the fit" },
                mean_absolute * 100.0
            ),
            AtBound { field, value, bound } => write!(
                f,
                "{field} is {value:.4}, the {} bound of its range, and has no interval: the model may not suit this \
                 network",
                bound.name()
            ),
            NoRepetitions => {
                f.write_str("each conflict was measured once, which gives no intervals; measure with more --repetitions")
            }
            BackboneUnknown => f.write_str(
                "the backbone was not saturated and is assumed to be unlimited; measure with more nodes in a rack",
            ),
            WithoutInfluence { field, value } => {
                write!(f, "{field} has no effect on these conflicts at its value, {value}")
            }
        }
    }
}

impl ConflictFit {
    /// Warnings for a reader of the numbers, the most serious first.
    pub fn warnings(&self) -> Vec<Warning> {
        let best = self.best_model();
        let (model, mean_absolute) = (best.name(), best.unseen());
        let far_off = FarOff {
            model,
            mean_absolute,
            on_random_patterns: best.held_out.is_some(),
        };
        let at_bound = best.parameters.iter().filter_map(|parameter| {
            let (field, value) = (parameter.field, parameter.estimate.value);
            parameter.bound.map(|bound| AtBound {
                field,
                value,
                bound,
            })
        });
        let (conflicts, random, repetitions) = self.counts;
        let all = self.models.iter().flat_map(|model| &model.parameters);
        let unfelt = all.filter(|parameter| !parameter.is_measured && parameter.bound.is_none());
        let without_influence = unfelt.map(|parameter| WithoutInfluence {
            field: parameter.field,
            value: parameter.estimate.value,
        });
        let far_off = (mean_absolute > FAR_OFF).then_some(far_off);
        let once = (repetitions == conflicts + random).then_some(NoRepetitions);
        let no_backbone = (self.has_racks && self.backbone.is_none()).then_some(BackboneUnknown);
        far_off
            .into_iter()
            .chain(at_bound)
            .chain(once)
            .chain(no_backbone)
            .chain(without_influence)
            .collect()
    }
}
