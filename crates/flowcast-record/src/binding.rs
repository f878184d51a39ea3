//! Redirection of the program's calls of MPI to the wrappers.
//!
//! The recorder exports no function of MPI. It searches for libraries that define some, and enters the wrappers' addresses
//! for these symbols in the library's own symbol table. Each later look-up (`dlsym`, a library that is loaded, a call that
//! is bound lazily) then finds the wrapper instead of the function, and nothing if the function does not exist. Places that
//! already hold the address of a function get the wrapper's address. If several libraries define a name, the first in
//! look-up order counts, for example a profiling tool before the MPI library.

use std::{
    ffi::CStr,
    sync::atomic::{AtomicBool, AtomicI32, AtomicU64, AtomicUsize, Ordering::Relaxed},
};

use crate::{
    entry::WrappedName,
    objects::{self, Object, Symbol, Writer},
};

/// Functions that every MPI library has under these names, and no other library.
const OWN: [Symbol<'_>; 2] = [Symbol::new(c"PMPI_Init"), Symbol::new(c"PMPI_Comm_rank")];

/// Identity of the first object that defines these functions.
static SERVING: AtomicUsize = AtomicUsize::new(0);
/// Set if something could not be written, so that a recording would lack some calls.
static FAILED: AtomicBool = AtomicBool::new(false);
static LOADED: AtomicU64 = AtomicU64::new(0);
static REMOVED: AtomicU64 = AtomicU64::new(0);

/// Process whose thread holds the lock of this module. A forked child has a copy of the lock that no thread releases.
static HOLDER: AtomicI32 = AtomicI32::new(0);

/// Objects that have been examined. An object that does not fit in is examined each time.
static SEEN: [AtomicUsize; 4096] = [const { AtomicUsize::new(0) }; 4096];

/// Examines what has been loaded since the last call. `entries` lists the wrapped names in alphabetical order. With
/// `only_times`, only those that delimit a run and its regions are redirected.
pub(crate) fn update(entries: &'static [WrappedName], only_times: bool) {
    let (loaded, removed) = objects::changes();
    if (loaded, removed) == (LOADED.load(Relaxed), REMOVED.load(Relaxed)) {
        return;
    }
    // SAFETY: the query changes nothing.
    let process = unsafe { libc::getpid() };
    while let Err(holder) = HOLDER.compare_exchange(0, process, Relaxed, Relaxed) {
        if holder != process
            && HOLDER
                .compare_exchange(holder, process, Relaxed, Relaxed)
                .is_ok()
        {
            break;
        }
        std::hint::spin_loop();
    }
    if removed != REMOVED.load(Relaxed) {
        SEEN.iter().for_each(|place| place.store(0, Relaxed));
        forget_removed(entries);
    }
    look_at_new(entries, only_times);
    LOADED.store(loaded, Relaxed);
    REMOVED.store(removed, Relaxed);
    HOLDER.store(0, Relaxed);
}

/// Returns the MPI library whose functions the program calls.
pub(crate) fn serving() -> Option<Object> {
    let identity = SERVING.load(Relaxed);
    first(|object| (object.identity() == identity).then_some(*object))
}

/// Returns `true` if a recording would lack some calls.
pub(crate) fn has_failed() -> bool {
    FAILED.load(Relaxed)
}

/// Returns the first result that `ask` gives for an object.
pub(crate) fn first<T>(mut ask: impl FnMut(&Object) -> Option<T>) -> Option<T> {
    let mut answer = None;
    objects::each(|object| {
        answer = ask(object);
        answer.is_none()
    });
    answer
}

/// Returns `true` for the recorder's own library.
pub(crate) fn is_own(object: &Object) -> bool {
    object.contains(SERVING.as_ptr() as usize)
}

fn forget_removed(entries: &[WrappedName]) {
    let is_loaded = |identity| first(|object| (object.identity() == identity).then_some(()));
    let mut last = (0, true);
    for entry in entries {
        let owner = entry.owner();
        if owner != last.0 {
            last = (owner, is_loaded(owner).is_some());
        }
        if !last.1 {
            entry.disown();
        }
    }
    if is_loaded(SERVING.load(Relaxed)).is_none() {
        SERVING.store(0, Relaxed);
    }
}

fn look_at_new(entries: &[WrappedName], only_times: bool) {
    let mut writer = None;
    let new = |object: &Object| !is_own(object) && !is_seen(object.identity());
    objects::each(|object| {
        if new(object) {
            take_over(object, entries, only_times, &mut writer);
        }
        true
    });
    objects::each(|object| {
        if new(object) {
            if let Some(writer) = &mut writer {
                let done = object
                    .replace_addresses(writer, |name, address| wrapper_of(entries, name, address));
                FAILED.fetch_or(!done, Relaxed);
            }
            mark_seen(object.identity());
        }
        true
    });
}

/// Redirects the functions of MPI that this object is the first to define to their wrappers.
fn take_over(
    object: &Object,
    entries: &[WrappedName],
    only_times: bool,
    writer: &mut Option<Writer>,
) {
    if SERVING.load(Relaxed) == 0 && OWN.iter().all(|symbol| object.find(*symbol).is_some()) {
        SERVING.store(object.identity(), Relaxed);
    }
    let redirected = |entry: &&WrappedName| {
        entry.owner() == 0 && (!only_times || entry.function.kind.delimits())
    };
    for entry in entries.iter().filter(redirected) {
        let symbol = entry.symbol();
        let Some(real) = object.find(symbol) else {
            continue;
        };
        if real != entry.wrapper() {
            entry.own(object.identity(), real);
            let writer = writer.get_or_insert_with(Writer::open);
            let done = object.redirect(symbol, entry.wrapper(), writer);
            FAILED.fetch_or(!done, Relaxed);
        }
    }
}

/// Returns the wrapper for a place that holds the address of the function that it wraps.
fn wrapper_of(entries: &[WrappedName], name: &CStr, address: usize) -> Option<usize> {
    let text = name.to_bytes();
    if address == 0
        || ![&b"MPI_"[..], b"mpi_", b"ompi_"]
            .iter()
            .any(|first| text.starts_with(first))
    {
        return None;
    }
    let place = entries
        .binary_search_by(|entry: &WrappedName| entry.name().cmp(name))
        .ok()?;
    let entry = &entries[place];
    (entry.real() == address).then(|| entry.wrapper())
}

fn places(identity: usize) -> impl Iterator<Item = &'static AtomicUsize> {
    const TRIED: usize = 8;
    let home = (identity.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 52) % SEEN.len();
    (0..TRIED).map(move |step| &SEEN[(home + step) % SEEN.len()])
}

fn is_seen(identity: usize) -> bool {
    places(identity).any(|place| place.load(Relaxed) == identity)
}

fn mark_seen(identity: usize) {
    if let Some(free) = places(identity).find(|place| place.load(Relaxed) == 0) {
        free.store(identity, Relaxed);
    }
}
