//! Independent jobs on several threads, with results in the order of the jobs.

use std::{
    convert::Infallible,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
};

/// Runs `work` on each job. Calls `done` on the caller's thread with the job's number and each result, as soon as it is
/// available.
///
/// # Errors
/// The first error of `done`, after which no other job starts.
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
                    // The receiver is dropped after an error.
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

/// Returns the results of `work` in the order of the jobs.
pub fn map<J: Sync, R: Send>(jobs: &[J], threads: usize, work: impl Fn(&J) -> R + Sync) -> Vec<R> {
    let mut results: Vec<Option<R>> = jobs.iter().map(|_| None).collect();
    let Ok(()) = each_as_done(jobs, threads, work, |number, result| {
        results[number] = Some(result);
        Ok::<(), Infallible>(())
    });
    results.into_iter().flatten().collect()
}

/// Runs `work` on each job; on the caller's thread if there is one thread or one job.
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
