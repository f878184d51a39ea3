//! `flowcast predict` on several traces: programs that share a machine, each with a result of its own.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use flowcast::model::machine::Mapping;
use flowcast::model::network::Network;
use flowcast::replay::influence::Unused;
use flowcast::replay::outcome::Outcome;
use flowcast::trace::{Program, Trace};
use flowcast::units::Rounded;
use flowcast::{Options, PreparedProgram};
use serde_json::json;

use super::predict_trace::{TraceArgs, parse_mapping, print_ranks, print_unused, ranks_json, unused_json};
use crate::output::println_out;
use crate::trace_args::{open_trace, print_notes};

/// A program and its share of the result.
struct Part<'a> {
    path: &'a Path,
    program: Program,
}

/// Predicts and prints.
pub(super) fn run(
    inputs: &[PathBuf],
    network: &Network,
    asked: &[String],
    options: &TraceArgs,
    json: bool,
) -> Result<()> {
    refuse_what_one_trace_takes(options)?;
    let parts = inputs.iter().map(|path| open(path)).collect::<Result<Vec<Part>>>()?;
    let mappings = mappings(options, parts.len())?;
    let programs: Vec<&Program> = parts.iter().map(|part| &part.program).collect();
    let setting = Options { rendezvous_from: options.rendezvous_from, ..Options::default() };
    let together = PreparedProgram::together(&programs, &mappings, network, &setting)?;
    print_notes(together.program());
    let outcome = together.engine()?.run()?;
    let unused = together.unused(&outcome, asked);
    let outcomes = flowcast::split(&outcome, &programs);
    if json {
        println_out!("{}", to_json(&parts, &outcomes, &unused));
    } else {
        print(&parts, network, &outcomes);
        print_unused(&unused);
    }
    Ok(())
}

fn refuse_what_one_trace_takes(options: &TraceArgs) -> Result<()> {
    if options.goal_params.is_some() || options.report.is_some() || options.outputs.is_given() {
        bail!("found several traces, expected one for --goal-params, --report and files to write");
    }
    Ok(())
}

fn open(path: &Path) -> Result<Part<'_>> {
    match open_trace(path)? {
        Trace::Program(program) => Ok(Part { path, program }),
        Trace::Schedule(_) => {
            bail!("{}: found a GOAL schedule, expected another trace beside others", path.display())
        }
    }
}

/// One mapping for each trace, one for all, or none.
fn mappings(options: &TraceArgs, traces: usize) -> Result<Vec<Mapping>> {
    let given = options.mapping.len();
    if given > 1 && given != traces {
        bail!("--mapping: found {given} of them, expected one, or one for each of {traces} traces");
    }
    options.mapping.iter().map(|text| parse_mapping(text).with_context(|| format!("--mapping {text}"))).collect()
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
    let makespan = outcomes.iter().map(|outcome| outcome.makespan().as_seconds()).fold(0.0, f64::max);
    json!({
        "schema": "flowcast/applications/1",
        "makespan_s": makespan,
        "applications": parts.iter().zip(outcomes).map(application).collect::<Vec<_>>(),
        "no_influence": unused_json(unused),
    })
}

fn print(parts: &[Part], network: &Network, outcomes: &[Outcome]) {
    println_out!("{} programs at once on {}", parts.len(), network.name);
    for (part, outcome) in parts.iter().zip(outcomes) {
        println_out!("{}: predicted time {}", part.path.display(), Rounded(outcome.makespan()));
        println_out!("{} ranks, {} messages, {} bytes", outcome.ranks.len(), outcome.messages, outcome.bytes.0);
        print_ranks(Some(&part.program), outcome);
    }
}
