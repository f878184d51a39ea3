//! What the recorder has to know about a function of MPI.

/// Which calling convention an exported name has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Language {
    /// Handles and numbers by value.
    C,
    /// Everything by reference, handles as 32-bit numbers.
    Fortran,
    /// The same under the names of `mpi_f08`.
    Fortran2008,
}

/// What a function does, as far as it is recorded differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FunctionKind {
    Init,
    Finalize,
    Abort,
    Pcontrol,
    Send,
    Ssend,
    Isend,
    Issend,
    SendInit,
    SsendInit,
    Recv,
    Irecv,
    RecvInit,
    Sendrecv,
    Wait,
    Waitall,
    Waitany,
    Waitsome,
    Test,
    Testall,
    Testany,
    Testsome,
    Start,
    Startall,
    RequestFree,
    Cancel,
    Probe,
    Iprobe,
    Mprobe,
    Improbe,
    Mrecv,
    Imrecv,
    Collective,
    CollectiveInit,
    Neighbor,
    NeighborInit,
    Comm,
    Icomm,
    CommFree,
    TypeFree,
    Rma,
    Irma,
    Win,
    WinFree,
    WinSync,
    WinTest,
    File,
    FileClose,
    FileSync,
    Io,
    Iio,
    Local,
    Other,
}

/// Which bytes a collective sends and receives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BufferShape {
    Barrier,
    Bcast,
    Gather,
    Scatter,
    Allgather,
    Alltoall,
    Alltoallw,
    Reduce,
    ReduceScatter,
}

/// No such argument.
pub(crate) const NONE: u8 = u8::MAX;

#[derive(Debug)]
pub(crate) struct WrappedFunction {
    /// Its place in the table.
    pub number: u16,
    /// Name without the prefix `MPI_`.
    pub name: &'static str,
    /// Number of arguments in C; in Fortran the error code follows.
    pub arity: u8,
    pub kind: FunctionKind,
    /// Of a collective, who gives and who gets how much.
    pub shape: BufferShape,
    /// Counts are 64-bit numbers.
    pub large: bool,
    pub at: Places,
}

// The table itself and [`Places`], made from the letters of the table when this is built.
include!(concat!(env!("OUT_DIR"), "/functions.rs"));
