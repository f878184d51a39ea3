//! Messages as a CSV file with the columns `arrival_us,size_B`, in order of arrival.

use thiserror::Error;

use super::schedule::Message;
use flowcast_units::{Bytes, Time};

const HEADER: &str = "arrival_us,size_B";

/// Why a file of messages was refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("line {line}: {field}: found `{found}`, expected {expected}")]
pub struct MessagesError {
    /// Counted from 1.
    pub line: usize,
    /// The column, or `header` or `row`.
    pub field: &'static str,
    /// The text as given.
    pub found: String,
    /// What would have been right.
    pub expected: &'static str,
}

/// Reads the messages of a CSV file.
///
/// # Errors
/// Another header, a row with more or fewer than two fields, a number that is none, or an arrival before the one above.
pub fn read(text: &str) -> Result<Vec<Message>, MessagesError> {
    let mut lines = text.trim_start_matches('\u{feff}').lines().zip(1..);
    let header = lines.next().map_or("", |(line, _)| line);
    if !header.split(',').map(str::trim).eq(HEADER.split(',')) {
        return Err(refused(1, "header", header, "arrival_us,size_B"));
    }
    let mut messages: Vec<Message> = Vec::new();
    for (text, line) in lines {
        let message = row(text, line)?;
        if messages.last().is_some_and(|before| message.arrival < before.arrival) {
            return Err(refused(line, "arrival_us", text, "no arrival before that of the row above"));
        }
        messages.push(message);
    }
    Ok(messages)
}

fn row(text: &str, line: usize) -> Result<Message, MessagesError> {
    let Some((arrival, size)) = text.split_once(',').filter(|(_, size)| !size.contains(',')) else {
        return Err(refused(line, "row", text, "two fields, arrival_us,size_B"));
    };
    // Sums of longer times might not be finite.
    let micros: Option<f64> = arrival.trim().parse().ok().filter(|time| (0.0..=1e24).contains(time));
    let micros = micros.ok_or_else(|| refused(line, "arrival_us", arrival, "microseconds from 0 to 1e24"))?;
    let bytes = size.trim().parse().ok();
    let bytes = bytes.ok_or_else(|| refused(line, "size_B", size, "a whole number of bytes"))?;
    Ok(Message { arrival: Time::from_micros(micros), size: Bytes(bytes) })
}

fn refused(line: usize, field: &'static str, found: &str, expected: &'static str) -> MessagesError {
    MessagesError { line, field, found: found.trim().to_owned(), expected }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_read_in_order() {
        let messages = read("arrival_us, size_B\r\n0,64\r\n2.5, 4096\r\n").unwrap();
        assert_eq!(messages.len(), 2);
        assert_eq!(messages[1], Message { arrival: Time::from_nanos(2500.0), size: Bytes(4096) });
        assert!(read("arrival_us,size_B\n").unwrap().is_empty());
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line_and_column() {
        let cases = [
            ("", 1, "header"),
            ("size_B,arrival_us\n1,0", 1, "header"),
            ("arrival_us,size_B\n0,64\n\n", 3, "row"),
            ("arrival_us,size_B\n0,64,1\n", 2, "row"),
            ("arrival_us,size_B\nnan,64\n", 2, "arrival_us"),
            ("arrival_us,size_B\n-1,64\n", 2, "arrival_us"),
            ("arrival_us,size_B\n1e308,64\n", 2, "arrival_us"),
            ("arrival_us,size_B\n0,1.5\n", 2, "size_B"),
            ("arrival_us,size_B\n0,-4\n", 2, "size_B"),
            ("arrival_us,size_B\n5,1\n4,1\n", 3, "arrival_us"),
        ];
        for (text, line, field) in cases {
            let error = read(text).unwrap_err();
            assert_eq!((error.line, error.field), (line, field), "{text:?}");
        }
    }
}
