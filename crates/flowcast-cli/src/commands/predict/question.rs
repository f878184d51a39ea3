//! Kind of question that `flowcast predict` answers, from the inputs and the numbers of networks, models and mappings, and
//! the options that apply to it.

use std::fmt;

use anyhow::{Result, anyhow};
use flowcast_io::{InputKind, is_pattern};

use super::PredictQuestion;
use flowcast_terminal::{
    option_checks::{Kinds, refuse_others},
    trace_args::first_file,
};

/// Subject of the prediction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Question {
    Pattern,
    /// A pattern on several networks or with several models.
    Patterns,
    Trace,
    /// A trace on several networks, with several models or with several mappings.
    Comparison,
    /// A trace over several rails.
    Rails,
    /// Several input files: traces of concurrent programs.
    Traces,
    Scenarios,
}

type Questions = Kinds<'static, Question>;
const SEVERAL: Questions = (&[Comparison, Patterns], "one network and model");
const TRACES: Questions = (&[Trace, Rails, Comparison, Traces, Scenarios], "a trace");
const ONE_TRACE: Questions = (&[Trace, Rails, Comparison, Scenarios], "one trace");
const ONE_OF_EACH: Questions = (&[Trace], "one trace, network, model and mapping");
const RAILS: Questions = (&[Rails], "one trace, model and mapping");
const PATTERNS: Questions = (&[Pattern, Patterns], "a pattern");

use Question::{Comparison, Pattern, Patterns, Rails, Scenarios, Trace, Traces};

impl fmt::Display for Question {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Pattern => "a pattern",
            Patterns => "a pattern with several networks or models",
            Trace => "a trace",
            Comparison => "a trace with several networks, models or mappings",
            Rails => "a trace over several rails",
            Traces => "several traces",
            Scenarios => "--scenarios",
        })
    }
}

impl Question {
    /// Determines the question from the kind of the inputs, and from the numbers of networks, models and mappings.
    pub(super) fn from_inputs(asked: &PredictQuestion<'_>) -> Result<Question> {
        let (inputs, trace) = (&asked.args.inputs, &asked.args.trace);
        let places = asked.networks.len().max(1) * asked.models.len().max(1);
        Ok(match &inputs[..] {
            _ if trace.scenarios.is_some() => Scenarios,
            [input] if is_pattern(&first_file(input)?)? == InputKind::Pattern => {
                if places > 1 {
                    Patterns
                } else {
                    Pattern
                }
            }
            [_] if places * trace.mapping.len().max(1) > 1 => Comparison,
            [_] if !asked.further.is_empty() => Rails,
            [_] => Trace,
            _ => Traces,
        })
    }

    /// Refuses options that do not apply to the question.
    pub(super) fn refuse_others(self, asked: &PredictQuestion<'_>) -> Result<()> {
        let (args, trace) = (asked.args, &asked.args.trace);
        let is_svg = args
            .report
            .as_ref()
            .is_some_and(|path| path.extension().is_some_and(|ending| ending == "svg"));
        let draws = args.replicates.is_some() && trace.noise.is_none();
        let options: &[(_, _, Questions)] = &[
            (
                "several inputs",
                args.inputs.len() > 1,
                (&[Traces], "one trace"),
            ),
            ("several --rail", !asked.further.is_empty(), RAILS),
            ("several --network", asked.networks.len() > 1, SEVERAL),
            ("several --model", asked.models.len() > 1, SEVERAL),
            (
                "several --mapping",
                trace.mapping.len() > 1,
                (&[Comparison, Traces], "one mapping"),
            ),
            ("--mapping", !trace.mapping.is_empty(), TRACES),
            ("--rendezvous-from", trace.rendezvous_from.is_some(), TRACES),
            ("--incomplete", trace.incomplete, TRACES),
            ("--compute", trace.compute.is_some(), TRACES),
            ("--unfold", trace.unfold, TRACES),
            ("--goal-params", trace.goal_params.is_some(), ONE_TRACE),
            ("--collectives", trace.collectives.is_some(), ONE_TRACE),
            ("--noise", trace.noise.is_some(), ONE_OF_EACH),
            (
                "--write",
                trace.outputs.is_given(),
                (&[Trace, Rails], ONE_OF_EACH.1),
            ),
            (
                "--explain",
                args.explain,
                (&[Trace, Traces, Pattern], "one network, model and mapping"),
            ),
            (
                "--report",
                args.report.is_some(),
                (
                    &[Trace, Comparison, Traces, Scenarios, Pattern],
                    "one network and model",
                ),
            ),
            (
                "--report",
                is_svg,
                (&[Pattern], "a pattern, or a name that ends in .html"),
            ),
            ("--strict", args.strict, PATTERNS),
            (
                "--replicates",
                draws,
                (&[Pattern, Patterns, Scenarios], "a pattern, or --noise"),
            ),
        ];
        refuse_others(&self, options).map_err(|error| anyhow!("{error}{}", self.way_out()))
    }

    /// Advice after an error in a question about several inputs; empty for a question about a single one.
    fn way_out(self) -> &'static str {
        match self {
            Comparison => "; predict one at a time; `flowcast compare` compares two --json files",
            Patterns | Traces | Rails => "; predict one at a time",
            Pattern | Trace | Scenarios => "",
        }
    }
}
