//! Runs of machines, by which cases find their nodes.

use flowcast_network::csv::CsvError;

/// A run of a machine with a number of nodes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct JobKey {
    /// The machine.
    pub system: String,
    /// The run.
    pub run: String,
    /// Its nodes.
    pub nodes: u32,
}

/// A whole number of a table, from 1 on.
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
