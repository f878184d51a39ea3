//! MPI functions that carry patterns, looked up in the installed library at run time, so the build needs no MPI. Open MPI
//! and MPICH (with its relatives) differ in the width and the values of handles.

use std::{
    ffi::{CStr, c_char, c_int, c_void},
    time::Duration,
};

use flowcast_units::Rank;
use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};

use super::MpiError;

const OPEN_MPI: [&str; 2] = ["libmpi.so.40", "libmpi.so"];
const MPICH: [&str; 3] = ["libmpich.so.12", "libmpi.so.12", "libmpi.so"];

type Transfer =
    unsafe extern "C" fn(*mut c_void, c_int, usize, c_int, c_int, usize, *mut Request) -> c_int;

/// Message or collective in flight; MPICH uses half of the bits.
#[repr(transparent)]
#[derive(Debug, Clone, Copy, Default)]
pub struct Request(u64);

/// MPI library that has been initialised.
#[derive(Debug)]
pub struct Mpi {
    world: usize,
    byte: usize,
    status_ignore: usize,
    isend: Transfer,
    irecv: Transfer,
    ibarrier: unsafe extern "C" fn(usize, *mut Request) -> c_int,
    ibcast: unsafe extern "C" fn(*mut c_void, c_int, usize, c_int, usize, *mut Request) -> c_int,
    test: unsafe extern "C" fn(*mut Request, *mut c_int, usize) -> c_int,
    finalize: unsafe extern "C" fn() -> c_int,
    /// Rank of this process, from 0.
    pub rank: Rank,
    /// Total number of ranks.
    pub size: u32,
    /// First line of the library's version text.
    pub version: String,
}

/// Pause between two polls. A process that polls without pauses takes the processor from the processes whose messages are
/// measured. Polling is necessary, because the library makes progress only then.
pub(super) const GENTLY: Duration = Duration::from_micros(500);

/// Rank that gives orders and collects results.
pub(super) const ROOT: Rank = Rank(0);

impl Mpi {
    /// Returns all ranks except [`ROOT`].
    pub(super) fn others(&self) -> impl Iterator<Item = Rank> + use<> {
        (1..self.size).map(Rank)
    }

    /// Loads the library of the launcher that started this process, and initialises it.
    ///
    /// # Errors
    /// The library is missing or lacks a function.
    pub fn start() -> Result<Mpi, MpiError> {
        let is_open_mpi = std::env::var_os("OMPI_COMM_WORLD_RANK").is_some();
        let library = open(if is_open_mpi { &OPEN_MPI } else { &MPICH })?;
        let init: unsafe extern "C" fn(usize, usize) -> c_int = function(library, "MPI_Init")?;
        // SAFETY: MPI 2 and later accept null pointers as arguments.
        check("MPI_Init", unsafe { init(0, 0) })?;
        let (world, byte, status_ignore) = if is_open_mpi {
            (
                address(library, "ompi_mpi_comm_world")?,
                address(library, "ompi_mpi_byte")?,
                0,
            )
        } else {
            (0x4400_0000, 0x4c00_010d, 1)
        };
        let answers = ["MPI_Comm_rank", "MPI_Comm_size"].map(|name| -> Result<u32, MpiError> {
            let query: unsafe extern "C" fn(usize, *mut c_int) -> c_int = function(library, name)?;
            let mut answer = 0;
            // SAFETY: the variable is valid for the call.
            check("MPI_Comm_rank or _size", unsafe {
                query(world, &mut answer)
            })?;
            Ok(answer.unsigned_abs())
        });
        let [rank, size] = answers;
        Ok(Mpi {
            world,
            byte,
            status_ignore,
            isend: function(library, "MPI_Isend")?,
            irecv: function(library, "MPI_Irecv")?,
            ibarrier: function(library, "MPI_Ibarrier")?,
            ibcast: function(library, "MPI_Ibcast")?,
            test: function(library, "MPI_Test")?,
            finalize: function(library, "MPI_Finalize")?,
            rank: Rank(rank?),
            size: size?,
            version: version(library)?,
        })
    }

    /// Begins to send; `data` must stay valid until the request is done.
    ///
    /// # Errors
    /// The library reports an error.
    pub fn isend(&self, data: &[u8], to: Rank, tag: i32) -> Result<Request, MpiError> {
        // The library only reads the data.
        self.transfer(
            "MPI_Isend",
            self.isend,
            data.as_ptr().cast_mut(),
            data.len(),
            to,
            tag,
        )
    }

    /// Begins to receive; `data` must stay valid and untouched until the request is done.
    ///
    /// # Errors
    /// The library reports an error.
    pub fn irecv(&self, data: &mut [u8], from: Rank, tag: i32) -> Result<Request, MpiError> {
        self.transfer(
            "MPI_Irecv",
            self.irecv,
            data.as_mut_ptr(),
            data.len(),
            from,
            tag,
        )
    }

    fn transfer(
        &self,
        name: &'static str,
        function: Transfer,
        data: *mut u8,
        length: usize,
        peer: Rank,
        tag: i32,
    ) -> Result<Request, MpiError> {
        let mut request = Request::default();
        let length = c_int::try_from(length).map_err(|_| MpiError::TooLong(length))?;
        // SAFETY: the caller keeps the data valid until the request is done.
        let code = unsafe {
            function(
                data.cast(),
                length,
                self.byte,
                peer.0 as c_int,
                tag,
                self.world,
                &mut request,
            )
        };
        check(name, code).map(|()| request)
    }

    /// Returns `true` if the request is done; the library then frees it.
    ///
    /// # Errors
    /// The transfer failed.
    pub fn is_done(&self, request: &mut Request) -> Result<bool, MpiError> {
        let mut flag = 0;
        // SAFETY: this library created the request, and the status is ignored.
        check("MPI_Test", unsafe {
            (self.test)(request, &mut flag, self.status_ignore)
        })?;
        Ok(flag != 0)
    }

    /// Waits for the request and sleeps for `pause` between two polls.
    ///
    /// # Errors
    /// The transfer failed.
    pub fn wait(&self, mut request: Request, pause: Duration) -> Result<(), MpiError> {
        while !self.is_done(&mut request)? {
            if !pause.is_zero() {
                std::thread::sleep(pause);
            }
        }
        Ok(())
    }

    /// Waits until all ranks have reached the barrier.
    ///
    /// # Errors
    /// The library reports an error.
    pub fn barrier(&self) -> Result<(), MpiError> {
        let mut request = Request::default();
        // SAFETY: the request is written before it is used.
        check("MPI_Ibarrier", unsafe {
            (self.ibarrier)(self.world, &mut request)
        })?;
        self.wait(request, GENTLY)
    }

    /// Broadcasts rank 0's data to all ranks.
    ///
    /// # Errors
    /// The library reports an error.
    pub fn broadcast(&self, data: &mut [u8]) -> Result<(), MpiError> {
        let mut request = Request::default();
        let length = c_int::try_from(data.len()).map_err(|_| MpiError::TooLong(data.len()))?;
        // SAFETY: the data stay borrowed until the request is done.
        let code = unsafe {
            (self.ibcast)(
                data.as_mut_ptr().cast(),
                length,
                self.byte,
                0,
                self.world,
                &mut request,
            )
        };
        check("MPI_Ibcast", code)?;
        self.wait(request, GENTLY)
    }

    /// Finalises MPI.
    ///
    /// # Errors
    /// The library reports an error.
    pub fn finish(self) -> Result<(), MpiError> {
        // SAFETY: MPI is not used afterwards.
        check("MPI_Finalize", unsafe { (self.finalize)() })
    }
}

/// Opens the library with global symbols, because the components that Open MPI loads search for them there. The library
/// stays loaded, because its threads and exit handlers may outlive MPI_Finalize.
fn open(names: &[&str]) -> Result<&'static Library, MpiError> {
    // SAFETY: loading runs the library's initialisation, which is intended.
    let found = names
        .iter()
        .find_map(|name| unsafe { Library::open(Some(*name), RTLD_NOW | RTLD_GLOBAL) }.ok())
        .ok_or_else(|| MpiError::NoLibrary(names.join(", ")))?;
    Ok(Box::leak(Box::new(found)))
}

fn function<T: Copy>(library: &Library, name: &str) -> Result<T, MpiError> {
    // SAFETY: the caller's type is the one that the standard gives the function with this name.
    let found = unsafe { library.get::<T>(name) };
    Ok(*found.map_err(|_| MpiError::NoSymbol(name.to_owned()))?)
}

fn address(library: &Library, name: &str) -> Result<usize, MpiError> {
    function::<*const c_void>(library, name).map(|address| address as usize)
}

fn version(library: &Library) -> Result<String, MpiError> {
    let ask: unsafe extern "C" fn(*mut c_char, *mut c_int) -> c_int =
        function(library, "MPI_Get_library_version")?;
    let mut text = vec![0u8; 8192];
    let mut length = 0;
    // SAFETY: the standard's longest version fits.
    check("MPI_Get_library_version", unsafe {
        ask(text.as_mut_ptr().cast(), &mut length)
    })?;
    let text = CStr::from_bytes_until_nul(&text)
        .map(|text| text.to_string_lossy().into_owned())
        .unwrap_or_default();
    Ok(text
        .lines()
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" "))
}

fn check(name: &'static str, code: c_int) -> Result<(), MpiError> {
    if code == 0 {
        Ok(())
    } else {
        Err(MpiError::Refused {
            function: name,
            code,
        })
    }
}
