//! Names from files. They appear in terminals, pages and tables, and may come from anyone.

use crate::error::{NetworkError, refused};

/// `true` if a character is not visible: it controls the terminal, or it reverses or hides adjacent text.
pub fn is_hidden(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Rejects a name with characters beyond visible text: a line end, an escape sequence or a change of direction.
///
/// # Errors
/// Names the field and the first such character.
pub fn check_name(field: &str, name: &str) -> Result<(), NetworkError> {
    match name.chars().find(|character| is_hidden(*character)) {
        None => Ok(()),
        Some(hidden) => Err(refused(
            field,
            format!("the character {}", hidden.escape_unicode()),
            "one line of text",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_text_of_any_language_on_one_line() {
        for name in [
            "gige-tcp",
            "Gigabit Ethernet, 2×1 GB/s",
            "сеть",
            "网络",
            "شبكة",
        ] {
            assert!(check_name("name", name).is_ok(), "{name}");
        }
        for name in [
            "x\nname: 1 ns",
            "\x1b[31m",
            "x\r",
            "x\u{9b}1m",
            "x\u{202e}y",
            "\u{2066}x",
            "x\0",
        ] {
            assert!(
                check_name("name", name)
                    .unwrap_err()
                    .to_string()
                    .starts_with("name: found the character "),
                "{name:?}"
            );
        }
    }
}
