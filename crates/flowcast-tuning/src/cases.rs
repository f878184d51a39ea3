//! Collective operations as measured on machines: one row for each run, operation, algorithm and size.

use flowcast_network::{
    algorithm::{Base, Choice, NameError, RuleExtent, library_base, named_choice},
    csv::{CsvError, Table},
};
use flowcast_units::{Bytes, CollectiveOp, Time};

use super::job::{JobKey, whole};

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

/// Operations that take less are those of blocks without an element (28 ns).
const LEAST: Time = Time::from_nanos(200.0);

/// Ranks that an operation may have.
const MOST_RANKS: u64 = 1 << 24;

/// An operation of a run by one algorithm.
#[derive(Debug, Clone, PartialEq)]
pub struct CollectiveCase {
    /// Where it ran, or is to run.
    pub job: JobKey,
    /// Ranks of each node.
    pub ranks_per_node: u32,
    /// The library that carries it out.
    pub library: Base,
    /// The operation.
    pub op: CollectiveOp,
    /// What its name means for this library, number of ranks and size.
    pub choice: Choice,
    /// The buffer: a vector, or all blocks together.
    pub bytes: Bytes,
}

impl CollectiveCase {
    /// Ranks of the operation.
    pub fn ranks(&self) -> u32 {
        self.job.nodes * self.ranks_per_node
    }
}

/// A row, and what it says if it can be understood.
#[derive(Debug, Clone, PartialEq)]
pub struct CaseRow {
    /// Its line.
    pub line: usize,
    /// The case, or why it cannot be predicted.
    pub case: Result<CollectiveCase, NameError>,
}

/// A case and what it took.
#[derive(Debug, Clone, PartialEq)]
pub struct MeasuredCase {
    /// The case.
    pub case: CollectiveCase,
    /// What the library was told to use.
    pub label: String,
    /// The median of its iterations' slowest rank.
    pub median: Time,
}

/// The cases of a table, in its order.
///
/// # Errors
/// Missing columns, a field that is no number or no operation.
pub fn cases(table: &Table) -> Result<Vec<CaseRow>, CsvError> {
    table
        .fields(CASE_COLUMNS)?
        .map(|(line, fields)| case_row(line, fields))
        .collect()
}

/// The cases of a table with their medians; names that mean no algorithm are an error here, operations on nothing are left out.
///
/// # Errors
/// As [`cases`], or an algorithm without a meaning.
pub fn measured_cases(table: &Table) -> Result<Vec<MeasuredCase>, CsvError> {
    let medians = table.fields(["median_ns", "algorithm"])?;
    let mut measured = Vec::new();
    for (row, (line, [median, algorithm])) in cases(table)?.into_iter().zip(medians) {
        let case = row
            .case
            .map_err(|error| CsvError::at(line, format!("`{algorithm}`"), error.to_string()))?;
        case.check()
            .map_err(|error| CsvError::at(line, format!("`{algorithm}`"), error.to_string()))?;
        let nanos = median
            .parse::<f64>()
            .ok()
            .filter(|nanos| *nanos > 0.0 && nanos.is_finite());
        let nanos = nanos
            .ok_or_else(|| CsvError::field(line, "median_ns", median, "nanoseconds above 0"))?;
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
    let nodes = whole(line, "nodes", nodes, 1 << 20)? as u32;
    let ranks_per_node = whole(
        line,
        "ranks_per_node",
        per_node,
        (MOST_RANKS / u64::from(nodes)).min(1 << 12),
    )? as u32;
    let bytes = Bytes(whole(line, "bytes", bytes, 1 << 50)?);
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
