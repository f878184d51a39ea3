//! One look for all tables: a rule under the header, numbers to the right, no wider than the terminal, and no longer than
//! anybody reads; or Markdown, or CSV, as `--tables` asks.

use std::{
    io::{IsTerminal, stdout},
    sync::OnceLock,
};

use clap::{Args, ValueEnum};
use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, LineStyle, TableStyle};
use flowcast::table::{Grouped, Table};

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

/// A table with what stands above it and how many rows are left out; none if there is nothing to show.
pub(crate) fn written(table: &Table) -> Option<String> {
    let (form, (most, option)) = (TableForm::chosen(), table.most.unwrap_or((usize::MAX, "")));
    // A header without rows says nothing to people; programs read the columns from it.
    if table.rows == 0 && form != TableForm::Csv {
        return None;
    }
    let texts = table.texts(rows_shown(most));
    let is_right: Vec<bool> = table.shown().map(|(_, column)| column.is_right()).collect();
    let mut text = match form {
        TableForm::Text => in_columns(&texts, &is_right).to_string(),
        TableForm::Markdown => to_markdown(&texts, &is_right),
        TableForm::Csv => to_csv(&texts),
    };
    if !table.heading.is_empty() {
        text = format!("{}:\n{text}", table.heading);
    }
    let more = table.rows + 1 - texts.len();
    if more > 0 {
        text += &format!("\n... {} more: {option} all", Grouped(more as u64));
    }
    Some(text)
}

fn in_columns(texts: &[Vec<String>], is_right: &[bool]) -> comfy_table::Table {
    let mut table = comfy_table::Table::new();
    table
        .load_style(STYLE)
        .set_header(&texts[0])
        .add_rows(&texts[1..]);
    for (index, is_right) in is_right.iter().enumerate() {
        if let (true, Some(column)) = (*is_right, table.column_mut(index)) {
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

fn to_markdown(texts: &[Vec<String>], is_right: &[bool]) -> String {
    let rule = is_right
        .iter()
        .map(|is_right| if *is_right { "---:" } else { "---" }.to_owned());
    let mut lines: Vec<Vec<String>> = texts
        .iter()
        .map(|cells| {
            cells
                .iter()
                .map(|cell| cell.replace('\n', " ").replace('|', "\\|"))
                .collect()
        })
        .collect();
    lines.insert(1, rule.collect());
    let lines: Vec<String> = lines
        .iter()
        .map(|cells| format!("| {} |", cells.join(" | ")))
        .collect();
    lines.join("\n")
}

fn to_csv(texts: &[Vec<String>]) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    for cells in texts {
        let cells = cells.iter().map(|cell| cell.replace('\n', " "));
        writer
            .write_record(cells)
            .expect("rows are as long as the header");
    }
    let bytes = writer.into_inner().expect("a vector takes all");
    let text = String::from_utf8(bytes).expect("cells are text");
    let lines: Vec<String> = text.lines().map(|line| format!("{RECORD}{line}")).collect();
    lines.join("\n")
}

/// How many rows of a long table are printed.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Most {
    /// Rows that each table has, those that matter most where not all have one; or all
    #[arg(long = "rows", value_name = "COUNT", default_value = "20", value_parser = row_count)]
    most: usize,
}

fn row_count(text: &str) -> Result<usize, String> {
    match text {
        "all" => Ok(usize::MAX),
        text => text
            .parse()
            .map_err(|_| "expected a number of rows, or all".to_owned()),
    }
}

/// The option that shows all rows.
pub(crate) const ROWS: &str = "--rows";

impl Most {
    /// How many rows that are at most; no end in CSV.
    pub(crate) fn rows(self) -> usize {
        rows_shown(self.most)
    }
}

fn rows_shown(most: usize) -> usize {
    if TableForm::chosen() == TableForm::Csv {
        usize::MAX
    } else {
        most
    }
}

#[cfg(test)]
mod tests {
    use flowcast::table::rows;

    use super::*;

    fn texts(rows: &[&[&str]]) -> Vec<Vec<String>> {
        rows.iter()
            .map(|cells| cells.iter().map(ToString::to_string).collect())
            .collect()
    }

    #[test]
    fn a_table_fits_the_terminal_and_keeps_its_numbers_whole() {
        let texts = texts(&[
            &["name", "latency", "source"],
            &[
                "gige-tcp",
                "65.40 us",
                "Lichei, packet scheduler for Open MPI, Table 3.5.3.1",
            ],
        ]);
        let mut table = in_columns(&texts, &[false, true, false]);
        table
            .set_content_arrangement(ContentArrangement::Dynamic)
            .set_width(40);
        let text = table.to_string();
        assert!(
            text.lines().all(|line| line.chars().count() <= 40),
            "{text}"
        );
        assert!(text.contains("65.40 us"), "{text}");
    }

    #[test]
    fn a_table_without_rows_has_no_header_in_text() {
        let table = rows([0u64; 0]).cell("name", |name| name).into();
        assert_eq!(written(&table), None);
        assert_eq!(to_csv(&texts(&[&["name"]])), "\u{1e}name");
    }

    #[test]
    fn the_same_rows_as_markdown_and_as_csv() {
        let texts = texts(&[&["name", "time"], &["a|b, c", "1 us"]]);
        assert_eq!(
            to_markdown(&texts, &[false, true]),
            "| name | time |\n| --- | ---: |\n| a\\|b, c | 1 us |"
        );
        assert_eq!(
            to_csv(&texts).replace(RECORD, ""),
            "name,time\n\"a|b, c\",1 us"
        );
    }

    #[test]
    fn long_tables_end_with_the_number_of_rows_left_out() {
        let most = Most { most: 20 };
        let table = rows(0..100_000u64).cell("flow", |flow| flow);
        let cut = written(&table.clone().most(most.rows(), ROWS).into()).unwrap();
        assert!(cut.ends_with("19 \n... 99,980 more: --rows all"), "{cut}");
        let all = Most {
            most: row_count("all").unwrap(),
        };
        let whole = written(&table.most(all.rows(), ROWS).into()).unwrap();
        assert_eq!(whole.lines().count(), 100_002);
        assert!(row_count("some").is_err());
    }
}
