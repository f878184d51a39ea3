//! Wrapped names, each with the function of the MPI library that it stands for.

use std::{
    ffi::{CStr, c_int},
    sync::atomic::{AtomicUsize, Ordering},
};

use crate::{
    functions::{Language, WrappedFunction},
    objects::Symbol,
};

/// Name that is wrapped.
pub(crate) struct WrappedName {
    pub function: &'static WrappedFunction,
    pub language: Language,
    name: &'static CStr,
    symbol: Symbol<'static>,
    wrapper: *const (),
    real: AtomicUsize,
    /// Object that defines the name.
    owner: AtomicUsize,
}

// SAFETY: the pointer is the address of a function.
unsafe impl Sync for WrappedName {}

impl WrappedName {
    /// Creates the entry for the name of a function in a language, with the function that wraps it.
    pub(crate) const fn new(
        function: &'static WrappedFunction,
        language: Language,
        name: &'static CStr,
        wrapper: *const (),
    ) -> WrappedName {
        WrappedName {
            function,
            language,
            name,
            symbol: Symbol::new(name),
            wrapper,
            real: AtomicUsize::new(0),
            owner: AtomicUsize::new(0),
        }
    }

    pub(crate) fn name(&self) -> &'static CStr {
        self.name
    }

    pub(crate) fn symbol(&self) -> Symbol<'static> {
        self.symbol
    }

    pub(crate) fn wrapper(&self) -> usize {
        self.wrapper as usize
    }

    /// Returns the address of the function in the MPI library, or 0 if no library has it. In that case, the program cannot
    /// reach the wrapper.
    #[inline]
    pub(crate) fn real(&self) -> usize {
        self.real.load(Ordering::Relaxed)
    }

    /// Returns the identity of the object that defines the name, or 0 if none does.
    pub(crate) fn owner(&self) -> usize {
        self.owner.load(Ordering::Relaxed)
    }

    pub(crate) fn own(&self, owner: usize, real: usize) {
        self.real.store(real, Ordering::Relaxed);
        self.owner.store(owner, Ordering::Relaxed);
    }

    /// Forgets the object, which is no longer loaded.
    pub(crate) fn disown(&self) {
        self.owner.store(0, Ordering::Relaxed);
    }
}

/// Calls the real function. Extra arguments do no harm, because the caller removes them. An exception of the program's error
/// handler and the end of a cancelled thread unwind through this call.
#[inline]
pub(crate) fn invoke(real: usize, words: &[usize]) -> c_int {
    type W = usize;
    type Six = unsafe extern "C-unwind" fn(W, W, W, W, W, W) -> c_int;
    type Fifteen =
        unsafe extern "C-unwind" fn(W, W, W, W, W, W, W, W, W, W, W, W, W, W, W) -> c_int;
    // SAFETY: all arguments of MPI's functions belong to the integer class and are therefore passed as words.
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
