//! A number of a network file with the unit of its field.

use std::fmt;

use flowcast_units::{Bytes, Rate, Rounded, SizeUnits, Time, TimePerByte, four_digits};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Visitor};

/// A number of a network file with the unit of its field.
///
/// ```
/// use flowcast_network::quantity::Quantity;
/// use flowcast_units::Time;
///
/// let latency = Quantity::parse("4.7us").unwrap();
/// assert_eq!(latency, Quantity::Time(Time::from_nanos(4700.0)));
/// assert_eq!(latency.with_number(9400.0).to_string(), "9.4us");
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Quantity {
    /// A time, for fields such as `nic.latency`.
    Time(Time),
    /// A rate, for fields such as `nic.bandwidth`.
    Rate(Rate),
    /// A time per byte, for fields such as `nic.gap_per_byte`.
    TimePerByte(TimePerByte),
    /// A size, for fields such as `sharing.packet.window`.
    Size(Bytes),
    /// A number without a unit, for fields such as `sharing.closed_loop.alpha`.
    Number(f64),
}

impl Quantity {
    /// Parses a quantity with its unit, or a number.
    pub fn parse(text: &str) -> Option<Quantity> {
        let with_unit = Time::parse(text).map(Quantity::Time);
        let with_unit = with_unit.or_else(|_| Rate::parse(text).map(Quantity::Rate));
        let with_unit = with_unit.or_else(|_| TimePerByte::parse(text).map(Quantity::TimePerByte));
        let with_unit = with_unit.or_else(|_| Bytes::parse(text).map(Quantity::Size));
        with_unit
            .ok()
            .or_else(|| text.trim().parse().ok().map(Quantity::Number))
    }

    /// The number without its unit: in nanoseconds, bytes per second, nanoseconds per byte or bytes.
    pub fn number(self) -> f64 {
        match self {
            Quantity::Time(time) => time.as_nanos(),
            Quantity::Rate(rate) => rate.as_bytes_per_second(),
            Quantity::TimePerByte(time) => time.as_nanos(),
            Quantity::Size(size) => size.0 as f64,
            Quantity::Number(number) => number,
        }
    }

    /// The quantity with another number in the same unit; sizes are rounded to whole bytes.
    #[must_use]
    pub fn with_number(self, number: f64) -> Quantity {
        match self {
            Quantity::Time(_) => Quantity::Time(Time::from_nanos(number)),
            Quantity::Rate(_) => Quantity::Rate(Rate::from_bytes_per_second(number)),
            Quantity::TimePerByte(_) => Quantity::TimePerByte(TimePerByte::from_nanos(number)),
            Quantity::Size(_) => Quantity::Size(Bytes(number.round() as u64)),
            Quantity::Number(_) => Quantity::Number(number),
        }
    }

    /// Kind of number, for errors.
    pub fn kind(self) -> &'static str {
        match self {
            Quantity::Time(_) => "a time",
            Quantity::Rate(_) => "a rate",
            Quantity::TimePerByte(_) => "a time per byte",
            Quantity::Size(_) => "a size",
            Quantity::Number(_) => "a number without unit",
        }
    }

    /// Text with four digits and a suitable unit.
    pub fn rounded(self) -> String {
        match self {
            Quantity::Time(time) => Rounded(time).to_string(),
            Quantity::Rate(rate) => Rounded(rate).to_string(),
            Quantity::TimePerByte(time) => Rounded(time).to_string(),
            Quantity::Size(size) => Rounded(size).to_string(),
            Quantity::Number(number) => four_digits(number).to_string(),
        }
    }

    /// Text for a row or column whose sizes have these units.
    pub fn text(self, units: SizeUnits) -> String {
        match self {
            Quantity::Size(size) => units.text(size),
            quantity => quantity.rounded(),
        }
    }

    /// Units that suit the sizes among the quantities.
    pub fn units(quantities: impl IntoIterator<Item = Quantity>) -> SizeUnits {
        SizeUnits::for_sizes(
            quantities
                .into_iter()
                .filter_map(|quantity| match quantity {
                    Quantity::Size(size) => Some(size),
                    _ => None,
                }),
        )
    }

    /// Quantity in a field of a file; `None` if the value is not a number.
    pub(crate) fn of_value(value: &toml::Value) -> Option<Quantity> {
        match value {
            toml::Value::String(text) => Quantity::parse(text),
            toml::Value::Float(number) => Some(Quantity::Number(*number)),
            toml::Value::Integer(number) => Some(Quantity::Number(*number as f64)),
            _ => None,
        }
    }

    /// The quantity as a value for a field of a file that now contains `like`: a whole number if `like` is one.
    pub(crate) fn value_like(self, like: &toml::Value) -> toml::Value {
        match (self, like) {
            (Quantity::Number(number), toml::Value::Integer(_)) => {
                toml::Value::Integer(number.round() as i64)
            }
            (Quantity::Number(number), _) => toml::Value::Float(number),
            _ => toml::Value::String(self.to_string()),
        }
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Quantity::Time(time) => time.fmt(f),
            Quantity::Rate(rate) => rate.fmt(f),
            Quantity::TimePerByte(time) => time.fmt(f),
            Quantity::Size(size) => size.fmt(f),
            Quantity::Number(number) => number.fmt(f),
        }
    }
}

impl Serialize for Quantity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Quantity::Number(number) => serializer.serialize_f64(*number),
            _ => serializer.collect_str(self),
        }
    }
}

impl<'de> Deserialize<'de> for Quantity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Quantity, D::Error> {
        struct TextOrNumber;
        impl Visitor<'_> for TextOrNumber {
            type Value = Quantity;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a quantity with its unit, such as \"4.7us\", or a number")
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Quantity, E> {
                Quantity::parse(text)
                    .ok_or_else(|| E::invalid_value(serde::de::Unexpected::Str(text), &self))
            }
            fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<Quantity, E> {
                Ok(Quantity::Number(number))
            }
            fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<Quantity, E> {
                Ok(Quantity::Number(number as f64))
            }
        }
        deserializer.deserialize_any(TextOrNumber)
    }
}

macro_rules! from_units {
    ($($unit:ident => $kind:ident),*) => {$(
        impl From<$unit> for Quantity {
            fn from(value: $unit) -> Quantity {
                Quantity::$kind(value)
            }
        }
    )*};
}

from_units!(Time => Time, Rate => Rate, TimePerByte => TimePerByte, Bytes => Size, f64 => Number);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_a_quantity_of_the_unit_that_it_names() {
        for (text, expected) in [
            ("4.2us", Quantity::Time(Time::from_nanos(4200.0))),
            (
                "112.2MB/s",
                Quantity::Rate(Rate::from_bytes_per_second(112.2e6)),
            ),
            (
                "1Gbit/s",
                Quantity::Rate(Rate::from_bytes_per_second(1.25e8)),
            ),
            (
                "1.03ns/B",
                Quantity::TimePerByte(TimePerByte::from_nanos(1.03)),
            ),
            ("64KiB", Quantity::Size(Bytes(65_536))),
            ("1.25", Quantity::Number(1.25)),
        ] {
            assert_eq!(Quantity::parse(text), Some(expected), "{text}");
        }
        assert_eq!(Quantity::parse("fair"), None);
    }

    #[test]
    fn a_drawn_number_keeps_unit_and_form_of_its_field() {
        let size = Quantity::Size(Bytes(10)).with_number(12.6);
        assert_eq!(
            size.value_like(&toml::Value::String("10B".into())),
            toml::Value::String("13B".into())
        );
        assert_eq!(
            Quantity::Number(3.7).value_like(&toml::Value::Integer(4)),
            toml::Value::Integer(4)
        );
        assert_eq!(
            Quantity::Number(3.7).value_like(&toml::Value::Float(4.0)),
            toml::Value::Float(3.7)
        );
    }

    #[test]
    fn values_have_four_digits_and_a_unit_that_fits() {
        for (text, expected) in [
            ("65.4us", "65.40 us"),
            ("117.78563MB/s", "117.8 MB/s"),
            ("2.5kB/s", "2.5 kB/s"),
            ("8.49012ns/B", "8.49 ns/B"),
            ("64KiB", "64 KiB"),
            ("1.10009", "1.1"),
        ] {
            assert_eq!(Quantity::parse(text).unwrap().rounded(), expected);
        }
    }
}
