//! Flowcast's rail scheduler inside Open MPI 4.1, loaded by `mpirun --mca bml flowcast` (Lichei, chapters 4 and 5).
//!
//! Open MPI's layer between messages and networks is the BML. Its one component `r2` finds the networks (BTL modules)
//! that reach each process; the layer above, ob1, takes them in turn. This component lets `r2` do its work and then
//! replaces `btl_alloc`, `btl_prepare_src`, `btl_sendi`, `btl_send`, `btl_put` and `btl_free` of the networks that have
//! a companion. Where ob1 asks a network for the descriptor of the first fragment of a message, `hooks` ask the
//! scheduler which network delivers the message first, and take the descriptor from that one.
//!
//! The thesis puts a BTL of its own in front of the networks. On 4.1 that deadlocks synchronous sends, because ob1 looks
//! for the BTL by which an acknowledgement came among those that reach the process; with hooks ob1 sees real ones only.
//!
//! | file | what |
//! |---|---|
//! | [`bindings`], `library` | Open MPI's structs, functions and variables |
//! | `component`, `parameters` | what the framework and `ompi_info` see |
//! | `module` | processes and networks that come and go |
//! | `hooks`, `descriptor` | the message path |
//! | `pieces` | messages over several networks at once |
//! | `state`, `peers`, `scheduler`, `counters` | what the hooks know |
//! | `accounts` | what the processes of a node have given to each network |
//! | `connections` | what the kernel says of the TCP connections |
//! | `polling` | waiting for all sockets by one epoll instance |
//! | `costs`, `store`, `measure` | where the parameters of the networks come from |
//! | `table` | the report at the end |
//!
//! No panic unwinds into C: a function that C calls is `extern "C"`, where a panic ends the process, or, where the
//! libraries below it may end the thread (`pthread_cancel`), `extern "C-unwind"` with `NoPanic`.

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
mod state;
mod store;
mod table;

use thiserror::Error;

/// Ends the process where a panic would pass. What ends a thread of the program passes.
struct NoPanic;

impl Drop for NoPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            std::process::abort();
        }
    }
}

/// Why the component steps aside and lets `r2` work alone.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum Refusal {
    /// The library is of another series than 4.1.
    #[error("found Open MPI {0}, expected 4.1.x, whose structs this component knows")]
    Version(String),
    /// Not the library that we know.
    #[error("the MPI library has no `{0}`, which Open MPI 4.1 has")]
    Symbol(String),
    /// Two components would start the networks.
    #[error("found the component r2 open as well, expected `--mca bml flowcast` alone")]
    R2Open,
    /// Nothing to build upon.
    #[error("found no mca_bml_r2.so beside Open MPI's components")]
    NoR2,
    /// Fewer than two networks are equal in kind and exclusivity.
    #[error("found {0}, expected two networks of the same kind and btl exclusivity or more")]
    OneRail(String),
    /// A parameter of the component is wrong.
    #[error("bml_flowcast_{name}: {problem}")]
    Parameter {
        /// Its name without the component's.
        name: &'static str,
        /// What was found and what was expected.
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
