//! MPICH's selection as a value: an ordered list of conditions.

use std::fmt;

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{MapAccess, Visitor},
    ser::SerializeMap,
};

/// Conditions in order, each with the selection below it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct AlgorithmSelection(pub(super) Vec<(String, AlgorithmSelection)>);

impl AlgorithmSelection {
    /// One function, without conditions.
    pub(super) fn function(name: &str) -> AlgorithmSelection {
        AlgorithmSelection(vec![(
            format!("algorithm={name}"),
            AlgorithmSelection::default(),
        )])
    }

    /// Selects between two branches by the first condition that holds.
    pub(super) fn either(
        conditions: [&str; 2],
        follow: [AlgorithmSelection; 2],
    ) -> AlgorithmSelection {
        let keys = conditions.map(str::to_owned);
        AlgorithmSelection(keys.into_iter().zip(follow).collect())
    }

    pub(super) fn find(&mut self, key: &str) -> Option<&mut AlgorithmSelection> {
        let mut entries = self.0.iter_mut();
        entries
            .find(|(name, _)| name == key)
            .map(|(_, below)| below)
    }

    /// Replaces MPICH 4.0's barrier by dissemination by the one of MPICH 4.1, which aborts at the older name.
    pub(super) fn give_barriers_a_radix(&mut self) {
        for (key, below) in &mut self.0 {
            if key == "algorithm=MPIR_Barrier_intra_dissemination" {
                *key = "algorithm=MPIR_Barrier_intra_k_dissemination".to_owned();
                below.put("k=2".to_owned(), AlgorithmSelection::default());
            } else {
                below.give_barriers_a_radix();
            }
        }
    }

    pub(super) fn put(&mut self, key: String, below: AlgorithmSelection) {
        self.0.push((key, below));
    }
}

impl<'de> Deserialize<'de> for AlgorithmSelection {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<AlgorithmSelection, D::Error> {
        struct Entries;
        impl<'de> Visitor<'de> for Entries {
            type Value = AlgorithmSelection;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of conditions")
            }

            fn visit_map<A: MapAccess<'de>>(
                self,
                mut map: A,
            ) -> Result<AlgorithmSelection, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(AlgorithmSelection(entries))
            }
        }
        deserializer.deserialize_map(Entries)
    }
}

impl Serialize for AlgorithmSelection {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (key, below) in &self.0 {
            map.serialize_entry(key, below)?;
        }
        map.end()
    }
}
