//! `flowcast predict` on several traces: programs that share a machine, each with a result of its own.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use flowcast::model::machine::Mapping;
use flowcast::model::network::Network;
use flowcast::replay::influence::Unused;
use flowcast::replay::outcome::Outcome;
use flowcast::report::Page;
use flowcast::trace::{Program, Trace};
use flowcast::units::Rounded;
use flowcast::{Outputs, Prediction, Prepared, PreparedProgram};
use serde_json::json;

use super::Asked;
use super::stand_ins::{marked_name, print_stand_ins, stand_in_sentences, stand_ins_json};
use super::trace::{
    TraceArgs, add_inside, add_interval, add_model, add_transfers, margin, parse_mapping,
    print_assumptions, print_counts, print_ranks, print_transfers, print_unused, ranks_json,
    unused_json,
};
use crate::commands::explain_trace;
use crate::terminal::files::write_text;
use crate::terminal::output::println_out;
use crate::terminal::provenance;
use crate::terminal::tables::Most;
use crate::trace_args::print_notes;

/// A program and its share of the result.
struct Part<'a> {
    path: &'a Path,
    program: Program,
}

/// Predicts and prints.
pub(in crate::commands) fn run(
    inputs: &[PathBuf],
    network: &Network,
    asked: &Asked,
    args: &TraceArgs,
) -> Result<()> {
    if args.goal_params.is_some()
        || args.outputs.is_given()
        || args.collectives.collectives.is_some()
    {
        bail!(
            "found several traces, expected one for --goal-params, --collectives and files to write"
        );
    }
    let options = args.options(asked.model()?, None)?;
    let parts = inputs
        .iter()
        .map(|path| open(path, args))
        .collect::<Result<Vec<Part>>>()?;
    let mappings = mappings(args, parts.len())?;
    let programs: Vec<&Program> = parts.iter().map(|part| &part.program).collect();
    let together = PreparedProgram::together(&programs, &mappings, network, &options)?;
    print_notes(together.program().ignored());
    let outputs = Outputs {
        view: args.report.is_some(),
        explanation: asked.explain,
        journal: None,
    };
    let prepared = Prepared::Program(together);
    let Prediction {
        model,
        outcome,
        view,
        explanation,
        unused,
        transfers,
        inside,
        notes,
        ..
    } = prepared.predict(outputs, &asked.fields)?;
    let interval = prepared.interval(&outcome, &asked.interval())?;
    let outcomes = flowcast::split(&outcome, &programs);
    if let (Some(path), Some(view)) = (&args.report, view) {
        let title = programs
            .iter()
            .map(|program| program.name.as_str())
            .collect::<Vec<_>>()
            .join(", ");
        let subtitle = format!("{} programs at once on {}", programs.len(), network.name);
        let notes = [
            notes.clone(),
            stand_in_sentences(std::slice::from_ref(network)),
        ]
        .concat();
        let (networks, provenance) = (vec![view], provenance::of_this_run());
        let page = Page {
            title,
            subtitle,
            notes,
            networks,
            provenance,
        };
        write_text(path, &page.to_html())?;
    }
    if asked.json {
        let mut document = to_json(&parts, &outcomes, &unused);
        add_model(&mut document, &model, &notes);
        add_transfers(&mut document, transfers);
        add_inside(&mut document, inside.as_ref());
        document["stand_ins"] = stand_ins_json(network);
        add_interval(&mut document, interval.as_ref());
        if let Some(explanation) = &explanation {
            document["explanation"] = explain_trace::document(explanation);
        }
        println_out!("{document}");
    } else {
        println_out!("{model}");
        print(&parts, network, &outcomes, args.show_ranks);
        println_out!("{}", margin(Some(network), interval.as_ref()));
        print_stand_ins(std::slice::from_ref(network));
        print_unused(&unused);
        explanation.iter().for_each(explain_trace::print);
        print_assumptions(&notes, prepared.ignored());
    }
    Ok(())
}

fn open<'a>(path: &'a Path, args: &TraceArgs) -> Result<Part<'a>> {
    match args.open(path)? {
        Trace::Program(program) => Ok(Part { path, program }),
        Trace::Folded(folded) => Ok(Part {
            path,
            program: folded.unfold()?,
        }),
        Trace::Schedule(_) => {
            bail!(
                "{}: found a GOAL schedule, expected another trace beside others",
                path.display()
            )
        }
    }
}

/// One mapping for each trace, one for all, or none.
fn mappings(args: &TraceArgs, traces: usize) -> Result<Vec<Mapping>> {
    let given = args.mapping.len();
    if given > 1 && given != traces {
        bail!("--mapping: found {given} of them, expected one, or one for each of {traces} traces");
    }
    args.mapping
        .iter()
        .map(|text| parse_mapping(text).with_context(|| format!("--mapping {text}")))
        .collect()
}

fn to_json(parts: &[Part], outcomes: &[Outcome], unused: &[Unused]) -> serde_json::Value {
    let application = |(part, outcome): (&Part, &Outcome)| {
        json!({
            "trace": part.path.display().to_string(),
            "makespan_s": outcome.makespan().as_seconds(),
            "messages": outcome.messages,
            "bytes": outcome.bytes.0,
            "ranks": ranks_json(Some(&part.program), outcome),
        })
    };
    let makespan = outcomes
        .iter()
        .map(|outcome| outcome.makespan().as_seconds())
        .fold(0.0, f64::max);
    json!({
        "schema": "flowcast/applications/1",
        "makespan_s": makespan,
        "applications": parts.iter().zip(outcomes).map(application).collect::<Vec<_>>(),
        "no_influence": unused_json(unused),
    })
}

fn print(parts: &[Part], network: &Network, outcomes: &[Outcome], show: Most) {
    println_out!(
        "{} programs at once on {}",
        parts.len(),
        marked_name(network)
    );
    for (part, outcome) in parts.iter().zip(outcomes) {
        println_out!(
            "{}: predicted time {}",
            part.path.display(),
            Rounded(outcome.makespan())
        );
        print_counts(Some(&part.program), part.program.collectives(), outcome);
        print_transfers(part.program.transfers());
        print_ranks(Some(&part.program), outcome, show);
    }
}
