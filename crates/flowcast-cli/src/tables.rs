//! One look for all tables: a rule under the header, numbers to the right.

use comfy_table::{Cell, CellAlignment, LineStyle, Table, TableStyle};

const STYLE: TableStyle = TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));

/// A table with these column names; those that start with `>` are aligned to the right.
pub fn table(columns: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(STYLE);
    table.set_header(columns.iter().map(|name| Cell::new(name.trim_start_matches('>'))));
    for (index, name) in columns.iter().enumerate() {
        if let (true, Some(column)) = (name.starts_with('>'), table.column_mut(index)) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}
