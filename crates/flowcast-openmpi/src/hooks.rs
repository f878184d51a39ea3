//! Replacements for functions of the networks: the message path.
//!
//! ob1 requests a descriptor from a network (`btl_alloc` if ob1 copies the data, `btl_prepare_src` if the network takes
//! them), writes its header into it and calls `btl_send`. The rail is chosen when the descriptor is allocated. Until the
//! message is sent or freed, the rail's number is stored in the top byte of the descriptor's flags, which Open MPI does not
//! use.
//!
//! Only the start of a message may take another rail: MATCH and RNDV in ob1's terms. A FIN has to follow its PUT on the same
//! connection, or the receiver would treat an incomplete message as complete. ob1 marks the start of a message as urgent
//! (PRIORITY). Acknowledgements and FINs are urgent as well, but request a callback. Those of buffered and RGET messages
//! carry SIGNAL.

use std::ffi::{c_int, c_void};

use flowcast_scheduler::{RailId, RailSet};
use flowcast_units::Bytes;

use crate::{
    NoPanic,
    bindings::{
        BtlModule, DES_ALWAYS_CALLBACK, DES_PRIORITY, DES_SIGNAL, Descriptor, ERR_OUT_OF_RESOURCE,
        ERR_RESOURCE_BUSY, Endpoint, RdmaCompletion, SUCCESS, TAG_CID, TAG_FIN, TAG_LAYER,
        TAG_MATCH, TAG_PML, TAG_RNDV,
    },
    descriptor::{length, note, noted},
    peers::RailPeer,
    pieces::{self, PutArguments, RailParts, SendArguments},
    state::{RailModule, State, state},
};

/// Returns `true` if `btl_alloc` with these flags allocates the first descriptor of a message.
#[inline]
const fn starts_message(flags: u32) -> bool {
    flags & DES_PRIORITY != 0 && flags & (DES_SIGNAL | DES_ALWAYS_CALLBACK) == 0
}

/// Returns `true` if `btl_prepare_src` with these flags prepares the first descriptor of a message. Fragments are not
/// urgent.
#[inline]
const fn starts_prepared_message(flags: u32) -> bool {
    flags & DES_PRIORITY != 0
}

/// Returns the state and the rail of a hooked module. Both exist, because a module is hooked after them.
#[inline]
fn hooked(module: *mut BtlModule) -> (&'static State, RailId) {
    let state = state().expect("networks are hooked when there is a state");
    (state, state.rail_of(module).expect("only rails are hooked"))
}

/// Replaces the functions of a rail.
///
/// # Safety
/// The rail's module is initialised, and the state contains it.
pub(crate) unsafe fn install(rail: &RailModule) {
    // SAFETY: guaranteed by the caller; a function that a network lacks stays absent.
    let module = unsafe { &mut *rail.module };
    module.btl_alloc = Some(alloc);
    module.btl_prepare_src = Some(prepare_src);
    module.btl_send = Some(send);
    module.btl_free = Some(free);
    module.btl_sendi = module.btl_sendi.is_some().then_some(sendi);
    module.btl_put = module.btl_put.is_some().then_some(put);
}

/// Restores the functions of a rail.
///
/// # Safety
/// The same as for [`install`].
pub(crate) unsafe fn remove(rail: &RailModule) {
    // SAFETY: guaranteed by the caller.
    let module = unsafe { &mut *rail.module };
    module.btl_alloc = Some(rail.original.alloc);
    module.btl_prepare_src = Some(rail.original.prepare_src);
    module.btl_send = Some(rail.original.send);
    module.btl_free = Some(rail.original.free);
    module.btl_sendi = rail.original.sendi;
    module.btl_put = rail.original.put;
}

unsafe extern "C-unwind" fn alloc(
    module: *mut BtlModule,
    endpoint: *mut Endpoint,
    order: u8,
    size: usize,
    flags: u32,
) -> *mut Descriptor {
    let _no_panic = NoPanic;
    let (state, asked) = hooked(module);
    if starts_message(flags)
        && !state.divides(size)
        && let Some(peer) = state.peers.find(endpoint)
    {
        let chosen = state.choose(peer, asked, size);
        let rail = state.rail(chosen);
        let to = peer.endpoint(chosen);
        // SAFETY: a rail that reaches the peer; the result is null or a descriptor.
        unsafe {
            let descriptor = (rail.original.alloc)(rail.module, to, order, size, flags);
            if !descriptor.is_null() {
                note(descriptor, chosen);
            }
            return descriptor;
        }
    }
    // SAFETY: the arguments of ob1's call.
    let descriptor =
        unsafe { (state.rail(asked).original.alloc)(module, endpoint, order, size, flags) };
    if descriptor.is_null() {
        pieces::no_room();
    }
    descriptor
}

unsafe extern "C-unwind" fn prepare_src(
    module: *mut BtlModule,
    endpoint: *mut Endpoint,
    convertor: *mut c_void,
    order: u8,
    reserve: usize,
    size: *mut usize,
    flags: u32,
) -> *mut Descriptor {
    let _no_panic = NoPanic;
    let (state, asked) = hooked(module);
    // SAFETY: ob1 passes the size there.
    let length = reserve + unsafe { *size };
    let peer = if starts_prepared_message(flags) && !state.divides(length) {
        state.peers.find(endpoint)
    } else {
        None
    };
    let chosen = peer.map_or(asked, |peer| state.choose(peer, asked, length));
    let to = peer.map_or(endpoint, |peer| peer.endpoint(chosen));
    let rail = state.rail(chosen);
    // SAFETY: the arguments of ob1's call, on a rail that reaches the peer; the result is null or a descriptor.
    unsafe {
        let descriptor =
            (rail.original.prepare_src)(rail.module, to, convertor, order, reserve, size, flags);
        if peer.is_some() && !descriptor.is_null() {
            note(descriptor, chosen);
        }
        descriptor
    }
}

unsafe extern "C-unwind" fn send(
    module: *mut BtlModule,
    endpoint: *mut Endpoint,
    descriptor: *mut Descriptor,
    tag: u8,
) -> c_int {
    let _no_panic = NoPanic;
    let (state, asked) = hooked(module);
    let peer = state.peers.find(endpoint);
    // SAFETY: ob1's descriptor.
    if let Some(chosen) = unsafe { noted(descriptor) } {
        let rail = state.rail(chosen);
        let to = peer.map_or(endpoint, |peer| peer.endpoint(chosen));
        // SAFETY: the rail that allocated the descriptor, and its endpoint of the same peer.
        return unsafe { (rail.original.send)(rail.module, to, descriptor, tag) };
    }
    // The BTL base of 5.0 answers a message over the endpoint that delivered it, which a divided message does not have.
    if let Some(peer) = peer.filter(|_| tag & TAG_LAYER == TAG_PML) {
        // SAFETY: ob1's descriptor, for this network and endpoint.
        unsafe {
            let parts = parts_of_message(state, peer, asked, descriptor, tag);
            let arguments = SendArguments {
                asked,
                endpoint,
                descriptor,
                tag,
            };
            if let Some(parts) = parts {
                match pieces::send(state, peer, &parts, arguments) {
                    Some(done) => return done,
                    // Over one network the FIN could overtake the data that it has to follow. ob1 tries again.
                    None if tag == TAG_FIN => return ERR_OUT_OF_RESOURCE,
                    None => {}
                }
            }
        }
    } else {
        // SAFETY: ob1's descriptor.
        count(state, asked, unsafe { length(descriptor) });
    }
    // SAFETY: the arguments of ob1's call.
    unsafe { (state.rail(asked).original.send)(module, endpoint, descriptor, tag) }
}

/// Chooses and accounts for the parts of a descriptor without a rail. Returns `None` if it should be sent as ob1 requested.
///
/// # Safety
/// A descriptor with its segments.
unsafe fn parts_of_message(
    state: &State,
    peer: &RailPeer,
    asked: RailId,
    descriptor: *const Descriptor,
    tag: u8,
) -> Option<RailParts> {
    // SAFETY: guaranteed by the caller.
    let length = unsafe { length(descriptor) };
    if tag == TAG_FIN {
        count(state, asked, length);
        let rails = pieces::rails_of_fin(peer);
        let follows_itself = rails.without(asked).is_empty();
        return (!follows_itself).then(|| RailParts::behind(rails, length as usize));
    }
    let Some(split) = state.split(peer, length) else {
        let rail = state.moving(peer, asked);
        count(state, rail, length);
        let whole = std::iter::once((rail, length as usize));
        return (rail != asked).then(|| RailParts::new(whole));
    };
    let starts = matches!(tag, TAG_MATCH | TAG_RNDV | TAG_CID);
    if starts {
        state.rail(asked).counters.ask();
    }
    for (rail, piece) in split.pieces() {
        let counters = &state.rail(rail).counters;
        if starts {
            counters.eager(piece.0);
        } else {
            counters.other(piece.0);
        }
    }
    RailParts::divided(&split, asked)
}

/// Accounts for a message whose rail was not our choice.
#[inline]
fn count(state: &State, rail: RailId, bytes: u64) {
    state.rail(rail).counters.other(bytes);
    state.scheduler.account(rail, Bytes(bytes));
}

unsafe extern "C-unwind" fn free(module: *mut BtlModule, descriptor: *mut Descriptor) -> c_int {
    let _no_panic = NoPanic;
    let (state, asked) = hooked(module);
    // SAFETY: ob1's descriptor, returned to the network that allocated it.
    unsafe {
        let rail = state.rail(noted(descriptor).unwrap_or(asked));
        (rail.original.free)(rail.module, descriptor)
    }
}

unsafe extern "C-unwind" fn put(
    module: *mut BtlModule,
    endpoint: *mut Endpoint,
    local_address: *mut c_void,
    remote_address: u64,
    local_handle: *mut c_void,
    remote_handle: *mut c_void,
    size: usize,
    flags: c_int,
    order: c_int,
    callback: Option<RdmaCompletion>,
    context: *mut c_void,
    data: *mut c_void,
) -> c_int {
    let _no_panic = NoPanic;
    let (state, asked) = hooked(module);
    let original = state
        .rail(asked)
        .original
        .put
        .expect("only networks with a put get this function");
    let peer = state.peers.find(endpoint);
    if let Some(peer) = peer
        && let Some(parts) = parts_of_put(state, peer, asked, size)
    {
        let arguments = PutArguments {
            module,
            endpoint,
            local_address,
            remote_address,
            local_handle,
            remote_handle,
            flags,
            order,
            callback,
            context,
            data,
        };
        // SAFETY: ob1's arguments, over rails that reach the peer and register no memory.
        return unsafe { pieces::put(state, peer, &parts, arguments) };
    }
    // SAFETY: the arguments of ob1's call.
    unsafe {
        original(
            module,
            endpoint,
            local_address,
            remote_address,
            local_handle,
            remote_handle,
            size,
            flags,
            order,
            callback,
            context,
            data,
        )
    }
}

/// Divides and accounts for a PUT. Returns `None` if it should be sent as ob1 requested.
fn parts_of_put(state: &State, peer: &RailPeer, asked: RailId, size: usize) -> Option<RailParts> {
    // Memory that is registered with one network cannot be written by another.
    let by_address = state.rails.iter().all(RailModule::writes_by_address);
    let split = if by_address {
        state.split(peer, size as u64)
    } else {
        None
    };
    let Some(split) = split else {
        count(state, asked, size as u64);
        return None;
    };
    for (rail, piece) in split.pieces() {
        state.rail(rail).counters.other(piece.0);
    }
    RailParts::divided(&split, asked)
}

/// `btl_sendi` packs and sends in one call if the network can do so now. Otherwise it returns a descriptor.
unsafe extern "C-unwind" fn sendi(
    module: *mut BtlModule,
    endpoint: *mut Endpoint,
    convertor: *mut c_void,
    header: *mut c_void,
    header_size: usize,
    payload_size: usize,
    order: u8,
    flags: u32,
    tag: u8,
    descriptor: *mut *mut Descriptor,
) -> c_int {
    let _no_panic = NoPanic;
    let (state, asked) = hooked(module);
    let size = header_size + payload_size;
    let (chosen, to) = match state.peers.find(endpoint) {
        Some(peer) if starts_message(flags) && all_send_at_once(state, peer, size) => {
            let chosen = state.choose(peer, asked, size);
            (chosen, peer.endpoint(chosen))
        }
        Some(_) if descriptor.is_null() => return ERR_RESOURCE_BUSY,
        // ob1 calls `send`, which also places a FIN behind its data: ob1 of 5.0 sends FINs by this function.
        // SAFETY: ob1's arguments, and its place for the descriptor.
        Some(_) => unsafe {
            *descriptor = alloc(module, endpoint, order, size, flags);
            return if (*descriptor).is_null() {
                ERR_OUT_OF_RESOURCE
            } else {
                ERR_RESOURCE_BUSY
            };
        },
        None => (asked, endpoint),
    };
    let rail = state.rail(chosen);
    let original = rail
        .original
        .sendi
        .expect("the rail was asked, or all usable ones have one");
    // SAFETY: the rail reaches the peer; a returned descriptor belongs to this rail.
    unsafe {
        let done = original(
            rail.module,
            to,
            convertor,
            header,
            header_size,
            payload_size,
            order,
            flags,
            tag,
            descriptor,
        );
        if done != SUCCESS && !descriptor.is_null() && !(*descriptor).is_null() {
            note(*descriptor, chosen);
        }
        done
    }
}

/// Returns `true` if all usable rails have `btl_sendi`, so that any of them could send the message immediately.
fn all_send_at_once(state: &State, peer: &RailPeer, size: usize) -> bool {
    let mut usable: RailSet = state.usable(peer, size);
    !usable.is_empty() && usable.all(|rail| state.rail(rail).original.sendi.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bindings::DES_BTL_OWNERSHIP;

    #[test]
    fn only_the_start_of_a_message_may_take_another_rail() {
        let (matching, fin) = (
            DES_PRIORITY | DES_BTL_OWNERSHIP,
            DES_PRIORITY | DES_BTL_OWNERSHIP | DES_ALWAYS_CALLBACK,
        );
        assert!(starts_message(matching) && starts_prepared_message(matching));
        assert!(!starts_message(fin) && !starts_message(fin | DES_SIGNAL));
        assert!(
            !starts_message(matching | DES_SIGNAL),
            "a buffered or RGET message"
        );
        assert!(
            starts_prepared_message(matching | DES_SIGNAL),
            "a rendezvous with its first data"
        );
        assert!(
            !starts_prepared_message(DES_BTL_OWNERSHIP | DES_ALWAYS_CALLBACK | DES_SIGNAL),
            "a fragment"
        );
    }
}
