//! Cases of seed B, resource-constrained hierarchical Ethernet (Zhu, Lastovetsky and others).

use flowcast::statistics::interval::mean_interval;

use super::{
    Check,
    case::{Case, Mismatch},
};

/// Kinds and their checks.
pub(super) const KINDS: &[(&str, Check)] = &[("error_metric", error_metric), ("ci_stop", ci_stop)];

fn error_metric(case: &Case) -> Result<(), Mismatch> {
    let found: Vec<f64> = case.observations()?.errors().collect();
    case.near_each(&case.expected().at("err")?, &found)
}

fn ci_stop(case: &Case) -> Result<(), Mismatch> {
    let (input, expected) = (case.input(), case.expected());
    let samples = input.at("samples")?.numbers()?;
    let found = mean_interval(&samples, input.at("level")?.number()?).map_err(Mismatch::refused)?;
    case.near(&expected.at("mean")?, found.mean)?;
    case.near(&expected.at("sd")?, found.standard_deviation)?;
    case.near(&expected.at("half_width")?, found.half_width)?;
    case.near(&expected.at("rel_half_width")?, found.relative_half_width())
}
