//! Numbers of variable length: seven bits in each byte, the lowest first; the eighth bit is set if more bytes follow.

/// Appends a number.
pub(crate) fn push_varint(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}
