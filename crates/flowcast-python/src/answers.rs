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
use pyo3::{exceptions::PyKeyError, prelude::*};
use serde_json::Value;

use crate::{
    networks::{Network, Value as Setting},
    options::Options,
    predict::provenance,
    table::{Columns, Table, escaped},
    traces::Trace,
    work::beside,
};

/// The answer to a question about a prediction.
#[pyclass(frozen, module = "flowcast")]
pub(crate) struct Answer {
    answer: Document,
    document: Value,
    page: String,
}

impl Answer {
    fn of(answer: Document, picture: Picture) -> Result<Answer> {
        let page = chart_page(&answer, picture, &provenance())?;
        let document = answer.json()?;
        Ok(Answer {
            answer,
            document,
            page,
        })
    }

    /// The lists of the document that have a row in each entry; notes are sentences.
    fn lists(&self) -> impl Iterator<Item = (&String, &Vec<Value>)> {
        let fields = self.document.as_object().into_iter().flatten();
        let fields = fields.filter(|(name, _)| *name != "notes");
        fields.filter_map(|(name, value)| Some((name, value.as_array()?)))
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
        Answer::of(answer, Picture::Sensitivity)
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
        Answer::of(answer, Picture::Tables)
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
        Answer::of(answer, Picture::Tables)
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
        py.import("json")?
            .call_method1("loads", (self.document.to_string(),))
    }

    /// The names of the tables.
    #[getter]
    fn table_names(&self) -> Vec<&String> {
        self.lists().map(|(name, _)| name).collect()
    }

    fn __getitem__(&self, name: &str) -> PyResult<Table> {
        match self.lists().find(|(known, _)| *known == name) {
            Some((_, rows)) => Ok(Table::of(Columns::of_documents(rows))),
            None => {
                let names: Vec<&str> = self.lists().map(|(name, _)| name.as_str()).collect();
                Err(PyKeyError::new_err(format!(
                    "found no table `{name}`, expected one of {}",
                    names.join(", ")
                )))
            }
        }
    }

    /// The whole answer as one HTML page.
    fn to_html(&self) -> &str {
        &self.page
    }

    /// Shows the page: in a notebook inside it, else in a browser.
    fn show<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        py.import("flowcast._show")?
            .call_method1("show_page", (&self.page,))
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
