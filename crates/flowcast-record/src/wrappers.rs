//! The wrappers and their table, which the build generates from the table of functions. No wrapper is an exported symbol:
//! `binding` redirects the program's look-ups of MPI functions to them.

#![allow(non_snake_case)]

use std::ffi::c_int;

use crate::{
    entry::WrappedName,
    functions::{FUNCTIONS, Language},
    wrap::call,
};

include!(concat!(env!("OUT_DIR"), "/wrappers.rs"));
