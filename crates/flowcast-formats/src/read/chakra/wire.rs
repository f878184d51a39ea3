//! Encoding of Protocol Buffers: fields of four kinds.

/// Value of a field.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Value<'a> {
    /// Number of variable length.
    Number(u64),
    /// Eight bytes, least significant first.
    Eight(u64),
    /// Four bytes, least significant first.
    Four(u32),
    /// Text, message or packed numbers.
    Bytes(&'a [u8]),
}

/// Reads a number of variable length and moves `at` past it.
pub(super) fn number(bytes: &[u8], at: &mut usize) -> Option<u64> {
    flowcast_recording::format::varint(bytes, at)
}

/// Reads a length-prefixed message and moves `at` past it.
pub(super) fn message<'a>(bytes: &'a [u8], at: &mut usize) -> Option<&'a [u8]> {
    let length = usize::try_from(number(bytes, at)?).ok()?;
    let message = bytes.get(*at..at.checked_add(length)?)?;
    *at += length;
    Some(message)
}

/// Reads the next field of a message: its number and value.
pub(super) fn field<'a>(bytes: &'a [u8], at: &mut usize) -> Option<(u32, Value<'a>)> {
    let tag = number(bytes, at)?;
    let field = u32::try_from(tag >> 3).ok().filter(|field| *field > 0)?;
    let value = match tag & 7 {
        0 => Value::Number(number(bytes, at)?),
        1 => Value::Eight(u64::from_le_bytes(take(bytes, at)?)),
        2 => Value::Bytes(message(bytes, at)?),
        5 => Value::Four(u32::from_le_bytes(take(bytes, at)?)),
        _ => return None,
    };
    Some((field, value))
}

fn take<const N: usize>(bytes: &[u8], at: &mut usize) -> Option<[u8; N]> {
    let taken = bytes.get(*at..at.checked_add(N)?)?.try_into().ok()?;
    *at += N;
    Some(taken)
}

impl<'a> Value<'a> {
    /// Returns the value if it is a whole number.
    pub(super) fn whole(self) -> Option<u64> {
        match self {
            Value::Number(number) | Value::Eight(number) => Some(number),
            Value::Four(number) => Some(u64::from(number)),
            Value::Bytes(_) => None,
        }
    }

    /// Returns the value if it is bytes.
    pub(super) fn bytes(self) -> Option<&'a [u8]> {
        if let Value::Bytes(bytes) = self {
            Some(bytes)
        } else {
            None
        }
    }

    /// Appends the numbers of a repeated field, packed or not.
    pub(super) fn numbers(self, list: &mut Vec<u64>) -> Option<()> {
        match self {
            Value::Bytes(packed) => {
                let mut at = 0;
                while at < packed.len() {
                    list.push(number(packed, &mut at)?);
                }
            }
            other => list.push(other.whole()?),
        }
        Some(())
    }
}

/// Returns the numbers of a message that contains a list: its repeated field 1.
pub(super) fn list(message: &[u8]) -> Option<Vec<u64>> {
    let (mut numbers, mut at) = (Vec::new(), 0);
    while at < message.len() {
        let (_, value) = field(message, &mut at)?;
        value.numbers(&mut numbers)?;
    }
    Some(numbers)
}
