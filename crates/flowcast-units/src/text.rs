//! Conversion between numbers with units and text, rounded only once.

use super::{Time, UnitError};

/// A unit: its name, and its value as factor · 10^exponent. The decimal exponent is applied to the text, so that `4.7us` is
/// the double nearest to 4700 rather than 4.7 rounded and then scaled.
pub(crate) type Unit = (&'static str, f64, i32);

pub(crate) const BYTE_UNITS: [Unit; 8] = [
    ("KiB", 1024.0, 0),
    ("MiB", 1_048_576.0, 0),
    ("GiB", 1_073_741_824.0, 0),
    ("kB", 1.0, 3),
    ("KB", 1.0, 3),
    ("MB", 1.0, 6),
    ("GB", 1.0, 9),
    ("B", 1.0, 0),
];

/// Parses a number with its unit. Returns it in the unit that all factors are multiples of; neither negative nor infinite.
pub(crate) fn parse_scaled(
    text: &str,
    units: &[Unit],
    expected: &'static str,
) -> Result<f64, UnitError> {
    let fail = || UnitError {
        found: text.to_owned(),
        expected,
    };
    let trimmed = text.trim();
    // Units end in each other (`s` in `us`): the right one leaves a number before it.
    let (number, factor, exponent) = units
        .iter()
        .filter_map(|(unit, factor, exponent)| {
            Some((trimmed.strip_suffix(unit)?.trim_end(), *factor, *exponent))
        })
        .find(|(number, ..)| number.ends_with(|c: char| c.is_ascii_digit() || c == '.'))
        .ok_or_else(fail)?;
    let value = scaled_decimal(number, exponent).ok_or_else(fail)? * factor;
    if value.is_finite() && !value.is_sign_negative() {
        Ok(value)
    } else {
        Err(fail())
    }
}

/// Returns a number of nanoseconds if it is not above `Time::LONGEST`.
pub(crate) fn within(text: &str, nanos: f64, expected: &'static str) -> Result<f64, UnitError> {
    if nanos <= Time::LONGEST.as_nanos() {
        return Ok(nanos);
    }
    Err(UnitError {
        found: text.to_owned(),
        expected,
    })
}

/// `number` · 10^`exponent`, rounded once.
fn scaled_decimal(number: &str, exponent: i32) -> Option<f64> {
    let (mantissa, own) = match number.split_once(['e', 'E']) {
        Some((mantissa, own)) => (mantissa, own.parse::<i32>().ok()?),
        None => (number, 0),
    };
    format!("{mantissa}e{}", own.checked_add(exponent)?)
        .parse()
        .ok()
}

/// Formats `value` / 10^`exponent` as text that reads back to `value`: the shortest digits of the value itself with the
/// decimal point moved, because a division would add digits.
pub(crate) fn decimal_text(value: f64, exponent: usize) -> String {
    let text = value.abs().to_string();
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let padded = format!("{whole:0>width$}", width = exponent + 1);
    let (whole, moved) = padded.split_at(padded.len() - exponent);
    let digits = format!("{moved}{fraction}");
    let fraction = digits.trim_end_matches('0');
    let sign = if value < 0.0 { "-" } else { "" };
    if fraction.is_empty() {
        format!("{sign}{whole}")
    } else {
        format!("{sign}{whole}.{fraction}")
    }
}
