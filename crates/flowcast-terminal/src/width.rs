//! Width of the terminal, and lines that fit it. Lines are broken only at spaces. A longer word, or a quoted command,
//! exceeds the width. A command on its own line continues after a backslash, in shell syntax.

use std::{borrow::Cow, env, os::fd::AsFd};

use unicode_width::UnicodeWidthStr;

/// Width of the standard output, in columns. `None` if it is no terminal and `FLOWCAST_COLUMNS` is not set: lines are then
/// unlimited.
pub(crate) fn output_width() -> Option<usize> {
    width_of(std::io::stdout())
}

/// Width of the standard error, in columns.
pub(crate) fn error_width() -> Option<usize> {
    width_of(std::io::stderr())
}

/// Width that a terminal reports, or the variable `COLUMNS`. Where there is no terminal only `FLOWCAST_COLUMNS` counts: other
/// programs set `COLUMNS` for themselves.
fn width_of(stream: impl AsFd + std::io::IsTerminal) -> Option<usize> {
    let variable = if stream.is_terminal() {
        let known = terminal_size::terminal_size_of(&stream);
        if let Some((width, _)) = known {
            return Some(usize::from(width.0));
        }
        "COLUMNS"
    } else {
        "FLOWCAST_COLUMNS"
    };
    let columns = env::var(variable).ok()?.parse().ok()?;
    (columns > 0).then_some(columns)
}

/// Text broken into lines of a width, if there is one.
pub fn fitted(text: &str, width: Option<usize>) -> Cow<'_, str> {
    match width {
        Some(width) => wrapped(text, width, 0).into(),
        None => text.into(),
    }
}

/// Text with lines of at most `width` columns, if its words allow it. Continuations are indented to the start of their line
/// or to column `indent`, whichever is farther right.
pub(crate) fn wrapped(text: &str, width: usize, indent: usize) -> String {
    let lines = text.split('\n').map(|line| {
        if columns_of(line) <= width {
            line.to_owned()
        } else {
            broken(line, width, indent)
        }
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Space at which clap does not break lines.
const UNBROKEN: &str = "\u{a0}";

/// Help text whose commands clap does not break: indented lines, and text between backquotes.
pub fn unbroken(help: &str) -> String {
    let lines = help.split('\n').map(|line| {
        let is_command = line.starts_with("  ");
        let parts = line.split('`').enumerate().map(|(number, part)| {
            if is_command || number % 2 == 1 {
                part.replace(' ', UNBROKEN)
            } else {
                part.to_owned()
            }
        });
        parts.collect::<Vec<_>>().join("`")
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Replaces the spaces of [`unbroken`] by plain ones.
pub(crate) fn with_spaces(text: &str) -> String {
    text.replace(UNBROKEN, " ")
}

/// Parts by which indented lines are recognized as shell commands.
const COMMANDS: [&str; 5] = [
    "  flowcast ",
    "$ flowcast ",
    "  mpirun ",
    "  srun ",
    "  --mca ",
];

fn broken(line: &str, width: usize, indent: usize) -> String {
    let is_command = line.starts_with("  ") && COMMANDS.iter().any(|part| line.contains(part));
    // A backslash would be part of the comment.
    if is_command && line.contains(" #") {
        return line.to_owned();
    }
    let own = line.len() - line.trim_start_matches(' ').len();
    let (quote, end, indent) = if is_command {
        ('\'', " \\", indent.max(own) + 4)
    } else {
        ('`', "", indent.max(own))
    };
    let (mut lines, mut used, mut is_blank) = (String::new(), end.len(), true);
    for (spaces, word) in words(line, quote) {
        if !is_blank && used + spaces + columns_of(word) > width {
            lines += &format!("{end}\n{:indent$}", "");
            used = indent + end.len();
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

/// Words of a line, with the number of spaces before each. Text between two `quote` characters is one word.
fn words(line: &str, quote: char) -> impl Iterator<Item = (usize, &str)> {
    let mut rest = line;
    std::iter::from_fn(move || {
        let word = rest.trim_start_matches(' ');
        let spaces = rest.len() - word.len();
        let end = quotation_end(word, quote).unwrap_or_else(|| word_end(word));
        rest = &word[end..];
        (end > 0).then_some((spaces, &word[..end]))
    })
}

fn word_end(text: &str) -> usize {
    text.find(' ').unwrap_or(text.len())
}

/// End of the word that starts a text with a quotation.
fn quotation_end(text: &str, quote: char) -> Option<usize> {
    let begin = text[..word_end(text)].find(quote)? + 1;
    let close = begin + text[begin..].find(quote)? + 1;
    Some(close + word_end(&text[close..]))
}

/// Width of the longest word of a text, in columns.
pub(crate) fn longest_word(text: &str) -> usize {
    text.lines()
        .flat_map(|line| words(line, '`'))
        .map(|(_, word)| columns_of(word))
        .max()
        .unwrap_or(0)
}

/// Width of a one-line text in columns. Colours have no width.
pub(crate) fn columns_of(text: &str) -> usize {
    if text.contains('\u{1b}') {
        anstream::adapter::strip_str(text).to_string().width()
    } else {
        text.width()
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
    fn a_copied_command_is_complete() {
        let text = "start it with `mpirun -np 4`, or not";
        assert_eq!(
            wrapped(text, 12, 0),
            "start it\nwith\n`mpirun -np 4`,\nor not"
        );
        assert_eq!(
            wrapped("an `unfinished quotation here", 12, 0),
            "an\n`unfinished\nquotation\nhere"
        );
        assert_eq!(
            wrapped(
                "  flowcast measure clocks --launcher 'mpirun -np 8' --json",
                44,
                0
            ),
            "  flowcast measure clocks --launcher \\\n      'mpirun -np 8' --json"
        );
    }

    #[test]
    fn colours_take_no_columns() {
        assert_eq!(columns_of("\u{1b}[1m\u{1b}[31merror:\u{1b}[0m"), 6);
    }
}
