//! Typed columns, each with a name in JSON, a heading for people, or both.

use flowcast_units::SizeUnits;

use crate::value::{NotFinite, Record, Value, check_list};

/// A column of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct TableColumn {
    /// Name in JSON; `None` if only people see the column.
    pub name: Option<&'static str>,
    /// Heading for people; `None` if only JSON has the column.
    pub heading: Option<String>,
    /// Cells, one for each row.
    pub cells: Vec<Value>,
}

impl TableColumn {
    /// `true` if the cells are aligned right, as figures are.
    pub fn is_right(&self) -> bool {
        self.cells.iter().any(|cell| !cell.is_words())
    }

    fn units(&self) -> SizeUnits {
        SizeUnits::for_sizes(self.cells.iter().flat_map(Value::sizes))
    }

    fn is_silent(&self) -> bool {
        self.cells.iter().all(|cell| is_silent(&cell.to_string()))
    }
}

/// Rows of typed columns.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Table {
    /// Heading above the table; no heading if empty.
    pub heading: String,
    /// Columns, all of the same length.
    pub columns: Vec<TableColumn>,
    /// Lengths of the bars in a picture, indexed by row; no picture if empty.
    pub bars: Vec<f64>,
    /// Largest number of rows that people see, and the option that shows all.
    pub most: Option<(usize, &'static str)>,
    /// Number of rows, which is the length of every column.
    pub rows: usize,
}

impl Table {
    /// Checks that all figures can be printed.
    pub(crate) fn check(&self) -> Result<(), NotFinite> {
        self.columns.iter().try_for_each(|column| {
            let name = column.name.or(column.heading.as_deref());
            let cells = check_list(&column.cells, Value::check);
            cells.map_err(|error| error.within(name.unwrap_or_default()))
        })
    }

    fn headed(&self) -> Vec<(&str, &TableColumn)> {
        self.columns
            .iter()
            .filter_map(|column| Some((column.heading.as_deref()?, column)))
            .collect()
    }

    /// Columns that people see: those with a heading and at least one cell that is not empty or a dash.
    pub fn shown(&self) -> Vec<(&str, &TableColumn)> {
        let mut shown = self.headed();
        if self.rows > 0 {
            shown.retain(|(_, column)| !column.is_silent());
        }
        shown
    }

    /// Headings and the first `most` rows of the columns that people see. All sizes of a column have the same family of
    /// units.
    pub fn texts(&self, most: usize) -> Vec<Vec<String>> {
        let shown = self.shown();
        let units: Vec<SizeUnits> = shown.iter().map(|(_, column)| column.units()).collect();
        let row = |row: usize| {
            let cells = shown.iter().zip(&units);
            cells.map(move |((_, column), units)| column.cells[row].text(*units))
        };
        let rows = (0..self.rows.min(most)).map(|index| row(index).collect());
        std::iter::once(headings(&shown)).chain(rows).collect()
    }

    /// Headings and all rows for spreadsheets, including columns of empty cells and with exact sizes.
    pub fn all_texts(&self) -> Vec<Vec<String>> {
        let headed = self.headed();
        let row = |row: usize| {
            let cells = headed.iter();
            cells.map(move |(_, column)| column.cells[row].to_string())
        };
        let rows = (0..self.rows).map(|index| row(index).collect());
        std::iter::once(headings(&headed)).chain(rows).collect()
    }
}

fn headings(columns: &[(&str, &TableColumn)]) -> Vec<String> {
    let headings = columns.iter();
    headings.map(|(heading, _)| (*heading).to_owned()).collect()
}

/// `true` if the text of a cell carries no information: it is empty or a dash.
pub fn is_silent(text: &str) -> bool {
    matches!(text, "" | "-")
}

/// A table under construction, column by column.
#[derive(Debug, Clone)]
pub struct Rows<I> {
    items: Vec<I>,
    table: Table,
}

/// Starts a table with a row for each of these items.
pub fn rows<I: Copy>(items: impl IntoIterator<Item = I>) -> Rows<I> {
    let items: Vec<I> = items.into_iter().collect();
    let table = Table {
        rows: items.len(),
        ..Table::default()
    };
    Rows { items, table }
}

impl<I: Copy> Rows<I> {
    /// Adds a column for JSON and for people.
    pub fn column<V: Into<Value>>(
        self,
        name: &'static str,
        heading: impl Into<String>,
        cell: impl Fn(I) -> V,
    ) -> Self {
        self.with(Some(name), Some(heading.into()), cell)
    }

    /// Adds a column for JSON only.
    pub fn field<V: Into<Value>>(self, name: &'static str, cell: impl Fn(I) -> V) -> Self {
        self.with(Some(name), None, cell)
    }

    /// Adds a column for people only.
    pub fn cell<V: Into<Value>>(self, heading: impl Into<String>, cell: impl Fn(I) -> V) -> Self {
        self.with(None, Some(heading.into()), cell)
    }

    fn with<V: Into<Value>>(
        mut self,
        name: Option<&'static str>,
        heading: Option<String>,
        cell: impl Fn(I) -> V,
    ) -> Self {
        let cells = self.items.iter().map(|item| cell(*item).into()).collect();
        self.table.columns.push(TableColumn {
            name,
            heading,
            cells,
        });
        self
    }

    /// Sets the heading above the table.
    pub fn heading(mut self, heading: impl Into<String>) -> Self {
        self.table.heading = heading.into();
        self
    }

    /// Adds a picture beside the table with a bar for each row.
    pub fn bars(mut self, bar: impl Fn(I) -> f64) -> Self {
        self.table.bars = self.items.iter().map(|item| bar(*item)).collect();
        self
    }

    /// Limits the rows that people see; `option` is the command's option that shows all.
    pub fn most(mut self, rows: usize, option: &'static str) -> Self {
        self.table.most = Some((rows, option));
        self
    }
}

impl<I> From<Rows<I>> for Table {
    fn from(rows: Rows<I>) -> Table {
        rows.table
    }
}

impl<I> From<Rows<I>> for Value {
    fn from(rows: Rows<I>) -> Value {
        rows.table.into()
    }
}

/// A list of records in JSON.
impl From<Table> for Value {
    fn from(table: Table) -> Value {
        (0..table.rows).map(|row| table.record(row)).collect()
    }
}

impl Table {
    fn record(&self, row: usize) -> Record {
        let named = self.columns.iter();
        let named = named.filter_map(|column| Some((column.name?, column.cells[row].clone())));
        named.fold(Record::new(), |record, (name, value)| {
            record.field(name, value)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::or_dash;

    #[test]
    fn tables_and_json_have_their_own_columns() {
        let table: Table = rows([("a", 1u64)])
            .column("name", "what", |(name, _)| name)
            .cell("count", |(_, count)| count)
            .field("hidden", |(_, count)| count)
            .into();
        assert_eq!(table.texts(usize::MAX), [["what", "count"], ["a", "1"]]);
        let right = table.shown().into_iter();
        let right: Vec<bool> = right.map(|(_, column)| column.is_right()).collect();
        assert_eq!(right, [false, true]);
        let json = Value::from(table).json("rows");
        assert_eq!(json.to_string(), r#"[{"hidden":1,"name":"a"}]"#);
    }

    #[test]
    fn a_column_without_content_is_not_shown() {
        let table: Table = rows(["a", "b"])
            .column("name", "name", |name| name)
            .column("mapping", "mapping", |_| or_dash(None::<u64>))
            .column("note", "note", |name| (name == "b").then_some("slow"))
            .into();
        assert_eq!(table.texts(0), [["name", "note"]]);
        assert_eq!(table.all_texts()[0], ["name", "mapping", "note"]);
        let json = Value::from(table).json("rows");
        assert!(json[0]["mapping"].is_null() && json[0]["note"].is_null());
    }

    #[test]
    fn sizes_of_a_column_have_one_family_of_units() {
        let sizes = [65_536, 455_200_000].map(flowcast_units::Bytes);
        let table: Table = rows(sizes).column("size_B", "size", |size| size).into();
        assert_eq!(table.texts(2), [["size"], ["65.536 kB"], ["455.2 MB"]]);
        assert_eq!(table.all_texts(), [["size"], ["64KiB"], ["455200kB"]]);
        let binary: Table = rows([sizes[0]]).cell("size", |size| size).into();
        assert_eq!(binary.texts(1), [["size"], ["64 KiB"]]);
    }

    #[test]
    fn a_table_without_rows_keeps_its_columns() {
        let table: Table = rows([0u64; 0]).column("size_B", "size", |size| size).into();
        assert_eq!(table.texts(usize::MAX), [["size"]]);
    }
}
