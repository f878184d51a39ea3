//! A lock for a few dozen instructions: taken for each call, nearly always free.

use std::{
    cell::UnsafeCell,
    marker::PhantomData,
    ops::{Deref, DerefMut},
    sync::atomic::{AtomicUsize, Ordering},
};

/// A value behind a spin lock.
pub(crate) struct Lock<T> {
    /// The thread that has the value, 0 if none has.
    holder: AtomicUsize,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached through a guard only, of which there is one at a time.
unsafe impl<T: Send> Sync for Lock<T> {}

/// Access to the value; shared between threads only if the value may be.
pub(crate) struct LockGuard<'a, T>(&'a Lock<T>, PhantomData<&'a mut T>);

impl<T> Lock<T> {
    pub(crate) const fn new(value: T) -> Lock<T> {
        Lock {
            holder: AtomicUsize::new(0),
            value: UnsafeCell::new(value),
        }
    }

    /// Waits for the value. None if this thread has it already: a signal handler interrupted its work, or jumped out of it.
    #[inline]
    pub(crate) fn lock(&self) -> Option<LockGuard<'_, T>> {
        // SAFETY: the query changes nothing.
        let own = unsafe { libc::pthread_self() } as usize;
        while let Err(holder) =
            self.holder
                .compare_exchange(0, own, Ordering::Acquire, Ordering::Relaxed)
        {
            if holder == own {
                return None;
            }
            // The holder may write to the disk or have lost the processor.
            std::thread::yield_now();
        }
        Some(LockGuard(self, PhantomData))
    }
}

impl<T> Deref for LockGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the guard is the only one.
        unsafe { &*self.0.value.get() }
    }
}

impl<T> DerefMut for LockGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the guard is the only one.
        unsafe { &mut *self.0.value.get() }
    }
}

impl<T> Drop for LockGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.0.holder.store(0, Ordering::Release);
    }
}
