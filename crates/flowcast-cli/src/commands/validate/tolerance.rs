//! `--tolerance MODEL=MEAN[,WORST]`: what a validation may not exceed.

use anyhow::{Result, anyhow, bail};
use flowcast::model::sharing::model::Model;
use flowcast::report::validation::ModelErrors;

/// What a model's errors may be at most, as shares.
#[derive(Debug, Clone, PartialEq)]
pub struct Tolerance {
    /// The model.
    pub model: Model,
    /// For the mean absolute error.
    pub mean: f64,
    /// For the worst flow.
    pub worst: Option<f64>,
}

impl Tolerance {
    /// Reads `packet=1%` or `packet=1%,5%`.
    pub fn parse(text: &str) -> Result<Tolerance> {
        let refused =
            || anyhow!("--tolerance: found `{text}`, expected MODEL=MEAN or MODEL=MEAN,WORST such as packet=1%,5%");
        let (model, limits) = text.split_once('=').ok_or_else(refused)?;
        let mut limits = limits.split(',').map(percent);
        let mean = limits.next().flatten().ok_or_else(refused)?;
        let worst = limits.next().map(|worst| worst.ok_or_else(refused)).transpose()?;
        if limits.next().is_some() {
            bail!(refused());
        }
        Ok(Tolerance { model: Model::named(model.trim())?, mean, worst })
    }

    /// What is exceeded, in words.
    pub fn exceeded_by(&self, errors: &ModelErrors) -> Option<String> {
        let name = self.model.name();
        let over = |what: &str, found: f64, most: f64| {
            let (found, most) = (found * 100.0, most * 100.0);
            (found > most).then(|| format!("{name}: {what} {found:.2} %, expected at most {most} %"))
        };
        let worst = || over("worst flow", errors.worst.error, self.worst?);
        over("mean absolute error", errors.mean_absolute, self.mean).or_else(worst)
    }
}

fn percent(text: &str) -> Option<f64> {
    let number: f64 = text.trim().strip_suffix('%')?.trim().parse().ok()?;
    (number.is_finite() && number >= 0.0).then_some(number / 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flowcast::report::validation::FlowError;

    #[test]
    fn a_tolerance_is_a_model_with_one_or_two_percentages() {
        let tolerance = Tolerance::parse("packet=1%,5%").unwrap();
        assert_eq!(tolerance, Tolerance { model: Model::Packet, mean: 0.01, worst: Some(0.05) });
        assert_eq!(Tolerance::parse("fair = 2.5 %").unwrap().worst, None);
        for text in ["packet", "packet=1", "packet=-1%", "packet=1%,2", "packet=1%,2%,3%", "packed=1%"] {
            assert!(Tolerance::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_is_exceeded_is_named() {
        let flow = |error| FlowError { case: "a".into(), flow: 1, error };
        let errors = ModelErrors {
            mean_absolute: 0.02,
            mean_range: (0.02, 0.02),
            global_range: (0.0, 0.0),
            best: flow(0.0),
            worst: flow(0.09),
            signed_range: (-0.09, 0.0),
            by_configuration: Vec::new(),
            signed: Vec::new(),
        };
        let said = |text: &str| Tolerance::parse(text).unwrap().exceeded_by(&errors);
        assert_eq!(said("packet=2%,9%"), None);
        assert_eq!(said("packet=1%").unwrap(), "packet: mean absolute error 2.00 %, expected at most 1 %");
        assert_eq!(said("packet=3%,5%").unwrap(), "packet: worst flow 9.00 %, expected at most 5 %");
    }
}
