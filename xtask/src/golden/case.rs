//! One golden case, and how a found value is held against the expected one.

pub(super) mod field;

use std::fmt::{Debug, Display};

use flowcast::statistics::observation::{Observation, Observations};
use serde_json::Value;
use thiserror::Error;

use field::Field;

/// Why a case failed.
#[derive(Debug, Error)]
pub(crate) enum Mismatch {
    /// The library gave something else.
    #[error("{what}: expected {expected}, found {found}")]
    Differs {
        /// The value's name.
        what: String,
        /// From the case.
        expected: String,
        /// From the library.
        found: String,
    },
    /// The library refused the input.
    #[error("refused: {0}")]
    Refused(String),
    /// The library panicked.
    #[error("panicked: {0}")]
    Panicked(String),
    /// The case cannot be read.
    #[error("{0}")]
    Malformed(String),
    /// No check for it.
    #[error("unknown {0}")]
    Unknown(String),
}

impl Mismatch {
    /// An error of the library where the case expects a result.
    pub(crate) fn refused(error: impl Display) -> Mismatch {
        Mismatch::Refused(error.to_string())
    }
}

/// How far a value may be from the expected one: `abs + rel · |expected|`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Tolerance {
    /// In the value's unit.
    pub abs: f64,
    /// As a share of the expected value.
    pub rel: f64,
}

impl Tolerance {
    fn read(field: &Field) -> Result<Tolerance, Mismatch> {
        let part = |key: &str| field.get(key).map_or(Ok(0.0), |part| part.number());
        if field.get("abs").is_none() && field.get("rel").is_none() {
            return Err(field.unlike("`abs` or `rel`"));
        }
        Ok(Tolerance {
            abs: part("abs")?,
            rel: part("rel")?,
        })
    }

    /// Whether `found` is near enough; no number is near NaN.
    pub(super) fn accepts(self, expected: f64, found: f64) -> bool {
        found == expected || (found - expected).abs() <= self.abs + self.rel * expected.abs()
    }
}

/// One case.
#[derive(Debug)]
pub(super) struct Case {
    /// Its name in messages; no check looks at it.
    pub id: String,
    /// What is to be checked.
    pub kind: String,
    /// How near is near enough.
    pub tolerance: Tolerance,
    document: Value,
}

impl Case {
    /// Reads `id`, `kind` and `tolerance`.
    ///
    /// # Errors
    /// One of them, `input` or `expected` is missing.
    pub(super) fn new(document: Value) -> Result<Case, Mismatch> {
        let root = Field::new(&document, "case");
        let (id, kind) = (
            root.at("id")?.text()?.to_owned(),
            root.at("kind")?.text()?.to_owned(),
        );
        let named = |error: Mismatch| Mismatch::Malformed(format!("{id}: {error}"));
        root.at("input").and(root.at("expected")).map_err(named)?;
        let tolerance = root
            .at("tolerance")
            .and_then(|field| Tolerance::read(&field))
            .map_err(named)?;
        Ok(Case {
            id,
            kind,
            tolerance,
            document,
        })
    }

    /// Predictions `pred` beside measured values `meas`, by their place.
    pub(super) fn observations(&self) -> Result<Observations<usize>, Mismatch> {
        let input = self.input();
        let (predicted, measured) = (input.at("pred")?.numbers()?, input.at("meas")?.numbers()?);
        let pairs = predicted.into_iter().zip(measured).enumerate();
        Observations::new(pairs.map(|(of, (predicted, measured))| Observation {
            of,
            predicted,
            measured,
        }))
        .map_err(Mismatch::refused)
    }

    /// What goes in.
    pub(super) fn input(&self) -> Field<'_> {
        Field::new(&self.document["input"], "input")
    }

    /// What must come out.
    pub(super) fn expected(&self) -> Field<'_> {
        Field::new(&self.document["expected"], "expected")
    }

    /// Holds `found` against a number of the case.
    ///
    /// # Errors
    /// Too far apart, or no number.
    pub(super) fn near(&self, expected: &Field, found: f64) -> Result<(), Mismatch> {
        let value = expected.number()?;
        if self.tolerance.accepts(value, found) {
            Ok(())
        } else {
            Err(differs(expected.path(), value, found))
        }
    }

    /// Holds a list of numbers against the case's.
    ///
    /// # Errors
    /// Another length, or one number too far off.
    pub(super) fn near_each(&self, expected: &Field, found: &[f64]) -> Result<(), Mismatch> {
        let items = expected.items()?;
        same(
            &format!("length of {}", expected.path()),
            items.len(),
            found.len(),
        )?;
        items
            .iter()
            .zip(found)
            .try_for_each(|(item, found)| self.near(item, *found))
    }
}

/// Holds two values against each other that have to be equal.
///
/// # Errors
/// They differ.
pub(super) fn same<T: PartialEq + Debug>(
    what: &str,
    expected: T,
    found: T,
) -> Result<(), Mismatch> {
    if expected == found {
        Ok(())
    } else {
        Err(differs(what, expected, found))
    }
}

fn differs(what: &str, expected: impl Debug, found: impl Debug) -> Mismatch {
    Mismatch::Differs {
        what: what.to_owned(),
        expected: format!("{expected:?}"),
        found: format!("{found:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tolerances_are_absolute_relative_or_both() {
        let exact = Tolerance { abs: 0.0, rel: 0.0 };
        assert!(exact.accepts(1.0, 1.0) && !exact.accepts(1.0, 1.0 + 1e-15));
        assert!(
            Tolerance {
                abs: 1e-8,
                rel: 0.0
            }
            .accepts(0.5, 0.5 + 9e-9)
        );
        assert!(
            Tolerance {
                abs: 0.0,
                rel: 1e-9
            }
            .accepts(1e9, 1e9 + 0.5)
        );
        assert!(!Tolerance { abs: 1.0, rel: 1.0 }.accepts(1.0, f64::NAN));
        assert!(exact.accepts(f64::INFINITY, f64::INFINITY));
    }
}
