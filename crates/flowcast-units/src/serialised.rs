//! Serialized quantities: text with a unit, for input and output. A bare 0, which is the same in every unit, is also read.

use std::fmt;

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{Unexpected, Visitor},
};

use crate::{Bytes, Rate, Time, TimePerByte};

macro_rules! quantities_as_text {
    ($($name:ident),*) => {$(
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<$name, D::Error> {
                struct UnitText;
                impl Visitor<'_> for UnitText {
                    type Value = $name;
                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str($name::parse("").expect_err("an empty text is no quantity").expected)
                    }
                    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<$name, E> {
                        $name::parse(text).map_err(E::custom)
                    }
                    fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<$name, E> {
                        match number {
                            0 => Ok($name::default()),
                            _ => Err(E::invalid_type(Unexpected::Signed(number), &self)),
                        }
                    }
                    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<$name, E> {
                        match number {
                            0 => Ok($name::default()),
                            _ => Err(E::invalid_type(Unexpected::Unsigned(number), &self)),
                        }
                    }
                }
                deserializer.deserialize_any(UnitText)
            }
        }
    )*};
}

quantities_as_text!(Time, Bytes, Rate, TimePerByte);

/// Serializes types as the text that they display, and deserializes them by `FromStr`.
#[macro_export]
macro_rules! serde_as_text {
    ($($name:ty),*) => {$(
        impl ::serde::Serialize for $name {
            fn serialize<S: ::serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> ::serde::Deserialize<'de> for $name {
            fn deserialize<D: ::serde::Deserializer<'de>>(deserializer: D) -> Result<$name, D::Error> {
                let text = <String as ::serde::Deserialize>::deserialize(deserializer)?;
                text.parse().map_err(::serde::de::Error::custom)
            }
        }
    )*};
}
