//! Tables whose columns Python reads without copying: by Arrow's stream, or one column by NumPy's array interface.

#[expect(unsafe_code, reason = "the C structures of Arrow's data interface")]
mod arrow;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use pyo3::{
    exceptions::{PyAttributeError, PyIndexError, PyKeyError, PyValueError},
    prelude::*,
    types::{PyCapsule, PyDict, PyIterator, PyList, PySlice, PyTuple},
};
use serde_json::Value;

use crate::errors::raised;

/// The values of a column.
#[derive(Debug)]
pub(crate) enum Values {
    Integers(Vec<i64>),
    Floats(Vec<f64>),
    Texts(Texts),
}

/// Texts one behind the other, with where each begins and the last ends.
#[derive(Debug)]
pub(crate) struct Texts {
    pub offsets: Vec<i32>,
    pub bytes: Vec<u8>,
}

/// The columns of a table, of equal length.
#[derive(Debug, Default)]
pub(crate) struct Columns {
    pub names: Vec<String>,
    pub values: Vec<Values>,
    pub rows: usize,
}

impl Columns {
    /// With one column more.
    pub(crate) fn with(mut self, name: &str, values: Values) -> Columns {
        self.rows = values.len();
        self.names.push(name.to_owned());
        self.values.push(values);
        self
    }

    /// Of CSV: a line of names, and a line for each row. Times, rates and shares are floating-point numbers whatever their
    /// values, other columns are what their values are.
    fn of_csv(text: &str) -> Result<Columns, csv::Error> {
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let names = reader.headers()?.clone();
        let rows: Vec<csv::StringRecord> = reader.records().collect::<Result<_, _>>()?;
        Ok(names.iter().enumerate().fold(
            Columns::default(),
            |columns: Columns, (at, name): (usize, &str)| {
                let cells: Vec<&str> = rows
                    .iter()
                    .map(|row| row.get(at).unwrap_or_default())
                    .collect();
                columns.with(name, Values::from_cells(name, &cells))
            },
        ))
    }
}

impl Columns {
    /// Of the objects of a document, a row each: their texts, numbers and truth values, also of objects in them (`a.b`).
    /// The two ends of an interval are two columns; longer lists have none. Columns stand in the order of these names, others
    /// behind them.
    pub(crate) fn of_documents(documents: &[Value], order: &[&str]) -> Columns {
        let rows: Vec<BTreeMap<String, &Value>> = documents.iter().map(flat).collect();
        let names: BTreeSet<&String> = rows.iter().flat_map(BTreeMap::keys).collect();
        let mut names: Vec<&String> = names.into_iter().collect();
        names.sort_by_key(|name: &&String| {
            let first = name.split('.').next();
            let place = order.iter().position(|known| first == Some(known));
            place.unwrap_or(order.len())
        });
        names
            .into_iter()
            .fold(Columns::default(), |columns: Columns, name: &String| {
                let cells: Vec<&Value> = rows
                    .iter()
                    .map(|row| row.get(name).copied().unwrap_or(&Value::Null))
                    .collect();
                columns.with(name, Values::of_documents(&cells))
            })
    }
}

/// The fields of an object by their names, with those of objects and intervals in it.
fn flat(document: &Value) -> BTreeMap<String, &Value> {
    let mut all = BTreeMap::new();
    for (name, value) in document.as_object().into_iter().flatten() {
        match value {
            Value::Object(_) => all.extend(
                flat(value)
                    .into_iter()
                    .map(|(inner, value)| (format!("{name}.{inner}"), value)),
            ),
            Value::Array(ends) => {
                if let [low, high] = &ends[..] {
                    all.extend([(format!("{name}.low"), low), (format!("{name}.high"), high)]);
                }
            }
            value => drop(all.insert(name.clone(), value)),
        }
    }
    all
}

impl Values {
    /// Whole numbers, truth values as 0 and 1; numbers, none as NaN; or texts.
    fn of_documents(cells: &[&Value]) -> Values {
        if let Some(values) = cells
            .iter()
            .map(|cell: &&Value| cell.as_i64().or_else(|| cell.as_bool().map(i64::from)))
            .collect()
        {
            return Values::Integers(values);
        }
        match cells
            .iter()
            .map(|cell: &&Value| cell.as_f64().or_else(|| cell.is_null().then_some(f64::NAN)))
            .collect()
        {
            Some(values) => Values::Floats(values),
            None => Values::texts(cells.iter().map(|cell| cell.as_str().unwrap_or(""))),
        }
    }

    fn from_cells(name: &str, cells: &[&str]) -> Values {
        let is_measured = ["_s", "_share", "_per_byte"]
            .iter()
            .any(|ending| name.ends_with(ending));
        if !is_measured && let Some(values) = cells.iter().map(|cell| cell.parse().ok()).collect() {
            return Values::Integers(values);
        }
        match cells.iter().map(|cell| cell.parse().ok()).collect() {
            Some(values) => Values::Floats(values),
            None => Values::texts(cells.iter().copied()),
        }
    }

    pub(crate) fn integers(values: impl IntoIterator<Item = i64>) -> Values {
        Values::Integers(values.into_iter().collect())
    }

    pub(crate) fn floats(values: impl IntoIterator<Item = f64>) -> Values {
        Values::Floats(values.into_iter().collect())
    }

    /// A column of texts.
    pub(crate) fn texts<'a>(texts: impl Iterator<Item = &'a str>) -> Values {
        let mut all = Texts {
            offsets: vec![0],
            bytes: Vec::new(),
        };
        for text in texts {
            all.bytes.extend(text.as_bytes());
            all.offsets.push(all.bytes.len() as i32);
        }
        Values::Texts(all)
    }

    /// Number of values in the column.
    pub(crate) fn len(&self) -> usize {
        match self {
            Values::Integers(values) => values.len(),
            Values::Floats(values) => values.len(),
            Values::Texts(texts) => texts.offsets.len() - 1,
        }
    }

    fn text(&self, row: usize) -> String {
        match self {
            Values::Integers(values) => values[row].to_string(),
            Values::Floats(values) => values[row].to_string(),
            Values::Texts(texts) => texts.at(row).to_owned(),
        }
    }

    /// The values of some rows, in the order of these.
    fn picked(&self, rows: &[usize]) -> Values {
        match self {
            Values::Integers(values) => {
                Values::Integers(rows.iter().map(|row| values[*row]).collect())
            }
            Values::Floats(values) => Values::Floats(rows.iter().map(|row| values[*row]).collect()),
            Values::Texts(texts) => Values::texts(rows.iter().map(|row| texts.at(*row))),
        }
    }

    fn get<'py>(&self, py: Python<'py>, row: usize) -> PyResult<Bound<'py, PyAny>> {
        Ok(match self {
            Values::Integers(values) => values[row].into_pyobject(py)?.into_any(),
            Values::Floats(values) => values[row].into_pyobject(py)?.into_any(),
            Values::Texts(texts) => texts.at(row).into_pyobject(py)?.into_any(),
        })
    }
}

impl Texts {
    fn at(&self, row: usize) -> &str {
        let range = self.offsets[row] as usize..self.offsets[row + 1] as usize;
        std::str::from_utf8(&self.bytes[range]).expect("whole texts were put there")
    }
}

/// A table: columns of equal length, with their names.
#[pyclass(frozen, module = "flowcast")]
#[derive(Debug)]
pub(crate) struct Table {
    pub columns: Arc<Columns>,
    /// What stands above the line of names in a CSV file.
    pub head: String,
}

impl Table {
    /// Without lines above the names.
    pub(crate) fn from_columns(columns: Columns) -> Table {
        Table {
            columns: Arc::new(columns),
            head: String::new(),
        }
    }

    /// Of the text of a CSV file, which may begin with lines of comment.
    pub(crate) fn of_csv(text: &str) -> anyhow::Result<Table> {
        let comment = text
            .split_inclusive('\n')
            .take_while(|line| line.starts_with('#'));
        let (head, rows) = text.split_at(comment.map(str::len).sum());
        Ok(Table {
            columns: Arc::new(Columns::of_csv(rows)?),
            head: head.to_owned(),
        })
    }
}

/// What stands in the brackets behind a table: the name of a column, or rows.
#[derive(FromPyObject)]
enum Selection<'py> {
    Column(String),
    Rows(Rows<'py>),
}

/// The number of a row, which counts from the end if it is negative, or a slice.
#[derive(FromPyObject)]
enum Rows<'py> {
    One(isize),
    Slice(Bound<'py, PySlice>),
}

/// The row of a number among so many.
fn row_of(row: isize, rows: usize) -> PyResult<usize> {
    let at = if row < 0 {
        rows.checked_sub(row.unsigned_abs())
    } else {
        Some(row.unsigned_abs())
    };
    at.filter(|at| *at < rows)
        .ok_or_else(|| PyIndexError::new_err(format!("found row {row}, expected one of {rows}")))
}

/// The rows of a slice among so many.
fn rows_of(slice: &Bound<'_, PySlice>, rows: usize) -> PyResult<Vec<usize>> {
    let found = slice.indices(rows as isize)?;
    Ok((0..found.slicelength as isize)
        .map(|at| (found.start + at * found.step) as usize)
        .collect())
}

/// The values of a new column.
#[derive(FromPyObject)]
enum GivenColumn {
    Integers(Vec<i64>),
    Floats(Vec<f64>),
    Texts(Vec<String>),
}

impl From<GivenColumn> for Values {
    fn from(given: GivenColumn) -> Values {
        match given {
            GivenColumn::Integers(values) => Values::Integers(values),
            GivenColumn::Floats(values) => Values::Floats(values),
            GivenColumn::Texts(texts) => Values::texts(texts.iter().map(String::as_str)),
        }
    }
}

#[pymethods]
impl Table {
    /// Of a dictionary of lists, with lines of comment for its CSV.
    #[new]
    #[pyo3(signature = (columns, head=String::new()))]
    fn new(columns: &Bound<'_, PyDict>, head: String) -> PyResult<Table> {
        let mut all = Columns::default();
        for (name, values) in columns.iter() {
            let values = Values::from(values.extract::<GivenColumn>()?);
            if !all.names.is_empty() && values.len() != all.rows {
                let found = values.len();
                return Err(PyValueError::new_err(format!(
                    "{name}: found {found} values, expected {}",
                    all.rows
                )));
            }
            all = all.with(&name.extract::<String>()?, values);
        }
        Ok(Table {
            columns: Arc::new(all),
            head,
        })
    }

    /// The text of a CSV file as a table.
    #[staticmethod]
    fn from_csv(py: Python<'_>, text: &str) -> PyResult<Table> {
        Table::of_csv(text).map_err(|error| raised(py, &error))
    }

    /// A JSON list of objects as a table, a row each.
    #[staticmethod]
    fn from_json(text: &str) -> PyResult<Table> {
        let documents: Vec<Value> =
            serde_json::from_str(text).map_err(|error| PyValueError::new_err(error.to_string()))?;
        Ok(Table::from_columns(Columns::of_documents(&documents, &[])))
    }

    /// The names of the columns.
    #[getter]
    fn column_names(&self) -> Vec<String> {
        self.columns.names.clone()
    }

    /// The same, as polars and pandas call it.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.column_names()
    }

    fn __len__(&self) -> usize {
        self.columns.rows
    }

    fn __getitem__<'py>(
        &self,
        py: Python<'py>,
        selected: Selection<'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        Ok(match selected {
            Selection::Column(name) => Bound::new(py, self.column(&name)?)?.into_any(),
            Selection::Rows(Rows::One(row)) => {
                self.row(py, row_of(row, self.columns.rows)?)?.into_any()
            }
            Selection::Rows(Rows::Slice(slice)) => {
                let rows = rows_of(&slice, self.columns.rows)?;
                let columns = self.columns.names.iter().zip(&self.columns.values).fold(
                    Columns::default(),
                    |all: Columns, (name, values): (&String, &Values)| {
                        all.with(name, values.picked(&rows))
                    },
                );
                Bound::new(
                    py,
                    Table {
                        columns: Arc::new(columns),
                        head: self.head.clone(),
                    },
                )?
                .into_any()
            }
        })
    }

    /// The rows one after the other, each a dictionary.
    fn __iter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyIterator>> {
        slf.py()
            .import("flowcast._frames")?
            .call_method1("rows", (slf,))?
            .try_iter()
    }

    /// The table as a data frame of pandas.
    fn to_pandas<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py()
            .import("flowcast._frames")?
            .call_method1("to_pandas", (slf,))
    }

    /// The table as a data frame of polars.
    fn to_polars<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py()
            .import("flowcast._frames")?
            .call_method1("to_polars", (slf,))
    }

    /// The rows from one on, so many, as CSV with what stands above them.
    #[pyo3(signature = (start=0, count=None))]
    fn to_csv(&self, start: usize, count: Option<usize>) -> String {
        let mut writer = csv::Writer::from_writer(self.head.clone().into_bytes());
        let end = count.map_or(self.columns.rows, |count| {
            self.columns.rows.min(start.saturating_add(count))
        });
        writer
            .write_record(&self.columns.names)
            .expect("memory takes everything");
        for row in start..end {
            let cells = self.columns.values.iter().map(|values| values.text(row));
            writer.write_record(cells).expect("rows are of one length");
        }
        String::from_utf8(writer.into_inner().expect("memory takes everything"))
            .expect("texts were written")
    }

    /// The columns by name as lists.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let all = PyDict::new(py);
        for (index, name) in self.columns.names.iter().enumerate() {
            all.set_item(
                name,
                Column {
                    columns: self.columns.clone(),
                    index,
                }
                .to_list(py)?,
            )?;
        }
        Ok(all)
    }

    /// The table as an Arrow stream of one batch, whose buffers are those of the table.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The protocol lets a producer that cannot cast give its own types.
        let _ = requested_schema;
        arrow::stream(py, self.columns.clone())
    }

    /// The table's type as an Arrow schema.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        arrow::schema(py, &self.columns)
    }

    /// The first rows, for notebooks.
    pub(crate) fn _repr_html_(&self) -> String {
        const SHOWN: usize = 10;
        let cell = |kind: &str, text: &str| format!("<{kind}>{}</{kind}>", escaped(text));
        let names: String = self
            .columns
            .names
            .iter()
            .map(|name| cell("th", name))
            .collect();
        let rows: String = (0..self.columns.rows.min(SHOWN))
            .map(|row: usize| {
                let values = self
                    .columns
                    .values
                    .iter()
                    .map(|values| cell("td", &values.text(row)));
                format!("<tr>{}</tr>", values.collect::<String>())
            })
            .collect();
        let count = self.columns.rows;
        format!(
            "<table><thead><tr>{names}</tr></thead><tbody>{rows}</tbody></table><p>{count} rows</p>"
        )
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        let table = slf.get();
        (slf.get_type(), (table.to_dict(slf.py())?, &table.head)).into_pyobject(slf.py())
    }

    fn __repr__(&self) -> String {
        format!(
            "<Table: {} rows, columns {}>",
            self.columns.rows,
            self.columns.names.join(", ")
        )
    }
}

impl Table {
    fn column(&self, name: &str) -> PyResult<Column> {
        match self.columns.names.iter().position(|known| known == name) {
            Some(index) => Ok(Column {
                columns: self.columns.clone(),
                index,
            }),
            None => Err(PyKeyError::new_err(format!(
                "found no column `{name}`, expected one of {}",
                self.columns.names.join(", ")
            ))),
        }
    }

    /// The cells of a row by the names of their columns.
    fn row<'py>(&self, py: Python<'py>, row: usize) -> PyResult<Bound<'py, PyDict>> {
        let cells = PyDict::new(py);
        for (name, values) in self.columns.names.iter().zip(&self.columns.values) {
            cells.set_item(name, values.get(py, row)?)?;
        }
        Ok(cells)
    }
}

/// A text inside HTML.
pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

/// The function that builds anew what was pickled.
pub(crate) fn rebuilder<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    py.import("flowcast._rebuild")?.getattr(name)
}

/// One column of a table.
#[pyclass(frozen, module = "flowcast")]
#[derive(Debug)]
pub(crate) struct Column {
    columns: Arc<Columns>,
    index: usize,
}

impl Column {
    fn values(&self) -> &Values {
        &self.columns.values[self.index]
    }
}

#[pymethods]
impl Column {
    /// The name of the column.
    #[getter]
    fn name(&self) -> &str {
        &self.columns.names[self.index]
    }

    fn __len__(&self) -> usize {
        self.columns.rows
    }

    fn __getitem__<'py>(
        &self,
        py: Python<'py>,
        selected: Rows<'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let slice = match selected {
            Rows::One(row) => return self.values().get(py, row_of(row, self.columns.rows)?),
            Rows::Slice(slice) => slice,
        };
        let values = self.values().picked(&rows_of(&slice, self.columns.rows)?);
        let columns = Arc::new(Columns::default().with(self.name(), values));
        Ok(Bound::new(py, Column { columns, index: 0 })?.into_any())
    }

    /// The values as a list.
    fn to_list<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        match self.values() {
            Values::Integers(values) => PyList::new(py, values),
            Values::Floats(values) => PyList::new(py, values),
            Values::Texts(texts) => {
                PyList::new(py, (0..self.columns.rows).map(|row| texts.at(row)))
            }
        }
    }

    /// Where the numbers are, for NumPy, which keeps this column as long as an array needs it.
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (kind, place) = match self.values() {
            Values::Integers(values) => ("i8", values.as_ptr().addr()),
            Values::Floats(values) => ("f8", values.as_ptr().addr()),
            Values::Texts(_) => {
                return Err(PyAttributeError::new_err(
                    "a column of texts is no array of numbers",
                ));
            }
        };
        let order = if cfg!(target_endian = "big") {
            '>'
        } else {
            '<'
        };
        let interface = PyDict::new(py);
        interface.set_item("version", 3)?;
        interface.set_item("shape", (self.columns.rows,))?;
        interface.set_item("typestr", format!("{order}{kind}"))?;
        interface.set_item("data", (place, true))?;
        Ok(interface)
    }

    fn __repr__(&self) -> String {
        format!("<Column {}: {} values>", self.name(), self.columns.rows)
    }
}
