//! The name under which counts for people were found before.

pub use flowcast_table::Grouped;
