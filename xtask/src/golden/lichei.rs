//! Cases of seed D, LogGP measurement and the multi-rail packet scheduler (Lichei).

use super::Check;

/// Kinds and their checks.
pub const KINDS: &[(&str, Check)] = &[];
