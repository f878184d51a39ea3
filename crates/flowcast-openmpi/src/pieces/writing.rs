//! Long messages written into the receiver's memory, a part by each network.

use std::{
    cell::Cell,
    ffi::{c_int, c_void},
    ptr,
    sync::atomic::{AtomicI32, AtomicU32, Ordering},
};

use flowcast_scheduler::RailSet;

use super::RailParts;
use crate::{
    NoPanic,
    bindings::{BtlModule, Endpoint, RdmaCompletion, SUCCESS},
    peers::RailPeer,
    state::State,
};

/// ob1's arguments of a PUT.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PutArguments {
    pub module: *mut BtlModule,
    pub endpoint: *mut Endpoint,
    pub local_address: *mut c_void,
    pub remote_address: u64,
    pub local_handle: *mut c_void,
    pub remote_handle: *mut c_void,
    pub flags: c_int,
    pub order: c_int,
    pub callback: Option<RdmaCompletion>,
    pub context: *mut c_void,
    pub data: *mut c_void,
}

/// A PUT whose parts are in flight.
struct PutInParts {
    left: AtomicU32,
    status: AtomicI32,
    rails: RailSet,
    arguments: PutArguments,
}

thread_local! {
    /// Rails of the PUT whose completion ob1 is handling, for the FIN that ob1 sends meanwhile.
    static FINISHED_PUT: Cell<RailSet> = const { Cell::new(RailSet::NONE) };
}

/// Rails that ob1's current FIN has to follow. If a PUT has just completed, these are its rails, because its FIN is the
/// first one that ob1 sends. For a FIN that ob1 had to postpone, these are all rails that may have a PUT to this peer in
/// flight.
pub(crate) fn rails_of_fin(peer: &RailPeer) -> RailSet {
    match FINISHED_PUT.replace(RailSet::NONE) {
        RailSet::NONE => peer.rails_with_puts(),
        rails => rails,
    }
}

/// Records that there was no room for ob1's message. If that was the FIN of the PUT that has just completed, the next FIN
/// belongs to another PUT.
pub(crate) fn no_room() {
    FINISHED_PUT.set(RailSet::NONE);
}

/// Writes into the receiver's memory over several rails, as `btl_put` would.
///
/// # Safety
/// The arguments are ob1's; the rails reach the peer and can write without registering memory.
pub(crate) unsafe fn put(
    state: &State,
    peer: &RailPeer,
    parts: &RailParts,
    arguments: PutArguments,
) -> c_int {
    let rails = parts
        .all()
        .iter()
        .fold(RailSet::NONE, |set, part| set.with(part.rail));
    peer.has_puts_on(rails);
    let putting = Box::into_raw(Box::new(PutInParts {
        left: AtomicU32::new(parts.all().len() as u32 + 1),
        status: AtomicI32::new(SUCCESS),
        rails,
        arguments,
    }));
    for part in parts.all() {
        let rail = state.rail(part.rail);
        // SAFETY: guaranteed by the caller.
        let done = unsafe {
            let original = rail
                .original
                .put
                .expect("only rails with a put are given a part");
            original(
                rail.module,
                peer.endpoint(part.rail),
                arguments.local_address.byte_add(part.offset),
                arguments.remote_address + part.offset as u64,
                arguments.local_handle,
                arguments.remote_handle,
                part.length,
                arguments.flags,
                arguments.order,
                Some(part_is_written),
                ptr::null_mut(),
                putting.cast(),
            )
        };
        if done != SUCCESS {
            // SAFETY: alive until the last part is written.
            unsafe { a_part_is_written(putting, done) };
        }
    }
    // SAFETY: the same as above; this removes the caller's own count.
    unsafe { a_part_is_written(putting, SUCCESS) };
    SUCCESS
}

unsafe extern "C-unwind" fn part_is_written(
    _: *mut BtlModule,
    _: *mut Endpoint,
    _: *mut c_void,
    _: *mut c_void,
    _: *mut c_void,
    data: *mut c_void,
    status: c_int,
) {
    let _no_panic = NoPanic;
    // SAFETY: the data of `put`, alive until the last part is written.
    unsafe { a_part_is_written(data.cast(), status) }
}

/// # Safety
/// `putting` is alive.
unsafe fn a_part_is_written(putting: *mut PutInParts, status: c_int) {
    // SAFETY: guaranteed by the caller; the last caller has exclusive access.
    unsafe {
        if status != SUCCESS {
            (*putting).status.store(status, Ordering::Relaxed);
        }
        if (*putting).left.fetch_sub(1, Ordering::AcqRel) != 1 {
            return;
        }
        let putting = Box::from_raw(putting);
        let PutArguments {
            module,
            endpoint,
            local_address,
            local_handle,
            callback,
            context,
            data,
            ..
        } = putting.arguments;
        let status = putting.status.load(Ordering::Relaxed);
        // ob1 sends its FIN in this call, and another PUT may complete inside it.
        let before = FINISHED_PUT.replace(putting.rails);
        if let Some(callback) = callback {
            callback(
                module,
                endpoint,
                local_address,
                local_handle,
                context,
                data,
                status,
            );
        }
        FINISHED_PUT.set(before);
    }
}
