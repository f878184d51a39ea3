//! CSV tables: the fields of each row by column name, with the columns in any order. Names and fields may be quoted. Lines
//! that begin with `#` are comments; empty lines are ignored.

use std::{io::Cursor, ops::RangeInclusive};

use ::csv::StringRecord;
use thiserror::Error;

/// Reason why a table was rejected.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CsvError {
    /// A line has unexpected content.
    #[error("line {line}: found {found}, expected {expected}")]
    Line {
        /// Line number in the file, from 1; of a quoted row, the first line.
        line: usize,
        /// Content that was found, with the name of its column.
        found: String,
        /// Description of the expected content.
        expected: String,
    },
    /// The file has no line with column names, or no row after it.
    #[error("found no {missing}, expected the columns {expected} and rows of numbers")]
    Missing {
        /// Name of the missing part.
        missing: &'static str,
        /// All columns of a file of this kind, separated by commas.
        expected: String,
    },
}

impl CsvError {
    /// Creates the error for a line with unexpected content.
    pub fn at(line: usize, found: impl Into<String>, expected: impl Into<String>) -> CsvError {
        CsvError::Line {
            line,
            found: found.into(),
            expected: expected.into(),
        }
    }

    /// Creates the error for a field with unexpected content.
    pub fn field(line: usize, column: &str, field: &str, expected: impl Into<String>) -> CsvError {
        CsvError::at(line, format!("{column} = `{field}`"), expected)
    }

    /// Creates the error for a table without rows.
    pub fn no_row(columns: &[&str]) -> CsvError {
        CsvError::Missing {
            missing: "row",
            expected: columns.join(","),
        }
    }
}

/// Returns the whole number in a field of a table.
///
/// # Errors
/// The field is not a whole number in `range`.
pub fn whole_number(
    line: usize,
    column: &str,
    field: &str,
    range: RangeInclusive<u64>,
) -> Result<u64, CsvError> {
    let number = field.parse().ok();
    let number = number.filter(|number| range.contains(number));
    number.ok_or_else(|| {
        let expected = format!("a whole number from {} to {}", range.start(), range.end());
        CsvError::field(line, column, field, expected)
    })
}

/// Returns the number in a field of a table.
///
/// # Errors
/// The field is not a finite number, or `is_valid` rejects the number.
pub fn number(
    line: usize,
    column: &str,
    field: &str,
    is_valid: impl Fn(f64) -> bool,
    expected: &str,
) -> Result<f64, CsvError> {
    let number = field.parse().ok();
    let number = number.filter(|number: &f64| number.is_finite() && is_valid(*number));
    number.ok_or_else(|| CsvError::field(line, column, field, expected))
}

/// Comments with their line numbers, without the `#`.
pub fn comments(text: &str) -> impl Iterator<Item = (usize, &str)> {
    lines(text).filter_map(|(number, line)| Some((number, line.strip_prefix('#')?)))
}

/// A table that keeps its rows unchanged, so that another table can repeat them with more columns.
///
/// ```
/// use flowcast_network::csv::Table;
///
/// let table = Table::parse("size,time\n1,5\n2,7\n")?;
/// let rows: Vec<_> = table.fields(["time", "size"])?.collect();
/// assert_eq!(rows, [(2, ["5", "1"]), (3, ["7", "2"])]);
/// # Ok::<(), flowcast_network::csv::CsvError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// Names of the columns.
    names: StringRecord,
    /// Line number of the column names, from 1.
    line: usize,
    /// Line number and fields of each row. Each row has as many fields as there are names.
    rows: Vec<(usize, StringRecord)>,
}

impl Table {
    /// Reads a table with any columns.
    ///
    /// # Errors
    /// There is no header, or a row has another length.
    pub fn parse(text: &str) -> Result<Table, CsvError> {
        let mut records = records(text);
        let Some((line, names)) = records.next() else {
            return Err(CsvError::Missing {
                missing: "column names",
                expected: "names".to_owned(),
            });
        };
        let mut rows = Vec::new();
        for (line, row) in records {
            if row.len() != names.len() {
                let found = format!("{} fields", row.len());
                return Err(CsvError::at(line, found, names.len().to_string()));
            }
            rows.push((line, row));
        }
        Ok(Table { names, line, rows })
    }

    /// Line number of each row and its fields in the order of `columns`. The table may have other columns.
    ///
    /// # Errors
    /// A column is missing or occurs twice.
    pub fn fields<'a, const N: usize>(
        &'a self,
        columns: [&str; N],
    ) -> Result<impl Iterator<Item = (usize, [&'a str; N])> + use<'a, N>, CsvError> {
        let places = self.places(columns)?;
        let rows = self.rows.iter();
        Ok(rows.map(move |(line, row)| (*line, places.map(|place| &row[place]))))
    }

    /// Text of the table with more columns at the right; `values` has their fields for each row.
    pub fn with_columns<const N: usize>(&self, names: [&str; N], values: &[[String; N]]) -> String {
        let mut writer = ::csv::Writer::from_writer(Vec::new());
        let written = "a row is written to memory, and all are equally long";
        writer
            .write_record(self.names.iter().chain(names))
            .expect(written);
        for ((_, row), more) in self.rows.iter().zip(values) {
            let fields = row.iter().chain(more.iter().map(String::as_str));
            writer.write_record(fields).expect(written);
        }
        String::from_utf8(writer.into_inner().expect(written)).expect("fields are texts")
    }

    /// Returns the names of the columns, translated by `current`. The table must have all of `required`, may have some of
    /// `optional`, each at most once, and no others.
    ///
    /// # Errors
    /// A column is missing, unknown or occurs twice.
    pub fn only<'a>(
        &'a self,
        required: &[&str],
        optional: &[&str],
        current: fn(&'a str) -> &'a str,
    ) -> Result<Vec<&'a str>, CsvError> {
        let names: Vec<&str> = self.names().map(current).collect();
        for (at, (name, own)) in names.iter().zip(self.names()).enumerate() {
            if !required.contains(name) && !optional.contains(name) {
                return Err(self.refused(format!("column `{own}`"), required));
            }
            if names[..at].contains(name) {
                return Err(self.refused(format!("column `{own}` twice"), required));
            }
        }
        match required.iter().find(|name| !names.contains(name)) {
            Some(missing) => Err(self.refused(format!("no column `{missing}`"), required)),
            None => Ok(names),
        }
    }

    /// Index of each requested column in the table.
    fn places<const N: usize>(&self, columns: [&str; N]) -> Result<[usize; N], CsvError> {
        let mut places = [0; N];
        for (place, column) in places.iter_mut().zip(columns) {
            let mut found = self
                .names
                .iter()
                .enumerate()
                .filter(|(_, name): &(usize, &str)| *name == column);
            *place = match (found.next(), found.next()) {
                (Some((at, _)), None) => at,
                (None, _) => return Err(self.refused(format!("no column `{column}`"), &columns)),
                _ => return Err(self.refused(format!("column `{column}` twice"), &columns)),
            };
        }
        Ok(places)
    }

    /// Names of the columns.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter()
    }

    /// Line number of each row and its fields, one for each column.
    pub fn rows(&self) -> impl Iterator<Item = (usize, impl Iterator<Item = &str>)> {
        self.rows.iter().map(|(line, row)| (*line, row.iter()))
    }

    fn refused(&self, found: String, columns: &[&str]) -> CsvError {
        CsvError::at(
            self.line,
            found,
            format!("the columns {}", columns.join(",")),
        )
    }
}

/// Header and rows of a text, each with its line number.
fn records(text: &str) -> impl Iterator<Item = (usize, StringRecord)> {
    let (numbers, lines): (Vec<usize>, Vec<&str>) = content(text).unzip();
    let mut reader = ::csv::ReaderBuilder::new();
    let reader = reader.has_headers(false).flexible(true);
    let reader = reader.trim(::csv::Trim::All);
    let records = reader
        .from_reader(Cursor::new(lines.join("\n")))
        .into_records();
    records.map_while(Result::ok).map(move |record| {
        let at = record.position().map_or(0, |at| at.line() as usize - 1);
        (numbers.get(at).copied().unwrap_or(0), record)
    })
}

fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    (1..).zip(text.lines().map(str::trim))
}

fn content(text: &str) -> impl Iterator<Item = (usize, &str)> {
    lines(text).filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: &str) -> Result<Vec<(usize, String)>, CsvError> {
        let table = Table::parse(text)?;
        table.only(&["a", "b"], &[], |name| name)?;
        let rows = table.fields(["a", "b"])?;
        Ok(rows
            .map(|(line, [a, b])| (line, format!("{a}|{b}")))
            .collect())
    }

    #[test]
    fn columns_are_found_by_name_quoted_or_not_and_lines_are_counted_with_comments() {
        let text = "# x\n\n\"b\", a\r\n1,2\n# y\n\"3,4\",\"5\"\n";
        assert_eq!(
            rows(text).unwrap(),
            [(4, "2|1".to_owned()), (6, "5|3,4".to_owned())]
        );
        assert_eq!(comments(text).collect::<Vec<_>>(), [(1, " x"), (5, " y")]);
    }

    #[test]
    fn a_table_is_repeated_with_more_columns() {
        let table = Table::parse("# x\nb,a,c\n1,2,\n\n\"3,4\",5,6\n").unwrap();
        let fields: Vec<_> = table.fields(["a", "b"]).unwrap().collect();
        assert_eq!(fields, [(3, ["2", "1"]), (5, ["5", "3,4"])]);
        let more = [["x".to_owned()], ["y".to_owned()]];
        assert_eq!(
            table.with_columns(["d"], &more),
            "b,a,c,d\n1,2,,x\n\"3,4\",5,6,y\n"
        );
        let missing = table.fields(["a", "e"]).err().unwrap().to_string();
        assert_eq!(
            missing,
            "line 2: found no column `e`, expected the columns a,e"
        );
        assert!(
            Table::parse("a,b\n1\n")
                .unwrap_err()
                .to_string()
                .starts_with("line 2: found 1 fields")
        );
    }

    #[test]
    fn wrong_headers_and_rows_are_reported_with_their_lines() {
        for (text, told) in [
            ("", "found no column names, expected the columns names"),
            ("# x\na\n", "line 2: found no column `b`"),
            ("a,b,c\n", "line 1: found column `c`"),
            ("a,b,a\n", "line 1: found column `a` twice"),
            ("a,b\n1,2\n\n3\n", "line 4: found 1 fields, expected 2"),
        ] {
            let message = rows(text).unwrap_err().to_string();
            assert!(message.starts_with(told), "{message}");
        }
    }
}
