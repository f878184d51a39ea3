//! MPICH's selection as a value: conditions in an order that counts.

use std::fmt;

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{MapAccess, Visitor},
    ser::SerializeMap,
};

/// Conditions in their order, each with what follows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Selection(pub(super) Vec<(String, Selection)>);

impl Selection {
    /// One function, without conditions.
    pub(super) fn function(name: &str) -> Selection {
        Selection(vec![(format!("algorithm={name}"), Selection::default())])
    }

    /// What follows where a condition holds, and behind another where it does not.
    pub(super) fn either(conditions: [&str; 2], follow: [Selection; 2]) -> Selection {
        let keys = conditions.map(str::to_owned);
        Selection(keys.into_iter().zip(follow).collect())
    }

    pub(super) fn find(&mut self, key: &str) -> Option<&mut Selection> {
        let mut entries = self.0.iter_mut();
        entries
            .find(|(name, _)| name == key)
            .map(|(_, below)| below)
    }

    pub(super) fn put(&mut self, key: String, below: Selection) {
        self.0.push((key, below));
    }
}

impl<'de> Deserialize<'de> for Selection {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Selection, D::Error> {
        struct Entries;
        impl<'de> Visitor<'de> for Entries {
            type Value = Selection;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of conditions")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Selection, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Selection(entries))
            }
        }
        deserializer.deserialize_map(Entries)
    }
}

impl Serialize for Selection {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (key, below) in &self.0 {
            map.serialize_entry(key, below)?;
        }
        map.end()
    }
}
