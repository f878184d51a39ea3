//! Texts in the encodings and with the line ends that editors and other systems save.

use std::borrow::Cow;

/// Returns the text of a file in UTF-8, without a byte order mark and with newlines between its lines. A text with a UTF-16
/// mark is decoded from UTF-16. Carriage returns become newlines if they alone end lines. Other bytes are borrowed
/// unchanged.
///
/// ```
/// use flowcast_units::plain_text;
///
/// assert_eq!(*plain_text(b"\xef\xbb\xbfa b"), *b"a b");
/// assert_eq!(*plain_text(b"\xff\xfea\0\n\0"), *b"a\n");
/// assert_eq!(*plain_text(b"a\rb\r"), *b"a\nb\n");
/// assert_eq!(*plain_text(b"a\r\nb"), *b"a\r\nb");
/// ```
pub fn plain_text(bytes: &[u8]) -> Cow<'_, [u8]> {
    let unmarked = match bytes {
        [0xef, 0xbb, 0xbf, text @ ..] => Cow::Owned(text.to_vec()),
        [0xff, 0xfe, text @ ..] => {
            from_utf16(text, u16::from_le_bytes).map_or(bytes.into(), Cow::Owned)
        }
        [0xfe, 0xff, text @ ..] => {
            from_utf16(text, u16::from_be_bytes).map_or(bytes.into(), Cow::Owned)
        }
        _ => bytes.into(),
    };
    if !ends_lines_with_returns(&unmarked) {
        return unmarked;
    }
    unmarked
        .iter()
        .map(|byte| if *byte == b'\r' { b'\n' } else { *byte })
        .collect()
}

fn from_utf16(text: &[u8], unit: fn([u8; 2]) -> u16) -> Option<Vec<u8>> {
    let (pairs, rest) = text.as_chunks();
    let units: Vec<u16> = pairs.iter().map(|pair| unit(*pair)).collect();
    let text = String::from_utf16(&units).ok()?;
    rest.is_empty().then(|| text.into_bytes())
}

/// `true` if the text has no newline but lines that end in carriage returns.
fn ends_lines_with_returns(text: &[u8]) -> bool {
    !text.contains(&b'\n')
        && text.contains(&b'\r')
        && text
            .iter()
            .all(|byte| *byte >= b' ' || matches!(byte, b'\t' | b'\r' | 0x1b))
}

#[cfg(test)]
mod tests {
    use super::plain_text;

    #[test]
    fn bytes_without_a_mark_stay_unchanged() {
        for bytes in [
            &b""[..],
            b"a",
            b"10 %\r20\n",
            b"\x1f\x8b\r",
            b"\xff\xfea",
            b"\xff\xfe\0\xd8",
            b"\xb5\n",
        ] {
            assert_eq!(plain_text(bytes), bytes);
        }
    }

    #[test]
    fn marks_and_carriage_returns_are_removed() {
        let units = "\u{feff}µ\rb".encode_utf16();
        let big: Vec<u8> = units.clone().flat_map(u16::to_be_bytes).collect();
        let little: Vec<u8> = units.flat_map(u16::to_le_bytes).collect();
        for bytes in [big, little, "\u{feff}µ\rb".into()] {
            assert_eq!(*plain_text(&bytes), *"µ\nb".as_bytes());
        }
    }
}
