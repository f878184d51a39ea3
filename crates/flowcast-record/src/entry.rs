//! The names that are wrapped, each with the function of the MPI library behind it.

use std::{
    cell::Cell,
    ffi::{CStr, c_int},
    sync::atomic::{AtomicUsize, Ordering},
};

use crate::{
    functions::{Function, Language},
    objects::Symbol,
};

/// A name that is wrapped.
pub(crate) struct Entry {
    pub function: &'static Function,
    pub language: Language,
    name: &'static CStr,
    symbol: Symbol<'static>,
    wrapper: *const (),
    real: AtomicUsize,
    /// The object that defines the name.
    owner: AtomicUsize,
}

// SAFETY: the pointer is that of a function.
unsafe impl Sync for Entry {}

impl Entry {
    /// The name of a function in a language, with the function that wraps it.
    pub(crate) const fn new(
        function: &'static Function,
        language: Language,
        name: &'static CStr,
        wrapper: *const (),
    ) -> Entry {
        Entry {
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

    /// The address of the function in the MPI library; 0 if no library has it, and then nothing leads to the wrapper.
    #[inline]
    pub(crate) fn real(&self) -> usize {
        self.real.load(Ordering::Relaxed)
    }

    /// The object that defines the name, 0 if none does.
    pub(crate) fn owner(&self) -> usize {
        self.owner.load(Ordering::Relaxed)
    }

    pub(crate) fn own(&self, owner: usize, real: usize) {
        self.real.store(real, Ordering::Relaxed);
        self.owner.store(owner, Ordering::Relaxed);
    }

    /// The object is no longer loaded.
    pub(crate) fn disown(&self) {
        self.owner.store(0, Ordering::Relaxed);
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
