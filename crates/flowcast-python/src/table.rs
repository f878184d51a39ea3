//! Tables whose columns Python reads without copying: all through Arrow's stream, one through NumPy's array interface.

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

/// Values of a column.
#[derive(Debug)]
pub(crate) enum Values {
    Integers(Vec<i64>),
    Floats(Vec<f64>),
    Texts(Texts),
}

/// Concatenated texts, with the offset of each text and the end of the last.
#[derive(Debug)]
pub(crate) struct Texts {
    pub offsets: Vec<i32>,
    pub bytes: Vec<u8>,
}

/// Columns of a table, all of the same length.
#[derive(Debug, Default)]
pub(crate) struct Columns {
    pub names: Vec<String>,
    pub values: Vec<Values>,
    pub rows: usize,
}

impl Columns {
    /// Returns the columns with one column added.
    pub(crate) fn with(mut self, name: &str, values: Values) -> Columns {
        self.rows = values.len();
        self.names.push(name.to_owned());
        self.values.push(values);
        self
    }

    /// Reads CSV with a line of names and a line for each row. Columns of times, rates and shares are floating-point
    /// numbers; the type of other columns follows from their values.
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
    /// Creates a row for each object of a document, from its texts, numbers and truth values and those of nested objects
    /// (`a.b`). The two ends of an interval become two columns; longer lists are omitted. The columns in `order` come first,
    /// in that order.
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

/// Returns the fields of an object by name, including the fields of nested objects and intervals.
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
    /// Returns integers, with truth values as 0 and 1; or numbers, with missing ones as NaN; or texts.
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

    /// Returns a column of texts.
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

    /// Returns the values of some rows, in the given order.
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
        std::str::from_utf8(&self.bytes[range]).expect("texts are stored whole")
    }
}

/// Table: named columns of equal length.
#[pyclass(frozen, module = "flowcast_hpc")]
#[derive(Debug)]
pub(crate) struct Table {
    pub columns: Arc<Columns>,
    /// Comment lines above the line of names in a CSV file.
    pub head: String,
}

impl Table {
    /// Creates a table without comment lines.
    pub(crate) fn from_columns(columns: Columns) -> Table {
        Table {
            columns: Arc::new(columns),
            head: String::new(),
        }
    }

    /// Reads a table from the text of a CSV file, which can begin with comment lines.
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

/// Subscript of a table: the name of a column, or rows.
#[derive(FromPyObject)]
enum Selection<'py> {
    Column(String),
    Rows(Rows<'py>),
}

/// Row number, which counts from the end if negative, or a slice.
#[derive(FromPyObject)]
enum Rows<'py> {
    One(isize),
    Slice(Bound<'py, PySlice>),
}

/// Returns the index of a row number in a table of `rows` rows.
fn row_of(row: isize, rows: usize) -> PyResult<usize> {
    let at = if row < 0 {
        rows.checked_sub(row.unsigned_abs())
    } else {
        Some(row.unsigned_abs())
    };
    at.filter(|at| *at < rows)
        .ok_or_else(|| PyIndexError::new_err(format!("found row {row}, expected one of {rows}")))
}

/// Returns the row indices of a slice in a table of `rows` rows.
fn rows_of(slice: &Bound<'_, PySlice>, rows: usize) -> PyResult<Vec<usize>> {
    let found = slice.indices(rows as isize)?;
    Ok((0..found.slicelength as isize)
        .map(|at| (found.start + at * found.step) as usize)
        .collect())
}

/// Values of a new column.
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
    /// Creates a table from a dictionary of lists, with comment lines for its CSV.
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

    /// Reads a table from the text of a CSV file.
    #[staticmethod]
    fn from_csv(py: Python<'_>, text: &str) -> PyResult<Table> {
        Table::of_csv(text).map_err(|error| raised(py, &error))
    }

    /// Reads a table from a JSON list of objects, one row for each.
    #[staticmethod]
    fn from_json(text: &str) -> PyResult<Table> {
        let documents: Vec<Value> =
            serde_json::from_str(text).map_err(|error| PyValueError::new_err(error.to_string()))?;
        Ok(Table::from_columns(Columns::of_documents(&documents, &[])))
    }

    /// Names of the columns.
    #[getter]
    fn column_names(&self) -> Vec<String> {
        self.columns.names.clone()
    }

    /// Names of the columns, under the attribute name of polars and pandas.
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

    /// Iterates over the rows, each a dictionary.
    fn __iter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyIterator>> {
        slf.py()
            .import("flowcast_hpc._frames")?
            .call_method1("rows", (slf,))?
            .try_iter()
    }

    /// Returns the table as a pandas data frame.
    fn to_pandas<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py()
            .import("flowcast_hpc._frames")?
            .call_method1("to_pandas", (slf,))
    }

    /// Returns the table as a polars data frame.
    fn to_polars<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py()
            .import("flowcast_hpc._frames")?
            .call_method1("to_polars", (slf,))
    }

    /// Returns `count` rows from row `start` on as CSV, below the comment lines.
    #[pyo3(signature = (start=0, count=None))]
    fn to_csv(&self, start: usize, count: Option<usize>) -> String {
        let mut writer = csv::Writer::from_writer(self.head.clone().into_bytes());
        let end = count.map_or(self.columns.rows, |count| {
            self.columns.rows.min(start.saturating_add(count))
        });
        writer
            .write_record(&self.columns.names)
            .expect("writing to memory succeeds");
        for row in start..end {
            let cells = self.columns.values.iter().map(|values| values.text(row));
            writer.write_record(cells).expect("rows have equal lengths");
        }
        String::from_utf8(writer.into_inner().expect("writing to memory succeeds"))
            .expect("only texts were written")
    }

    /// Returns a dictionary with the columns as lists.
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

    /// Returns the table as an Arrow stream of one batch, which shares the buffers of the table.
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

    /// Returns the type of the table as an Arrow schema.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        arrow::schema(py, &self.columns)
    }

    /// Returns the first rows as HTML, for notebooks.
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

    /// Returns the cells of a row by column name.
    fn row<'py>(&self, py: Python<'py>, row: usize) -> PyResult<Bound<'py, PyDict>> {
        let cells = PyDict::new(py);
        for (name, values) in self.columns.names.iter().zip(&self.columns.values) {
            cells.set_item(name, values.get(py, row)?)?;
        }
        Ok(cells)
    }
}

/// Escapes a text for HTML.
pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

/// Returns the function that rebuilds a pickled object.
pub(crate) fn rebuilder<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    py.import("flowcast_hpc._rebuild")?.getattr(name)
}

/// Column of a table.
#[pyclass(frozen, module = "flowcast_hpc")]
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
    /// Name of the column.
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

    /// Returns the values as a list.
    fn to_list<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        match self.values() {
            Values::Integers(values) => PyList::new(py, values),
            Values::Floats(values) => PyList::new(py, values),
            Values::Texts(texts) => {
                PyList::new(py, (0..self.columns.rows).map(|row| texts.at(row)))
            }
        }
    }

    /// Address and type of the numbers, for NumPy, which keeps this column alive as long as an array uses it.
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (kind, place) = match self.values() {
            Values::Integers(values) => ("i8", values.as_ptr().addr()),
            Values::Floats(values) => ("f8", values.as_ptr().addr()),
            Values::Texts(_) => {
                return Err(PyAttributeError::new_err(
                    "found a column of texts, expected a column of numbers",
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
