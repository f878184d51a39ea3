//! The standard output, which may be a pipe that nobody reads to its end.

use std::fmt::Arguments;
use std::io::{ErrorKind, Write, stdout};
use std::process::exit;

/// `print!`, but a reader that has gone away ends the command quietly instead of with a panic.
macro_rules! print_out {
    ($($argument:tt)*) => { $crate::output::print(format_args!($($argument)*)) };
}

/// `println!`, but a reader that has gone away ends the command quietly instead of with a panic.
macro_rules! println_out {
    () => { $crate::output::print(format_args!("\n")) };
    ($($argument:tt)*) => {{
        $crate::output::print(format_args!($($argument)*));
        $crate::output::print(format_args!("\n"));
    }};
}

pub(crate) use {print_out, println_out};

/// Writes to the standard output.
pub fn print(text: Arguments<'_>) {
    match stdout().lock().write_fmt(text) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::BrokenPipe => exit(0),
        Err(error) => {
            eprintln!("flowcast: cannot write to the standard output: {error}");
            exit(3)
        }
    }
}
