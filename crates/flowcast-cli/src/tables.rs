//! One look for all tables: a rule under the header, numbers to the right, no wider than the terminal, and no longer than
//! anybody reads.

use std::io::{IsTerminal, stdout};
use std::str::FromStr;

use comfy_table::{Cell, CellAlignment, ColumnConstraint, ContentArrangement, LineStyle, Table, TableStyle};

use crate::output::Grouped;

const STYLE: TableStyle = TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));

/// A table with these column names; those that start with `>` are aligned to the right.
pub(crate) fn table(columns: &[impl AsRef<str>]) -> Table {
    let mut table = Table::new();
    table.load_style(STYLE);
    let columns = || columns.iter().map(AsRef::as_ref);
    table.set_header(columns().map(|name: &str| Cell::new(name.trim_start_matches('>'))));
    for (index, name) in columns().enumerate() {
        if let (true, Some(column)) = (name.starts_with('>'), table.column_mut(index)) {
            column.set_cell_alignment(CellAlignment::Right);
            // Where a table is wider than the terminal, the lines of texts are broken, never numbers.
            column.set_constraint(ColumnConstraint::ContentWidth);
        }
    }
    if stdout().is_terminal() {
        table.set_content_arrangement(ContentArrangement::Dynamic);
    }
    table
}

/// The cells of a row, of values that can be displayed.
macro_rules! cells {
    ($($value:expr),+ $(,)?) => { [$(comfy_table::Cell::new(&$value)),+] };
}

pub(crate) use cells;

/// How many rows of a long table are printed: so many, or `all`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Most(usize);

/// As the default of an option.
pub(crate) const USUAL_ROWS: &str = "20";

impl FromStr for Most {
    type Err = String;

    fn from_str(text: &str) -> Result<Most, String> {
        match text {
            "all" => Ok(Most(usize::MAX)),
            text => text.parse().map(Most).map_err(|_| "expected a number of rows, or all".to_owned()),
        }
    }
}

impl Most {
    /// The items that get a row.
    pub(crate) fn of<T>(self, items: &[T]) -> &[T] {
        &items[..items.len().min(self.0)]
    }

    /// The table, and below it how many items have no row; `option` shows all.
    pub(crate) fn shown(self, table: &Table, items: usize, option: &str) -> String {
        match items.saturating_sub(self.0) {
            0 => table.to_string(),
            more => format!("{table}\n... {} more: {option} all", Grouped(more as u64)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_fits_the_terminal_and_keeps_its_numbers_whole() {
        let mut table = table(&["name", ">latency", "source"]);
        table.set_content_arrangement(ContentArrangement::Dynamic).set_width(40);
        table.add_row(cells!["gige-tcp", "65.40 us", "Lichei, packet scheduler for Open MPI, Table 3.5.3.1"]);
        let text = table.to_string();
        assert!(text.lines().all(|line| line.chars().count() <= 40), "{text}");
        assert!(text.contains("65.40 us"), "{text}");
    }

    #[test]
    fn long_tables_end_with_the_number_of_rows_left_out() {
        let items: Vec<u32> = (0..100_000).collect();
        let most: Most = USUAL_ROWS.parse().unwrap();
        assert_eq!(most.of(&items).len(), 20);
        let mut table = table(&[">flow"]);
        for item in most.of(&items) {
            table.add_row(cells![item]);
        }
        assert!(most.shown(&table, items.len(), "--show-flows").ends_with("\n... 99,980 more: --show-flows all"));
        let all: Most = "all".parse().unwrap();
        assert_eq!((all.of(&items).len(), all.shown(&table, items.len(), "")), (100_000, table.to_string()));
        assert!("some".parse::<Most>().is_err());
    }
}
