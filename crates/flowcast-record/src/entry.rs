//! The exported names, each with the function of the MPI library behind it.

use std::{
    cell::Cell,
    ffi::{CStr, c_int},
    sync::atomic::{AtomicUsize, Ordering},
};

use crate::{
    functions::{Function, Language},
    library,
    own_file::tell,
};

/// An exported name.
pub(crate) struct Entry {
    pub function: &'static Function,
    pub language: Language,
    name: &'static CStr,
    real: AtomicUsize,
}

impl Entry {
    /// The name of a function in a language.
    pub(crate) const fn new(
        function: &'static Function,
        language: Language,
        name: &'static CStr,
    ) -> Entry {
        Entry {
            function,
            language,
            name,
            real: AtomicUsize::new(0),
        }
    }

    /// The address of the function in the MPI library.
    #[inline]
    pub(crate) fn real(&self) -> usize {
        match self.real.load(Ordering::Relaxed) {
            0 => self.find(),
            found => found,
        }
    }

    #[cold]
    fn find(&self) -> usize {
        let found = library::real(self.name);
        if found == 0 {
            tell(&format!(
                "{} is not in this program's MPI library",
                self.name.to_string_lossy()
            ));
            std::process::abort();
        }
        self.real.store(found, Ordering::Relaxed);
        found
    }
}

thread_local! {
    /// How many calls of real functions have returned on this thread, and the last result.
    static RETURNED: Cell<(u64, c_int)> = const { Cell::new((0, 0)) };
}

/// How many calls of real functions have returned on this thread.
#[inline]
pub(crate) fn returns() -> u64 {
    RETURNED.try_with(Cell::get).map_or(0, |(count, _)| count)
}

/// The result of the last of them, if any has returned since there were so many.
pub(crate) fn returned_since(count: u64) -> Option<c_int> {
    let (now, result) = RETURNED.try_with(Cell::get).unwrap_or_default();
    (now > count).then_some(result)
}

/// Calls the real function. More arguments than it has do no harm: the caller removes them.
#[inline]
pub(crate) fn invoke(real: usize, words: &[usize]) -> c_int {
    let result = pass(real, words);
    // A thread that is ending has no such cell any more.
    let _ = RETURNED.try_with(|returned| returned.set((returned.get().0.wrapping_add(1), result)));
    result
}

#[inline]
fn pass(real: usize, words: &[usize]) -> c_int {
    type W = usize;
    type Six = unsafe extern "C" fn(W, W, W, W, W, W) -> c_int;
    type Fifteen = unsafe extern "C" fn(W, W, W, W, W, W, W, W, W, W, W, W, W, W, W) -> c_int;
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
