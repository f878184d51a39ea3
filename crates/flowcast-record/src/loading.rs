//! Search for MPI libraries: before the program begins, and at each of the program's calls of the dynamic linker, because
//! more libraries may have been loaded by then.
//!
//! The behaviour of `dlopen` and `dlsym` depends on their caller. Therefore each replacement preserves its arguments and its
//! return address and jumps to the C library's function. `dlopen` is called from here only if the caller makes no
//! difference.

use std::{
    arch::naked_asm,
    ffi::{CStr, c_char, c_int, c_void},
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
};

use crate::{binding, library, objects::Symbol, own_file::Uncancelled, wrappers::ENTRIES};

/// Environment variable that requests a report on the program's MPI library: the report is written to the standard output,
/// and the program does not begin.
const ASK: &CStr = c"FLOWCAST_RECORD_ASK";
const FOLDER: &CStr = c"FLOWCAST_RECORD";
/// Environment variable that leaves all calls alone except the first, the last and the marks of regions, so that a run has
/// times and no further cost.
const TIMES: &CStr = c"FLOWCAST_RECORD_TIMES";

type Open = unsafe extern "C" fn(*const c_char, c_int) -> *mut c_void;

#[used]
#[unsafe(link_section = ".init_array")]
static BEGIN: extern "C" fn() = begin;

extern "C" fn begin() {
    update();
    if is_set(ASK) {
        library::answer();
        // SAFETY: no part of the program has begun.
        unsafe { libc::_exit(0) };
    }
}

/// Returns `true` if a variable is set. The look-up must not allocate memory.
fn is_set(name: &CStr) -> bool {
    // SAFETY: the name ends in a zero.
    let value = unsafe { libc::getenv(name.as_ptr()) };
    // SAFETY: a value is a zero-terminated text.
    !value.is_null() && unsafe { *value } != 0
}

/// Searches for new MPI libraries. If no recording is requested, the program is not changed.
fn update() {
    if !is_set(FOLDER) && !is_set(ASK) {
        return;
    }
    let _uncancelled = Uncancelled::new();
    // SAFETY: the variable belongs to this thread.
    unsafe {
        let errno = libc::__errno_location();
        let before = *errno;
        binding::update(&ENTRIES, is_set(TIMES));
        *errno = before;
    }
}

/// Defines a function that replaces the C library's, which then gets the same arguments and the same caller. Sanitizers call
/// `dlsym` before anything is initialised, so the function is not exported under a sanitizer.
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

/// Defines a function that replaces the C library's, which then gets the same arguments and the same caller.
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

/// Returns the address of the function to jump to.
extern "C" fn before_dlsym() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    update();
    next(&NEXT, c"dlsym")
}

/// Returns the address of the function to jump to.
extern "C" fn before_dlvsym() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    update();
    next(&NEXT, c"dlvsym")
}

static NEXT_OPEN: AtomicUsize = AtomicUsize::new(0);

/// Returns the address of the function to jump to.
extern "C" fn before_dlopen(name: *const c_char, _mode: c_int, caller: usize) -> usize {
    update();
    if !name.is_null() && is_any_caller(name, caller) {
        return open as Open as usize;
    }
    next(&NEXT_OPEN, c"dlopen")
}

/// Returns `true` if the linker finds the same library for every caller: the name has no `$`, and it is a path or no object
/// has search folders of its own.
fn is_any_caller(name: *const c_char, caller: usize) -> bool {
    // SAFETY: the program passes a zero-terminated text.
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
    // SAFETY: this is the function of the C library or of another tool, called with the caller's arguments.
    let opened = unsafe { std::mem::transmute::<usize, Open>(next)(name, mode) };
    update();
    opened
}

/// Returns the function with this name in the next library after the recorder.
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

/// Stand-in for the missing function in a program without a C library that can load libraries.
extern "C" fn nothing() -> *mut c_void {
    std::ptr::null_mut()
}
