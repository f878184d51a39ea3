//! When the recorder looks for MPI libraries: before the program begins, and whenever the program asks the dynamic linker for
//! something, because that may have been loaded since.
//!
//! `dlopen` and `dlsym` look at who has called them. So each leaves its arguments and its return address as they are and
//! jumps to the C library's function; only where the caller makes no difference is `dlopen` called from here.

use std::{
    arch::naked_asm,
    ffi::{CStr, c_char, c_int, c_void},
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
};

use crate::{binding, library, objects::Symbol, own_file::Uncancelled, wrappers::ENTRIES};

/// Asks which MPI library the program has: the answer is written to the standard output, and the program does not begin.
const ASK: &CStr = c"FLOWCAST_RECORD_ASK";
const FOLDER: &CStr = c"FLOWCAST_RECORD";

type Open = unsafe extern "C" fn(*const c_char, c_int) -> *mut c_void;

#[used]
#[unsafe(link_section = ".init_array")]
static BEGIN: extern "C" fn() = begin;

extern "C" fn begin() {
    update();
    if is_set(ASK) {
        library::answer();
        // SAFETY: nothing of the program has begun.
        unsafe { libc::_exit(0) };
    }
}

/// Whether a variable is there; it has to be looked up without memory.
fn is_set(name: &CStr) -> bool {
    // SAFETY: the name ends in a zero.
    let value = unsafe { libc::getenv(name.as_ptr()) };
    // SAFETY: a value is a text.
    !value.is_null() && unsafe { *value } != 0
}

/// Without a recording to be made, nothing of the program is touched.
fn update() {
    if !is_set(FOLDER) && !is_set(ASK) {
        return;
    }
    let _uncancelled = Uncancelled::new();
    // SAFETY: the place is the thread's own.
    unsafe {
        let errno = libc::__errno_location();
        let before = *errno;
        binding::update(&ENTRIES);
        *errno = before;
    }
}

/// In the place of the C library's, which is called with the same arguments by the same caller; not under a sanitizer, which calls
/// `dlsym` before anything is ready.
#[cfg(target_arch = "x86_64")]
macro_rules! jump_behind {
    ($name:ident, $before:path) => {
        #[unsafe(naked)]
        #[cfg_attr(not(sanitized), unsafe(no_mangle))]
        unsafe extern "C" fn $name() {
            naked_asm!(
                "push rdi",
                "push rsi",
                "push rdx",
                "mov rdx, [rsp + 24]",
                "call {before}",
                "pop rdx",
                "pop rsi",
                "pop rdi",
                "jmp rax",
                before = sym $before,
            )
        }
    };
}

/// In the place of the C library's, which is called with the same arguments by the same caller.
#[cfg(target_arch = "aarch64")]
macro_rules! jump_behind {
    ($name:ident, $before:path) => {
        #[unsafe(naked)]
        #[cfg_attr(not(sanitized), unsafe(no_mangle))]
        unsafe extern "C" fn $name() {
            naked_asm!(
                "stp x29, x30, [sp, #-48]!",
                "stp x0, x1, [sp, #16]",
                "str x2, [sp, #32]",
                "mov x2, x30",
                "bl {before}",
                "mov x16, x0",
                "ldr x2, [sp, #32]",
                "ldp x0, x1, [sp, #16]",
                "ldp x29, x30, [sp], #48",
                "br x16",
                before = sym $before,
            )
        }
    };
}

jump_behind!(dlsym, before_dlsym);
jump_behind!(dlvsym, before_dlvsym);
jump_behind!(dlopen, before_dlopen);

/// Gives the function to go on with.
extern "C" fn before_dlsym() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    update();
    next(&NEXT, c"dlsym")
}

/// Gives the function to go on with.
extern "C" fn before_dlvsym() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    update();
    next(&NEXT, c"dlvsym")
}

static NEXT_OPEN: AtomicUsize = AtomicUsize::new(0);

/// Gives the function to go on with.
extern "C" fn before_dlopen(name: *const c_char, _mode: c_int, caller: usize) -> usize {
    update();
    if !name.is_null() && is_any_caller(name, caller) {
        return open as Open as usize;
    }
    next(&NEXT_OPEN, c"dlopen")
}

/// Whether the linker finds the same library whoever asks: it is given a place, or the caller has no folders of its own in which
/// libraries are sought.
fn is_any_caller(name: *const c_char, caller: usize) -> bool {
    // SAFETY: the program passes a text.
    let name = unsafe { CStr::from_ptr(name) }.to_bytes();
    if name.contains(&b'$') {
        return false;
    }
    let is_known = binding::first(|object| object.contains(caller).then_some(())).is_some();
    let is_place = name.contains(&b'/');
    is_known
        && (is_place || binding::first(|object| object.has_search_path().then_some(())).is_none())
}

unsafe extern "C" fn open(name: *const c_char, mode: c_int) -> *mut c_void {
    let next = next(&NEXT_OPEN, c"dlopen");
    // SAFETY: the C library's function, or another tool's, with the caller's arguments.
    let opened = unsafe { std::mem::transmute::<usize, Open>(next)(name, mode) };
    update();
    opened
}

/// The next library's function of a name.
fn next(known: &AtomicUsize, name: &CStr) -> usize {
    match known.load(Relaxed) {
        0 => {
            let mut is_behind = false;
            let found = binding::first(|object| {
                let found = if is_behind {
                    object.find(Symbol::new(name))
                } else {
                    None
                };
                is_behind |= binding::is_own(object);
                found
            });
            let found = found.unwrap_or(nothing as extern "C" fn() -> *mut c_void as usize);
            known.store(found, Relaxed);
            found
        }
        known => known,
    }
}

/// A program without a C library that can load anything.
extern "C" fn nothing() -> *mut c_void {
    std::ptr::null_mut()
}
