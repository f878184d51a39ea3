//! Answers about a prediction: how it depends on what, and what would change it.

use anyhow::{Context, Result};
use flowcast::{
    IntervalOptions, Options as ReplayOptions, Parameter,
    graph::noise::Noise,
    report::chart_page::{Picture, chart_page},
    study::grid::full_name,
    table::Document,
    trace::Trace as AnyTrace,
    units::Time,
    why::{self, NoiseOptions},
};
use flowcast_io::{ScenarioDefaults, Whole, parse_scenarios, threads};
use pyo3::{
    exceptions::{PyAttributeError, PyKeyError},
    prelude::*,
    types::PyList,
};
use serde_json::Value;

use crate::{
    errors::raised,
    networks::{Network, Value as Setting},
    options::Options,
    predict::provenance,
    table::{Columns, Table, escaped},
    traces::Trace,
    work::beside,
};

/// The answer to a question: words, tables, and the document of the command, whose fields are attributes.
#[pyclass(frozen, subclass, module = "flowcast")]
pub(crate) struct Answer {
    pub answer: Document,
    document: Value,
    picture: Picture,
}

/// Fields that a document has only where there is something to say.
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

    /// The lists of the document that have a row in each entry; notes are sentences.
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
        Some(Table::of(Columns::of_documents(rows, &order)))
    }
}

/// JSON as Python's objects; the two ends of an interval are a tuple.
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

/// Rows of the table of a curve, to which more pieces are joined; the document has all.
const MOST_ROWS: usize = 20;

/// How the predicted time of a trace depends on a field, over a range (`FROM..TO`) of its values.
#[pyfunction]
pub(crate) fn sensitivity(
    py: Python<'_>,
    trace: Trace,
    network: Network,
    parameter: String,
    range: String,
    most_walks: usize,
    options: Options,
) -> PyResult<Answer> {
    beside(py, move || {
        let asked = (Parameter::parse(&parameter, &range)?, most_walks);
        let found = flowcast::sensitivity(&trace.trace, &network.network, asked, &options.options)
            .with_context(|| format!("--parameter {parameter} --range {range}"))?;
        let answer = found.answer(trace.trace.name(), &network.network, MOST_ROWS);
        Answer::new(answer, Picture::Sensitivity)
    })
}

/// What `flowcast explain` says of one replay: `path`, `gradient` or `slack`.
#[pyfunction]
pub(crate) fn explain(
    py: Python<'_>,
    question: &str,
    trace: Trace,
    network: Network,
    options: Options,
) -> PyResult<Answer> {
    type Asked = fn(
        &AnyTrace,
        &flowcast::model::network::Network,
        &ReplayOptions,
    ) -> Result<Document, flowcast::Error>;
    let ask: Asked = match question {
        "path" => why::path,
        "gradient" => why::gradient,
        "slack" => why::slack,
        other => return Err(PyKeyError::new_err(other.to_owned())),
    };
    beside(py, move || {
        let answer = ask(&trace.trace, &network.network, &options.options)?;
        Answer::new(answer, Picture::Tables)
    })
}

/// Predicts each scenario of a TOML text.
#[pyfunction]
#[allow(
    clippy::too_many_arguments,
    reason = "Python hands them over one by one"
)]
pub(crate) fn predict_scenarios(
    py: Python<'_>,
    trace: Trace,
    file: (String, String),
    network: Option<Network>,
    overrides: Vec<(String, Setting)>,
    options: Options,
    level: f64,
    replicates: usize,
    seed: u64,
) -> PyResult<Answer> {
    beside(py, move || {
        let noise = NoiseOptions {
            noise: Noise::Exponential(Time::ZERO),
            runs: replicates,
            seed,
            level,
            threads: threads(),
        };
        let text_of =
            |(key, value): &(String, Setting)| (full_name(key), value.text(key, network.as_ref()));
        let overrides: Vec<(String, String)> = overrides.iter().map(text_of).collect();
        let network = network.as_ref().map(|network| &*network.network);
        let defaults = ScenarioDefaults {
            network,
            overrides: &overrides,
            options: &options.options,
            noise: &noise,
        };
        let all = parse_scenarios(&file.0, &file.1, &defaults, &mut Whole)?;
        let asked = IntervalOptions {
            level,
            ..IntervalOptions::default()
        };
        let answer = why::scenarios(&trace.trace, &all, Some(&asked))?;
        Answer::new(answer, Picture::Tables)
    })
}

#[pymethods]
impl Answer {
    /// Name and version of the document.
    #[getter]
    fn schema(&self) -> &'static str {
        self.answer.schema
    }

    /// What the document answers, such as `slack`.
    #[getter]
    fn kind(&self) -> &'static str {
        self.answer.kind
    }

    /// What was asked of which trace.
    #[getter]
    fn title(&self) -> &str {
        &self.answer.title
    }

    /// The answer in words, then what it rests on.
    #[getter]
    fn lines(&self) -> Vec<String> {
        self.answer.words().map(str::to_owned).collect()
    }

    /// The document that the command prints with `--json`, times in seconds.
    #[getter]
    fn document<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        python_object(py, &self.document)
    }

    /// A field of the document: a table where it has rows.
    fn __getattr__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        if let Some(table) = self.table(name) {
            return Ok(Bound::new(py, table)?.into_any());
        }
        match self.document.get(name) {
            Some(value) => python_object(py, value),
            None if OPTIONAL.contains(&name) => Ok(py.None().into_bound(py)),
            None => Err(PyAttributeError::new_err(format!(
                "found no attribute `{name}`, expected one of the document"
            ))),
        }
    }

    /// The names of the tables.
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

    /// The whole answer as one HTML page.
    fn to_html(&self, py: Python<'_>) -> PyResult<String> {
        let page = chart_page(&self.answer, self.picture, &provenance());
        page.map_err(|error| raised(py, &error.into()))
    }

    /// Shows the page: in a notebook inside it, else in a browser.
    fn show<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let page = slf.call_method0("to_html")?;
        slf.py()
            .import("flowcast._show")?
            .call_method1("show_page", (page,))
    }

    /// Draws the curve or the bars of the answer with matplotlib.
    #[pyo3(signature = (ax=None))]
    fn plot<'py>(
        slf: &Bound<'py, Self>,
        ax: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        slf.py()
            .import("flowcast._plot")?
            .call_method1("plot_answer", (slf, ax))
    }

    /// The answer in words and the first rows of its tables, for notebooks.
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
