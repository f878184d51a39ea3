//! Output of Flowcast: a [`Document`] of sentences, fields and typed tables, which terminals, programs, spreadsheets and
//! pages show in their own ways.
//!
//! Each fact is stated once, with its name in JSON, its heading for people and its typed value. JSON gives a time in the
//! unit that its name contains (`_us`, `_ns`; otherwise seconds). People see it in a fitting unit.
//!
//! ```
//! use flowcast_table::{Document, rows};
//! use flowcast_units::{Bytes, Time};
//!
//! let measured = [(Bytes(1024), Time::from_micros(12.5))];
//! let document = Document::new("example").line("one size was measured").table(
//!     "sizes",
//!     rows(measured)
//!         .column("size_B", "size", |(size, _)| size)
//!         .column("time_us", "time", |(_, time)| time),
//! );
//! assert_eq!(
//!     document.json()?.to_string(),
//!     r#"{"kind":"example","notes":[],"schema":"flowcast/result/1","sizes":[{"size_B":1024,"time_us":12.5}]}"#
//! );
//! # Ok::<(), flowcast_table::NotFinite>(())
//! ```

mod document;
mod page;
mod shell;
mod table;
mod value;

pub use document::{Document, DocumentPart, RESULT};
pub use page::escape;
pub use shell::{command_line, shell_word};
pub use table::{Rows, Table, TableColumn, is_silent, rows};
pub use value::{
    Grouped, NotFinite, Record, Value, figure, fixed, json, or_dash, percent, relative_error, shown,
};
