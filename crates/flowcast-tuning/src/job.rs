//! Runs of machines, the key by which cases find their nodes.

use flowcast_network::csv::CsvError;

/// A run on a number of nodes of a machine.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct JobKey {
    /// Name of the machine.
    pub system: String,
    /// Name of the run.
    pub run: String,
    /// Number of nodes of the run; each of its operations uses all of them.
    pub nodes: u32,
}

/// Parses a field of a table: a whole number from 1 to `most`.
pub(super) fn whole(line: usize, column: &str, field: &str, most: u64) -> Result<u64, CsvError> {
    let number = field
        .parse()
        .ok()
        .filter(|number| (1..=most).contains(number));
    number.ok_or_else(|| {
        CsvError::field(
            line,
            column,
            field,
            format!("a whole number from 1 to {most}"),
        )
    })
}
