//! Tests of live rails, in one program.

mod link;
mod session;
