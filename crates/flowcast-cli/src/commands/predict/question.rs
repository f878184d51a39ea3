//! What `flowcast predict` is asked, by its inputs and how many networks, models and mappings there are; and which options go with
//! it.

use std::{fmt, path::PathBuf};

use anyhow::Result;
use flowcast_io::{Holding, is_pattern};

use super::Asked;
use crate::{
    terminal::goes_with::{GoesWith, refuse_others},
    trace_args::first_file,
};

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
            Patterns => "a pattern with several networks or models",
            Trace => "a trace",
            Comparison => "a trace with several networks, models or mappings",
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
        let draws = args.seeds.is_some() && trace.noise.is_none();
        let rules = [
            GoesWith {
                kinds: &[Traces],
                expected: "one trace",
                options: &[("several inputs", args.inputs.len() > 1)],
            },
            GoesWith {
                kinds: &[Comparison, Patterns],
                expected: "one network and model",
                options: &[
                    ("several --network", asked.networks.len() > 1),
                    ("several --model", asked.models.len() > 1),
                ],
            },
            GoesWith {
                kinds: &[Trace, Comparison, Traces, Scenarios],
                expected: "a trace",
                options: &[
                    ("--mapping", !trace.mapping.is_empty()),
                    ("--rendezvous-from", trace.rendezvous_from.is_some()),
                    ("--incomplete", trace.incomplete),
                    ("--unfold", trace.unfold),
                ],
            },
            GoesWith {
                kinds: &[Comparison, Traces],
                expected: "one mapping",
                options: &[("several --mapping", trace.mapping.len() > 1)],
            },
            GoesWith {
                kinds: &[Trace, Comparison, Scenarios],
                expected: "one trace",
                options: &[
                    ("--goal-params", trace.goal_params.is_some()),
                    ("--collectives", trace.collectives.collectives.is_some()),
                ],
            },
            GoesWith {
                kinds: &[Trace],
                expected: "one trace, network, model and mapping",
                options: &[
                    ("--noise", trace.noise.is_some()),
                    ("--write", trace.outputs.is_given()),
                ],
            },
            GoesWith {
                kinds: &[Trace, Traces, Pattern],
                expected: "one network, model and mapping",
                options: &[("--explain", args.explain)],
            },
            GoesWith {
                kinds: &[Trace, Comparison, Traces, Scenarios, Pattern],
                expected: "one network and model",
                options: &[("--report", args.report.is_some())],
            },
            GoesWith {
                kinds: &[Pattern],
                expected: "a pattern, or a name that ends in .html",
                options: &[("--report", args.report.as_ref().is_some_and(is_svg))],
            },
            GoesWith {
                kinds: &[Pattern, Patterns],
                expected: "a pattern",
                options: &[("--strict", args.strict)],
            },
            GoesWith {
                kinds: &[Pattern, Patterns, Scenarios],
                expected: "a pattern, or --noise",
                options: &[("--seeds", draws)],
            },
        ];
        refuse_others(&self, &rules)
    }
}
