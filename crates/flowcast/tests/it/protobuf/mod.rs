//! Protobuf messages decoded without knowledge of their types.

/// A field's value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Value {
    Varint(u64),
    Fixed(u64),
    Bytes(Vec<u8>),
}

/// Fields in order; `None` if the bytes are not a whole message.
pub(crate) fn fields(mut bytes: &[u8]) -> Option<Vec<(u64, Value)>> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes)?;
        let value = match key & 7 {
            0 => Value::Varint(varint(&mut bytes)?),
            1 => {
                let (value, rest) = bytes.split_first_chunk::<8>()?;
                bytes = rest;
                Value::Fixed(u64::from_le_bytes(*value))
            }
            2 => {
                let length = varint(&mut bytes)? as usize;
                let (value, rest) = bytes.split_at_checked(length)?;
                bytes = rest;
                Value::Bytes(value.to_vec())
            }
            _ => return None,
        };
        fields.push((key >> 3, value));
    }
    Some(fields)
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7F) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

/// The only value of a field, if there is exactly one.
pub(crate) fn one(fields: &[(u64, Value)], number: u64) -> Option<&Value> {
    let mut found = fields
        .iter()
        .filter(|(field, _)| *field == number)
        .map(|(_, value)| value);
    found.next().filter(|_| found.next().is_none())
}
