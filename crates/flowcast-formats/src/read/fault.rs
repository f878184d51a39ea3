//! Error in a line or record, before its reader adds the position.

use std::borrow::Cow;

use flowcast_program::{TraceError, build::RecordFault};

/// Found value and expected value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fault {
    found: Option<String>,
    expected: Cow<'static, str>,
}

impl Fault {
    /// Creates the error of a line without the expected format; the message shows the line.
    pub(super) const fn malformed(expected: &'static str) -> Fault {
        Fault {
            found: None,
            expected: Cow::Borrowed(expected),
        }
    }

    /// Creates the same error as [`Fault::malformed`], with an expectation that depends on the trace.
    pub(super) fn expected(expected: Cow<'static, str>) -> Fault {
        Fault {
            found: None,
            expected,
        }
    }

    /// Creates the error of a field with an invalid value.
    pub(super) fn value(found: impl Into<String>, expected: impl Into<Cow<'static, str>>) -> Fault {
        Fault {
            found: Some(found.into()),
            expected: expected.into(),
        }
    }

    /// Adds a position inside a line or record, before the found value.
    pub(super) fn within(self, place: &str) -> Fault {
        let found = self.found.map(|found| format!("{place} {found}"));
        Fault { found, ..self }
    }

    /// Returns the error at a position; `line` provides the line for the message.
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
