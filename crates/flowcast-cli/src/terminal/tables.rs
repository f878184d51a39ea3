//! One look for all tables: a rule under the header, numbers to the right, no wider than the terminal, and no longer than
//! anybody reads; or Markdown, or CSV, as `--tables` asks.

use std::{
    fmt::{Display, Formatter},
    io::{IsTerminal, stdout},
    ops::{Deref, DerefMut},
    str::FromStr,
    sync::OnceLock,
};

use clap::ValueEnum;
use comfy_table::{
    Cell, CellAlignment, ColumnConstraint, ContentArrangement, LineStyle, Row, TableStyle,
};

use flowcast::table::Grouped;

const STYLE: TableStyle =
    TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));

/// How tables are written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum TableForm {
    /// For reading in a terminal
    #[default]
    Text,
    /// For a page or an issue
    Markdown,
    /// For a spreadsheet; all rows, and other lines of the result are comments that begin with #
    Csv,
}

static FORM: OnceLock<TableForm> = OnceLock::new();

impl TableForm {
    /// Sets how this run writes tables; called once, before anything is printed.
    pub(crate) fn choose(self) {
        FORM.get_or_init(|| self);
    }

    /// How this run writes tables.
    pub(crate) fn chosen() -> TableForm {
        FORM.get().copied().unwrap_or_default()
    }
}

/// Begins each line of a table in CSV until it is printed, so that no other line is taken for one of a table.
pub(crate) const RECORD: char = '\u{1e}';

/// Rows under a header.
pub(crate) struct Table(comfy_table::Table);

impl Deref for Table {
    type Target = comfy_table::Table;

    fn deref(&self) -> &comfy_table::Table {
        &self.0
    }
}

impl DerefMut for Table {
    fn deref_mut(&mut self) -> &mut comfy_table::Table {
        &mut self.0
    }
}

impl Display for Table {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match TableForm::chosen() {
            // A header without rows says nothing to people; programs read the columns from it.
            TableForm::Text if self.0.is_empty() => Ok(()),
            TableForm::Text => self.0.fmt(f),
            TableForm::Markdown => f.write_str(&self.to_markdown()),
            TableForm::Csv => f.write_str(&self.to_csv()),
        }
    }
}

impl Table {
    fn texts(&self) -> impl Iterator<Item = Vec<String>> {
        self.0
            .header()
            .into_iter()
            .chain(self.0.row_iter())
            .map(|row: &Row| {
                row.cell_iter()
                    .map(|cell| cell.content().replace('\n', " "))
                    .collect()
            })
    }

    fn to_markdown(&self) -> String {
        let line = |cells: Vec<String>| format!("| {} |", cells.join(" | "));
        let escaped =
            |cells: Vec<String>| line(cells.iter().map(|cell| cell.replace('|', "\\|")).collect());
        let mut lines: Vec<String> = self.texts().map(escaped).collect();
        let is_right = |column: &comfy_table::Column| column.constraint().is_some();
        let rule = self
            .0
            .column_iter()
            .map(|column| if is_right(column) { "---:" } else { "---" }.to_owned());
        lines.insert(1.min(lines.len()), line(rule.collect()));
        lines.join("\n")
    }

    fn to_csv(&self) -> String {
        let mut writer = csv::Writer::from_writer(Vec::new());
        self.texts().for_each(|cells| {
            writer
                .write_record(cells)
                .expect("rows are as long as the header")
        });
        let bytes = writer.into_inner().expect("a vector takes all");
        let text = String::from_utf8(bytes).expect("cells are text");
        text.lines()
            .map(|line| format!("{RECORD}{line}"))
            .collect::<Vec<_>>()
            .join("\n")
    }
}

/// A table with these column names; those that start with `>` are aligned to the right.
pub(crate) fn table(columns: &[impl AsRef<str>]) -> Table {
    let mut table = comfy_table::Table::new();
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
    Table(table)
}

/// A table of a document, with what stands above it; none if there is nothing to show.
pub(crate) fn written(content: &flowcast::table::Table) -> Option<String> {
    if content.rows == 0 && TableForm::chosen() != TableForm::Csv {
        return None;
    }
    let columns = content.shown().map(|(heading, column)| {
        let side = if column.is_right() { ">" } else { "" };
        format!("{side}{heading}")
    });
    let mut shown = table(&columns.collect::<Vec<_>>());
    let (rows, option) = content.most.unwrap_or((usize::MAX, ""));
    let most = Most(rows);
    shown.add_rows(content.texts(most.rows()).into_iter().skip(1));
    let heading = match content.heading.as_str() {
        "" => String::new(),
        heading => format!("{heading}:\n"),
    };
    Some(heading + &most.shown(&shown, content.rows, option))
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
            text => text
                .parse()
                .map(Most)
                .map_err(|_| "expected a number of rows, or all".to_owned()),
        }
    }
}

impl Most {
    /// The items that get a row.
    pub(crate) fn of<T>(self, items: &[T]) -> &[T] {
        &items[..items.len().min(self.rows())]
    }

    /// How many rows that are at most; no end in CSV.
    pub(crate) fn rows(self) -> usize {
        if TableForm::chosen() == TableForm::Csv {
            usize::MAX
        } else {
            self.0
        }
    }

    /// The table, and below it how many items have no row; `option` shows all.
    pub(crate) fn shown(self, table: &Table, items: usize, option: &str) -> String {
        match items.saturating_sub(self.rows()) {
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
        table
            .set_content_arrangement(ContentArrangement::Dynamic)
            .set_width(40);
        table.add_row(cells![
            "gige-tcp",
            "65.40 us",
            "Lichei, packet scheduler for Open MPI, Table 3.5.3.1"
        ]);
        let text = table.to_string();
        assert!(
            text.lines().all(|line| line.chars().count() <= 40),
            "{text}"
        );
        assert!(text.contains("65.40 us"), "{text}");
    }

    #[test]
    fn a_table_without_rows_has_no_header_in_text() {
        let mut table = table(&["name"]);
        assert_eq!(
            (table.to_string().as_str(), table.to_csv().as_str()),
            ("", "\u{1e}name")
        );
        table.add_row(cells!["gige-tcp"]);
        assert!(table.to_string().contains("name"));
    }

    #[test]
    fn the_same_rows_as_markdown_and_as_csv() {
        let mut table = table(&["name", ">time"]);
        table.add_row(cells!["a|b, c", "1 us"]);
        assert_eq!(
            table.to_markdown(),
            "| name | time |\n| --- | ---: |\n| a\\|b, c | 1 us |"
        );
        assert_eq!(
            table.to_csv().replace(RECORD, ""),
            "name,time\n\"a|b, c\",1 us"
        );
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
        assert!(
            most.shown(&table, items.len(), "--show-flows")
                .ends_with("\n... 99,980 more: --show-flows all")
        );
        let all: Most = "all".parse().unwrap();
        assert_eq!(
            (all.of(&items).len(), all.shown(&table, items.len(), "")),
            (100_000, table.to_string())
        );
        assert!("some".parse::<Most>().is_err());
    }
}
