//! Long messages that are written into the receiver's memory, each network its part.

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
    /// The rails of the PUT whose completion ob1 is being told, for the FIN that it sends meanwhile.
    static FINISHED_PUT: Cell<RailSet> = const { Cell::new(RailSet::NONE) };
}

/// The rails that the FIN which ob1 now sends has to follow: those of the PUT that has just ended, whose FIN is the first that ob1
/// sends, or all that may have one in flight to this peer for a FIN that ob1 had to put off.
pub(crate) fn rails_of_fin(peer: &RailPeer) -> RailSet {
    match FINISHED_PUT.replace(RailSet::NONE) {
        RailSet::NONE => peer.rails_with_puts(),
        rails => rails,
    }
}

/// There was no room for what ob1 wanted to send. If it was the FIN of the PUT that has just ended, the next one is another's.
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
        // SAFETY: the caller's.
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
            // SAFETY: alive until the last part is through.
            unsafe { a_part_is_written(putting, done) };
        }
    }
    // SAFETY: as above; this was the caller's own count.
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
    // SAFETY: what `put` gave; alive until the last part is through.
    unsafe { a_part_is_written(data.cast(), status) }
}

/// # Safety
/// `putting` is alive.
unsafe fn a_part_is_written(putting: *mut PutInParts, status: c_int) {
    // SAFETY: the caller's; whoever comes last has it alone.
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
        // ob1 sends its FIN in this call, and may have another PUT end inside of it.
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
