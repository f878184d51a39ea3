//! Shared secret of both ends of a conversation, by which they recognise each other.
//!
//! It is sent in clear text: it keeps strangers out, but does not protect against eavesdroppers.

use std::{fmt, hint::black_box, str::FromStr};

use thiserror::Error;

/// Length of a token, in bytes.
pub const TOKEN: usize = 16;

/// A secret of 16 bytes; as text, 32 hexadecimal digits.
///
/// ```
/// use flowcast_rails::token::Token;
///
/// let token: Token = "000102030405060708090a0b0c0d0e0f".parse().unwrap();
/// assert_eq!(format!("{token:?}"), "Token(..)", "it is a secret");
/// assert!("0001".parse::<Token>().is_err());
/// ```
#[derive(Clone, Copy)]
pub struct Token([u8; TOKEN]);

/// Error for a text that is not a token.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("found a token of {0} characters, expected 32 hexadecimal digits")]
pub struct TokenError(usize);

impl Token {
    /// Creates a token from these bytes, which should be hard to guess.
    pub const fn new(bytes: [u8; TOKEN]) -> Token {
        Token(bytes)
    }

    /// Bytes of the token as they are sent, [`TOKEN`] of them.
    pub const fn bytes(&self) -> &[u8; TOKEN] {
        &self.0
    }

    /// Returns `true` if the bytes are equal. The time of the comparison does not reveal the position of a difference.
    pub fn is(&self, shown: &[u8; TOKEN]) -> bool {
        let difference = self
            .0
            .iter()
            .zip(shown)
            .fold(0, |all, (own, shown)| black_box(all | (own ^ shown)));
        difference == 0
    }
}

impl PartialEq for Token {
    fn eq(&self, other: &Token) -> bool {
        self.is(&other.0)
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl FromStr for Token {
    type Err = TokenError;

    fn from_str(text: &str) -> Result<Token, TokenError> {
        let wrong = || TokenError(text.chars().count());
        if text.len() != 2 * TOKEN || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(wrong());
        }
        let mut bytes = [0; TOKEN];
        for (byte, at) in bytes.iter_mut().zip((0..).step_by(2)) {
            *byte = u8::from_str_radix(&text[at..at + 2], 16).map_err(|_| wrong())?;
        }
        Ok(Token(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_reads_back_equal_and_differs_from_others() {
        let token = Token::new([7, 255, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13]);
        assert_eq!(token.to_string().parse::<Token>().unwrap(), token);
        for at in 0..TOKEN {
            let mut other = *token.bytes();
            other[at] ^= 1;
            assert!(!token.is(&other));
        }
        assert_eq!(format!("{token:?}"), "Token(..)");
        for text in [
            "",
            "0",
            "zz00000000000000000000000000000000",
            "+123456789abcdef0123456789abcdef",
            "ää",
        ] {
            assert!(text.parse::<Token>().is_err(), "{text}");
        }
    }
}
