//! Typed access to the fields of a record, in order.

use super::{
    error::{DimemasConfigError, Place, shortened},
    records::ConfigRecord,
};
use crate::name::is_hidden;
use flowcast_units::{Rate, Time};

/// A record with the names of its fields.
pub(super) struct Fields<'a> {
    record: &'a ConfigRecord<'a>,
    names: &'static [&'static str],
    next: usize,
}

impl<'a> ConfigRecord<'a> {
    /// The fields of the record, if it has as many as `names`.
    pub(super) fn fields(
        &'a self,
        names: &'static [&'static str],
    ) -> Result<Fields<'a>, DimemasConfigError> {
        if self.fields.len() == names.len() {
            return Ok(Fields {
                record: self,
                names,
                next: 0,
            });
        }
        Err(DimemasConfigError::Line {
            line: self.line,
            found: format!(
                "\"{}\" with {} fields",
                shortened(self.name),
                self.fields.len()
            ),
            expected: format!("{}: {}", names.len(), names.join(", ")),
        })
    }
}

impl<'a> Fields<'a> {
    /// Position of the last field read.
    pub(super) fn place(&self) -> Place {
        let index = self.next.saturating_sub(1);
        Place {
            line: self.record.line,
            record: self.record.name.to_owned(),
            number: index + 1,
            field: self.names[index],
        }
    }

    /// Error for an unexpected value of the last field read.
    pub(super) fn wrong(&self, expected: impl Into<String>) -> DimemasConfigError {
        let found = shortened(self.record.fields[self.next.saturating_sub(1)]);
        DimemasConfigError::Field {
            place: self.place(),
            found,
            expected: expected.into(),
        }
    }

    fn raw(&mut self) -> &'a str {
        self.next += 1;
        self.record.fields[self.next - 1]
    }

    /// Reads a text with or without quotes.
    pub(super) fn text(&mut self) -> &'a str {
        unquoted(self.raw())
    }

    /// Reads a name: a text of one line.
    pub(super) fn name(&mut self) -> Result<String, DimemasConfigError> {
        let name = self.text();
        if name.contains(is_hidden) {
            Err(self.wrong("one line of text"))
        } else {
            Ok(name.to_owned())
        }
    }

    /// Reads one of the given words.
    pub(super) fn choice(&mut self, choices: &[&str]) -> Result<&'a str, DimemasConfigError> {
        let found = self.text();
        if choices.contains(&found) {
            Ok(found)
        } else {
            Err(self.wrong(format!("one of {}", choices.join(", "))))
        }
    }

    /// Reads a whole number from `least` to `most`.
    pub(super) fn whole(&mut self, least: u32, most: u32) -> Result<u32, DimemasConfigError> {
        let found = self
            .raw()
            .parse::<u32>()
            .ok()
            .filter(|number| (least..=most).contains(number));
        found.ok_or_else(|| match most {
            u32::MAX => self.wrong(format!("a whole number of at least {least}")),
            _ => self.wrong(format!("a whole number from {least} to {most}")),
        })
    }

    /// Reads a count, which may be 0.
    pub(super) fn count(&mut self) -> Result<u32, DimemasConfigError> {
        self.whole(0, u32::MAX)
    }

    /// Reads a finite number of either sign.
    pub(super) fn number(&mut self) -> Result<f64, DimemasConfigError> {
        let found = self
            .raw()
            .parse::<f64>()
            .ok()
            .filter(|number| number.is_finite());
        found.ok_or_else(|| self.wrong("a number"))
    }

    /// Reads a finite number that is not negative.
    pub(super) fn amount(&mut self) -> Result<f64, DimemasConfigError> {
        self.scaled(1.0, "a number that is not negative")
    }

    /// Reads a time in seconds.
    pub(super) fn seconds(&mut self) -> Result<Time, DimemasConfigError> {
        const EXPECTED: &str = "a time in seconds, a number from 0 to 1e18";
        let time = self.scaled(1e9, EXPECTED).map(Time::from_nanos)?;
        if time <= Time::LONGEST {
            Ok(time)
        } else {
            Err(self.wrong(EXPECTED))
        }
    }

    /// Reads a rate in Dimemas' megabytes (2^20 bytes) per second.
    pub(super) fn rate(&mut self) -> Result<Rate, DimemasConfigError> {
        self.scaled(
            1_048_576.0,
            "a bandwidth in MB/s, a number that is not negative",
        )
        .map(Rate::from_bytes_per_second)
    }

    fn scaled(&mut self, factor: f64, expected: &str) -> Result<f64, DimemasConfigError> {
        let found = self.raw().parse::<f64>().ok().map(|number| number * factor);
        // Adding 0 turns -0 into 0, which units print without a sign.
        found
            .filter(|value| value.is_finite() && *value >= 0.0)
            .map(|value| value + 0.0)
            .ok_or_else(|| self.wrong(expected))
    }

    /// Reads a list `[n] {a, b, ...}` of `n` whole numbers.
    pub(super) fn list(&mut self) -> Result<Vec<i64>, DimemasConfigError> {
        let found = parse_list(self.raw());
        found.ok_or_else(|| {
            self.wrong("a list such as [2] {0, 1}: its length, then its whole numbers")
        })
    }
}

fn parse_list(text: &str) -> Option<Vec<i64>> {
    let (length, items) = text.strip_prefix('[')?.split_once(']')?;
    let items = items.trim().strip_prefix('{')?.strip_suffix('}')?.trim();
    let numbers: Vec<i64> = match items {
        "" => Vec::new(),
        _ => items
            .split(',')
            .map(|item| item.trim().parse().ok())
            .collect::<Option<_>>()?,
    };
    (length.trim().parse::<usize>().ok()? == numbers.len()).then_some(numbers)
}

fn unquoted(text: &str) -> &str {
    text.strip_prefix('"')
        .and_then(|text| text.strip_suffix('"'))
        .unwrap_or(text)
        .trim()
}
