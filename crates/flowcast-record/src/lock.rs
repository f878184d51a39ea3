//! Lock for sections of a few dozen instructions. Each call takes it, and it is nearly always free.

use std::{
    cell::UnsafeCell,
    marker::PhantomData,
    ops::{Deref, DerefMut},
    sync::atomic::{AtomicUsize, Ordering},
};

/// Value behind a spin lock.
pub(crate) struct Lock<T> {
    /// Thread that holds the lock; 0 if it is free.
    holder: AtomicUsize,
    value: UnsafeCell<T>,
}

// SAFETY: the value is accessible only through a guard, and at most one guard exists.
unsafe impl<T: Send> Sync for Lock<T> {}

/// Access to the value. A guard can be shared between threads only if the value can.
pub(crate) struct LockGuard<'a, T>(&'a Lock<T>, PhantomData<&'a mut T>);

impl<T> Lock<T> {
    pub(crate) const fn new(value: T) -> Lock<T> {
        Lock {
            holder: AtomicUsize::new(0),
            value: UnsafeCell::new(value),
        }
    }

    /// Waits for the lock. Returns `None` if this thread already holds it, because a signal handler interrupted its work or
    /// jumped out of it.
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
            // The holder may be writing to the disk or may have lost the processor.
            std::thread::yield_now();
        }
        Some(LockGuard(self, PhantomData))
    }
}

impl<T> Deref for LockGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: no other guard exists.
        unsafe { &*self.0.value.get() }
    }
}

impl<T> DerefMut for LockGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: no other guard exists.
        unsafe { &mut *self.0.value.get() }
    }
}

impl<T> Drop for LockGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.0.holder.store(0, Ordering::Release);
    }
}
