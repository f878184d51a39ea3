//! One look for all tables: a rule under the header, numbers to the right.

use comfy_table::{Cell, CellAlignment, LineStyle, Table, TableStyle};

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
        }
    }
    table
}

/// The cells of a row, of values that can be displayed.
macro_rules! cells {
    ($($value:expr),+ $(,)?) => { [$(comfy_table::Cell::new(&$value)),+] };
}

pub(crate) use cells;
