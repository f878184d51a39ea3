//! What users read of an error.

use thiserror::Error;

/// Something outside the input is missing: a port, a right, a program, a library.
#[derive(Debug, Error)]
#[error("{0}")]
pub struct EnvironmentLacks(pub String);

/// An error with its causes. A cause that the text before it ends with already, as that of an error that shows its
/// source, is not repeated.
pub fn text_of(error: &anyhow::Error) -> String {
    error
        .chain()
        .map(|cause| cause.to_string().trim_end().to_owned())
        .fold(String::new(), |text, cause| match text.is_empty() {
            true => cause,
            false if text.ends_with(&cause) => text,
            false => format!("{text}: {cause}"),
        })
}

#[cfg(test)]
mod tests {
    use anyhow::Context;

    use super::*;

    #[test]
    fn a_cause_is_said_once() {
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
