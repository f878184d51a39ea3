//! Commands that can be pasted into a POSIX shell.

use std::borrow::Cow;

/// Quotes a word in single quotes, unless it contains only letters, digits and signs that no shell expands.
pub fn shell_word(word: &str) -> Cow<'_, str> {
    if !word.is_empty()
        && !word.starts_with('=')
        && word
            .chars()
            .all(|letter| letter.is_alphanumeric() || "_-+./:@%,=".contains(letter))
    {
        return Cow::Borrowed(word);
    }
    // A quote inside ends the quotes, stands escaped, and begins them again.
    Cow::Owned(format!("'{}'", word.replace('\'', "'\\''")))
}

/// Joins the words of a command into one line, each quoted if necessary.
pub fn command_line(words: impl IntoIterator<Item: AsRef<str>>) -> String {
    let words = words.into_iter();
    let words: Vec<String> = words
        .map(|word| shell_word(word.as_ref()).into_owned())
        .collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_a_shell_would_change_are_quoted() {
        let plain = ["predict", "--set", "nic.latency=1us", "1,2", "a/b.dim", "ü"];
        assert_eq!(
            command_line(plain),
            "predict --set nic.latency=1us 1,2 a/b.dim ü"
        );
        for (word, quoted) in [
            ("", "''"),
            ("infiniband*", "'infiniband*'"),
            ("my net.toml", "'my net.toml'"),
            ("it's", "'it'\\''s'"),
            ("$HOME", "'$HOME'"),
            ("a;b", "'a;b'"),
            ("`x`", "'`x`'"),
            ("compute[rank=2]", "'compute[rank=2]'"),
            ("~/net.toml", "'~/net.toml'"),
            ("=ls", "'=ls'"),
            ("a\"b\\c", "'a\"b\\c'"),
        ] {
            assert_eq!(shell_word(word), quoted);
        }
    }
}
