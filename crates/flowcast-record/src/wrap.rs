//! Entry of calls: each call is passed on, and its effect is recorded.
//!
//! The recorder works before and after the library's function, and a panic stays within either part. The function itself may
//! end without a return: its thread may be cancelled, or an error handler may throw an exception or jump.

use std::ffi::c_int;

use crate::{
    arguments::{Arguments, is_recorded},
    clock,
    communicators::Key,
    completions::{RequestCompletion, Scratch},
    entry::{WrappedName, invoke},
    functions::{FunctionKind, Language},
    library::{LoadedMpi, library},
    memory, note,
    start::{self, guarded, with_session},
    threads::{Before, Thread, outermost},
};

/// Handles a call of a wrapper.
///
/// # Safety
/// The words must be the arguments of the function's prototype.
pub(crate) unsafe fn call(entry: &WrappedName, words: &mut [usize]) -> c_int {
    let (real, function) = (entry.real(), entry.function);
    let library = match guarded(library) {
        Some(Ok(library)) if is_recorded(entry.language, library) => library,
        Some(Err(reason)) => {
            start::refuse(function, reason);
            return invoke(real, words);
        }
        _ => return invoke(real, words),
    };
    let done = outermost(|thread| match function.kind {
        FunctionKind::Init => start::init(entry, library, words, thread),
        _ if !start::is_on() => {
            start::explain_absence(function);
            invoke(real, words)
        }
        FunctionKind::Finalize | FunctionKind::Abort => {
            guarded(|| start::finish(function, library, thread));
            invoke(real, words)
        }
        FunctionKind::Pcontrol => {
            guarded(|| start::pcontrol(Arguments::new(words, entry, library), thread));
            invoke(real, words)
        }
        kind if start::is_paused() && !note::always_counts(kind) => invoke(real, words),
        _ => recorded(entry, library, words, thread),
    });
    done.unwrap_or_else(|| invoke(real, words))
}

/// Call whose function has not returned yet.
struct PendingCall {
    before: Before,
    completion: Option<RequestCompletion>,
    handle: Option<Key>,
    /// Start of the function, in ticks.
    begin: u64,
}

fn recorded(
    entry: &WrappedName,
    library: &'static LoadedMpi,
    words: &mut [usize],
    thread: &Thread,
) -> c_int {
    let mut scratch = Scratch::new();
    let pending = guarded(|| look(entry, library, words, thread, &mut scratch));
    let result = invoke(entry.real(), words);
    if let Some(pending) = pending {
        let end = clock::now();
        let arguments = Arguments::new(words, entry, library);
        // A Fortran function returns nothing.
        let failed = match entry.language {
            Language::C => result != 0,
            _ => arguments.fortran_error() != 0,
        };
        guarded(|| write_down(arguments, thread, pending, end, failed));
    }
    result
}

/// Reads the state that the function may change.
fn look(
    entry: &WrappedName,
    library: &'static LoadedMpi,
    words: &mut [usize],
    thread: &Thread,
    scratch: &mut Scratch,
) -> PendingCall {
    let function = entry.function;
    let before = thread.enter(start::begun());
    let arguments = Arguments::new(words, entry, library);
    let completes = function.kind.completes();
    let completion = completes.then(|| RequestCompletion::before(&arguments, scratch));
    let handle = note::takes_handle(function.kind).then(|| note::handle_before(&arguments));
    if let Some(address) = scratch.stand_in(&arguments) {
        words[function.at.status as usize] = address;
    }
    #[cfg(debug_assertions)]
    injected::panic_if_asked(injected::BEFORE, function.name);
    PendingCall {
        before,
        completion,
        handle,
        begin: clock::now(),
    }
}

fn write_down(
    arguments: Arguments<'_>,
    thread: &Thread,
    pending: PendingCall,
    end: u64,
    failed: bool,
) {
    let PendingCall { before, begin, .. } = pending;
    with_session(|session| {
        #[cfg(debug_assertions)]
        injected::panic_if_asked(injected::BEHIND, arguments.function.name);
        let call = note::Made {
            arguments,
            times: before.times(clock::nanos(end.saturating_sub(begin))),
            failed,
            completion: pending.completion,
            before: pending.handle,
        };
        note::note(session, thread, call);
        if let Some(lost) = thread.leave(begin, end) {
            session.pause(thread, lost);
        }
        if session.is_due(end) {
            session.flush();
        }
        if memory::is_short() && !session.over {
            session.abandon();
        }
    });
}

/// Panics inside the recorder, for tests only; release builds do not contain them.
#[cfg(debug_assertions)]
mod injected {
    use std::env;

    /// `FUNCTION` or `FUNCTION,behind`.
    const VARIABLE: &str = "FLOWCAST_RECORD_TEST_PANIC";
    /// Marks a panic before the real function is called.
    pub(super) const BEFORE: &str = "";
    /// Marks a panic after the function, while the session is in use.
    pub(super) const BEHIND: &str = ",behind";

    pub(super) fn panic_if_asked(place: &str, function: &str) {
        if env::var(VARIABLE).is_ok_and(|asked| asked.strip_prefix(function) == Some(place)) {
            panic!("a panic for a test");
        }
    }
}
