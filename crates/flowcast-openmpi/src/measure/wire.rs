//! Messages of the measurement: active messages on a tag of our own, beside those of ob1.
//!
//! | kind | from | to | body |
//! |---|---|---|---|
//! | invite | rank 0 | partner | |
//! | ready | partner | rank 0 | the partner's host name |
//! | ping | rank 0 | partner | padding, up to the measured size |
//! | pong | partner | rank 0 | padding, up to the same size |
//! | done | rank 0 | partner | |
//! | results | each rank | two others | parameters, a line for each rail |

use std::{
    collections::VecDeque,
    ffi::c_int,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use crate::{
    bindings::{
        BtlModule, DES_ALWAYS_CALLBACK, DES_BTL_OWNERSHIP, DES_PRIORITY, Descriptor,
        ERR_RESOURCE_BUSY, Endpoint, NO_ORDER, ProcessName, TAG_MAX,
    },
    library::OpenMpiLibrary,
    state::{Original, state},
};

/// Our tag, above the tags of Open MPI's BTLs (0x20), ob1 (0x40), one-sided operations (0x60) and users (0x80).
const TAG: u8 = 0xF5;
const _: () = assert!((TAG as usize) < TAG_MAX);

const MAGIC: u32 = 0x464C_4F57;

/// Length of a message without a body, in bytes; also the smallest size that can be measured.
pub(super) const HEADER: usize = 28;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum WireKind {
    Invite = 1,
    Ready = 2,
    Ping = 3,
    Pong = 4,
    Done = 5,
    Results = 6,
}

/// Header of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct WireHeader {
    pub kind: WireKind,
    pub from: ProcessName,
    /// Number of the round trip, from 0.
    pub round: u32,
    /// Number of pings before the pong.
    pub of: u32,
    /// Length of the body without padding, in bytes.
    pub body: u32,
}

impl WireHeader {
    fn bytes(&self) -> [u8; HEADER] {
        [
            MAGIC,
            self.kind as u32,
            self.from.jobid,
            self.from.vpid,
            self.round,
            self.of,
            self.body,
        ]
        .map(u32::to_le_bytes)
        .as_flattened()
        .try_into()
        .expect("a word has four bytes")
    }

    fn read(bytes: &[u8]) -> Option<WireHeader> {
        let words: [[u8; 4]; HEADER / 4] = bytes.get(..HEADER)?.as_chunks().0.try_into().ok()?;
        let [MAGIC, kind, jobid, vpid, round, of, body] = words.map(u32::from_le_bytes) else {
            return None;
        };
        let kinds = [
            WireKind::Invite,
            WireKind::Ready,
            WireKind::Ping,
            WireKind::Pong,
            WireKind::Done,
            WireKind::Results,
        ];
        let kind = kinds.into_iter().find(|known| *known as u32 == kind)?;
        Some(WireHeader {
            kind,
            from: ProcessName { jobid, vpid },
            round,
            of,
            body,
        })
    }
}

#[derive(Debug)]
pub(super) struct WireReceived {
    pub header: WireHeader,
    pub body: Vec<u8>,
    /// Length of the message with padding, in bytes.
    pub size: usize,
    /// Network by which the message arrived.
    pub by: *mut BtlModule,
}

// SAFETY: a module belongs to its BTL, which has its own locks.
unsafe impl std::marker::Send for WireReceived {}

static INBOX: Mutex<VecDeque<WireReceived>> = Mutex::new(VecDeque::new());
/// Length of `INBOX`. It is read at each progress call, even after the measurement, and avoids a lock there.
static WAITING: AtomicUsize = AtomicUsize::new(0);

/// Removes and returns the oldest message.
pub(super) fn take() -> Option<WireReceived> {
    let oldest = INBOX
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .pop_front()?;
    WAITING.fetch_sub(1, Ordering::Relaxed);
    Some(oldest)
}

#[inline]
pub(super) fn is_waiting() -> bool {
    WAITING.load(Ordering::Relaxed) > 0
}

pub(super) fn listen(library: &OpenMpiLibrary) {
    library.listen(TAG, receive);
}

fn receive(by: *mut BtlModule, bytes: &[u8]) {
    let Some(header) = WireHeader::read(bytes) else {
        return;
    };
    let body = bytes
        .get(HEADER..HEADER + header.body as usize)
        .unwrap_or_default()
        .to_vec();
    let received = WireReceived {
        header,
        body,
        size: bytes.len(),
        by,
    };
    WAITING.fetch_add(1, Ordering::Relaxed);
    INBOX
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .push_back(received);
}

/// A network and an endpoint, for messages that bypass the hooks.
#[derive(Debug, Clone, Copy)]
pub(super) struct WireRoute {
    module: *mut BtlModule,
    endpoint: *mut Endpoint,
    functions: Original,
    longest: usize,
}

impl WireRoute {
    /// Creates a route over this network. Returns `None` if it cannot send.
    ///
    /// # Safety
    /// `module` is an initialised BTL module, and `endpoint` belongs to it.
    pub(super) unsafe fn new(module: *mut BtlModule, endpoint: *mut Endpoint) -> Option<WireRoute> {
        // SAFETY: guaranteed by the caller.
        let fields = unsafe { &*module };
        let original = state().and_then(|state| Some(state.rail(state.rail_of(module)?).original));
        Some(WireRoute {
            module,
            endpoint,
            functions: original.or_else(|| Original::read(fields))?,
            longest: fields.btl_max_send_size,
        })
    }

    /// Sends a message, padded to `size` bytes. Returns `false` if the network has no free descriptor or cannot send it.
    pub(super) fn send(&self, header: WireHeader, body: &[u8], size: usize) -> bool {
        let size = size.max(HEADER + body.len());
        if size > self.longest {
            return false;
        }
        let flags = DES_PRIORITY | DES_BTL_OWNERSHIP | DES_ALWAYS_CALLBACK;
        // SAFETY: a network and its endpoint; a segment of `size` bytes, which are all written.
        unsafe {
            let functions = &self.functions;
            let descriptor = (functions.alloc)(self.module, self.endpoint, NO_ORDER, size, flags);
            if descriptor.is_null() {
                return false;
            }
            let segment = (*(*descriptor).des_segments).seg_addr;
            segment.write_bytes(0, size);
            segment.copy_from(header.bytes().as_ptr(), HEADER);
            segment.add(HEADER).copy_from(body.as_ptr(), body.len());
            (*descriptor).des_cbfunc = Some(sent);
            let done = (functions.send)(self.module, self.endpoint, descriptor, TAG);
            if done < 0 && done != ERR_RESOURCE_BUSY {
                (functions.free)(self.module, descriptor);
                return false;
            }
            true
        }
    }
}

/// Callback of a sent message. The BTL frees the descriptor.
unsafe extern "C-unwind" fn sent(
    _: *mut BtlModule,
    _: *mut Endpoint,
    _: *mut Descriptor,
    _: c_int,
) {
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_read_back_and_others_are_not_ours() {
        let from = ProcessName { jobid: 7, vpid: 3 };
        let header = WireHeader {
            kind: WireKind::Pong,
            from,
            round: 9,
            of: 8,
            body: 5,
        };
        let mut bytes = header.bytes();
        assert_eq!(WireHeader::read(&bytes), Some(header));
        assert_eq!(WireHeader::read(&bytes[..HEADER - 1]), None);
        bytes[4] = 99;
        assert_eq!(WireHeader::read(&bytes), None);
        bytes[0] ^= 1;
        assert_eq!(WireHeader::read(&bytes), None);
    }
}
