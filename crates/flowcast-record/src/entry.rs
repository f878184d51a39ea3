//! The exported names, each with the function of the MPI library behind it.

use std::ffi::{CStr, c_int};
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::functions::{Function, Language};
use crate::library;

/// An exported name.
pub(crate) struct Entry {
    pub function: &'static Function,
    pub language: Language,
    name: &'static CStr,
    real: AtomicUsize,
}

impl Entry {
    /// The name of a function in a language.
    pub(crate) const fn new(function: &'static Function, language: Language, name: &'static CStr) -> Entry {
        Entry { function, language, name, real: AtomicUsize::new(0) }
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
            eprintln!("flowcast record: {} is not in this program's MPI library", self.name.to_string_lossy());
            std::process::abort();
        }
        self.real.store(found, Ordering::Relaxed);
        found
    }
}

/// Calls the real function. More arguments than it has do no harm: the caller removes them.
#[inline]
pub(crate) fn invoke(real: usize, words: &[usize]) -> c_int {
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
