//! Sizes of the datatypes.

use std::collections::BTreeMap;

use super::{super::scan::lines, lines::DumpiRecord};

/// Sizes by number of the type.
#[derive(Debug, Clone, Default)]
pub(super) struct Types {
    sizes: BTreeMap<i64, i64>,
    /// Functions that made types of unknown size.
    makers: BTreeMap<i64, String>,
    /// Number of uses of types of unknown size, by description of the type.
    pub unknown: BTreeMap<String, u64>,
}

/// Sizes of the types 2 (`MPI_CHAR`) to 27 (`MPI_LONG_DOUBLE_INT`) in bytes, for traces that do not list them.
const BUILT_IN: [i64; 26] = [
    1, 1, 1, 1, 4, 2, 2, 4, 4, 8, 8, 4, 8, 16, 8, 8, 8, 1, 0, 0, 8, 12, 12, 6, 8, 20,
];

/// Returns the sizes that a rank's text lists after its calls: `Datatype 9 (MPI_INT) has size 4`. A built-in type that the
/// tracer's library lacked has the size 0 in this list.
pub(super) fn sizes(text: &[u8]) -> Types {
    let mut types = Types {
        sizes: (2..).zip(BUILT_IN).collect(),
        ..Types::default()
    };
    let Some(start) = memchr::memmem::find(text, b"\nDatatype ") else {
        return types;
    };
    for range in lines(text, start + 1) {
        let listed = std::str::from_utf8(&text[range]).ok().and_then(|line| {
            let (number, rest) = line.strip_prefix("Datatype ")?.split_once(' ')?;
            let (_, size) = rest.rsplit_once("has size ")?;
            Some((
                number.parse().ok()?,
                size.trim().parse().ok().filter(|size: &i64| *size > 0)?,
            ))
        });
        if let Some((number, size)) = listed {
            types.sizes.insert(number, size);
        }
    }
    types
}

impl Types {
    /// Returns the size of one element, in bytes.
    pub(super) fn size(&mut self, number: i64) -> i64 {
        if let Some(size) = self.sizes.get(&number) {
            return *size;
        }
        let described = match self.makers.get(&number) {
            Some(maker) => format!("datatypes created by MPI_{maker}"),
            None => format!("datatype {number}"),
        };
        *self.unknown.entry(described).or_default() += 1;
        1
    }

    /// Stores the size of a new derived type, or its creator if the size is unknown, and the sizes in calls of
    /// `MPI_Type_size` and `MPI_Type_match_size`.
    pub(super) fn note(
        &mut self,
        record: &DumpiRecord<'_>,
        int: &dyn Fn(&str) -> Option<i64>,
        list: &dyn Fn(&str) -> Option<Vec<i64>>,
    ) {
        let asked = ["Type_size", "Type_match_size"].contains(&record.name);
        if let (true, Some(number), Some(size)) = (asked, int("datatype"), int("size")) {
            self.sizes.insert(number, size.max(0));
        }
        let Some(new) = int("newtype") else {
            return;
        };
        match self.made(record.name, int, list) {
            Some(size) => drop(self.sizes.insert(new, size.max(0))),
            // The number may have belonged to a type that was freed.
            None => {
                self.sizes.remove(&new);
                self.makers.insert(new, record.name.to_owned());
            }
        }
    }

    /// Returns the size of a derived type in bytes, computed from its components.
    fn made(
        &self,
        function: &str,
        int: &dyn Fn(&str) -> Option<i64>,
        list: &dyn Fn(&str) -> Option<Vec<i64>>,
    ) -> Option<i64> {
        let lengths = || match int("count")? {
            0 => Some(Vec::new()),
            _ => list("lengths").or_else(|| list("blocklengths")),
        };
        let elements = match function {
            "Type_contiguous" => int("count")?,
            "Type_vector"
            | "Type_hvector"
            | "Type_create_hvector"
            | "Type_create_indexed_block" => int("count")?.checked_mul(int("blocklength")?)?,
            "Type_indexed" | "Type_hindexed" | "Type_create_hindexed" => sum(lengths()?)?,
            "Type_create_subarray" => list("subsizes")?
                .iter()
                .try_fold(1i64, |all, size| all.checked_mul(*size))?,
            "Type_dup" | "Type_create_resized" => 1,
            "Type_struct" | "Type_create_struct" => {
                let lengths = lengths()?;
                let types = list("oldtypes").filter(|types| types.len() == lengths.len());
                let bytes = lengths.iter().zip(types.unwrap_or_default());
                let bytes: Option<Vec<i64>> = bytes
                    .map(|(length, old)| length.checked_mul(*self.sizes.get(&old)?))
                    .collect();
                return bytes
                    .filter(|bytes| bytes.len() == lengths.len())
                    .and_then(sum);
            }
            _ => return None,
        };
        elements.checked_mul(*self.sizes.get(&int("oldtype")?)?)
    }
}

fn sum(terms: Vec<i64>) -> Option<i64> {
    terms.into_iter().try_fold(0, i64::checked_add)
}
