//! Tests of measurements and of labs, in one program.

mod budget;
mod lab;
mod pairs;
mod prtt;
mod timed;
