//! Where a call comes in: it is passed on, and what it did is written down.

use std::{
    ffi::c_int,
    panic::{AssertUnwindSafe, catch_unwind},
};

use crate::{
    arguments::{Arguments, is_recorded},
    clock,
    completions::{RequestCompletion, Scratch},
    entry::{Entry, invoke, returned_since, returns},
    functions::{Kind, Language, NONE},
    library::library,
    memory, note,
    start::{self, SESSION},
    threads::{Thread, outermost},
};

/// A call of an exported name. No panic of the recorder comes to the program.
///
/// # Safety
/// The words are the arguments that the function's prototype asks for.
pub(crate) unsafe fn call(entry: &Entry, words: &mut [usize]) -> c_int {
    let begun = returns();
    match catch_unwind(AssertUnwindSafe(|| passed_on(entry, words))) {
        Ok(result) => result,
        Err(_) => {
            start::give_up();
            // The function is called once, whatever fails before or behind it.
            returned_since(begun).unwrap_or_else(|| invoke(entry.real(), words))
        }
    }
}

fn passed_on(entry: &Entry, words: &mut [usize]) -> c_int {
    let real = entry.real();
    let function = entry.function;
    let Ok(library) = library().inspect_err(|reason| start::refuse(function, reason)) else {
        return invoke(real, words);
    };
    if !is_recorded(entry.language, library) {
        return invoke(real, words);
    }
    let done = outermost(|thread| match function.kind {
        Kind::Init => start::init(entry, real, words, thread),
        _ if !start::is_on() => {
            start::refuse_sessions(function);
            invoke(real, words)
        }
        Kind::Finalize | Kind::Abort => start::finish(function, real, words, thread),
        Kind::Pcontrol => start::pcontrol(
            Arguments::new(words, function, entry.language, library),
            real,
            thread,
        ),
        kind if start::is_paused() && !note::always_counts(kind) => invoke(real, words),
        _ => recorded(entry, real, words, thread),
    });
    done.unwrap_or_else(|| invoke(real, words))
}

fn recorded(entry: &Entry, real: usize, words: &mut [usize], thread: &Thread) -> c_int {
    let Ok(library) = library() else {
        return invoke(real, words);
    };
    let function = entry.function;
    let before = thread.enter(start::begun());
    let mut scratch = Scratch::new();
    let arguments = Arguments::new(words, function, entry.language, library);
    let completion = function
        .kind
        .completes()
        .then(|| RequestCompletion::before(&arguments, &mut scratch));
    let handle = note::takes_handle(function.kind).then(|| note::handle_before(&arguments));
    let ignored = scratch.stand_in(&arguments);
    let place = function.at.status;
    let status = if place == NONE {
        0
    } else {
        words[place as usize]
    };
    if let Some(address) = ignored {
        words[place as usize] = address;
    }
    #[cfg(debug_assertions)]
    injected::panic_if_asked(injected::BEFORE, function.name);
    let begin = clock::now();
    let result = invoke(real, words);
    let end = clock::now();
    let arguments = Arguments::new(words, function, entry.language, library);
    let mut guard = SESSION.lock();
    if let Some(session) = guard.as_mut() {
        #[cfg(debug_assertions)]
        injected::panic_if_asked(injected::BEHIND, function.name);
        let times = before.times(clock::nanos(end.saturating_sub(begin)));
        // A Fortran function returns nothing.
        let failed = entry.language == Language::C && result != 0;
        let call = note::Made {
            arguments,
            times,
            failed,
            completion,
            before: handle,
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
    }
    if ignored.is_some() {
        words[place as usize] = status;
    }
    result
}

/// Panics in the middle of the recorder, for the tests alone: builds for use have none of this.
#[cfg(debug_assertions)]
mod injected {
    use std::env;

    /// `FUNCTION` or `FUNCTION,behind`.
    const VARIABLE: &str = "FLOWCAST_RECORD_TEST_PANIC";
    /// Before the real function is called.
    pub(super) const BEFORE: &str = "";
    /// Behind it, with the session in hand.
    pub(super) const BEHIND: &str = ",behind";

    pub(super) fn panic_if_asked(place: &str, function: &str) {
        if env::var(VARIABLE).is_ok_and(|asked| asked.strip_prefix(function) == Some(place)) {
            panic!("a panic for a test");
        }
    }
}
