//! MPI library of the program: its implementation, binary interface (ABI), constants and functions.
//!
//! The library whose functions the program calls identifies itself. File names are not reliable: Debian's MPICH is
//! `libmpich.so.12`, and MPICH 5 has one library for its own ABI and one for the ABI of MPI 5.0.

use std::{
    ffi::{CStr, c_char, c_int},
    sync::OnceLock,
};

use flowcast_recording::format::{LOCK_EXCLUSIVE, LOCK_SHARED};

use crate::{
    binding,
    objects::{Object, Symbol},
};

/// Constants of the MPI library, and the functions that the recorder itself calls.
pub(crate) struct LoadedMpi {
    pub is_open_mpi: bool,
    /// First line of the library's version text.
    pub version: String,
    pub any_source: i32,
    pub any_tag: i32,
    pub proc_null: i32,
    /// Types of exclusive and shared locks, if known.
    locks: Option<[i32; 2]>,
    /// Constants for a grid, a graph and a distributed graph, if known.
    pub topologies: Option<[i32; 3]>,
    /// `MPI_IN_PLACE` in C and in Fortran.
    pub in_place: [usize; 2],
    /// `MPI_STATUS_IGNORE` in C and in Fortran.
    pub status_ignore: [usize; 2],
    /// `MPI_STATUSES_IGNORE` in C and in Fortran.
    pub statuses_ignore: [usize; 2],
    /// Position of the source in a status, in 32-bit words; the tag follows it.
    pub status_source: usize,
    pub status_words: usize,
    cancelled_word: usize,
    /// Size of a handle in C, in bytes.
    pub handle_bytes: usize,
    pub world: usize,
    pub no_communicator: usize,
    /// Datatype of a byte; 0 if unknown.
    byte: usize,
    functions: Functions,
}

type Query = unsafe extern "C" fn(usize, *mut c_int) -> c_int;
type LibraryConvert = unsafe extern "C" fn(c_int) -> usize;
type GroupOf = unsafe extern "C" fn(usize, *mut usize) -> c_int;

struct Functions {
    type_size: Query,
    test_cancelled: Query,
    comm_rank: Query,
    comm_size: Query,
    comm_test_inter: Query,
    comm_group: GroupOf,
    comm_remote_group: GroupOf,
    group_size: Query,
    group_translate_ranks:
        unsafe extern "C" fn(usize, c_int, *const c_int, usize, *mut c_int) -> c_int,
    group_free: unsafe extern "C" fn(*mut usize) -> c_int,
    /// `MPI_Comm_get_parent`, from MPI's process model; `None` if the library lacks it.
    get_parent: Option<unsafe extern "C" fn(*mut usize) -> c_int>,
    query_thread: unsafe extern "C" fn(*mut c_int) -> c_int,
    comm_f2c: Option<LibraryConvert>,
    type_f2c: Option<LibraryConvert>,
    group_f2c: Option<LibraryConvert>,
}

/// Returns the address of a variable in the first object that defines it, because the program has copies of a library's
/// variables.
fn variable(name: &CStr) -> usize {
    binding::first(|object| object.find(Symbol::new(name))).unwrap_or(0)
}

fn converted(convert: Option<LibraryConvert>, number: i32) -> usize {
    // SAFETY: any number is a valid argument.
    convert.map_or(number as usize, |convert| unsafe { convert(number) })
}

/// Returns the library of this process, or the reason why it cannot be recorded.
pub(crate) fn library() -> Result<&'static LoadedMpi, &'static str> {
    static LIBRARY: OnceLock<Result<LoadedMpi, String>> = OnceLock::new();
    LIBRARY.get_or_init(detect).as_ref().map_err(String::as_str)
}

/// Writes the library's path, ABI and version to the standard output, or the reason why it cannot be recorded.
pub(crate) fn answer() {
    let Some(serving) = binding::serving() else {
        return;
    };
    let place = serving.path().to_string_lossy();
    let text = match abi(&serving) {
        Ok((abi, version)) => format!("{place}\n{}\n{version}\n", abi.name()),
        Err(reason) => format!("{place}\n\n{reason}\n"),
    };
    // SAFETY: the text lives as long as the call. A failure of the write is ignored.
    unsafe { libc::write(1, text.as_ptr().cast(), text.len()) };
}

/// Returns the library's own function with this name.
pub(crate) fn function<T: Copy>(name: &CStr) -> Option<T> {
    const { assert!(size_of::<T>() == size_of::<usize>()) };
    let address = binding::serving()?.find(Symbol::new(name))?;
    // SAFETY: the caller's type is the one that the standard gives the function with this name.
    Some(unsafe { std::mem::transmute_copy(&address) })
}

fn functions() -> Option<Functions> {
    Some(Functions {
        type_size: function(c"PMPI_Type_size")?,
        test_cancelled: function(c"PMPI_Test_cancelled")?,
        comm_rank: function(c"PMPI_Comm_rank")?,
        comm_size: function(c"PMPI_Comm_size")?,
        comm_test_inter: function(c"PMPI_Comm_test_inter")?,
        comm_group: function(c"PMPI_Comm_group")?,
        comm_remote_group: function(c"PMPI_Comm_remote_group")?,
        group_size: function(c"PMPI_Group_size")?,
        group_translate_ranks: function(c"PMPI_Group_translate_ranks")?,
        group_free: function(c"PMPI_Group_free")?,
        get_parent: function(c"PMPI_Comm_get_parent"),
        query_thread: function(c"PMPI_Query_thread")?,
        comm_f2c: function(c"PMPI_Comm_f2c"),
        type_f2c: function(c"PMPI_Type_f2c"),
        group_f2c: function(c"PMPI_Group_f2c"),
    })
}

fn version() -> Option<String> {
    let ask: unsafe extern "C" fn(*mut c_char, *mut c_int) -> c_int =
        function(c"PMPI_Get_library_version")?;
    let mut text = vec![0u8; 8192];
    let mut length = 0;
    // SAFETY: the standard's longest version fits.
    unsafe { ask(text.as_mut_ptr().cast(), &mut length) };
    let text = CStr::from_bytes_until_nul(&text).ok()?.to_string_lossy();
    let words = text.lines().next().unwrap_or_default().split_whitespace();
    Some(words.collect::<Vec<_>>().join(" "))
}

/// Families of libraries with the same constants and handles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Abi {
    /// Handles are addresses.
    OpenMpi,
    /// Handles are 32-bit numbers. The derivatives of MPICH (Intel, Cray, MVAPICH) have used its constants since 2014.
    Mpich,
    /// ABI of MPI 5.0: small numbers as addresses.
    Standard,
}

impl Abi {
    const fn name(self) -> &'static str {
        match self {
            Abi::OpenMpi => "Open MPI's ABI",
            Abi::Mpich => "MPICH's ABI",
            Abi::Standard => "the standard ABI of MPI 5.0",
        }
    }
}

/// Returns the ABI and the version of a library.
fn abi(serving: &Object) -> Result<(Abi, String), String> {
    let version = version().ok_or("its version is unknown")?;
    let abi = if has_standard_abi() {
        Abi::Standard
    } else if variable(c"ompi_mpi_comm_world") != 0 {
        Abi::OpenMpi
    } else if is_of_mpich(serving, &version) {
        Abi::Mpich
    } else {
        return Err(format!("its ABI is unknown ({version})"));
    };
    Ok((abi, version))
}

/// Returns `true` if the library has the ABI of MPI 5.0. The libraries with MPICH 5's and Intel MPI's own ABI have the
/// function as well, but it returns -1 there.
fn has_standard_abi() -> bool {
    type Ask = unsafe extern "C" fn(*mut c_int, *mut c_int) -> c_int;
    let Some(ask) = function::<Ask>(c"PMPI_Abi_get_version") else {
        return false;
    };
    let (mut major, mut minor) = (-1, -1);
    // SAFETY: the variables are valid for the call. The function may be called at any time.
    let code = unsafe { ask(&mut major, &mut minor) };
    code == 0 && major > 0
}

fn is_of_mpich(serving: &Object, version: &str) -> bool {
    let has_its_insides = serving.find(Symbol::new(c"MPIR_Err_return_comm")).is_some();
    let names = ["MPICH", "MVAPICH", "Intel(R) MPI", "ParaStation MPI"];
    has_its_insides || names.iter().any(|name| version.contains(name))
}

fn detect() -> Result<LoadedMpi, String> {
    let serving = binding::serving().ok_or("no library has profiling functions (PMPI_Init)")?;
    let (abi, version) = abi(&serving)?;
    if binding::has_failed() {
        return Err(
            "the system does not allow the recorder to change the library in memory".to_owned(),
        );
    }
    let functions = functions().ok_or("it lacks functions that the recorder calls")?;
    Ok(match abi {
        Abi::OpenMpi => open_mpi(version, functions),
        Abi::Mpich => mpich(version, functions),
        Abi::Standard => standard_abi(version, functions),
    })
}

fn open_mpi(version: String, functions: Functions) -> LoadedMpi {
    LoadedMpi {
        is_open_mpi: true,
        locks: Some([1, 2]),
        topologies: Some([1, 2, 3]),
        world: variable(c"ompi_mpi_comm_world"),
        no_communicator: variable(c"ompi_mpi_comm_null"),
        byte: variable(c"ompi_mpi_byte"),
        in_place: [1, variable(c"mpi_fortran_in_place_")],
        status_ignore: [0, variable(c"mpi_fortran_status_ignore_")],
        statuses_ignore: [0, variable(c"mpi_fortran_statuses_ignore_")],
        ..common(version, functions)
    }
}

/// Values that Open MPI shares with other libraries.
fn common(version: String, functions: Functions) -> LoadedMpi {
    LoadedMpi {
        is_open_mpi: false,
        version,
        any_source: -1,
        any_tag: -1,
        proc_null: -2,
        locks: None,
        topologies: None,
        in_place: [1; 2],
        status_ignore: [0; 2],
        statuses_ignore: [0; 2],
        status_source: 0,
        status_words: 6,
        cancelled_word: 3,
        handle_bytes: 8,
        world: 0,
        no_communicator: 0,
        byte: 0,
        functions,
    }
}

fn mpich(version: String, functions: Functions) -> LoadedMpi {
    LoadedMpi {
        any_source: -2,
        proc_null: -1,
        locks: Some([234, 235]),
        topologies: Some([2, 1, 3]),
        in_place: [usize::MAX; 2],
        status_ignore: [1, variable(c"MPIR_F08_MPI_STATUS_IGNORE_OBJ")],
        statuses_ignore: [1, variable(c"MPIR_F08_MPI_STATUSES_IGNORE_OBJ")],
        status_source: 2,
        status_words: 5,
        cancelled_word: 1,
        handle_bytes: 4,
        world: 0x4400_0000,
        no_communicator: 0x0400_0000,
        byte: 0x4c00_010d,
        ..common(version, functions)
    }
}

fn standard_abi(version: String, functions: Functions) -> LoadedMpi {
    LoadedMpi {
        any_tag: -2,
        proc_null: -3,
        locks: Some([301, 302]),
        topologies: Some([211, 212, 213]),
        status_words: 8,
        cancelled_word: usize::MAX,
        byte: 0x247,
        world: 0x101,
        no_communicator: 0x100,
        ..common(version, functions)
    }
}

/// Functions with which the recorders of different ranks communicate.
pub(crate) struct ExchangeFunctions {
    byte: usize,
    status_ignore: usize,
    comm_dup: GroupOf,
    send: unsafe extern "C" fn(*const u64, c_int, usize, c_int, c_int, usize) -> c_int,
    recv: unsafe extern "C" fn(*mut u64, c_int, usize, c_int, c_int, usize, usize) -> c_int,
    handle_bytes: usize,
}

impl ExchangeFunctions {
    /// Duplicates a communicator with `PMPI_Comm_dup` and returns the new handle; `None` if MPI reports an error.
    pub(crate) fn duplicate(&self, communicator: usize) -> Option<usize> {
        let mut made = 0;
        // SAFETY: the variable has room for a handle of either size.
        let code = unsafe { (self.comm_dup)(communicator, &mut made) };
        (code == 0).then_some(if self.handle_bytes == 4 {
            made & 0xFFFF_FFFF
        } else {
            made
        })
    }

    /// Sends a number to another rank.
    pub(crate) fn send(
        &self,
        value: u64,
        to: c_int,
        tag: c_int,
        communicator: usize,
    ) -> Option<()> {
        // SAFETY: the number lives until the call returns.
        let code = unsafe { (self.send)(&value, 8, self.byte, to, tag, communicator) };
        (code == 0).then_some(())
    }

    /// Receives a number from another rank.
    pub(crate) fn receive(&self, from: c_int, tag: c_int, communicator: usize) -> Option<u64> {
        let mut value = 0;
        // SAFETY: the number has room for eight bytes, and the status is ignored.
        let code = unsafe {
            (self.recv)(
                &mut value,
                8,
                self.byte,
                from,
                tag,
                communicator,
                self.status_ignore,
            )
        };
        (code == 0).then_some(value)
    }
}

impl LoadedMpi {
    /// Returns `true` if another MPI program has started this one: its world is not the recording's world.
    pub(crate) fn is_spawned(&self) -> bool {
        let Some(get_parent) = self.functions.get_parent else {
            return false;
        };
        let mut parent = 0;
        // SAFETY: the variable has room for a handle of either size.
        let code = unsafe { get_parent(&mut parent) };
        code == 0 && self.handle(parent) != self.no_communicator
    }

    /// Returns the functions with which recorders communicate, or `None` if a constant or a function is unknown.
    pub(crate) fn exchange(&self) -> Option<ExchangeFunctions> {
        (self.byte != 0).then_some(ExchangeFunctions {
            byte: self.byte,
            status_ignore: self.status_ignore[0],
            comm_dup: function(c"PMPI_Comm_dup")?,
            send: function(c"PMPI_Send")?,
            recv: function(c"PMPI_Recv")?,
            handle_bytes: self.handle_bytes,
        })
    }

    /// Converts a word from an argument or a variable to a handle in C.
    #[inline]
    pub(crate) fn handle(&self, word: usize) -> usize {
        if self.handle_bytes == 4 {
            word & 0xFFFF_FFFF
        } else {
            word
        }
    }

    /// Returns source and tag of a status, and `true` if its operation was cancelled.
    ///
    /// # Safety
    /// `status` must be the address of a status, or of an array with more than `index` statuses.
    pub(crate) unsafe fn status(&self, status: usize, index: usize) -> (i32, i32, bool) {
        let words = (status as *const i32).wrapping_add(index * self.status_words);
        // SAFETY: guaranteed by the caller.
        let word = |place: usize| unsafe { words.wrapping_add(place).read_unaligned() };
        let cancelled = if self.cancelled_word < self.status_words {
            word(self.cancelled_word) & 1 != 0
        } else {
            self.ask(self.functions.test_cancelled, words as usize) != 0
        };
        (
            word(self.status_source),
            word(self.status_source + 1),
            cancelled,
        )
    }

    /// Returns the C handle of a Fortran communicator.
    pub(crate) fn comm_of_fortran(&self, number: i32) -> usize {
        converted(self.functions.comm_f2c, number)
    }

    /// Returns the C handle of a Fortran datatype.
    pub(crate) fn type_of_fortran(&self, number: i32) -> usize {
        converted(self.functions.type_f2c, number)
    }

    /// Converts a lock's type to its form in recordings.
    pub(crate) fn lock_type(&self, lock: i32) -> Option<i64> {
        let [exclusive, shared] = self.locks?;
        match lock {
            _ if lock == exclusive => Some(LOCK_EXCLUSIVE),
            _ if lock == shared => Some(LOCK_SHARED),
            _ => None,
        }
    }

    /// Returns the C handle of a Fortran group.
    pub(crate) fn group_of_fortran(&self, number: i32) -> usize {
        converted(self.functions.group_f2c, number)
    }

    fn ask(&self, query: Query, handle: usize) -> i32 {
        let mut answer = 0;
        // SAFETY: the handle came from the program.
        unsafe { query(handle, &mut answer) };
        answer
    }

    /// Returns the size of one element of a datatype, in bytes.
    pub(crate) fn type_size(&self, datatype: usize) -> u64 {
        u64::try_from(self.ask(self.functions.type_size, datatype)).unwrap_or(0)
    }

    pub(crate) fn world_rank(&self) -> i32 {
        self.ask(self.functions.comm_rank, self.world)
    }

    pub(crate) fn world_size(&self) -> i32 {
        self.ask(self.functions.comm_size, self.world)
    }

    /// Returns the thread level that the library granted to the program.
    pub(crate) fn thread_level(&self) -> i32 {
        let mut level = 0;
        // SAFETY: the variable is valid for the call.
        unsafe { (self.functions.query_thread)(&mut level) };
        level
    }

    /// Returns the world ranks of a communicator's group, and of the remote group of an intercommunicator. Ranks outside the
    /// world are negative.
    pub(crate) fn members(&self, communicator: usize) -> (Vec<i32>, Option<Vec<i32>>) {
        let between = self.ask(self.functions.comm_test_inter, communicator) != 0;
        let own = self.group_members(self.functions.comm_group, communicator);
        (
            own,
            between.then(|| self.group_members(self.functions.comm_remote_group, communicator)),
        )
    }

    fn group_members(&self, group_of: GroupOf, communicator: usize) -> Vec<i32> {
        let mut group = 0;
        // SAFETY: the variable has room for a handle of either size.
        unsafe { group_of(communicator, &mut group) };
        let members = self.ranks_in_world(self.handle(group));
        // SAFETY: the group was made here.
        unsafe { (self.functions.group_free)(&mut group) };
        members
    }

    /// Returns the world ranks of a group; negative for processes outside the world.
    pub(crate) fn ranks_in_world(&self, group: usize) -> Vec<i32> {
        let mut world = 0;
        // SAFETY: the variable has room for a handle of either size.
        unsafe { (self.functions.comm_group)(self.world, &mut world) };
        let size = self.ask(self.functions.group_size, group).max(0);
        let ranks: Vec<c_int> = (0..size).collect();
        let mut members = vec![0; ranks.len()];
        // SAFETY: both lists have `size` elements, and the group of the world was made here.
        unsafe {
            let translate = self.functions.group_translate_ranks;
            translate(
                group,
                size,
                ranks.as_ptr(),
                self.handle(world),
                members.as_mut_ptr(),
            );
            (self.functions.group_free)(&mut world);
        }
        members
    }
}
