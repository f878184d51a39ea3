//! Lines, comments and records: `"name" {field, field, ...};;`, one per line.

use super::error::{DimemasConfigError, shortened};

/// Content of a file without its comments.
pub(super) struct Records {
    /// Lines that hold a record.
    pub lines: Vec<ConfigLine>,
    /// Notes on records that are commented out.
    pub skipped: Vec<String>,
}

/// A line without comments.
pub(super) struct ConfigLine {
    /// Line in the file, counted from 1.
    pub number: usize,
    /// Text without white space at its ends.
    pub text: String,
}

/// A record with its fields as written, without white space at their ends.
#[derive(Debug)]
pub(super) struct ConfigRecord<'a> {
    pub line: usize,
    pub name: &'a str,
    pub fields: Vec<&'a str>,
}

enum RecordMark {
    Block,
    Line,
}

impl Records {
    /// Removes the comments. The first line is a title, regardless of its content, unless it is a record.
    pub(super) fn parse(text: &str) -> Result<Records, DimemasConfigError> {
        let mut records = Records {
            lines: Vec::new(),
            skipped: Vec::new(),
        };
        let mut open_since = None;
        for (index, line) in text.lines().enumerate() {
            let is_title = index == 0 && !line.trim_start().starts_with(['"', '/']);
            if is_title {
                continue;
            }
            let left = records.without_comments(index + 1, line, &mut open_since);
            if !left.trim().is_empty() {
                records.lines.push(ConfigLine {
                    number: index + 1,
                    text: left.trim().to_owned(),
                });
            }
        }
        match open_since {
            None => Ok(records),
            Some(line) => Err(DimemasConfigError::Line {
                line,
                found: "/*".into(),
                expected: "a `*/` that ends the comment".into(),
            }),
        }
    }

    fn without_comments(
        &mut self,
        number: usize,
        line: &str,
        open_since: &mut Option<usize>,
    ) -> String {
        let mut kept = String::new();
        let mut rest = line;
        loop {
            if open_since.is_some() {
                let Some(end) = rest.find("*/") else {
                    return kept;
                };
                *open_since = None;
                rest = &rest[end + 2..];
            }
            match first_mark(rest) {
                None => {
                    kept.push_str(rest);
                    return kept;
                }
                Some((at, RecordMark::Block)) => {
                    kept.push_str(&rest[..at]);
                    *open_since = Some(number);
                    rest = &rest[at + 2..];
                }
                Some((at, RecordMark::Line)) => {
                    kept.push_str(&rest[..at]);
                    if kept.trim_start().starts_with('"') {
                        self.skipped.push(format!(
                            "line {number}: skipped, as Dimemas skips every line with `//` in it"
                        ));
                    }
                    return String::new();
                }
            }
        }
    }
}

/// Position and kind of the first comment mark outside of quotes.
fn first_mark(text: &str) -> Option<(usize, RecordMark)> {
    let mut quoted = false;
    for (at, pair) in text.as_bytes().windows(2).enumerate() {
        match pair {
            [b'"', _] => quoted = !quoted,
            b"/*" if !quoted => return Some((at, RecordMark::Block)),
            b"//" if !quoted => return Some((at, RecordMark::Line)),
            _ => {}
        }
    }
    None
}

impl ConfigLine {
    /// Parses the record on this line.
    pub(super) fn record(&self) -> Result<ConfigRecord<'_>, DimemasConfigError> {
        let (name, rest) = self
            .text
            .strip_prefix('"')
            .and_then(|rest| rest.split_once('"'))
            .ok_or_else(|| self.wrong("a record such as \"environment information\" {...};;"))?;
        let body = rest
            .trim_start()
            .strip_prefix('{')
            .ok_or_else(|| self.wrong("a `{` after the record's name"))?;
        let (fields, tail) = fields(body)
            .ok_or_else(|| self.wrong("a `}` at the end of the record, on the same line"))?;
        if tail.contains(|c: char| c != ';' && !c.is_whitespace()) {
            return Err(self.wrong("nothing but `;;` after the record"));
        }
        Ok(ConfigRecord {
            line: self.number,
            name: name.trim(),
            fields,
        })
    }

    fn wrong(&self, expected: &str) -> DimemasConfigError {
        DimemasConfigError::Line {
            line: self.number,
            found: shortened(&self.text),
            expected: expected.to_owned(),
        }
    }
}

/// Splits at commas outside of quotes and braces, up to the closing brace; also returns the text after it.
fn fields(body: &str) -> Option<(Vec<&str>, &str)> {
    let (mut fields, mut start, mut depth, mut quoted) = (Vec::new(), 0, 0u32, false);
    for (at, byte) in body.bytes().enumerate() {
        match byte {
            b'"' => quoted = !quoted,
            _ if quoted => {}
            b'{' => depth += 1,
            b'}' if depth > 0 => depth -= 1,
            b',' if depth == 0 => {
                fields.push(body[start..at].trim());
                start = at + 1;
            }
            b'}' => {
                let last = body[start..at].trim();
                if !fields.is_empty() || !last.is_empty() {
                    fields.push(last);
                }
                return Some((fields, &body[at + 1..]));
            }
            _ => {}
        }
    }
    None
}

impl ConfigRecord<'_> {
    /// Stores a record that may occur only once.
    pub(super) fn put_once<T>(
        &self,
        place: &mut Option<T>,
        value: T,
    ) -> Result<(), DimemasConfigError> {
        if place.replace(value).is_some() {
            Err(self.wrong("only one record of this name"))
        } else {
            Ok(())
        }
    }

    /// The error for a record name that no version has.
    pub(super) fn unknown(&self) -> DimemasConfigError {
        self.wrong(
            "a record named wide area network, environment, node, multi node, accelerator node, mapping, predefined \
             mapping, modules or dedicated connection information, configuration files, or file system parameters",
        )
    }

    fn wrong(&self, expected: &str) -> DimemasConfigError {
        let found = format!("\"{}\"", shortened(self.name));
        DimemasConfigError::Line {
            line: self.line,
            found,
            expected: expected.to_owned(),
        }
    }
}
