//! Structures in Thrift's compact protocol, limited to the needs of Parquet's headers.
//!
//! A field begins with a byte: the difference to the number of the previous field, and the type. Numbers are zigzag varints;
//! a structure ends with 0.

use crate::varint::push_varint;

/// A structure under construction. Fields are added in the order of their numbers.
#[derive(Debug, Clone, Default)]
pub(super) struct Struct {
    bytes: Vec<u8>,
    last: u8,
}

mod kind {
    pub(super) const INT32: u8 = 5;
    pub(super) const INT64: u8 = 6;
    pub(super) const BINARY: u8 = 8;
    pub(super) const LIST: u8 = 9;
    pub(super) const STRUCT: u8 = 12;
}

impl Struct {
    /// Adds a number of 32 bits.
    pub(super) fn int32(mut self, field: u8, value: i64) -> Struct {
        self.begin(field, kind::INT32);
        self.zigzag(value);
        self
    }

    /// Adds a number of 64 bits.
    pub(super) fn integer(mut self, field: u8, value: i64) -> Struct {
        self.begin(field, kind::INT64);
        self.zigzag(value);
        self
    }

    /// Adds a text in UTF-8, preceded by its length in bytes.
    pub(super) fn text(mut self, field: u8, text: &str) -> Struct {
        self.begin(field, kind::BINARY);
        self.put_text(text);
        self
    }

    /// Adds a nested structure.
    pub(super) fn structure(mut self, field: u8, inner: Struct) -> Struct {
        self.begin(field, kind::STRUCT);
        self.bytes.extend(inner.finished());
        self
    }

    /// Adds a list of structures.
    pub(super) fn structs(mut self, field: u8, inner: Vec<Struct>) -> Struct {
        self.begin_list(field, kind::STRUCT, inner.len());
        inner
            .into_iter()
            .for_each(|inner| self.bytes.extend(inner.finished()));
        self
    }

    /// Adds a list of numbers of 32 bits.
    pub(super) fn integers(mut self, field: u8, values: &[i64]) -> Struct {
        self.begin_list(field, kind::INT32, values.len());
        values.iter().for_each(|value| self.zigzag(*value));
        self
    }

    /// Adds a list of texts.
    pub(super) fn texts(mut self, field: u8, texts: &[&str]) -> Struct {
        self.begin_list(field, kind::BINARY, texts.len());
        texts.iter().for_each(|text| self.put_text(text));
        self
    }

    /// Ends the structure and returns its bytes.
    pub(super) fn finished(mut self) -> Vec<u8> {
        self.bytes.push(0);
        self.bytes
    }

    fn begin(&mut self, field: u8, kind: u8) {
        debug_assert!(
            field > self.last && field - self.last < 16,
            "fields follow each other"
        );
        self.bytes.push((field - self.last) << 4 | kind);
        self.last = field;
    }

    fn begin_list(&mut self, field: u8, element: u8, len: usize) {
        self.begin(field, kind::LIST);
        match u8::try_from(len) {
            Ok(len) if len < 15 => self.bytes.push(len << 4 | element),
            _ => {
                self.bytes.push(0xF0 | element);
                push_varint(&mut self.bytes, len as u64);
            }
        }
    }

    fn put_text(&mut self, text: &str) {
        push_varint(&mut self.bytes, text.len() as u64);
        self.bytes.extend_from_slice(text.as_bytes());
    }

    fn zigzag(&mut self, value: i64) {
        push_varint(&mut self.bytes, (value << 1 ^ value >> 63) as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_numbered_by_distance_and_numbers_are_zigzag() {
        let bytes = Struct::default()
            .int32(1, -1)
            .integer(4, 150)
            .text(5, "ab")
            .finished();
        assert_eq!(bytes, [0x15, 1, 0x36, 0xAC, 0x02, 0x18, 2, b'a', b'b', 0]);
        let bytes = Struct::default()
            .integers(2, &[0, 3])
            .structs(3, vec![Struct::default(); 15])
            .finished();
        assert_eq!(bytes[..5], [0x29, 0x25, 0, 6, 0x19]);
        assert_eq!(bytes[5..7], [0xFC, 15]);
    }
}
