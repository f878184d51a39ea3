//! Cases of seed A, concurrent communications over SMP clusters (Martinasso and Méhaut, RR-5910).

use super::Check;

/// Kinds and their checks.
pub const KINDS: &[(&str, Check)] = &[];
