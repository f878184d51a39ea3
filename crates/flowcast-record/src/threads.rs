//! What each thread of the program knows of itself: whether it is inside a wrapper, and when its last call ended.

use std::{
    cell::Cell,
    ptr,
    sync::atomic::{AtomicU32, Ordering},
};

use crate::{
    clock,
    encoder::{Rest, Times},
};

/// A computation or a call of at least so many nanoseconds is worth a look at the thread's CPU time, which takes 0.5 us.
pub(crate) const CPU_THRESHOLD: u64 = 50_000;

/// A single thread's lost time is written down when it is so long.
const WORTH: u64 = 1_000_000;

static THREADS: AtomicU32 = AtomicU32::new(0);

pub(crate) struct Thread {
    /// The outermost wrapper that has not returned, null outside of any.
    wrapper: Cell<*const Wrapper<'static>>,
    /// How many outermost wrappers there have been.
    wrappers: Cell<u64>,
    number: Cell<u32>,
    /// When the last call ended, in ticks.
    last_end: Cell<u64>,
    /// Thread CPU time (ns) at a moment (ticks).
    mark: Cell<(u64, u64)>,
    /// Ticks that the recorder has taken and nobody has been told of.
    lost: Cell<u64>,
    /// What rounding has kept back.
    pub rest: Cell<Rest>,
}

thread_local! {
    static THREAD: Thread = const {
        Thread {
            wrapper: Cell::new(ptr::null()),
            wrappers: Cell::new(0),
            number: Cell::new(u32::MAX),
            last_end: Cell::new(0),
            mark: Cell::new((0, 0)),
            lost: Cell::new(0),
            rest: Cell::new(Rest { burst: 0, call: 0, cpu: 0 }),
        }
    };
}

/// A call's computation before it: its length and CPU time in ns, and the ticks at which the call begins.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Before {
    pub burst: u64,
    pub cpu: u64,
    pub begin: u64,
}

impl Before {
    /// The times of the call, which took so many ns.
    #[inline]
    pub(crate) fn times(self, call: u64) -> Times {
        Times {
            burst: self.burst,
            cpu: self.cpu,
            call,
        }
    }
}

/// Does something as the outermost wrapper on this thread; gives `None` where it is an inner one.
#[inline]
pub(crate) fn outermost<T>(work: impl FnOnce(&Thread) -> T) -> Option<T> {
    // A thread that is ending has no state any more; its calls are passed through.
    THREAD
        .try_with(|thread| {
            if thread.is_inside() {
                return None;
            }
            let number = thread.wrappers.get().wrapping_add(1);
            thread.wrappers.set(number);
            let wrapper = Wrapper { thread, number };
            thread.wrapper.set(ptr::from_ref(&wrapper).cast());
            Some(work(thread))
        })
        .ok()
        .flatten()
}

/// A wrapper on the stack, until it returns or unwinds.
struct Wrapper<'a> {
    thread: &'a Thread,
    number: u64,
}

impl Drop for Wrapper<'_> {
    fn drop(&mut self) {
        self.thread.wrapper.set(ptr::null());
    }
}

impl Thread {
    /// Whether a wrapper is at work further out on the stack. One that a jump has left stands no more where it was.
    #[inline]
    fn is_inside(&self) -> bool {
        let outer = self.wrapper.get();
        let here = ptr::from_ref(&outer).cast();
        // SAFETY: what lies further out on the stack can be read, whatever it is by now.
        outer > here
            && unsafe { (&raw const (*outer).number).read_volatile() } == self.wrappers.get()
    }

    /// Its number in the recording, and whether it is new.
    #[inline]
    pub(crate) fn number(&self) -> u32 {
        if self.number.get() == u32::MAX {
            self.number.set(THREADS.fetch_add(1, Ordering::Relaxed));
        }
        self.number.get()
    }

    /// The recording begins at `start` (ticks): what came before is no computation.
    pub(crate) fn begin(&self, start: u64) {
        self.last_end.set(start);
        self.mark.set((clock::thread_cpu(), start));
    }

    /// A call is about to begin. A thread's first begins where the recording began, and all of the thread's CPU time is
    /// taken to lie there: a thread that calls MPI is mostly started behind `MPI_Init`.
    #[inline]
    pub(crate) fn enter(&self, recording_start: u64) -> Before {
        if self.last_end.get() < recording_start {
            let is_new = self.last_end.replace(recording_start) == 0;
            self.mark.set((
                if is_new { 0 } else { clock::thread_cpu() },
                recording_start,
            ));
        }
        let now = clock::now();
        let burst = clock::nanos(now.saturating_sub(self.last_end.get()));
        if burst < CPU_THRESHOLD {
            return Before {
                burst,
                cpu: burst,
                begin: now,
            };
        }
        let cpu = clock::thread_cpu();
        let before = self.cpu_at(self.last_end.get());
        self.mark.set((cpu, now));
        let begin = clock::now();
        self.lost.set(self.lost.get() + begin.saturating_sub(now));
        Before {
            burst,
            cpu: cpu.saturating_sub(before).min(burst),
            begin,
        }
    }

    /// The thread's CPU time at a moment since the mark: what lies between is short calls and computations, in which a
    /// thread has its processor; else it would not be short.
    fn cpu_at(&self, ticks: u64) -> u64 {
        let (cpu, at) = self.mark.get();
        cpu + clock::nanos(ticks.saturating_sub(at))
    }

    /// The call has ended at `end` and has been written down; the next computation begins now. Gives the nanoseconds
    /// that the recorder has taken, once they are worth to be written down.
    #[inline]
    pub(crate) fn leave(&self, begin: u64, end: u64) -> Option<u64> {
        if clock::nanos(end.saturating_sub(begin)) >= CPU_THRESHOLD {
            self.mark.set((clock::thread_cpu(), clock::now()));
        }
        let now = clock::now();
        self.last_end.set(now);
        let lost = self.lost.get() + now.saturating_sub(end);
        let nanos = clock::nanos(lost);
        // The calls of several threads are put in order by their times.
        let worth = if THREADS.load(Ordering::Relaxed) > 1 {
            1
        } else {
            WORTH
        };
        self.lost.set(if nanos >= worth { 0 } else { lost });
        (nanos >= worth).then_some(nanos)
    }
}
