//! Sentences and tables in reading order for people, and fields for programs.

use std::{borrow::Cow, collections::HashSet, fmt::Display};

use serde_json::Value as Json;

use crate::{
    table::Table,
    value::{NotFinite, Record, Value},
};

/// A line or a table of a document, as people see it.
#[derive(Debug, Clone, PartialEq)]
pub enum DocumentPart {
    /// One or more lines of text.
    Line(String),
    /// Rows below a heading.
    Table(Table),
}

/// Schema of the commands' output with `--json`; its `kind` names the type of result.
pub const RESULT: &str = "flowcast/result/1";

/// A result before output: text and tables for people, fields for programs.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    /// Name and version of the JSON schema: [`RESULT`] unless outside programs rely on another.
    pub schema: &'static str,
    /// Kind of the result, such as `slack`.
    pub kind: &'static str,
    /// Headline of the page.
    pub title: String,
    /// Lines and tables, in reading order.
    pub parts: Vec<DocumentPart>,
    /// Sentences on the assumptions of the result, each once; lines among the parts show them to people.
    pub notes: Vec<String>,
    fields: Record,
}

impl Document {
    /// Creates a document without content.
    pub fn new(kind: &'static str) -> Document {
        Document {
            schema: RESULT,
            kind,
            title: String::new(),
            parts: Vec::new(),
            notes: Vec::new(),
            fields: Record::new(),
        }
    }

    /// Sets the name and version of the JSON schema, instead of `RESULT`.
    pub fn schema(mut self, schema: &'static str) -> Document {
        self.schema = schema;
        self
    }

    /// Sets the headline of the page.
    pub fn titled(mut self, title: impl Into<String>) -> Document {
        self.title = title.into();
        self
    }

    /// Adds a value for programs.
    pub fn field(
        mut self,
        name: impl Into<Cow<'static, str>>,
        value: impl Into<Value>,
    ) -> Document {
        self.fields = self.fields.field(name, value);
        self
    }

    /// Adds several values for programs.
    pub fn fields(mut self, record: Record) -> Document {
        self.fields = self.fields.fields(record);
        self
    }

    /// Adds a value for programs, if there is one.
    pub fn known(self, name: &'static str, value: Option<impl Into<Value>>) -> Document {
        self.fields(Record::new().known(name, value))
    }

    /// Adds a line for people.
    pub fn line(mut self, text: impl Display) -> Document {
        self.parts.push(DocumentPart::Line(text.to_string()));
        self
    }

    /// Adds any number of lines for people.
    pub fn lines<T: Display>(self, texts: impl IntoIterator<Item = T>) -> Document {
        texts.into_iter().fold(self, Document::line)
    }

    /// Adds sentences on the assumptions of the result: lines for people, the field `notes` for programs.
    pub fn noted<T: Into<String>>(mut self, notes: impl IntoIterator<Item = T>) -> Document {
        let mut told: HashSet<String> = self.notes.iter().cloned().collect();
        for note in notes {
            let note = note.into();
            if told.insert(note.clone()) {
                self = self.line(as_note(&note));
                self.notes.push(note);
            }
        }
        self
    }

    /// Adds a table, which programs read under this name.
    pub fn table(self, name: &'static str, table: impl Into<Table>) -> Document {
        let table = table.into();
        self.field(name, table.clone()).shown(table)
    }

    /// Adds a table for people only.
    pub fn shown(mut self, table: impl Into<Table>) -> Document {
        self.parts.push(DocumentPart::Table(table.into()));
        self
    }

    /// Limits the rows of each table that people see; `option` is the command's option that shows all.
    pub fn most(mut self, rows: usize, option: &'static str) -> Document {
        for part in &mut self.parts {
            if let DocumentPart::Table(table) = part {
                table.most = Some((rows, option));
            }
        }
        self
    }

    /// Names of the values in the rows of a list, in the order of the first row; empty for a field of another type.
    pub fn names_in(&self, list: &str) -> Vec<&str> {
        self.fields.get(list).map_or_else(Vec::new, Value::names)
    }

    /// Lines for people, in reading order, without the tables.
    pub fn words(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            DocumentPart::Line(line) => Some(line.as_str()),
            DocumentPart::Table(_) => None,
        })
    }

    /// Tables for people, in reading order, without the lines.
    pub fn tables(&self) -> impl Iterator<Item = &Table> {
        self.parts.iter().filter_map(|part| match part {
            DocumentPart::Line(_) => None,
            DocumentPart::Table(table) => Some(table),
        })
    }

    /// Checks that all figures can be printed: none is infinite, and no count has reached its maximum.
    ///
    /// # Errors
    /// The first figure that cannot be printed.
    pub fn check(&self) -> Result<(), NotFinite> {
        self.fields.check()?;
        self.tables().try_for_each(Table::check)
    }

    /// Returns the JSON for programs: the schema, the kind, the notes and the fields.
    ///
    /// # Errors
    /// Errors of [`Document::check`].
    pub fn json(&self) -> Result<Json, NotFinite> {
        self.check()?;
        let mut json = self.fields.object();
        json["schema"] = self.schema.into();
        json["kind"] = self.kind.into();
        json["notes"] = self.notes.clone().into();
        Ok(json)
    }
}

/// Formats a note for people; a note about values with an asterisk begins with one.
fn as_note(note: &str) -> String {
    match note.starts_with('*') {
        true => note.to_owned(),
        false => format!("note: {note}"),
    }
}

#[cfg(test)]
mod tests {
    use flowcast_units::{Bytes, Rate, Time};

    use super::*;
    use crate::{table::rows, value::json};

    #[test]
    fn infinite_figures_and_saturated_counts_are_refused() {
        let refused = |document: Document| document.json().unwrap_err().to_string();
        let of = |value: Value| {
            refused(Document::new("example").field("x", vec![Value::from(1.0), value]))
        };
        let found = |found: &str| {
            format!("found x[1] = {found}: look for a value that is too large or too small")
        };
        for (nanos, name) in [(f64::INFINITY, "inf"), (f64::NAN, "NaN")] {
            let expected = found(&format!("{name}, expected a finite number"));
            assert_eq!(of(Time::from_nanos(nanos).into()), expected);
            assert_eq!(of(nanos.into()), expected);
            assert_eq!(of(Rate::from_bytes_per_second(nanos).into()), expected);
        }
        let expected = found("2^64 or more, expected fewer");
        assert_eq!(of(u64::MAX.into()), expected);
        assert_eq!(of(Bytes(u64::MAX).into()), expected);
        assert_eq!(of(json(u64::MAX)), expected);
        let nested = rows([1.0, f64::NAN]).column("time_s", "time", |time| time);
        let text = refused(Document::new("example").table("runs", nested.clone()));
        assert!(text.starts_with("found runs[1].time_s = NaN"), "{text}");
        let people = rows([f64::NAN]).cell("time", |time| time);
        let text = refused(Document::new("example").shown(people));
        assert!(text.starts_with("found time[0] = NaN"), "{text}");
    }
}
