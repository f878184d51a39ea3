//! `flowcast predict` with several networks, models or mappings: one table, one page.

use std::path::Path;

use anyhow::{Context, Result, bail};
use flowcast::model::cluster::pattern::Steps;
use flowcast::model::machine::Mapping;
use flowcast::model::network::Network;
use flowcast::replay::inside::InsideTraffic;
use flowcast::report::Page;
use flowcast::report::answer::Grouped;
use flowcast::units::{Rounded, Time};
use flowcast::{
    Contention, Interval, ModelChoice, Outputs, PatternOptions, Prepared, predict_steps,
};
use serde_json::{Value, json};

use super::Asked;
use super::pattern::step_intervals;
use super::stand_ins::{marked_name, print_stand_ins, stand_in_sentences, stand_ins_json};
use super::trace::{
    TraceArgs, add_inside, add_interval, add_model, add_transfers, parse_mapping, print_assumptions,
};
use crate::terminal::files::write_text;
use crate::terminal::output::println_out;
use crate::terminal::provenance;
use crate::terminal::tables::table;
use crate::trace_args::print_notes;

/// One row.
struct Row<'a> {
    /// None where the parameters are given as numbers.
    network: Option<&'a Network>,
    model: &'static str,
    mapping: Option<String>,
    makespan: Time,
    interval: Option<Interval>,
    /// Of a trace: the share of the ranks' time that is not their own computation.
    communication: Option<f64>,
    /// Of a trace: what happened inside nodes.
    inside: Option<InsideTraffic>,
    /// What else JSON has of it.
    more: Value,
}

impl Row<'_> {
    fn name(&self) -> &str {
        self.network.map_or("LogGOPS", |network| &network.name)
    }
}

/// A trace on each network by each model with each mapping, in the order given, the last changing first.
pub(in crate::commands) fn of_trace(
    input: &Path,
    networks: &[Network],
    asked: &Asked,
    args: &TraceArgs,
) -> Result<()> {
    if args.outputs.is_given() || asked.explain || args.noise.is_some() {
        bail!(
            "found several networks, models or mappings, expected one of each for --explain, --noise and files to write"
        );
    }
    let mappings = mappings(&args.mapping)?;
    let models = if asked.models.is_empty() {
        &[Contention::Automatic][..]
    } else {
        &asked.models
    };
    let trace = args.open(input)?;
    let outputs = Outputs {
        view: args.report.is_some(),
        ..Outputs::default()
    };
    let places: Vec<Option<&Network>> = if networks.is_empty() {
        vec![None]
    } else {
        networks.iter().map(Some).collect()
    };
    let (mut rows, mut views, mut said) = (Vec::new(), Vec::new(), Vec::new());
    let mut notes: Vec<String> = Vec::new();
    for network in places {
        for model in models {
            for (name, mapping) in &mappings {
                let prepared =
                    Prepared::new(&trace, network, &args.options(*model, mapping.clone())?)?;
                if rows.is_empty() {
                    print_notes(prepared.ignored());
                }
                let prediction = prepared.predict(outputs, &asked.fields)?;
                let interval = prepared.interval(&prediction.outcome, &asked.interval())?;
                let row = row(network, name.clone(), &prediction, interval);
                let new: Vec<String> = prediction
                    .notes
                    .iter()
                    .filter(|note| !notes.contains(*note))
                    .cloned()
                    .collect();
                notes.extend(new);
                said.push(prediction.model);
                views.extend(prediction.view.map(|view| flowcast::report::NetworkView {
                    name: label(&row, models.len() > 1, mappings.len() > 1),
                    ..view
                }));
                rows.push(row);
            }
        }
    }
    if let Some(path) = &args.report {
        // With those of collectives, whose algorithms may differ from network to network.
        let sent = || views.iter().map(|view| view.outcome.messages);
        let (least, most) = (sent().min().unwrap_or(0), sent().max().unwrap_or(0));
        let messages = match least == most {
            true => Grouped(most).to_string(),
            false => format!("{} to {}", Grouped(least), Grouped(most)),
        };
        let subtitle = format!("{} ranks, {messages} messages", trace.ranks());
        let (title, notes) = (
            trace.name().to_owned(),
            [notes.clone(), stand_in_sentences(networks)].concat(),
        );
        let page = Page {
            title,
            subtitle,
            notes,
            networks: views,
            provenance: provenance::of_this_run(),
        };
        write_text(path, &page.to_html())?;
    }
    show(&rows, &said, networks, asked.json);
    print_assumptions(&notes, &trace.ignored());
    Ok(())
}

/// A pattern on each network by each model, in the order given.
pub(in crate::commands) fn of_pattern(
    steps: &Steps,
    networks: &[Network],
    options: &[PatternOptions],
    asked: &Asked,
) -> Result<()> {
    let mut rows = Vec::new();
    for network in networks {
        for options in options {
            let predicted = predict_steps(steps, network, options)
                .with_context(|| format!("on {}", network.name))?;
            let last = predicted.last().expect("a pattern has a step");
            rows.push(Row {
                network: Some(network),
                model: last.model.name(),
                mapping: None,
                makespan: last.prediction.makespan(),
                interval: step_intervals(steps, network, (options, &predicted), asked)?
                    .map(|intervals| intervals.makespan),
                communication: None,
                inside: None,
                more: json!({ "stand_ins": stand_ins_json(network) }),
            });
        }
    }
    show(&rows, &[], networks, asked.json);
    Ok(())
}

fn mappings(texts: &[String]) -> Result<Vec<(Option<String>, Option<Mapping>)>> {
    if texts.is_empty() {
        return Ok(vec![(None, None)]);
    }
    let one = |text: &String| Ok((Some(text.clone()), Some(parse_mapping(text)?)));
    texts.iter().map(one).collect()
}

fn row<'a>(
    network: Option<&'a Network>,
    mapping: Option<String>,
    prediction: &flowcast::Prediction,
    interval: Option<Interval>,
) -> Row<'a> {
    let outcome = &prediction.outcome;
    let sum = |of: fn(&flowcast::replay::outcome::RankOutcome) -> Time| {
        outcome.ranks.iter().map(of).sum::<Time>()
    };
    let all = sum(|rank| rank.end).as_nanos();
    let communication = if all > 0.0 {
        sum(|rank| rank.communication()).as_nanos() / all
    } else {
        0.0
    };
    let mut more = json!({
        "messages": outcome.messages,
        "communication_share": communication,
        "slowest_rank": outcome.slowest().map(|rank| rank.0),
    });
    add_model(&mut more, &prediction.model, &prediction.notes);
    add_transfers(&mut more, prediction.transfers);
    add_inside(&mut more, prediction.inside.as_ref());
    more["stand_ins"] = network.map(stand_ins_json).into();
    Row {
        network,
        model: prediction.model.name(),
        mapping,
        makespan: outcome.makespan(),
        interval,
        communication: Some(communication),
        inside: prediction.inside,
        more,
    }
}

fn label(row: &Row, several_models: bool, several_mappings: bool) -> String {
    let model = several_models.then(|| row.model.to_owned());
    let mapping = row.mapping.clone().filter(|_| several_mappings);
    std::iter::once(row.name().to_owned())
        .chain(model)
        .chain(mapping)
        .collect::<Vec<_>>()
        .join(", ")
}

fn show(rows: &[Row], choices: &[ModelChoice], networks: &[Network], as_json: bool) {
    let first = rows.first().map_or(0.0, |row| row.makespan.as_nanos());
    let ratio = |row: &Row| {
        if first > 0.0 {
            row.makespan.as_nanos() / first
        } else {
            1.0
        }
    };
    if as_json {
        let prediction = |row: &Row| {
            let mut document = row.more.clone();
            document["network"] = row.name().into();
            document["model"] = row.model.into();
            document["mapping"] = row.mapping.as_deref().into();
            document["makespan_s"] = row.makespan.as_seconds().into();
            document["ratio"] = ratio(row).into();
            add_interval(&mut document, row.interval.as_ref());
            document
        };
        let predictions: Vec<Value> = rows.iter().map(prediction).collect();
        println_out!(
            "{}",
            json!({"schema": "flowcast/comparison/1", "predictions": predictions})
        );
        return;
    }
    let mut told: Vec<String> = choices
        .iter()
        .map(|choice| with_inside(choice, choices).to_string())
        .collect();
    told.sort();
    told.dedup();
    told.iter().for_each(|line| println_out!("{line}"));
    let mut columns = vec![
        "network",
        "model",
        "mapping",
        ">predicted time",
        ">to the first",
        ">in communication",
    ];
    let has_inside = rows.iter().any(|row| row.inside.is_some());
    if has_inside {
        columns.push(">inside nodes");
    }
    let mut table = table(&columns);
    for row in rows {
        let mut cells = vec![
            row.network.map_or(row.name().to_owned(), marked_name),
            row.model.to_owned(),
            row.mapping.clone().unwrap_or("-".to_owned()),
            row.interval
                .as_ref()
                .map_or_else(|| Rounded(row.makespan).to_string(), Interval::to_string),
            format!("{:.3}", ratio(row)),
            row.communication
                .map_or("-".to_owned(), |share| format!("{:.1} %", share * 100.0)),
        ];
        if has_inside {
            cells.push(row.inside.as_ref().map_or("-".to_owned(), inside_cell));
        }
        table.add_row(cells);
    }
    println_out!("{table}");
    print_stand_ins(networks);
}

/// The choice of a row where all messages go between nodes is said with the same choice of a row where some do not.
fn with_inside<'a>(choice: &'a ModelChoice, choices: &'a [ModelChoice]) -> &'a ModelChoice {
    let is_same = |other: &&ModelChoice| {
        ModelChoice {
            inside: choice.inside,
            ..(*other).clone()
        } == *choice
    };
    let with = choices
        .iter()
        .filter(is_same)
        .find(|other| other.inside.is_some());
    if choice.inside.is_none() {
        with.unwrap_or(choice)
    } else {
        choice
    }
}

/// Messages, bytes, and what they take one after the other.
fn inside_cell(
    InsideTraffic {
        messages,
        bytes,
        time,
        ..
    }: &InsideTraffic,
) -> String {
    format!(
        "{} messages, {} bytes, {}",
        Grouped(*messages),
        Grouped(bytes.0),
        Rounded(*time)
    )
}
