//! Typed values, with their forms for people and in JSON.

use std::{
    borrow::Cow,
    collections::BTreeMap,
    fmt::{self, Display, Formatter},
};

use flowcast_units::{Bytes, Node, Rank, Rate, Rounded, SizeUnits, Time};
use serde::Serialize;
use serde_json::Value as Json;
use thiserror::Error;

/// Error for a figure that cannot be printed: JSON has no infinite numbers, and a count that has reached its maximum is not
/// exact.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "found {figure} = {found}, expected {expected}: look for a value that is too large or too small"
)]
pub struct NotFinite {
    /// Path of the figure in the result, such as `candidates[0].predicted_s`.
    pub figure: String,
    /// Value found, as text; `2^64 or more` for a count at its maximum.
    pub found: String,
    /// Range of values that can be printed.
    pub expected: &'static str,
}

impl NotFinite {
    fn number(found: f64) -> NotFinite {
        NotFinite {
            figure: String::new(),
            found: found.to_string(),
            expected: "a finite number",
        }
    }

    fn count() -> NotFinite {
        NotFinite {
            figure: String::new(),
            found: "2^64 or more".to_owned(),
            expected: "fewer",
        }
    }

    /// Prepends the name, or the place in a list, of the value that contains the figure.
    pub(crate) fn within(mut self, name: impl Display) -> NotFinite {
        let dot = if self.figure.is_empty() || self.figure.starts_with('[') {
            ""
        } else {
            "."
        };
        self.figure = format!("{name}{dot}{}", self.figure);
        self
    }
}

pub(crate) fn check_list<T>(
    values: &[T],
    check: impl Fn(&T) -> Result<(), NotFinite>,
) -> Result<(), NotFinite> {
    let mut values = values.iter().enumerate();
    values.try_for_each(|(place, value)| {
        check(value).map_err(|error| error.within(format_args!("[{place}]")))
    })
}

fn check_json(json: &Json) -> Result<(), NotFinite> {
    match json {
        Json::Number(number) if number.as_u64() == Some(u64::MAX) => Err(NotFinite::count()),
        Json::Array(values) => check_list(values, check_json),
        Json::Object(fields) => {
            let mut fields = fields.iter();
            fields
                .try_for_each(|(name, value)| check_json(value).map_err(|error| error.within(name)))
        }
        _ => Ok(()),
    }
}

/// A value of a field or a cell.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// No value: `null` in JSON, nothing for people.
    Absent,
    /// A text; in JSON a string.
    Text(String),
    /// Yes or no.
    Flag(bool),
    /// A number of items.
    Count(u64),
    /// A number without unit.
    Number(f64),
    /// A time; in JSON in the unit at the end of its name.
    Time(Time),
    /// A size; in JSON a number of bytes.
    Bytes(Bytes),
    /// A rate; in JSON in bytes per second.
    Rate(Rate),
    /// Several values, each in the unit at the end of their name.
    List(Vec<Value>),
    /// Named values.
    Record(Record),
    /// A value that is already JSON.
    Json(Json),
    /// A value with a separate text for people.
    Shown(Box<Value>, String),
}

/// Named values, which people do not see.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Record(Vec<(Cow<'static, str>, Value)>);

impl Record {
    /// Creates a record without values.
    pub fn new() -> Record {
        Record::default()
    }

    /// Appends a value under this name.
    pub fn field(mut self, name: impl Into<Cow<'static, str>>, value: impl Into<Value>) -> Record {
        self.0.push((name.into(), value.into()));
        self
    }

    /// Adds the values of another record.
    pub fn fields(mut self, record: Record) -> Record {
        self.0.extend(record.0);
        self
    }

    /// Adds a value, if there is one.
    pub fn known(self, name: &'static str, value: Option<impl Into<Value>>) -> Record {
        match value {
            Some(value) => self.field(name, value),
            None => self,
        }
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Value> {
        let found = self.0.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value)
    }

    /// Returns all values with their names.
    ///
    /// # Errors
    /// A figure that cannot be printed.
    pub fn json(&self) -> Result<Json, NotFinite> {
        self.check()?;
        Ok(self.object())
    }

    pub(crate) fn object(&self) -> Json {
        let fields = self.0.iter();
        let fields = fields.map(|(name, value)| (name.to_string(), value.json(name)));
        Json::Object(fields.collect())
    }

    /// Checks that all figures can be printed.
    pub(crate) fn check(&self) -> Result<(), NotFinite> {
        let mut fields = self.0.iter();
        fields.try_for_each(|(name, value)| value.check().map_err(|error| error.within(name)))
    }
}

impl Value {
    /// Names of the values in a record, or in the first of several.
    pub(crate) fn names(&self) -> Vec<&str> {
        match self {
            Value::List(rows) => rows.first().map_or_else(Vec::new, Value::names),
            Value::Record(record) => record.0.iter().map(|(name, _)| &**name).collect(),
            _ => Vec::new(),
        }
    }

    /// Checks that all figures in the value can be printed.
    pub(crate) fn check(&self) -> Result<(), NotFinite> {
        match self {
            Value::Count(u64::MAX) | Value::Bytes(Bytes(u64::MAX)) => Err(NotFinite::count()),
            Value::Number(number) => finite(*number),
            Value::Time(time) => finite(time.as_seconds()),
            Value::Rate(rate) => finite(rate.as_bytes_per_second()),
            Value::List(values) => check_list(values, Value::check),
            Value::Record(record) => record.check(),
            Value::Json(json) => check_json(json),
            Value::Shown(value, _) => value.check(),
            _ => Ok(()),
        }
    }

    /// Returns the JSON of the value under this name, which decides the unit of a time.
    pub(crate) fn json(&self, name: &str) -> Json {
        match self {
            Value::Absent => Json::Null,
            Value::Text(text) => text.as_str().into(),
            Value::Flag(flag) => (*flag).into(),
            Value::Count(count) => (*count).into(),
            Value::Number(number) => (*number).into(),
            Value::Time(time) => in_unit(*time, name).into(),
            Value::Bytes(bytes) => bytes.0.into(),
            Value::Rate(rate) => rate.as_bytes_per_second().into(),
            Value::List(values) => values.iter().map(|value| value.json(name)).collect(),
            Value::Record(record) => record.object(),
            Value::Json(json) => json.clone(),
            Value::Shown(value, _) => value.json(name),
        }
    }

    /// Text for people in a table whose sizes have these units.
    pub(crate) fn text(&self, units: SizeUnits) -> String {
        match self {
            Value::Bytes(size) => units.text(*size),
            Value::Rate(rate) => Rounded(*rate).to_string(),
            Value::List(values) => {
                let texts: Vec<String> = values.iter().map(|value| value.text(units)).collect();
                texts.join(" ")
            }
            value => value.to_string(),
        }
    }

    /// Sizes that people see in a cell.
    pub(crate) fn sizes(&self) -> Vec<Bytes> {
        match self {
            Value::Bytes(size) => vec![*size],
            Value::List(values) => values.iter().flat_map(Value::sizes).collect(),
            _ => Vec::new(),
        }
    }

    /// `true` if tables align the value left: text is aligned left, figures right.
    pub(crate) fn is_words(&self) -> bool {
        match self {
            Value::Shown(value, _) => value.is_words(),
            Value::List(values) => values.iter().any(|value| matches!(value, Value::Record(_))),
            value => matches!(value, Value::Absent | Value::Text(_) | Value::Flag(_)),
        }
    }
}

fn finite(number: f64) -> Result<(), NotFinite> {
    match number.is_finite() {
        true => Ok(()),
        false => Err(NotFinite::number(number)),
    }
}

fn in_unit(time: Time, name: &str) -> f64 {
    match name.split('_').find(|part| ["us", "ns"].contains(part)) {
        Some("us") => time.as_micros(),
        Some(_) => time.as_nanos(),
        None => time.as_seconds(),
    }
}

impl Display for Value {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Value::Absent | Value::Record(_) => Ok(()),
            Value::Text(text) | Value::Shown(_, text) => f.write_str(text),
            Value::Flag(flag) => f.write_str(if *flag { "yes" } else { "no" }),
            Value::Count(count) => count.fmt(f),
            Value::Number(number) => number.fmt(f),
            Value::Time(time) => Rounded(*time).fmt(f),
            Value::Bytes(bytes) => bytes.fmt(f),
            Value::Rate(rate) => rate.fmt(f),
            Value::Json(json) => json.fmt(f),
            Value::List(values) => {
                let texts: Vec<String> = values.iter().map(Value::to_string).collect();
                f.write_str(&texts.join(" "))
            }
        }
    }
}

/// A value with a separate text for people.
pub fn shown(value: impl Into<Value>, text: impl Display) -> Value {
    Value::Shown(Box::new(value.into()), text.to_string())
}

/// A figure for people only.
pub fn figure(text: impl Display) -> Value {
    shown(Json::Null, text)
}

/// A value, or `-` for people if there is none.
pub fn or_dash(value: Option<impl Into<Value>>) -> Value {
    value.map_or_else(|| figure("-"), Into::into)
}

/// A number that people see with `decimals` decimals.
pub fn fixed(number: f64, decimals: usize) -> Value {
    shown(number, format!("{number:.decimals$}"))
}

/// A fraction of 1 that people see in per cent with `decimals` decimals.
pub fn percent(share: f64, decimals: usize) -> Value {
    shown(share, format!("{:.decimals$} %", share * 100.0))
}

/// A relative error that people see in per cent, or as a factor from 1000 % on.
pub fn relative_error(error: f64) -> Value {
    const FACTOR_FROM: f64 = 10.0;
    match error {
        error if error >= FACTOR_FROM && error.is_finite() => shown(
            error,
            format!("{} times", Grouped((1.0 + error).round() as u64)),
        ),
        _ => shown(error, format!("{:+.1} %", error * 100.0)),
    }
}

/// Any serializable value.
///
/// # Panics
/// The value has maps whose keys are not texts.
pub fn json(value: impl Serialize) -> Value {
    Value::Json(serde_json::to_value(value).expect("keys are texts"))
}

/// A count that people see with its digits in groups of three.
#[derive(Debug, Clone, Copy)]
pub struct Grouped(pub u64);

impl Display for Grouped {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let digits = self.0.to_string();
        let first = (digits.len() + 2) % 3 + 1;
        let groups = digits.as_bytes()[first..]
            .chunks(3)
            .map(|group| String::from_utf8_lossy(group));
        let text = std::iter::once(digits[..first].into())
            .chain(groups)
            .collect::<Vec<_>>()
            .join(",");
        f.pad(&text)
    }
}

impl From<Grouped> for Value {
    fn from(count: Grouped) -> Value {
        shown(count.0, count)
    }
}

macro_rules! values {
    ($($from:ty: $of:ident => $value:expr,)+) => {
        $(impl From<$from> for Value {
            fn from($of: $from) -> Value {
                $value
            }
        })+
    };
}

values! {
    &str: text => Value::Text(text.to_owned()),
    String: text => Value::Text(text),
    bool: flag => Value::Flag(flag),
    u8: count => Value::Count(count.into()),
    u16: count => Value::Count(count.into()),
    u32: count => Value::Count(count.into()),
    u64: count => Value::Count(count),
    usize: count => Value::Count(count as u64),
    f64: number => Value::Number(number),
    Time: time => Value::Time(time),
    Bytes: bytes => Value::Bytes(bytes),
    Rate: rate => Value::Rate(rate),
    Rank: rank => rank.0.into(),
    Node: node => node.0.into(),
    Record: record => Value::Record(record),
    Json: json => Value::Json(json),
}

impl<V: Clone + Into<Value>> From<&V> for Value {
    fn from(value: &V) -> Value {
        value.clone().into()
    }
}

impl<V: Into<Value>> From<Option<V>> for Value {
    fn from(value: Option<V>) -> Value {
        value.map_or(Value::Absent, Into::into)
    }
}

impl<V: Into<Value>> From<Vec<V>> for Value {
    fn from(values: Vec<V>) -> Value {
        values.into_iter().collect()
    }
}

impl<V: Into<Value>, const N: usize> From<[V; N]> for Value {
    fn from(values: [V; N]) -> Value {
        values.into_iter().collect()
    }
}

impl<V: Into<Value>> From<(V, V)> for Value {
    fn from((first, second): (V, V)) -> Value {
        [first, second].into()
    }
}

impl<K: ToString, V: Into<Value>> From<BTreeMap<K, V>> for Value {
    fn from(values: BTreeMap<K, V>) -> Value {
        Value::Record(
            values
                .into_iter()
                .fold(Record::new(), |record: Record, (name, value): (K, V)| {
                    record.field(name.to_string(), value)
                }),
        )
    }
}

impl<V: Into<Value>> FromIterator<V> for Value {
    fn from_iter<I: IntoIterator<Item = V>>(values: I) -> Value {
        Value::List(values.into_iter().map(Into::into).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_in_the_unit_of_its_name() {
        let time = Value::from(Time::from_micros(1.5));
        for (name, expected) in [
            ("L_us", 1.5),
            ("fixed_ns", 1500.0),
            ("end_s", 1.5e-6),
            ("g_us_interval", 1.5),
        ] {
            assert_eq!(time.json(name), expected, "{name}");
        }
        assert_eq!(time.to_string(), "1.500 us");
    }

    #[test]
    fn large_errors_are_factors() {
        let texts = [0.041, -0.5, 9.0, 184_629.485].map(|error| relative_error(error).to_string());
        assert_eq!(texts, ["+4.1 %", "-50.0 %", "+900.0 %", "184,630 times"]);
    }

    #[test]
    fn digits_of_counts_are_grouped() {
        let grouped = [0, 7, 999, 1000, 12_345, 100_000, 8_388_608_000]
            .map(|count| Grouped(count).to_string());
        let expected = [
            "0",
            "7",
            "999",
            "1,000",
            "12,345",
            "100,000",
            "8,388,608,000",
        ];
        assert_eq!(grouped, expected);
    }
}
