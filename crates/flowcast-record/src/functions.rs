//! What the recorder has to know about a function of MPI.

/// Which calling convention an exported name has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    /// Handles and numbers by value.
    C,
    /// Everything by reference, handles as 32-bit numbers.
    Fortran,
    /// The same under the names of `mpi_f08`.
    Fortran2008,
}

/// What a function does, as far as it is recorded differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
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
pub enum Shape {
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
pub const NONE: u8 = u8::MAX;

/// Which argument is what; [`NONE`] where there is none. The names are those of the table's letters.
#[derive(Debug, Clone, Copy)]
pub struct Places {
    pub count: u8,
    pub datatype: u8,
    pub recv_count: u8,
    pub recv_datatype: u8,
    pub counts: u8,
    pub recv_counts: u8,
    pub peer: u8,
    pub tag: u8,
    pub source: u8,
    pub source_tag: u8,
    pub communicator: u8,
    pub new_communicator: u8,
    pub root: u8,
    pub request: u8,
    pub length: u8,
    pub status: u8,
    pub index: u8,
    pub outcount: u8,
    pub flag: u8,
    pub message: u8,
    pub buffer: u8,
    pub recv_buffer: u8,
    pub window: u8,
    pub new_window: u8,
    pub window_bytes: u8,
    pub new_file: u8,
    pub file: u8,
}

/// One function.
#[derive(Debug)]
pub struct Function {
    /// Its place in the table.
    pub number: u16,
    /// Name without `MPI_`.
    pub name: &'static str,
    pub kind: Kind,
    /// Of a collective.
    pub shape: Shape,
    /// Counts are 64-bit numbers.
    pub large: bool,
    pub at: Places,
}

// The table itself, made when this is built.
include!(concat!(env!("OUT_DIR"), "/functions.rs"));
