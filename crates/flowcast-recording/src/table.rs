//! The functions of MPI that are recorded, and what each of their arguments is: one line for each in `functions.txt`.
//!
//! The recorder makes its wrappers from this table when it is built; readers learn from it what a name means.

use std::{collections::BTreeMap, num::NonZeroU16, sync::LazyLock};

/// The text of `functions.txt`, one line for each function.
pub(crate) const TEXT: &str = include_str!("functions.txt");

/// A function of MPI as the table describes it.
///
/// ```
/// use flowcast_recording::table;
///
/// let send = &table::by_name()["Isend"];
/// assert_eq!((send.kind.as_str(), send.position('g')), ("isend", Some(4)));
/// assert!(send.makes_request());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MpiFunction {
    /// Its name without `MPI_`.
    pub name: String,
    /// Arguments of the C function.
    pub arity: usize,
    /// What it does, as the recorder distinguishes it.
    pub kind: String,
    /// Which argument is what: a letter (see the table's head) and a position.
    pub keys: Vec<(char, usize)>,
}

impl MpiFunction {
    /// The function of this name without `MPI_`; a name with a large count (`Send_c`) is the same function.
    pub fn named(name: &str) -> Option<&'static MpiFunction> {
        FunctionNumber::named(name).map(FunctionNumber::function)
    }

    /// The position of the argument with this letter.
    pub fn position(&self, letter: char) -> Option<usize> {
        self.keys
            .iter()
            .find(|(key, _)| *key == letter)
            .map(|(_, position)| *position)
    }

    /// Whether a communication is started that a later call completes.
    pub fn makes_request(&self) -> bool {
        self.position('q').is_some() && !REQUEST_USERS.contains(&self.kind.as_str())
    }

    /// Whether it is a collective operation between neighbours, non-blocking or persistent ones too.
    pub fn is_between_neighbours(&self) -> bool {
        self.kind.starts_with("neighbor-") || self.kind.starts_with("ineighbor-")
    }

    /// Whether a replay leaves out a call of it with these words: it has no model of the function, or the recording is of
    /// an earlier version, which does not tell a group of ranks or neighbours.
    pub fn is_left_out(&self, words: &[i64]) -> bool {
        match self.kind.as_str() {
            "comm" | "icomm" | "win" | "other" => true,
            "win-sync" => self.position('u').is_some() && words.len() < 5,
            _ => self.is_between_neighbours() && words.len() < 3,
        }
    }
}

/// A function of the table by its place there, from 1. Files hold these numbers, so new functions come last.
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
    /// The function of this name without `MPI_`, in its form for large counts too; none that the table lacks.
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

    /// The function at this place.
    pub fn new(place: u16) -> Option<FunctionNumber> {
        let number = NonZeroU16::new(place)?;
        (usize::from(place) <= FUNCTIONS.len()).then_some(FunctionNumber(number))
    }

    /// Its place, from 1.
    pub fn get(self) -> u16 {
        self.0.get()
    }

    /// What the table says of it.
    pub fn function(self) -> &'static MpiFunction {
        &FUNCTIONS[usize::from(self.get()) - 1]
    }

    /// Its name without `MPI_`.
    pub fn name(self) -> &'static str {
        &self.function().name
    }
}

/// The kinds that take requests instead of making one.
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

/// All functions, in the order of the table.
pub fn functions() -> &'static [MpiFunction] {
    &FUNCTIONS
}

/// All functions by their names.
pub fn by_name() -> BTreeMap<&'static str, MpiFunction> {
    FUNCTIONS
        .iter()
        .map(|function| (function.name.as_str(), function.clone()))
        .collect()
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
    fn every_line_is_a_function_and_no_name_comes_twice() {
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
    fn no_key_points_behind_the_last_argument() {
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
