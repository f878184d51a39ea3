//! The wrappers and their table, made from the table of functions when this is built. None of them is an exported symbol:
//! `binding` puts them where the program looks for its MPI library's functions.

#![allow(non_snake_case)]

use std::ffi::c_int;

use crate::{
    entry::WrappedName,
    functions::{FUNCTIONS, Language},
    wrap::call,
};

include!(concat!(env!("OUT_DIR"), "/wrappers.rs"));
