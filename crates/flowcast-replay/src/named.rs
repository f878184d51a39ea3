//! Enums whose variants are listed and named in tables.

pub(crate) use flowcast_units::named;
