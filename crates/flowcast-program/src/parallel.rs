//! Independent jobs on several threads, results in the order of the jobs.

use std::{
    convert::Infallible,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
};

/// Runs `work` on each job, and on the caller's thread `done` on each result as soon as it is there, with its job's number.
///
/// # Errors
/// The first one of `done`, after which no other job begins.
pub fn each_as_done<J: Sync, R: Send, E>(
    jobs: &[J],
    threads: usize,
    work: impl Fn(&J) -> R + Sync,
    mut done: impl FnMut(usize, R) -> Result<(), E>,
) -> Result<(), E> {
    let (next, work) = (&AtomicUsize::new(0), &work);
    let (sender, receiver) = mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..threads.max(1).min(jobs.len()) {
            let sender = sender.clone();
            scope.spawn(move || {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some(job) = jobs.get(number) else { break };
                    // An error drops the receiver.
                    if sender.send((number, work(job))).is_err() {
                        break;
                    }
                }
            });
        }
        drop(sender);
        let mut results = receiver.into_iter();
        results.try_for_each(|(number, result)| done(number, result))
    })
}

/// The results of `work` in the order of the jobs.
pub fn map<J: Sync, R: Send>(jobs: &[J], threads: usize, work: impl Fn(&J) -> R + Sync) -> Vec<R> {
    let mut results: Vec<Option<R>> = jobs.iter().map(|_| None).collect();
    let Ok(()) = each_as_done(jobs, threads, work, |number, result| {
        results[number] = Some(result);
        Ok::<(), Infallible>(())
    });
    results.into_iter().flatten().collect()
}

/// Runs `work` on each job; with one thread, or one job, on the caller's.
pub fn for_each_mut<T: Send>(jobs: &mut [T], threads: usize, work: impl Fn(&mut T) + Sync) {
    if threads <= 1 || jobs.len() <= 1 {
        return jobs.iter_mut().for_each(work);
    }
    let queue = Mutex::new(jobs.iter_mut());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(job) = {
                    queue
                        .lock()
                        .expect("no job panics while it holds the queue")
                        .next()
                } {
                    work(job);
                }
            });
        }
    });
}
