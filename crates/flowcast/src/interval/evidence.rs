//! Evidence for a prediction's margin: the effect of uncertain parameters, and earlier errors of the model.

use flowcast_network::{
    accuracy::{self, Accuracy, CaseKind, residuals, residuals_elsewhere},
    network::Network,
    sharing::model::Model,
};
use flowcast_report::standing::Interval;
use flowcast_statistics::{
    StatsError,
    conformal::{self, Margin},
};
use flowcast_units::Time;

use super::{IntervalOptions, slopes::Slopes};

/// `true` if a field of the network file can have an influence under a model.
pub fn matters(field: &str, model: Option<Model>) -> bool {
    use Model::*;
    let Some(section) = field
        .strip_prefix("sharing.")
        .and_then(|rest| rest.split('.').next())
    else {
        return true;
    };
    let read: &[&str] = match model {
        None | Some(Independent | Fair) => &[],
        Some(FlowCuts) => &["flow_cuts"],
        Some(ClosedLoop) => &["closed_loop", "packet"],
        Some(AlphaFair) => &["alpha_fair", "closed_loop"],
        Some(Asymmetric | DegreeFair) => &["asymmetric"],
        Some(IbPenalty) => &["ib_penalty"],
        Some(Packet) => &["packet"],
    };
    read.contains(&section)
}

/// `true` if a field that has an influence has an interval.
pub fn may_vary(network: &Network, model: Option<Model>) -> bool {
    network.intervals.keys().any(|field| matters(field, model))
}

/// Errors of a model that apply to a prediction.
#[derive(Default)]
pub(super) struct ModelErrors<'a> {
    entries: Vec<&'a Accuracy>,
    /// `ln(measured / predicted)`.
    residuals: Vec<f64>,
    /// Name of the requested model.
    model: String,
    /// `true` if the errors come from programs in laboratories, and none of them from this network.
    are_from_elsewhere: bool,
    /// Error of the network on the data that it was fitted to.
    misfit: f64,
}

impl<'a> ModelErrors<'a> {
    /// Selects the errors for a prediction. For a program, these are errors on programs, because errors on patterns do not
    /// show how well a program is predicted. They come from this network, or else from laboratories. A network with neither
    /// intervals nor an accuracy record has no errors.
    pub(super) fn from_network(
        network: &'a Network,
        model: &str,
        wanted: CaseKind,
        held_out: Option<&str>,
    ) -> ModelErrors<'a> {
        let mut entries = network.accuracy_record().by_model(model, wanted);
        let of_programs = entries
            .iter()
            .any(|entry| entry.judged == Some(CaseKind::Programs));
        let mut are_from_elsewhere = false;
        if wanted == CaseKind::Programs && network.has_margins() && !of_programs {
            let elsewhere = accuracy::of_programs_in_laboratories().by_model(model, wanted);
            if !elsewhere.is_empty() {
                (entries, are_from_elsewhere) = (elsewhere, true);
            }
        }
        let misfit = network.fit.misfit.unwrap_or(0.0);
        let residuals = if are_from_elsewhere {
            residuals_elsewhere(&entries, held_out)
        } else {
            residuals(&entries, held_out)
        };
        ModelErrors {
            residuals,
            entries,
            model: model.to_owned(),
            are_from_elsewhere,
            misfit,
        }
    }

    fn covers(&self) -> Option<String> {
        let first = self
            .entries
            .first()
            .filter(|_| !self.residuals.is_empty())?;
        let of = if first.model == self.model {
            "the model's error".to_owned()
        } else {
            format!("the error of {}", first.model)
        };
        let what = first.judged.map_or("cases", CaseKind::name);
        let count = self.residuals.len();
        Some(match (self.are_from_elsewhere, first.fitted) {
            (true, _) => format!(
                "at least {of} on {}, not measured on this network",
                first.validated_on
            ),
            (false, true) => format!("{of} on {count} {what} that it was fitted to"),
            (false, false) => format!("{of} on {count} {what}"),
        })
    }
}

/// Evidence for a prediction's margin.
pub(super) struct MarginEvidence<'a> {
    pub(super) slopes: &'a Slopes,
    pub(super) errors: &'a ModelErrors<'a>,
}

impl MarginEvidence<'_> {
    /// Interval of a prediction.
    pub(super) fn interval(
        &self,
        predicted: Time,
        options: &IntervalOptions<'_>,
    ) -> Result<Option<Interval>, StatsError> {
        let further = self.slopes.spread(options.seed);
        if further.is_empty() && self.errors.residuals.is_empty() {
            return Ok(None);
        }
        let Margin { low, high, level } =
            conformal::margin(&self.errors.residuals, &further, options.level)?;
        let misfit = 1.0 + self.errors.misfit;
        Ok(Some(Interval {
            predicted,
            low: predicted * low.exp().min(1.0 / misfit),
            high: predicted * high.exp().max(misfit),
            level,
            covers: self.covers(),
        }))
    }

    fn covers(&self) -> String {
        let Slopes {
            rejected, source, ..
        } = self.slopes;
        let rejected = match rejected {
            0 => String::new(),
            count => format!("; the model has no prediction for {count} of them"),
        };
        let parameters = format!("parameters (slopes of {source}{rejected})");
        match (source.is_empty(), self.errors.covers()) {
            (true, errors) => errors.unwrap_or_default(),
            (false, None) => format!("{parameters}, not the model's own error"),
            (false, Some(errors)) => format!("{parameters} and {errors}"),
        }
    }
}
