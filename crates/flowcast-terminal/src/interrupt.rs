//! Handling of signals that end the process: temporary files are removed first, and a resumable run reports its file.
//!
//! The handler forwards the signal to a thread, which removes the registered files and then lets the signal have its usual
//! effect.

#![expect(unsafe_code, reason = "the standard library has no signals")]

use std::{
    fs,
    io::{self, PipeReader, Read, pipe},
    mem::MaybeUninit,
    os::fd::IntoRawFd,
    path::{Path, PathBuf},
    process::{Command, ExitStatus},
    ptr,
    sync::{
        Mutex, MutexGuard, Once, PoisonError,
        atomic::{AtomicBool, AtomicI32, Ordering},
    },
    thread,
};

use crate::say;

/// Signals that end a process by default. `SIGKILL` is missing because it cannot be caught, and so are the signals by which
/// the processor reports a fault of the program.
const SIGNALS: [i32; 10] = [
    libc::SIGHUP,
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGALRM,
    libc::SIGTERM,
    libc::SIGXCPU,
    libc::SIGVTALRM,
    libc::SIGPROF,
];

/// Temporary files and folders. A folder precedes the files in it.
static TEMPORARY: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());
/// Files with which the next run can resume.
static KEPT: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());
/// Process to which signals are forwarded.
static PROGRAM: AtomicI32 = AtomicI32::new(NO_PROGRAM);
const NO_PROGRAM: i32 = 0;
const STARTING: i32 = -1;
static PASSED_ON: AtomicBool = AtomicBool::new(false);
/// File descriptor to which the handler writes.
static TOLD: AtomicI32 = AtomicI32::new(-1);

/// List of files and folders that a signal removes. No signal ends the process while the list is locked. It must be locked
/// while a temporary file is created or renamed.
pub fn temporary() -> MutexGuard<'static, Vec<PathBuf>> {
    static WATCHED: Once = Once::new();
    WATCHED.call_once(watch);
    TEMPORARY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes writes beyond the file size limit fail like on a full disk, without the signal that would end the process. Child
/// processes have the default disposition.
pub fn survive_file_limits() {
    // SAFETY: the handler does nothing.
    unsafe { replace_default(libc::SIGXFSZ, go_on) };
}

extern "C" fn go_on(_: i32, _: *mut libc::siginfo_t, _: *mut libc::c_void) {}

/// Runs a program and waits for its end. A signal in the meantime ends the program, and this process continues.
///
/// # Errors
/// The program does not start.
pub fn pass_on_to(command: &mut Command) -> io::Result<ExitStatus> {
    // Installs the signal handlers.
    drop(temporary());
    PROGRAM.store(STARTING, Ordering::SeqCst);
    let ended = command.spawn().and_then(|mut program| {
        PROGRAM.store(program.id().cast_signed(), Ordering::SeqCst);
        program.wait()
    });
    PROGRAM.store(NO_PROGRAM, Ordering::SeqCst);
    ended
}

/// `true` if a signal arrived while a program ran.
pub fn was_passed_on() -> bool {
    PASSED_ON.load(Ordering::SeqCst)
}

/// Registers a file that is reported on a signal.
pub fn keeps(path: &Path) {
    // Installs the signal handlers.
    let _temporary = temporary();
    kept().push(path.to_owned());
}

/// Removes a file from those that are reported on a signal.
pub(crate) fn unregister(path: &Path) {
    kept().retain(|known| known != path);
}

fn kept() -> MutexGuard<'static, Vec<PathBuf>> {
    KEPT.lock().unwrap_or_else(PoisonError::into_inner)
}

fn watch() {
    // Without a pipe or a thread, signals have their usual effect.
    let Ok((signals, told)) = pipe() else { return };
    let thread = thread::Builder::new().name("signals".to_owned());
    if thread.spawn(move || end_by(signals)).is_ok() {
        // The descriptor stays open for the life of the process.
        TOLD.store(told.into_raw_fd(), Ordering::SeqCst);
        // SAFETY: `on_signal` is async-signal-safe.
        SIGNALS
            .into_iter()
            .for_each(|signal| unsafe { replace_default(signal, on_signal) });
    }
}

/// Waits for a signal, cleans up, and ends the process.
fn end_by(mut signals: PipeReader) {
    let mut signal = [0];
    if signals.read_exact(&mut signal).is_err() {
        return;
    }
    let temporary = temporary();
    for path in temporary.iter().rev() {
        // Files that cannot be removed remain.
        let _ = fs::remove_file(path).or_else(|_| fs::remove_dir(path));
    }
    for path in kept().iter() {
        say!(
            "\nflowcast: interrupted; {} contains the finished part: the same command with --resume continues",
            path.display()
        );
    }
    let signal = i32::from(signal[0]);
    // SAFETY: the signal is one of SIGNALS, whose default disposition ends the process.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
    }
}

extern "C" fn on_signal(signal: i32, from: *mut libc::siginfo_t, _: *mut libc::c_void) {
    let program = PROGRAM.load(Ordering::SeqCst);
    if program != NO_PROGRAM {
        PASSED_ON.store(true, Ordering::SeqCst);
        // SAFETY: the system passes its information on the signal; `kill` may be called in a handler. A terminal sends its
        // signals to the program as well.
        unsafe {
            if program != STARTING && (*from).si_code <= 0 {
                libc::kill(program, signal);
            }
        }
        return;
    }
    let signal = signal as u8;
    // SAFETY: `write` may be called in a handler; the byte lives until it returns. If the pipe is full, a signal was already
    // reported.
    unsafe {
        libc::write(
            TOLD.load(Ordering::SeqCst),
            ptr::from_ref(&signal).cast(),
            1,
        )
    };
}

type Handler = extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void);

/// Replaces the default disposition by a handler. A signal that is ignored, as under `nohup`, stays ignored.
///
/// # Safety
/// The handler must be async-signal-safe.
unsafe fn replace_default(signal: i32, handler: Handler) {
    // SAFETY: zeroes are a valid sigaction; the first call only queries, the second sets the handler.
    unsafe {
        let mut action = MaybeUninit::<libc::sigaction>::zeroed().assume_init();
        if libc::sigaction(signal, ptr::null(), &mut action) == 0
            && action.sa_sigaction == libc::SIG_DFL
        {
            action.sa_sigaction = handler as *const () as usize;
            action.sa_flags = libc::SA_RESTART | libc::SA_SIGINFO;
            libc::sigaction(signal, &action, ptr::null_mut());
        }
    }
}
