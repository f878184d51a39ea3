//! Texts of errors for users.

use thiserror::Error;

/// Error for something outside of the input that is missing: a port, a permission, a program, a library.
#[derive(Debug, Error)]
#[error("{0}")]
pub struct EnvironmentLacks(pub String);

/// Text of an error with its causes. A cause is not repeated if the text before it already ends with it, as in an error that
/// shows its source. A found value that is empty is called nothing.
pub fn text_of(error: &anyhow::Error) -> String {
    let text = error
        .chain()
        .map(|cause| cause.to_string().trim_end().to_owned())
        .fold(String::new(), |text, cause| match at_line(&cause) {
            _ if text.is_empty() => cause,
            _ if text.ends_with(&cause) => text,
            Some(place) => format!("{text}:{place}"),
            None => format!("{text}: {cause}"),
        });
    const EMPTY: [(&str, &str); 4] = [
        ("found , ", "found nothing, "),
        (" ``, ", " nothing, "),
        (" \"\", ", " nothing, "),
        ("found `` ", "found no "),
    ];
    EMPTY
        .iter()
        .fold(text, |text, (empty, words)| text.replace(empty, words))
}

/// The rest of a text such as `line 3: found ..`, behind the first word.
fn at_line(cause: &str) -> Option<&str> {
    let place = cause.strip_prefix("line ")?;
    place
        .starts_with(|first: char| first.is_ascii_digit())
        .then_some(place)
}

#[cfg(test)]
mod tests {
    use anyhow::Context;

    use super::*;

    #[test]
    fn an_empty_value_is_called_nothing() {
        let text = |found: &str| text_of(&anyhow::anyhow!("found {found}, expected x"));
        for found in ["", "``", "\"\""] {
            assert_eq!(text(found), "found nothing, expected x");
        }
        assert_eq!(text("time_s = ``"), "found time_s = nothing, expected x");
        assert_eq!(text("`` ranks"), "found no ranks, expected x");
    }

    #[test]
    fn a_cause_is_printed_once() {
        let cause = || anyhow::Error::new(std::io::Error::other("found 3, expected 4\n"));
        let twice = cause().context("line 2: found 3, expected 4");
        assert_eq!(text_of(&twice), "line 2: found 3, expected 4");
        assert_eq!(
            text_of(&cause().context("a.toml")),
            "a.toml: found 3, expected 4"
        );
        let wrong = flowcast::model::network::Network::from_toml("schema = 7\n", &[])
            .context("a.toml")
            .unwrap_err();
        assert_eq!(
            text_of(&wrong).matches("invalid type").count(),
            1,
            "{}",
            text_of(&wrong)
        );
    }
}
