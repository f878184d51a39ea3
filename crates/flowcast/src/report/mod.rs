//! What people look at: the self-contained page.

pub mod pattern_plot;
