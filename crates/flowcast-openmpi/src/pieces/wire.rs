//! Wire format of pieces, and their reassembly.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, OnceLock, PoisonError},
};

use thiserror::Error;

use crate::{
    bindings::{BtlModule, BtlSegment, ProcessName, TAG_MAX},
    connections::AddressKey,
    library::{self, OpenMpiLibrary},
    state::state,
};

/// Our tag, beside the measurement's tag and above Open MPI's own.
pub(super) const TAG: u8 = 0xF6;
const _: () = assert!((TAG as usize) < TAG_MAX);
const MAGIC: u32 = 0x464C_5043;
/// Length of a piece's header, in bytes.
pub(super) const HEADER: usize = 32;
/// Header of a piece, which identifies its message and the part of the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PieceHeader {
    pub from: ProcessName,
    /// Number of the message, among those of its sender.
    pub number: u32,
    /// ob1's tag.
    pub tag: u8,
    /// Number of pieces of the message.
    pub of: u8,
    /// Length of the whole message, in bytes.
    pub total: u32,
    /// Offset of this piece in the message, in bytes.
    pub offset: u32,
    /// Address of the sender on the rail of this piece.
    pub address: AddressKey,
}

impl PieceHeader {
    pub(super) fn bytes(&self) -> [u8; HEADER] {
        [
            MAGIC,
            self.from.jobid,
            self.from.vpid,
            self.number,
            u32::from(self.tag) << 8 | u32::from(self.of),
            self.total,
            self.offset,
            self.address.0,
        ]
        .map(u32::to_le_bytes)
        .as_flattened()
        .try_into()
        .expect("a word has four bytes")
    }

    fn read(bytes: &[u8]) -> Option<PieceHeader> {
        let words: [[u8; 4]; HEADER / 4] = bytes.get(..HEADER)?.as_chunks().0.try_into().ok()?;
        let [MAGIC, jobid, vpid, number, kind, total, offset, address] =
            words.map(u32::from_le_bytes)
        else {
            return None;
        };
        Some(PieceHeader {
            from: ProcessName { jobid, vpid },
            number,
            tag: (kind >> 8) as u8,
            of: kind as u8,
            total,
            offset,
            address: AddressKey(address),
        })
    }
}

/// A message of which some pieces have arrived.
#[derive(Debug)]
struct Incomplete {
    /// Content, stored in words because ob1 reads structs from it.
    words: Vec<u64>,
    tag: u8,
    of: u8,
    total: usize,
    /// Offset and length of the pieces that have arrived, in bytes.
    came: Vec<(usize, usize)>,
}

/// Fault of a received piece. This component never sends such pieces.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
enum PieceError {
    #[error(
        "found {0} bytes that are not a piece of a message, expected a header that begins with FLPC"
    )]
    Header(usize),
    #[error(
        "found a piece of {length} bytes at {offset} that does not fit the earlier pieces of a message of {total} bytes"
    )]
    Piece {
        length: usize,
        offset: usize,
        total: usize,
    },
}

impl Incomplete {
    fn new(header: &PieceHeader) -> Incomplete {
        Incomplete {
            words: vec![0; (header.total as usize).div_ceil(8)],
            tag: header.tag,
            of: header.of,
            total: header.total as usize,
            came: Vec::new(),
        }
    }

    /// Copies a piece to its offset. Fails if it overlaps an earlier piece or does not fit the message.
    fn put(&mut self, header: &PieceHeader, piece: &[u8]) -> Result<(), PieceError> {
        let (offset, length) = (header.offset as usize, piece.len());
        let alike =
            (header.tag, header.of, header.total as usize) == (self.tag, self.of, self.total);
        let is_free = offset + length <= self.total
            && !self
                .came
                .iter()
                .any(|(at, other)| offset < at + other && *at < offset + length);
        self.came.push((offset, length));
        let all: usize = self.came.iter().map(|(_, length)| length).sum();
        let left = usize::from(self.of).checked_sub(self.came.len());
        if !alike || !is_free || left.is_none_or(|left| left == 0 && all < self.total) {
            return Err(PieceError::Piece {
                length,
                offset,
                total: self.total,
            });
        }
        // SAFETY: within the words, for which any bytes are valid.
        unsafe {
            let place = self.words.as_mut_ptr().cast::<u8>().add(offset);
            place.copy_from_nonoverlapping(piece.as_ptr(), length);
        }
        Ok(())
    }
}

/// Messages with missing pieces, keyed by sender and number.
static INCOMPLETE: Mutex<BTreeMap<(u32, u32, u32), Incomplete>> = Mutex::new(BTreeMap::new());
/// Addresses that senders have announced, with their names.
static MET: Mutex<BTreeSet<(u32, u32, AddressKey)>> = Mutex::new(BTreeSet::new());
static LIBRARY: OnceLock<OpenMpiLibrary> = OnceLock::new();

/// Receives pieces from here on, even if this process itself divides no messages.
pub(crate) fn listen(library: &OpenMpiLibrary) {
    LIBRARY.get_or_init(|| *library).listen(TAG, receive);
}

fn receive(by: *mut BtlModule, bytes: &[u8]) {
    let header = PieceHeader::read(bytes).ok_or(PieceError::Header(bytes.len()));
    let joined = header.and_then(|header| {
        meet(&header, by);
        join(&header, &bytes[HEADER..])
    });
    match joined {
        // SAFETY: a BTL has called us, so ob1 listens.
        Ok(Some(whole)) => unsafe { hand_on(by, whole) },
        Ok(None) => {}
        Err(misfit) => library::end_job(&misfit.to_string()),
    }
}

/// Learns the sender's address on the rail by which one of its pieces arrived.
fn meet(header: &PieceHeader, by: *mut BtlModule) {
    let Some(state) = state() else { return };
    let mut met = MET.lock().unwrap_or_else(PoisonError::into_inner);
    let place = (header.from.jobid, header.from.vpid, header.address);
    if !met.contains(&place) && state.introduce(header.from, by, header.address) {
        met.insert(place);
    }
}

/// Adds a piece. Returns the message when its last piece has arrived.
fn join(header: &PieceHeader, piece: &[u8]) -> Result<Option<Incomplete>, PieceError> {
    let mut incomplete = INCOMPLETE.lock().unwrap_or_else(PoisonError::into_inner);
    let key = (header.from.jobid, header.from.vpid, header.number);
    let message = incomplete
        .entry(key)
        .or_insert_with(|| Incomplete::new(header));
    message.put(header, piece)?;
    let is_whole = message.came.len() == usize::from(message.of);
    Ok(if is_whole {
        incomplete.remove(&key)
    } else {
        None
    })
}

/// # Safety
/// ob1 has registered its tags.
unsafe fn hand_on(by: *mut BtlModule, mut whole: Incomplete) {
    let Some(library) = LIBRARY.get() else {
        return;
    };
    let mut segment = BtlSegment {
        seg_addr: whole.words.as_mut_ptr().cast(),
        seg_len: whole.total as u64,
    };
    // SAFETY: guaranteed by the caller; the words contain the message.
    unsafe { library.deliver(by, whole.tag, &mut segment) };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(number: u32, offset: u32) -> PieceHeader {
        PieceHeader {
            from: ProcessName { jobid: 7, vpid: 3 },
            number,
            tag: 0x41,
            of: 2,
            total: 9,
            offset,
            address: AddressKey(0x0A4D_0002),
        }
    }

    #[test]
    fn a_header_is_read_back_and_others_are_not_ours() {
        let mut bytes = header(8, 5).bytes();
        assert_eq!(PieceHeader::read(&bytes), Some(header(8, 5)));
        assert_eq!(PieceHeader::read(&bytes[..HEADER - 1]), None);
        bytes[0] ^= 1;
        assert_eq!(PieceHeader::read(&bytes), None);
    }

    #[test]
    fn pieces_of_several_messages_come_in_any_order() {
        assert!(join(&header(1, 5), b"load").unwrap().is_none());
        assert!(join(&header(2, 0), b"other").unwrap().is_none());
        let whole = join(&header(1, 0), b"a pay").unwrap().unwrap();
        let bytes: Vec<u8> = whole
            .words
            .iter()
            .flat_map(|word| word.to_ne_bytes())
            .collect();
        assert_eq!(&bytes[..9], b"a payload");
        assert!(join(&header(2, 5), b"word").unwrap().is_some());
    }

    #[test]
    fn an_empty_piece_completes_a_message_at_any_position() {
        assert!(join(&header(3, 9), b"").unwrap().is_none());
        assert!(join(&header(3, 0), b"a payload").unwrap().is_some());
    }

    #[test]
    fn pieces_that_do_not_fit_earlier_ones_are_refused() {
        let other = |change: &dyn Fn(&mut PieceHeader)| {
            let mut header = header(4, 5);
            change(&mut header);
            header
        };
        for (second, bytes) in [
            (other(&|_| {}), &b"too long"[..]),
            (other(&|_| {}), b"few"),
            (other(&|header| header.offset = 4), b"again"),
            (other(&|header| header.total = 10), b"word"),
            (other(&|header| header.of = 3), b"word"),
            (other(&|header| header.tag = 0x42), b"word"),
        ] {
            assert!(join(&header(4, 0), b"other").unwrap().is_none());
            assert!(join(&second, bytes).is_err(), "{second:?}");
            INCOMPLETE.lock().unwrap().remove(&(7, 3, 4));
        }
        let none = PieceHeader {
            of: 0,
            ..header(5, 0)
        };
        assert!(join(&none, b"of none").is_err());
    }
}
