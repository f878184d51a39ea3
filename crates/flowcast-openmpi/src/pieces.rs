//! Messages in pieces: what ob1 gives to one network goes over several, and arrives at the other side's ob1 whole.
//!
//! A piece is an active message on a tag of our own with a header that says of which message it is which part. The receiver
//! puts the parts together and hands the message to whom ob1's tag belongs, as if the network of the last piece had brought it.
//! ob1 numbers what has an order of its own, so no piece waits for another message.
//!
//! A long message that ob1 wants written into the receiver's memory (PUT) is divided as well: each network writes a part. The
//! FIN behind it tells the receiver that all is there; it goes over every network that wrote a part, after the part, and is
//! handed on when the last copy has come.

use std::{
    cell::Cell,
    collections::{BTreeMap, BTreeSet},
    ffi::{c_int, c_void},
    ptr,
    sync::{
        Mutex, OnceLock, PoisonError,
        atomic::{AtomicU16, AtomicU32, Ordering},
    },
};

use flowcast_scheduler::{MAX_RAILS, RailId, RailSet, split::Split};

use crate::{
    bindings::{
        BtlModule, DES_ALWAYS_CALLBACK, DES_BTL_OWNERSHIP, DES_PRIORITY, Descriptor, Endpoint,
        NO_ORDER, ProcessName, RdmaCompletion, SUCCESS, Segment, TAG_MAX, Trigger,
    },
    connections::AddressKey,
    library::OpenMpiLibrary,
    peers::Peer,
    state::{State, state},
};

/// Beside the measurement's, above Open MPI's own.
const TAG: u8 = 0xF6;
const _: () = assert!((TAG as usize) < TAG_MAX);
const MAGIC: u32 = 0x464C_5043;
/// The length of a piece's header.
pub(crate) const HEADER: usize = 32;
/// What `btl_send` answers when the network is through with a descriptor.
const SENT: c_int = 1;

/// Of which message a piece is which part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct PieceHeader {
    from: ProcessName,
    /// Of the message, among those of its sender.
    number: u32,
    /// ob1's tag.
    tag: u8,
    /// How many pieces the message has.
    of: u8,
    /// Length of the whole message.
    total: u32,
    /// Where this piece belongs in it.
    offset: u32,
    /// Where its sender is on the rail of this piece.
    address: AddressKey,
}

impl PieceHeader {
    fn bytes(&self) -> [u8; HEADER] {
        let words = [
            MAGIC,
            self.from.jobid,
            self.from.vpid,
            self.number,
            u32::from(self.tag) << 8 | u32::from(self.of),
            self.total,
            self.offset,
            self.address.0,
        ];
        let mut bytes = [0; HEADER];
        for (place, word) in bytes.chunks_exact_mut(4).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    fn read(bytes: &[u8]) -> Option<PieceHeader> {
        let mut words = [0; HEADER / 4];
        for (word, place) in words.iter_mut().zip(bytes.get(..HEADER)?.chunks_exact(4)) {
            *word = u32::from_le_bytes(place.try_into().ok()?);
        }
        let [MAGIC, jobid, vpid, number, kind, total, offset, address] = words else {
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

/// A message of which some pieces have come.
#[derive(Debug)]
struct Incomplete {
    /// In words, because ob1 reads structs out of it.
    words: Vec<u64>,
    total: usize,
    missing: u8,
}

impl Incomplete {
    fn new(header: &PieceHeader) -> Incomplete {
        Incomplete {
            words: vec![0; (header.total as usize).div_ceil(8)],
            total: header.total as usize,
            missing: header.of,
        }
    }

    /// Puts a piece into its place; false if it has none.
    fn put(&mut self, offset: usize, piece: &[u8]) -> bool {
        if offset + piece.len() > self.total {
            return false;
        }
        // SAFETY: within the words, which any bytes are.
        unsafe {
            let place = self.words.as_mut_ptr().cast::<u8>().add(offset);
            place.copy_from_nonoverlapping(piece.as_ptr(), piece.len());
        }
        self.missing -= 1;
        true
    }
}

/// Messages of which pieces are missing, by sender and number.
static INCOMPLETE: Mutex<BTreeMap<(u32, u32, u32), Incomplete>> = Mutex::new(BTreeMap::new());
/// Who has told where it is, by name and address.
static MET: Mutex<BTreeSet<(u32, u32, AddressKey)>> = Mutex::new(BTreeSet::new());
static NEXT_NUMBER: AtomicU32 = AtomicU32::new(0);
static TRIGGERS: OnceLock<Triggers> = OnceLock::new();

/// Who gets which tag.
struct Triggers(*mut Trigger);

// SAFETY: the library's table, which is filled before anybody sends.
unsafe impl Send for Triggers {}
// SAFETY: as above.
unsafe impl Sync for Triggers {}

/// Receives pieces from here on, also where this process itself has nothing to divide.
pub(crate) fn listen(library: &OpenMpiLibrary) {
    let _ = TRIGGERS.set(Triggers(library.triggers));
    // SAFETY: the library's table has an entry for each tag; BTLs look there when a message comes.
    unsafe {
        let trigger = library.triggers.add(TAG as usize);
        (*trigger).cbdata = ptr::null_mut();
        (*trigger).cbfunc = Some(receive);
    }
}

unsafe extern "C" fn receive(
    by: *mut BtlModule,
    _: u8,
    descriptor: *mut Descriptor,
    _: *mut c_void,
) {
    // SAFETY: the BTL's descriptor with at least one segment; its memory is ours until we return.
    let bytes = unsafe {
        let segment = *(*descriptor).des_segments;
        std::slice::from_raw_parts(segment.seg_addr, segment.seg_len as usize)
    };
    let Some(header) = PieceHeader::read(bytes) else {
        return;
    };
    meet(&header, by);
    if let Some(whole) = join(&header, &bytes[HEADER..]) {
        // SAFETY: a BTL has called us, so ob1 listens.
        unsafe { hand_on(by, header.tag, whole) };
    }
}

/// Learns where the sender is on the rail by which a piece of it came.
fn meet(header: &PieceHeader, by: *mut BtlModule) {
    let Some(state) = state() else { return };
    let mut met = MET.lock().unwrap_or_else(PoisonError::into_inner);
    let place = (header.from.jobid, header.from.vpid, header.address);
    if !met.contains(&place) && state.introduce(header.from, by, header.address) {
        met.insert(place);
    }
}

/// The message, once its last piece has come.
fn join(header: &PieceHeader, piece: &[u8]) -> Option<Incomplete> {
    let mut incomplete = INCOMPLETE.lock().unwrap_or_else(PoisonError::into_inner);
    let key = (header.from.jobid, header.from.vpid, header.number);
    let message = incomplete
        .entry(key)
        .or_insert_with(|| Incomplete::new(header));
    if !message.put(header.offset as usize, piece) || message.missing > 0 {
        return None;
    }
    incomplete.remove(&key)
}

/// # Safety
/// ob1 has registered its tags.
unsafe fn hand_on(by: *mut BtlModule, tag: u8, mut whole: Incomplete) {
    let Some(triggers) = TRIGGERS.get() else {
        return;
    };
    let mut segment = Segment {
        seg_addr: whole.words.as_mut_ptr().cast(),
        seg_len: whole.total as u64,
    };
    // SAFETY: the library's table; all zeros are a valid descriptor, of which receivers read the segments alone.
    unsafe {
        let trigger = &*triggers.0.add(tag as usize);
        let mut descriptor: Descriptor = std::mem::zeroed();
        descriptor.des_segments = &raw mut segment;
        descriptor.des_segment_count = 1;
        if let Some(deliver) = trigger.cbfunc {
            deliver(by, tag, &raw mut descriptor, trigger.cbdata);
        }
    }
}

/// Which part of a message goes over which rail.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Part {
    pub rail: RailId,
    pub offset: usize,
    pub length: usize,
}

/// Parts one behind the other.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Parts {
    parts: [Part; MAX_RAILS],
    count: usize,
}

impl Parts {
    pub(crate) fn new(pieces: impl Iterator<Item = (RailId, usize)>) -> Parts {
        let none = Part {
            rail: RailId(0),
            offset: 0,
            length: 0,
        };
        let mut all = Parts {
            parts: [none; MAX_RAILS],
            count: 0,
        };
        let mut offset = 0;
        for (rail, length) in pieces.take(MAX_RAILS) {
            all.parts[all.count] = Part {
                rail,
                offset,
                length,
            };
            all.count += 1;
            offset += length;
        }
        all
    }

    /// As the scheduler divides a message that ob1 asked one rail for; `None` if that one carries all of it.
    pub(crate) fn divided(split: &Split, asked: RailId) -> Option<Parts> {
        let parts = Parts::new(split.pieces().map(|(rail, piece)| (rail, piece.0 as usize)));
        let is_as_asked = matches!(parts.all(), [only] if only.rail == asked);
        (!is_as_asked).then_some(parts)
    }

    /// All of it first, and empty parts behind it over the other rails: what was given to them before arrives before.
    pub(crate) fn behind(rails: RailSet, length: usize) -> Parts {
        let lengths = std::iter::once(length).chain(std::iter::repeat(0));
        Parts::new(rails.zip(lengths))
    }

    pub(crate) fn all(&self) -> &[Part] {
        &self.parts[..self.count]
    }
}

/// A descriptor of ob1 whose content is under way in descriptors of ours.
struct SendInParts {
    /// Parts that their networks still have, and one more while they are given out.
    left: AtomicU32,
    module: *mut BtlModule,
    endpoint: *mut Endpoint,
    descriptor: *mut Descriptor,
}

/// Sends ob1's descriptor in parts, as `btl_send` of the network that ob1 chose would: the answer is the same. `None` if there is
/// no room; then nothing was sent.
///
/// # Safety
/// The descriptor is ob1's for this network and endpoint, which is the peer's; the rails reach the peer.
pub(crate) unsafe fn send(
    state: &State,
    peer: &Peer,
    parts: &Parts,
    of: (*mut BtlModule, *mut Endpoint, *mut Descriptor),
    tag: u8,
) -> Option<c_int> {
    let (module, endpoint, descriptor) = of;
    let mut ours = [ptr::null_mut(); MAX_RAILS];
    // SAFETY: the caller's; descriptors of the rails that allocated them.
    unsafe {
        for (part, place) in parts.all().iter().zip(&mut ours) {
            *place = room_for(state, peer, part, parts.all().len());
            if place.is_null() {
                release(state, parts, &ours);
                return None;
            }
        }
        fill(state, parts, &ours, descriptor, tag);
        let sending = Box::into_raw(Box::new(SendInParts {
            left: AtomicU32::new(parts.all().len() as u32 + 1),
            module,
            endpoint,
            descriptor,
        }));
        let tag = if parts.all().len() > 1 { TAG } else { tag };
        for (part, own) in parts.all().iter().zip(ours) {
            (*own).des_cbfunc = Some(part_is_sent);
            (*own).des_cbdata = sending.cast();
            let rail = state.rail(part.rail);
            let done = (rail.original.send)(rail.module, peer.endpoint(part.rail), own, tag);
            if done < 0 && done != crate::bindings::ERR_RESOURCE_BUSY {
                // A network that has failed: ob1 ends the job when it is told.
                (rail.original.free)(rail.module, own);
                part_is_through(sending);
            }
        }
        Some(given_out(sending))
    }
}

/// # Safety
/// As [`send`].
unsafe fn room_for(state: &State, peer: &Peer, part: &Part, of: usize) -> *mut Descriptor {
    let rail = state.rail(part.rail);
    let header = if of > 1 { HEADER } else { 0 };
    let flags = DES_PRIORITY | DES_BTL_OWNERSHIP | DES_ALWAYS_CALLBACK;
    // SAFETY: the caller's.
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

/// # Safety
/// Descriptors that the parts' rails have allocated, ended by null.
unsafe fn release(state: &State, parts: &Parts, ours: &[*mut Descriptor]) {
    for (part, own) in parts.all().iter().zip(ours) {
        if !own.is_null() {
            let rail = state.rail(part.rail);
            // SAFETY: the caller's.
            unsafe { (rail.original.free)(rail.module, *own) };
        }
    }
}

/// Copies headers and content.
///
/// # Safety
/// The descriptors have room for their parts, and `descriptor` has all of the message.
unsafe fn fill(
    state: &State,
    parts: &Parts,
    ours: &[*mut Descriptor],
    descriptor: *const Descriptor,
    tag: u8,
) {
    // SAFETY: this process, which the library knows until it ends.
    let from = unsafe { (*(state.library.local_process)()).proc_name };
    let number = NEXT_NUMBER.fetch_add(1, Ordering::Relaxed);
    // SAFETY: the caller's.
    unsafe {
        let total = crate::hooks::length(descriptor) as u32;
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

/// Copies `length` bytes from `offset` on out of the segments of a descriptor.
///
/// # Safety
/// The segments have them, and `place` has room.
unsafe fn copy_range(
    descriptor: *const Descriptor,
    mut offset: usize,
    mut length: usize,
    mut place: *mut u8,
) {
    // SAFETY: the caller's.
    unsafe {
        for segment in crate::hooks::segments(descriptor) {
            let there = segment.seg_len as usize;
            if offset >= there {
                offset -= there;
                continue;
            }
            let taken = length.min(there - offset);
            place.copy_from_nonoverlapping(segment.seg_addr.add(offset), taken);
            place = place.add(taken);
            (offset, length) = (0, length - taken);
        }
    }
}

unsafe extern "C" fn part_is_sent(
    _: *mut BtlModule,
    _: *mut Endpoint,
    descriptor: *mut Descriptor,
    _: c_int,
) {
    // SAFETY: our descriptor; the message lives until its last part is through.
    unsafe {
        let sending: *mut SendInParts = (*descriptor).des_cbdata.cast();
        if part_is_through(sending) {
            finish(*Box::from_raw(sending));
        }
    }
}

/// Whether it was the last.
///
/// # Safety
/// `sending` is alive.
unsafe fn part_is_through(sending: *const SendInParts) -> bool {
    // SAFETY: the caller's.
    unsafe { (*sending).left.fetch_sub(1, Ordering::AcqRel) == 1 }
}

/// All parts have been given out: what `btl_send` answers.
///
/// # Safety
/// `sending` is alive, and the caller's own count is still in it.
unsafe fn given_out(sending: *mut SendInParts) -> c_int {
    // SAFETY: the caller's; the descriptor is ob1's until it is told.
    unsafe {
        let descriptor = (*sending).descriptor;
        let calls_back = (*descriptor).des_flags & DES_ALWAYS_CALLBACK != 0;
        // From here on another thread may finish.
        if !part_is_through(sending) {
            return SUCCESS;
        }
        let sending = *Box::from_raw(sending);
        if calls_back {
            finish(sending);
        } else {
            free_if_owned(sending.module, descriptor);
        }
        SENT
    }
}

/// Tells ob1 that its descriptor is sent.
///
/// # Safety
/// ob1 has not been told.
unsafe fn finish(sending: SendInParts) {
    let SendInParts {
        module,
        endpoint,
        descriptor,
        ..
    } = sending;
    // SAFETY: the caller's; the flags are read before ob1 may free the descriptor.
    unsafe {
        let owned = (*descriptor).des_flags & DES_BTL_OWNERSHIP != 0;
        if let Some(callback) = (*descriptor).des_cbfunc {
            callback(module, endpoint, descriptor, SUCCESS);
        }
        if owned {
            crate::hooks::free(module, descriptor);
        }
    }
}

/// # Safety
/// The descriptor is the module's.
unsafe fn free_if_owned(module: *mut BtlModule, descriptor: *mut Descriptor) {
    // SAFETY: the caller's.
    unsafe {
        if (*descriptor).des_flags & DES_BTL_OWNERSHIP != 0 {
            crate::hooks::free(module, descriptor);
        }
    }
}

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

/// A PUT whose parts are under way.
struct PutInParts {
    left: AtomicU32,
    status: AtomicU32,
    rails: AtomicU16,
    arguments: PutArguments,
}

thread_local! {
    /// The rails of the PUT whose completion ob1 is being told, for the FIN that it sends meanwhile.
    static FINISHED_PUT: Cell<RailSet> = const { Cell::new(RailSet::NONE) };
}

/// The rails that the FIN which ob1 now sends has to follow: those of the PUT that has just ended, or all that may have one
/// under way to this peer if ob1 had to put the FIN off.
pub(crate) fn rails_of_fin(peer: &Peer) -> RailSet {
    match FINISHED_PUT.get() {
        RailSet::NONE => peer.rails_with_puts(),
        rails => rails,
    }
}

/// Writes into the receiver's memory over several rails, as `btl_put` would.
///
/// # Safety
/// The arguments are ob1's; the rails reach the peer and can write without registering memory.
pub(crate) unsafe fn put(
    state: &State,
    peer: &Peer,
    parts: &Parts,
    arguments: PutArguments,
) -> c_int {
    let rails = parts
        .all()
        .iter()
        .fold(RailSet::NONE, |set, part| set.with(part.rail));
    peer.has_puts_on(rails);
    let putting = Box::into_raw(Box::new(PutInParts {
        left: AtomicU32::new(parts.all().len() as u32 + 1),
        status: AtomicU32::new(SUCCESS as u32),
        rails: AtomicU16::new(rails.bits()),
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

unsafe extern "C" fn part_is_written(
    _: *mut BtlModule,
    _: *mut Endpoint,
    _: *mut c_void,
    _: *mut c_void,
    _: *mut c_void,
    data: *mut c_void,
    status: c_int,
) {
    // SAFETY: what `put` gave; alive until the last part is through.
    unsafe { a_part_is_written(data.cast(), status) }
}

/// # Safety
/// `putting` is alive.
unsafe fn a_part_is_written(putting: *mut PutInParts, status: c_int) {
    // SAFETY: the caller's; whoever comes last has it alone.
    unsafe {
        if status != SUCCESS {
            (*putting).status.store(status as u32, Ordering::Relaxed);
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
        let status = putting.status.load(Ordering::Relaxed) as c_int;
        let rails = RailSet::from_bits(putting.rails.load(Ordering::Relaxed));
        // ob1 sends its FIN in this call, and may have another PUT end inside of it.
        let before = FINISHED_PUT.replace(rails);
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
