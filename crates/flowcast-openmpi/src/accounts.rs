//! Accounts of the load of each rail: the time at which it will have sent everything assigned to it. All processes of a job
//! on a node share one account, because they share its rails.
//!
//! The accounts lie in a file in the folder that Open MPI keeps for the job on this node and removes with it. Each process
//! maps the file into its memory. Zeros are the accounts of idle rails, so no process has to initialise them.

use std::{
    env,
    fs::OpenOptions,
    io,
    os::fd::AsRawFd,
    path::{Path, PathBuf},
    ptr,
    sync::atomic::AtomicU64,
};

use flowcast_scheduler::MAX_RAILS;

use crate::series::JOB_FOLDERS;

/// Load of the rails, shared by the processes of a node.
#[derive(Debug, Default)]
#[repr(C)]
pub(crate) struct NodeAccounts {
    /// Time at which each rail will have sent everything assigned to it, in nanoseconds of the machine's monotonic clock.
    pub free_at: [AtomicU64; MAX_RAILS],
    /// Number of bytes acknowledged on each rail.
    pub acknowledged: [AtomicU64; MAX_RAILS],
}

pub(crate) type Accounts = &'static NodeAccounts;

/// Creates accounts of idle rails for this process alone.
pub(crate) fn own() -> Accounts {
    Box::leak(Box::<NodeAccounts>::default())
}

/// Returns the accounts of the job on this node, or private ones if they cannot be shared.
pub(crate) fn of_job_on_node(rails: &[&str]) -> Accounts {
    // Processes with other rails have other accounts.
    let shared = job_folder().and_then(|(folder, job)| {
        let name = format!("flowcast-rails-{job}-{}", rails.join(",").replace('/', "_"));
        map(&folder.join(name)).ok()
    });
    shared.unwrap_or_else(own)
}

/// Open MPI's folder for this `mpirun` on this node, and the name of the job.
fn job_folder() -> Option<(PathBuf, String)> {
    JOB_FOLDERS.iter().find_map(|(folder, job)| {
        let (folder, job) = (env::var_os(folder)?, env::var(job).ok()?);
        Some((folder.into(), job.replace('/', "_")))
    })
}

fn map(file: &Path) -> io::Result<Accounts> {
    let length = size_of::<NodeAccounts>();
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(file)?;
    file.set_len(length as u64)?;
    // SAFETY: the file is as long as the mapping, which is never removed. All processes that map it use atomic words.
    unsafe {
        let place = libc::mmap(
            ptr::null_mut(),
            length,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED,
            file.as_raw_fd(),
            0,
        );
        if place == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(&*place.cast())
    }
}

/// Time on the clock of the accounts, in nanoseconds. It is the same for all processes of a machine.
#[inline]
pub(crate) fn now() -> u64 {
    nanoseconds(libc::CLOCK_MONOTONIC)
}

/// Time at the kernel's last tick, up to 10 ms ago. Reading it takes a sixth of the time of `now`.
#[inline]
pub(crate) fn roughly_now() -> u64 {
    nanoseconds(libc::CLOCK_MONOTONIC_COARSE)
}

#[inline]
fn nanoseconds(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` has room for the result; these clocks always exist.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;

    #[test]
    fn processes_that_map_the_same_file_see_the_same_accounts() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("accounts");
        let (one, other) = (map(&file).unwrap(), map(&file).unwrap());
        assert_eq!(other.free_at[3].load(Ordering::Relaxed), 0);
        one.free_at[3].store(now(), Ordering::Relaxed);
        assert!(other.free_at[3].load(Ordering::Relaxed) > 0);
        assert!(map(&folder.path().join("none/accounts")).is_err());
    }
}
