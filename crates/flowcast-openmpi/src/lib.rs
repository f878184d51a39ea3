//! Flowcast's rail scheduler inside Open MPI 4.1 and 5.0, loaded by `mpirun --mca bml flowcast` (Lichei, chapters 4 and 5).
//!
//! In Open MPI the BML is the layer between messages and networks. Its only component `r2` finds the networks (BTL modules)
//! that reach each process; the layer above, ob1, uses them in turn. This component first runs `r2`. It then replaces
//! `btl_alloc`, `btl_prepare_src`, `btl_sendi`, `btl_send`, `btl_put` and `btl_free` of the rails: networks that share BTL
//! and exclusivity with another network. When ob1 requests the descriptor of a message's first fragment from a rail, `hooks`
//! let the scheduler choose the rail that delivers the message first, and take the descriptor from that rail.
//!
//! The thesis places a separate BTL in front of the networks. That deadlocks synchronous sends, because ob1 searches the
//! networks that reach the process for the BTL that delivered an acknowledgement. With hooks ob1 sees only real networks.
//!
//! | file | content |
//! |---|---|
//! | [`bindings`], [`series`], `library` | Open MPI's structs, what differs between its series, functions and variables |
//! | `component`, `parameters` | the view of the framework and `ompi_info` |
//! | `module` | arrival and removal of processes and networks |
//! | `hooks`, `descriptor` | the message path |
//! | `pieces` | messages divided over several networks |
//! | `state`, `peers`, `scheduler`, `counters` | state of the hooks |
//! | `accounts` | load of each network, shared by the processes of a node |
//! | `connections` | the kernel's statistics of the TCP connections |
//! | `polling` | one epoll instance for all sockets |
//! | `costs`, `store`, `measure` | sources of the networks' parameters |
//! | `table` | the report at the end |
//!
//! No panic unwinds into C. A function called by C is `extern "C"`, where a panic aborts the process. If libraries below it
//! may end the thread (`pthread_cancel`), it is `extern "C-unwind"` with `NoPanic`.

#![expect(unsafe_code, reason = "called by Open MPI, and calls it")]

mod accounts;
pub mod bindings;
mod component;
mod connections;
mod costs;
mod counters;
mod descriptor;
mod hooks;
mod interfaces;
mod library;
mod measure;
mod module;
mod parameters;
mod peers;
mod pieces;
mod polling;
mod scheduler;
pub mod series;
mod state;
mod store;
mod table;

use thiserror::Error;

/// Aborts the process if a panic unwinds through it. The end of a thread of the program (`pthread_cancel`) may unwind
/// through it.
struct NoPanic;

impl Drop for NoPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            std::process::abort();
        }
    }
}

/// Reason why the component steps aside and lets `r2` work alone.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum Refusal {
    /// The library's series is not supported.
    #[error("found Open MPI {0}, expected 4.1.x or 5.0.x")]
    Version(String),
    /// The library was built with another layout.
    #[error("found another size in `{0}`, expected an Open MPI built without --enable-debug")]
    Layout(String),
    /// The library lacks a symbol of its series.
    #[error("the MPI library lacks the symbol `{0}` of Open MPI")]
    Symbol(String),
    /// The framework has opened `r2` as well: two components would start the networks.
    #[error("found the component r2 open as well, expected `--mca bml flowcast` alone")]
    R2Open,
    /// MPI has started and ended in this process before: its sessions did.
    #[error("found a second start of MPI in this process, expected one")]
    SecondStart,
    /// There is no `r2` to build upon: it was not found or did not start.
    #[error("found no r2 in Open MPI or beside its components")]
    NoR2,
    /// Fewer than two networks share kind and exclusivity.
    #[error("found {0}, expected at least two networks of the same kind and btl exclusivity")]
    OneRail(String),
    /// A parameter of the component is invalid.
    #[error("bml_flowcast_{name}: {problem}")]
    Parameter {
        /// Name of the parameter without the component's prefix.
        name: &'static str,
        /// Description of the found and the expected value.
        problem: String,
    },
}

impl Refusal {
    fn parameter(name: &'static str, problem: impl ToString) -> Refusal {
        Refusal::Parameter {
            name,
            problem: problem.to_string(),
        }
    }
}
