//! Where a call comes in: it is passed on, and what it did is written down.

use std::ffi::{CStr, c_int};
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::arguments::{Arguments, is_recorded};
use crate::clock;
use crate::completions::{Completion, Scratch};
use crate::encoder::Times;
use crate::functions::{Function, Kind, Language, NONE};
use crate::library::{self, library};
use crate::note;
use crate::start::{self, SESSION};
use crate::threads::{Thread, outermost};

/// An exported name.
pub struct Entry {
    /// What it does.
    pub function: &'static Function,
    language: Language,
    name: &'static CStr,
    real: AtomicUsize,
}

impl Entry {
    /// The name of a function in a language.
    pub const fn new(function: &'static Function, language: Language, name: &'static CStr) -> Entry {
        Entry { function, language, name, real: AtomicUsize::new(0) }
    }

    #[inline]
    fn real(&self) -> usize {
        match self.real.load(Ordering::Relaxed) {
            0 => self.find(),
            found => found,
        }
    }

    #[cold]
    fn find(&self) -> usize {
        let found = library::real(self.name);
        if found == 0 {
            eprintln!("flowcast record: {} is not in this program's MPI library", self.name.to_string_lossy());
            std::process::abort();
        }
        self.real.store(found, Ordering::Relaxed);
        found
    }
}

/// Calls the real function. More arguments than it has do no harm: the caller removes them.
#[inline]
pub fn invoke(real: usize, words: &[usize]) -> c_int {
    type Six = unsafe extern "C" fn(usize, usize, usize, usize, usize, usize) -> c_int;
    type Fifteen = unsafe extern "C" fn(
        usize,
        usize,
        usize,
        usize,
        usize,
        usize,
        usize,
        usize,
        usize,
        usize,
        usize,
        usize,
        usize,
        usize,
        usize,
    ) -> c_int;
    // SAFETY: all arguments of MPI's functions are of the integer class and so are passed as words.
    unsafe {
        if let [a, b, c, d, e, f] = words {
            return std::mem::transmute::<usize, Six>(real)(*a, *b, *c, *d, *e, *f);
        }
        let mut all = [0; 15];
        all[..words.len()].copy_from_slice(words);
        let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o] = all;
        std::mem::transmute::<usize, Fifteen>(real)(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o)
    }
}

/// A call of an exported name.
///
/// # Safety
/// The words are the arguments that the function's prototype asks for.
pub unsafe fn call(entry: &Entry, words: &mut [usize]) -> c_int {
    let real = entry.real();
    let Some(library) = library() else { return invoke(real, words) };
    if !is_recorded(entry.language, library) {
        return invoke(real, words);
    }
    let function = entry.function;
    let done = outermost(|thread| match function.kind {
        Kind::Init => start::init(entry, real, words, thread),
        _ if !start::is_on() => invoke(real, words),
        Kind::Finalize | Kind::Abort => start::finish(function, real, words, thread),
        Kind::Pcontrol => start::pcontrol(Arguments::new(words, function, entry.language, library), real, thread),
        kind if start::is_paused() && !note::always_counts(kind) => invoke(real, words),
        _ => recorded(entry, real, words, thread),
    });
    done.unwrap_or_else(|| invoke(real, words))
}

fn recorded(entry: &Entry, real: usize, words: &mut [usize], thread: &Thread) -> c_int {
    let Some(library) = library() else { return invoke(real, words) };
    let function = entry.function;
    let before = thread.enter(start::begun());
    let mut scratch = Scratch::new();
    let arguments = Arguments::new(words, function, entry.language, library);
    let completion = function.kind.completes().then(|| Completion::before(&arguments, &mut scratch));
    let handle = note::takes_handle(function.kind).then(|| note::handle_before(&arguments));
    let ignored = scratch.stand_in(&arguments);
    let place = function.at.status;
    let status = if place == NONE { 0 } else { words[place as usize] };
    if let Some(address) = ignored {
        words[place as usize] = address;
    }
    let begin = clock::now();
    let result = invoke(real, words);
    let end = clock::now();
    let arguments = Arguments::new(words, function, entry.language, library);
    let mut guard = SESSION.lock();
    if let Some(session) = guard.as_mut() {
        let times = Times { burst: before.burst, cpu: before.cpu, call: clock::nanos(end - begin) };
        // A Fortran function returns nothing.
        let failed = entry.language == Language::C && result != 0;
        let call = note::Made { arguments, times, failed, completion, before: handle };
        note::note(session, thread, call);
        if let Some(lost) = thread.leave(begin, end) {
            session.pause(thread, lost);
        }
        if session.is_due(end) {
            session.flush();
        }
    }
    if ignored.is_some() {
        words[place as usize] = status;
    }
    result
}
