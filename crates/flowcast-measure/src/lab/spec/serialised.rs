//! Text forms of rates, lists of rates and windows in a lab file.

use std::fmt;

use flowcast_units::{Bytes, Rate};
use serde::{
    Deserialize, Deserializer, Serialize, Serializer, de, de::value::SeqAccessDeserializer,
};

use super::{RailRates, Window};

/// Formats a rate in Mbit/s, the usual unit of interfaces.
pub(super) fn rate_text(rate: Rate) -> String {
    format!("{}Mbit/s", rate.as_bytes_per_second() / 125_000.0)
}

pub(super) fn serialize_rate<S: Serializer>(rate: &Rate, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&rate_text(*rate))
}

impl Serialize for RailRates {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.as_slice() {
            [rate] => serialize_rate(rate, serializer),
            rates => serializer.collect_seq(rates.iter().map(|rate| rate_text(*rate))),
        }
    }
}

impl<'de> Deserialize<'de> for RailRates {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<RailRates, D::Error> {
        struct OneOrMore;
        impl<'de> de::Visitor<'de> for OneOrMore {
            type Value = RailRates;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a rate with its unit, such as 50Mbit/s, or a list of rates")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<RailRates, E> {
                Ok(RailRates(vec![Rate::parse(text).map_err(E::custom)?]))
            }
            fn visit_seq<A: de::SeqAccess<'de>>(self, items: A) -> Result<RailRates, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(items)).map(RailRates)
            }
        }
        deserializer.deserialize_any(OneOrMore)
    }
}

impl Serialize for Window {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Window::Automatic => serializer.serialize_str("automatic"),
            Window::Fixed(size) => size.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Window {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Window, D::Error> {
        struct Text;
        impl de::Visitor<'_> for Text {
            type Value = Window;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("`automatic` or a size with its unit, such as 128KiB")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Window, E> {
                if text == "automatic" {
                    return Ok(Window::Automatic);
                }
                Bytes::parse(text)
                    .map(Window::Fixed)
                    .map_err(|_| E::invalid_value(de::Unexpected::Str(text), &self))
            }
        }
        deserializer.deserialize_str(Text)
    }
}
