//! State of each thread of the program: the wrapper that it is in, and the end of its last call.

use std::{
    cell::Cell,
    ptr,
    sync::atomic::{AtomicU32, Ordering},
};

use crate::{
    clock,
    encoder::{Rest, Times},
};

/// Shortest computation or call after which the thread's CPU time is read, in nanoseconds. Reading takes 0.5 us.
pub(crate) const CPU_THRESHOLD: u64 = 50_000;

/// Minimum time of the recorder that is reported in a program with a single thread, in nanoseconds.
const WORTH: u64 = 1_000_000;

static THREADS: AtomicU32 = AtomicU32::new(0);

pub(crate) struct Thread {
    /// Outermost wrapper that has not returned; null outside of any wrapper.
    wrapper: Cell<*const Wrapper<'static>>,
    /// Number of outermost wrappers so far.
    wrappers: Cell<u64>,
    number: Cell<u32>,
    /// End of the last call, in ticks.
    last_end: Cell<u64>,
    /// Thread CPU time (ns) at a moment (ticks).
    mark: Cell<(u64, u64)>,
    /// Ticks that the recorder has used and not yet reported.
    lost: Cell<u64>,
    /// Rounding remainders of this thread's encoded times, which are added to its next times.
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

/// Computation before a call: its duration and CPU time in ns, and the start of the call in ticks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Before {
    pub burst: u64,
    pub cpu: u64,
    pub begin: u64,
}

impl Before {
    /// Returns the times of the call, which took `call` ns.
    #[inline]
    pub(crate) fn times(self, call: u64) -> Times {
        Times {
            burst: self.burst,
            cpu: self.cpu,
            call,
        }
    }
}

/// Runs `work` as the outermost wrapper on this thread. Returns `None` inside another wrapper.
#[inline]
pub(crate) fn outermost<T>(work: impl FnOnce(&Thread) -> T) -> Option<T> {
    // A thread that is ending no longer has its state. Its calls are passed through.
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

/// Wrapper on the stack, until it returns or unwinds.
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
    /// Returns `true` if another wrapper is active further out on the stack. A wrapper that a jump has left is no longer at
    /// its place.
    #[inline]
    fn is_inside(&self) -> bool {
        let outer = self.wrapper.get();
        let here = ptr::from_ref(&outer).cast();
        // SAFETY: memory further out on the stack is readable, whatever it contains by now.
        outer > here
            && unsafe { (&raw const (*outer).number).read_volatile() } == self.wrappers.get()
    }

    /// Returns the thread's number in the recording; a new thread gets the next one.
    #[inline]
    pub(crate) fn number(&self) -> u32 {
        if self.number.get() == u32::MAX {
            self.number.set(THREADS.fetch_add(1, Ordering::Relaxed));
        }
        self.number.get()
    }

    /// Begins the recording at `start` (ticks): time before it is not computation.
    pub(crate) fn begin(&self, start: u64) {
        self.last_end.set(start);
        self.mark.set((clock::thread_cpu(), start));
    }

    /// Notes the start of a call and returns the computation before it. A thread's first computation starts at the start of
    /// the recording, and all of the thread's CPU time is attributed to it, because a thread that calls MPI is usually
    /// started after `MPI_Init`.
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

    /// Returns the thread's CPU time at a moment after the mark. Since the mark there have been only short calls and
    /// computations, in which a thread keeps its processor; otherwise they would not be short.
    fn cpu_at(&self, ticks: u64) -> u64 {
        let (cpu, at) = self.mark.get();
        cpu + clock::nanos(ticks.saturating_sub(at))
    }

    /// Notes that the call ended at `end` and has been recorded, so the next computation begins now. Returns the nanoseconds
    /// that the recorder has used, once they are enough to be recorded.
    #[inline]
    pub(crate) fn leave(&self, begin: u64, end: u64) -> Option<u64> {
        if clock::nanos(end.saturating_sub(begin)) >= CPU_THRESHOLD {
            self.mark.set((clock::thread_cpu(), clock::now()));
        }
        let now = clock::now();
        self.last_end.set(now);
        let lost = self.lost.get() + now.saturating_sub(end);
        let nanos = clock::nanos(lost);
        // The times of calls determine their order across threads.
        let worth = if THREADS.load(Ordering::Relaxed) > 1 {
            1
        } else {
            WORTH
        };
        self.lost.set(if nanos >= worth { 0 } else { lost });
        (nanos >= worth).then_some(nanos)
    }
}
