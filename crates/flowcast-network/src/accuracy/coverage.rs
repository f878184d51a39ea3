//! Whether the margins that an accuracy record gives hold what was measured as often as they say.

use super::{Accuracy, AccuracyRecord, PARTS, residuals};
use flowcast_statistics::{StatsError, conformal, sample::median};

/// How many errors of an entry lie in the margins that other ones give.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Coverage<'a> {
    /// The entry of the accuracy record whose errors are looked at.
    pub entry: &'a Accuracy,
    /// Errors that lie in the margins.
    pub inside: usize,
    /// Errors that were looked at, at least 1.
    pub all: usize,
    /// Between which shares the one of many further cases lies, at 95 % (Clopper and Pearson).
    pub interval: (f64, f64),
    /// The median width of the margins, as a share of the prediction.
    pub width: f64,
    /// The lowest level that the margins have; less than what was asked for where too few errors are known.
    pub level: f64,
}

impl<'a> Coverage<'a> {
    /// None where nothing is known of the model.
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
            // Intervals of predictions hold the prediction.
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
    /// For each entry of which errors are known one by one: how many of them lie in the margins that the errors of `known`
    /// give for the same model, without all that have the first part of the name in common.
    ///
    /// # Errors
    /// A level outside (0, 1).
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
    fn errors_that_are_alike_are_covered_as_often_as_the_level_says() {
        // Ten programs of four runs each; a program's runs are off alike.
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
