//! `--threshold NAME=MEAN[,WORST]`: largest errors with which a validation passes.

use anyhow::{Result, ensure};

use flowcast_terminal::exit::Finding;

/// Limits of a model's errors, as shares.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Tolerance {
    /// Name of the model, as a value of `--model`.
    pub name: String,
    limits: [Option<f64>; 2],
}

impl Tolerance {
    /// Parses `packet=1%` or `packet=1%,5%`.
    pub(super) fn parse(text: &str) -> Result<Tolerance, &'static str> {
        Tolerance::parsed(text)
            .ok_or("expected MODEL=MEAN or MODEL=MEAN,WORST such as packet=1%,5%")
    }

    fn parsed(text: &str) -> Option<Tolerance> {
        let (name, limits) = text.split_once('=')?;
        let limits: Vec<f64> = limits.split(',').map(percent).collect::<Option<_>>()?;
        let limits = match limits[..] {
            [mean] => [Some(mean), None],
            [mean, worst] => [Some(mean), Some(worst)],
            _ => return None,
        };
        Some(Tolerance {
            name: name.trim().to_owned(),
            limits,
        })
    }

    /// Text on the first limit that is exceeded. `found` has the names and values for the first and the second limit.
    pub(super) fn exceeded_by(&self, found: [(&str, f64); 2]) -> Option<String> {
        let mut all = found.into_iter().zip(self.limits);
        all.find_map(|((what, found), most)| {
            let (found, most) = (found * 100.0, most? * 100.0);
            let name = &self.name;
            (found > most)
                .then(|| format!("{name}: {what} {found:.2} %, expected at most {most} %"))
        })
    }
}

/// Returns a finding if a tolerance is exceeded. `exceeded` describes the excess.
pub(super) fn judge(
    tolerances: &[Tolerance],
    exceeded: impl Fn(&Tolerance) -> Result<Option<String>>,
) -> Result<()> {
    let found = tolerances
        .iter()
        .filter_map(|tolerance| exceeded(tolerance).transpose());
    let found = found.collect::<Result<Vec<_>>>()?;
    ensure!(found.is_empty(), Finding(found.join("; ")));
    Ok(())
}

fn percent(text: &str) -> Option<f64> {
    let number: f64 = text.trim().strip_suffix('%')?.trim().parse().ok()?;
    (number.is_finite() && number >= 0.0).then_some(number / 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tolerance_is_a_model_with_one_or_two_percentages() {
        let tolerance = Tolerance::parse("packet=1%,5%").unwrap();
        assert_eq!(
            tolerance,
            Tolerance {
                name: "packet".into(),
                limits: [Some(0.01), Some(0.05)]
            }
        );
        assert_eq!(
            Tolerance::parse("fair = 2.5 %").unwrap().limits,
            [Some(0.025), None]
        );
        for text in [
            "packet",
            "packet=1",
            "packet=-1%",
            "packet=1%,2",
            "packet=1%,2%,3%",
        ] {
            assert!(Tolerance::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn an_exceeded_limit_is_named() {
        let said = |text: &str| {
            Tolerance::parse(text)
                .unwrap()
                .exceeded_by([("mean absolute error", 0.02), ("worst flow", 0.09)])
        };
        assert_eq!(said("packet=2%,9%"), None);
        assert_eq!(
            said("packet=1%").unwrap(),
            "packet: mean absolute error 2.00 %, expected at most 1 %"
        );
        assert_eq!(
            said("packet=3%,5%").unwrap(),
            "packet: worst flow 9.00 %, expected at most 5 %"
        );
    }
}
