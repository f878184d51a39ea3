//! Ranks that accept connections.
//!
//! Open MPI creates its records of the processes on its own host in a step of `MPI_Init` (`ompi_proc_complete_init`). That
//! step does not check whether a connection has created one already. If a process of the same host connects to a rank before
//! that step, the rank has two records of one process, with the same endpoints. It destroys those twice, and crashes with a
//! segmentation fault in `MPI_Finalize`. Each rank therefore announces the end of that step by a name that other ranks on
//! its host can see. They connect to it after the announcement, or after `MPI_Init`, which all ranks leave at the same time.

use std::{
    ffi::c_int,
    os::{
        linux::net::SocketAddrExt,
        unix::net::{SocketAddr, UnixDatagram},
    },
    sync::OnceLock,
};

use crate::{
    bindings::{PROC_ON_HOST, ProcessName},
    library::OpenMpiLibrary,
};

/// The announcement, which disappears with the process.
static READY: OnceLock<Option<UnixDatagram>> = OnceLock::new();

/// Announces that this rank has completed the step. If the name is not available, others connect to it after `MPI_Init`.
pub(super) fn announce(own: ProcessName) {
    READY.get_or_init(|| UnixDatagram::bind_addr(&address(own)?).ok());
}

/// Returns `true` if this rank itself may make or answer connections.
pub(super) fn is_here(library: &OpenMpiLibrary) -> bool {
    READY.get().is_some() || is_initialized(library)
}

/// Returns `true` if a connection to a process cannot create a second record there.
pub(super) fn may_be_reached(library: &OpenMpiLibrary, name: ProcessName) -> bool {
    is_elsewhere(library, name) || has_announced(name) || is_initialized(library)
}

fn is_elsewhere(library: &OpenMpiLibrary, name: ProcessName) -> bool {
    // SAFETY: the library's process.
    unsafe { (library.process_by_name)(name).as_ref() }
        .is_some_and(|process| process.super_.proc_flags & PROC_ON_HOST == 0)
}

fn has_announced(name: ProcessName) -> bool {
    address(name).is_some_and(|address| {
        UnixDatagram::unbound().is_ok_and(|socket| socket.connect_addr(&address).is_ok())
    })
}

/// Returns `true` after `MPI_Init`.
fn is_initialized(library: &OpenMpiLibrary) -> bool {
    let mut flag: c_int = 0;
    // SAFETY: the function of the MPI standard, which may be called at any time.
    unsafe { (library.initialized)(&raw mut flag) };
    flag != 0
}

/// Address of a rank's announcement: a name in the host's network, not in a file system, so that no file remains.
fn address(name: ProcessName) -> Option<SocketAddr> {
    SocketAddr::from_abstract_name(format!("flowcast-openmpi.{}.{}", name.jobid, name.vpid)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_visible_from_its_announcement_on() {
        let name = ProcessName {
            jobid: std::process::id(),
            vpid: 7,
        };
        assert!(!has_announced(name));
        announce(name);
        assert!(has_announced(name));
        assert!(!has_announced(ProcessName { vpid: 8, ..name }));
    }
}
