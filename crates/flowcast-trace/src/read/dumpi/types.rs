//! Bytes of the datatypes.

use std::collections::BTreeMap;

use super::{super::scan::lines, lines::Record};

/// Sizes by the number of the type.
#[derive(Debug, Clone, Default)]
pub(super) struct Types {
    sizes: BTreeMap<i64, i64>,
    /// Uses of types of unknown size.
    pub unknown: u64,
}

/// Bytes of the types 2 (`MPI_CHAR`) to 27 (`MPI_LONG_DOUBLE_INT`), for traces that do not list them.
const BUILT_IN: [i64; 26] = [
    1, 1, 1, 1, 4, 2, 2, 4, 4, 8, 8, 4, 8, 16, 8, 8, 8, 1, 0, 0, 8, 12, 12, 6, 8, 20,
];

/// The sizes that a rank's text lists behind its calls: `Datatype 9 (MPI_INT) has size 4`. A built-in type that the
/// tracer's library lacked is listed with 0.
pub(super) fn sizes(text: &[u8]) -> Types {
    let mut types = Types {
        sizes: (2..).zip(BUILT_IN).collect(),
        unknown: 0,
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
    /// Bytes of one element.
    pub(super) fn size(&mut self, number: i64) -> i64 {
        match self.sizes.get(&number) {
            Some(size) => *size,
            None => {
                self.unknown += 1;
                1
            }
        }
    }

    /// Notes a type that is made of others.
    pub(super) fn note(
        &mut self,
        record: &Record<'_>,
        int: &dyn Fn(&str) -> Option<i64>,
        list: &dyn Fn(&str) -> Option<Vec<i64>>,
    ) {
        let elements = || match record.name {
            "Type_contiguous" => int("count"),
            "Type_vector" | "Type_hvector" | "Type_create_hvector" => {
                int("count")?.checked_mul(int("blocklength")?)
            }
            "Type_indexed" | "Type_hindexed" | "Type_create_hindexed" => list("lengths")
                .or_else(|| list("blocklengths"))
                .map(|lengths| lengths.iter().sum()),
            "Type_create_indexed_block" => int("count")?.checked_mul(int("blocklength")?),
            "Type_create_subarray" => list("subsizes").map(|sizes| sizes.iter().product()),
            "Type_dup" | "Type_create_resized" => Some(1),
            _ => None,
        };
        let old = int("oldtype").and_then(|old| self.sizes.get(&old).copied());
        if let (Some(elements), Some(old), Some(new)) = (elements(), old, int("newtype")) {
            self.sizes.insert(new, elements.saturating_mul(old).max(0));
        }
    }
}
