//! Answers about a prediction: the parameters that it depends on, and the effect of changes.

use std::collections::BTreeMap;

use anyhow::Result;
use flowcast::{
    report::chart_page::{Picture, chart_page},
    table::Document,
};
use flowcast_io::{Request, WholeFileReader};
use pyo3::{
    exceptions::{PyAttributeError, PyKeyError},
    prelude::*,
    types::PyList,
};
use serde_json::Value;

use crate::{
    errors::raised,
    networks::Network,
    table::{Columns, Table, escaped},
    traces::Trace,
    work::run_in_background,
};

/// Answer to a question: text, tables, and the document of the command, whose fields are attributes.
#[pyclass(frozen, subclass, module = "flowcast_hpc")]
pub(crate) struct Answer {
    pub answer: Document,
    document: Value,
    picture: Picture,
}

/// Fields that a document has only if they have a value.
const OPTIONAL: [&str; 5] = ["loops", "noise", "one_sided", "rails", "scheduler"];

impl Answer {
    pub(crate) fn new(answer: Document, picture: Picture) -> Result<Answer> {
        let document = answer.json()?;
        Ok(Answer {
            answer,
            document,
            picture,
        })
    }

    /// Returns the lists of the document whose entries are rows. Notes are sentences and therefore not included.
    fn lists(&self) -> impl Iterator<Item = (&String, &Vec<Value>)> {
        let fields = self.document.as_object().into_iter().flatten();
        let fields = fields.filter(|(name, _)| *name != "notes");
        fields.filter_map(|(name, value)| {
            let rows = value.as_array()?;
            rows.iter().all(Value::is_object).then_some((name, rows))
        })
    }

    fn table(&self, name: &str) -> Option<Table> {
        let (_, rows) = self.lists().find(|(known, _)| *known == name)?;
        let order = self.answer.names_in(name);
        Some(Table::from_columns(Columns::of_documents(rows, &order)))
    }
}

/// Converts JSON to Python objects. The two ends of an interval become a tuple.
fn python_object<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    let loaded = py
        .import("json")?
        .call_method1("loads", (value.to_string(),))?;
    match value.as_array() {
        Some(ends) if ends.len() == 2 && ends.iter().all(Value::is_number) => {
            Ok(loaded.cast_into::<PyList>()?.to_tuple().into_any())
        }
        _ => Ok(loaded),
    }
}

/// Maximum number of rows in the table of a curve. The document has all pieces.
const MOST_ROWS: usize = 20;

/// Answers a JSON request about a trace on a network.
#[pyfunction]
pub(crate) fn ask(
    py: Python<'_>,
    request: String,
    trace: Trace,
    network: Option<Network>,
) -> PyResult<Answer> {
    run_in_background(py, move || {
        let request = Request::from_json(&request)?;
        let network = network.as_ref().map(|network| &*network.network);
        let answer = request.answer(
            || Ok(&*trace.trace),
            network,
            MOST_ROWS,
            &mut WholeFileReader,
        )?;
        Answer::new(answer, request.picture())
    })
}

/// Returns the provenance of a page.
pub(crate) fn provenance() -> BTreeMap<String, String> {
    BTreeMap::from([("flowcast".to_owned(), env!("CARGO_PKG_VERSION").to_owned())])
}

#[pymethods]
impl Answer {
    /// Name and version of the document.
    #[getter]
    fn schema(&self) -> &'static str {
        self.answer.schema
    }

    /// Kind of the document, such as `slack`.
    #[getter]
    fn kind(&self) -> &'static str {
        self.answer.kind
    }

    /// The question and its trace.
    #[getter]
    fn title(&self) -> &str {
        &self.answer.title
    }

    /// The answer as sentences, followed by its assumptions.
    #[getter]
    fn lines(&self) -> Vec<String> {
        self.answer.words().map(str::to_owned).collect()
    }

    /// Document that the command prints with `--json`, with times in seconds.
    #[getter]
    fn document<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        python_object(py, &self.document)
    }

    /// Returns a field of the document, as a table if it has rows.
    fn __getattr__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        if let Some(table) = self.table(name) {
            return Ok(Bound::new(py, table)?.into_any());
        }
        match self.document.get(name) {
            Some(value) => python_object(py, value),
            None if OPTIONAL.contains(&name) => Ok(py.None().into_bound(py)),
            None => Err(PyAttributeError::new_err(format!(
                "found no attribute `{name}`, expected a field of the document"
            ))),
        }
    }

    /// Names of the tables.
    #[getter]
    fn table_names(&self) -> Vec<&String> {
        self.lists().map(|(name, _)| name).collect()
    }

    fn __getitem__(&self, name: &str) -> PyResult<Table> {
        self.table(name).ok_or_else(|| {
            let names: Vec<&str> = self.lists().map(|(name, _)| name.as_str()).collect();
            PyKeyError::new_err(format!(
                "found no table `{name}`, expected one of {}",
                names.join(", ")
            ))
        })
    }

    /// Returns the whole answer as one HTML page.
    fn to_html(&self, py: Python<'_>) -> PyResult<String> {
        let page = chart_page(&self.answer, self.picture, &provenance());
        page.map_err(|error| raised(py, &error.into()))
    }

    /// Shows the page, inside a notebook or else in a browser.
    fn show<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let page = slf.call_method0("to_html")?;
        slf.py()
            .import("flowcast_hpc._show")?
            .call_method1("show_page", (page,))
    }

    /// Draws the curve or the bars of the answer with matplotlib.
    #[pyo3(signature = (ax=None))]
    fn plot<'py>(
        slf: &Bound<'py, Self>,
        ax: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        slf.py()
            .import("flowcast_hpc._plot")?
            .call_method1("plot_answer", (slf, ax))
    }

    /// Returns the sentences of the answer and the first rows of its tables, for notebooks.
    fn _repr_html_(&self) -> String {
        const SHOWN: usize = 10;
        let mut html = format!("<p><b>{}</b>", escaped(&self.answer.title));
        for line in self.answer.words() {
            html += &format!("<br>{}", escaped(line));
        }
        html += "</p>";
        for table in self.answer.tables() {
            html += &format!("<table><caption>{}</caption>", escaped(&table.heading));
            for (index, cells) in table.texts(SHOWN).iter().enumerate() {
                let kind = if index == 0 { "th" } else { "td" };
                html += "<tr>";
                for cell in cells {
                    html += &format!("<{kind}>{}</{kind}>", escaped(cell));
                }
                html += "</tr>";
            }
            html += &format!("</table><p>{} rows</p>", table.rows);
        }
        html
    }

    fn __str__(&self) -> String {
        self.lines().join("\n")
    }

    fn __repr__(&self) -> String {
        format!(
            "<Answer {}: {}>",
            self.answer.title,
            self.answer.words().next().unwrap_or_default()
        )
    }
}
