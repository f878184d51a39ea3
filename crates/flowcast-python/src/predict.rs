//! Predictions of traces and patterns.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use anyhow::{Context, Result, ensure};
use flowcast::{
    Interval, IntervalOptions, Outputs, Prepared,
    answers::{PatternAnswer, PredictionAnswer},
    model::cluster::pattern::Steps,
    observers::journal::JournalContents,
    pattern_intervals, predict_steps,
    replay::timeline::MessageSpan,
    report::{
        Page,
        chart_page::Picture,
        export::{Replayed, tables},
    },
    statements::shown_time,
    table::Document,
    units::Time,
};
use flowcast_io::{InputKind, WholeFileReader, threads};
use pyo3::{prelude::*, types::PyTuple};

use crate::{
    answers::{Answer, provenance},
    errors::raised,
    networks::Network,
    noise::{self, Noise},
    options::Options,
    table::{Columns, Table, Values, rebuilder},
    traces::Trace,
    work::run_in_background,
};

/// Predicted time of a trace and its parts. Tables that need another replay are computed on request.
#[pyclass(frozen, extends = Answer, module = "flowcast_hpc")]
pub(crate) struct Prediction {
    asked: ReplayInputs,
    /// Predicted time with its interval, as formatted text.
    #[pyo3(get)]
    text: String,
    interval: Option<Interval>,
    /// Distribution of the predicted time under random delays; `None` without noise.
    #[pyo3(get)]
    noise: Option<Py<Noise>>,
    /// Arguments of [`predict`], from which unpickling repeats the prediction.
    given: Py<PyTuple>,
}

/// Inputs of the prediction, for further replays.
#[derive(Clone)]
struct ReplayInputs {
    trace: Trace,
    network: Option<Network>,
    options: flowcast::Options,
}

impl ReplayInputs {
    fn replayed<T>(&self, work: impl FnOnce(&Prepared<'_>) -> Result<T>) -> Result<T> {
        let network = self.network.as_ref().map(|network| &*network.network);
        work(&Prepared::new(&self.trace.trace, network, &self.options)?)
    }

    /// Replays with a journal and returns the result of reading it.
    fn journal<T>(&self, read: impl FnOnce(Replayed<'_>) -> Result<T>) -> Result<T> {
        self.replayed(|prepared| {
            let outputs = Outputs {
                journal: Some(JournalContents::default()),
                ..Outputs::default()
            };
            let mut found = None;
            prepared.predict_and_export(outputs, &[], |replayed| {
                found = Some(read(replayed)?);
                anyhow::Ok(())
            })?;
            found.context("the outputs include a journal")
        })
    }

    fn messages(&self) -> Result<Table> {
        self.journal(|replayed| {
            Ok(Table {
                columns: Arc::new(message_columns(replayed)),
                head: format!("# schema: {}\n", tables::MESSAGES),
            })
        })
    }

    fn table(
        &self,
        write: impl FnOnce(
            Replayed<'_>,
            &tables::Provenance,
            &mut dyn std::io::Write,
        ) -> std::io::Result<()>,
    ) -> Result<Table> {
        self.journal(|replayed| {
            let mut text = Vec::new();
            write(replayed, &BTreeMap::new(), &mut text)?;
            Table::of_csv(std::str::from_utf8(&text)?)
        })
    }

    fn page(&self, document: &Document, interval: Option<&Interval>) -> Result<String> {
        ensure!(
            self.options.rails.further.is_empty(),
            "HTML page: found several rails, expected one network"
        );
        self.replayed(|prepared| {
            let outputs = Outputs {
                view: true,
                ..Outputs::default()
            };
            let mut prediction = prepared.predict(outputs, &[])?;
            prediction.with_interval(interval);
            let views = prediction.view.into_iter().collect();
            Ok(Page::about(document, views, provenance()).to_html()?)
        })
    }
}

/// Returns the columns of the command's table of messages.
fn message_columns(replayed: Replayed<'_>) -> Columns {
    let whole = |of: fn(MessageSpan) -> i64| Values::integers(replayed.messages().map(of));
    let time = |of: fn(MessageSpan) -> Time| {
        Values::floats(replayed.messages().map(|span| of(span).as_seconds()))
    };
    Columns::default()
        .with("src", whole(|span| i64::from(span.src.0)))
        .with("dst", whole(|span| i64::from(span.dst.0)))
        .with("bytes", whole(|span| span.size.0 as i64))
        .with("tag", whole(|span| i64::from(span.tag)))
        .with("sent_s", time(|span| span.sent))
        .with("arrived_s", time(|span| span.arrived))
        .with("received_s", time(|span| span.received))
}

/// Predicts a trace; `asked` are the fields of the network that the caller set.
#[pyfunction]
#[pyo3(signature = (trace, network, options, level, holdout, asked, noise, no_interval=false))]
#[allow(clippy::too_many_arguments, reason = "Python passes them one by one")]
pub(crate) fn predict(
    py: Python<'_>,
    trace: Trace,
    network: Option<Network>,
    options: Options,
    level: f64,
    holdout: Option<String>,
    asked: Vec<String>,
    noise: Option<noise::NoiseDraws>,
    no_interval: bool,
) -> PyResult<Py<Prediction>> {
    let noise_given = noise.clone();
    let given = (
        trace.clone(),
        network.clone(),
        options.clone(),
        level,
        holdout.clone(),
        asked.clone(),
        noise_given,
        no_interval,
    );
    let given = given.into_pyobject(py)?.unbind();
    let replay = ReplayInputs {
        trace,
        network,
        options: options.options,
    };
    let (document, text, interval, noise, replay) = run_in_background(py, move || {
        let (document, text, interval, noise) = replay.replayed(|prepared| {
            let prediction = prepared.predict(Outputs::default(), &asked)?;
            let options = IntervalOptions {
                level,
                held_out: holdout.as_deref(),
                threads: threads(),
                ..IntervalOptions::default()
            };
            let interval = match no_interval {
                true => None,
                false => prepared.interval(&prediction.outcome, &options)?,
            };
            let noise = noise.map(|noise| noise.draw(prepared, level)).transpose()?;
            let network = replay.network.iter().map(|network| &*network.network);
            let answer = PredictionAnswer {
                applications: Vec::new(),
                prepared,
                prediction: &prediction,
                networks: network.chain(&replay.options.rails.further).collect(),
                interval: interval.as_ref(),
                has_interval: !no_interval,
                noise: noise.as_ref().map(Noise::named),
                most_rows: usize::MAX,
            };
            let document = answer.document().titled(replay.trace.trace.name());
            let text = shown_time(prediction.outcome.makespan(), interval.as_ref());
            Ok((document, text, interval, noise))
        })?;
        let answer = Answer::new(document, Picture::Tables)?;
        Ok((answer, text, interval, noise, replay))
    })?;
    let prediction = Prediction {
        asked: replay,
        text,
        interval,
        noise: noise.map(|noise| Py::new(py, noise)).transpose()?,
        given,
    };
    Py::new(py, (prediction, document))
}

/// Returns the end of each rank in the runs `start..end` of an ensemble, in nanoseconds.
#[pyfunction]
pub(crate) fn noise_ends(
    py: Python<'_>,
    trace: Trace,
    network: Option<Network>,
    options: Options,
    noise: noise::NoiseDraws,
    start: usize,
    end: usize,
) -> PyResult<Vec<Vec<f64>>> {
    let of = ReplayInputs {
        trace,
        network,
        options: options.options,
    };
    run_in_background(py, move || {
        of.replayed(|prepared| noise.ends(prepared, start..end))
    })
}

#[pymethods]
impl Prediction {
    /// Returns the messages: sender, receiver, size, and times of sending, arrival and reception.
    fn message_table(&self, py: Python<'_>) -> PyResult<Table> {
        let asked = self.asked.clone();
        run_in_background(py, move || asked.messages())
    }

    /// Returns the ranks with all columns of the command's table of ranks.
    fn rank_table(&self, py: Python<'_>) -> PyResult<Table> {
        let asked = self.asked.clone();
        run_in_background(py, move || asked.table(tables::ranks))
    }

    /// Returns the pairs of ranks that exchange messages.
    fn pair_table(&self, py: Python<'_>) -> PyResult<Table> {
        let asked = self.asked.clone();
        run_in_background(py, move || asked.table(tables::pairs))
    }

    /// Returns the report as one HTML page.
    fn to_html(slf: &Bound<'_, Self>) -> PyResult<String> {
        let (this, document) = (slf.get(), slf.as_super().get().answer.clone());
        let (asked, interval) = (this.asked.clone(), this.interval.clone());
        run_in_background(slf.py(), move || asked.page(&document, interval.as_ref()))
    }

    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        Ok((
            rebuilder(slf.py(), "prediction")?,
            slf.get().given.bind(slf.py()).clone(),
        ))
    }

    fn __repr__(&self) -> String {
        let on = self.asked.network.as_ref();
        let on = on.map_or(String::new(), |one| format!(" on {}", one.network.name));
        let name = self.asked.trace.trace.name();
        format!("<Prediction of {name}{on}: {}>", self.text)
    }
}

/// Returns the text of a file.
#[pyfunction]
pub(crate) fn file_text(py: Python<'_>, path: PathBuf) -> PyResult<String> {
    flowcast_io::read_named_text(&path, &mut WholeFileReader).map_err(|error| raised(py, &error))
}

/// Returns `True` if a file is a matrix of bytes between ranks.
#[pyfunction]
pub(crate) fn is_matrix(py: Python<'_>, path: PathBuf) -> PyResult<bool> {
    flowcast_io::is_matrix(&path).map_err(|error| raised(py, &error))
}

/// Returns `True` if a file is a pattern of concurrent communications.
#[pyfunction]
pub(crate) fn is_pattern(py: Python<'_>, path: PathBuf) -> PyResult<bool> {
    let holding = flowcast_io::is_pattern(&path).map_err(|error| raised(py, &error))?;
    Ok(holding == InputKind::Pattern)
}

/// Predicted end of each flow of a pattern.
#[pyclass(frozen, extends = Answer, module = "flowcast_hpc")]
pub(crate) struct PatternPrediction {
    /// Predicted time with its interval, as formatted text.
    #[pyo3(get)]
    text: String,
}

/// Predicts a pattern of concurrent communications.
#[pyfunction]
pub(crate) fn predict_pattern(
    py: Python<'_>,
    name: String,
    content: Vec<u8>,
    network: Network,
    options: Options,
    level: f64,
    no_interval: bool,
) -> PyResult<Py<PatternPrediction>> {
    let (prediction, answer) = run_in_background(py, move || {
        let steps = Steps::read(&name, &content)?;
        let (options, network) = (&options.options, &*network.network);
        let predicted = predict_steps(&steps, network, options)?;
        let asked = IntervalOptions {
            level,
            threads: threads(),
            ..IntervalOptions::default()
        };
        let intervals = match no_interval {
            true => None,
            false => pattern_intervals(&steps, network, options, &predicted, &asked)?,
        };
        let answer = PatternAnswer {
            predicted: &predicted,
            network,
            intervals: intervals.as_ref(),
            has_interval: !no_interval,
            seeds: None,
            explains: false,
            most_rows: usize::MAX,
        };
        let interval = intervals.as_ref().map(|intervals| &intervals.makespan);
        let prediction = PatternPrediction {
            text: shown_time(answer.makespan(), interval),
        };
        Ok((prediction, Answer::new(answer.document(), Picture::Tables)?))
    })?;
    Py::new(py, (prediction, answer))
}

#[pymethods]
impl PatternPrediction {
    fn __repr__(slf: &Bound<'_, Self>) -> String {
        let title = &slf.as_super().get().answer.title;
        format!("<PatternPrediction of {title}: {}>", slf.get().text)
    }
}
