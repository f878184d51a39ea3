//! Output of all results: a table for people, or JSON for programs.
//!
//! The standard output may be a pipe that is closed early.

use std::{
    borrow::Cow,
    fmt::{Arguments, Display},
    io::{self, ErrorKind, Write, stderr, stdout},
    process::exit,
};

use anyhow::Result;
use clap::Args;
use flowcast::model::name::is_hidden;

use crate::{
    tables::{RECORD, TableForm, written},
    width::{error_width, fitted, output_width},
};
use flowcast::table::{Document, DocumentPart};

/// `print!`, but a closed reader ends the command silently instead of with a panic.
#[macro_export]
macro_rules! print_out {
    ($($argument:tt)*) => { $crate::output::print(format_args!($($argument)*)) };
}

/// `println!`, but a closed reader ends the command silently instead of with a panic.
#[macro_export]
macro_rules! println_out {
    () => { $crate::output::print_lines("") };
    ($($argument:tt)*) => { $crate::output::print_lines(&format!($($argument)*)) };
}

/// `eprintln!`, but a failure to write to the standard error is ignored.
#[macro_export]
macro_rules! say {
    ($($argument:tt)*) => { $crate::output::say_line(format_args!($($argument)*)) };
}

/// Output format of a result, flattened into the arguments of a command.
#[derive(Debug, Clone, Copy, Args)]
pub struct Format {
    /// Machine-readable output
    #[arg(long)]
    pub json: bool,
}

impl Format {
    /// Prints a result in the format that the user requested.
    ///
    /// # Errors
    /// A figure that cannot be represented, in either format.
    pub fn print(self, document: &Document) -> Result<()> {
        if self.json {
            println_out!("{}", document.json()?);
            return Ok(());
        }
        document.check()?;
        for part in &document.parts {
            match part {
                DocumentPart::Line(line) if TableForm::chosen() == TableForm::Text => {
                    println_out!("{}", fitted(line, output_width()));
                }
                DocumentPart::Line(line) => println_out!("{line}"),
                DocumentPart::Table(table) => written(table)
                    .iter()
                    .for_each(|text| println_out!("{text}")),
            }
        }
        Ok(())
    }
}

/// Writes lines to the standard output. If tables are CSV, all other lines become comments.
pub fn print_lines(text: &str) {
    if TableForm::chosen() != TableForm::Csv {
        return print(format_args!("{text}\n"));
    }
    for line in text.lines() {
        match line.strip_prefix(RECORD) {
            Some(record) => print(format_args!("{record}\n")),
            None if line.is_empty() => {}
            None => print(format_args!("# {line}\n")),
        }
    }
}

/// Writes a line to the standard error and ignores failures.
pub fn say_line(text: Arguments<'_>) {
    let text = text.to_string();
    let _ = writeln!(stderr(), "{}", fitted(&escaped(&text), error_width()));
}

/// Writes notes to the standard error, for results whose document does not contain them.
pub fn print_notes<T: Display>(notes: impl IntoIterator<Item = T>) {
    for note in notes {
        say!("flowcast: note: {note}");
    }
}

/// Escapes characters that a terminal would interpret, or that hide adjacent text, as `\u001b`. Names in the text may come
/// from any source. JSON uses the same escapes.
pub fn escaped(text: &str) -> Cow<'_, str> {
    if !text.contains(is_control) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        if is_control(character) {
            escaped.push_str(&format!("\\u{:04x}", u32::from(character)));
        } else {
            escaped.push(character);
        }
    }
    Cow::Owned(escaped)
}

fn is_control(character: char) -> bool {
    is_hidden(character) && !matches!(character, '\n' | '\t')
}

/// Writes to the standard output.
pub fn print(text: Arguments<'_>) {
    exit_on_write_error(
        stdout()
            .lock()
            .write_all(escaped(&text.to_string()).as_bytes()),
    );
}

/// Ends the command if a write to the standard output has failed: silently if its reader has closed the stream.
pub fn exit_on_write_error(written: io::Result<()>) {
    match written {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::BrokenPipe => exit(0),
        Err(error) => {
            say!("error: cannot write to the standard output: {error}");
            exit(3)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_in_names_are_escaped() {
        assert_eq!(escaped("name\twith ü\n"), "name\twith ü\n");
        assert_eq!(
            escaped("\x1b]0;x\x07\r\u{9b}\u{202e}"),
            "\\u001b]0;x\\u0007\\u000d\\u009b\\u202e"
        );
        let name = serde_json::json!({ "name": "a\u{202e}b" });
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&escaped(&name.to_string())).unwrap(),
            name
        );
    }
}
