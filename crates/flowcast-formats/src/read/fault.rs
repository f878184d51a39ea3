//! What is wrong with a line or record, before its reader adds where it stands.

use std::borrow::Cow;

use flowcast_program::{TraceError, build::RecordFault};

/// What was found, and what was expected instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fault {
    found: Option<String>,
    expected: Cow<'static, str>,
}

impl Fault {
    /// A line that does not have the expected format; the message shows the line.
    pub(super) const fn malformed(expected: &'static str) -> Fault {
        Fault {
            found: None,
            expected: Cow::Borrowed(expected),
        }
    }

    /// As [`Fault::malformed`], with an expectation that depends on the trace.
    pub(super) fn expected(expected: Cow<'static, str>) -> Fault {
        Fault {
            found: None,
            expected,
        }
    }

    /// A field with a value that it cannot have.
    pub(super) fn value(found: impl Into<String>, expected: impl Into<Cow<'static, str>>) -> Fault {
        Fault {
            found: Some(found.into()),
            expected: expected.into(),
        }
    }

    /// The same fault, with its place inside a line or record before what was found.
    pub(super) fn within(self, place: &str) -> Fault {
        let found = self.found.map(|found| format!("{place} {found}"));
        Fault { found, ..self }
    }

    /// The error at a place; `line` gives the line for the message.
    pub(super) fn at(self, place: String, line: impl FnOnce() -> String) -> TraceError {
        TraceError::At {
            place,
            found: self.found.unwrap_or_else(line),
            expected: self.expected.into_owned(),
        }
    }
}

impl From<RecordFault> for Fault {
    fn from(fault: RecordFault) -> Fault {
        let (found, expected) = fault.found_and_expected();
        Fault::value(found, expected)
    }
}
