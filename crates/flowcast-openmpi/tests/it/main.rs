//! Tests of the component, in one program.

mod inside_openmpi;
mod layout;
