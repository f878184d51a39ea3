//! Messages as a CSV file with the columns `arrival_us,size_B`, in order of arrival.

use super::schedule::RailMessage;
use flowcast_network::csv::{CsvError, Table, number};
use flowcast_units::{Bytes, Time};

const COLUMNS: [&str; 2] = ["arrival_us", "size_B"];

/// Reads the messages of a CSV file; the order of the columns does not matter.
///
/// # Errors
/// Other columns, a row with more or fewer fields, an invalid number, or an arrival before the previous row's.
pub fn read(text: &str) -> Result<Vec<RailMessage>, CsvError> {
    let mut messages: Vec<RailMessage> = Vec::new();
    let table = Table::parse(text)?;
    table.only(&COLUMNS, &[], |name| name)?;
    for (line, [arrival, size]) in table.fields(COLUMNS)? {
        let message = row(line, arrival, size)?;
        if messages
            .last()
            .is_some_and(|before| message.arrival < before.arrival)
        {
            let expected = "an arrival not before the previous row";
            return Err(CsvError::field(line, COLUMNS[0], arrival, expected));
        }
        messages.push(message);
    }
    Ok(messages)
}

fn row(line: usize, arrival: &str, size: &str) -> Result<RailMessage, CsvError> {
    // Sums of longer times might not be finite.
    let expected = "microseconds from 0 to 1e24";
    let micros = number(
        line,
        COLUMNS[0],
        arrival,
        |time| (0.0..=1e24).contains(&time),
        expected,
    )?;
    let bytes = size
        .parse()
        .map_err(|_| CsvError::field(line, COLUMNS[1], size, "a whole number of bytes"))?;
    Ok(RailMessage {
        arrival: Time::from_micros(micros),
        size: Bytes(bytes),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_read_in_order() {
        let messages = read("arrival_us, size_B\r\n0,64\r\n2.5, 4096\r\n").unwrap();
        assert_eq!(messages.len(), 2);
        assert_eq!(
            messages[1],
            RailMessage {
                arrival: Time::from_nanos(2500.0),
                size: Bytes(4096)
            }
        );
        assert!(read("arrival_us,size_B\n").unwrap().is_empty());
    }

    #[test]
    fn columns_are_read_in_any_order_and_may_be_quoted() {
        let expected = read("arrival_us,size_B\n0,64\n2.5,4096\n").unwrap();
        assert_eq!(
            read("\"size_B\",\"arrival_us\"\n\"64\",\"0\"\n4096, 2.5\n").unwrap(),
            expected
        );
    }

    #[test]
    fn errors_name_the_line_and_the_column() {
        let cases = [
            ("", "found no column names"),
            ("arrival,size_B\n1,0", "line 1: found column `arrival`"),
            ("arrival_us,size_B\n0,64\n\n7\n", "line 4: found 1 fields"),
            ("arrival_us,size_B\n0,64,1\n", "line 2: found 3 fields"),
            (
                "arrival_us,size_B\nnan,64\n",
                "line 2: found arrival_us = `nan`",
            ),
            (
                "arrival_us,size_B\n-1,64\n",
                "line 2: found arrival_us = `-1`",
            ),
            (
                "arrival_us,size_B\n1e308,64\n",
                "line 2: found arrival_us = `1e308`",
            ),
            ("arrival_us,size_B\n0,1.5\n", "line 2: found size_B = `1.5`"),
            ("arrival_us,size_B\n0,-4\n", "line 2: found size_B = `-4`"),
            (
                "arrival_us,size_B\n5,1\n4,1\n",
                "line 3: found arrival_us = `4`",
            ),
        ];
        for (text, told) in cases {
            let message = read(text).unwrap_err().to_string();
            assert!(message.starts_with(told), "{text:?}: {message}");
        }
    }
}
