//! Table of the recorded functions of MPI and the meaning of their arguments, from the lines of `functions.txt`.
//!
//! The recorder's build generates its wrappers from this table. Readers use it to interpret names.

use std::{collections::BTreeMap, num::NonZeroU16, sync::LazyLock};

/// Text of `functions.txt`: one line for each function.
pub(crate) const TEXT: &str = include_str!("functions.txt");

/// Function of MPI, as described by the table.
///
/// ```
/// use flowcast_recording::table::MpiFunction;
///
/// let send = MpiFunction::named("Isend").unwrap();
/// assert_eq!((send.kind.as_str(), send.position('g')), ("isend", Some(4)));
/// assert!(send.makes_request());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MpiFunction {
    /// Name without `MPI_`, such as `Isend`.
    pub name: String,
    /// Number of arguments of the C function.
    pub arity: usize,
    /// Kind of operation, as far as the recorder distinguishes it.
    pub kind: String,
    /// Meaning of the arguments: a letter (see the head of the table) and a position for each.
    pub keys: Vec<(char, usize)>,
}

impl MpiFunction {
    /// Returns the function with this name, given without `MPI_`. A name for large counts (`Send_c`) means the same
    /// function.
    pub fn named(name: &str) -> Option<&'static MpiFunction> {
        FunctionNumber::named(name).map(FunctionNumber::function)
    }

    /// Returns the position of the argument with this letter.
    pub fn position(&self, letter: char) -> Option<usize> {
        self.keys
            .iter()
            .find(|(key, _)| *key == letter)
            .map(|(_, position)| *position)
    }

    /// Returns `true` if the function starts a communication that a later call completes.
    pub fn makes_request(&self) -> bool {
        self.position('q').is_some() && !REQUEST_USERS.contains(&self.kind.as_str())
    }

    /// Returns `true` for a collective operation between neighbours, also if it is non-blocking or persistent.
    pub fn is_between_neighbours(&self) -> bool {
        self.kind.starts_with("neighbor-") || self.kind.starts_with("ineighbor-")
    }

    /// Returns `true` if a replay ignores a call of this function with these words. Either the replay has no model of the
    /// function, or an earlier version wrote the recording without the ranks of a group or the neighbours.
    pub fn is_left_out(&self, words: &[i64]) -> bool {
        match self.kind.as_str() {
            "comm" | "icomm" | "win" | "other" => true,
            "win-sync" => self.position('u').is_some() && words.len() < 5,
            _ => self.is_between_neighbours() && words.len() < 3,
        }
    }
}

/// Function of the table, as its position there, from 1. Files contain these numbers, so new functions must be added at the
/// end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct FunctionNumber(NonZeroU16);

static FUNCTIONS: LazyLock<Vec<MpiFunction>> =
    LazyLock::new(|| lines().filter_map(function).collect());

static NUMBERS: LazyLock<BTreeMap<&'static str, FunctionNumber>> = LazyLock::new(|| {
    let numbers = (1..).filter_map(NonZeroU16::new).map(FunctionNumber);
    let names = FUNCTIONS.iter().map(|function| function.name.as_str());
    names.zip(numbers).collect()
});

impl FunctionNumber {
    /// Returns the function with this name, given without `MPI_`; a name for large counts means the same function. Returns
    /// `None` if the table lacks it.
    ///
    /// ```
    /// use flowcast_recording::table::FunctionNumber;
    ///
    /// let waitall = FunctionNumber::named("Waitall").unwrap();
    /// assert_eq!(FunctionNumber::new(waitall.get()), Some(waitall));
    /// assert_eq!(waitall.name(), "Waitall");
    /// ```
    pub fn named(name: &str) -> Option<FunctionNumber> {
        let name = name.strip_suffix("_c").unwrap_or(name);
        NUMBERS.get(name).copied()
    }

    /// Returns the function at this position.
    pub fn new(place: u16) -> Option<FunctionNumber> {
        let number = NonZeroU16::new(place)?;
        (usize::from(place) <= FUNCTIONS.len()).then_some(FunctionNumber(number))
    }

    /// Position in the table, from 1.
    pub fn get(self) -> u16 {
        self.0.get()
    }

    /// Entry of the table.
    pub fn function(self) -> &'static MpiFunction {
        &FUNCTIONS[usize::from(self.get()) - 1]
    }

    /// Name of the function without `MPI_`, such as `Isend`.
    pub fn name(self) -> &'static str {
        &self.function().name
    }
}

/// Kinds that take requests instead of making one.
const REQUEST_USERS: [&str; 12] = [
    "wait",
    "waitall",
    "waitany",
    "waitsome",
    "test",
    "testall",
    "testany",
    "testsome",
    "start",
    "startall",
    "request-free",
    "cancel",
];

/// Returns all functions, in the order of the table.
pub fn functions() -> &'static [MpiFunction] {
    &FUNCTIONS
}

fn lines() -> impl Iterator<Item = &'static str> {
    TEXT.lines().filter(|line| !line.starts_with('#'))
}

fn function(line: &str) -> Option<MpiFunction> {
    let mut words = line.split_whitespace();
    let (name, arity, kind) = (words.next()?, words.next()?.parse().ok()?, words.next()?);
    Some(MpiFunction {
        name: name.into(),
        arity,
        kind: kind.into(),
        keys: words
            .filter_map(|word| {
                let mut letters = word.chars();
                Some((letters.next()?, letters.as_str().parse().ok()?))
            })
            .collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_a_function_and_no_name_occurs_twice() {
        let functions = functions();
        assert_eq!(functions.len(), lines().count());
        for MpiFunction { name, .. } in functions {
            let number = FunctionNumber::named(name);
            assert_eq!(number.map(FunctionNumber::name), Some(name.as_str()));
        }
        let mut names: Vec<&str> = functions
            .iter()
            .map(|function| function.name.as_str())
            .collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), functions.len());
    }

    #[test]
    fn no_key_points_beyond_the_last_argument() {
        for function in functions() {
            assert!(
                function
                    .keys
                    .iter()
                    .all(|(_, position)| *position < function.arity),
                "{}",
                function.name
            );
        }
    }

    #[test]
    fn waits_use_requests_and_immediate_operations_make_them() {
        let functions = functions();
        let named = |name: &str| {
            functions
                .iter()
                .find(|function| function.name == name)
                .unwrap()
        };
        assert!(named("Irecv").makes_request() && named("Ibarrier").makes_request());
        assert!(!named("Waitall").makes_request() && !named("Send").makes_request());
    }
}
