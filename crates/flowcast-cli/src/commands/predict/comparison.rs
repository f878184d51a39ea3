//! `flowcast predict` with several networks, models or mappings: one table and one page for all.

use anyhow::{Context, Result};
use flowcast::{
    Case, CaseDetails, CaseResult, Contention, Input, IntervalOptions, ModelChoice, Options,
    Outputs,
    answers::{interval_fields, prediction_fields},
    model::{cluster::pattern::Steps, network::Network},
    observers::inside::InsideTraffic,
    replay::sweep::SetOutcome,
    report::{
        NetworkView, Page,
        standing::{PredictedTime, Standing, standings, verdict},
    },
    statements::{
        Counts, by_name, margin, marked_name, of_predictions, once, shown_time, stand_ins,
    },
    table::{Document, Grouped, Record, Value, figure, fixed, or_dash, percent, rows},
    trace::parallel,
    units::Rounded,
};

use super::PredictQuestion;
use flowcast_terminal::{
    files::write_text,
    progress::Progress,
    provenance,
    trace_args::{parse_mapping, print_notes_beside, threads},
};

/// One combination.
struct ComparisonRow<'a> {
    network: Option<&'a Network>,
    mapping: Option<&'a str>,
    /// Name of the network, with model and mapping if there are several.
    label: String,
    /// Coverage of the interval, or the reason why there is none.
    margin: String,
    result: CaseResult,
}

impl ComparisonRow<'_> {
    fn name(&self) -> &str {
        self.network.map_or(BY_PARAMETERS, |network| &network.name)
    }

    /// Fraction of the ranks' time that is not the program's own computation.
    fn communication(&self) -> Option<f64> {
        let outcome = &self.result.of_trace()?.outcome;
        Some(SetOutcome::from(outcome).communication_share())
    }

    fn inside(&self) -> Option<InsideTraffic> {
        self.result.of_trace()?.inside
    }

    fn fields(&self) -> Record {
        let interval = self.result.interval();
        let fields = match self.result.of_trace() {
            Some(prediction) => prediction_fields(prediction, self.network, interval)
                .field("notes", &prediction.notes)
                .field("messages", prediction.outcome.messages)
                .field("communication_share", self.communication())
                .field("slowest_rank", prediction.outcome.slowest()),
            None => interval_fields(interval)
                .field("stand_ins", self.network.map(stand_ins))
                .field("makespan_s", self.result.makespan),
        };
        fields
            .field("margin", &self.margin)
            .field("network", self.name())
            .field("model", self.result.model)
            .field("mapping", self.mapping)
    }
}

/// Predicts a trace for each combination and prints a row for each.
pub(super) fn of_trace(asked: &PredictQuestion<'_>) -> Result<()> {
    let (args, networks) = (&asked.args.trace, &asked.networks);
    let mut mappings = Vec::new();
    for text in &args.mapping {
        mappings.push((Some(text.as_str()), Some(parse_mapping(text)?)));
    }
    if mappings.is_empty() {
        mappings.push((None, None));
    }
    let models = if asked.models.is_empty() {
        &[Contention::Automatic][..]
    } else {
        &asked.models
    };
    let trace = args.open(&asked.args.inputs[0])?;
    print_notes_beside(asked.args.format, &trace.ignored());
    let outputs = Outputs {
        view: asked.args.report.is_some(),
        ..Outputs::default()
    };
    // Threads per case: the cases run concurrently and share the processors.
    let networks = places(networks);
    let threads = threads() / (networks.len() * models.len() * mappings.len());
    let mut cases = Vec::new();
    for network in networks {
        for model in models {
            for (name, mapping) in &mappings {
                let options = Options {
                    threads: threads.max(1),
                    ..args.options(*model, mapping.clone())?
                };
                let case = Case::new(Input::Trace(&trace), network, options);
                cases.push((case, *name));
            }
        }
    }
    let mut rows = predict(&cases, outputs, asked)?;
    let mut views = Vec::new();
    for row in &mut rows {
        let label = row.label.clone();
        let CaseDetails::Trace(prediction, _) = &mut row.result.details else {
            continue;
        };
        let view = prediction.view.take();
        views.extend(view.map(|view| NetworkView {
            name: label,
            ..view
        }));
    }
    let document = document(&rows).titled(trace.name());
    if let Some(path) = &asked.args.report {
        let page = Page::about(&document, views, provenance::of_this_run());
        write_text(path, &page.to_html()?)?;
    }
    asked.args.format.print(&document)
}

/// Predicts a pattern for each combination and prints a row for each.
pub(super) fn of_pattern(
    steps: &Steps,
    options: &[Options],
    asked: &PredictQuestion<'_>,
) -> Result<()> {
    let mut cases = Vec::new();
    for network in places(&asked.networks) {
        for options in options {
            let case = Case::new(Input::Steps(steps), network, options.clone());
            cases.push((case, None));
        }
    }
    let rows = predict(&cases, Outputs::default(), asked)?;
    asked.args.format.print(&document(&rows))
}

/// The given networks; a single `None` without a network, as for a schedule.
fn places(networks: &[Network]) -> Vec<Option<&Network>> {
    if networks.is_empty() {
        return vec![None];
    }
    networks.iter().map(Some).collect()
}

/// Predicts the cases, each with the name of its mapping, on several threads.
fn predict<'a>(
    cases: &[(Case<'a>, Option<&'a str>)],
    outputs: Outputs,
    asked: &PredictQuestion<'_>,
) -> Result<Vec<ComparisonRow<'a>>> {
    let fields = asked.fields();
    let interval = asked.interval();
    let interval = interval.map(|asked| IntervalOptions {
        threads: 1,
        ..asked
    });
    let progress = Progress::counted("predicting", "combinations", cases.len() as u64);
    let results = parallel::map(cases, threads(), |(case, _)| {
        let result = case.predict(outputs, &fields, interval.as_ref());
        progress.add(1);
        result
    });
    drop(progress);
    let several = [asked.models.len() > 1, asked.args.trace.mapping.len() > 1];
    let mut rows = Vec::new();
    for ((case, mapping), result) in cases.iter().zip(results) {
        let network = case.network;
        let result = result.with_context(|| {
            network.map_or(String::new(), |network| format!("on {}", network.name))
        })?;
        rows.push(ComparisonRow {
            network,
            mapping: *mapping,
            label: label(network, (result.model, *mapping), several),
            margin: margin(network, result.interval(), interval.is_some()),
            result,
        });
    }
    Ok(rows)
}

/// Name of the network, with model and mapping if there are several.
fn label(
    network: Option<&Network>,
    (model, mapping): (&str, Option<&str>),
    [several_models, several_mappings]: [bool; 2],
) -> String {
    let name = network.map_or(BY_PARAMETERS, |network| &network.name);
    let model = several_models.then_some(model);
    let mapping = mapping.filter(|_| several_mappings);
    let names = [Some(name), model, mapping];
    names.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Name instead of a network for a schedule with LogGOPS parameters.
const BY_PARAMETERS: &str = "LogGOPS";

/// Sentence that names the fastest combination.
fn verdict_of(all: &[ComparisonRow<'_>]) -> Option<String> {
    let names: Vec<String> = all.iter().map(|row| row.label.clone()).collect();
    verdict(&names, &times(all))
}

fn times<'a>(all: &'a [ComparisonRow<'_>]) -> Vec<PredictedTime<'a>> {
    all.iter()
        .map(|row| (row.result.makespan, row.result.interval()))
        .collect()
}

/// Notes of all combinations, each once.
fn notes(all: &[ComparisonRow<'_>]) -> Vec<String> {
    of_predictions(all.iter().map(|row| {
        let notes = row.result.of_trace().map_or(&[][..], |of| &of.notes);
        (row.network, notes)
    }))
}

/// Ranks and messages, margins, and models with their rules and omissions.
fn explained(all: &[ComparisonRow<'_>]) -> Vec<String> {
    let counts = all.iter().filter_map(|row| {
        let outcome = &row.result.of_trace()?.outcome;
        let counts = Counts {
            ranks: outcome.ranks.len(),
            messages: outcome.messages,
            collectives: 0,
        };
        Some(counts.to_string())
    });
    let margins = all
        .iter()
        .map(|row| (row.label.clone(), row.margin.clone()));
    let choices: Vec<&ModelChoice> = all
        .iter()
        .filter_map(|row| Some(&row.result.of_trace()?.model))
        .collect();
    let models = choices
        .iter()
        .flat_map(|choice| with_inside(choice, &choices).sentences());
    let margins = by_name(&margins.collect::<Vec<_>>());
    once(counts.chain(margins).chain(models))
}

fn document(all: &[ComparisonRow<'_>]) -> Document {
    let first = all
        .first()
        .map_or(0.0, |row| row.result.makespan.as_nanos());
    let ratio = |row: &ComparisonRow<'_>| {
        if first > 0.0 {
            row.result.makespan.as_nanos() / first
        } else {
            1.0
        }
    };
    let standings = standings(&times(all));
    let predictions = all.iter().enumerate().map(|(at, row)| {
        row.fields()
            .field("ratio", ratio(row))
            .field("standing", standings.get(at).map(Standing::to_string))
    });
    let mut table = rows(all)
        .cell("network", |row| {
            row.network.map_or(row.name().to_owned(), marked_name)
        })
        .cell("model", |row| row.result.model)
        .cell("mapping", |row| row.mapping.unwrap_or("-"))
        .cell("predicted time", |row| {
            figure(shown_time(row.result.makespan, row.result.interval()))
        })
        .cell("ratio to first", |row| fixed(ratio(row), 3))
        .cell("in communication", |row| {
            or_dash(row.communication().map(|share| percent(share, 1)))
        });
    if all.iter().any(|row| row.inside().is_some()) {
        table = table.cell("inside nodes", |row| {
            or_dash(row.inside().as_ref().map(inside_cell))
        });
    }
    Document::new("comparison")
        .schema("flowcast/comparison/1")
        .field("predictions", predictions.collect::<Value>())
        .lines(verdict_of(all))
        .shown(table)
        .lines(explained(all))
        .noted(notes(all))
}

/// Returns an equal choice of a row with messages inside nodes, if this row has none and there is such a row. Equal choices
/// are then printed only once.
fn with_inside<'a>(choice: &'a ModelChoice, choices: &[&'a ModelChoice]) -> &'a ModelChoice {
    let with = choices
        .iter()
        .copied()
        .filter(|other: &&ModelChoice| {
            ModelChoice {
                inside: choice.inside,
                ..(*other).clone()
            } == *choice
        })
        .find(|other| other.inside.is_some());
    if choice.inside.is_none() {
        with.unwrap_or(choice)
    } else {
        choice
    }
}

/// Number of messages inside nodes, their bytes, and the sum of their times.
fn inside_cell(
    InsideTraffic {
        messages,
        bytes,
        time,
        ..
    }: &InsideTraffic,
) -> Value {
    figure(format!(
        "{} messages, {} bytes, {}",
        Grouped(*messages),
        Grouped(bytes.0),
        Rounded(*time)
    ))
}
