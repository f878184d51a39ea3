//! Check of an anchor file before the library reads it. With a wrong number of properties, the library loops for minutes
//! instead of reporting an error.
//!
//! After 46 bytes of numbers, the file has three texts (machine, description, creator), the number of properties in 32 bits,
//! and a name and a value for each property. A text ends in a zero.

/// Number of bytes before the first text.
const NUMBERS: usize = 46;
/// Number of texts: machine, description and creator.
const TEXTS: usize = 3;

/// `true` if the anchor file is long enough for the number of properties in it.
pub(crate) fn has_its_properties(anchor: &[u8]) -> bool {
    let mut rest = anchor.get(NUMBERS..).unwrap_or(&[]);
    for _ in 0..TEXTS {
        let Some(end) = rest.iter().position(|byte| *byte == 0) else {
            return false;
        };
        rest = &rest[end + 1..];
    }
    let Some((count, rest)) = rest.split_first_chunk::<4>() else {
        return false;
    };
    let ends = rest.iter().filter(|byte| **byte == 0).count();
    u64::from(u32::from_le_bytes(*count)) * 2 <= ends as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn anchor(count: u32, texts: &[u8]) -> Vec<u8> {
        [
            &[1; NUMBERS][..],
            b"machine\0\0Score-P 7.1\0",
            &count.to_le_bytes(),
            texts,
        ]
        .concat()
    }

    #[test]
    fn all_declared_properties_are_required() {
        assert!(has_its_properties(&anchor(0, b"")));
        assert!(has_its_properties(&anchor(2, b"a\0true\0b\0\0trailer")));
        assert!(!has_its_properties(&anchor(3, b"a\0true\0b\0\0trailer")));
        assert!(!has_its_properties(&anchor(
            0x0065_7500,
            b"a\0true\0b\0\0trailer"
        )));
        assert!(!has_its_properties(&[1; NUMBERS]));
        assert!(!has_its_properties(b"\x03BOTF2"));
    }
}
