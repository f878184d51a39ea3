//! Cases of seed A, concurrent communications over SMP clusters (Martinasso and Méhaut, RR-5910).

use flowcast::statistics::grouping::{GroupingRule, alpha_bands, interval_clusters};

use super::{
    Check,
    case::{Case, Mismatch, same},
};

/// Kinds and their checks.
pub(super) const KINDS: &[(&str, Check)] = &[
    ("error_metrics", error_metrics),
    ("interval_cluster", interval_cluster),
    ("alpha_band", alpha_band),
];

/// Errors in percent; flows are counted from 1.
fn error_metrics(case: &Case) -> Result<(), Mismatch> {
    let (observed, expected) = (case.observations()?, case.expected());
    let (best, worst) = (observed.best(), observed.worst());
    let mean = observed.mean_absolute() * 100.0;
    case.near(&expected.at("abs_err_ave_pct")?, mean)?;
    let global = observed.global_error() * 100.0;
    case.near(&expected.at("abs_global_err_pct")?, global)?;
    case.near(&expected.at("best_pct")?, best.error().abs() * 100.0)?;
    case.near(&expected.at("worst_pct")?, worst.error().abs() * 100.0)?;
    same("best_id", expected.at("best_id")?.whole()?, best.of + 1)?;
    same("worst_id", expected.at("worst_id")?.whole()?, worst.of + 1)
}

fn interval_cluster(case: &Case) -> Result<(), Mismatch> {
    let input = case.input();
    let rule = GroupingRule {
        relative_gap: input.at("gap_rel")?.number()?,
        min_share: input.at("min_share")?.number()?,
    };
    let found =
        interval_clusters(&input.at("values")?.numbers()?, rule).map_err(Mismatch::refused)?;
    let kept = case.expected().at("kept")?.items()?;
    same("number of groups", kept.len(), found.len())?;
    for (expected, found) in kept.iter().zip(&found) {
        case.near(&expected.at("min")?, found.min)?;
        case.near(&expected.at("median")?, found.median)?;
        case.near(&expected.at("max")?, found.max)?;
        same("n", expected.at("n")?.whole()?, found.count)?;
    }
    Ok(())
}

/// A value outside all bands is null.
fn alpha_band(case: &Case) -> Result<(), Mismatch> {
    let input = case.input();
    let (values, alphas) = (
        input.at("values")?.numbers()?,
        input.at("alphas")?.numbers()?,
    );
    let found = alpha_bands(
        &values,
        input.at("t_nc")?.number()?,
        &alphas,
        input.at("half")?.number()?,
    );
    let expected = case
        .expected()
        .at("band")?
        .items()?
        .iter()
        .map(|band| band.number().ok())
        .collect::<Vec<_>>();
    same("band", expected, found)
}
