//! Predictions of traces and patterns.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use anyhow::{Context, Result, ensure};
use flowcast::{
    Interval, IntervalOptions, Outputs, Prepared,
    model::cluster::pattern::Steps,
    pattern_intervals, predict_steps,
    replay::{inside::InsideTraffic, journal::Keeps, timeline::MessageSpan},
    report::{
        Page,
        export::{Replayed, tables},
    },
    statements::{margin, margin_of_steps, of_networks, shown_time},
    table::{Document, Grouped},
    trace::program::Transfers,
    units::Time,
};
use flowcast_io::{Holding, Whole, threads};
use pyo3::{prelude::*, types::PyTuple};

use crate::{
    errors::raised,
    networks::Network,
    noise::{self, Noise},
    options::Options,
    table::{Columns, Table, Values, escaped, rebuilder},
    traces::Trace,
    work::beside,
};

/// How long a trace takes, and where the time goes.
#[pyclass(frozen, module = "flowcast")]
pub(crate) struct Prediction {
    asked: Asked,
    prediction: flowcast::Prediction,
    interval: Option<Interval>,
    margin: String,
    noise: Option<Py<Noise>>,
    /// The arguments of [`predict`], from which a pickle makes the prediction again.
    given: Py<PyTuple>,
}

/// What was predicted, to replay it for more.
#[derive(Clone)]
struct Asked {
    trace: Trace,
    network: Option<Network>,
    options: flowcast::Options,
}

impl Asked {
    fn replayed<T>(&self, work: impl FnOnce(&Prepared<'_>) -> Result<T>) -> Result<T> {
        let network = self.network.as_ref().map(|network| &*network.network);
        work(&Prepared::new(&self.trace.trace, network, &self.options)?)
    }

    /// What is read from the journal of one replay.
    fn journal<T>(&self, read: impl FnOnce(Replayed<'_>) -> Result<T>) -> Result<T> {
        self.replayed(|prepared| {
            let outputs = Outputs {
                journal: Some(Keeps::default()),
                ..Outputs::default()
            };
            let mut found = None;
            prepared.predict_and_export(outputs, &[], |replayed| {
                found = Some(read(replayed)?);
                anyhow::Ok(())
            })?;
            found.context("a journal was asked for")
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

    /// Behind the name of the trace.
    fn on(&self) -> String {
        let network = self.network.as_ref();
        network.map_or(String::new(), |one| format!(" on {}", one.network.name))
    }

    fn page(&self, interval: Option<&Interval>, margin: &str) -> Result<String> {
        ensure!(
            self.options.rails.further.is_empty(),
            "a page: found several rails, expected one network"
        );
        self.replayed(|prepared| {
            let outputs = Outputs {
                view: true,
                ..Outputs::default()
            };
            let mut prediction = prepared.predict(outputs, &[])?;
            prediction.with_interval(interval);
            let ranks = prediction.outcome.ranks.len();
            let messages = Grouped(prediction.outcome.messages);
            let document = Document::new("prediction")
                .titled(self.trace.trace.name())
                .line(format!("{ranks} ranks, {messages} messages{}", self.on()))
                .line(margin)
                .lines(prediction.sentences())
                .noted(&prediction.notes);
            let views = prediction.view.into_iter().collect();
            Ok(Page::about(&document, views, provenance()).to_html()?)
        })
    }
}

/// Where a page comes from.
pub(crate) fn provenance() -> BTreeMap<String, String> {
    BTreeMap::from([("flowcast".to_owned(), env!("CARGO_PKG_VERSION").to_owned())])
}

/// The columns of the command's table of messages.
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
#[allow(
    clippy::too_many_arguments,
    reason = "Python hands them over one by one"
)]
pub(crate) fn predict(
    py: Python<'_>,
    trace: Trace,
    network: Option<Network>,
    options: Options,
    level: f64,
    holdout: Option<String>,
    asked: Vec<String>,
    noise: Option<noise::Asked>,
    no_interval: bool,
) -> PyResult<Prediction> {
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
    let of = Asked {
        trace,
        network,
        options: options.options,
    };
    let (prediction, interval, noise, asked) = beside(py, move || {
        let (prediction, interval, noise) = of.replayed(|prepared| {
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
            Ok((prediction, interval, noise))
        })?;
        Ok((prediction, interval, noise, of))
    })?;
    let noise = noise.map(|noise| Py::new(py, noise)).transpose()?;
    let networks = asked.network.iter().map(|of| &*of.network);
    let networks = networks.chain(&asked.options.rails.further);
    let margin = margin(networks, interval.as_ref(), !no_interval);
    Ok(Prediction {
        asked,
        prediction,
        interval,
        margin,
        noise,
        given,
    })
}

/// When each rank ends in the runs from `start` to before `end` of an ensemble, in nanoseconds.
#[pyfunction]
pub(crate) fn noise_ends(
    py: Python<'_>,
    trace: Trace,
    network: Option<Network>,
    options: Options,
    noise: noise::Asked,
    start: usize,
    end: usize,
) -> PyResult<Vec<Vec<f64>>> {
    let of = Asked {
        trace,
        network,
        options: options.options,
    };
    beside(py, move || {
        of.replayed(|prepared| noise.ends(prepared, start..end))
    })
}

#[pymethods]
impl Prediction {
    /// When the last rank ends, in seconds.
    #[getter]
    fn makespan_s(&self) -> f64 {
        self.prediction.outcome.makespan().as_seconds()
    }

    /// Number of point-to-point messages that were replayed.
    #[getter]
    fn messages(&self) -> u64 {
        self.prediction.outcome.messages
    }

    /// Sum of the sizes of the messages.
    #[getter]
    fn bytes(&self) -> u64 {
        self.prediction.outcome.bytes.0
    }

    /// The network's name; none where parameters took its place.
    #[getter]
    fn network(&self) -> Option<&str> {
        self.asked
            .network
            .as_ref()
            .map(|network| network.network.name.as_str())
    }

    /// Name of the model that predicted.
    #[getter]
    fn model(&self) -> &'static str {
        self.prediction.model.name()
    }

    /// Why this model, in words.
    #[getter]
    fn model_reason(&self) -> &str {
        &self.prediction.model.reason
    }

    /// What the model leaves out.
    #[getter]
    fn leaves_out(&self) -> String {
        self.prediction.model.leaves_out().to_string()
    }

    /// Whether no two messages met.
    #[getter]
    fn uncontended(&self) -> bool {
        self.prediction.model.is_uncontended
    }

    /// Who gave messages to several rails; none with one network.
    #[getter]
    fn scheduler(&self) -> Option<String> {
        let rails = self.prediction.rails.as_ref()?;
        Some(rails.policy.to_string())
    }

    /// What each of several rails carried; none with one network.
    #[getter]
    fn rails(&self) -> Option<Table> {
        let rails = self.prediction.rails.as_ref()?;
        let each = || rails.rails.iter();
        let columns = Columns::default()
            .with("name", Values::texts(each().map(|rail| rail.name.as_str())))
            .with("model", Values::texts(each().map(|rail| rail.model)))
            .with(
                "messages",
                Values::integers(each().map(|rail| rail.traffic.messages as i64)),
            )
            .with(
                "bytes",
                Values::integers(each().map(|rail| rail.traffic.bytes.0 as i64)),
            )
            .with(
                "share",
                Values::floats(each().map(|rail| rails.share(rail))),
            );
        Some(Table::of(columns))
    }

    /// How collectives are carried out; none if there are none.
    #[getter]
    fn collectives(&self) -> Option<&'static str> {
        self.prediction.model.collectives
    }

    /// The transfers of one-sided communication, and their bytes; they are not among the messages.
    #[getter]
    fn one_sided(&self) -> (u64, u64) {
        let Transfers { count, bytes } = self.prediction.transfers;
        (count, bytes.0)
    }

    /// What happened inside nodes: who says what it costs, messages, bytes, and seconds one after the other; none if nothing did.
    #[getter]
    fn inside_nodes(&self) -> Option<(&'static str, u64, u64, f64)> {
        let InsideTraffic {
            source,
            messages,
            bytes,
            time,
        } = self.prediction.inside?;
        Some((source.name(), messages, bytes.0, time.as_seconds()))
    }

    /// What of the trace is left out, then what was assumed that no file says.
    #[getter]
    fn notes(&self) -> Vec<String> {
        self.prediction.notes.clone()
    }

    /// The fields of the network without influence, with why.
    #[getter]
    fn no_influence(&self) -> Vec<(String, String)> {
        self.prediction
            .unused
            .iter()
            .map(|one| (one.parameter.to_string(), one.reason.to_string()))
            .collect()
    }

    /// The ends of the interval, in seconds; none where none is known.
    #[getter]
    fn interval_s(&self) -> Option<(f64, f64)> {
        ends(self.interval.as_ref())
    }

    /// The probability with which the interval holds what is measured.
    #[getter]
    fn interval_level(&self) -> Option<f64> {
        self.interval.as_ref().map(|interval| interval.level)
    }

    /// What the interval takes into account.
    #[getter]
    fn interval_covers(&self) -> Option<&str> {
        self.interval
            .as_ref()
            .map(|interval| interval.covers.as_str())
    }

    /// What the interval covers, or why there is none, as people read it.
    #[getter]
    fn margin(&self) -> &str {
        &self.margin
    }

    /// The distribution of the predicted time under random delays, where they were asked for.
    #[getter]
    fn noise(&self, py: Python<'_>) -> Option<Py<Noise>> {
        self.noise.as_ref().map(|noise| noise.clone_ref(py))
    }

    /// The predicted time with its interval, as people read it.
    #[getter]
    fn text(&self) -> String {
        shown_time(self.prediction.outcome.makespan(), self.interval.as_ref())
    }

    /// The ranks: when each ends, and where its time goes.
    #[getter]
    fn ranks(&self) -> Table {
        let ranks = &self.prediction.outcome.ranks;
        let seconds = |of: fn(&flowcast::replay::outcome::RankOutcome) -> Time| {
            Values::floats(ranks.iter().map(|rank| of(rank).as_seconds()))
        };
        let columns = Columns::default()
            .with("rank", Values::integers(0..ranks.len() as i64))
            .with("end_s", seconds(|rank| rank.end))
            .with("compute_s", seconds(|rank| rank.compute))
            .with("blocked_s", seconds(|rank| rank.blocked))
            .with("overhead_s", seconds(|rank| rank.overhead));
        Table::of(columns)
    }

    /// The messages: ends, sizes, and when each was sent, arrived and was received.
    fn message_table(&self, py: Python<'_>) -> PyResult<Table> {
        let asked = self.asked.clone();
        beside(py, move || asked.messages())
    }

    /// The ranks with all that the command's table of ranks has.
    fn rank_table(&self, py: Python<'_>) -> PyResult<Table> {
        let asked = self.asked.clone();
        beside(py, move || asked.table(tables::ranks))
    }

    /// The pairs of ranks that exchange messages.
    fn pair_table(&self, py: Python<'_>) -> PyResult<Table> {
        let asked = self.asked.clone();
        beside(py, move || asked.table(tables::pairs))
    }

    /// The report as one HTML page.
    fn to_html(&self, py: Python<'_>) -> PyResult<String> {
        let asked = self.asked.clone();
        let (interval, margin) = (self.interval.clone(), self.margin.clone());
        beside(py, move || asked.page(interval.as_ref(), &margin))
    }

    /// Shows the report page: in a notebook inside it, else in a browser.
    fn show<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        py.import("flowcast._show")?
            .call_method1("show_page", (self.to_html(py)?,))
    }

    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        Ok((
            rebuilder(slf.py(), "prediction")?,
            slf.get().given.bind(slf.py()).clone(),
        ))
    }

    /// The predicted time, the model, and the ranks, for notebooks.
    fn _repr_html_(&self) -> String {
        let on = self.asked.on();
        let first = escaped(&format!(
            "{}{on}: {}",
            self.asked.trace.trace.name(),
            self.text()
        ));
        let model = match &self.prediction.rails {
            Some(rails) => escaped(&rails.to_string()),
            None => escaped(&self.prediction.model.to_string()),
        };
        format!(
            "<p><b>{first}</b><br>{model}</p>{}",
            self.ranks()._repr_html_()
        )
    }

    fn __repr__(&self) -> String {
        let on = self.asked.on();
        format!(
            "<Prediction of {}{on}: {} ({})>",
            self.asked.trace.trace.name(),
            self.text(),
            self.model()
        )
    }
}

fn ends(interval: Option<&Interval>) -> Option<(f64, f64)> {
    interval.map(|interval| (interval.low.as_seconds(), interval.high.as_seconds()))
}

/// The text of a file.
#[pyfunction]
pub(crate) fn file_text(py: Python<'_>, path: PathBuf) -> PyResult<String> {
    let read = || flowcast_io::read_named_text(&path, &mut Whole);
    read().map_err(|error| raised(py, &error))
}

/// Whether a file holds bytes between ranks.
#[pyfunction]
pub(crate) fn is_matrix(py: Python<'_>, path: PathBuf) -> PyResult<bool> {
    flowcast_io::is_matrix(&path).map_err(|error| raised(py, &error))
}

/// Whether a file holds a pattern of concurrent communications.
#[pyfunction]
pub(crate) fn is_pattern(py: Python<'_>, path: PathBuf) -> PyResult<bool> {
    let holding = flowcast_io::is_pattern(&path).map_err(|error| raised(py, &error))?;
    Ok(holding == Holding::Pattern)
}

/// When each flow of a pattern ends.
#[pyclass(frozen, module = "flowcast")]
pub(crate) struct PatternPrediction {
    name: String,
    network: Network,
    steps: Vec<flowcast::PatternPrediction>,
    interval: Option<Interval>,
    margin: String,
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
) -> PyResult<PatternPrediction> {
    beside(py, move || {
        let steps = Steps::read(&name, &content)?;
        let options = &options.options;
        let predicted = predict_steps(&steps, &network.network, options)?;
        let asked = IntervalOptions {
            level,
            threads: threads(),
            ..IntervalOptions::default()
        };
        let of = &network.network;
        let intervals = match no_interval {
            true => None,
            false => pattern_intervals(&steps, of, options, &predicted, &asked)?,
        };
        let interval = intervals.map(|intervals| intervals.makespan);
        let margin = margin_of_steps(predicted.len(), of, interval.as_ref(), !no_interval);
        Ok(PatternPrediction {
            name,
            network,
            steps: predicted,
            interval,
            margin,
        })
    })
}

#[pymethods]
impl PatternPrediction {
    /// When the last flow ends, in seconds.
    #[getter]
    fn makespan_s(&self) -> f64 {
        self.last().prediction.makespan().as_seconds()
    }

    /// Name of the network that was predicted on.
    #[getter]
    fn network(&self) -> &str {
        &self.network.network.name
    }

    /// Name of the model that predicted.
    #[getter]
    fn model(&self) -> &'static str {
        self.last().model.name()
    }

    /// The ends of the interval, in seconds; none where none is known.
    #[getter]
    fn interval_s(&self) -> Option<(f64, f64)> {
        ends(self.interval.as_ref())
    }

    /// The probability with which the interval holds what is measured.
    #[getter]
    fn interval_level(&self) -> Option<f64> {
        self.interval.as_ref().map(|interval| interval.level)
    }

    /// What the interval covers, or why there is none, as people read it.
    #[getter]
    fn margin(&self) -> &str {
        &self.margin
    }

    /// Sentences on how sure the network's values are.
    #[getter]
    fn notes(&self) -> Vec<String> {
        of_networks([&*self.network.network])
    }

    /// The predicted time with its interval, as people read it.
    #[getter]
    fn text(&self) -> String {
        let makespan = self.last().prediction.makespan();
        shown_time(makespan, self.interval.as_ref())
    }

    /// The flows in the order of the pattern.
    #[getter]
    fn flows(&self) -> Table {
        type Flow = flowcast::flows::concurrent::FlowPrediction;
        let mut flows: Vec<(i64, &Flow)> = Vec::new();
        for (step, predicted) in (1..).zip(&self.steps) {
            flows.extend(predicted.prediction.flows.iter().map(|flow| (step, flow)));
        }
        let whole = |of: fn(&Flow) -> i64| Values::integers(flows.iter().map(|(_, flow)| of(flow)));
        let real = |of: fn(&Flow) -> f64| Values::floats(flows.iter().map(|(_, flow)| of(flow)));
        let columns = Columns::default()
            .with(
                "step",
                Values::integers(flows.iter().map(|(step, _)| *step)),
            )
            .with("id", whole(|flow| flow.flow.id as i64))
            .with("src", whole(|flow| i64::from(flow.flow.src.0)))
            .with("dst", whole(|flow| i64::from(flow.flow.dst.0)))
            .with("bytes", whole(|flow| flow.flow.size.0 as i64))
            .with("start_s", real(|flow| flow.flow.start.as_seconds()))
            .with("end_s", real(|flow| flow.end.as_seconds()))
            .with("duration_s", real(|flow| flow.duration.as_seconds()))
            .with("alone_s", real(|flow| flow.alone.as_seconds()))
            .with("slowdown", real(Flow::slowdown));
        Table::of(columns)
    }

    fn __repr__(&self) -> String {
        format!(
            "<PatternPrediction of {} on {}: {} ({})>",
            self.name,
            self.network.network.name,
            self.text(),
            self.model()
        )
    }
}

impl PatternPrediction {
    fn last(&self) -> &flowcast::PatternPrediction {
        self.steps.last().expect("a pattern has a step")
    }
}
