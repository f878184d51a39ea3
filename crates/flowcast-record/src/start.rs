//! Start and end of a recording, and how the program switches it on and off.

use std::{
    env,
    ffi::c_int,
    fs, io,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
    time::{SystemTime, UNIX_EPOCH},
};

use flowcast_recording::{
    format::{self, control},
    summary::rank_file,
    time_axis::CLOCK,
};
use flowcast_units::Rank;

use crate::{
    arguments::Arguments,
    clock::{self, Calibration},
    encoder::{Encoder, Times},
    entry::{WrappedName, invoke},
    functions::{FUNCTIONS, FunctionKind, Language, WrappedFunction},
    library::LoadedMpi,
    lock::Lock,
    memory,
    own_file::{FOLDER, OwnFile, Uncancelled, report},
    session::RecordingSession,
    synchronise::{Reading, read_clock},
    threads::{CPU_THRESHOLD, Thread},
};

/// Environment variable with the size limit of a rank's file, in bytes.
const BUDGET: &str = "FLOWCAST_RECORD_BUDGET";
/// Environment variable with the number of bytes that are buffered before they are written.
const BUFFER: &str = "FLOWCAST_RECORD_BUFFER";
const USUAL_BUFFER: usize = 1 << 18;

/// Recording of this process.
static SESSION: Lock<Option<Box<RecordingSession>>> = Lock::new(None);
static ON: AtomicBool = AtomicBool::new(false);
static PAUSED: AtomicBool = AtomicBool::new(false);
/// `true` once the reason for recording or not recording the calls is known.
static EXPLAINED: AtomicBool = AtomicBool::new(false);
static BEGUN: AtomicU64 = AtomicU64::new(0);
static PROCESS: AtomicU32 = AtomicU32::new(0);

/// Calls `work` with the recording, if there is one.
#[inline]
pub(crate) fn with_session<T>(work: impl FnOnce(&mut RecordingSession) -> T) -> Option<T> {
    let Some(mut guard) = SESSION.lock() else {
        give_up("a signal handler interrupted the recorder");
        return None;
    };
    guard.as_mut().map(|session| work(session))
}

/// Returns `true` if calls are recorded.
#[inline]
pub(crate) fn is_on() -> bool {
    ON.load(Ordering::Relaxed)
}

/// Returns `true` if the program has switched recording off.
#[inline]
pub(crate) fn is_paused() -> bool {
    PAUSED.load(Ordering::Relaxed)
}

/// Returns the time at which recording started or resumed, in ticks.
#[inline]
pub(crate) fn begun() -> u64 {
    BEGUN.load(Ordering::Relaxed)
}

/// Calls `MPI_Init` and begins the recording.
pub(crate) fn init(
    entry: &WrappedName,
    library: &'static LoadedMpi,
    words: &[usize],
    thread: &Thread,
) -> c_int {
    EXPLAINED.store(true, Ordering::Relaxed);
    let begun = guarded(|| (Calibration::begin(), clock::monotonic()));
    let result = invoke(entry.real(), words);
    let failed = result != 0 && entry.language == Language::C;
    if let (Some((calibration, begin)), false, false) = (begun, failed, is_on()) {
        guarded(|| {
            let took = clock::monotonic().saturating_sub(begin);
            calibration.end();
            begin_recording(entry.function, library, thread, took);
        });
    }
    result
}

/// Begins the recording; `took` is the duration of the function, in nanoseconds.
fn begin_recording(
    function: &WrappedFunction,
    library: &'static LoadedMpi,
    thread: &Thread,
    took: u64,
) {
    let _uncancelled = Uncancelled::new();
    let Some(folder) = env::var_os(FOLDER).map(PathBuf::from) else {
        return;
    };
    if library.is_spawned() {
        return;
    }
    if let Some(reason) = single_rank_world(library) {
        return report(&reason);
    }
    let session = match begin_session(&folder, library) {
        Ok(session) => session,
        Err(error) => {
            let rank = library.world_rank();
            return report(&format!("rank {rank} is not recorded: {error}"));
        }
    };
    let reading = read_clock(library);
    if let Some(mut place) = SESSION.lock() {
        *place = Some(session);
    }
    // The count begins at the start of the call, which is written next.
    note_clock(thread, clock::monotonic().saturating_sub(took), reading);
    let start = clock::now();
    thread.begin(start);
    BEGUN.store(start, Ordering::Relaxed);
    let times = Times {
        call: took,
        ..Times::default()
    };
    record_alone(function, thread, times);
    ON.store(true, Ordering::Relaxed);
}

/// Reports that the recorder cannot record the program's library.
#[cold]
pub(crate) fn refuse(function: &WrappedFunction, reason: &str) {
    if function.kind == FunctionKind::Init {
        report(&format!(
            "the program's MPI library cannot be recorded: {reason}"
        ));
    }
}

/// Reports why a program that makes its first call without a known `MPI_Init` is not recorded.
pub(crate) fn explain_absence(function: &WrappedFunction) {
    if EXPLAINED.swap(true, Ordering::Relaxed) {
        return;
    }
    report(if function.name == "Session_init" {
        // A program that also calls `MPI_Init` is recorded from then on.
        "the program begins with MPI_Session_init, and sessions are not recorded"
    } else {
        "a constructor of a library called MPI_Init before the recorder was active"
    });
}

/// Detects a launcher that belongs to another MPI library than the program. It starts many programs of one rank each, which
/// are not worth a recording.
fn single_rank_world(library: &LoadedMpi) -> Option<String> {
    let launched = ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE"];
    let size = launched
        .into_iter()
        .find_map(|name| env::var(name).ok()?.parse::<i32>().ok())?;
    (size > 1 && library.world_size() == 1).then(|| {
        format!(
            "the launcher started {size} processes, but each of them has an MPI_COMM_WORLD of its own: the program's \
             library ({}) is not the launcher's. Use the mpirun of that library.",
            library.version
        )
    })
}

/// Records the clock at the current time of the thread, and rank 0's clock if there is a reading.
fn note_clock(thread: &Thread, now: u64, reading: Option<Reading>) {
    let Reading { ahead, known_to } = reading.unwrap_or_default();
    let numbers = [
        now,
        u64::from(reading.is_some()),
        format::zigzag(ahead),
        known_to,
    ];
    with_session(|session| session.special(thread, control::CLOCK, &numbers));
}

fn begin_session(folder: &Path, library: &'static LoadedMpi) -> io::Result<Box<RecordingSession>> {
    let rank = library.world_rank();
    if rank == 0 {
        begin_file(&folder.join(format::RECORDING), &recording_text(library))?;
    }
    let file = begin_file(&folder.join(rank_file(Rank(rank as u32))), &header(library))?;
    let buffer = number(BUFFER).map_or(USUAL_BUFFER, |bytes| bytes.clamp(64, 1 << 30) as usize);
    if !memory::may_grow(&mut Vec::<u8>::new(), buffer * 2) {
        return Err(io::ErrorKind::OutOfMemory.into());
    }
    let encoder = Encoder::new(2 * FUNCTIONS.len(), CPU_THRESHOLD, buffer, number(BUDGET));
    let mut session = Box::new(RecordingSession::new(library, encoder, file, buffer));
    session.communicator(crate::communicators::Key::c(library.world));
    if memory::is_short() {
        return Err(io::ErrorKind::OutOfMemory.into());
    }
    PROCESS.store(std::process::id(), Ordering::Relaxed);
    // SAFETY: the function lives as long as the process.
    unsafe { libc::atexit(at_exit) };
    Ok(session)
}

fn number(name: &str) -> Option<u64> {
    env::var(name)
        .ok()
        .and_then(|text| text.parse::<u64>().ok())
}

/// Creates a file with its first lines. Removes the file if they cannot be written.
fn begin_file(path: &Path, lines: &str) -> io::Result<OwnFile> {
    let told =
        |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
    let mut file = OwnFile::create(path).map_err(told)?;
    file.write_all(lines.as_bytes())
        .inspect_err(|_| drop(fs::remove_file(path)))
        .map_err(told)?;
    Ok(file)
}

fn recording_text(library: &LoadedMpi) -> String {
    let program = program();
    format!(
        "{}\nranks {}\nlibrary {}\nprogram {program}\n",
        format::RECORDING_MAGIC,
        library.world_size(),
        library.version
    )
}

/// Returns the name of the program, on one line.
fn program() -> String {
    let line = fs::read("/proc/self/cmdline").unwrap_or_default();
    let name = line.split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(name)
        .rsplit('/')
        .next()
        .unwrap_or_default()
        .replace('\n', " ")
}

fn header(library: &LoadedMpi) -> String {
    // SAFETY: any name is a valid argument.
    let cores = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) };
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let start = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |time| time.as_nanos());
    format::header(&format!(
        "rank {}\nranks {}\nhost {}\ncores {cores}\nlibrary {}\nprogram {}\npid {}\nthread-level {}\n\
         start-unix-ns {start}\n{CLOCK} {}\ncpu-threshold-ns {CPU_THRESHOLD}\noverhead-ns 0\nrecorder {}\n",
        library.world_rank(),
        library.world_size(),
        host.trim(),
        library.version,
        program(),
        std::process::id(),
        library.thread_level(),
        shared_clock(),
        env!("CARGO_PKG_VERSION"),
    ))
}

/// Returns a text that names the kernel and its time namespace. Processes with equal texts share a clock.
fn shared_clock() -> String {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let shift = fs::read_link("/proc/self/ns/time").unwrap_or_default();
    if boot.is_empty() {
        boot
    } else {
        format!("{} {}", boot.trim(), shift.display())
    }
}

/// Records a call without arguments.
fn record_alone(function: &WrappedFunction, thread: &Thread, times: Times) {
    with_session(|session| {
        session.begin_words(function);
        session.record(thread, times);
    });
}

/// Ends the recording at `MPI_Finalize` or `MPI_Abort`. All recorded calls are on the disk before the function is called.
pub(crate) fn finish(function: &WrappedFunction, library: &LoadedMpi, thread: &Thread) {
    let _uncancelled = Uncancelled::new();
    let before = thread.enter(begun());
    record_alone(function, thread, before.times(0));
    let ends = function.kind == FunctionKind::Finalize;
    let now = clock::monotonic();
    let reading = if ends { read_clock(library) } else { None };
    note_clock(thread, now, reading);
    with_session(|session| {
        if ends {
            session.end(thread);
        } else {
            session.flush();
        }
    });
    ON.store(false, Ordering::Relaxed);
}

/// Flushes the recording when the program ends without `MPI_Finalize`, or before it calls the function in a destructor.
extern "C" fn at_exit() {
    // A forked child has a copy of the data that its parent will write.
    if is_on() && PROCESS.load(Ordering::Relaxed) == std::process::id() {
        guarded(|| with_session(RecordingSession::flush));
    }
}

/// Runs a part of the recorder's work. A panic ends the recording.
#[inline]
pub(crate) fn guarded<T>(work: impl FnOnce() -> T) -> Option<T> {
    let done = catch_unwind(AssertUnwindSafe(work));
    done.inspect_err(|_| give_up("the recorder failed")).ok()
}

/// Ends the recording; the program continues.
#[cold]
pub(crate) fn give_up(reason: &str) {
    ON.store(false, Ordering::Relaxed);
    report(&format!(
        "{reason} in a rank; the rank's recording ends here"
    ));
}

/// Handles `MPI_Pcontrol`. Level 0 switches recording off, 1 switches it on. `1, "name"` begins a region and `-1, "name"`
/// ends it; so do `n` and `-n` from 2 on.
pub(crate) fn pcontrol(arguments: Arguments<'_>, thread: &Thread) {
    let level = arguments.int(0);
    let name = if arguments.fortran == 0 && level.abs() == 1 {
        text_at(arguments.words[1])
    } else {
        None
    };
    match level {
        0 => switch_off(thread),
        1 if is_paused() => switch_on(thread),
        1 if name.is_none() => {}
        _ => mark_region(&arguments, thread, level, name),
    }
}

fn switch_off(thread: &Thread) {
    with_session(|session| {
        session.off_since.get_or_insert_with(|| {
            thread.begin(clock::now());
            clock::now()
        });
        PAUSED.store(true, Ordering::Relaxed);
    });
}

fn switch_on(thread: &Thread) {
    let now = clock::now();
    with_session(|session| {
        let Some(since) = session.off_since.take() else {
            return;
        };
        let off = clock::nanos(now.saturating_sub(since));
        session.special(thread, control::OFF, &[off]);
        PAUSED.store(false, Ordering::Relaxed);
        // Threads forget their computation since recording was switched off.
        BEGUN.store(now, Ordering::Relaxed);
        thread.begin(now);
    });
}

fn mark_region(arguments: &Arguments<'_>, thread: &Thread, level: i32, name: Option<Vec<u8>>) {
    let before = thread.enter(begun());
    with_session(|session| {
        if session.off_since.is_some() || session.over {
            return;
        }
        session.begin_words(arguments.function);
        let name = name.map_or(0, |name| session.name(&name) + 1);
        session.words.extend_from_slice(&[i64::from(level), name]);
        session.record(thread, before.times(0));
        thread.leave(before.begin, before.begin);
    });
}

/// Reads the text at an address that may be invalid: the standard lets programs omit the argument.
fn text_at(address: usize) -> Option<Vec<u8>> {
    const LONGEST: usize = 128;
    const PAGE: usize = 4096;
    let mut bytes = [0u8; LONGEST];
    // A text may end at the end of the accessible memory.
    let length = LONGEST.min(PAGE - address % PAGE);
    let local = libc::iovec {
        iov_base: bytes.as_mut_ptr().cast(),
        iov_len: length,
    };
    let remote = libc::iovec {
        iov_base: address as *mut _,
        iov_len: length,
    };
    // SAFETY: the kernel checks the address and fails where there is no memory.
    let read =
        unsafe { libc::process_vm_readv(std::process::id() as c_int, &local, 1, &remote, 1, 0) };
    let text = &bytes[..usize::try_from(read).ok()?];
    let text = &text[..text.iter().position(|byte| *byte == 0)?];
    let is_name = !text.is_empty()
        && text
            .iter()
            .all(|byte| byte.is_ascii_graphic() || *byte == b' ');
    is_name.then(|| text.to_vec())
}
