//! Counts for people.

pub(crate) use flowcast::report::answer::Grouped;
