//! The exported functions, made from the table when this is built.

#![allow(
    unreachable_pub,
    missing_docs,
    non_snake_case,
    clippy::missing_safety_doc
)]

use std::ffi::c_int;

use crate::{
    entry::Entry,
    functions::{FUNCTIONS, Language},
    wrap::call,
};

include!(concat!(env!("OUT_DIR"), "/wrappers.rs"));
