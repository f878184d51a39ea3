//! The width of the terminal, and lines that fit it. They are broken at spaces alone; a longer word runs over.

use std::{borrow::Cow, env, os::fd::AsFd};

use unicode_width::UnicodeWidthStr;

/// Columns of the terminal on the standard output; none if it is no terminal: then lines have no end.
pub(crate) fn output_width() -> Option<usize> {
    width_of(std::io::stdout())
}

/// Columns of the terminal on the standard error.
pub(crate) fn error_width() -> Option<usize> {
    width_of(std::io::stderr())
}

/// A terminal that does not know its width has that of the variable `COLUMNS`.
fn width_of(stream: impl AsFd + std::io::IsTerminal) -> Option<usize> {
    if !stream.is_terminal() {
        return None;
    }
    let known = terminal_size::terminal_size_of(&stream).map(|(width, _)| usize::from(width.0));
    known.or_else(|| {
        env::var("COLUMNS")
            .ok()?
            .parse()
            .ok()
            .filter(|width| *width > 0)
    })
}

/// A text in the lines of a terminal, if it is for one.
pub(crate) fn fitted(text: &str, width: Option<usize>) -> Cow<'_, str> {
    match width {
        Some(width) => wrapped(text, width, 0).into(),
        None => text.into(),
    }
}

/// A text whose lines have at most `width` columns where their words allow it. What is broken goes on below the beginning of
/// its line, or at column `indent`, whichever is farther right.
pub(crate) fn wrapped(text: &str, width: usize, indent: usize) -> String {
    let lines = text.split('\n').map(|line| {
        let fits = columns_of(line) <= width;
        if fits {
            line.to_owned()
        } else {
            broken(line, width, indent)
        }
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn broken(line: &str, width: usize, indent: usize) -> String {
    let indent = indent.max(line.len() - line.trim_start_matches(' ').len());
    let (mut lines, mut used, mut is_blank) = (String::new(), 0, true);
    for (spaces, word) in words(line, width.saturating_sub(indent)) {
        if !is_blank && used + spaces + columns_of(word) > width {
            lines += &format!("\n{:indent$}", "");
            used = indent;
        } else {
            lines += &" ".repeat(spaces);
            used += spaces;
        }
        lines += word;
        used += columns_of(word);
        is_blank = false;
    }
    lines
}

/// The words of a line with the number of spaces before each. What stands between backquotes is one word where it fits into
/// `room` columns.
fn words(line: &str, room: usize) -> Vec<(usize, &str)> {
    let (mut words, mut rest) = (Vec::new(), line);
    loop {
        let word = rest.trim_start_matches(' ');
        if word.is_empty() {
            return words;
        }
        let spaces = rest.len() - word.len();
        let end = quotation_end(word, room).unwrap_or_else(|| word_end(word));
        words.push((spaces, &word[..end]));
        rest = &word[end..];
    }
}

fn word_end(text: &str) -> usize {
    text.find(' ').unwrap_or(text.len())
}

/// Where the word ends that begins a text with a quotation of several words.
fn quotation_end(text: &str, room: usize) -> Option<usize> {
    let begin = text[..word_end(text)].find('`')? + 1;
    let close = begin + text[begin..].find('`')? + 1;
    let end = close + word_end(&text[close..]);
    (columns_of(&text[..end]) <= room).then_some(end)
}

/// Columns of the longest word of a text.
pub(crate) fn longest_word(text: &str) -> usize {
    text.split_whitespace().map(columns_of).max().unwrap_or(0)
}

/// Columns that a text on one line takes; colours take none.
pub(crate) fn columns_of(text: &str) -> usize {
    match text.contains('\u{1b}') {
        true => anstream::adapter::strip_str(text).to_string().width(),
        false => text.width(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_broken_at_spaces_alone() {
        let text = "a line that fits\n  infiniband-ndr200 and gige-tcp";
        assert_eq!(
            wrapped(text, 18, 0),
            "a line that fits\n  infiniband-ndr200\n  and gige-tcp"
        );
        assert_eq!(wrapped("one two", 1, 0), "one\ntwo");
        assert_eq!(
            wrapped("network: of two words", 14, 9),
            "network: of\n         two\n         words"
        );
        assert_eq!(wrapped("", 5, 0), "");
    }

    #[test]
    fn a_quoted_command_stays_together_where_it_fits() {
        let text = "start it with `mpirun -np 4`, or not";
        assert_eq!(
            wrapped(text, 20, 0),
            "start it with\n`mpirun -np 4`, or\nnot"
        );
        assert_eq!(
            wrapped(text, 12, 0),
            "start it\nwith `mpirun\n-np 4`, or\nnot"
        );
        assert_eq!(
            wrapped("an `unfinished quotation here", 12, 0),
            "an\n`unfinished\nquotation\nhere"
        );
    }

    #[test]
    fn colours_take_no_columns() {
        assert_eq!(columns_of("\u{1b}[1m\u{1b}[31merror:\u{1b}[0m"), 6);
    }
}
