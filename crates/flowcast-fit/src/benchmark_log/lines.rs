//! Lines of a log without the additions of terminals, launchers and loggers.

use super::prefix::LinePrefix;

/// One line of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LogLine {
    /// Number in the file, starting with 1.
    pub number: usize,
    /// Prefix that the launcher added.
    pub prefix: LinePrefix,
    /// Text that the benchmark wrote.
    pub text: String,
}

/// Byte order mark. It occurs inside a text if several logs were joined.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// Returns the lines of a log without colours, carriage returns, byte order marks and prefixes.
pub(crate) fn lines(text: &str) -> Vec<LogLine> {
    let plain = (1..).zip(text.lines()).map(|(number, line)| {
        let line = line
            .trim_start_matches(BYTE_ORDER_MARK)
            .trim_end_matches('\r');
        // If a line was overwritten, its last version stays on the screen.
        let line = line.rsplit('\r').next().unwrap_or(line);
        let line = without_colours(line);
        let (prefix, rest) = LinePrefix::split(&line);
        let text = rest.to_owned();
        LogLine {
            number,
            prefix,
            text,
        }
    });
    plain.collect()
}

/// Removes escape sequences from a line: `ESC [ ... letter`, `ESC ] ... BEL`.
fn without_colours(line: &str) -> String {
    const ESCAPE: char = '\u{1b}';
    let mut parts = line.split(ESCAPE);
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |plain, part| {
        let after = match part.chars().next() {
            Some('[') => {
                part.find(|sign: char| ('@'..='Z').contains(&sign) || ('\\'..='~').contains(&sign))
            }
            Some(']') => part.find('\u{7}'),
            _ => Some(0),
        };
        plain + after.and_then(|at| part.get(at + 1..)).unwrap_or_default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn byte_order_marks_colours_and_carriage_returns_are_removed() {
        let text =
            "\u{feff}\u{1b}[1;32m8\u{1b}[0m  1.1\r\n\u{1b}]0;title\u{7}16 1.2\r\n 10 %\r20 1.3\n";
        let plain: Vec<String> = lines(text).into_iter().map(|line| line.text).collect();
        assert_eq!(plain, ["8  1.1", "16 1.2", "20 1.3"]);
    }
}
