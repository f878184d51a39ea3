//! What `flowcast predict` is asked, by its inputs and how many networks, models and mappings there are; and which options go with
//! it.

use std::{fmt, path::PathBuf};

use anyhow::Result;
use flowcast_io::{Holding, is_pattern};

use super::Asked;
use crate::{terminal::goes_with::refuse_others, trace_args::first_file};

/// What is to be predicted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Question {
    Pattern,
    /// A pattern on several networks or by several models.
    Patterns,
    Trace,
    /// A trace on several networks, by several models or with several mappings.
    Comparison,
    /// Several traces at once.
    Traces,
    Scenarios,
}

use Question::{Comparison, Pattern, Patterns, Scenarios, Trace, Traces};

impl fmt::Display for Question {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Pattern => "a pattern",
            Patterns => "a pattern on several networks or by several models",
            Trace => "a trace",
            Comparison => "several networks, models or mappings",
            Traces => "several traces",
            Scenarios => "--scenarios",
        })
    }
}

impl Question {
    /// What was asked.
    pub(super) fn of(asked: &Asked<'_>) -> Result<Question> {
        let (inputs, trace) = (&asked.args.inputs, &asked.args.trace);
        let places = asked.networks.len().max(1) * asked.models.len().max(1);
        Ok(match &inputs[..] {
            _ if trace.scenarios.is_some() => Scenarios,
            [input] if is_pattern(&first_file(input)?)? == Holding::Pattern => {
                if places > 1 {
                    Patterns
                } else {
                    Pattern
                }
            }
            [_] if places * trace.mapping.len().max(1) > 1 => Comparison,
            [_] => Trace,
            _ => Traces,
        })
    }

    /// Refuses options that do not go with what was asked.
    pub(super) fn refuse_others(self, asked: &Asked<'_>) -> Result<()> {
        let (args, trace) = (asked.args, &asked.args.trace);
        let is_svg = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "svg");
        let traces = &[Trace, Comparison, Traces, Scenarios][..];
        let one_trace = &[Trace, Comparison, Scenarios][..];
        let options = [
            ("several inputs", args.inputs.len() > 1, &[Traces][..]),
            (
                "several --network",
                asked.networks.len() > 1,
                &[Comparison, Patterns],
            ),
            (
                "several --model",
                asked.models.len() > 1,
                &[Comparison, Patterns],
            ),
            (
                "several --mapping",
                trace.mapping.len() > 1,
                &[Comparison, Traces],
            ),
            ("--mapping", !trace.mapping.is_empty(), traces),
            ("--rendezvous-from", trace.rendezvous_from.is_some(), traces),
            ("--incomplete", trace.incomplete, traces),
            ("--unfold", trace.unfold, traces),
            ("--goal-params", trace.goal_params.is_some(), one_trace),
            (
                "--collectives",
                trace.collectives.collectives.is_some(),
                one_trace,
            ),
            ("--noise", trace.noise.is_some(), &[Trace]),
            ("--write", trace.outputs.is_given(), &[Trace]),
            ("--explain", args.explain, &[Trace, Traces, Pattern]),
            (
                "--report",
                args.report.is_some(),
                &[Trace, Comparison, Traces, Scenarios, Pattern],
            ),
            (
                "--report FILE.svg",
                args.report.as_ref().is_some_and(is_svg),
                &[Pattern],
            ),
            ("--strict", args.strict, &[Pattern, Patterns]),
            (
                "--seeds without --noise",
                args.seeds.is_some() && trace.noise.is_none(),
                &[Pattern, Patterns, Scenarios],
            ),
        ];
        refuse_others(&self, &options)
    }
}
