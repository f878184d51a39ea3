//! Independent jobs on several threads, results in the order of the jobs.

use std::sync::Mutex;

/// Runs `work` on each job; with one thread, or one job, on the caller's.
pub(crate) fn for_each_mut<T: Send>(jobs: &mut [T], threads: usize, work: impl Fn(&mut T) + Sync) {
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
