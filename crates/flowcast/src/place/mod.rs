//! Which rank should run where.
