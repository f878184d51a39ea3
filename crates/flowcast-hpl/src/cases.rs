//! Tables of HPL runs: one row for each run.

use crate::{Broadcast, HplSettings, Swap};
use flowcast_network::csv::{self, CsvError, Table, whole_number};
use flowcast_units::Time;

/// Columns that describe a run. Numbers have the meaning that they have in HPL.dat.
pub const HPL_COLUMNS: [&str; 7] = ["N", "P", "Q", "block_size", "depth", "bcast", "swap"];

/// Maximum number of ranks of a run.
const MOST_RANKS: u64 = 1 << 16;

/// A run and its measured time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MeasuredRun {
    /// Settings of the run.
    pub settings: HplSettings,
    /// Time from the start of the run to its end.
    pub time: Time,
}

/// Reads the runs of a table, in the table's order. A mix of swaps has the block size as its threshold.
///
/// # Errors
/// No row, a missing column, or a field that is not a valid number, with its line.
pub fn settings(table: &Table) -> Result<Vec<HplSettings>, CsvError> {
    let rows = table.fields(HPL_COLUMNS)?;
    let runs: Vec<HplSettings> = rows
        .map(|(line, fields)| row(line, fields))
        .collect::<Result<_, _>>()?;
    if runs.is_empty() {
        return Err(CsvError::no_row(&HPL_COLUMNS));
    }
    Ok(runs)
}

/// Reads the runs of a table with their times, `time_s`.
///
/// # Errors
/// The errors of [`settings`], and a time that is not a number of seconds above 0.
pub fn measured_runs(table: &Table) -> Result<Vec<MeasuredRun>, CsvError> {
    let times = table.fields(["time_s"])?;
    let runs = settings(table)?.into_iter().zip(times);
    runs.map(|(settings, (line, [text]))| {
        let expected = "seconds above 0";
        let seconds = csv::number(line, "time_s", text, |seconds| seconds > 0.0, expected)?;
        let time = Time::from_seconds(seconds);
        Ok(MeasuredRun { settings, time })
    })
    .collect()
}

fn row(line: usize, fields: [&str; 7]) -> Result<HplSettings, CsvError> {
    let number = |place: usize, least: u64, most: u64| {
        whole_number(line, HPL_COLUMNS[place], fields[place], least..=most)
    };
    let order = number(0, 1, 1 << 31)?;
    let rows = number(1, 1, MOST_RANKS)?;
    let columns = number(2, 1, MOST_RANKS / rows)?;
    let block = number(3, 1, 1 << 16)? as u32;
    Ok(HplSettings {
        order,
        block,
        rows: rows as u32,
        columns: columns as u32,
        depth: number(4, 0, order.div_ceil(u64::from(block)).min(16))? as u32,
        broadcast: Broadcast::ALL[number(5, 0, 5)? as usize],
        swap: [Swap::Binary, Swap::Long, Swap::Mix(block)][number(6, 0, 2)? as usize],
    })
}
