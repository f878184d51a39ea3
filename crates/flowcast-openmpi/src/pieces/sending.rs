//! ob1's descriptors, sent in parts.

use std::{
    ffi::c_int,
    ptr,
    sync::atomic::{AtomicU32, Ordering},
};

use flowcast_scheduler::{MAX_RAILS, RailId};

use super::{
    RailPart, RailParts,
    wire::{HEADER, PieceHeader, TAG},
};
use crate::{
    NoPanic,
    bindings::{
        BtlModule, DES_ALWAYS_CALLBACK, DES_BTL_OWNERSHIP, DES_PRIORITY, Descriptor,
        ERR_RESOURCE_BUSY, Endpoint, NO_ORDER, SUCCESS,
    },
    descriptor::{copy_range, length},
    peers::RailPeer,
    state::State,
};

/// Result of `btl_send` when the network no longer needs a descriptor.
const SENT: c_int = 1;

static NEXT_NUMBER: AtomicU32 = AtomicU32::new(0);

/// Arguments of ob1's send, and the requested network.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SendArguments {
    pub asked: RailId,
    pub endpoint: *mut Endpoint,
    pub descriptor: *mut Descriptor,
    pub tag: u8,
}

/// A descriptor of ob1 whose content is in flight in our own descriptors.
struct SendInParts {
    /// Number of parts that are still in flight, plus one until all parts are handed to their networks.
    left: AtomicU32,
    state: &'static State,
    arguments: SendArguments,
}

/// Sends ob1's descriptor in parts, as `btl_send` of the requested network would, with the same result. Returns `None` if
/// there is no room; then nothing was sent.
///
/// # Safety
/// The descriptor is ob1's for this network and endpoint, which is the peer's; the rails reach the peer.
pub(crate) unsafe fn send(
    state: &'static State,
    peer: &RailPeer,
    parts: &RailParts,
    arguments: SendArguments,
) -> Option<c_int> {
    let mut ours = [ptr::null_mut(); MAX_RAILS];
    // SAFETY: guaranteed by the caller; descriptors of the rails that allocated them.
    unsafe {
        for (part, place) in parts.all().iter().zip(&mut ours) {
            *place = room_for(state, peer, part, parts.all().len());
            if place.is_null() {
                release(state, parts, &ours);
                return None;
            }
        }
        fill(state, parts, &ours, &arguments);
        let sending = Box::into_raw(Box::new(SendInParts {
            left: AtomicU32::new(parts.all().len() as u32 + 1),
            state,
            arguments,
        }));
        let tag = if parts.all().len() > 1 {
            TAG
        } else {
            arguments.tag
        };
        for (part, own) in parts.all().iter().zip(ours) {
            (*own).des_cbfunc = Some(part_is_sent);
            (*own).des_cbdata = sending.cast();
            let rail = state.rail(part.rail);
            let done = (rail.original.send)(rail.module, peer.endpoint(part.rail), own, tag);
            if done < 0 && done != ERR_RESOURCE_BUSY {
                // The network has failed. ob1 ends the job when it is notified.
                (rail.original.free)(rail.module, own);
                part_is_through(sending);
            }
        }
        Some(given_out(sending))
    }
}

/// Allocates a descriptor for one of `of` parts of a message, with room for a header if there are several parts.
///
/// # Safety
/// The same as for [`send`].
unsafe fn room_for(state: &State, peer: &RailPeer, part: &RailPart, of: usize) -> *mut Descriptor {
    let rail = state.rail(part.rail);
    let header = if of > 1 { HEADER } else { 0 };
    let flags = DES_PRIORITY | DES_BTL_OWNERSHIP | DES_ALWAYS_CALLBACK;
    // SAFETY: guaranteed by the caller.
    unsafe {
        (rail.original.alloc)(
            rail.module,
            peer.endpoint(part.rail),
            NO_ORDER,
            header + part.length,
            flags,
        )
    }
}

/// Frees the allocated descriptors.
///
/// # Safety
/// Each entry of `ours` is null or a descriptor that the rail of its part has allocated.
unsafe fn release(state: &State, parts: &RailParts, ours: &[*mut Descriptor]) {
    for (part, own) in parts.all().iter().zip(ours) {
        if !own.is_null() {
            let rail = state.rail(part.rail);
            // SAFETY: guaranteed by the caller.
            unsafe { (rail.original.free)(rail.module, *own) };
        }
    }
}

/// Copies the content of a message, and the headers of several parts, into the descriptors of its parts.
///
/// # Safety
/// Each descriptor in `ours` has room for its part, and the descriptor of ob1 contains the whole message.
unsafe fn fill(
    state: &State,
    parts: &RailParts,
    ours: &[*mut Descriptor],
    arguments: &SendArguments,
) {
    let SendArguments {
        descriptor, tag, ..
    } = *arguments;
    // SAFETY: this process, which the library keeps until it ends.
    let from = unsafe { (*(state.library.local_process)()).proc_name };
    let number = NEXT_NUMBER.fetch_add(1, Ordering::Relaxed);
    // SAFETY: guaranteed by the caller.
    unsafe {
        let total = length(descriptor) as u32;
        for (part, own) in parts.all().iter().zip(ours) {
            let mut place = (*(**own).des_segments).seg_addr;
            if parts.all().len() > 1 {
                let header = PieceHeader {
                    from,
                    number,
                    tag,
                    of: parts.all().len() as u8,
                    total,
                    offset: part.offset as u32,
                    address: state.own_addresses[part.rail.index()],
                };
                place.copy_from_nonoverlapping(header.bytes().as_ptr(), HEADER);
                place = place.add(HEADER);
            }
            copy_range(descriptor, part.offset, part.length, place);
        }
    }
}

unsafe extern "C-unwind" fn part_is_sent(
    _: *mut BtlModule,
    _: *mut Endpoint,
    descriptor: *mut Descriptor,
    _: c_int,
) {
    let _no_panic = NoPanic;
    // SAFETY: our descriptor; the message lives until its last part is sent.
    unsafe {
        let sending: *mut SendInParts = (*descriptor).des_cbdata.cast();
        if part_is_through(sending) {
            finish(*Box::from_raw(sending));
        }
    }
}

/// Records that a part was sent. Returns `true` if it was the last.
///
/// # Safety
/// `sending` is alive.
unsafe fn part_is_through(sending: *const SendInParts) -> bool {
    // SAFETY: guaranteed by the caller.
    unsafe { (*sending).left.fetch_sub(1, Ordering::AcqRel) == 1 }
}

/// Completes the hand-over of all parts. Returns the result of `btl_send`.
///
/// # Safety
/// `sending` is alive, and its count still includes the caller.
unsafe fn given_out(sending: *mut SendInParts) -> c_int {
    // SAFETY: guaranteed by the caller; the descriptor is ob1's until ob1 is notified.
    unsafe {
        let flags = (*(*sending).arguments.descriptor).des_flags;
        // From here on another thread may finish.
        if !part_is_through(sending) {
            return SUCCESS;
        }
        let sending = *Box::from_raw(sending);
        if flags & DES_ALWAYS_CALLBACK != 0 {
            finish(sending);
        } else if flags & DES_BTL_OWNERSHIP != 0 {
            free(&sending);
        }
        SENT
    }
}

/// Notifies ob1 that its descriptor is sent.
///
/// # Safety
/// ob1 has not been notified yet.
unsafe fn finish(sending: SendInParts) {
    let SendArguments {
        asked,
        endpoint,
        descriptor,
        ..
    } = sending.arguments;
    let module = sending.state.rail(asked).module;
    // SAFETY: guaranteed by the caller; the flags are read before ob1 may free the descriptor.
    unsafe {
        let owned = (*descriptor).des_flags & DES_BTL_OWNERSHIP != 0;
        if let Some(callback) = (*descriptor).des_cbfunc {
            callback(module, endpoint, descriptor, SUCCESS);
        }
        if owned {
            free(&sending);
        }
    }
}

/// # Safety
/// ob1's descriptor is no longer in use.
unsafe fn free(sending: &SendInParts) {
    let rail = sending.state.rail(sending.arguments.asked);
    // SAFETY: guaranteed by the caller; the rail allocated it.
    unsafe { (rail.original.free)(rail.module, sending.arguments.descriptor) };
}
