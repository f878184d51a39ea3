//! Cases of seed B, resource-constrained hierarchical Ethernet (Zhu, Lastovetsky and others).

use super::Check;

/// Kinds and their checks.
pub const KINDS: &[(&str, Check)] = &[];
