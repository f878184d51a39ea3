//! One epoll instance for all sockets of Open MPI 4.1, which would otherwise poll them one by one. Open MPI 5.0 uses epoll
//! itself.
//!
//! Whenever Open MPI makes progress, libevent calls `poll` on all connections, and the kernel checks each: a second rail
//! doubles the cost of an `MPI_Test`. Their events are therefore removed from Open MPI's event loop. One event of an epoll
//! instance replaces them, and its cost does not depend on their number. Sockets that are ready there are activated in the
//! loop as if `poll` had found them. This uses only the interface of libevent 2.1, and from Open MPI the variable of its
//! loop.

use std::{
    collections::BTreeMap,
    ffi::{CStr, c_char, c_int, c_short, c_void},
    os::fd::{AsRawFd, FromRawFd, OwnedFd},
    ptr,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use crate::{NoPanic, library};

const READ: c_short = 0x02;
const WRITE: c_short = 0x04;
const PERSIST: c_short = 0x10;
/// Largest number of ready sockets that one call of epoll returns; the next call returns the others.
const AT_ONCE: usize = 64;

#[repr(C)]
struct EventBase([u8; 0]);
#[repr(C)]
struct Event([u8; 0]);

type Visit = unsafe extern "C" fn(*const EventBase, *const Event, *mut c_void) -> c_int;
type Callback = unsafe extern "C-unwind" fn(c_int, c_short, *mut c_void);

/// Open MPI's event loop.
#[derive(Debug)]
pub(crate) struct EventLoop {
    base: *mut EventBase,
    visit: unsafe extern "C" fn(*mut EventBase, Visit, *mut c_void) -> c_int,
    waits_for: unsafe extern "C" fn(*const Event) -> c_short,
    socket: unsafe extern "C" fn(*const Event) -> c_int,
    activate: unsafe extern "C" fn(*mut Event, c_int, c_short),
    add: unsafe extern "C" fn(*mut Event, *const libc::timeval) -> c_int,
    remove: unsafe extern "C" fn(*mut Event) -> c_int,
    create:
        unsafe extern "C" fn(*mut EventBase, c_int, c_short, Callback, *mut c_void) -> *mut Event,
    free: unsafe extern "C" fn(*mut Event),
    taken: Mutex<Option<TakenEvents>>,
    /// Largest number of events taken at the same time.
    pub most: AtomicUsize,
}

// SAFETY: libevent locks its loop if several threads use the library.
unsafe impl Send for EventLoop {}
// SAFETY: the same as above.
unsafe impl Sync for EventLoop {}

/// Events that the epoll instance waits for, keyed by socket.
#[derive(Debug)]
struct TakenEvents {
    epoll: OwnedFd,
    in_loop: *mut Event,
    events: BTreeMap<c_int, *mut Event>,
}

impl EventLoop {
    /// Returns `None` if there is no benefit (libevent uses epoll already), if Open MPI uses its own libevent, or in Open MPI
    /// 5.0.
    pub(crate) fn find() -> Option<EventLoop> {
        library::symbol(c"mca_event_external_component").ok()?;
        // SAFETY: each symbol has the type of its declaration in the headers of libevent 2.1 and Open MPI 4.1.
        unsafe {
            let base: *mut EventBase = *library::symbol(c"opal_sync_event_base").ok()?.cast();
            let method: unsafe extern "C" fn(*const EventBase) -> *const c_char =
                library::function(c"event_base_get_method").ok()?;
            if base.is_null() || CStr::from_ptr(method(base)) != c"poll" {
                return None;
            }
            Some(EventLoop {
                base,
                visit: library::function(c"event_base_foreach_event").ok()?,
                waits_for: library::function(c"event_get_events").ok()?,
                socket: library::function(c"event_get_fd").ok()?,
                activate: library::function(c"event_active").ok()?,
                add: library::function(c"event_add").ok()?,
                remove: library::function(c"event_del").ok()?,
                create: library::function(c"event_new").ok()?,
                free: library::function(c"event_free").ok()?,
                taken: Mutex::new(None),
                most: AtomicUsize::new(0),
            })
        }
    }

    /// Takes the events of new sockets out of the loop, unless another thread is taking some or removing connections.
    pub(crate) fn take_events(&'static self) {
        let Ok(mut taken) = self.taken.try_lock() else {
            return;
        };
        let mut events: Vec<*mut Event> = Vec::new();
        // SAFETY: the loop's events live while the lock keeps connections from being removed; `collect` gets the vector.
        unsafe { (self.visit)(self.base, collect, (&raw mut events).cast()) };
        for event in events {
            // SAFETY: the same as above.
            let (waits_for, socket) = unsafe { ((self.waits_for)(event), (self.socket)(event)) };
            if waits_for & (READ | WRITE | PERSIST) != READ | PERSIST {
                continue;
            }
            if taken.is_none() {
                *taken = self.begin();
            }
            // The socket is added to epoll before it leaves the loop, so that no event in between is lost. epoll refuses its
            // own descriptor.
            if let Some(taken) = taken.as_mut()
                && (taken.control(libc::EPOLL_CTL_ADD, socket)
                    || taken.control(libc::EPOLL_CTL_MOD, socket))
            {
                // SAFETY: the same as above.
                unsafe { (self.remove)(event) };
                taken.events.insert(socket, event);
                self.most.fetch_max(taken.events.len(), Ordering::Relaxed);
            }
        }
    }

    fn begin(&'static self) -> Option<TakenEvents> {
        // SAFETY: a new descriptor is ours; the loop does not move until the end of the process.
        unsafe {
            let epoll = libc::epoll_create1(libc::EPOLL_CLOEXEC);
            let epoll = (epoll >= 0).then(|| OwnedFd::from_raw_fd(epoll))?;
            let this = ptr::from_ref(self).cast_mut().cast();
            let in_loop = (self.create)(self.base, epoll.as_raw_fd(), READ | PERSIST, ready, this);
            if in_loop.is_null() || (self.add)(in_loop, ptr::null()) != 0 {
                return None;
            }
            Some(TakenEvents {
                epoll,
                in_loop,
                events: BTreeMap::new(),
            })
        }
    }

    /// Returns all events to Open MPI's loop. None is taken before the guard is dropped, so that connections can be removed.
    pub(crate) fn give_back(&self) -> impl Drop + use<'_> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(taken) = taken.take() {
            // SAFETY: events of connections that are not removed yet; epoll no longer contains sockets that were closed.
            unsafe {
                (self.free)(taken.in_loop);
                for (socket, event) in &taken.events {
                    if taken.control(libc::EPOLL_CTL_DEL, *socket) {
                        (self.add)(*event, ptr::null());
                    }
                }
            }
        }
        taken
    }
}

impl TakenEvents {
    fn control(&self, operation: c_int, socket: c_int) -> bool {
        let mut event = libc::epoll_event {
            events: libc::EPOLLIN as u32,
            u64: socket as u64,
        };
        // SAFETY: the kernel reads `event` and refuses a number that is not a socket.
        unsafe { libc::epoll_ctl(self.epoll.as_raw_fd(), operation, socket, &raw mut event) == 0 }
    }
}

unsafe extern "C" fn collect(
    _base: *const EventBase,
    event: *const Event,
    events: *mut c_void,
) -> c_int {
    // SAFETY: the vector of `take_events`.
    unsafe { (*events.cast::<Vec<*mut Event>>()).push(event.cast_mut()) };
    0
}

// If a thread is cancelled, the kernel's call does not return.
unsafe extern "C-unwind" {
    fn epoll_wait(
        epoll: c_int,
        found: *mut libc::epoll_event,
        most: c_int,
        timeout: c_int,
    ) -> c_int;
}

/// Called when the loop finds the epoll instance readable.
unsafe extern "C-unwind" fn ready(epoll: c_int, _what: c_short, event_loop: *mut c_void) {
    let _no_panic = NoPanic;
    // SAFETY: the loop of `begin`; the kernel writes at most as many events as there is room for.
    unsafe {
        let event_loop = &*event_loop.cast::<EventLoop>();
        let mut found = [libc::epoll_event { events: 0, u64: 0 }; AT_ONCE];
        let count = epoll_wait(epoll, found.as_mut_ptr(), AT_ONCE as c_int, 0);
        // A thread that returns events waits for the end of this function; ready sockets stay ready.
        let Ok(taken) = event_loop.taken.try_lock() else {
            return;
        };
        let events = taken.as_ref().map(|taken| &taken.events);
        for found in &found[..count.max(0) as usize] {
            if let Some(event) = events.and_then(|events| events.get(&(found.u64 as c_int))) {
                (event_loop.activate)(*event, READ.into(), 0);
            }
        }
    }
}
