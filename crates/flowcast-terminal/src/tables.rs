//! Format of all tables: a rule under the header and numbers aligned to the right; or Markdown or CSV, as requested by
//! `--tables`.
//!
//! No table breaks a word. Columns without information are left out. If a terminal is still too narrow, headings and columns
//! of prose are broken at spaces, then intervals move below their figures. If that is not enough, each row becomes a record
//! of lines `heading: value`.

use std::sync::OnceLock;

use clap::{Args, ValueEnum};
use comfy_table::{CellAlignment, LineStyle, TableStyle};
use flowcast::table::{Grouped, Table, is_silent};

use crate::width::{columns_of, fitted, longest_word, output_width, wrapped};

const STYLE: TableStyle =
    TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));

/// Smallest width to which a column of prose shrinks, in columns of the terminal.
const NARROWEST_PROSE: usize = 24;

/// Number of spaces around a cell and between two columns.
const AROUND: usize = 3;

/// Form in which tables are printed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum TableForm {
    /// Columns for a terminal
    #[default]
    Text,
    /// Markdown for a page or an issue
    Markdown,
    /// CSV for a spreadsheet, with all rows; other lines of the result become comments that start with #
    Csv,
}

static FORM: OnceLock<TableForm> = OnceLock::new();

impl TableForm {
    /// Sets the form of this run's tables. Called once, before anything is printed.
    pub fn choose(self) {
        FORM.get_or_init(|| self);
    }

    /// Form of this run's tables.
    pub fn chosen() -> TableForm {
        FORM.get().copied().unwrap_or_default()
    }
}

/// Marks each line of a CSV table until it is printed, to distinguish it from other lines.
pub(crate) const RECORD: char = '\u{1e}';

/// Text of a table with its heading and the number of omitted rows. `None` if there is nothing to show.
pub fn written(table: &Table) -> Option<String> {
    let (form, (most, option)) = (TableForm::chosen(), table.most.unwrap_or((usize::MAX, "")));
    // A header without rows is useless to people, but programs read the columns from it.
    if table.rows == 0 && form != TableForm::Csv {
        return None;
    }
    let texts = match form {
        TableForm::Csv => table.all_texts(),
        _ => table.texts(most),
    };
    let is_right: Vec<bool> = table
        .shown()
        .into_iter()
        .map(|(_, column)| column.is_right())
        .collect();
    let mut text = match form {
        TableForm::Text => to_text(&texts, &is_right, output_width()),
        TableForm::Markdown => to_markdown(&texts, &is_right),
        TableForm::Csv => to_csv(&texts),
    };
    if !table.heading.is_empty() {
        let heading = format!("{}:", table.heading);
        text = format!("{}\n{text}", fitted(&heading, output_width()));
    }
    let more = table.rows + 1 - texts.len();
    if more > 0 {
        text += &format!("\n... {} more: {option} all", Grouped(more as u64));
    }
    Some(text)
}

fn to_text(texts: &[Vec<String>], is_right: &[bool], width: Option<usize>) -> String {
    let Some(width) = width else {
        return in_columns(texts, is_right);
    };
    let fitting = |texts: &[Vec<String>]| {
        let widths = column_widths(texts, is_right, width)?;
        Some(in_columns(&broken_at_spaces(texts, &widths), is_right))
    };
    fitting(texts)
        .or_else(|| fitting(&with_intervals_below(texts, is_right)))
        .unwrap_or_else(|| stacked(texts, width))
}

/// Cells with each interval on a line below its figure.
fn with_intervals_below(texts: &[Vec<String>], is_right: &[bool]) -> Vec<Vec<String>> {
    texts
        .iter()
        .map(|cells| {
            let cells = cells.iter().zip(is_right);
            cells
                .map(|(cell, is_right)| {
                    if *is_right {
                        cell.replacen(" (", "\n(", 1)
                    } else {
                        cell.clone()
                    }
                })
                .collect()
        })
        .collect()
}

fn in_columns(texts: &[Vec<String>], is_right: &[bool]) -> String {
    let mut table = comfy_table::Table::new();
    table
        .load_style(STYLE)
        .set_header(&texts[0])
        .add_rows(&texts[1..]);
    for (index, is_right) in is_right.iter().enumerate() {
        if let (true, Some(column)) = (*is_right, table.column_mut(index)) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.to_string()
}

/// Widths of a column without the space around it.
struct ColumnWidths {
    /// Width of the widest cell.
    cells: usize,
    /// Width of the widest cell or the heading, unbroken.
    whole: usize,
    /// Smallest width: the heading is broken as far as possible, and so are the cells if they are prose.
    least: usize,
}

impl ColumnWidths {
    fn from_cells(column: usize, texts: &[Vec<String>], is_right: bool) -> ColumnWidths {
        let widest = |rows: &[Vec<String>], measure: fn(&str) -> usize| {
            rows.iter()
                .map(|cells| measure(&cells[column]))
                .max()
                .unwrap_or(0)
        };
        let cells = widest(&texts[1..], longest_line);
        let unbroken = if is_right {
            cells
        } else {
            cells.min(NARROWEST_PROSE)
        };
        ColumnWidths {
            cells,
            whole: widest(texts, longest_line),
            least: unbroken.max(widest(texts, longest_word)),
        }
    }
}

/// Widths of the columns that make a table fit. `None` if it cannot fit. Headings are broken before prose, and wide columns
/// before narrow ones.
fn column_widths(texts: &[Vec<String>], is_right: &[bool], width: usize) -> Option<Vec<usize>> {
    let columns: Vec<ColumnWidths> = is_right
        .iter()
        .enumerate()
        .map(|(column, is_right)| ColumnWidths::from_cells(column, texts, *is_right))
        .collect();
    let mut widths: Vec<usize> = columns.iter().map(|column| column.whole).collect();
    let room = (width + 1).checked_sub(AROUND * columns.len())?;
    while widths.iter().sum::<usize>() > room {
        let widest = (0..columns.len())
            .filter(|column| widths[*column] > columns[*column].least)
            .max_by_key(|column| (widths[*column] > columns[*column].cells, widths[*column]))?;
        widths[widest] -= 1;
    }
    Some(widths)
}

fn longest_line(text: &str) -> usize {
    text.lines().map(columns_of).max().unwrap_or(0)
}

fn broken_at_spaces(texts: &[Vec<String>], widths: &[usize]) -> Vec<Vec<String>> {
    texts
        .iter()
        .map(|cells| {
            let cells = cells.iter().zip(widths);
            cells
                .map(|(cell, width)| wrapped(cell, *width, 0))
                .collect()
        })
        .collect()
}

/// Each row as a record of lines `heading: value`, without values that carry no information.
fn stacked(texts: &[Vec<String>], width: usize) -> String {
    let headings = texts[0].iter();
    let longest = headings.map(|heading| columns_of(heading)).max();
    let indent = longest.unwrap_or(0) + ": ".len();
    let records: Vec<String> = texts[1..]
        .iter()
        .map(|cells| {
            let fields = texts[0].iter().zip(cells);
            let spoken = fields.filter(|(_, cell)| !is_silent(cell));
            let lines = spoken.map(|(heading, cell)| field(heading, cell, indent, width));
            lines.collect::<Vec<_>>().join("\n")
        })
        .collect();
    records.join("\n\n")
}

/// A line `heading: value`. The value starts at `indent`, or on the next line if one of its words would not fit. Without a
/// heading, it is the value alone.
fn field(heading: &str, cell: &str, indent: usize, width: usize) -> String {
    const BELOW: usize = 2;
    let cell = cell.replace('\n', " ");
    if heading.is_empty() {
        return wrapped(&cell, width, BELOW);
    }
    if indent + longest_word(&cell) > width {
        let cell = format!("{:BELOW$}{cell}", "");
        return format!("{heading}:\n{}", wrapped(&cell, width, BELOW));
    }
    let gap = indent - columns_of(heading) - 1;
    wrapped(&format!("{heading}:{:gap$}{cell}", ""), width, indent)
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

/// Number of printed rows of a long table.
#[derive(Debug, Clone, Copy, Args)]
pub struct RowLimit {
    /// Maximum number of rows of each table, most important first, or all
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

impl RowLimit {
    /// Maximum number of rows; unlimited in CSV.
    pub fn rows(self) -> usize {
        match TableForm::chosen() {
            TableForm::Csv => usize::MAX,
            _ => self.most,
        }
    }
}

#[cfg(test)]
mod tests {
    use flowcast::table::rows;

    use flowcast::answers::ROWS;

    use super::*;

    fn texts(rows: &[&[&str]]) -> Vec<Vec<String>> {
        rows.iter()
            .map(|cells| cells.iter().map(ToString::to_string).collect())
            .collect()
    }

    fn networks() -> Vec<Vec<String>> {
        texts(&[
            &["network", "latency", "time in communication", "source"],
            &[
                "infiniband-ndr200",
                "65.40 us",
                "45.2 %",
                "Lichei, packet scheduler for Open MPI, Table 3.5.3.1",
            ],
            &["gige-tcp", "1.000 us", "-", "measured on this machine"],
        ])
    }

    #[test]
    fn prose_and_headings_are_broken_at_spaces_before_rows_are_stacked() {
        let is_right = [false, true, true, false];
        let text = to_text(&networks(), &is_right, Some(80));
        let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
        assert!(lines[2].starts_with('─'), "{text}");
        assert_eq!(
            [&lines[..2], &lines[3..]].concat(),
            [
                " network              latency         time in   source",
                "                                communication",
                " infiniband-ndr200   65.40 us          45.2 %   Lichei, packet scheduler for",
                "                                                Open MPI, Table 3.5.3.1",
                " gige-tcp            1.000 us               -   measured on this machine",
            ]
        );
        let mut unnamed = networks();
        unnamed[0][0].clear();
        let text = to_text(&unnamed, &is_right, Some(60));
        assert!(text.starts_with("infiniband-ndr200\nlatency: "), "{text}");
        assert_eq!(
            to_text(&networks(), &is_right, Some(60)),
            "network:               infiniband-ndr200\n\
             latency:               65.40 us\n\
             time in communication: 45.2 %\n\
             source:                Lichei, packet scheduler for Open\n                       \
             MPI, Table 3.5.3.1\n\n\
             network:               gige-tcp\n\
             latency:               1.000 us\n\
             source:                measured on this machine"
        );
    }

    #[test]
    fn an_interval_moves_below_its_figure_before_rows_are_stacked() {
        let texts = texts(&[
            &["network", "time"],
            &["gige-tcp", "12 ms (11 to 16, 90 %)"],
        ]);
        assert_eq!(
            to_text(&texts, &[false, true], Some(30)),
            " network                time \n─────────────────────────────\n gige-tcp              12 ms \n            (11 to 16, 90 %) "
        );
    }

    #[test]
    fn no_table_breaks_a_word_or_leaves_one_out_at_any_width() {
        let (texts, is_right) = (networks(), [false, true, true, false]);
        let words: Vec<&str> = texts
            .iter()
            .flatten()
            .flat_map(|cell| cell.split(' '))
            .collect();
        for width in 1..140 {
            let text = to_text(&texts, &is_right, Some(width));
            let longest = text.lines().map(columns_of).max().unwrap();
            assert!(
                longest <= width.max("infiniband-ndr200".len() + 2 + "network:".len()),
                "{width}: {text}"
            );
            let whole = text.split_whitespace().all(|word| {
                word.starts_with('─')
                    || words.contains(&word)
                    || words.contains(&word.trim_end_matches(':'))
            });
            assert!(whole, "{width}: {text}");
        }
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
        let most = RowLimit { most: 20 };
        let table = rows(0..100_000u64).cell("flow", |flow| flow);
        let cut = written(&table.clone().most(most.rows(), ROWS).into()).unwrap();
        assert!(cut.ends_with("19 \n... 99,980 more: --rows all"), "{cut}");
        let all = RowLimit {
            most: row_count("all").unwrap(),
        };
        let whole = written(&table.most(all.rows(), ROWS).into()).unwrap();
        assert_eq!(whole.lines().count(), 100_002);
        assert!(row_count("some").is_err());
    }
}
