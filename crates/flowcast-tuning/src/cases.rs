//! Measured collective operations: one row for each run, operation, algorithm and size.

use flowcast_network::{
    algorithm::{Base, Choice, NameError, RuleExtent, library_base, named_choice},
    csv::{CsvError, Table, number, whole_number},
};
use flowcast_units::{Bytes, CollectiveOp, Time};

use super::job::JobKey;

/// The columns of a case.
pub const CASE_COLUMNS: [&str; 9] = [
    "system",
    "run",
    "nodes",
    "ranks_per_node",
    "collective",
    "library",
    "version",
    "algorithm",
    "bytes",
];

/// Shortest time of an operation on data. Operations on blocks without an element take less (28 ns).
const LEAST: Time = Time::from_nanos(200.0);

/// Maximum number of ranks of an operation.
const MOST_RANKS: u64 = 1 << 24;

/// An operation of a run with one algorithm.
#[derive(Debug, Clone, PartialEq)]
pub struct CollectiveCase {
    /// Run in which the operation was or will be executed.
    pub job: JobKey,
    /// Number of ranks on each node of the run.
    pub ranks_per_node: u32,
    /// MPI library that carries out the operation.
    pub library: Base,
    /// The operation.
    pub op: CollectiveOp,
    /// Algorithm that the library uses under this name, for this number of ranks and size.
    pub choice: Choice,
    /// Size of the buffer: of the vector, or of all blocks.
    pub bytes: Bytes,
}

impl CollectiveCase {
    /// Number of ranks of the operation.
    pub fn ranks(&self) -> u32 {
        self.job.nodes * self.ranks_per_node
    }
}

/// A row of a table and its case, if the row can be understood.
#[derive(Debug, Clone, PartialEq)]
pub struct CaseRow {
    /// Line number of the row.
    pub line: usize,
    /// The case, or the reason why it cannot be predicted.
    pub case: Result<CollectiveCase, NameError>,
}

/// A case and its measured time.
#[derive(Debug, Clone, PartialEq)]
pub struct MeasuredCase {
    /// The case.
    pub case: CollectiveCase,
    /// Algorithm that the library was instructed to use, as named in the table.
    pub label: String,
    /// Median over the iterations of the slowest rank's time.
    pub median: Time,
}

/// Reads the cases of a table, in the table's order.
///
/// # Errors
/// A missing column; a field that is not a number or not an operation.
pub fn cases(table: &Table) -> Result<Vec<CaseRow>, CsvError> {
    table
        .fields(CASE_COLUMNS)?
        .map(|(line, fields)| case_row(line, fields))
        .collect()
}

/// Reads the cases of a table with their median times. Unknown names of algorithms are an error; operations without data are
/// left out.
///
/// # Errors
/// The errors of [`cases`], and a name that stands for no algorithm.
pub fn measured_cases(table: &Table) -> Result<Vec<MeasuredCase>, CsvError> {
    let medians = table.fields(["median_ns", "algorithm"])?;
    let mut measured = Vec::new();
    for (row, (line, [median, algorithm])) in cases(table)?.into_iter().zip(medians) {
        let case = row
            .case
            .map_err(|error| CsvError::at(line, format!("`{algorithm}`"), error.to_string()))?;
        case.check()
            .map_err(|error| CsvError::at(line, format!("`{algorithm}`"), error.to_string()))?;
        let expected = "nanoseconds above 0";
        let nanos = number(line, "median_ns", median, |nanos| nanos > 0.0, expected)?;
        let median = Time::from_nanos(nanos);
        if median >= LEAST {
            let label = algorithm.to_owned();
            measured.push(MeasuredCase {
                case,
                label,
                median,
            });
        }
    }
    Ok(measured)
}

fn case_row(line: usize, fields: [&str; 9]) -> Result<CaseRow, CsvError> {
    let [
        system,
        run,
        nodes,
        per_node,
        collective,
        library,
        version,
        algorithm,
        bytes,
    ] = fields;
    let nodes = whole_number(line, "nodes", nodes, 1..=1 << 20)? as u32;
    let most = (MOST_RANKS / u64::from(nodes)).min(1 << 12);
    let ranks_per_node = whole_number(line, "ranks_per_node", per_node, 1..=most)? as u32;
    let bytes = Bytes(whole_number(line, "bytes", bytes, 1..=1 << 50)?);
    let op = CollectiveOp::from_function(collective).ok_or_else(|| {
        CsvError::field(
            line,
            "collective",
            collective,
            "a collective operation, such as allreduce",
        )
    })?;
    let extent = RuleExtent::from_buffer(op, nodes * ranks_per_node, bytes);
    let choice = named_choice(op, library, version, algorithm, &extent);
    let case = choice.and_then(|choice| {
        Ok(CollectiveCase {
            job: JobKey {
                system: system.to_owned(),
                run: run.to_owned(),
                nodes,
            },
            ranks_per_node,
            library: library_base(library, version)?,
            op,
            choice,
            bytes,
        })
    });
    Ok(CaseRow { line, case })
}
