//! Checks whether the margins that an accuracy record gives contain the measurements as often as their level states.

use super::{Accuracy, AccuracyRecord, PARTS, residuals};
use flowcast_statistics::{StatsError, conformal, sample::median};

/// Number of errors of an entry that lie in the margins of other entries.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Coverage<'a> {
    /// The checked entry of the accuracy record.
    pub entry: &'a Accuracy,
    /// Number of errors inside the margins.
    pub inside: usize,
    /// Number of checked errors, at least 1.
    pub all: usize,
    /// 95 % confidence interval (Clopper and Pearson) of the share of errors that lie inside the margins.
    pub interval: (f64, f64),
    /// Median width of the margins, as a share of the prediction.
    pub width: f64,
    /// Lowest level of the margins. It is below the requested level if too few errors are known.
    pub level: f64,
}

impl<'a> Coverage<'a> {
    /// Returns `None` if no errors of the model are known.
    fn new(
        entry: &'a Accuracy,
        known: AccuracyRecord<'a>,
        level: f64,
    ) -> Result<Option<Coverage<'a>>, StatsError> {
        let Some(kind) = entry.judged else {
            return Ok(None);
        };
        let known = known.by_model(&entry.model, kind);
        let (mut inside, mut widths, mut least) = (0, Vec::new(), level);
        for (name, errors) in entry.errors_without(None) {
            let family = name.split(PARTS).next().unwrap_or_default();
            let others = residuals(&known, Some(family));
            if others.is_empty() {
                continue;
            }
            let margin = conformal::margin(&others, &[], level)?;
            least = least.min(margin.level);
            // The interval of a prediction always contains the prediction itself.
            let (low, high) = (margin.low.min(0.0), margin.high.max(0.0));
            inside += errors
                .iter()
                .filter(|error: &&f64| (low..=high).contains(&-error.ln_1p()))
                .count();
            widths.extend(errors.iter().map(|_| high.exp() - low.exp()));
        }
        if widths.is_empty() {
            return Ok(None);
        }
        let interval = conformal::share_interval(inside, widths.len(), 0.95)?;
        Ok(Some(Coverage {
            entry,
            inside,
            all: widths.len(),
            interval,
            width: median(&widths)?,
            level: least,
        }))
    }
}

impl<'a> AccuracyRecord<'a> {
    /// Checks each entry that stores single errors: counts the errors that lie in the margins for the same model. The
    /// margins of a name come from the errors in `known`, except those of names with the same first part.
    ///
    /// # Errors
    /// The level lies outside (0, 1).
    pub fn coverage(
        self,
        known: AccuracyRecord<'a>,
        level: f64,
    ) -> Result<Vec<Coverage<'a>>, StatsError> {
        let with_errors = self.0.iter().filter(|entry| !entry.errors.is_empty());
        let covered = with_errors.map(|entry| Coverage::new(entry, known, level));
        Ok(covered
            .collect::<Result<Vec<_>, _>>()?
            .into_iter()
            .flatten()
            .collect())
    }
}

#[cfg(test)]
mod tests {
    use super::{super::CaseKind, *};

    #[test]
    fn margins_cover_similar_errors_as_often_as_their_level() {
        // Ten programs with four runs each; the errors of a program's runs are similar.
        let error = |at: usize| (at as f64 * 7.0 % 40.0) / 100.0 - 0.2;
        let entry = Accuracy::of_errors(
            "fair",
            CaseKind::Programs,
            "x",
            (0..40)
                .map(|at: usize| (format!("p{}.{at}", at / 4), vec![error(at)]))
                .collect(),
        )
        .unwrap();
        let entries = [entry];
        let found = AccuracyRecord(&entries)
            .coverage(AccuracyRecord(&entries), 0.9)
            .unwrap();
        assert_eq!((found.len(), found[0].all, found[0].level), (1, 40, 0.9));
        assert!((34..=40).contains(&found[0].inside), "{}", found[0].inside);
        assert!((0.3..0.5).contains(&found[0].width), "{}", found[0].width);
        let none = AccuracyRecord(&entries)
            .coverage(AccuracyRecord(&[]), 0.9)
            .unwrap();
        assert_eq!(none, []);
    }
}
